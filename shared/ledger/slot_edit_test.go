package ledger_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// drawStock draws a slot of some shards, retired ones among them, with units in every place.
func drawStock(t *rapid.T) (ledger.Slot, []ledger.Stock) {
	units := func(name string) ledger.Units { return ledger.Units(rapid.IntRange(0, 9).Draw(t, name)) }
	terms := ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}}
	terms.Shards, terms.Retired = rapid.IntRange(1, 5).Draw(t, "shards"), rapid.IntRange(0, 3).Draw(t, "retired")
	slot := ledger.Slot{ID: "S", ResourceType: "show", ResourceID: "hamlet", Terms: terms, Policy: ledger.DefaultPolicy(), PriceVersion: 1, Version: 1}
	var stock []ledger.Stock
	for shard := range terms.StockItems() {
		c := ledger.Counters{Available: units("available"), Held: units("held"), Confirmed: units("confirmed")}
		c.Capacity = c.Available + c.Held + c.Confirmed
		stock = append(stock, ledger.Stock{Slot: "S", Shard: ledger.Shard(shard), Terms: terms, Counters: c, Version: 1})
	}
	return slot, stock
}

func totalOf(stock []ledger.Stock) ledger.Counters {
	var total ledger.Counters
	for _, s := range stock {
		total = total.Plus(s.Counters)
	}
	return total
}

// after is the stock with the change applied.
func after(t *rapid.T, stock []ledger.Stock, change ledger.Change) []ledger.Stock {
	t.Helper()
	out := slices.Clone(stock)
	for _, s := range change.NewStock {
		if int(s.Shard) != len(out) {
			t.Fatalf("new stock item %d where there are %d", s.Shard, len(out))
		}
		out = append(out, s)
	}
	for _, w := range change.Stock {
		out[w.Shard].Counters = out[w.Shard].Counters.Plus(w.Delta)
		if w.SetTerms != nil {
			out[w.Shard].Terms = *w.SetTerms
		}
	}
	return out
}

// P1, P2: whatever an edit does to shards and capacity, the capacity is what was asked for,
// what is held and confirmed stays where it is, no stock item vanishes, and every one of them
// learns the new terms.
func TestEditSlotSpreadsUnits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slot, stock := drawStock(t)
		total := totalOf(stock)
		d := slot.Definition(total.Capacity)
		resharded := rapid.Bool().Draw(t, "reshard")
		if resharded {
			d.Terms.Shards = rapid.IntRange(1, 6).Draw(t, "shards")
		}
		if rapid.Bool().Draw(t, "other capacity") {
			d.Capacity = total.Held + total.Confirmed + ledger.Units(rapid.IntRange(0, 40).Draw(t, "left"))
		}
		change, err := ledger.EditSlot(slot, stock, d, originOf("edit"), noon)
		if err != nil {
			t.Fatal(err)
		}
		if d.Capacity == total.Capacity && d.Terms.Shards == slot.Terms.Shards {
			if !change.Empty() {
				t.Fatalf("an edit of nothing has %d actions", change.Actions())
			}
			return
		}
		if err := change.Validate(); err != nil {
			t.Fatal(err)
		}
		next, items := change.Slots[0].Next, after(t, stock, change)
		if next.Terms.StockItems() != len(items) || next.Terms.Shards != d.Terms.Shards || len(items) < len(stock) {
			t.Fatalf("of %d stock items there are %d, and the slot says %+v", len(stock), len(items), next.Terms)
		}
		if got := totalOf(items); got.Capacity != d.Capacity || got.Held != total.Held || got.Confirmed != total.Confirmed {
			t.Fatalf("the slot has %+v, asked for was a capacity of %d from %+v", got, d.Capacity, total)
		}
		var available []ledger.Units
		for i, s := range items {
			if s.Counters.Check() != nil || s.Terms != next.Terms {
				t.Fatalf("stock item %d is %+v under %+v", i, s, next.Terms)
			}
			if i < len(stock) && (s.Counters.Held != stock[i].Counters.Held || s.Counters.Confirmed != stock[i].Counters.Confirmed) {
				t.Fatalf("stock item %d had %+v and has %+v", i, stock[i].Counters, s.Counters)
			}
			if i >= d.Terms.Shards && s.Counters.Available != 0 {
				t.Fatalf("the retired stock item %d still has %+v", i, s.Counters)
			}
			if i < d.Terms.Shards {
				available = append(available, s.Counters.Available)
			}
		}
		if d.Terms.Shards != slot.Terms.Shards && slices.Max(available)-slices.Min(available) > 1 {
			t.Fatalf("on other shards the units lie as %v", available)
		}
		if d.Terms.Shards == slot.Terms.Shards {
			wantLevelled(t, stock, available)
		}
	})
}

