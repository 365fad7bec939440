// Command bench measures Holdfast against what the database engine itself can do, both
// in one run on one engine.
//
//	go run ./scripts/bench            holds per second, and write units of two lives
//	go run ./scripts/bench expiry     a peak of overdue holds, ended beside confirms
//	go run ./scripts/bench hot        one slot and more buyers than units, on one shard and on many
//	go run ./scripts/bench scale      what a call costs in a small table and in a large one
//	go run ./scripts/bench audit      what an audit costs in a small table and in a large one,
//	                                  and with -faults what it finds beside traffic
//
// The local engine is not DynamoDB: its absolute figures say little about AWS. What
// carries over is the ratio between our handler and the bare transaction, and the write
// units, which the engine counts as DynamoDB does. A ratio below its floor, a life or a
// loser that costs more than its ceiling, a sale that is not exact, and a call that costs
// more in a larger table are errors.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := command(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// command runs the bench that the arguments name.
func command(ctx context.Context, out io.Writer, arguments []string) error {
	named := ""
	if len(arguments) > 0 {
		named = arguments[0]
	}
	switch named {
	case "expiry":
		return expiryCommand(ctx, out, arguments[1:])
	case "hot":
		return hotCommand(ctx, out, arguments[1:])
	case "scale":
		return scaleCommand(ctx, out, arguments[1:])
	case "audit":
		return auditCommand(ctx, out, arguments[1:])
	}
	flags := flag.NewFlagSet("bench", flag.ExitOnError)
	holds := flags.Int("holds", 2000, "holds in one round")
	rounds := flags.Int("rounds", 7, "rounds of each kind; the median is printed")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "Usage of bench; others are `bench expiry`, `bench hot`, `bench scale` and `bench audit`, each with -h:")
		flags.PrintDefaults()
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("there is no bench %q; there are expiry, hot, scale and audit, and one without a name", flags.Arg(0))
	}
	return run(ctx, out, *holds, *rounds)
}

func expiryCommand(ctx context.Context, out io.Writer, arguments []string) error {
	flags := flag.NewFlagSet("bench expiry", flag.ExitOnError)
	// The default is the peak of a large shop: 200 holds a second for ten minutes.
	overdue := flags.Int("holds", 120_000, "holds that are due in one second")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	return runExpiry(ctx, out, *overdue)
}

func hotCommand(ctx context.Context, out io.Writer, arguments []string) error {
	flags := flag.NewFlagSet("bench hot", flag.ExitOnError)
	units := flags.Int("units", 10_000, "units of the slot")
	shards := flags.Int("shards", 16, "shards of the slot, against one")
	workers := flags.Int("workers", 16, "containers at the same time")
	partitionUnits := flags.Int("partition-units", 100, "write units a second of a throttled partition; DynamoDB's take 1,000")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *units < 1 || *units > hotUnitsMax || *shards < 2 || *shards > ledger.ShardsMax || *workers < 1 || *workers > workersMax ||
		*partitionUnits < 1 || *partitionUnits > partitionUnitsMax {
		return fmt.Errorf("-units must be 1 to %d, -shards 2 to %d, -workers 1 to %d and -partition-units 1 to %d",
			hotUnitsMax, ledger.ShardsMax, workersMax, partitionUnitsMax)
	}
	b, err := newBench(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	return b.measureHot(ctx, out, hotSale{*units, *shards, *workers, *partitionUnits})
}

func scaleCommand(ctx context.Context, out io.Writer, arguments []string) error {
	flags := flag.NewFlagSet("bench scale", flag.ExitOnError)
	// The default takes minutes. A million slots are four million items: up to ten minutes of
	// seeding on a machine at rest, and some 10 GB of the disk for temporary files.
	largest := flags.Int("largest", 100_000, "slots and holds of the largest table; the smaller ones have a tenth each, down to 1,000")
	rounds := flags.Int("rounds", 300, "calls of each kind on each table; the median is judged")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	sizes, err := scaleSizes(*largest)
	if err != nil {
		return err
	}
	if *rounds < 1 || *rounds > scaleRoundsMax {
		return fmt.Errorf("-rounds must be 1 to %d", scaleRoundsMax)
	}
	return runScale(ctx, out, sizes, *rounds)
}

func auditCommand(ctx context.Context, out io.Writer, arguments []string) error {
	flags := flag.NewFlagSet("bench audit", flag.ExitOnError)
	largest := flags.Int("largest", 100_000, "holds of the largest table; the others have 30 % and 10 % of them")
	faults := flags.Bool("faults", false, "audit the largest table beside traffic, clean and then with twelve faults, and repair it")
	rounds := flags.Int("rounds", 20, "clean audits beside traffic, with -faults")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *largest < auditHoldsMin || *largest > holdsMax || *rounds < 0 || *rounds > roundsMax {
		return fmt.Errorf("-largest must be %d to %d and -rounds 0 to %d", auditHoldsMin, holdsMax, roundsMax)
	}
	if *faults {
		return runAuditFaults(ctx, out, *largest, *rounds, system.RealClock{}.Sleep)
	}
	return runAuditCost(ctx, out, []int{*largest / 10, *largest * 3 / 10, *largest})
}

// Bounds of the flags, so that a run ends by itself.
const (
	holdsMax  = 100_000
	dueMax    = 1_000_000
	roundsMax = 99
	// auditHoldsMin leaves enough of every kind to plant each fault in.
	auditHoldsMin = 1_000

	hotUnitsMax = 100_000
	workersMax  = 64
	// partitionUnitsMax is what a partition of DynamoDB takes.
	partitionUnitsMax = 1_000
)

func run(ctx context.Context, out io.Writer, holds, rounds int) error {
	if holds < 1 || holds > holdsMax || rounds < 1 || rounds > roundsMax {
		return fmt.Errorf("-holds must be 1 to %d and -rounds 1 to %d", holdsMax, roundsMax)
	}
	b, err := newBench(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	throughput := b.measureThroughput(ctx, out, holds, rounds)
	return errors.Join(throughput, b.measureWriteUnits(ctx, out), b.measurePaidUnits(ctx, out))
}

func runExpiry(ctx context.Context, out io.Writer, holds int) error {
	if holds < 1 || holds > dueMax {
		return fmt.Errorf("-holds must be 1 to %d", dueMax)
	}
	b, err := newBench(ctx)
	if err != nil {
		return err
	}
	defer b.close()
	return b.measureExpiry(ctx, out, holds)
}
