package saga_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/saga"
	"holdfast/shared/telemetry"
)

// dueList is a due index and the reservations behind it, by their number. A reservation is
// due at its LookAt, and the index lists it at listed.
type dueList struct {
	tb       testing.TB
	lookAt   map[ledger.ReservationID]time.Time
	listed   map[ledger.ReservationID]time.Time
	broken   map[int]error
	readFail func(ledger.ReservationID) error
}

func newDueList(tb testing.TB) *dueList {
	return &dueList{tb: tb, lookAt: map[ledger.ReservationID]time.Time{}, listed: map[ledger.ReservationID]time.Time{}}
}

// add puts reservation n into the index, due that long before ten o'clock.
func (d *dueList) add(n int, overdue time.Duration) {
	d.lookAt[numbered(n)], d.listed[numbered(n)] = tenOClock.Add(-overdue), tenOClock.Add(-overdue)
}

func (d *dueList) DueReservations(_ context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueReservation, ledger.Cursor, error) {
	if err := d.broken[shard]; err != nil {
		return nil, "", err
	}
	var all []ledger.DueReservation
	for id, at := range d.listed {
		if ledger.ReservationDueShard(id) == shard && !at.After(now) {
			all = append(all, ledger.DueReservation{ID: id, DueAt: at})
		}
	}
	slices.SortFunc(all, func(a, b ledger.DueReservation) int { return a.DueAt.Compare(b.DueAt) })
	from := 0
	if page.After != "" {
		if _, err := fmt.Sscan(string(page.After), &from); err != nil {
			d.tb.Fatal(err)
		}
	}
	to := min(from+page.Limit, len(all))
	if to == len(all) {
		return all[from:], "", nil
	}
	return all[from:to], ledger.Cursor(fmt.Sprint(to)), nil
}

func (d *dueList) Reservation(_ context.Context, id ledger.ReservationID) (ledger.Reservation, error) {
	if d.readFail != nil {
		if err := d.readFail(id); err != nil {
			return ledger.Reservation{}, err
		}
	}
	at, exists := d.lookAt[id]
	if !exists {
		return ledger.Reservation{}, ledger.ReservationNotFound()
	}
	return ledger.Reservation{ID: id, LookAt: at}, nil
}

func (w *workshop) tick(store saga.DueStore) *saga.Tick {
	return saga.NewTick(store, w, w.clock, telemetry.NewLogger(&w.logs, w.source()))
}

func mustTick(tb testing.TB, tick *saga.Tick) saga.Report {
	tb.Helper()
	report, err := tick.Run(context.Background(), "request_tick")
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

// All shards, all pages, the longest overdue first.
func TestATickDrivesAllThatIsDueOldestFirst(t *testing.T) {
	w, list := newWorkshop(t), newDueList(t)
	var want []ledger.ReservationID
	const many = saga.TickPageItems * ledger.DueShards * 2
	for n := range many {
		list.add(n, time.Duration(many-n)*time.Second)
		want = append(want, numbered(n))
	}
	list.add(9999, -time.Second) // due a second after
	report := mustTick(t, w.tick(list))
	if !slices.Equal(w.driven, want) || w.request != "request_tick" {
		t.Errorf("driven %d of %d, or in another order", len(w.driven), many)
	}
	if report != (saga.Report{At: w.clock.Now(), Lag: many * time.Second, LagKnown: true, Driven: many}) {
		t.Errorf("report %+v", report)
	}
	if w.notices[0] != nil {
		t.Error("a tick has a notice")
	}
}

// One reservation that always fails, with an error or a panic, costs one try in each tick
// and blocks nobody.
func TestABadReservationBlocksNobody(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("broken item") },
		"panic": func() error { panic("panic-marker") },
	} {
		t.Run(name, func(t *testing.T) {
			w, list := newWorkshop(t), newDueList(t)
			for n := range 30 {
				list.add(n, time.Hour-time.Duration(n)*time.Minute)
			}
			w.drive = func(_ context.Context, id ledger.ReservationID) error {
				if id == numbered(0) {
					return fail()
				}
				return nil
			}
			if report := mustTick(t, w.tick(list)); report != (saga.Report{At: w.clock.Now(), Lag: time.Hour, LagKnown: true, Driven: 29, Failed: 1}) {
				t.Errorf("report %+v", report)
			}
			if log := w.logs.String(); !strings.Contains(log, string(numbered(0))) || strings.Contains(log, "marker") {
				t.Errorf("log %s", log)
			}
		})
	}
}

