package ledgertest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// noon is when each rule begins. The last digit is not zero, so that a store which
// writes times as text without trailing zeros is caught by its own order.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 123_000_000, time.UTC)

const (
	dollar   = ledger.Currency("USD")
	theOwner = ledger.OwnerID("auth0|Zoë Ångström/17#x")
)

// fixture is one store under test with a clock that is moved by hand and ids that are
// the same in every run.
type fixture struct {
	*testing.T
	ctx   context.Context
	store ledger.Store
	now   time.Time
	drawn int
}

func newFixture(t *testing.T, store ledger.Store) *fixture {
	return &fixture{T: t, ctx: t.Context(), store: store, now: noon}
}

func (f *fixture) random() [16]byte {
	f.drawn++
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", f.Name(), f.drawn))
	return [16]byte(sum[:16])
}

func (f *fixture) holdID() ledger.HoldID { return ledger.NewHoldID(f.random()) }

// origin is that of a new request, with an event id of its own.
func (f *fixture) origin(command ledger.Command) ledger.Origin {
	return ledger.Origin{
		Actor: ledger.Actor(theOwner), Command: command,
		RequestID: ledger.NewRequestID(f.random()), EventID: ledger.NewEventID(f.random()),
	}
}

func definition(capacity ledger.Units, shards int) ledger.SlotDefinition {
	return ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: "OZ-102",
		Terms:    ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: dollar}, Shards: shards},
		Policy:   ledger.DefaultPolicy(),
		Capacity: capacity,
	}
}

// slot defines a slot and returns it.
func (f *fixture) slot(id ledger.SlotID, d ledger.SlotDefinition) ledger.Slot {
	f.Helper()
	change, err := ledger.NewSlot(id, d, f.origin(ledger.CommandPutSlot), f.now)
	if err != nil {
		f.Fatalf("new slot %s: %v", id, err)
	}
	f.commit(change)
	return change.Slots[0].Next
}

// edit builds the change that turns the slot into what alter makes of its definition.
func (f *fixture) edit(slot ledger.Slot, alter func(*ledger.SlotDefinition)) ledger.Change {
	f.Helper()
	stock := f.stock(slot)
	var capacity ledger.Units
	for _, s := range stock {
		capacity += s.Counters.Capacity
	}
	d := slot.Definition(capacity)
	alter(&d)
	change, err := ledger.EditSlot(slot, stock, d, f.origin(ledger.CommandPatchSlot), f.now)
	if err != nil {
		f.Fatalf("edit slot %s: %v", slot.ID, err)
	}
	return change
}

// take is a quantity of one slot with the shards that it comes from.
type take struct {
	slot   ledger.Slot
	shards []ledger.Allocation
}

// one takes units from the first shard of the slot.
func one(slot ledger.Slot, units ledger.Units) take {
	return take{slot, []ledger.Allocation{{Shard: 0, Quantity: units}}}
}

// hold builds the change that makes a new hold of the owner with these lines, which
// must be in slot order.
func (f *fixture) hold(owner ledger.OwnerID, takes ...take) ledger.Change {
	f.Helper()
	plan := ledger.HoldPlan{
		ID: f.holdID(), Owner: owner,
		Slots:       make(map[ledger.SlotID]ledger.Slot),
		Allocations: make(map[ledger.SlotID][]ledger.Allocation),
	}
	for _, t := range takes {
		var sum ledger.Units
		for _, a := range t.shards {
			sum += a.Quantity
		}
		plan.Quotes = append(plan.Quotes, ledger.Quote{Slot: t.slot.ID, Quantity: sum, UnitAmount: t.slot.Terms.Price.AmountMinor})
		plan.Slots[t.slot.ID] = t.slot
		plan.Allocations[t.slot.ID] = t.shards
	}
	change, err := ledger.NewHold(plan, f.origin(ledger.CommandCreateHold), f.now)
	if err != nil {
		f.Fatalf("new hold: %v", err)
	}
	return change
}

// held commits a new hold and returns it.
func (f *fixture) held(takes ...take) ledger.Hold {
	f.Helper()
	change := f.hold(theOwner, takes...)
	f.commit(change)
	return change.Holds[0].Next
}

