package ledgertest

import "holdfast/shared/ledger"

var holdReturnRules = []rule{
	{"EachLineIsRestockedOrNot", eachLineIsRestockedOrNot},
	{"StaleIsRefused", staleReturnIsRefused},
	{"MovesToRetiredShards", returnsGoToRetiredShards},
}

// unpaid builds the return of these lines of a hold that a trusted service has sold.
func (f *fixture) unpaid(h ledger.Hold, lines ...ledger.ReturnLine) ledger.Change {
	f.Helper()
	return f.built(ledger.ReturnUnpaid(h, lines, f.origin(ledger.CommandReturnHold), f.now))
}

// eachLineIsRestockedOrNot: whoever returns may say what the policy did not foresee.
func eachLineIsRestockedOrNot(f *fixture) {
	broken := definition(9, 1)
	broken.Policy.NoRestock = true
	a, b := f.slot("A", definition(9, 1)), f.slot("B", broken)
	hold := f.confirmed(one(a, 4), one(b, 4))
	first := f.unpaid(hold, ledger.ReturnLine{Slot: "A", Quantity: 1, Restock: ledger.RestockNever},
		ledger.ReturnLine{Slot: "B", Quantity: 1, Restock: ledger.RestockAlways})
	for range 2 { // it may be repeated after a lost answer
		f.commit(first)
	}
	f.counters(a, ledger.Counters{Available: 5, Confirmed: 3, Capacity: 8})
	f.counters(b, ledger.Counters{Available: 6, Confirmed: 3, Capacity: 9})
	rest := f.unpaid(f.storedHold(hold.ID))
	f.commit(rest)
	f.counters(a, ledger.Counters{Available: 8, Capacity: 8})
	f.counters(b, ledger.Counters{Available: 6, Capacity: 6})
	stored := f.storedHold(hold.ID)
	f.equal("hold", stored, rest.Holds[0].Next)
	f.equal("status", stored.Status, ledger.StatusReturned)
	CheckBooks(f.T, f.store, []ledger.SlotID{"A", "B"}, []ledger.HoldID{hold.ID})
}

func staleReturnIsRefused(f *fixture) {
	slot := f.slot("A", limited(9, allLimits(9)))
	hold := f.confirmed(one(slot, 4))
	first, second := f.unpaid(hold, ledger.ReturnLine{Slot: "A", Quantity: 3}), f.unpaid(hold, ledger.ReturnLine{Slot: "A", Quantity: 2})
	f.commit(first)
	stock := f.stock(slot)[0]
	f.refuse(second, f.refusedHold(hold.ID), ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[0]},
		ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "A", Stock: &stock})
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{slotA: 1, resource: 1})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// returnsGoToRetiredShards: what was taken from a shard goes back to it, though new holds
// are spread over others by then.
func returnsGoToRetiredShards(f *fixture) {
	slot := f.slot("A", definition(8, 4))
	from := func(shard ledger.Shard) take {
		return take{slot, []ledger.Allocation{{Shard: shard, Quantity: 2}}}
	}
	sold, held := f.confirmed(from(3)), f.held(from(2))
	f.commit(f.edit(slot, func(d *ledger.SlotDefinition) { d.Terms.Shards = 1 }))
	slot = f.storedSlot("A")
	f.commit(f.unpaid(sold, ledger.ReturnLine{Slot: "A", Quantity: 1}))
	f.commit(f.cancel(held))
	f.counters(slot, ledger.Counters{Available: 4, Capacity: 4}, ledger.Counters{},
		ledger.Counters{Available: 2, Capacity: 2}, ledger.Counters{Available: 1, Confirmed: 1, Capacity: 2})
	last := f.held(take{slot, []ledger.Allocation{{Shard: 0, Quantity: 4}, {Shard: 2, Quantity: 2}, {Shard: 3, Quantity: 1}}})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{sold.ID, held.ID, last.ID})
}