// The index lags. What is not there, is settled, or is due later is no lag; what can't be
// read counts, because a lag that is too short lets everybody sleep.
func TestTheLagIsThatOfTheReservationsThemselves(t *testing.T) {
	w, list := newWorkshop(t), newDueList(t)
	list.listed[numbered(1)] = tenOClock.Add(-4 * time.Hour) // no such reservation
	list.add(2, 3*time.Hour)
	list.lookAt[numbered(2)] = time.Time{} // nothing to do any more
	list.add(3, 2*time.Hour)
	list.lookAt[numbered(3)] = tenOClock.Add(time.Minute)
	list.add(4, time.Hour)
	list.add(5, time.Minute)
	w.drive = func(_ context.Context, id ledger.ReservationID) error {
		if id == numbered(1) {
			return ledger.ReservationNotFound()
		}
		return nil
	}
	if report := mustTick(t, w.tick(list)); report != (saga.Report{At: w.clock.Now(), Lag: time.Hour, LagKnown: true, Driven: 4, Gone: 1}) {
		t.Errorf("report %+v", report)
	}
	for name, fail := range map[string]func() error{
		"error": func() error { return errors.New("throttled") },
		"panic": func() error { panic("nil line") },
	} {
		list.readFail = func(id ledger.ReservationID) error {
			if id == numbered(2) {
				return fail()
			}
			return nil
		}
		if report := mustTick(t, w.tick(list)); report.Lag != 3*time.Hour || !report.LagKnown {
			t.Errorf("%s: report %+v", name, report)
		}
	}
	if report := mustTick(t, w.tick(newDueList(t))); report != (saga.Report{At: w.clock.Now(), LagKnown: true}) {
		t.Errorf("with nothing due: %+v", report)
	}
}

// A tick that drives nothing does not pass for a healthy one.
func TestATickThatDrivesNothingReportsTheLag(t *testing.T) {
	w, list := newWorkshop(t), newDueList(t)
	list.add(1, 10*time.Minute)
	w.drive = func(context.Context, ledger.ReservationID) error { return errors.New("down") }
	if report := mustTick(t, w.tick(list)); report != (saga.Report{At: w.clock.Now(), Lag: 10 * time.Minute, LagKnown: true, Failed: 1}) {
		t.Errorf("report %+v", report)
	}
}

// A shard that can't be read takes nothing from the others, and is an error.
func TestAnUnreadableShardOfReservationsIsNotHidden(t *testing.T) {
	w, list := newWorkshop(t), newDueList(t)
	inBroken := 0
	for n := range 40 {
		list.add(n, time.Hour)
		if ledger.ReservationDueShard(numbered(n)) == ledger.ReservationDueShard(numbered(0)) {
			inBroken++
		}
	}
	down := errors.New("throttled")
	list.broken = map[int]error{ledger.ReservationDueShard(numbered(0)): down}
	report, err := w.tick(list).Run(t.Context(), "r")
	if !errors.Is(err, down) || report.LagKnown || report.Driven != 40-inBroken {
		t.Errorf("report %+v, %v; want %d driven", report, err, 40-inBroken)
	}
}

// A tick stops in time and says so; the next one begins with what waits longest.
func TestATickStopsBeforeItsDeadline(t *testing.T) {
	w, list := newWorkshop(t), newDueList(t)
	for n := range 20 {
		list.add(n, time.Hour-time.Duration(n)*time.Second)
	}
	w.drive = func(_ context.Context, id ledger.ReservationID) error {
		delete(list.listed, id)
		w.clock.Advance(2 * time.Second)
		return nil
	}
	report, err := w.tick(list).Run(until{t.Context(), tenOClock.Add(saga.DriveMargin + 9*time.Second)}, "r")
	if err != nil || report != (saga.Report{At: tenOClock, Lag: time.Hour, LagKnown: true, Driven: 5, Truncated: true, RemainingMin: 15}) {
		t.Errorf("report %+v, %v", report, err)
	}
	report, err = w.tick(list).Run(until{t.Context(), w.clock.Now().Add(saga.DriveMargin)}, "r")
	if err != nil || report != (saga.Report{At: w.clock.Now(), Truncated: true}) {
		t.Errorf("without time: %+v, %v", report, err)
	}
	if report = mustTick(t, w.tick(list)); report.Driven != 15 || w.driven[5] != numbered(5) {
		t.Errorf("report %+v", report)
	}
}
