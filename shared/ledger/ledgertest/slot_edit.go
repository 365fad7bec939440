package ledgertest

import (
	"time"

	"holdfast/shared/ledger"
)

var slotEditRules = []rule{
	{"ReshardedUp", slotReshardedUp},
	{"ReshardedDownAndUpAgain", slotReshardedDownAndUpAgain},
	{"P1_StaleReshardIsRefused", staleReshardIsRefused},
	{"SaleRequiresTheRetiredShards", saleRequiresTheRetiredShards},
	{"MostShardsRetire", mostShardsRetire},
	{"OversoldIsClosedUntilItFits", oversoldIsClosedUntilItFits},
	{"P5_SeveralNewInOneChange", severalNewSlotsInOneChange},
	{"P10_Race_ReshardUnderLoad", raceToReshard},
}

// reshard builds the change that spreads the slot over so many shards.
func (f *fixture) reshard(slot ledger.Slot, shards int) ledger.Change {
	f.Helper()
	return f.edit(slot, func(d *ledger.SlotDefinition) { d.Terms.Shards = shards })
}

func slotReshardedUp(f *fixture) {
	slot := f.slot("A", definition(10, 1))
	hold := f.held(one(slot, 3))
	change := f.reshard(slot, 4)
	f.equal("new stock items", len(change.NewStock), 3)
	for range 2 { // it may be repeated after a lost answer
		f.commit(change)
	}
	stored := f.storedSlot("A")
	f.equal("slot", stored, change.Slots[0].Next)
	f.counters(stored, ledger.Counters{Available: 2, Held: 3, Capacity: 5}, ledger.Counters{Available: 2, Capacity: 2},
		ledger.Counters{Available: 2, Capacity: 2}, ledger.Counters{Available: 1, Capacity: 1})
	for _, s := range f.stock(stored)[1:] {
		f.equal("version of a new stock item", s.Version, ledger.Version(1))
	}
	f.refuse(f.hold(theOwner, one(slot, 1)), f.refusedStock(stored, 0))
	other := f.held(take{stored, []ledger.Allocation{{Shard: 3, Quantity: 1}}})
	f.commit(f.cancel(hold))
	f.equal("available on the shard that the hold was of", f.stock(stored)[0].Counters.Available, ledger.Units(5))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID, other.ID})
}

// refusedStock is the leg of a stock item that refused a change as it is stored.
func (f *fixture) refusedStock(slot ledger.Slot, shard ledger.Shard) ledger.RefusedLeg {
	f.Helper()
	stock := f.stock(slot)[shard]
	return ledger.RefusedLeg{Kind: ledger.LegStock, Slot: slot.ID, Shard: shard, Stock: &stock}
}

func slotReshardedDownAndUpAgain(f *fixture) {
	slot := f.slot("A", definition(12, 3))
	held := f.held(take{slot, []ledger.Allocation{{Shard: 2, Quantity: 4}}})
	f.commit(f.reshard(slot, 1))
	slot = f.storedSlot("A")
	f.equal("terms", slot.Terms, ledger.Terms{Open: true, Price: slot.Terms.Price, Shards: 1, Retired: 2})
	f.counters(slot, ledger.Counters{Available: 8, Capacity: 8}, ledger.Counters{}, ledger.Counters{Held: 4, Capacity: 4})
	together, err := f.store.Stock(f.ctx, []ledger.Slot{slot})
	f.read(err)
	f.equal("stock that is read as a hint", together, f.stock(slot))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{held.ID})

	up := f.reshard(slot, 4)
	f.equal("new stock items, beside the two that are there", len(up.NewStock), 1)
	f.commit(up)
	slot = f.storedSlot("A")
	f.equal("retired", slot.Terms.Retired, 0)
	f.counters(slot, ledger.Counters{Available: 2, Capacity: 2}, ledger.Counters{Available: 2, Capacity: 2},
		ledger.Counters{Available: 2, Held: 4, Capacity: 6}, ledger.Counters{Available: 2, Capacity: 2})
	f.commit(f.cancel(held))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{held.ID})
}

// staleReshardIsRefused: a reshard that was decided before units were taken, or before
// another one, moves nothing.
func staleReshardIsRefused(f *fixture) {
	slot := f.slot("A", definition(8, 2))
	down := f.reshard(slot, 1)
	hold := f.held(take{slot, []ledger.Allocation{{Shard: 1, Quantity: 1}}})
	f.refuse(down, f.refusedStock(slot, 1))
	first, second := f.reshard(slot, 4), f.reshard(slot, 3)
	f.commit(first)
	stored := f.storedSlot("A")
	f.refuse(second, f.refusedStock(stored, 2),
		ledger.RefusedLeg{Kind: ledger.LegSlot, StoredSlot: &stored},
		ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[0]})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// saleRequiresTheRetiredShards: who does not know of all stock items of a slot could say
// that it is sold out while one of them has a unit.
func saleRequiresTheRetiredShards(f *fixture) {
	before := f.slot("A", definition(8, 4))
	f.commit(f.reshard(before, 2))
	now := f.storedSlot("A")
	forgetful := now
	forgetful.Terms.Retired = 0
	for _, stale := range []ledger.Slot{before, forgetful} {
		f.refuse(f.hold(theOwner, one(stale, 1)), f.refusedStock(now, 0))
	}
	f.commit(f.edit(now, func(d *ledger.SlotDefinition) { d.Terms.Open = false }))
	f.commit(f.edit(f.storedSlot("A"), func(d *ledger.SlotDefinition) { d.Terms.Open = true }))
	hold := f.held(one(f.storedSlot("A"), 1))
	f.commit(f.reshard(f.storedSlot("A"), 4))
	f.refuse(f.hold(theOwner, one(now, 1)), f.refusedStock(f.storedSlot("A"), 0))
	other := f.held(one(f.storedSlot("A"), 1))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID, other.ID})
}

