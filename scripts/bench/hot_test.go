package main

import (
	"io"
	"strings"
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

// Many shards must help where partitions are the limit, and need not where they are not. A
// machine that is too slow to show it is told what to do.
func TestShardsMustHelp(t *testing.T) {
	judge := func(oneEach, manyEach float64, plainEach float64) error {
		run := func(perSecond float64) *hotRun {
			return &hotRun{outcome: hotslot.Outcome{Accepted: 1000, Took: time.Duration(1000 / perSecond * float64(time.Second))}}
		}
		return judgeShards(io.Discard, []*hotRun{run(plainEach), run(plainEach), run(oneEach), run(manyEach)},
			hotSale{shards: 16, partitionUnits: 100})
	}
	if err := judge(50, 201, 600); err != nil {
		t.Errorf("four times as fast: %v", err)
	}
	if err := judge(50, 190, 600); err == nil || strings.Contains(err.Error(), "-partition-units") {
		t.Errorf("too slow for no reason: %v", err)
	}
	if err := judge(50, 190, 195); err == nil || !strings.Contains(err.Error(), "-partition-units") {
		t.Errorf("a machine that is too slow: %v", err)
	}
}

// Each ceiling of a loser fails the run by itself, by its average over the losers.
func TestLosersHaveCeilings(t *testing.T) {
	const losers = 100
	cheap := hotslot.Calls{StockReads: 105, Proofs: 5, OtherReads: 400, Transactions: 5}
	judge := func(c hotslot.Calls) error {
		return printLosers(io.Discard, []*hotRun{{shards: 16, outcome: hotslot.Outcome{Losers: losers, LoserCalls: c, FirstLosers: 1, FirstLoserCalls: hotslot.Calls{Transactions: 9}}}})
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
