package commands_test

import (
	"fmt"
	"slices"
	"testing"

	"holdfast/shared/ledger"
)

func (b *bench) reshard(id ledger.SlotID, shards int) {
	b.t.Helper()
	b.patch(id, ledger.SlotPatch{Shards: &shards})
}

// P10: a process that believes in the shards of before a reshard finds every unit, whatever
// it knew: nothing, a definition, or that the slot was short.
func TestP10_AReshardHidesNoUnit(t *testing.T) {
	warm := map[string]func(b *bench){
		"nothing is known": func(*bench) {},
		"the definition is known": func(b *bench) {
			_, err := b.create(b.commands, request("warm"), []ledger.Quote{{Slot: "S", Quantity: 1, UnitAmount: 1}})
			b.wantCode(err, ledger.CodePriceChanged)
		},
		"the slot was short": func(b *bench) {
			_, err := b.create(b.commands, request("warm"), quote("S", 5))
			b.wantCode(err, ledger.CodeInsufficientStock)
		},
	}
	for name, warm := range warm {
		for _, c := range []struct{ from, to int }{{1, 4}, {2, 16}, {4, 1}, {16, 3}, {3, 3}} {
			t.Run(fmt.Sprintf("%s, %d to %d", name, c.from, c.to), func(t *testing.T) {
				b := newBench(t)
				b.define("S", definition(4, c.from))
				warm(b)
				b.reshard("S", c.to)
				for i := range 4 {
					if _, err := b.create(b.commands, request(fmt.Sprint(i)), quote("S", 1)); err != nil {
						t.Fatalf("unit %d: %v", i, err)
					}
				}
				_, err := b.create(b.commands, request("more"), quote("S", 1))
				b.wantCode(err, ledger.CodeInsufficientStock)
				b.wantCounters("S", 0, 4, 0)
				b.balanced()
			})
		}
	}
}

// P10: a reshard between the read that is a hint and the one that is to be the proof moves
// the units to items that the proof does not read. The number of shards may be the old one
// again by then.
func TestP10_AReshardBeforeTheProof(t *testing.T) {
	for name, reshard := range map[string]func(b *bench){
		"up": func(b *bench) {
			b.patch("S", ledger.SlotPatch{Shards: pointer(4), CapacityDelta: pointer(ledger.Units(4))})
			b.takeFrom("S", 0)
			b.takeFrom("S", 1)
		},
		"up and down": func(b *bench) {
			b.patch("S", ledger.SlotPatch{Shards: pointer(4), CapacityDelta: pointer(ledger.Units(4))})
			held := []ledger.Hold{b.takeFrom("S", 2), b.takeFrom("S", 3)}
			b.reshard("S", 2)
			b.mustHold("S", 2)
			b.cancel(held[0].ID)
			b.cancel(held[1].ID)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.define("S", definition(2, 2))
			b.takeFrom("S", 0)
			b.takeFrom("S", 1)
			b.store.betweenSlotAndStock = func() { reshard(b) }
			if _, err := b.create(b.commands, request("K"), quote("S", 2)); err != nil {
				t.Fatalf("two shards were believed to be the whole slot: %v", err)
			}
			b.wantCounters("S", 0, 6, 0)
			b.balanced()
		})
	}
}

// The same, when the look at a slot that was short is overtaken.
func TestP10_AReshardBeforeTheLook(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(2, 2))
	b.takeFrom("S", 0)
	b.takeFrom("S", 1)
	_, err := b.create(b.commands, request("warm"), quote("S", 1))
	b.wantCode(err, ledger.CodeInsufficientStock)
	b.patch("S", ledger.SlotPatch{Shards: pointer(4), CapacityDelta: pointer(ledger.Units(4))})
	b.takeFrom("S", 0)
	b.takeFrom("S", 1)
	if _, err := b.create(b.commands, request("K"), quote("S", 1)); err != nil {
		t.Fatalf("two shards were believed to be the whole slot: %v", err)
	}
	b.balanced()
}

// P10: the one shard that is left after a reshard is not the whole slot while units may come
// back to retired ones.
func TestP10_ReturnedUnitsOfRetiredShardsAreSold(t *testing.T) {
	for _, shards := range []int{1, 2} {
		t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
			b := newBench(t)
			b.define("S", definition(4, 4))
			held := b.takeFrom("S", 3)
			b.reshard("S", shards)
			for range 3 {
				b.mustHold("S", 1)
			}
			b.cancel(held.ID)
			b.store.calls()
			if _, err := b.create(b.commands, request("K"), quote("S", 1)); err != nil {
				t.Fatalf("the unit on the retired shard was not found: %v", err)
			}
			if took := b.last().Lines[0].Shards; len(took) != 1 || took[0].Shard != 3 {
				t.Errorf("took %+v, want the unit of shard 3", took)
			}
			_, err := b.create(b.commands, request("more"), quote("S", 1))
			b.wantCode(err, ledger.CodeInsufficientStock)
			b.balanced()
		})
	}
}

// A retired shard is taken from only where no shard fits, so that it runs empty and stays so.
func TestRetiredShardsAreSoldLast(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(8, 8))
	var held []ledger.Hold
	for shard := range 8 {
		held = append(held, b.takeFrom("S", ledger.Shard(shard)))
	}
	b.reshard("S", 2)
	b.patch("S", ledger.SlotPatch{CapacityDelta: pointer(ledger.Units(12))})
	for range 6 {
		b.takeFrom("S", 1)
	}
	b.cancel(held[4].ID)
	b.cancel(held[6].ID)
	var order []ledger.Shard
	for i := range 8 {
		if _, err := b.create(b.commands, request(fmt.Sprint(i)), quote("S", 1)); err != nil {
			t.Fatal(err)
		}
		order = append(order, b.last().Lines[0].Shards[0].Shard)
	}
	slices.Sort(order[6:])
	if !slices.Equal(order, []ledger.Shard{0, 0, 0, 0, 0, 0, 4, 6}) {
		t.Errorf("the shards were sold in the order %v", order)
	}
	b.balanced()
}

// What a refused item says of the shards is enough to begin anew: no stock is read.
func TestAReshardCostsOneTry(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(4, 2))
	if _, err := b.create(b.commands, request("warm"), quote("S", 1)); err != nil {
		t.Fatal(err)
	}
	for _, shards := range []int{4, 2} { // the number of before, with two retired shards
		b.reshard("S", shards)
	}
	b.store.calls()
	if _, err := b.create(b.commands, request("K"), quote("S", 1)); err != nil {
		t.Fatal(err)
	}
	if calls := b.store.calls(); calls != [5]int{2, 0, 0, 1, 0} {
		t.Errorf("%v commits, hints, proofs, definitions and keys", calls)
	}
	b.balanced()
}
