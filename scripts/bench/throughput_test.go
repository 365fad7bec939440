package main

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

// Every call is made once, whatever the number of callers, and a failure is told.
func TestPerSecondMakesEachCallOnce(t *testing.T) {
	for _, callers := range []int{1, 3, 8} {
		var made [100]atomic.Int32
		rate, err := perSecond(len(made), callers, func(i int) error { made[i].Add(1); return nil })
		if err != nil || rate <= 0 {
			t.Errorf("%d callers: %v per second, %v", callers, rate, err)
		}
		for i := range made {
			if n := made[i].Load(); n != 1 {
				t.Fatalf("%d callers: call %d was made %d times", callers, i, n)
			}
		}
		broken := errors.New("broken")
		if _, err := perSecond(100, callers, func(i int) error {
			if i == 57 {
				return broken
			}
			return nil
		}); !errors.Is(err, broken) {
			t.Errorf("%d callers: the failure was lost: %v", callers, err)
		}
	}
}

// A life that costs more than its ceiling fails the run.
func TestWriteUnitsHaveACeiling(t *testing.T) {
	var out strings.Builder
	if err := printUnits(&out, "a life", []bought{{"hold", "table", "", writeUnitsCeiling}}, writeUnitsCeiling); err != nil {
		t.Error(err)
	}
	if err := printUnits(&out, "a life", []bought{{"hold", "table", "", writeUnitsCeiling}, {"confirm", "table", "", 1}}, writeUnitsCeiling); err == nil {
		t.Error("one unit more than the ceiling passed")
	}
}

// Each second round is turned round, and the results stay with their measurement.
func TestInTurn(t *testing.T) {
	var order []string
	measure := func(name string, value float64) func() (float64, error) {
		return func() (float64, error) { order = append(order, name); return value, nil }
	}
	for round := range 2 {
		a, b, err := inTurn(round, measure("a", 1), measure("b", 2))
		if a != 1 || b != 2 || err != nil {
			t.Errorf("round %d: %v, %v, %v", round, a, b, err)
		}
	}
	if got := strings.Join(order, ""); got != "abba" {
		t.Errorf("measured in the order %s, want abba", got)
	}
}
