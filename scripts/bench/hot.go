package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"holdfast/scripts/internal/hotslot"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const (
	// hotPartitionBurst is for how long a throttled partition saves up what nobody takes.
	hotPartitionBurst = 100 * time.Millisecond
	// hotRatioFloor is how many times as fast many shards must be as one, where partitions
	// are the limit: by far less than there are shards, because the machine is the next limit.
	hotRatioFloor = 4.0
	// losersPerWorker are refused by each container after everything is sold.
	losersPerWorker = 25
	// What a loser may cost, on average: one batch read of the slot's stock, and beside it
	// the request's idempotency record and the lists from which the answer is made. The
	// first loser of a container, and the first after two quiet seconds, pays more, and is
	// printed apart.
	loserStockReadsCeiling = 1.05
	loserProofsCeiling     = 0.05
	loserWritesCeiling     = 0.05
	loserOtherReadsCeiling = 4.00
)

// hotSale is what is sold in every run. Its partitions, where they are throttled, take far
// less than DynamoDB's, because the local engine cannot reach the real limit.
type hotSale struct{ units, shards, workers, partitionUnits int }

// hotRun is one sale of the bench.
type hotRun struct {
	shards    int
	throttled bool
	outcome   hotslot.Outcome
	throttles int
}

// measureHot prints how fast one slot is sold to more buyers than it has units: on many
// shards against one, on the plain engine and with throttled partitions, and what those
// cost who come too late. It returns an error if a sale was not exact, if many shards do
// not help, or if a loser costs more than its ceilings.
func (b *bench) measureHot(ctx context.Context, out io.Writer, of hotSale) error {
	fmt.Fprintf(out, "one slot of %d units, buyers of 1 to 4 units, %d containers at once; throttled: %d write units a second for each partition\n",
		of.units, of.workers, of.partitionUnits)
	fmt.Fprintf(out, "%10s %7s %9s %11s %8s %8s %10s %10s %9s\n",
		"partitions", "shards", "accepted", "accepted/s", "probed", "split", "throttles", "come again", "refused")
	runs := []*hotRun{{shards: 1}, {shards: of.shards}, {shards: 1, throttled: true}, {shards: of.shards, throttled: true}}
	var failures []error
	for i, run := range runs {
		if err := b.sell(ctx, run, fmt.Sprintf("drop-%d", i), of); err != nil {
			return err
		}
		run.print(out)
		if err := run.outcome.Check(); err != nil {
			failures = append(failures, fmt.Errorf("%s on %d shards: %w", run.partitions(), run.shards, err))
		}
	}
	failures = append(failures, judgeShards(out, runs, of))
	return errors.Join(append(failures, printLosers(out, runs))...)
}

// judgeShards prints what many shards gain, by the runs of measureHot, and returns an error
// if it is too little.
func judgeShards(out io.Writer, runs []*hotRun, of hotSale) error {
	plain, throttled := hotRatio(runs[1], runs[0]), hotRatio(runs[3], runs[2])
	fmt.Fprintf(out, "%d shards do %.2f of one shard on the plain engine, which makes one write after the other, so that shards gain nothing there\n", of.shards, plain)
	fmt.Fprintf(out, "%d shards do %.2f of one shard where partitions are throttled (at least %.2f)\n", of.shards, throttled, hotRatioFloor)
	if throttled >= hotRatioFloor {
		return nil
	}
	err := fmt.Errorf("%d shards do %.2f of one shard, less than %.2f", of.shards, throttled, hotRatioFloor)
	// One shard alone makes half as many transactions as it has units.
	if needed := hotRatioFloor * float64(of.partitionUnits) / 2; runs[1].outcome.PerSecond() < needed {
		err = fmt.Errorf("%w; the plain engine makes %.0f a second on this machine now, and %.0f are needed to show it: take fewer -partition-units, or a machine at rest",
			err, runs[1].outcome.PerSecond(), needed)
	}
	return err
}

