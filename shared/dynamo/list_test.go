package dynamo_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/expiry/expirytest"
	"holdfast/shared/ledger"
	"holdfast/shared/system/systemtest"
)

// shelf is a slot on the real engine, and what is held of it.
type shelf struct {
	t        *testing.T
	client   *dynamodb.Client
	table    string
	scan     *dynamo.Scan
	clock    *systemtest.Clock
	store    *dynamo.Store
	commands *commands.Commands
}

func newShelf(t *testing.T, capacity ledger.Units) *shelf {
	t.Helper()
	client, table := dynamotest.NewTable(t)
	clock := systemtest.NewClock(time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC))
	random := systemtest.NewRandom(1)
	s := &shelf{t: t, client: client, table: table, scan: dynamo.NewScan(client, table), clock: clock, store: dynamo.NewStore(client, table, clock, random)}
	s.commands = commands.New(s.store, clock, random)
	_, err := s.commands.PutSlot(context.Background(), commands.Request{Actor: "catalog"}, soldSlot, ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "R-1", Capacity: capacity, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 1},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{Status: 201}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shelf) hold(owner ledger.OwnerID) ledger.HoldID {
	s.t.Helper()
	var made ledger.HoldID
	_, err := s.commands.CreateHold(context.Background(), commands.Request{Actor: "owner", Owner: owner, RequestID: "request"},
		commands.HoldWish{Quotes: []ledger.Quote{{Slot: soldSlot, Quantity: 1, UnitAmount: 500}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			made = h.ID
			return ledger.Response{Status: 201}, nil
		})
	if err != nil {
		s.t.Fatal(err)
	}
	return made
}

// due lists what the sweep would see now, over all shards and pages, in the order of ids.
func (s *shelf) due(pageItems int) []ledger.HoldID {
	s.t.Helper()
	var ids []ledger.HoldID
	for shard := range ledger.DueShards {
		page := ledger.Page{Limit: pageItems}
		for more := true; more; more = page.After != "" {
			entries, next, err := s.store.Due(context.Background(), shard, s.clock.Now(), page)
			if err != nil {
				s.t.Fatal(err)
			}
			for _, entry := range entries {
				ids = append(ids, entry.ID)
			}
			page.After = next
		}
	}
	slices.Sort(ids)
	return ids
}

// held reads the whole table for the holds that are HELD, in the order of ids, and all
// the stock there is.
func (s *shelf) held() ([]ledger.HoldID, ledger.Counters) {
	s.t.Helper()
	var ids []ledger.HoldID
	var counters ledger.Counters
	err := s.scan.ScanRecords(context.Background(), func(page ledger.Records) error {
		for _, h := range page.Holds {
			if h.Hold.Status == ledger.StatusHeld {
				ids = append(ids, h.Hold.ID)
			}
		}
		for _, stock := range page.Stock {
			counters = counters.Plus(stock.Counters)
		}
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(ids)
	return ids, counters
}

// Case B8: the release job could not see some of the holds. Whatever hour of the day a
// hold was made in, the due index has it exactly as long as it is HELD, as a scan of the
// whole table says; and after the sweep neither has any.
func TestCaseB8_TheIndexHasWhatTheTableHas(t *testing.T) {
	const holds = 48
	s := newShelf(t, holds)
	var made []ledger.HoldID
	for i := range holds {
		made = append(made, s.hold(ledger.OwnerID(fmt.Sprintf("U-%d", i))))
		s.clock.Advance(30 * time.Minute)
	}
	slices.Sort(made)
	for _, pageItems := range []int{1, ledger.PageItemsMax} {
		if due := s.due(pageItems); !slices.Equal(due, made) {
			t.Errorf("in pages of %d the index lists %d of %d holds: %v", pageItems, len(due), holds, due)
		}
	}
	held, counters := s.held()
	if !slices.Equal(held, made) || counters.Held != holds {
		t.Errorf("the table has %d holds and %+v", len(held), counters)
	}
	sweep := expirytest.MustSweep(t, expirytest.Parts{
		Store: s.store, Parking: s.store, Leases: s.store, Releaser: s.commands, Clock: s.clock,
	}, 10)
	if report, err := sweep.Run(context.Background(), "request_sweep"); err != nil || report.Released != holds || report.Failed != 0 {
		t.Errorf("the sweep reports %+v, %v", report, err)
	}
	for _, id := range made {
		if hold, err := s.store.Hold(context.Background(), id); err != nil || hold.Status != ledger.StatusExpired {
			t.Errorf("hold %s is %s, %v", id, hold.Status, err)
		}
	}
	held, counters = s.held()
	if due := s.due(ledger.PageItemsMax); len(due)+len(held) != 0 {
		t.Errorf("after the sweep the index has %v and the table %v", due, held)
	}
	if want := (ledger.Counters{Available: holds, Capacity: holds}); counters != want {
		t.Errorf("after the sweep the stock is %+v, want %+v", counters, want)
	}
}

// Case G9: each hold of an owner is on exactly one page, the newest first, on the real
// engine too, and beside the holds of others.
func TestCaseG9_EachHoldIsOnOnePage(t *testing.T) {
	const holds = 240
	s := newShelf(t, 2*holds)
	var made []ledger.HoldID
	for i := range holds {
		made = append(made, s.hold("U-1"))
		if i%4 == 0 {
			s.hold("U-10") // a name that begins alike
		}
		s.clock.Advance(time.Millisecond)
	}
	slices.Reverse(made)
	for _, limit := range []int{10, 37, ledger.PageItemsMax} {
		var listed []ledger.HoldID
		page := ledger.Page{Limit: limit}
		for more := true; more; more = page.After != "" {
			found, next, err := s.store.HoldsOfOwner(context.Background(), "U-1", page)
			if err != nil {
				t.Fatal(err)
			}
			if len(found) > limit || len(listed) > holds {
				t.Fatalf("a page of %d after %d holds", len(found), len(listed))
			}
			for _, h := range found {
				listed = append(listed, h.ID)
			}
			page.After = next
		}
		if !slices.Equal(listed, made) {
			t.Errorf("in pages of %d: %d holds, want each of %d once, the newest first", limit, len(listed), holds)
		}
	}
}

// Holds leaves out what is not there and what can't be read, so that one bad item does not
// keep the others from being read together.
func TestHoldsLeavesOutWhatItCannotRead(t *testing.T) {
	s := newShelf(t, 10)
	good, bad := s.hold("U-1"), s.hold("U-2")
	_, err := s.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(s.table), UpdateExpression: aws.String("SET release_at_ms = :text"),
		Key: map[string]types.AttributeValue{
			dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: "HOLD#" + string(bad)},
			dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: "HOLD"},
		},
		ExpressionAttributeValues: map[string]types.AttributeValue{":text": &types.AttributeValueMemberS{Value: "noon"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	want, err := s.store.Hold(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	holds, err := s.store.Holds(t.Context(), []ledger.HoldID{bad, "hold_00000000000000000000000000", good})
	if err != nil || len(holds) != 1 || !reflect.DeepEqual(holds[0], want) {
		t.Errorf("holds %+v, %v; want %s alone", holds, err, good)
	}
	if holds, err := s.store.Holds(t.Context(), nil); err != nil || len(holds) != 0 {
		t.Errorf("of none: %v, %v", holds, err)
	}
}
