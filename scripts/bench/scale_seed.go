package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const (
	// slotsPerDay and slotsPerResource are the departures of one flight in the tables: the
	// same in every table, so that a question about one day has the same answer in all.
	slotsPerDay      = 10
	slotsPerResource = 2 * slotsPerDay
	// scaleCapacity is never used up.
	scaleCapacity = 1_000
	// seededItems are written for each slot and its hold.
	seededItems = 4
	// holdsPerOwner are alive at once.
	holdsPerOwner = 5
)

// firstDay is the day of the first half of each resource's slots.
var firstDay = time.Date(2027, time.March, 1, 0, 0, 0, 0, time.UTC)

func scaleResourceID(resource int) ledger.ResourceID {
	return ledger.ResourceID(fmt.Sprintf("UA%07d", resource))
}

func scaleSlotID(resource, n int) ledger.SlotID {
	return ledger.SlotID(fmt.Sprintf("flight-UA%07d-%02d", resource, n))
}

// seed fills the table. The items are those that the store itself makes of ledger.NewSlot
// and ledger.NewHold; only they go in by batches, because transactions would take hours.
// The events of the slots and the idempotency records are left out: no call reads them.
func (t *scaleTable) seed(ctx context.Context) error {
	s := &scaleSeed{recorded: &recorder{Client: t.meter.Client}, random: system.RealRandom{}, at: system.Millisecond(system.RealClock{})}
	s.store = dynamo.NewStore(s.recorded, tableName, system.RealClock{}, s.random)
	b := &bench{client: t.meter.Client}
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(seedWriters)
	var batch []types.WriteRequest
	for i := range t.size {
		requests, err := s.itemsOf(writing, i)
		if err != nil {
			return errors.Join(err, group.Wait())
		}
		batch = append(batch, requests...)
		if len(batch)+seededItems > batchItemsMax || i == t.size-1 {
			full := batch
			batch = nil
			group.Go(func() error { return b.writeBatch(writing, full) })
		}
	}
	return group.Wait()
}

// scaleSeed makes items by recording what the store would send.
type scaleSeed struct {
	recorded *recorder
	store    *dynamo.Store
	random   system.RealRandom
	at       time.Time
}

// itemsOf are the items of slot number i and of the one hold on it.
func (s *scaleSeed) itemsOf(ctx context.Context, i int) ([]types.WriteRequest, error) {
	resource, n := i/slotsPerResource, i%slotsPerResource
	starts := firstDay.AddDate(0, 0, n/slotsPerDay).Add(time.Duration(6+n%slotsPerDay) * time.Hour)
	origin := func(command ledger.Command) ledger.Origin {
		return ledger.Origin{Actor: "bench", Command: command, RequestID: "bench", EventID: ledger.NewEventID(s.random.Bits128())}
	}
	defined, err := ledger.NewSlot(scaleSlotID(resource, n), ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: scaleResourceID(resource), StartsAt: starts, EndsAt: starts.Add(5 * time.Hour),
		Terms:  ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: unitAmount, Currency: "USD"}, Shards: 1},
		Policy: ledger.DefaultPolicy(), Capacity: scaleCapacity,
	}, origin(ledger.CommandPutSlot), s.at)
	if err != nil {
		return nil, err
	}
	slot := defined.Slots[0].Next
	held, err := ledger.NewHold(ledger.HoldPlan{
		ID: ledger.NewHoldID(s.random.Bits128()), Owner: ledger.OwnerID(fmt.Sprintf("U-%07d", i/holdsPerOwner)),
		Slots:       map[ledger.SlotID]ledger.Slot{slot.ID: slot},
		Quotes:      []ledger.Quote{{Slot: slot.ID, Quantity: 1, UnitAmount: unitAmount}},
		Allocations: map[ledger.SlotID][]ledger.Allocation{slot.ID: {{Quantity: 1}}},
	}, origin(ledger.CommandCreateHold), s.at)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.store.Commit(ctx, defined), s.store.Commit(ctx, held)); err != nil {
		return nil, err
	}
	return s.takeItems(), nil
}

// takeItems returns what was recorded, but for the events of slots, and with the stock item
// as it is after the hold.
func (s *scaleSeed) takeItems() []types.WriteRequest {
	var requests []types.WriteRequest
	for _, in := range s.recorded.inputs {
		ofSlot := len(requests) == 0
		for _, action := range in.TransactItems {
			if action.Put == nil || ofSlot && isEvent(action.Put.Item) {
				continue
			}
			if ofSlot && action.Put.Item["available"] != nil {
				afterHold(action.Put.Item)
			}
			requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: action.Put.Item}})
		}
	}
	s.recorded.inputs = s.recorded.inputs[:0]
	return requests
}

// afterHold makes of a new stock item what one hold of one unit leaves of it.
func afterHold(stock map[string]types.AttributeValue) {
	number := func(n int) types.AttributeValue { return &types.AttributeValueMemberN{Value: strconv.Itoa(n)} }
	stock["available"], stock["held"], stock["version"] = number(scaleCapacity-1), number(1), number(2)
}

func isEvent(item map[string]types.AttributeValue) bool {
	sort, ok := item[dynamo.AttributeSortKey].(*types.AttributeValueMemberS)
	return ok && strings.HasPrefix(sort.Value, "EVENT#")
}
