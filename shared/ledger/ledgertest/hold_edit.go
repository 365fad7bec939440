package ledgertest

import (
	"time"

	"holdfast/shared/ledger"
)

var holdEditRules = []rule{
	{"ResizedAndReplacedIsStoredExactly", editedHoldIsStoredExactly},
	{"ExtensionMovesItsEnd", extensionMovesItsEnd},
	{"BoundaryMillisecondOfExpiry", editIsInTime},
	{"StartedPaymentIsInTheWrite", startedPaymentRefusesAnEdit},
	{"EndedIsRefused", endedHoldIsNotEdited},
	{"P1_GrowthNeedsUnits", growthNeedsUnits},
	{"GrowthNeedsTheTerms", growthNeedsTheTerms},
	{"StaleIsRefused", staleEditIsRefused},
	{"DifferenceIsCounted", editCountsTheDifference},
	{"LimitsOfWhatItTakesHold", limitsOfWhatAnEditTakesHold},
	{"P8_PartIsSoldAndTheRestGoesBack", partIsSold},
	{"Race_OneStepWins", raceToEditOneHold},
}

// quoted is the line as it shall be: all units at the slot's price.
func quoted(slot ledger.Slot, units ledger.Units) ledger.Quote {
	return ledger.Quote{Slot: slot.ID, Quantity: units, UnitAmount: slot.Terms.Price.AmountMinor}
}

// relined builds the edit of the hold that gives it these lines, which must be in slot
// order. What it takes is taken as the takes say.
func (f *fixture) relined(h ledger.Hold, quotes []ledger.Quote, takes ...take) ledger.Change {
	f.Helper()
	edit := ledger.HoldEdit{
		Quotes: quotes, Slots: make(map[ledger.SlotID]ledger.Slot), Allocations: make(map[ledger.SlotID][]ledger.Allocation),
	}
	for _, t := range takes {
		edit.Slots[t.slot.ID], edit.Allocations[t.slot.ID] = t.slot, t.shards
	}
	return f.built(ledger.EditHold(h, edit, f.origin(ledger.CommandEditHold), f.now))
}

func (f *fixture) extended(h ledger.Hold, by time.Duration) ledger.Change {
	f.Helper()
	return f.built(ledger.EditHold(h, ledger.HoldEdit{ExtendFor: by}, f.origin(ledger.CommandExtendHold), f.now))
}

// editedHoldIsStoredExactly grows a line, shrinks one, lets one go and takes a new one, in
// one step, and then lets the hold end.
func editedHoldIsStoredExactly(f *fixture) {
	a, b := f.slot("A", definition(10, 2)), f.slot("B", definition(10, 1))
	c, d := f.slot("C", definition(10, 1)), f.slot("D", definition(10, 1))
	create := f.hold(theOwner, take{a, []ledger.Allocation{{Shard: 0, Quantity: 2}}}, one(b, 5), one(c, 3))
	f.commit(create)
	f.now = f.now.Add(time.Minute)
	edit := f.relined(create.Holds[0].Next, []ledger.Quote{quoted(a, 5), quoted(b, 1), quoted(d, 4)},
		take{a, []ledger.Allocation{{Shard: 0, Quantity: 1}, {Shard: 1, Quantity: 2}}}, one(d, 4))
	f.commit(edit)
	hold := f.storedHold(create.Holds[0].Next.ID)
	f.equal("hold", hold, edit.Holds[0].Next)
	f.equal("number of lines", len(hold.Lines), 3)
	events, err := f.store.HoldEvents(f.ctx, hold.ID)
	f.read(err)
	f.equal("events", events, append(create.Events, edit.Events...))
	f.counters(a, ledger.Counters{Available: 2, Held: 3, Capacity: 5}, ledger.Counters{Available: 3, Held: 2, Capacity: 5})
	f.counters(b, ledger.Counters{Available: 9, Held: 1, Capacity: 10})
	f.counters(c, ledger.Counters{Available: 10, Capacity: 10})
	f.counters(d, ledger.Counters{Available: 6, Held: 4, Capacity: 10})
	all := []ledger.SlotID{"A", "B", "C", "D"}
	CheckBooks(f.T, f.store, all, []ledger.HoldID{hold.ID})
	f.commit(f.confirm(hold, ""))
	CheckBooks(f.T, f.store, all, []ledger.HoldID{hold.ID})
}

func extensionMovesItsEnd(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold := f.held(one(slot, 1))
	f.now = f.now.Add(time.Minute)
	edit := f.extended(hold, hold.HoldFor)
	f.commit(edit)
	stored := f.storedHold(hold.ID)
	f.equal("hold", stored, edit.Holds[0].Next)
	f.equal("end", stored.ReleaseAt, hold.ReleaseAt.Add(time.Minute))
	at, listed := f.dueAt(hold.ID)
	f.equal("is in the due index", listed, true)
	f.equal("due time", at, stored.ReleaseAt)

	// A sweep that decided on the old end finds a hold that lives on.
	f.now = hold.ReleaseAt
	f.refuse(f.expire(hold), f.refusedHold(hold.ID), ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &edit.Events[0]})
	early := f.expire(func() ledger.Hold { h := stored; h.ReleaseAt = f.now; return h }())
	f.refuse(early, f.refusedHold(hold.ID))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// editIsInTime: the pure function was asked at another time, and the write alone must
