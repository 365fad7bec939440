package ledger

import (
	"slices"
	"time"
)

// Line is one slot in a hold, with the price that was quoted. Shards says which parts
// of the slot's stock the quantity was taken from, and goes back to.
type Line struct {
	Slot      SlotID
	Quantity  Units
	UnitPrice Money
	Shards    []Allocation
	// Returned are the parts of Shards that were given back after the sale.
	Returned []Allocation
	// CancelUntil is when the line can be given back for the last time after the sale;
	// zero for always.
	CancelUntil time.Time
	// OverAt is when the slot is over, as it was at creation: its end, or its start where
	// it has no end; zero for a slot without a time.
	OverAt time.Time
	// NoRestock says that what is given back is not sold again.
	NoRestock bool
	// GrantTo is the slot whose stock grows by Quantity when the hold is paid; "" for none.
	GrantTo SlotID
	// CountsIn are the counts of its owner that each unit is part of, until it is given back.
	CountsIn []QuotaKey
}

// ReturnedQuantity is how much of the line was given back.
func (l Line) ReturnedQuantity() Units { return sum(l.Returned) }

func sum(allocations []Allocation) Units {
	var total Units
	for _, a := range allocations {
		total += a.Quantity
	}
	return total
}

func (l Line) takenFrom(shard Shard) Units {
	for _, a := range l.Shards {
		if a.Shard == shard {
			return a.Quantity
		}
	}
	return 0
}

func (l Line) movements(from, to Bucket) []Movement {
	out := make([]Movement, 0, len(l.Shards))
	for _, a := range l.Shards {
		out = append(out, Movement{l.Slot, a.Shard, from, to, a.Quantity})
	}
	return out
}

// shrink takes units off the line, from its last shards first, and says which.
func (l Line) shrink(units Units) (Line, []Allocation) {
	var back []Allocation
	l.Quantity -= units
	l.Shards = slices.Clone(l.Shards)
	for i := len(l.Shards) - 1; i >= 0 && units > 0; i-- {
		take := min(units, l.Shards[i].Quantity)
		l.Shards[i].Quantity -= take
		units -= take
		back = append(back, Allocation{l.Shards[i].Shard, take})
	}
	l.Shards = slices.DeleteFunc(l.Shards, func(a Allocation) bool { return a.Quantity == 0 })
	slices.Reverse(back)
	return l, back
}

// giveBack adds quantity to what was returned of the line, from its shards in order, and
// says to which shards it goes. It reports false when less is left.
func (l *Line) giveBack(quantity Units) ([]Allocation, bool) {
	returned := slices.Clone(l.Returned)
	var back []Allocation
	for _, taken := range l.Shards {
		i := slices.IndexFunc(returned, func(a Allocation) bool { return a.Shard == taken.Shard })
		if i < 0 {
			i, returned = len(returned), append(returned, Allocation{Shard: taken.Shard})
		}
		units := min(quantity, taken.Quantity-returned[i].Quantity)
		if units > 0 {
			returned[i].Quantity += units
			back = append(back, Allocation{taken.Shard, units})
			quantity -= units
		}
	}
	l.Returned = slices.DeleteFunc(returned, func(a Allocation) bool { return a.Quantity == 0 })
	return back, quantity == 0
}
