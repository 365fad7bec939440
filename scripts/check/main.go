// Command check runs everything that must hold before a change lands: the same list
// here and in CI.
//
//	go run ./scripts/check            everything
//	go run ./scripts/check -only lint one step, by name
//
// Every step runs even when an earlier one failed, so that one run tells all; the exit
// status is 1 if any did.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"time"
)

func main() {
	only := flag.String("only", "", "run the step of this name only")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	failed, err := run(ctx, os.Stdout, steps(), *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(2)
	}
	if len(failed) > 0 {
		fmt.Printf("\ncheck: FAILED: %s\n", strings.Join(failed, ", "))
		os.Exit(1)
	}
	fmt.Println("\ncheck: all steps passed")
}

// stepTimeout bounds one step. The longest is the race detector's on a cold cache.
const stepTimeout = 40 * time.Minute

// step is one thing that must hold.
type step struct {
	name string
	why  string
	run  func(ctx context.Context, out io.Writer) error
}

// run runs the steps and returns the names of those that failed.
func run(ctx context.Context, out io.Writer, all []step, only string) ([]string, error) {
	var failed []string
	found := false
	for _, s := range all {
		if only != "" && s.name != only {
			continue
		}
		found = true
		fmt.Fprintf(out, "\n== %s: %s\n", s.name, s.why)
		started := time.Now()
		err := runStep(ctx, out, s)
		verdict := "ok"
		if err != nil {
			verdict = "FAILED: " + err.Error()
			failed = append(failed, s.name)
		}
		fmt.Fprintf(out, "-- %s: %s (%.1f s)\n", s.name, verdict, time.Since(started).Seconds())
	}
	if !found {
		return nil, fmt.Errorf("there is no step %q", only)
	}
	return failed, ctx.Err()
}

func runStep(ctx context.Context, out io.Writer, s step) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return s.run(ctx, out)
}

// command runs a program in the module's root and shows what it prints.
func command(ctx context.Context, out io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd.Run()
}

// output runs a program and returns what it prints on its standard output.
func output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	return string(text), err
}
