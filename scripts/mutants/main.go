// Command mutants breaks the ledger on purpose, in one way at a time, and shows that
// something notices: the simulation, or else the tests of a package.
//
//	go run ./scripts/mutants             all of them
//	go run ./scripts/mutants -write      the same, and write scripts/mutants/TABLE.md
//	go run ./scripts/mutants -only NAME  one of them
//
// A check that has never failed proves nothing: it may look at the wrong thing, or at
// nothing. Each mutant is a mistake that somebody could make, with the harm that it would
// do. It is applied to a temporary copy of the tracked files, never to the working tree.
// The simulation plays fixed seeds against the copy until one of them breaks a promise.
// What it cannot see, such as a wrong answer to a request that the workload never sends,
// is left to the tests that the mutant names.
//
// The unchanged copy is tried first: the histories must all be kept and the tests must
// pass, or else what fails later would show nothing. A mutant that nothing notices is a
// hole in the checks, and the exit status is 1. It is 2 when the run itself failed, for
// example because a mutant no longer fits the code.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"holdfast/scripts/internal/build"
)

const (
	// historiesDefault is how many histories a mutant has to survive before it is left to
	// the tests. The median of the killed ones is far below it.
	historiesDefault = 400
	// seedsMedianMax bounds the median of the seeds that it takes to kill a mutant: a
	// simulation that needs more finds real mistakes too late.
	seedsMedianMax = 200
	// runMax bounds the whole run.
	runMax = time.Hour
	// tableFile is what -write writes, in the module's root.
	tableFile = "scripts/mutants/TABLE.md"
)

type options struct {
	only      string
	write     bool
	histories int
	seed      uint64
	workers   int
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "try the mutant of this name only")
	flag.BoolVar(&o.write, "write", false, "write "+tableFile)
	flag.IntVar(&o.histories, "histories", historiesDefault, "histories that a mutant has to survive")
	flag.Uint64Var(&o.seed, "seed", 1, "the first seed")
	flag.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "mutants tried at once")
	flag.Parse()
	good, err := run(os.Stdout, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if !good {
		os.Exit(1)
	}
}

// run tries the mutants and prints what became of them. It reports whether all were
// killed, and early enough.
func run(out io.Writer, o options) (bool, error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, runMax)
	defer cancel()
	chosen := mutants()
	if o.only != "" {
		chosen = slices.DeleteFunc(chosen, func(m mutant) bool { return m.name != o.only })
	}
	if len(chosen) == 0 || o.histories < 1 || o.workers < 1 || o.write && o.only != "" {
		return false, fmt.Errorf("there is no mutant %q, or -histories or -workers is below 1, or -write goes with -only", o.only)
	}
	root, err := build.ModuleRoot(".")
	if err != nil {
		return false, err
	}
	if err := fit(root, chosen); err != nil {
		return false, err
	}
	started := time.Now()
	outcomes, err := tryAll(ctx, out, root, chosen, o)
	if err != nil {
		return false, err
	}
	s := summarize(outcomes)
	fmt.Fprintf(out, "\n%s\n%d s\n", s, int(time.Since(started).Seconds()))
	if o.write {
		if err := os.WriteFile(filepath.Join(root, tableFile), []byte(markdown(outcomes, o)), 0o644); err != nil { //nolint:gosec // a page to read
			return false, fmt.Errorf("write the table: %w", err)
		}
	}
	return s.good(), nil
}
