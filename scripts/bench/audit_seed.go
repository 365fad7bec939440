package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/system"
)

const (
	// auditHoldsPerSlot are the holds that a slot has had, and auditHoldsPerOwner those of a
	// buyer: the same in every table, so that a hold costs the same in all.
	auditHoldsPerSlot  = 100
	auditHoldsPerOwner = 20
	// quietSlots are left alone by the traffic, and damaged.
	quietSlots = 4
	// auditUnitsMax is a limit that is counted and never met.
	auditUnitsMax = 10_000
	// tradesPerWrite is after how many holds what they put is written.
	tradesPerWrite = 100
	// auditHoldFor is longer than a run.
	auditHoldFor = 4 * time.Hour
)

// market is a ledger with mixed holds and reservations on their way. It is worked by the
// ledger's commands in memory; what the store would send of each step is kept, so that the
// table gets the same by batches.
type market struct {
	ctx      context.Context
	memory   *memory.Store
	commands *commands.Commands
	clock    system.Clock
	random   system.Random
	recorded *recorder
	table    *dynamo.Store
	items    map[string]map[string]types.AttributeValue
	slots    []ledger.SlotID
	// held, ended and by status reservations are what faults are planted in.
	held, ended  []ledger.HoldID
	owner        ledger.OwnerID // of the first hold
	reservations map[ledger.ReservationStatus][]ledger.Reservation
}

// Commit applies the change, and keeps the items that it puts.
func (m *market) Commit(ctx context.Context, c ledger.Change) error {
	if err := m.memory.Commit(ctx, c); err != nil {
		return err
	}
	if err := m.table.Commit(ctx, c); err != nil {
		return err
	}
	for _, in := range m.recorded.inputs {
		for _, action := range in.TransactItems {
			if action.Put != nil {
				m.items[textOf(action.Put.Item, dynamo.AttributePartitionKey)+" "+textOf(action.Put.Item, dynamo.AttributeSortKey)] = action.Put.Item
			}
		}
	}
	m.recorded.inputs = m.recorded.inputs[:0]
	return nil
}

func textOf(item map[string]types.AttributeValue, name string) string {
	if value, is := item[name].(*types.AttributeValueMemberS); is {
		return value.Value
	}
	return ""
}

// marketStore is the memory's store whose writes are the market's.
type marketStore struct {
	*memory.Store
	market *market
}

func (s marketStore) Commit(ctx context.Context, c ledger.Change) error {
	return s.market.Commit(ctx, c)
}

// newMarket fills the table with so many holds.
func newMarket(ctx context.Context, client *dynamodb.Client, holds int) (*market, error) {
	m := &market{
		ctx: ctx, memory: memory.New(), clock: system.RealClock{}, random: system.RealRandom{}, recorded: &recorder{},
		items: map[string]map[string]types.AttributeValue{}, reservations: map[ledger.ReservationStatus][]ledger.Reservation{},
	}
	m.table = dynamo.NewStore(m.recorded, tableName, m.clock, m.random)
	m.commands = commands.New(marketStore{m.memory, m}, m.clock, m.random)
	for i := range quietSlots + max(1, holds/auditHoldsPerSlot) {
		if err := m.slot(i); err != nil {
			return nil, err
		}
	}
	writer, writing := errgroup.WithContext(ctx)
	writer.SetLimit(seedWriters)
	for i := range holds {
		if err := m.trade(i, holds); err != nil {
			return nil, errors.Join(fmt.Errorf("hold %d: %w", i, err), writer.Wait())
		}
		if i%tradesPerWrite == 0 {
			m.write(writing, writer, client, func(partition string) bool { return !strings.HasPrefix(partition, "STOCK#") })
		}
	}
	if err := m.finish(); err != nil {
		return nil, errors.Join(err, writer.Wait())
	}
	m.write(writing, writer, client, func(string) bool { return true })
	m.memory, m.commands = nil, nil
	return m, writer.Wait()
}

