package hotslot

import (
	"testing"

	"holdfast/shared/ledger"
)

type units = ledger.Units

// soldOut is a sale as it should be: ten units on two shards, confirmed, by four buyers.
func soldOut() Outcome {
	shard := func(n ledger.Shard) ledger.Stock {
		return ledger.Stock{Shard: n, Counters: ledger.Counters{Confirmed: 5, Capacity: 5}}
	}
	return Outcome{
		Units: 10, Shards: 2, Accepted: 4, AcceptedUnits: 10, Confirmed: 10, sold: 10,
		SoldCalls: Calls{StockItems: 5}, Refused: 3, RefusedRight: 3, Stock: []ledger.Stock{shard(0), shard(1)},
	}
}

// Every promise that is not kept fails the check, each by itself.
func TestCheckSeesEveryBrokenPromise(t *testing.T) {
	if err := soldOut().Check(); err != nil {
		t.Fatalf("a sale as it should be: %v", err)
	}
	for name, spoil := range map[string]func(*Outcome){
		"a unit is left":            func(o *Outcome) { o.Stock[0].Counters = ledger.Counters{Available: 1, Confirmed: 4, Capacity: 5} },
		"a unit is held for nobody": func(o *Outcome) { o.Stock[0].Counters = ledger.Counters{Held: 1, Confirmed: 4, Capacity: 5} },
		"sold below zero":           func(o *Outcome) { o.Stock[0].Counters = ledger.Counters{Available: -1, Confirmed: 6, Capacity: 5} },
		"units appeared":            func(o *Outcome) { o.Stock[0].Counters = ledger.Counters{Confirmed: 6, Capacity: 6} },
		"a shard is missing":        func(o *Outcome) { o.Shards = 3 },
		"promised twice":            func(o *Outcome) { o.AcceptedUnits, o.sold = 11, 11 },
		"promised too little":       func(o *Outcome) { o.AcceptedUnits = 9 },
		"taken for nobody":          func(o *Outcome) { o.sold = 11 },
		"stock items not seen":      func(o *Outcome) { o.SoldCalls.StockItems = 3 },
		"refused too early":         func(o *Outcome) { o.RefusedWrong = 1 },
		"no more buyers than units": func(o *Outcome) { o.Refused = 0 },
	} {
		o := soldOut()
		if spoil(&o); o.Check() == nil {
			t.Errorf("%s: the check is content", name)
		}
	}
}
