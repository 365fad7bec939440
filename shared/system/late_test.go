package system_test

import (
	"context"
	"testing"
	"time"

	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

// A run stops in good time before the deadline that Lambda sets, and at the latest after
// the time that it gives itself.
func TestARunStopsAtTheFirstOfItsTwoEnds(t *testing.T) {
	now := time.Now()
	clock := systemtest.NewClock(now)
	for _, test := range []struct {
		name     string
		deadline time.Duration // zero for none
		want     time.Duration
	}{
		{"no deadline", 0, time.Minute},
		{"a late deadline", 71 * time.Second, time.Minute},
		{"an early deadline", 69 * time.Second, 59 * time.Second},
		{"less than the margin", 5 * time.Second, -5 * time.Second},
	} {
		ctx, cancel := t.Context(), context.CancelFunc(func() {})
		if test.deadline > 0 {
			ctx, cancel = context.WithDeadline(ctx, now.Add(test.deadline))
		}
		if got := system.StopAt(ctx, clock, time.Minute, 10*time.Second).Sub(now); got != test.want {
			t.Errorf("%s: it stops after %v, want %v", test.name, got, test.want)
		}
		cancel()
	}
}

func TestLateFromTheMomentOn(t *testing.T) {
	clock := systemtest.NewClock(time.Now())
	stopAt := clock.Now().Add(time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	clock.Advance(time.Second - time.Nanosecond)
	if system.Late(ctx, clock, stopAt) {
		t.Error("it is late before its time")
	}
	cancel()
	if !system.Late(ctx, clock, stopAt) {
		t.Error("it is not late when its caller has ended")
	}
	clock.Advance(time.Nanosecond)
	if !system.Late(t.Context(), clock, stopAt) {
		t.Error("it is not late when its time has come")
	}
}