func mostShardsRetire(f *fixture) {
	slot := f.slot("A", definition(ledger.ShardsMax*2, ledger.ShardsMax))
	hold := f.held(take{slot, []ledger.Allocation{{Shard: ledger.ShardsMax - 1, Quantity: 2}}})
	f.commit(f.reshard(slot, 1))
	slot = f.storedSlot("A")
	f.equal("stock items", len(f.stock(slot)), ledger.ShardsMax)
	f.equal("available on the shard that is left", f.stock(slot)[0].Counters.Available, ledger.Units(ledger.ShardsMax*2-2))
	f.commit(f.reshard(slot, ledger.ShardsMax))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

func oversoldIsClosedUntilItFits(f *fixture) {
	slot := f.slot("A", definition(5, 2))
	sold, held := f.confirmed(one(slot, 2)), f.held(take{slot, []ledger.Allocation{{Shard: 1, Quantity: 2}}})
	short := f.edit(slot, func(d *ledger.SlotDefinition) { d.Capacity, d.KeepCapacity, d.AcceptOversold = 1, false, true })
	f.commit(short)
	stored := f.storedSlot("A")
	f.equal("slot", stored, short.Slots[0].Next)
	f.equal("oversold", stored.Oversold, ledger.Units(3))
	f.counters(stored, ledger.Counters{Confirmed: 2, Capacity: 2}, ledger.Counters{Held: 2, Capacity: 2})
	f.refuse(f.hold(theOwner, one(slot, 1)), f.refusedStock(stored, 0))
	all := []ledger.HoldID{sold.ID, held.ID}
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, all)

	f.commit(f.cancel(held))
	f.commit(f.returned(sold, ledger.ReturnLine{Slot: "A", Quantity: 1}))
	f.now = f.now.Add(time.Second)
	fits := f.edit(stored, func(d *ledger.SlotDefinition) { d.Capacity, d.KeepCapacity, d.Terms.Open = 1, false, true })
	f.commit(fits)
	f.equal("oversold", f.storedSlot("A").Oversold, ledger.Units(0))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, all)
}

// severalNewSlotsInOneChange are all made, or none of them is.
func severalNewSlotsInOneChange(f *fixture) {
	define := func(ids ...ledger.SlotID) ledger.Change {
		change := ledger.Change{At: f.now}
		for _, id := range ids {
			change = ledger.Together(change, f.built(ledger.NewSlot(id, definition(5, 2), f.origin(ledger.CommandPutSlot), f.now)))
		}
		return change
	}
	first := define("A", "B", "C")
	for range 2 { // it may be repeated after a lost answer
		f.commit(first)
	}
	for _, w := range first.Slots {
		f.equal("slot", f.storedSlot(w.Next.ID), w.Next)
	}
	second := define("D", "B", "E")
	b := f.storedSlot("B")
	f.refuse(second, ledger.RefusedLeg{Kind: ledger.LegSlot, StoredSlot: &b}, f.refusedStock(b, 0), f.refusedStock(b, 1),
		ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[1]})
	f.commit(define("D", "E"))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A", "B", "C", "D", "E"}, nil)
}

// raceToReshard lets buyers and two reshards meet on one slot. Whatever order they come in,
// the units add up, and none is on a stock item that the slot does not know of.
func raceToReshard(f *fixture) {
	const shards = 4
	capacity := ledger.Units(raceRounds * raceCallers)
	f.slot("A", definition(capacity, shards))
	var ids []ledger.HoldID
	for range raceRounds {
		slot := f.storedSlot("A")
		var changes []ledger.Change
		for i := range raceCallers - 1 {
			if i == raceCallers/2 {
				next := slot.Terms.Shards%shards + 1
				changes = append(changes, f.reshard(slot, next), f.reshard(slot, next+1))
			}
			shard := ledger.Shard(i % slot.Terms.Shards)
			changes = append(changes, f.hold(theOwner, take{slot, []ledger.Allocation{{Shard: shard, Quantity: 1}}}))
		}
		reshards := 0
		for i, err := range f.race(changes) {
			switch {
			case err != nil && !isRefused(err):
				f.Fatalf("change %d: %v", i, err)
			case err == nil && len(changes[i].Holds) > 0:
				ids = append(ids, changes[i].Holds[0].Next.ID)
			case err == nil:
				reshards++
			}
		}
		if reshards > 1 {
			f.Fatalf("%d reshards of one version were applied", reshards)
		}
		if slot = f.storedSlot("A"); reshards == 0 { // who lost decides anew
			f.commit(f.reshard(slot, slot.Terms.Shards%shards+1))
			slot = f.storedSlot("A")
		}
		ids = append(ids, f.held(one(slot, 1)).ID)
		var total ledger.Counters
		for _, s := range f.stock(slot) {
			total = total.Plus(s.Counters)
		}
		held := ledger.Units(len(ids))
		f.equal("units", total, ledger.Counters{Available: capacity - held, Held: held, Capacity: capacity})
	}
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, ids)
}
