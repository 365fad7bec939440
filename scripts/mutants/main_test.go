package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/scripts/internal/build"
)

func moduleRoot(tb testing.TB) string {
	tb.Helper()
	root, err := build.ModuleRoot(".")
	if err != nil {
		tb.Fatal(err)
	}
	return root
}

// A mutant whose text has moved or changed would quietly test nothing. Who changes such a
// line changes the mutant with it.
func TestMutantsFitTheCode(t *testing.T) {
	if err := fit(moduleRoot(t), mutants()); err != nil {
		t.Error(err)
	}
}

func TestMutantsCoverThePackages(t *testing.T) {
	count := make(map[string]int)
	for _, m := range mutants() {
		for _, e := range m.edits {
			count[filepath.Base(filepath.Dir(e.file))]++
		}
	}
	for name, least := range map[string]int{"ledger": 5, "commands": 5, "dynamo": 5, "expiry": 3, "due": 4, "outbox": 5, "httpapi": 5, "saga": 5, "archive": 4, "reconcile": 10} {
		if count[name] < least {
			t.Errorf("%d edits in package %s, want at least %d", count[name], name, least)
		}
	}
}

func write(tb testing.TB, folder, name, text string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
}

func TestFitRefusesWhatDoesNotFit(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "one.go", "package one\n\nvar a, b = 1, 1\n")
	good := mutant{name: "good", harm: "none", edits: []edit{{"one.go", "a, b", "c, d"}}}
	if err := fit(folder, []mutant{good}); err != nil {
		t.Fatal(err)
	}
	for want, all := range map[string][]mutant{
		"occurs 2 times":       {{name: "twice", harm: "none", edits: []edit{{"one.go", "1", "2"}}}},
		"occurs 0 times":       {{name: "gone", harm: "none", edits: []edit{{"one.go", "x", "y"}}}},
		"another text":         {{name: "same", harm: "none", edits: []edit{{"one.go", "a, b", "a, b"}}}},
		"no such file":         {{name: "no file", harm: "none", edits: []edit{{"two.go", "a", "b"}}}},
		"no Go code in one.go": {{name: "broken", harm: "none", edits: []edit{{"one.go", "var", "("}}}},
		"listed twice":         {good, good},
		"lacks a part":         {{name: "no harm", edits: good.edits}},
	} {
		if err := fit(folder, all); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// The second edit of a file is made on top of the first, and afterwards the copy is what
// it was: the next mutant must not meet the last one.
func TestAMutantIsUndone(t *testing.T) {
	w := &workspace{root: t.TempDir()}
	before := "package one\n\nvar a, b = 1, 2\n"
	write(t, w.root, "one.go", before)
	m := mutant{name: "two edits", edits: []edit{{"one.go", "a, b", "c, d"}, {"one.go", "1, 2", "3, 4"}}}
	read := func() string {
		text, err := os.ReadFile(filepath.Join(w.root, "one.go"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	err := w.with(m, func() error {
		if got := read(); got != "package one\n\nvar c, d = 3, 4\n" {
			t.Errorf("the mutant is %q", got)
		}
		return nil
	})
	if err != nil || read() != before {
		t.Errorf("afterwards it is %q, error %v", read(), err)
	}
}

// program tells "found something" from every other end: a check that crashed must not
// count as one that noticed.
func TestProgramTellsFailuresApart(t *testing.T) {
	w := &workspace{root: t.TempDir()}
	for script, want := range map[string]struct{ failed, broken bool }{
		"exit 0": {false, false}, "exit 1": {true, false}, "exit 2": {false, true},
	} {
		_, failed, err := w.program(context.Background(), "sh", "-c", script)
		if failed != want.failed || (err != nil) != want.broken {
			t.Errorf("%s: failed %t, error %v", script, failed, err)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, failed, err := w.program(ended, "sh", "-c", "exit 1"); failed || err == nil {
		t.Errorf("out of time: failed %t, error %v; want an error", failed, err)
	}
}

func TestFirstViolationIsRead(t *testing.T) {
	w := &workspace{root: t.TempDir()}
	w.sim = filepath.Join(w.root, "sim")
	say := func(text string) {
		t.Helper()
		if err := os.WriteFile(w.sim, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	o := options{histories: 10, seed: 5}
	say("echo 'first violation: seed 7 breaks P3,P5'; exit 1")
	if seeds, promises, err := w.simulate(context.Background(), o); err != nil || seeds != 3 || !slices.Equal(promises, []string{"P3", "P5"}) {
		t.Errorf("%d seeds, %v, error %v; want 3 seeds, P3 and P5", seeds, promises, err)
	}
	say("exit 0")
	if seeds, _, err := w.simulate(context.Background(), o); err != nil || seeds != 0 {
		t.Errorf("%d seeds, error %v; want none", seeds, err)
	}
	say("echo no; exit 1")
	if _, _, err := w.simulate(context.Background(), o); err == nil {
		t.Error("a failure that names no seed was taken for a violation")
	}
}

func TestSummary(t *testing.T) {
	kill := func(seeds int) outcome { return outcome{seeds: seeds} }
	tested := outcome{tests: []string{"TestOne"}}
	for name, c := range map[string]struct {
		outcomes []outcome
		good     bool
	}{
		"all killed":     {[]outcome{kill(1), kill(500), kill(3), tested}, true},
		"a survivor":     {[]outcome{kill(1), {mutant: mutant{name: "tough"}}}, false},
		"killed late":    {[]outcome{kill(200), kill(300), kill(1)}, false},
		"killed in time": {[]outcome{kill(199), kill(300), kill(1)}, true},
	} {
		if s := summarize(c.outcomes); s.good() != c.good {
			t.Errorf("%s: good is %t: %s", name, s.good(), s)
		}
	}
	if s := summarize([]outcome{{mutant: mutant{name: "tough"}}}); !strings.Contains(s.String(), "1 survived: tough") {
		t.Errorf("%q does not name the survivor", s)
	}
}
