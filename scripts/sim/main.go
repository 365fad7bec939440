// Command sim plays simulated histories of the whole ledger and looks for a broken
// promise.
//
//	go run ./scripts/sim -histories 2000            fresh seeds, and the kept ones
//	go run ./scripts/sim -histories 100000 -seed 1  seeds 1, 2, 3, …
//	go run ./scripts/sim -replay 4711               one history, line by line
//
// The same seed gives the same history, to the byte. For a violation it prints the
// smallest history that still shows it and the command that plays it again, and exits
// with 1.
package main

import (
	"crypto/rand"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"holdfast/shared/httpapi"
	"holdfast/shared/sim"
)

func main() {
	var o options
	flag.IntVar(&o.histories, "histories", 2000, "histories to play")
	flag.Uint64Var(&o.seed, "seed", 0, "the first seed; 0 draws one")
	flag.IntVar(&o.workers, "workers", runtime.GOMAXPROCS(0), "histories played at once")
	flag.BoolVar(&o.kept, "kept", true, "also play the seeds that once failed")
	flag.BoolVar(&o.first, "first", false, "stop at the first history that breaks a promise, and say only which one it is")
	flag.Uint64Var(&o.replay, "replay", 0, "play this one seed and print it line by line")
	flag.StringVar(&o.skip, "skip", "", "with -replay: numbers of requests to leave out, with commas")
	flag.StringVar(&o.without, "without", "", "with -replay: kinds of faults to turn off, with commas")
	flag.Parse()
	debug.SetGCPercent(garbagePercent)
	broken, err := run(os.Stdout, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		os.Exit(2)
	}
	if broken {
		os.Exit(1)
	}
}

// garbagePercent lets garbage grow to several times of what is alive before it is
// collected. A history is small and short, so memory stays below some hundred megabytes,
// and a third of the time is saved.
const garbagePercent = 800

type options struct {
	histories     int
	seed, replay  uint64
	workers       int
	kept, first   bool
	skip, without string
}

// historiesMax bounds a run, so that it ends by itself.
const historiesMax = 10_000_000

// run does what the options say. It reports whether a promise was broken.
func run(out io.Writer, o options) (bool, error) {
	if o.histories < 0 || o.histories > historiesMax || o.workers < 1 {
		return false, fmt.Errorf("-histories must be 0 to %d, and -workers at least 1", historiesMax)
	}
	contract, err := httpapi.LoadContract()
	if err != nil {
		return false, err
	}
	if o.replay != 0 {
		left, err := leftOut(o, contract)
		if err != nil {
			return false, err
		}
		return replay(out, o.replay, left), nil
	}
	if o.seed == 0 {
		o.seed = drawSeed()
	}
	campaign := sim.Campaign{First: o.seed, Histories: o.histories, Workers: o.workers, Contract: contract, FailuresMax: sim.FailuresMax}
	if o.first {
		campaign.FailuresMax = 1
	}
	if o.kept {
		campaign.Also = sim.KeptSeeds()
	}
	fmt.Fprintf(out, "playing %d histories from seed %d on, and %d kept ones\n", o.histories, o.seed, len(campaign.Also))
	report := campaign.Play()
	fmt.Fprintln(out, report)
	if o.first && len(report.Failed) > 0 {
		fmt.Fprintln(out, firstLine(report.Failed[0]))
		return true, nil
	}
	for _, failed := range report.Failed {
		explain(out, failed, sim.Options{Contract: contract})
	}
	return len(report.Failed) > 0, nil
}

// firstLine says which history broke which promises, in a form that programs read too.
func firstLine(failed sim.Result) string {
	var promises []string
	for _, v := range failed.Violations {
		if !slices.Contains(promises, v.Promise) {
			promises = append(promises, v.Promise)
		}
	}
	return fmt.Sprintf("first violation: seed %d breaks %s", failed.Seed, strings.Join(promises, ","))
}

// drawSeed draws a first seed that is short enough to be typed.
func drawSeed() uint64 {
	var b [4]byte
	rand.Read(b[:])
	return uint64(binary.BigEndian.Uint32(b[:]))/2 + 1
}

// explain shrinks a failing history and prints it with the command that plays it again.
func explain(out io.Writer, failed sim.Result, o sim.Options) {
	smallest := sim.Shrink(failed.Seed, o)
	command := fmt.Sprintf("go run ./scripts/sim -replay %d", failed.Seed)
	if skipped := numbers(smallest.Skip); skipped != "" {
		command += " -skip " + skipped
	}
	if len(smallest.Without) > 0 {
		command += " -without " + strings.Join(smallest.Without, ",")
	}
	fmt.Fprintf(out, "\nseed %d breaks a promise:\n", failed.Seed)
	for _, v := range failed.Violations[:min(len(failed.Violations), violationsShown)] {
		fmt.Fprintln(out, "  "+v.String())
	}
	fmt.Fprintln(out, "the smallest history that shows it:")
	replay(out, failed.Seed, smallest)
	fmt.Fprintf(out, "play it again:\n  %s\n", command)
}

// violationsShown bounds what is printed of one history's violations.
const violationsShown = 5

// replay plays one history and prints it. It reports whether a promise was broken.
func replay(out io.Writer, seed uint64, o sim.Options) bool {
	o.Trace = true
	result := sim.Run(seed, o)
	for _, plan := range result.Plans {
		fmt.Fprintln(out, "plan  "+plan)
	}
	fmt.Fprint(out, result.Trace)
	for _, v := range result.Violations {
		fmt.Fprintln(out, v)
	}
	return len(result.Violations) > 0
}

func leftOut(o options, contract *httpapi.Contract) (sim.Options, error) {
	left := sim.Options{Contract: contract, Skip: map[int]bool{}}
	if o.without != "" {
		left.Without = strings.Split(o.without, ",")
	}
	if o.skip != "" {
		for _, text := range strings.Split(o.skip, ",") {
			number, err := strconv.Atoi(text)
			if err != nil {
				return left, fmt.Errorf("-skip: %q is no number", text)
			}
			left.Skip[number] = true
		}
	}
	return left, left.Validate()
}

func numbers(skip map[int]bool) string {
	var texts []string
	for number := range sim.PlansOfOneHistory {
		if skip[number] {
			texts = append(texts, strconv.Itoa(number))
		}
	}
	return strings.Join(texts, ",")
}
