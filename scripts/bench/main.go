// Command bench measures Holdfast against what the database engine itself can do, both
// in one run on one engine.
//
//	go run ./scripts/bench            holds per second, and write units of two lives
//
// The local engine is not DynamoDB: its absolute figures say little about AWS. What
// carries over is the ratio between our handler and the bare transaction, and the write
// units, which the engine counts as DynamoDB does. A ratio below its floor, or a life that
// costs more than its ceiling, is an error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	holds := flag.Int("holds", 2000, "holds in one round")
	rounds := flag.Int("rounds", 7, "rounds of each kind; the median is printed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *holds, *rounds)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// Bounds of the flags, so that a run ends by itself.
const (
	holdsMax  = 100_000
	roundsMax = 99
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
