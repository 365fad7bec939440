package ledgertest

import (
	"context"
	"time"

	"holdfast/shared/ledger"
)

var changeRules = []rule{
	{"P5_OneFalseLegLeavesNothing", oneFalseLegLeavesNothing},
	{"P5_EveryFalseLegIsNamed", everyFalseLegIsNamed},
	{"RepeatedAfterALostAnswer", repeatedChangeIsRecognised},
	{"OtherEventIsNotRecognised", otherEventIsNotRecognised},
	{"FaultyIsInternal", faultyChangeIsInternal},
	{"GivenUpCallerWritesNothing", givenUpCallerWritesNothing},
	{"KeepsNoReferenceToItsCaller", storeKeepsNoReference},
}

// fullChange is a creation with a leg of every kind that can be false on its own.
func (f *fixture) fullChange(a, b ledger.Slot) ledger.Change {
	change := f.hold(theOwner, one(a, 2), one(b, 2))
	change.Idempotency = f.record("full")
	change.Uniqueness = []ledger.Uniqueness{{Kind: ledger.UniquePaymentReference, Value: "full", Hold: change.Holds[0].Next.ID}}
	edit := f.edit(a, func(d *ledger.SlotDefinition) { d.Attributes = map[string]string{"gate": "7"} })
	change.Slots = edit.Slots
	change.Events = append(change.Events, edit.Events...)
	return change
}

func oneFalseLegLeavesNothing(f *fixture) {
	a, b := f.slot("A", definition(4, 1)), f.slot("B", definition(4, 1))
	full := f.fullChange(a, b)

	other := f.held(one(b, 3))
	stock := f.stock(b)[0]
	f.refuse(full, ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "B", Stock: &stock})
	f.commit(f.cancel(other))

	record := f.record("full")
	record.RetainUntil = f.now.Add(time.Millisecond)
	f.commit(ledger.Change{At: f.now, Idempotency: record})
	f.refuse(full, ledger.RefusedLeg{Kind: ledger.LegIdempotency, Idempotency: record})
	full.At = record.RetainUntil

	claimed := full
	claim := ledger.Uniqueness{Kind: ledger.UniquePaymentReference, Value: "taken", Hold: other.ID}
	f.commit(ledger.Change{At: f.now, Uniqueness: []ledger.Uniqueness{claim}})
	claimed.Uniqueness = append(claimed.Uniqueness[:1:1], ledger.Uniqueness{Kind: claim.Kind, Value: claim.Value, Hold: full.Holds[0].Next.ID})
	f.refuse(claimed, ledger.RefusedLeg{Kind: ledger.LegUniqueness, Uniqueness: &claim})

	over := f.held(one(b, 1))
	late := f.confirm(over, "")
	late.At = over.ReleaseAt
	late.Idempotency = f.record("late")
	f.refuse(late, ledger.RefusedLeg{Kind: ledger.LegHold, Hold: &over})

	f.commit(full)
	f.counters(a, ledger.Counters{Available: 2, Held: 2, Capacity: 4})
	f.counters(b, ledger.Counters{Available: 1, Held: 3, Capacity: 4})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A", "B"}, []ledger.HoldID{other.ID, over.ID, full.Holds[0].Next.ID})
}

func everyFalseLegIsNamed(f *fixture) {
	a, b := f.slot("A", definition(4, 1)), f.slot("B", definition(4, 1))
	first := f.fullChange(a, b)
	f.commit(first)
	again := f.fullChange(a, b)
	again.Holds[0].Next.ID, again.Events[0].Hold.ID = first.Holds[0].Next.ID, first.Holds[0].Next.ID
	f.commit(f.hold(theOwner, one(b, 1)))
	stock := f.stock(b)[0]
	claim := first.Uniqueness[0]
	f.refuse(again,
		ledger.RefusedLeg{Kind: ledger.LegHold, Hold: &first.Holds[0].Next},
		ledger.RefusedLeg{Kind: ledger.LegSlot, StoredSlot: &first.Slots[0].Next},
		ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "B", Stock: &stock},
		ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[0]},
		ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[1]},
		ledger.RefusedLeg{Kind: ledger.LegIdempotency, Idempotency: first.Idempotency},
		ledger.RefusedLeg{Kind: ledger.LegUniqueness, Uniqueness: &claim})
}

