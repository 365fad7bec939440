package hotslot_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"holdfast/scripts/internal/hotslot"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

// The default is small enough for every run of the tests. The whole size is
//
//	go test ./scripts/internal/hotslot -run P10 -hot.units 10000 -hot.shards 16 -timeout 30m
var (
	units  = flag.Int("hot.units", 400, "units of the one slot that is sold")
	shards = flag.Int("hot.shards", 8, "shards of the slot")
)

const (
	// workers are containers at the same time: more than the shards of the default.
	workers = 16
	// losers are refused by each worker when everything is sold.
	losers = 3
)

// planned is the sale of the flags.
func planned() hotslot.Plan {
	return hotslot.Plan{
		Slot: "drop-2026-11-30", Units: ledger.Units(*units), Shards: *shards,
		Workers: workers, LosersPerWorker: losers, Confirm: true, Seed: 1,
	}
}

// wantSold sells the slot through client and requires that every promise was kept.
func wantSold(t *testing.T, plan hotslot.Plan, client dynamo.Client, table string, clock system.Clock) hotslot.Outcome {
	t.Helper()
	outcome, err := hotslot.Run(t.Context(), plan, hotslot.Ports{Client: client, Table: table, Clock: clock, Random: system.RealRandom{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := outcome.Check(); err != nil {
		t.Error(err)
	}
	if outcome.Refused < workers || outcome.Losers != losers*workers || outcome.Confirmed != outcome.Units {
		t.Errorf("%d refused, %d losers, %d units confirmed: the sale was not as it was planned", outcome.Refused, outcome.Losers, outcome.Confirmed)
	}
	t.Logf("%d accepted, %d probed, %d split, %d turned away; of %d refusals %d surely right, %d surely wrong",
		outcome.Accepted, outcome.Probed, outcome.Split, outcome.TurnedAway, outcome.Refused, outcome.RefusedRight, outcome.RefusedWrong)
	return outcome
}

// P10, P1: more buyers than units of one slot with many shards. Exactly all units are
// sold, nobody is told that they are while one is free, and none is left behind.
func TestP10_HotSlotIsSoldExactly(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	outcome := wantSold(t, planned(), client, table, system.RealClock{})
	if outcome.RefusedRight == 0 {
		t.Error("no refusal could be shown to be right: this sale shows nothing about them")
	}
}

// The same where hardly any shard has what a buyer asks for, so that the last resort of a
// split over shards is taken all the time, many times.
func TestP10_ThinShardsAreSoldExactly(t *testing.T) {
	const sales, unitsPerShard = 8, 2
	client, table := dynamotest.NewTable(t)
	split := 0
	for i := range sales {
		plan := planned()
		plan.Slot = ledger.SlotID(fmt.Sprintf("thin-%d", i))
		plan.Units, plan.Seed = ledger.Units(plan.Shards*unitsPerShard), uint64(i)
		split += wantSold(t, plan, client, table, system.RealClock{}).Split
	}
	if split == 0 {
		t.Error("no buyer's units came from more than one shard")
	}
}

// The same on a table whose partitions take 100 write units a second, a tenth of what
// DynamoDB's take. The clock moves only while somebody waits, so every partition meets its
// limit, however slow the engine is.
func TestP10_HotSlotIsSoldExactlyWithThrottledPartitions(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	clock := systemtest.NewClock(time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC))
	limit := dynamotest.PartitionLimit{WriteUnitsPerSecond: 100, BurstFor: 100 * time.Millisecond}
	throttled := dynamotest.NewThrottled(client, limit, clock)
	outcome := wantSold(t, planned(), throttled, table, clock)
	if counts := throttled.Counts(); counts.Throttled == 0 || outcome.SoldCalls.Throttled == 0 {
		t.Errorf("%+v, and %d calls of buyers: no partition met its limit", counts, outcome.SoldCalls.Throttled)
	}
}
