package ledger

import (
	"cmp"
	"slices"
)

// spreadAvailable says how much each stock item of the slot has available when all of
// them together have units. Where the shards stay the same as little as can be is moved:
// growth goes where least is left, and loss comes from where most is. Retired items end
// with nothing.
func spreadAvailable(stock []Stock, terms Terms, units Units) []Units {
	out := make([]Units, terms.StockItems())
	active := make([]Shard, terms.Shards)
	for i := range active {
		active[i] = Shard(i)
	}
	if len(stock) != terms.StockItems() || stock[0].Terms.Shards != terms.Shards {
		copy(out, spreadEvenly(units, terms.Shards))
		return out
	}
	var have Units
	for _, s := range stock[:terms.Shards] {
		out[s.Shard] = s.Counters.Available
		have += s.Counters.Available
	}
	if units > have {
		fillLowest(out, active, units-have)
	} else {
		drainHighest(out, active, have-units)
	}
	return out
}

// fillLowest adds units to those of the shards that have least, so that they come as near
// to each other as they can.
func fillLowest(available []Units, shards []Shard, units Units) {
	slices.SortStableFunc(shards, func(a, b Shard) int { return cmp.Compare(available[a], available[b]) })
	for n := 1; units > 0; n++ {
		// The n lowest are level here. They rise together to the next one, or as far as it goes.
		step := units
		if n < len(shards) {
			step = min(units, Units(n)*(available[shards[n]]-available[shards[0]]))
		}
		for i, more := range spreadEvenly(step, n) {
			available[shards[i]] += more
		}
		units -= step
	}
}

// drainHighest takes units from those of the shards that have most.
func drainHighest(available []Units, shards []Shard, units Units) {
	slices.SortStableFunc(shards, func(a, b Shard) int { return cmp.Compare(available[b], available[a]) })
	for _, shard := range shards {
		take := min(units, available[shard])
		available[shard] -= take
		units -= take
	}
}

// availableMovements is what makes the stock, which was read as given, have targets.
func availableMovements(id SlotID, stock []Stock, targets []Units) []Movement {
	var out []Movement
	for i, target := range targets {
		var have Units
		if i < len(stock) {
			have = stock[i].Counters.Available
		}
		switch shard := Shard(i); {
		case target > have:
			out = append(out, Movement{id, shard, BucketOutside, BucketAvailable, target - have})
		case target < have:
			out = append(out, Movement{id, shard, BucketAvailable, BucketOutside, have - target})
		}
	}
	return out
}