func repeatedChangeIsRecognised(f *fixture) {
	slot := f.slot("A", definition(1, 1))
	create := f.hold(theOwner, one(slot, 1))
	create.Idempotency = f.record("key")
	f.commit(create)
	after := f.snapshot(create)
	f.commit(create)
	f.equal("everything that can be read, after the second try", f.snapshot(create), after)

	confirm := f.confirm(create.Holds[0].Next, "pay")
	f.commit(confirm)
	after = f.snapshot(confirm)
	f.commit(confirm)
	f.commit(create)
	f.equal("everything that can be read, after late tries", f.snapshot(confirm), after)

	edit := f.edit(slot, func(d *ledger.SlotDefinition) { d.Capacity = 5 })
	f.commit(edit)
	f.commit(edit)
	f.counters(slot, ledger.Counters{Available: 4, Confirmed: 1, Capacity: 5})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{create.Holds[0].Next.ID})
}

// otherEventIsNotRecognised: a change that looks the same but was drawn by another
// request was not applied, whatever the store holds.
func otherEventIsNotRecognised(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold := f.held(one(slot, 1))
	first, second := f.cancel(hold), f.cancel(hold)
	f.commit(first)
	stock := f.stock(slot)[0]
	f.refuse(second,
		ledger.RefusedLeg{Kind: ledger.LegHold, Hold: &first.Holds[0].Next},
		ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "A", Stock: &stock},
		ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[0]})
}

func faultyChangeIsInternal(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	f.fail(ledger.Change{At: f.now}, ledger.CodeInternal)
	unbalanced := f.hold(theOwner, one(slot, 1))
	unbalanced.Stock[0].Delta.Available = 0
	f.fail(unbalanced, ledger.CodeInternal)
	silent := f.hold(theOwner, one(slot, 1))
	silent.Events = nil
	silent.Stock = nil
	f.fail(silent, ledger.CodeInternal)
	twice := f.hold(theOwner, one(slot, 1))
	twice.Holds = append(twice.Holds, twice.Holds[0])
	f.fail(twice, ledger.CodeInternal)
}

func givenUpCallerWritesNothing(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	change := f.hold(theOwner, one(slot, 1))
	before := f.snapshot(change)
	ctx, giveUp := context.WithCancel(f.ctx)
	giveUp()
	switch code := ledger.CodeOf(f.store.Commit(ctx, change)); code {
	case ledger.CodeUnavailable, ledger.CodeOutcomeUnknown:
	default:
		f.Errorf("commit for a caller that has given up returned code %q, want %q or %q",
			code, ledger.CodeUnavailable, ledger.CodeOutcomeUnknown)
	}
	f.equal("everything that can be read", f.snapshot(change), before)
	if _, err := f.store.Hold(ctx, change.Holds[0].Next.ID); ledger.CodeOf(err) != ledger.CodeUnavailable {
		f.Errorf("a read for a caller that has given up returned %v, want code %q", err, ledger.CodeUnavailable)
	}
}

func storeKeepsNoReference(f *fixture) {
	d := definition(4, 1)
	d.Attributes = map[string]string{"gate": "7"}
	slot := f.slot("A", d)
	slot.Attributes["gate"] = "changed by the caller"
	f.storedSlot("A").Attributes["gate"] = "changed by a reader"
	f.equal("attribute", f.storedSlot("A").Attributes["gate"], "7")

	allLimits(9)(&slot.Policy)
	change := f.hold(theOwner, one(slot, 1))
	change.Idempotency = f.record("key")
	f.commit(change)
	id := change.Holds[0].Next.ID
	change.Holds[0].Next.Lines[0].Shards[0].Quantity = 99
	for _, keys := range [][]ledger.QuotaKey{
		change.Holds[0].Next.CountsIn, change.Holds[0].Next.Lines[0].CountsIn, f.storedHold(id).CountsIn, f.storedHold(id).Lines[0].CountsIn,
	} {
		keys[0] = "changed"
	}
	f.equal("counts of the hold", f.storedHold(id).CountsIn, []ledger.QuotaKey{ledger.QuotaHolds})
	f.equal("counts of the line", f.storedHold(id).Lines[0].CountsIn, []ledger.QuotaKey{resource, slotA})
	change.Events[0].Movements[0].Quantity = 99
	change.Idempotency.Response.Body[0] = '!'
	f.storedHold(id).Lines[0].Shards[0].Quantity = 98
	f.equal("quantity", f.storedHold(id).Lines[0].Shards[0].Quantity, ledger.Units(1))
	events, err := f.store.HoldEvents(f.ctx, id)
	f.read(err)
	f.equal("quantity of the event's movement", events[0].Movements[0].Quantity, ledger.Units(1))
	f.equal("quantity of the event's hold", events[0].Hold.Lines[0].Shards[0].Quantity, ledger.Units(1))
	record, _, err := f.store.IdempotencyRecord(f.ctx, change.Idempotency.ID)
	f.read(err)
	f.equal("first byte of the body", record.Response.Body[0], byte('{'))
}
