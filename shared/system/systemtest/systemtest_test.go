package systemtest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast/shared/system/systemtest"
)

func TestClockMovesOnlyWhenTold(t *testing.T) {
	start := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	clock := systemtest.NewClock(start)
	first, second := clock.Now(), clock.Now()
	if !first.Equal(start) || !second.Equal(start) {
		t.Fatal("the clock moves by itself")
	}
	clock.Advance(time.Minute)
	if err := clock.Sleep(context.Background(), time.Second); err != nil {
		t.Fatal(err)
	}
	if got, want := clock.Now(), start.Add(61*time.Second); !got.Equal(want) {
		t.Errorf("now = %s, want %s", got, want)
	}
	if got := clock.Sleeps(); len(got) != 1 || got[0] != time.Second {
		t.Errorf("sleeps = %v, want the one second", got)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := clock.Sleep(over, time.Second); !errors.Is(err, context.Canceled) {
		t.Errorf("a sleep on a context that has ended gives %v", err)
	}
}

func TestRandomRepeatsForASeed(t *testing.T) {
	a, b, other := systemtest.NewRandom(7), systemtest.NewRandom(7), systemtest.NewRandom(8)
	if a.Bits128() != b.Bits128() || a.Below(1000) != b.Below(1000) {
		t.Error("the same seed draws other numbers")
	}
	if a.Bits128() == other.Bits128() {
		t.Error("two seeds draw the same numbers")
	}
	for range 1000 {
		if n := a.Below(3); n < 0 || n > 2 {
			t.Fatalf("Below(3) = %d", n)
		}
	}
}