// write begins to put the items of those partitions into the table, by batches.
func (m *market) write(ctx context.Context, writer *errgroup.Group, client *dynamodb.Client, of func(partition string) bool) {
	b := &bench{client: client}
	var requests []types.WriteRequest
	for key, item := range m.items {
		if !of(key) {
			continue
		}
		delete(m.items, key)
		// What has happened here was published long ago.
		delete(item, dynamo.AttributeUnpublishedShard)
		delete(item, dynamo.AttributeUnpublishedOrder)
		requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
	}
	for batch := range slices.Chunk(requests, batchItemsMax) {
		writer.Go(func() error { return b.writeBatch(ctx, batch) })
	}
}

func (m *market) request(owner ledger.OwnerID) commands.Request {
	return commands.Request{Actor: ledger.Actor("owner:" + string(owner)), Owner: owner, RequestID: "request_bench"}
}

func marketSlotID(i int) ledger.SlotID { return ledger.SlotID(fmt.Sprintf("audit-%06d", i)) }

func (m *market) slot(i int) error {
	policy := ledger.DefaultPolicy()
	policy.HoldFor, policy.HoldForMax = auditHoldFor, auditHoldFor
	policy.QuantityPerOwnerMax, policy.HoldsPerOwnerMax = auditUnitsMax, auditUnitsMax
	id := marketSlotID(i)
	_, err := m.commands.PutSlot(m.ctx, m.request("catalog"), id, ledger.SlotDefinition{
		ResourceType: "show", ResourceID: ledger.ResourceID(fmt.Sprintf("R-%d", i/10)), Capacity: 10 * auditHoldsPerSlot, Policy: policy,
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: unitAmount, Currency: "USD"}, Shards: 1 + i%2},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	m.slots = append(m.slots, id)
	return err
}

// trade makes hold number i, and brings it to where it is to be.
func (m *market) trade(i, holds int) error {
	slot := m.slots[(i*7)%len(m.slots)]
	owner := ledger.OwnerID(fmt.Sprintf("U-%06d", i%max(1, holds/auditHoldsPerOwner)))
	id, err := makeMarketHold(m.ctx, m.commands, m.request(owner), slot, ledger.Units(1+i%3))
	if err != nil {
		return err
	}
	if i == 0 {
		m.owner = owner
	}
	switch i % 10 {
	case 0, 1, 2:
		m.held = append(m.held, id)
		return nil
	case 3, 4:
		_, err = m.commands.ConfirmHold(m.ctx, m.request("shop"), id, "", nil, renderNothing)
	case 5, 6:
		m.ended = append(m.ended, id)
		_, err = m.commands.CancelHold(m.ctx, m.request(owner), id, renderNothing)
	case 7:
		err = m.pay(id, ledger.ReservationPaymentPending)
	case 8:
		err = m.pay(id, ledger.ReservationAuthorized)
	default:
		err = m.pay(id, ledger.ReservationCompleted)
	}
	return err
}

func renderNothing(ledger.Hold, time.Time) (ledger.Response, error) { return ledger.Response{}, nil }

