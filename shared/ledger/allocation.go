package ledger

import (
	"cmp"
	"slices"
)

// Allocation is the part of a line that one shard gives.
type Allocation struct {
	Shard    Shard
	Quantity Units
}

// PickShard chooses, by hash alone, the shard that a hold tries first. It reads
// nothing, so a create needs no read before its transaction.
func PickShard(hold HoldID, slot SlotID, shards int) Shard {
	return Shard(hash(string(hold)+"/"+string(slot)) % uint64(shards))
}

// Allocate divides quantity over shards that were read as given. One shard that fits
// wins, the first one at or after the hold's own pick, and a retired one only if no other
// does; splitting is the last resort, the fullest shards first, so that few items are
// written. It reports false when the shards together have too little: that is a proof only
// if they were read at one moment.
func Allocate(stock []Stock, quantity Units, first Shard) ([]Allocation, bool) {
	for _, retired := range []bool{false, true} {
		for i := range stock {
			s := stock[(i+int(first))%len(stock)]
			if s.retired() == retired && s.Counters.Available >= quantity {
				return []Allocation{{s.Shard, quantity}}, true
			}
		}
	}
	fullest := slices.Clone(stock)
	slices.SortStableFunc(fullest, func(a, b Stock) int { return cmp.Compare(b.Counters.Available, a.Counters.Available) })
	var out []Allocation
	for _, s := range fullest {
		take := min(s.Counters.Available, quantity)
		if take <= 0 {
			break
		}
		out = append(out, Allocation{s.Shard, take})
		quantity -= take
	}
	slices.SortFunc(out, func(a, b Allocation) int { return cmp.Compare(a.Shard, b.Shard) })
	return out, quantity == 0
}

// addAllocations is what both take, each shard once.
func addAllocations(a, b []Allocation) []Allocation {
	out := slices.Clone(a)
	for _, more := range b {
		if i := slices.IndexFunc(out, func(o Allocation) bool { return o.Shard == more.Shard }); i >= 0 {
			out[i].Quantity += more.Quantity
		} else {
			out = append(out, more)
		}
	}
	slices.SortFunc(out, func(x, y Allocation) int { return cmp.Compare(x.Shard, y.Shard) })
	return out
}
