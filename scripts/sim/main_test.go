package main

import (
	"bytes"
	"strings"
	"testing"

	"holdfast/shared/sim"
)

// scripts/mutants reads this line, so its form is fixed: the seed, and each promise once,
// in the order in which they were broken.
func TestFirstLine(t *testing.T) {
	failed := sim.Result{Seed: 7, Violations: []sim.Violation{{Promise: "P3"}, {Promise: "P5"}, {Promise: "P3"}}}
	if got, want := firstLine(failed), "first violation: seed 7 breaks P3,P5"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestRunPlaysWhatItIsAskedFor(t *testing.T) {
	var out bytes.Buffer
	broken, err := run(&out, options{histories: 3, seed: 1, workers: 2})
	if err != nil || broken || !strings.Contains(out.String(), "histories=3 ") {
		t.Errorf("broken %t, error %v, output %q; want three good histories", broken, err, out.String())
	}
	out.Reset()
	broken, err = run(&out, options{replay: 5, workers: 1, skip: "1,2", without: "crash"})
	text := out.String()
	if err != nil || broken || !strings.Contains(text, "seed 5, ") || !strings.Contains(text, "plan  #0 ") ||
		strings.Contains(text, "plan  #1 ") {
		t.Errorf("broken %t, error %v; want seed 5 without request 1:\n%s", broken, err, text)
	}
}

func TestRunRefusesWhatThereIsNot(t *testing.T) {
	for _, o := range []options{
		{histories: -1, workers: 1}, {histories: historiesMax + 1, workers: 1}, {workers: 0},
		{replay: 1, workers: 1, skip: "x"}, {replay: 1, workers: 1, skip: "1000"}, {replay: 1, workers: 1, without: "no such fault"},
	} {
		if _, err := run(&bytes.Buffer{}, o); err == nil {
			t.Errorf("%+v was not refused", o)
		}
	}
}