// sell carries out one sale.
func (b *bench) sell(ctx context.Context, run *hotRun, slot string, of hotSale) error {
	clock := system.RealClock{}
	ports := hotslot.Ports{Client: b.client, Table: tableName, Clock: clock, Random: system.RealRandom{}}
	var throttled *dynamotest.Throttled
	if run.throttled {
		limit := dynamotest.PartitionLimit{WriteUnitsPerSecond: float64(of.partitionUnits), BurstFor: hotPartitionBurst}
		throttled = dynamotest.NewThrottled(b.client, limit, clock)
		ports.Client = throttled
	}
	var err error
	run.outcome, err = hotslot.Run(ctx, hotslot.Plan{
		Slot: ledger.SlotID(slot), Units: ledger.Units(of.units), Shards: run.shards, Workers: of.workers, LosersPerWorker: losersPerWorker, Seed: 1,
	}, ports)
	if throttled != nil {
		run.throttles = throttled.Counts().Throttled
	}
	return err
}

func (r *hotRun) partitions() string {
	if r.throttled {
		return "throttled"
	}
	return "plain"
}

func (r *hotRun) print(out io.Writer) {
	o := r.outcome
	fmt.Fprintf(out, "%10s %7d %9d %11.1f %7.1f%% %7.1f%% %10d %10d %9d\n", r.partitions(), r.shards, o.Accepted, o.PerSecond(),
		percent(o.Probed, o.Accepted), percent(o.Split, o.Accepted), r.throttles, o.TurnedAway, o.Refused)
}

// hotRatio is how many times as fast the sale a was as the sale b.
func hotRatio(a, b *hotRun) float64 { return a.outcome.PerSecond() / b.outcome.PerSecond() }

func percent(part, whole int) float64 { return 100 * float64(part) / float64(max(1, whole)) }

// printLosers prints what a loser costs, and returns an error for each ceiling that is
// passed.
func printLosers(out io.Writer, runs []*hotRun) error {
	fmt.Fprintf(out, "a buyer who comes when all is sold costs, in calls to the table; the first one of each container apart:\n")
	fmt.Fprintf(out, "%10s %7s %6s %7s %11s %9s %11s %13s\n", "partitions", "shards", "", "losers", "stock reads", "proofs", "other reads", "failed writes")
	var failures []error
	for _, run := range runs {
		o := run.outcome
		printCosts(out, run, "first", o.FirstLosers, costOf(o.FirstLoserCalls, o.FirstLosers))
		costs := costOf(o.LoserCalls, o.Losers)
		printCosts(out, run, "then", o.Losers, costs)
		for _, cost := range costs {
			if cost.calls > cost.ceiling {
				failures = append(failures, fmt.Errorf("a loser on %d shards, %s, costs %.2f %s, more than %.2f",
					run.shards, run.partitions(), cost.calls, cost.what, cost.ceiling))
			}
		}
	}
	fmt.Fprintf(out, "%10s %7s %6s %7s %11.2f %9.2f %11.2f %13.2f\n", "at most", "", "then", "",
		loserStockReadsCeiling, loserProofsCeiling, loserOtherReadsCeiling, loserWritesCeiling)
	return errors.Join(failures...)
}

// loserCost is how many calls of one kind a loser makes, and how many it may make.
type loserCost struct {
	what           string
	calls, ceiling float64
}

// costOf is the average over so many losers.
func costOf(c hotslot.Calls, losers int) []loserCost {
	each := func(calls int) float64 { return float64(calls) / float64(max(1, losers)) }
	return []loserCost{
		{"stock reads", each(c.StockReads), loserStockReadsCeiling},
		{"proofs", each(c.Proofs), loserProofsCeiling},
		{"other reads", each(c.OtherReads), loserOtherReadsCeiling},
		{"failed writes", each(c.Transactions), loserWritesCeiling},
	}
}

func printCosts(out io.Writer, run *hotRun, which string, losers int, costs []loserCost) {
	fmt.Fprintf(out, "%10s %7d %6s %7d %11.2f %9.2f %11.2f %13.2f\n", run.partitions(), run.shards, which, losers,
		costs[0].calls, costs[1].calls, costs[2].calls, costs[3].calls)
}
