package sim_test

import (
	"runtime"
	"strings"
	"testing"

	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/sim"
)

func contract(tb testing.TB) *httpapi.Contract {
	tb.Helper()
	c, err := httpapi.LoadContract()
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// One seed decides everything: the same seed gives the same trace, byte for byte, in
// whatever order and beside whatever else histories are played.
func TestSameSeedSameTrace(t *testing.T) {
	c := contract(t)
	traces := map[uint64]string{}
	for _, seed := range []uint64{1, 2, 3, 4, 5, 4, 3, 2, 1} {
		result := sim.Run(seed, sim.Options{Contract: c, Trace: true})
		if before, played := traces[seed]; played && before != result.Trace {
			t.Fatalf("seed %d gave another trace: %s", seed, firstDifference(before, result.Trace))
		}
		traces[seed] = result.Trace
	}
	if traces[1] == traces[2] {
		t.Error("two seeds gave one trace")
	}
}

func firstDifference(a, b string) string {
	linesA, linesB := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(linesA), len(linesB)) {
		if linesA[i] != linesB[i] {
			return linesA[i] + " | " + linesB[i]
		}
	}
	return "one is longer"
}

// A small campaign of fixed seeds: the everyday check. CI plays more, with fresh ones.
func TestHistoriesKeepThePromises(t *testing.T) {
	report := sim.Campaign{First: 1, Histories: 150, Also: sim.KeptSeeds(), Workers: 2, Contract: contract(t), FailuresMax: sim.FailuresMax}.Play()
	t.Log(report)
	for _, failed := range report.Failed {
		t.Errorf("seed %d: %s; go run ./scripts/sim -replay %d", failed.Seed, failed.Violations[0], failed.Seed)
	}
	if report.Holds < 5*report.Histories || report.Requests < 30*report.Histories {
		t.Errorf("%s: the histories are too quiet to prove anything", report)
	}
	for what, n := range map[string]int{"parked": report.Parked, "given up": report.GivenUp, "prompt": report.Prompt, "archived": report.Archived} {
		if n < report.Histories/8 {
			t.Errorf("%s: too few are %s to prove anything", report, what)
		}
	}
	for _, status := range []ledger.ReservationStatus{ledger.ReservationCompleted, ledger.ReservationCanceled, ledger.ReservationRefunded, ledger.ReservationReview} {
		if report.Ends[status] < report.Histories/20 {
			t.Errorf("%s: too few reservations end as %s to prove anything", report, status)
		}
	}
}

// A history leaves nothing behind: whatever was still under way at its end is ended. A
// goroutine that stayed would keep its whole world in memory.
func TestHistoriesLeaveNoGoroutine(t *testing.T) {
	c := contract(t)
	before := runtime.NumGoroutine()
	for seed := range uint64(100) {
		sim.Run(seed+1, sim.Options{Contract: c})
	}
	// One that has said its last word may still need a moment to be gone.
	const yieldsMax = 1_000_000
	for range yieldsMax {
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	t.Errorf("%d goroutines, and %d before", runtime.NumGoroutine(), before)
}

func BenchmarkHistory(b *testing.B) {
	c := contract(b)
	seed := uint64(0)
	for b.Loop() {
		seed++
		sim.Run(seed, sim.Options{Contract: c})
	}
}
