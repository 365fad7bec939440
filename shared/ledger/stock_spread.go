package ledger

import (
	"cmp"
	"slices"
)

// spreadAvailable says how much each stock item of the slot has available when all of
// them together have units. Onto other shards they are spread evenly. Where the shards stay,
// as little as can be is moved: growth goes where least is left, and loss comes from where
// most is. Retired items end with nothing.
func spreadAvailable(stock []Stock, terms Terms, units Units, resharded bool) []Units {
	out := make([]Units, terms.StockItems())
	active := out[:terms.Shards]
	if resharded {
		copy(active, spreadEvenly(units, terms.Shards))
		return out
	}
	var have Units
	for _, s := range stock {
		if int(s.Shard) < terms.Shards {
			active[s.Shard] = s.Counters.Available
			have += s.Counters.Available
		}
	}
	if units > have {
		fillLowest(active, units-have)
	} else {
		drainHighest(active, have-units)
	}
	return out
}

// fillLowest adds units where least is available, so that the shards come as near to each
// other as they can.
func fillLowest(available []Units, units Units) {
	order := shardsBy(available, cmp.Compare[Units])
	for level := 1; units > 0 && level <= len(order); level++ {
		// The first shards in order are level with each other. They rise together, to the
		// next one or as far as it goes.
		step := units
		if level < len(order) {
			step = min(units, Units(level)*(available[order[level]]-available[order[0]]))
		}
		for i, more := range spreadEvenly(step, level) {
			available[order[i]] += more
		}
		units -= step
	}
}

// drainHighest takes units from where most is available, so that what is left lies as evenly
// as it can: buyers who come meanwhile still find something on every shard. There must be so
// many.
func drainHighest(available []Units, units Units) {
	order := shardsBy(available, func(a, b Units) int { return cmp.Compare(b, a) })
	for level := 1; units > 0 && level <= len(order); level++ {
		// The first shards in order are level with each other, and sink together.
		step := Units(level) * available[order[0]]
		if level < len(order) {
			step -= Units(level) * available[order[level]]
		}
		step = min(units, step)
		for i, less := range spreadEvenly(step, level) {
			available[order[i]] -= less
		}
		units -= step
	}
}

// shardsBy orders the shards by what they have available.
func shardsBy(available []Units, compare func(a, b Units) int) []int {
	order := make([]int, len(available))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compare(available[a], available[b]) })
	return order
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
