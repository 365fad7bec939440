package dynamo_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/system/systemtest"
)

// parkingLot is a table with holds in it.
type parkingLot struct {
	*testing.T
	client   *dynamodb.Client
	table    string
	store    *dynamo.Store
	commands *commands.Commands
	clock    *systemtest.Clock
}

func newParkingLot(t *testing.T) *parkingLot {
	t.Helper()
	client, table := dynamotest.NewTable(t)
	clock, random := systemtest.NewClock(time.Date(2026, 9, 1, 0, 0, 0, 123_000_000, time.UTC)), systemtest.NewRandom(1)
	store := dynamo.NewStore(client, table, clock, random)
	lot := &parkingLot{t, client, table, store, commands.New(store, clock, random), clock}
	_, err := lot.commands.PutSlot(t.Context(), commands.Request{Actor: "service:catalog", RequestID: "request_put"}, "seat", ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: "KE0901", Capacity: 100, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: 1},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lot
}

func (l *parkingLot) hold() ledger.Hold {
	l.Helper()
	var made ledger.Hold
	_, err := l.commands.CreateHold(l.Context(), commands.Request{Actor: "owner:U-17", Owner: "U-17", RequestID: "request_hold"},
		commands.HoldWish{Quotes: []ledger.Quote{{Slot: "seat", Quantity: 1, UnitAmount: 1000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			made = h
			return ledger.Response{Status: 201}, nil
		})
	if err != nil {
		l.Fatal(err)
	}
	return made
}

// spoil makes the hold's item one that can't be read.
func (l *parkingLot) spoil(id ledger.HoldID) {
	l.Helper()
	_, err := l.client.UpdateItem(l.Context(), &dynamodb.UpdateItemInput{
		TableName: &l.table,
		Key: map[string]types.AttributeValue{
			dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: "HOLD#" + string(id)},
			dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: "HOLD"},
		},
		UpdateExpression:          new("SET #l = :l"),
		ExpressionAttributeNames:  map[string]string{"#l": "lines"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":l": &types.AttributeValueMemberS{Value: "not a list"}},
	})
	if err != nil {
		l.Fatal(err)
	}
}

// listed are the ids that both parts of the due index list, and which of them are parked.
func (l *parkingLot) listed() (all, parked []ledger.HoldID) {
	l.Helper()
	everything := ledger.Page{Limit: ledger.PageItemsMax}
	for shard := range ledger.DueShards {
		due, _, err := l.store.Due(l.Context(), shard, l.clock.Now().Add(24*time.Hour), everything)
		if err != nil {
			l.Fatal(err)
		}
		for _, entry := range due {
			all = append(all, entry.ID)
		}
		entries, _, err := l.store.Parked(l.Context(), shard, everything)
		if err != nil {
			l.Fatal(err)
		}
		for _, entry := range entries {
			all, parked = append(all, entry.ID), append(parked, entry.ID)
		}
	}
	slices.Sort(all)
	slices.Sort(parked)
	return all, parked
}

// What can't be read can't be ended, and is what parking is for.
func TestAnUnreadableHoldIsParkedAndUnparked(t *testing.T) {
	l := newParkingLot(t)
	hold := l.hold()
	l.spoil(hold.ID)
	if _, err := l.store.Hold(t.Context(), hold.ID); ledger.CodeOf(err) != ledger.CodeInternal {
		t.Fatalf("the spoilt hold is read: %v", err)
	}
	entry, tryAt := ledger.DueHold{ID: hold.ID, DueAt: hold.ReleaseAt}, hold.ReleaseAt.Add(time.Minute)
	if done, err := l.store.CountFailure(t.Context(), entry, 1); !done || err != nil {
		t.Errorf("counted %t, %v", done, err)
	}
	if done, err := l.store.Park(t.Context(), entry, 3, tryAt); !done || err != nil {
		t.Errorf("parked %t, %v", done, err)
	}
	if known, err := l.store.Failures(t.Context(), hold.ID); err != nil || known != (ledger.EndFailures{Count: 3, DueAt: hold.ReleaseAt}) {
		t.Errorf("failures %+v, %v", known, err)
	}
	if done, err := l.store.Unpark(t.Context(), ledger.DueHold{ID: hold.ID, TryAt: tryAt}); !done || err != nil {
		t.Errorf("unparked %t, %v", done, err)
	}
	due, _, err := l.store.Due(t.Context(), ledger.DueShard(hold.ID), hold.ReleaseAt, ledger.Page{Limit: 10})
	if err != nil || !slices.Equal(due, []ledger.DueHold{entry}) {
		t.Errorf("due %+v, %v", due, err)
	}
}

// Case B8: the index misses nothing and lists nothing twice. Whatever is HELD is either
// among the due holds or among the parked ones, and nothing else is.
func TestCaseB8_DueAndParkedTogetherAreTheHeldOnes(t *testing.T) {
	l := newParkingLot(t)
	var parked []ledger.HoldID
	for i := range 12 {
		hold := l.hold()
		entry := ledger.DueHold{ID: hold.ID, DueAt: hold.ReleaseAt}
		if i%2 == 0 {
			if done, err := l.store.Park(t.Context(), entry, 3, hold.ReleaseAt.Add(time.Minute)); !done || err != nil {
				t.Fatalf("parked %t, %v", done, err)
			}
			entry.TryAt = hold.ReleaseAt.Add(time.Minute)
		}
		switch i % 3 {
		case 0:
			l.clock.Set(hold.ReleaseAt)
			if released, err := l.commands.ExpireHold(t.Context(), hold.ID, "request_end"); !released || err != nil {
				t.Fatalf("released %t, %v", released, err)
			}
		case 1:
			if _, err := l.store.Unpark(t.Context(), entry); err != nil {
				t.Fatal(err)
			}
		case 2:
			if i%2 == 0 {
				parked = append(parked, hold.ID)
			}
		}
	}
	var held []ledger.HoldID
	err := dynamo.NewScan(l.client, l.table).ScanRecords(t.Context(), func(r ledger.Records) error {
		for _, stored := range r.Holds {
			if stored.Hold.Status == ledger.StatusHeld {
				held = append(held, stored.Hold.ID)
			}
			if stored.Due != (stored.Hold.Status == ledger.StatusHeld) {
				t.Errorf("hold %s is %s, and an audit finds it listed: %t", stored.Hold.ID, stored.Hold.Status, stored.Due)
			}
		}
		return nil
	})
	if err != nil || len(held) != 8 {
		t.Fatalf("%d holds are HELD, %v", len(held), err)
	}
	slices.Sort(held)
	slices.Sort(parked)
	all, listedParked := l.listed()
	if !slices.Equal(all, held) || !slices.Equal(listedParked, parked) {
		t.Errorf("listed %v, parked %v; held %v, parked %v", all, listedParked, held, parked)
	}
}
