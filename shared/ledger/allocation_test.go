package ledger_test

import (
	"slices"
	"testing"

	"holdfast/shared/ledger"
)

func stockOf(available ...ledger.Units) []ledger.Stock {
	out := make([]ledger.Stock, len(available))
	for i, units := range available {
		out[i] = ledger.Stock{Slot: "S", Shard: ledger.Shard(i), Counters: ledger.Counters{Available: units, Capacity: units}}
	}
	return out
}

// retiring is stock of which only the first shards are in use.
func retiring(shards int, stock []ledger.Stock) []ledger.Stock {
	for i := range stock {
		stock[i].Terms = ledger.Terms{Shards: shards, Retired: len(stock) - shards}
	}
	return stock
}

func TestAllocate(t *testing.T) {
	type parts []ledger.Allocation
	tests := []struct {
		name     string
		stock    []ledger.Stock
		quantity ledger.Units
		first    ledger.Shard
		want     parts
		fits     bool
	}{
		{"the first pick, if it fits", stockOf(5, 5, 5), 5, 1, parts{{1, 5}}, true},
		{"the next one that fits", stockOf(5, 1, 2, 5), 3, 1, parts{{3, 3}}, true},
		{"round to the beginning", stockOf(5, 1, 2), 3, 1, parts{{0, 3}}, true},
		{"whole, although another is fuller", stockOf(9, 3), 3, 1, parts{{1, 3}}, true},
		{"split, the fullest first", stockOf(1, 4, 2), 6, 0, parts{{1, 4}, {2, 2}}, true},
		{"split over all", stockOf(1, 4, 2), 7, 2, parts{{0, 1}, {1, 4}, {2, 2}}, true},
		{"empty shards give nothing", stockOf(0, 2, 0, 2), 4, 0, parts{{1, 2}, {3, 2}}, true},
		{"one too few", stockOf(1, 4, 2), 8, 0, nil, false},
		{"a retired shard is sold last", retiring(2, stockOf(1, 5, 5)), 5, 2, parts{{1, 5}}, true},
		{"a retired shard is sold whole before anything is split", retiring(2, stockOf(3, 3, 5)), 5, 0, parts{{2, 5}}, true},
		{"a retired shard gives its part", retiring(2, stockOf(1, 1, 2)), 4, 0, parts{{0, 1}, {1, 1}, {2, 2}}, true},
		{"sold out", stockOf(0, 0), 1, 0, nil, false},
		{"no stock at all", nil, 1, 0, nil, false},
	}
	for _, test := range tests {
		before := slices.Clone(test.stock)
		got, fits := ledger.Allocate(test.stock, test.quantity, test.first)
		if fits != test.fits || (fits && !slices.Equal(got, test.want)) {
			t.Errorf("%s: got %v, %t, want %v, %t", test.name, got, fits, test.want, test.fits)
		}
		if !slices.Equal(test.stock, before) {
			t.Errorf("%s: the stock that was passed has changed", test.name)
		}
	}
}

// Every quantity up to the sum fits, and is made of parts that are really there.
func TestAllocateEveryQuantity(t *testing.T) {
	stock := stockOf(3, 0, 7, 1, 7)
	const sum = 18
	for quantity := ledger.Units(1); quantity <= sum+1; quantity++ {
		for first := range ledger.Shard(5) {
			parts, fits := ledger.Allocate(stock, quantity, first)
			if fits != (quantity <= sum) {
				t.Fatalf("%d of %d units fit: %t", quantity, sum, fits)
			}
			if !fits {
				continue
			}
			left := quantity
			for _, part := range parts {
				left -= part.Quantity
				if part.Quantity < 1 || part.Quantity > stock[part.Shard].Counters.Available {
					t.Fatalf("%d units: shard %d gives %d", quantity, part.Shard, part.Quantity)
				}
			}
			if left != 0 || !slices.IsSortedFunc(parts, func(a, b ledger.Allocation) int { return int(a.Shard - b.Shard) }) {
				t.Fatalf("%d units: parts %v", quantity, parts)
			}
		}
	}
}
