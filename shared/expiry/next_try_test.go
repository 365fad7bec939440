package expiry

import (
	"testing"
	"time"
)

// Three failures park a hold; from then on its tries are 1, 2, 4, 8 and then 15 minutes
// apart, however often it fails.
func TestTheBackOffGrowsAndIsBounded(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	for failures, want := range map[int]time.Duration{
		3: time.Minute, 4: 2 * time.Minute, 5: 4 * time.Minute, 6: 8 * time.Minute, 7: 15 * time.Minute, 8: 15 * time.Minute,
		1_000_000: 15 * time.Minute,
	} {
		if at, parked := nextTry(failures, now); !parked || at.Sub(now) != want {
			t.Errorf("after %d failures: %t until %s later, want %s", failures, parked, at.Sub(now), want)
		}
	}
	for failures := range FailuresMax {
		if at, parked := nextTry(failures, now); parked || !at.IsZero() {
			t.Errorf("after %d failures: parked until %s", failures, at)
		}
	}
}
