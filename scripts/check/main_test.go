package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

func passing(_ context.Context, out io.Writer) error {
	_, err := io.WriteString(out, "fine\n")
	return err
}

func failing(context.Context, io.Writer) error { return errors.New("broken") }

// A failed step is named, and does not keep the ones after it from running.
func TestEveryStepRunsAndFailuresAreNamed(t *testing.T) {
	var out bytes.Buffer
	failed, err := run(context.Background(), &out, []step{{"one", "", failing}, {"two", "", passing}, {"three", "", failing}}, "")
	if err != nil || !slices.Equal(failed, []string{"one", "three"}) {
		t.Errorf("failed %v, error %v; want one and three", failed, err)
	}
	for _, want := range []string{"-- one: FAILED: broken", "fine\n-- two: ok", "-- three: FAILED: broken"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output lacks %q:\n%s", want, out.String())
		}
	}
}

func TestOneStepByName(t *testing.T) {
	var out bytes.Buffer
	failed, err := run(context.Background(), &out, []step{{"one", "", failing}, {"two", "", passing}}, "two")
	if err != nil || len(failed) > 0 || strings.Contains(out.String(), "one") {
		t.Errorf("failed %v, error %v, output %q; want only step two", failed, err, out.String())
	}
	if _, err := run(context.Background(), &out, steps(), "no such step"); err == nil {
		t.Error("a step that does not exist was not refused")
	}
}

// A step that is written twice, or says nothing, would hide in the list.
func TestStepsAreNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range steps() {
		if s.name == "" || s.why == "" || s.run == nil || seen[s.name] {
			t.Errorf("step %+v lacks a part or is listed twice", s)
		}
		seen[s.name] = true
	}
}