func makeMarketHold(ctx context.Context, c *commands.Commands, request commands.Request, slot ledger.SlotID, units ledger.Units) (ledger.HoldID, error) {
	var made ledger.HoldID
	_, err := c.CreateHold(ctx, request, commands.HoldWish{Quotes: []ledger.Quote{{Slot: slot, Quantity: units, UnitAmount: unitAmount}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			made = h.ID
			return ledger.Response{}, nil
		})
	return made, err
}

func (m *market) origin() ledger.Origin {
	return ledger.Origin{Actor: ledger.ActorSystem, RequestID: "request_bench", EventID: ledger.NewEventID(m.random.Bits128())}
}

// pay brings a reservation of the hold to that status, by the steps of the saga.
func (m *market) pay(id ledger.HoldID, to ledger.ReservationStatus) error {
	hold, err := m.memory.Hold(m.ctx, id)
	if err != nil {
		return err
	}
	now, origin := system.Millisecond(m.clock), m.origin()
	next := ledger.Reservation{
		ID: ledger.NewReservationID(m.random.Bits128()), Owner: hold.Owner, Hold: id, Status: ledger.ReservationPaymentPending, Amount: hold.Total(),
		Attempts: []ledger.Attempt{{Number: 1, State: ledger.AttemptOpen, OpenedAt: now, Payment: ledger.PaymentID("pi_" + string(id))}}, LookAt: now.Add(time.Hour),
	}
	attempt, err := ledger.StartAttempt(hold, next.ID, 1, origin.Beside("hold"), now)
	if err != nil {
		return err
	}
	change := ledger.Together(attempt, ledger.ReservationStep(ledger.Reservation{}, next, ledger.EventReservationPaymentStarted, nil, origin, now))
	change.Uniqueness = []ledger.Uniqueness{next.ClaimHold()}
	if err := m.Commit(m.ctx, change); err != nil {
		return err
	}
	stored := change.Reservations[0].Next
	if to != ledger.ReservationPaymentPending {
		stored, err = m.paid(stored, attempt.Holds[0].Next, to, now)
	}
	m.reservations[stored.Status] = append(m.reservations[stored.Status], stored)
	return err
}

// paid brings a reservation on from the payment to its status.
func (m *market) paid(r ledger.Reservation, hold ledger.Hold, to ledger.ReservationStatus, now time.Time) (ledger.Reservation, error) {
	step := func(next ledger.Reservation, event ledger.EventType, beside ledger.Change) error {
		change := ledger.Together(beside, ledger.ReservationStep(r, next, event, nil, m.origin(), now))
		if err := m.Commit(m.ctx, change); err != nil {
			return err
		}
		r = change.Reservations[len(change.Reservations)-1].Next
		return nil
	}
	next := r.Clone()
	next.Status, next.Attempts[0].State, next.Attempts[0].AuthorizedAt = ledger.ReservationAuthorized, ledger.AttemptAuthorized, now
	if err := step(next, ledger.EventReservationAuthorized, ledger.Change{At: now}); err != nil || to == ledger.ReservationAuthorized {
		return r, err
	}
	sold, err := ledger.ConfirmPaid(hold, m.origin(), now)
	if err != nil {
		return r, err
	}
	next = r.Clone()
	next.Status, next.SoldHold = ledger.ReservationConfirmed, hold.ID
	if err := step(next, ledger.EventReservationConfirmed, sold); err != nil {
		return r, err
	}
	next = r.Clone()
	next.Status, next.Attempts[0].State, next.Attempts[0].CapturedMinor = ledger.ReservationCaptured, ledger.AttemptCaptured, r.Amount.AmountMinor
	if err := step(next, ledger.EventReservationCaptured, ledger.Change{At: now}); err != nil {
		return r, err
	}
	next = r.Clone()
	next.Status, next.LookAt, next.DeliveredAt = ledger.ReservationCompleted, time.Time{}, now
	err = step(next, ledger.EventReservationCompleted, ledger.Change{At: now})
	return r, err
}

// finish makes of the stock and the counts what they were changed to.
func (m *market) finish() error {
	all, err := m.memory.ScanSegment(m.ctx, 0, 1, "")
	if err != nil {
		return err
	}
	number := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	for _, s := range all.Records.Stock {
		item := m.items[fmt.Sprintf("STOCK#%s#%d STOCK", s.Slot, s.Shard)]
		item["available"], item["held"], item["confirmed"] = number(int64(s.Counters.Available)), number(int64(s.Counters.Held)), number(int64(s.Counters.Confirmed))
		item["capacity"], item["version"] = number(int64(s.Counters.Capacity)), number(int64(s.Version))
	}
	for _, q := range all.Records.Quotas {
		partition := "OWNER#" + string(q.Owner)
		item := map[string]types.AttributeValue{
			dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: partition}, dynamo.AttributeSortKey: &types.AttributeValueMemberS{Value: "QUOTA"},
		}
		for key, units := range q.Counts {
			item["count:"+string(key)] = number(int64(units))
		}
		m.items[partition+" QUOTA"] = item
	}
	return nil
}