// wantLevelled requires that where the shards stay, growth went only to where least was, and
// loss came only from where most was.
func wantLevelled(t *rapid.T, stock []ledger.Stock, available []ledger.Units) {
	t.Helper()
	grew, fell := false, false
	for i, now := range available {
		before := stock[i].Counters.Available
		grew, fell = grew || now > before, fell || now < before
		if now > before && now > slices.Min(available)+1 || now < before && now < slices.Max(available)-1 {
			t.Fatalf("shard %d went from %d to %d, and they are %v", i, before, now, available)
		}
	}
	if grew && fell {
		t.Fatalf("units went round in circles to %v", available)
	}
}

// What is left on retired stock items after holds gave back to them is collected by the next
// edit that moves units anyway, and by no other one.
func TestEditSlotCollectsFromRetiredItems(t *testing.T) {
	terms := ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 1, Retired: 1}
	slot := ledger.Slot{ID: "S", ResourceType: "show", ResourceID: "hamlet", Terms: terms, Policy: ledger.DefaultPolicy(), Version: 3}
	stock := stockOf(2, 3)
	if c, err := ledger.EditSlot(slot, stock, slot.Definition(5), originOf("edit"), noon); err != nil || !c.Empty() {
		t.Errorf("an edit of nothing has %d actions, error %v", c.Actions(), err)
	}
	d := slot.Definition(5)
	d.Attributes = map[string]string{"row": "1"}
	if c, err := ledger.EditSlot(slot, stock, d, originOf("edit"), noon); err != nil || len(c.Stock) != 0 {
		t.Errorf("an edit of attributes writes %+v, error %v", c.Stock, err)
	}
	d.Capacity = 6
	c, err := ledger.EditSlot(slot, stock, d, originOf("edit"), noon)
	want := []ledger.StockWrite{
		{Slot: "S", Shard: 0, Delta: ledger.Counters{Available: 4, Capacity: 4}}, {Slot: "S", Shard: 1, Delta: ledger.Counters{Available: -3, Capacity: -3}},
	}
	if err != nil || !reflect.DeepEqual(c.Stock, want) {
		t.Errorf("growth writes %+v, error %v", c.Stock, err)
	}
}

// A stock that is newer than the slot may make any edit look right. The version of the slot
// refuses it, and nothing that was computed from two moments is written (A2).
func TestEditSlotOfTwoMomentsIsRefused(t *testing.T) {
	capacity := func(units ledger.Units) func(*ledger.SlotDefinition) {
		return func(d *ledger.SlotDefinition) { d.Capacity, d.KeepCapacity = units, false }
	}
	shards := func(n int) func(*ledger.SlotDefinition) {
		return func(d *ledger.SlotDefinition) { d.Terms.Shards = n }
	}
	edits := map[string]func(*ledger.SlotDefinition){
		"up": capacity(20), "down": capacity(5), "more shards": shards(4), "fewer shards": shards(1),
		"closed": func(d *ledger.SlotDefinition) { d.Terms.Open = false },
	}
	for betweenName, between := range edits {
		for name, edit := range edits {
			w := newWorld(t, 12, 2)
			w.mustCreate("h", 3)
			slots, err := w.store.Slots(t.Context(), []ledger.SlotID{"S"})
			w.answered(err, "")
			w.edit(between)
			stock, err := w.store.StockAtOneMoment(t.Context(), slots[0])
			w.answered(err, "")
			before := w.stock()
			d := slots[0].Definition(totalOf(stock).Capacity)
			edit(&d)
			change, err := ledger.EditSlot(slots[0], stock, d, w.origin(ledger.CommandPutSlot, "catalog"), w.now)
			w.answered(err, "")
			if change.Empty() {
				continue // who answers with nothing to do looks at the slot's version itself
			}
			var refused *ledger.Refused
			if err := w.store.Commit(t.Context(), change); !errors.As(err, &refused) || len(refused.LegsOf(ledger.LegSlot)) != 1 {
				t.Errorf("%s after %s gives %v", name, betweenName, err)
			}
			if !reflect.DeepEqual(w.stock(), before) {
				t.Errorf("%s after %s left something behind", name, betweenName)
			}
		}
	}
}

