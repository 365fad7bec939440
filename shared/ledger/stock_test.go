package ledger_test

import (
	"testing"

	"holdfast/shared/ledger"
)

func TestCountersCheck(t *testing.T) {
	tests := []struct {
		counters ledger.Counters
		valid    bool
	}{
		{ledger.Counters{}, true},
		{ledger.Counters{Available: 1, Held: 2, Confirmed: 3, Capacity: 6}, true},
		{ledger.Counters{Available: -1, Held: 1}, false},
		{ledger.Counters{Available: 1, Held: -1}, false},
		{ledger.Counters{Available: 1, Confirmed: -1}, false},
		{ledger.Counters{Available: 1, Capacity: 2}, false},
		{ledger.Counters{Capacity: -1}, false},
	}
	for _, test := range tests {
		if err := test.counters.Check(); test.valid != (err == nil) {
			t.Errorf("%+v: error %v", test.counters, err)
		}
	}
}

// A movement inside the capacity leaves it as it is; one from or to outside moves it.
func TestMovementDelta(t *testing.T) {
	tests := []struct {
		from, to ledger.Bucket
		want     ledger.Counters
	}{
		{ledger.BucketAvailable, ledger.BucketHeld, ledger.Counters{Available: -3, Held: 3}},
		{ledger.BucketHeld, ledger.BucketAvailable, ledger.Counters{Available: 3, Held: -3}},
		{ledger.BucketHeld, ledger.BucketConfirmed, ledger.Counters{Held: -3, Confirmed: 3}},
		{ledger.BucketOutside, ledger.BucketAvailable, ledger.Counters{Available: 3, Capacity: 3}},
		{ledger.BucketAvailable, ledger.BucketOutside, ledger.Counters{Available: -3, Capacity: -3}},
	}
	for _, test := range tests {
		if got := (ledger.Movement{From: test.from, To: test.to, Quantity: 3}).Delta(); got != test.want {
			t.Errorf("%s to %s: %+v, want %+v", test.from, test.to, got, test.want)
		}
	}
}
