package main

import (
	"io"
	"testing"
	"time"

	"holdfast/scripts/internal/hotslot"
)

// A ratio is of accepted requests in a second, not of units or of refusals.
func TestHotRatioIsOfAcceptedRequests(t *testing.T) {
	run := func(accepted int, took time.Duration) *hotRun {
		return &hotRun{outcome: hotslot.Outcome{Accepted: accepted, Took: took, Units: 1000, Refused: accepted * 7}}
	}
	if got := hotRatio(run(400, 2*time.Second), run(500, 10*time.Second)); got != 4 {
		t.Errorf("200 a second against 50 a second: %v, want 4", got)
	}
}

// Each ceiling of a loser fails the run by itself, by its average over the losers.
func TestLosersHaveCeilings(t *testing.T) {
	const losers = 100
	cheap := hotslot.Calls{StockReads: 105, Proofs: 10, OtherReads: 400, Transactions: 10}
	judge := func(c hotslot.Calls) error {
		return printLosers(io.Discard, []*hotRun{{shards: 16, outcome: hotslot.Outcome{Losers: losers, LoserCalls: c}}})
	}
	if err := judge(cheap); err != nil {
		t.Errorf("what is allowed: %v", err)
	}
	for name, spoil := range map[string]func(*hotslot.Calls){
		"stock reads": func(c *hotslot.Calls) { c.StockReads++ },
		"proofs":      func(c *hotslot.Calls) { c.Proofs++ },
		"other reads": func(c *hotslot.Calls) { c.OtherReads++ },
		"writes":      func(c *hotslot.Calls) { c.Transactions++ },
	} {
		dear := cheap
		if spoil(&dear); judge(dear) == nil {
			t.Errorf("one more of the %s passed", name)
		}
	}
}
