package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast/scripts/internal/build"
)

const (
	// simulationMax bounds the histories of one mutant. They take about ten seconds.
	simulationMax = 3 * time.Minute
	// testsMax bounds the tests of one mutant, with their build.
	testsMax = 6 * time.Minute
	// testMax is what go test is told. It is below testsMax, so that a test that hangs is
	// named.
	testMax = 4 * time.Minute
	// outputShownMax bounds what an error tells of a program's output.
	outputShownMax = 4000
)

// outcome is what became of a mutant.
type outcome struct {
	mutant mutant
	// seeds is how many histories it took the simulation, and promises are those that the
	// last of them broke. Zero seeds: the simulation noticed nothing.
	seeds    int
	promises []string
	// tests are those that failed, if they were asked.
	tests []string
}

func (o outcome) killed() bool { return o.seeds > 0 || len(o.tests) > 0 }

// try plays the simulation against the copy, and asks the tests if that shows nothing.
func (w *workspace) try(ctx context.Context, m mutant, o options) (outcome, error) {
	out := outcome{mutant: m}
	err := w.with(m, func() error {
		if err := build.Program(ctx, w.root, "./scripts/sim", "", w.sim); err != nil {
			return err
		}
		var err error
		if out.seeds, out.promises, err = w.simulate(ctx, o); err != nil || out.seeds > 0 {
			return err
		}
		out.tests, err = w.test(ctx, m.tests)
		return err
	})
	if err != nil {
		return out, fmt.Errorf("mutant %q: %w", m.name, err)
	}
	return out, nil
}

// firstViolation is how scripts/sim tells of a failing seed, and of the promises that it
// breaks.
var firstViolation = regexp.MustCompile(`(?m)^first violation: seed (\d+) breaks (.+)$`)

// simulate plays histories until one of them breaks a promise. One mutant is played by
// one worker, and several mutants at once.
func (w *workspace) simulate(ctx context.Context, o options) (seeds int, promises []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, simulationMax)
	defer cancel()
	text, failed, err := w.program(ctx, w.sim, "-first", "-kept=false", "-workers=1",
		"-histories="+strconv.Itoa(o.histories), "-seed="+strconv.FormatUint(o.seed, 10))
	if err != nil || !failed {
		return 0, nil, err
	}
	found := firstViolation.FindStringSubmatch(text)
	if found == nil {
		return 0, nil, fmt.Errorf("the simulation failed in another way:\n%s", end(text))
	}
	seed, err := strconv.ParseUint(found[1], 10, 64)
	return int(seed-o.seed) + 1, strings.Split(found[2], ","), err
}

// failedTest finds the tests that failed, those within another one left aside.
var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// test returns the names of the tests that fail. It returns none for no packages.
func (w *workspace) test(ctx context.Context, packages []string) ([]string, error) {
	if len(packages) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, testsMax)
	defer cancel()
	text, failed, err := w.program(ctx, "go", append([]string{"test", "-count=1", "-vet=off", "-timeout=" + testMax.String()}, packages...)...)
	if err != nil || !failed {
		return nil, err
	}
	var names []string
	for _, found := range failedTest.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("go test failed without naming a test:\n%s", end(text))
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// program runs a program in the copy and reports whether it exited with 1, which both the
// simulation and go test do when they found something. Any other end is an error. Its
// processes end with it.
func (w *workspace) program(ctx context.Context, name string, arguments ...string) (output string, failed bool, err error) {
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, name, arguments...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.root, &text, &text
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return "", false, fmt.Errorf("%s did not end: %w\n%s", name, context.Cause(ctx), end(text.String()))
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return text.String(), true, nil
	case err != nil:
		return "", false, fmt.Errorf("%s: %w\n%s", name, err, end(text.String()))
	}
	return text.String(), false, nil
}

// end is the last part of a long text.
func end(text string) string { return text[max(0, len(text)-outputShownMax):] }
