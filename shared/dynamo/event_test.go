package dynamo_test

import (
	"maps"
	"reflect"
	"testing"
	"time"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// The image that Lambda hands on of a reservation's event is the event that was stored. An
// image of nothing, or of two things, is refused.
func TestDecodeEventImageOfAReservation(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	store := dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})
	now := time.Date(2026, 9, 1, 0, 0, 0, 123_000_000, time.UTC)
	first := ledger.Reservation{
		ID: ledger.NewReservationID([16]byte{1}), Owner: "U-1", Hold: "hold_1", Status: ledger.ReservationPaymentPending,
		Amount:   ledger.Money{AmountMinor: 1500, Currency: "USD"},
		Attempts: []ledger.Attempt{{Number: 1, State: ledger.AttemptOpen, Unwanted: true, OpenedAt: now}}, LookAt: now,
	}
	change := ledger.ReservationStep(ledger.Reservation{}, first, ledger.EventReservationPaymentStarted, nil, ledger.Origin{EventID: "event_1"}, now)
	if err := store.Commit(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(table), Key: map[string]types.AttributeValue{
		dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: "RES#" + string(first.ID)},
		dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: "EVENT#0000000001"},
	}})
	if err != nil || len(out.Item) == 0 {
		t.Fatalf("the event's item: %v, error %v", out, err)
	}
	image := lambdaImage(t, out.Item)
	got, err := dynamo.DecodeEventImage(image)
	if err != nil || !reflect.DeepEqual(got, change.Events[0]) {
		t.Errorf("got %+v, error %v\nwant %+v", got, err, change.Events[0])
	}
	ofNothing := maps.Clone(image)
	delete(ofNothing, "reservation")
	if got, err := dynamo.DecodeEventImage(ofNothing); err == nil {
		t.Errorf("an image of nothing is %+v", got)
	}
	ofTwo := maps.Clone(image)
	ofTwo["slot"] = lambdaevents.NewMapAttribute(map[string]lambdaevents.DynamoDBAttributeValue{"slot_id": lambdaevents.NewStringAttribute("S")})
	if got, err := dynamo.DecodeEventImage(ofTwo); err == nil {
		t.Errorf("an image of two things is %+v", got)
	}
}

// The images of a policy's event and of a counted hold's are the events that were stored,
// with the lists of names that they have.
func TestDecodeEventImageOfAPolicyAndOfACountedHold(t *testing.T) {
	s := newLimitedSale(t)
	layer := ledger.InheritAll()
	layer.Policy.SaleFrom, layer.Policy.Scarce = time.Date(2026, time.May, 4, 23, 59, 59, 999_000_000, time.UTC), true
	layer.Inherits &^= ledger.PartSaleFrom | ledger.PartScarce
	scope := ledger.PolicyScope{ResourceType: "show", ResourceID: "R-1"}
	policy, err := ledger.SetPolicy(scope, ledger.ScopePolicy{}, layer, s.origin(), s.slot.CreatedAt)
	s.must(err)
	hold := s.hold("U-1")
	for key, change := range map[string]ledger.Change{
		"POLICY#show#R-1 EVENT#0000000001":                            policy,
		"HOLD#" + string(hold.Holds[0].Next.ID) + " EVENT#0000000001": hold,
	} {
		s.must(s.direct.Commit(t.Context(), change))
		got, err := dynamo.DecodeEventImage(lambdaImage(t, s.items()[key]))
		if err != nil || !reflect.DeepEqual(got, change.Events[0]) {
			t.Errorf("got %+v, error %v\nwant %+v", got, err, change.Events[0])
		}
	}
}

func lambdaImage(t *testing.T, item map[string]types.AttributeValue) map[string]lambdaevents.DynamoDBAttributeValue {
	t.Helper()
	image := make(map[string]lambdaevents.DynamoDBAttributeValue, len(item))
	for name, value := range item {
		image[name] = lambdaValue(t, value)
	}
	return image
}

func lambdaValue(t *testing.T, value types.AttributeValue) lambdaevents.DynamoDBAttributeValue {
	t.Helper()
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return lambdaevents.NewStringAttribute(v.Value)
	case *types.AttributeValueMemberN:
		return lambdaevents.NewNumberAttribute(v.Value)
	case *types.AttributeValueMemberBOOL:
		return lambdaevents.NewBooleanAttribute(v.Value)
	case *types.AttributeValueMemberM:
		return lambdaevents.NewMapAttribute(lambdaImage(t, v.Value))
	case *types.AttributeValueMemberL:
		list := make([]lambdaevents.DynamoDBAttributeValue, len(v.Value))
		for i, element := range v.Value {
			list[i] = lambdaValue(t, element)
		}
		return lambdaevents.NewListAttribute(list)
	default:
		t.Fatalf("an attribute of type %T is not written by the ledger", value)
		return lambdaevents.NewNullAttribute()
	}
}