func (f *fixture) confirm(h ledger.Hold, reference ledger.PaymentReference) ledger.Change {
	f.Helper()
	return f.built(ledger.Confirm(h, reference, f.origin(ledger.CommandConfirmHold), f.now))
}

func (f *fixture) cancel(h ledger.Hold) ledger.Change {
	f.Helper()
	return f.built(ledger.Cancel(h, f.origin(ledger.CommandCancelHold), f.now))
}

func (f *fixture) expire(h ledger.Hold) ledger.Change {
	f.Helper()
	return f.built(ledger.Expire(h, f.origin(ledger.CommandExpireHold), f.now))
}

func (f *fixture) built(c ledger.Change, err error) ledger.Change {
	f.Helper()
	if err != nil {
		f.Fatalf("the change could not be built: %v", err)
	}
	return c
}

func (f *fixture) record(key ledger.IdempotencyKey) *ledger.IdempotencyRecord {
	return &ledger.IdempotencyRecord{
		ID:          ledger.NewIdempotencyID(theOwner, ledger.CommandCreateHold, key),
		Fingerprint: ledger.Fingerprint("fingerprint of " + key),
		Response:    ledger.Response{Status: 201, Body: []byte("{\"answer\":\"\u2713 \\u0000\"}")},
		CompletedAt: f.now,
		RetainUntil: f.now.Add(ledger.IdempotencyRetainFor),
	}
}

// commit requires that c is applied.
func (f *fixture) commit(c ledger.Change) {
	f.Helper()
	if err := f.store.Commit(f.ctx, c); err != nil {
		f.Fatalf("commit: %v\n%s", err, text(err))
	}
}

// refuse requires that c is refused by exactly these legs, and that nothing of it can
// be read afterwards.
func (f *fixture) refuse(c ledger.Change, want ...ledger.RefusedLeg) {
	f.Helper()
	before := f.snapshot(c)
	err := f.store.Commit(f.ctx, c)
	var refused *ledger.Refused
	if !errors.As(err, &refused) {
		f.Fatalf("commit returned %v, want it refused", err)
	}
	sortLegs(refused.Legs)
	sortLegs(want)
	f.equal("refused legs", refused.Legs, want)
	if refused.Contended {
		f.Errorf("a refusal without any other writer says that it was contended")
	}
	f.equal("everything that can be read, after a refusal", f.snapshot(c), before)
}

// fail requires that c fails with the code and that nothing of it can be read.
func (f *fixture) fail(c ledger.Change, code ledger.Code) {
	f.Helper()
	before := f.snapshot(c)
	err := f.store.Commit(f.ctx, c)
	if got := ledger.CodeOf(err); got != code {
		f.Errorf("commit returned %v, want code %q", err, code)
	}
	f.equal("everything that can be read, after a failure", f.snapshot(c), before)
}

func (f *fixture) stock(slot ledger.Slot) []ledger.Stock {
	f.Helper()
	stock, err := f.store.StockAtOneMoment(f.ctx, slot)
	if err != nil {
		f.Fatalf("stock of %s: %v", slot.ID, err)
	}
	return stock
}

// counters requires the slot's shards to have exactly these counters.
func (f *fixture) counters(slot ledger.Slot, want ...ledger.Counters) {
	f.Helper()
	var got []ledger.Counters
	for _, s := range f.stock(slot) {
		got = append(got, s.Counters)
	}
	f.equal(fmt.Sprintf("counters of %s", slot.ID), got, want)
}

// storedHold reads a hold that must exist.
func (f *fixture) storedHold(id ledger.HoldID) ledger.Hold {
	f.Helper()
	hold, err := f.store.Hold(f.ctx, id)
	if err != nil {
		f.Fatalf("hold %s: %v", id, err)
	}
	return hold
}

// storedSlot reads a slot that must exist.
func (f *fixture) storedSlot(id ledger.SlotID) ledger.Slot {
	f.Helper()
	slots, err := f.store.Slots(f.ctx, []ledger.SlotID{id})
	if err != nil || len(slots) != 1 {
		f.Fatalf("slots of id %s: %d, error %v, want one", id, len(slots), err)
	}
	return slots[0]
}

func (f *fixture) equal(what string, got, want any) {
	f.Helper()
	if !same(got, want) {
		f.Errorf("%s:\n got %s\nwant %s", what, text(got), text(want))
	}
}
