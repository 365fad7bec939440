package dynamo_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// An entry of the due index that leads nobody to the item in time counts as none, so that
// an audit finds it.
func TestScanTellsWhetherAReservationIsDue(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	store := dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})
	now := time.Date(2026, 9, 1, 0, 0, 0, 123_000_000, time.UTC)
	first := ledger.Reservation{ID: ledger.NewReservationID([16]byte{1}), Owner: "U-1", Status: ledger.ReservationPaymentPending, LookAt: now}
	made := ledger.ReservationStep(ledger.Reservation{}, first, ledger.EventReservationPaymentStarted, nil, ledger.Origin{EventID: "event_1"}, now)
	if err := store.Commit(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	due := func() bool {
		t.Helper()
		var found []ledger.StoredReservation
		events := 0
		err := dynamo.NewScan(client, table).ScanRecords(t.Context(), func(r ledger.Records) error {
			found, events = append(found, r.Reservations...), events+len(r.Events)
			return nil
		})
		if err != nil || len(found) != 1 || events != 1 || found[0].Reservation.ID != first.ID {
			t.Fatalf("found %+v and %d events, error %v", found, events, err)
		}
		return found[0].Due
	}
	postpone := func(lookAt time.Time) {
		t.Helper()
		if err := store.Postpone(t.Context(), first.ID, 1, lookAt, 1); err != nil {
			t.Fatal(err)
		}
	}
	if !due() {
		t.Error("a reservation that is looked at is not due")
	}
	setAttribute(t, client, table, first.ID, "due_at_ms", &types.AttributeValueMemberN{Value: "4102444800000"})
	if due() {
		t.Error("a reservation is due whose entry is for another time")
	}
	postpone(now.Add(time.Minute))
	if !due() {
		t.Error("a reservation that was postponed is not due")
	}
	setAttribute(t, client, table, first.ID, "due_shard", &types.AttributeValueMemberS{Value: "reservation#99"})
	if due() {
		t.Error("a reservation is due whose entry is in a shard that nobody reads")
	}
	postpone(time.Time{})
	if due() {
		t.Error("a reservation that is never looked at is due")
	}
	setAttribute(t, client, table, first.ID, "due_shard", &types.AttributeValueMemberS{Value: "reservation#99"})
	if !due() {
		t.Error("an entry that was left behind is not seen")
	}
}

func setAttribute(t *testing.T, client *dynamodb.Client, table string, id ledger.ReservationID, name string, value types.AttributeValue) {
	t.Helper()
	_, err := client.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName: &table,
		Key: map[string]types.AttributeValue{
			dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: "RES#" + string(id)},
			dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: "RES"},
		},
		UpdateExpression:          aws.String("SET #n = :v"),
		ExpressionAttributeNames:  map[string]string{"#n": name},
		ExpressionAttributeValues: map[string]types.AttributeValue{":v": value},
	})
	if err != nil {
		t.Fatal(err)
	}
}