// still refuse.
func editIsInTime(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold := f.held(one(slot, 1))
	edit := f.relined(hold, []ledger.Quote{quoted(slot, 2)}, one(slot, 1))
	edit.At = hold.ExpiresAt
	f.refuse(edit, f.refusedHold(hold.ID))
	edit.At = hold.ExpiresAt.Add(-time.Millisecond)
	f.commit(edit)
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// startedPaymentRefusesAnEdit: each edit names the right version, so that only what the
// hold is can refuse it, while its attempt is open and after it was closed.
func startedPaymentRefusesAnEdit(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold, reservation := f.paying(one(slot, 2))
	unpaid := func() ledger.Change {
		pretended := f.storedHold(hold.ID)
		pretended.Reservation, pretended.AttemptOpen = "", 0
		return f.relined(pretended, []ledger.Quote{quoted(slot, 1)})
	}
	f.refuse(unpaid(), f.refusedHold(hold.ID))
	ofIt := unpaid()
	ofIt.Holds[0].Of = &reservation.ID
	f.refuse(ofIt, f.refusedHold(hold.ID))
	f.commit(f.closed(hold))
	f.refuse(unpaid(), f.refusedHold(hold.ID))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID}, reservation.ID)
}

func endedHoldIsNotEdited(f *fixture) {
	for _, end := range f.endings() {
		f.now = noon
		slot := f.slot(ledger.SlotID(end.status), definition(4, 1))
		hold, other := f.held(one(slot, 1)), f.held(one(slot, 2))
		f.commit(end.build(hold))
		f.now = noon
		pretended := f.storedHold(hold.ID)
		pretended.Status = ledger.StatusHeld
		f.refuse(f.relined(pretended, []ledger.Quote{quoted(slot, 2)}, one(slot, 1)), f.refusedHold(hold.ID))
		CheckBooks(f.T, f.store, []ledger.SlotID{slot.ID}, []ledger.HoldID{hold.ID, other.ID})
	}
}

// growthNeedsUnits: all of an edit is refused for the want of one unit, what it gives back
// too.
func growthNeedsUnits(f *fixture) {
	a, b := f.slot("A", definition(2, 1)), f.slot("B", definition(4, 1))
	hold := f.held(one(a, 1), one(b, 3))
	stock := f.stock(a)[0]
	f.refuse(f.relined(hold, []ledger.Quote{quoted(a, 3), quoted(b, 1)}, one(a, 2)),
		ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "A", Stock: &stock})
	f.commit(f.relined(hold, []ledger.Quote{quoted(a, 2), quoted(b, 1)}, one(a, 1)))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A", "B"}, []ledger.HoldID{hold.ID})
}

// growthNeedsTheTerms: a line that grows is sold at today's price from an open slot, and
// one that gets smaller keeps what was promised.
func growthNeedsTheTerms(f *fixture) {
	slot := f.slot("A", definition(9, 1))
	hold := f.held(one(slot, 2))
	f.commit(f.edit(slot, func(d *ledger.SlotDefinition) { d.Terms.Price.AmountMinor = 700 }))
	stock := f.stock(slot)[0]
	f.refuse(f.relined(hold, []ledger.Quote{quoted(slot, 3)}, one(slot, 1)),
		ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "A", Stock: &stock})
	now := f.storedSlot("A")
	grown := f.relined(hold, []ledger.Quote{quoted(now, 3)}, one(now, 1))
	f.commit(grown)
	f.equal("price of the line", f.storedHold(hold.ID).Lines[0].UnitPrice.AmountMinor, int64(700))

	f.commit(f.edit(now, func(d *ledger.SlotDefinition) { d.Terms.Open, d.Terms.Price.AmountMinor = false, 900 }))
	smaller := f.relined(f.storedHold(hold.ID), []ledger.Quote{{Slot: "A", Quantity: 1, UnitAmount: 700}})
	f.commit(smaller)
	f.counters(slot, ledger.Counters{Available: 8, Held: 1, Capacity: 9})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

func staleEditIsRefused(f *fixture) {
	slot := f.slot("A", definition(9, 1))
	hold := f.held(one(slot, 2))
	first := f.relined(hold, []ledger.Quote{quoted(slot, 3)}, one(slot, 1))
	second := f.relined(hold, []ledger.Quote{quoted(slot, 1)})
	confirm, cancel := f.confirm(hold, ""), f.cancel(hold)
	f.commit(first)
	f.commit(first) // it may be repeated after a lost answer
	for _, stale := range []ledger.Change{second, confirm, cancel} {
		f.refuse(stale, f.refusedHold(hold.ID), ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[0]})
	}
	f.counters(slot, ledger.Counters{Available: 6, Held: 3, Capacity: 9})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