// An oversold slot is closed and marked with what is missing. What is missing is left aside
// wherever the number of its units is read, so that a step up or down starts from the units
// that there are, and it opens again only when they are enough.
func TestOversoldSlot(t *testing.T) {
	w := &world{T: t, desk: newDesk(memory.New())}
	w.edit(func(d *ledger.SlotDefinition) { d.Capacity, d.Terms.Shards = 10, 2 })
	sold := w.mustCreate("sold", 4)
	_, err := w.confirm(sold.ID, "", request{})
	w.answered(err, "")
	held := w.mustCreate("held", 4)
	patch := func(p ledger.SlotPatch) error {
		t.Helper()
		return w.putSlot("S", func(d *ledger.SlotDefinition) {
			patched, err := p.Apply(*d)
			w.answered(err, "")
			*d = patched
		})
	}
	units := func(n ledger.Units) *ledger.Units { return &n }
	open := true
	want := func(oversold, available, inUse ledger.Units) {
		t.Helper()
		slots, err := w.store.Slots(t.Context(), []ledger.SlotID{"S"})
		w.answered(err, "")
		total := totalOf(w.stock())
		if slots[0].Oversold != oversold || total.Available != available || total.Held+total.Confirmed != inUse || slots[0].Terms.Open != (oversold == 0) {
			t.Fatalf("the slot is %+v with %+v, want oversold %d, available %d, in use %d", slots[0], total, oversold, available, inUse)
		}
	}
	w.answered(patch(ledger.SlotPatch{Capacity: units(6)}), ledger.CodeCapacityInUse)
	w.answered(patch(ledger.SlotPatch{Capacity: units(6), AcceptOversold: true}), "")
	want(2, 0, 8)
	if _, err := w.create("refused", 1); ledger.CodeOf(err) != ledger.CodeSlotClosed {
		t.Fatalf("a hold of an oversold slot: %v", err)
	}
	w.answered(patch(ledger.SlotPatch{Capacity: units(6), AcceptOversold: true}), "") // again
	want(2, 0, 8)
	w.answered(patch(ledger.SlotPatch{Open: &open}), ledger.CodeSlotOversold)
	w.answered(patch(ledger.SlotPatch{Open: &open, AcceptOversold: true}), ledger.CodeSlotOversold)
	w.answered(patch(ledger.SlotPatch{CapacityDelta: units(1)}), ledger.CodeCapacityInUse) // 7 are still too few
	w.answered(patch(ledger.SlotPatch{CapacityDelta: units(-1), AcceptOversold: true}), "")
	want(3, 0, 8)
	w.answered(patch(ledger.SlotPatch{CapacityDelta: units(1), AcceptOversold: true}), "")
	want(2, 0, 8)
	amount := int64(600)
	w.answered(patch(ledger.SlotPatch{UnitAmount: &amount}), "") // it stays as it is
	want(2, 0, 8)
	_, err = w.cancel(held.ID, request{})
	w.answered(err, "")
	want(2, 4, 4)
	w.answered(patch(ledger.SlotPatch{Open: &open}), "") // 6 units are enough for what is in use
	want(0, 2, 4)
}

// More units than an oversold slot really has can be lost, and it can still be edited.
func TestOversoldSlotThatLosesAll(t *testing.T) {
	w := &world{T: t, desk: newDesk(memory.New())}
	w.edit(func(d *ledger.SlotDefinition) { d.Capacity, d.Policy.NoRestock = 3, true })
	sold := w.mustCreate("sold", 3)
	_, err := w.confirm(sold.ID, "", request{})
	w.answered(err, "")
	w.edit(func(d *ledger.SlotDefinition) { d.Capacity, d.KeepCapacity, d.AcceptOversold = 0, false, true })
	w.answered(w.giveBack(sold.ID, []ledger.ReturnLine{lineOf("S", 2)}), "")
	w.edit(func(d *ledger.SlotDefinition) { d.Attributes = map[string]string{"row": "1"} })
	w.edit(func(d *ledger.SlotDefinition) { d.Capacity, d.KeepCapacity = 1, false })
	w.counters(0, 0, 1)
}

// A policy that differs only in what it inherits anyway is the same policy.
func TestEditSlotLooksAtWhatIsSaid(t *testing.T) {
	slot, created := mustNewSlot(t, "A", 10, 1)
	slot.Inherits = ledger.PartGrace
	d := slot.Definition(10)
	d.Policy.GraceFor = 1
	if c, err := ledger.EditSlot(slot, created.NewStock, d, originOf("edit"), noon); err != nil || !c.Empty() {
		t.Errorf("another grace that is inherited has %d actions, error %v", c.Actions(), err)
	}
	d.Policy.HoldForMax *= 2
	c, err := ledger.EditSlot(slot, created.NewStock, d, originOf("edit"), noon)
	if err != nil || c.Slots[0].Next.Policy.GraceFor != ledger.GraceForDefault {
		t.Errorf("what is inherited is kept: %+v, error %v", c.Slots, err)
	}
}
