package localrun_test

import (
	"maps"
	"net/http"
	"testing"
	"time"

	"holdfast/scripts/internal/localrun"
)

// wantSold lets every owner ask for one unit of a slot at the same moment, and checks that
// exactly the units that exist were promised, and everybody else was told why not.
func (w *world) wantSold(slot string, units int, owners []*localrun.Caller) {
	w.t.Helper()
	answers := make([]answer, len(owners))
	atOnce(len(owners), func(i int) { answers[i] = w.ask(owners[i], slot, 1) })
	want := map[string]int{"201": units, "409 insufficient_stock": len(owners) - units}
	if got := outcomes(answers); !maps.Equal(got, want) {
		w.t.Fatalf("answers %v, want %v", got, want)
	}
	w.wantCounters(slot, counters{Held: units, Capacity: units})
}

func (w *world) owners(count int) []*localrun.Caller {
	owners := make([]*localrun.Caller, count)
	for i := range owners {
		owners[i] = w.owner()
	}
	return owners
}

// watch reads the slot's numbers every few milliseconds until the returned function is
// called, and complains about impossible ones.
func (w *world) watch(slot string) (end func()) {
	const every = 5 * time.Millisecond
	over, polled := make(chan struct{}), make(chan int)
	go func() {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for polls := 1; ; polls++ {
			c := w.countersOf(slot)
			if c.Available < 0 || c.Held < 0 || c.Confirmed < 0 || c.Available+c.Held+c.Confirmed != c.Capacity {
				w.t.Errorf("a reader sees %+v", c)
			}
			select {
			case <-over:
				polled <- polls
				return
			case <-ticker.C:
			}
		}
	}()
	return func() {
		close(over)
		w.t.Logf("a reader has looked %d times", <-polled)
	}
}

// Case A1: more units were sold than existed when many buyers came at once. A reader that
// polls meanwhile never sees impossible numbers.
func TestCaseA1_LastUnits(t *testing.T) {
	const units, buyers = 10, 200
	w := newWorld(t)
	slot, owners := w.slot(units, ""), w.owners(buyers)
	defer w.watch(slot)()
	w.wantSold(slot, units, owners)
}

// Case A1, the other part: one unit and fifty buyers, many times.
func TestCaseA1_LastUnitManyTimes(t *testing.T) {
	const rounds, buyers = 200, 50
	w := newWorld(t)
	owners := w.owners(buyers)
	for range rounds {
		w.wantSold(w.slot(1, ""), 1, owners)
	}
}

// P6: the same key with the same request has one effect and one answer, also when all
// requests come at once.
func TestP6_SameKeyAtOnce(t *testing.T) {
	const calls = 50
	w := newWorld(t)
	slot, owner, key := w.slot(10, ""), w.owner(), newName("key")
	answers := make([]answer, calls)
	atOnce(calls, func(i int) { answers[i] = w.post(owner, "/v1/holds", key, holdBody(slot, 1)) })
	first := 0
	for _, a := range answers {
		a.want(http.StatusCreated)
		if a.text("hold_id") != answers[0].text("hold_id") {
			t.Errorf("two holds: %s and %s", a.Body, answers[0].Body)
		}
		if !a.isReplayed() {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d answers say that they are the first one", first)
	}
	w.wantCounters(slot, counters{Available: 9, Held: 1, Capacity: 10})
}