func editCountsTheDifference(f *fixture) {
	a, b := f.slot("A", limited(9, allLimits(4))), f.slot("B", limited(9, allLimits(4)))
	hold := f.held(one(a, 3))
	f.refuse(f.relined(hold, []ledger.Quote{quoted(a, 3), quoted(b, 2)}, one(b, 2)), f.refusedQuota(theOwner))
	f.commit(f.relined(hold, []ledger.Quote{quoted(a, 3), quoted(b, 1)}, one(b, 1)))
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 1, slotA: 3, slotB: 1, resource: 4})
	// An exchange at the limit counts nothing more of the resource, so nothing refuses it.
	f.commit(f.relined(f.storedHold(hold.ID), []ledger.Quote{quoted(b, 4)}, one(b, 3)))
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 1, slotB: 4, resource: 4})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A", "B"}, []ledger.HoldID{hold.ID})
}

// limitsOfWhatAnEditTakesHold: an exchange that leaves a count as it is, or lets it fall, is
// refused where the count is over the limit of the slot that is taken.
func limitsOfWhatAnEditTakesHold(f *fixture) {
	perResource := func(units ledger.Units) func(p *ledger.Policy) {
		return func(p *ledger.Policy) { p.QuantityPerOwnerOfResourceMax = units }
	}
	a, b := f.slot("A", limited(9, perResource(9))), f.slot("B", limited(9, perResource(3)))
	kept := f.held(one(a, 3))
	hold := f.held(one(a, 2))
	for _, units := range []ledger.Units{1, 2} {
		f.refuse(f.relined(hold, []ledger.Quote{quoted(b, units)}, one(b, units)), f.refusedQuota(theOwner))
	}
	f.commit(f.cancel(kept))
	f.commit(f.relined(hold, []ledger.Quote{quoted(b, 2)}, one(b, 2)))
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{resource: 2})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A", "B"}, []ledger.HoldID{kept.ID, hold.ID})
}

func partIsSold(f *fixture) {
	a, b := f.slot("A", limited(10, allLimits(9))), f.slot("B", definition(10, 2))
	hold := f.held(one(a, 3), take{b, []ledger.Allocation{{Shard: 0, Quantity: 2}, {Shard: 1, Quantity: 2}}})
	part := f.built(ledger.ConfirmPart(hold, []ledger.ReturnLine{{Slot: "A", Quantity: 1}, {Slot: "B", Quantity: 3}},
		"pay", f.origin(ledger.CommandConfirmHold), f.now))
	for range 2 { // it may be repeated after a lost answer
		f.commit(part)
	}
	f.equal("hold", f.storedHold(hold.ID), part.Holds[0].Next)
	f.counters(a, ledger.Counters{Available: 9, Confirmed: 1, Capacity: 10})
	f.counters(b, ledger.Counters{Available: 3, Confirmed: 2, Capacity: 5}, ledger.Counters{Available: 4, Confirmed: 1, Capacity: 5})
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{slotA: 1, resource: 1})
	claim := ledger.Uniqueness{Kind: ledger.UniquePaymentReference, Value: "pay", Hold: hold.ID}
	stored, found, err := f.store.Claimed(f.ctx, claim.Kind, claim.Value)
	f.read(err)
	f.equal("is claimed", found, true)
	f.equal("claim", stored, claim)
	CheckBooks(f.T, f.store, []ledger.SlotID{"A", "B"}, []ledger.HoldID{hold.ID})

	over := f.held(one(a, 2))
	late := f.built(ledger.ConfirmPart(over, []ledger.ReturnLine{{Slot: "A", Quantity: 1}}, "", f.origin(ledger.CommandConfirmHold), f.now))
	late.At = over.ReleaseAt
	f.refuse(late, f.refusedHold(over.ID))
}

// raceToEditOneHold: of edits, an extension, a part sale and a cancellation of one hold at
// once, one wins.
func raceToEditOneHold(f *fixture) {
	a, b := f.slot("A", limited(raceRounds*4, allLimits(raceRounds*4))), f.slot("B", definition(raceRounds*4, 1))
	var ids []ledger.HoldID
	for range raceRounds {
		f.now = noon
		hold := f.held(one(a, 2))
		ids = append(ids, hold.ID)
		f.now = noon.Add(time.Second)
		var changes []ledger.Change
		for range raceCallers / 5 {
			changes = append(changes,
				f.relined(hold, []ledger.Quote{quoted(a, 3)}, one(a, 1)),
				f.relined(hold, []ledger.Quote{quoted(b, 2)}, one(b, 2)),
				f.extended(hold, hold.HoldFor),
				f.built(ledger.ConfirmPart(hold, []ledger.ReturnLine{{Slot: "A", Quantity: 1}}, "", f.origin(ledger.CommandConfirmHold), f.now)),
				f.cancel(hold))
		}
		won := f.winner(f.race(changes), ledger.LegHold)
		f.equal("hold", f.storedHold(hold.ID), changes[won].Holds[0].Next)
	}
	CheckBooks(f.T, f.store, []ledger.SlotID{"A", "B"}, ids)
}
