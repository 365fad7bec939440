package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/skew"
	"holdfast/shared/system/systemtest"
)

// datedStore is a store whose answers have a date, like those of a database in the
// network: the API's clock minus how far that is off.
type datedStore struct {
	*memory.Store
	clock *systemtest.Clock
	gauge *skew.Gauge
	off   time.Duration
	err   error
	reads atomic.Int64 // of slots
	// commits counts the writes.
	commits atomic.Int64
}

func (s *datedStore) observe() {
	now := s.clock.Now()
	s.gauge.Observe(now, now, now.Add(-s.off))
}

func (s *datedStore) Slots(ctx context.Context, ids []ledger.SlotID) ([]ledger.Slot, error) {
	s.reads.Add(1)
	if s.err != nil {
		return nil, s.err
	}
	s.observe()
	return s.Store.Slots(ctx, ids)
}

func (s *datedStore) Commit(ctx context.Context, c ledger.Change) error {
	s.commits.Add(1)
	s.observe()
	return s.Store.Commit(ctx, c)
}

// newClockFixture is a fixture whose API measures its clock by a datedStore. It has the
// slot "seat" with 5 units, which was made while the clock was right, and an API that has
// just started.
func newClockFixture(t *testing.T) (*fixture, *datedStore) {
	t.Helper()
	store := &datedStore{Store: memory.New()}
	f := newFixtureOn(t, store)
	store.clock, store.gauge = f.clock, skew.NewGauge(f.clock)
	f.define("seat", 5)
	store.gauge = skew.NewGauge(f.clock)
	options := f.options(store)
	options.Gauge = store.gauge
	f.api = mustAPI(t, options)
	store.reads.Store(0)
	store.commits.Store(0)
	return f, store
}

// skews are the skews that were reported.
func (f *fixture) skews() []float64 {
	f.t.Helper()
	var out []float64
	for text := range strings.Lines(f.metrics.String()) {
		var line struct {
			Skew *float64 `json:"clock_skew_seconds_max"`
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			f.t.Fatal(err)
		}
		if line.Skew != nil {
			out = append(out, *line.Skew)
		}
	}
	return out
}

// A machine whose clock is more than 30 s off, in either direction, makes no hold from its
// first request on, writes nothing, and says how long to wait. Everything else goes on.
func TestAnUnreliableClockHoldsNothing(t *testing.T) {
	for _, off := range []time.Duration{-31 * time.Second, 32 * time.Second, -time.Hour, time.Hour} {
		t.Run(off.String(), func(t *testing.T) {
			f, store := newClockFixture(t)
			store.off = off
			for range 3 {
				a := f.create(owner("U"), line("seat", 1), keyed("the-same"))
				a.wantProblem(http.StatusServiceUnavailable, "clock_unreliable")
				if a.headers["Retry-After"] != "5" || !strings.Contains(a.text("detail"), "same Idempotency-Key") {
					t.Errorf("Retry-After %q, %s", a.headers["Retry-After"], a.body)
				}
			}
			if n := store.commits.Load(); n != 0 {
				t.Errorf("%d writes", n)
			}
			f.counters("seat", 5, 0, 0, 5)
			f.get("/v1/availability", "slot_ids=seat", nil).want(http.StatusOK)
			if got := f.logs.String(); !strings.Contains(got, "the clock is off by") {
				t.Errorf("the log does not tell by how much: %s", got)
			}
			if got := f.skews(); len(got) != 1 || got[0] < 31 || got[0] > off.Abs().Seconds() {
				t.Errorf("reported %v", got)
			}

			// The clock is put right, and the very next request notices.
			store.off = 0
			f.create(owner("U"), line("seat", 1), keyed("the-same")).want(http.StatusCreated)
			f.counters("seat", 4, 1, 0, 5)
			f.balanced()
		})
	}
}

// Up to 30 s nobody is refused, and from over a second on the skew is told.
func TestASmallSkewIsToldAndHarmsNobody(t *testing.T) {
	for off, reported := range map[time.Duration]int{
		0: 0, time.Second: 0, -time.Second: 0, -1001 * time.Millisecond: 1, 2001 * time.Millisecond: 1, -30 * time.Second: 1, 30 * time.Second: 1,
	} {
		f, store := newClockFixture(t)
		store.off = off
		f.mustHold(owner("U"), "seat", 1)
		if got := f.skews(); len(got) != reported {
			t.Errorf("off by %s: reported %v, want %d", off, got, reported)
		}
	}
}

// One answer that is odd, of a proxy or a server with a clock that is off, refuses nobody.
func TestOneOddAnswerRefusesNobody(t *testing.T) {
	f, store := newClockFixture(t)
	f.mustHold(owner("U"), "seat", 1)
	for range 2 {
		store.off = time.Hour
		store.observe()
		store.off = 0
		f.mustHold(owner("U"), "seat", 1)
	}
	if got := f.skews(); len(got) != 0 {
		t.Errorf("reported %v", got)
	}
}

// A clock that is right costs reads only until it is known, and after it was not asked for
// long.
func TestAKnownClockCostsNothing(t *testing.T) {
	f, store := newClockFixture(t)
	f.mustHold(owner("U"), "seat", 1)
	cold := store.reads.Swap(0)
	if cold < skew.Observations {
		t.Errorf("%d reads before the first hold, want %d: its clock was not known", cold, skew.Observations)
	}
	f.mustHold(owner("U"), "seat", 1)
	if n := store.reads.Load(); n != 0 {
		t.Errorf("%d reads with a known clock", n)
	}
	f.clock.Advance(skew.FreshFor + time.Second)
	f.mustHold(owner("U"), "seat", 1)
	if n := store.reads.Load(); n < skew.Observations {
		t.Errorf("%d reads after a long rest, want %d", n, skew.Observations)
	}
}

// What is off is told once a minute by one process, however many requests it answers.
func TestTheSkewIsReportedOnceAMinute(t *testing.T) {
	f, store := newClockFixture(t)
	store.off = 10 * time.Second
	f.mustHold(owner("U"), "seat", 1)
	for i, c := range []struct {
		advance time.Duration
		want    int
	}{{0, 1}, {59 * time.Second, 1}, {time.Second, 2}, {-30 * time.Second, 3}, {59 * time.Second, 3}, {time.Second, 4}} {
		f.clock.Advance(c.advance)
		f.get("/v1/health", "", nil).want(http.StatusOK)
		if got := f.skews(); len(got) != c.want {
			t.Errorf("step %d: reported %v, want %d times", i, got, c.want)
		}
	}
}

// A request that is wrong in itself is told so by any clock, and a database that can't be
// read is told as what it is: whether the clock was put right is not known then.
func TestOtherRefusalsComeBeforeTheClock(t *testing.T) {
	f, store := newClockFixture(t)
	store.off = time.Hour
	f.create(owner("U"), `{"lines":[]}`, f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	f.create(owner("U"), line("seat", 1), nil).wantProblem(http.StatusBadRequest, "idempotency_key_missing")
	if n := store.reads.Load(); n != 0 {
		t.Errorf("%d reads for requests that are wrong", n)
	}
	for range skew.Observations {
		store.observe()
	}
	store.err = &ledger.Error{Code: ledger.CodeUnavailable, Message: "try again"}
	f.create(owner("U"), line("seat", 1), f.key()).wantProblem(http.StatusServiceUnavailable, "unavailable")
	if n := store.commits.Load(); n != 0 {
		t.Errorf("%d writes", n)
	}
}
