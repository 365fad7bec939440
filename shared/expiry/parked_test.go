package expiry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/expiry"
	"holdfast/shared/ledger"
)

// look is how the parked holds of the world stand.
func (w *world) look() expiry.ParkedReport {
	w.tb.Helper()
	report, err := expiry.NewParkedLook(w.store).Look(context.Background(), w.clock.Now())
	must(w.tb, err)
	return report
}

// park parks the hold as if it had failed three times.
func (w *world) park(id ledger.HoldID, tryAt time.Time) {
	w.tb.Helper()
	dueAt, _ := w.read(id).DueAt()
	done, err := w.store.Park(context.Background(), ledger.DueHold{ID: id, DueAt: dueAt}, 3, tryAt)
	if err != nil || !done {
		w.tb.Fatalf("park %s: %t, %v", id, done, err)
	}
}

// Three failures park a hold. A person is told at the third, once; the hold stays HELD, and
// is a ghost and part of the lag for as long.
func TestThreeFailuresParkAHold(t *testing.T) {
	f := newWorld(t, 10).function()
	bad := f.hold(1)
	f.clock.Advance(holdFor)
	dueAt := f.clock.Now()
	f.releaser = f.poison(bad)
	for minute, want := range []map[string]float64{
		{"expiry_parked": 0, "expiry_failed": 1, "expiry_ghosts": 1, "expiry_lag_seconds_max": 0},
		{"expiry_parked": 0, "expiry_failed": 1, "expiry_ghosts": 1, "expiry_lag_seconds_max": 60},
		{"expiry_parked": 0, "expiry_failed": 1, "expiry_ghosts": 1, "expiry_lag_seconds_max": 120},
		{"expiry_parked": 1, "expiry_failed": 1, "expiry_ghosts": 1, "expiry_lag_seconds_max": 180}, // its time has come
		{"expiry_parked": 1, "expiry_failed": 0, "expiry_ghosts": 1, "expiry_lag_seconds_max": 240},
		{"expiry_parked": 1, "expiry_failed": 1, "expiry_ghosts": 1, "expiry_lag_seconds_max": 300},
	} {
		f.clock.Set(dueAt.Add(time.Duration(minute) * time.Minute))
		mustReport(t, f.mustTick(), want)
		if told := len(f.world.failed.sent); told != min(1, minute/2) {
			t.Errorf("minute %d: %d messages", minute, told)
		}
	}
	var message map[string]any
	must(t, json.Unmarshal([]byte(f.world.failed.sent[0]), &message))
	want := map[string]any{"hold_id": string(bad), "due_at": dueAt.Format("2006-01-02T15:04:05.000Z"), "failures": 3.0, "code": "internal"}
	if fmt.Sprint(message) != fmt.Sprint(want) {
		t.Errorf("told %v, want %v", message, want)
	}
	if got := f.read(bad); got.Status != ledger.StatusHeld || !got.ReleaseAt.Equal(dueAt) {
		t.Errorf("the parked hold is %s, released at %s", got.Status, got.ReleaseAt)
	}
}

// A poison hold is tried after all others once it is parked, and before that takes one try
// of each sweep. Others end in the first sweep after they are due, all along.
func TestAPoisonHoldNeverDelaysOthers(t *testing.T) {
	f := newWorld(t, 100).function()
	var bad []ledger.HoldID
	for range 20 {
		bad = append(bad, f.hold(1))
	}
	releaser := f.poison(bad...)
	f.releaser = releaser
	f.clock.Advance(holdFor)
	begin := f.clock.Now()
	for minute := range 40 {
		f.clock.Set(begin.Add(time.Duration(minute)*time.Minute - holdFor))
		good := f.hold(1)
		f.clock.Set(begin.Add(time.Duration(minute) * time.Minute))
		releaser.asked = nil
		f.mustTick()
		if got := f.read(good); got.Status != ledger.StatusExpired {
			t.Fatalf("minute %d: a hold is %s when due", minute, got.Status)
		}
		if minute > 2 && releaser.asked[0] != good {
			t.Errorf("minute %d: a parked hold was tried before one that is due", minute)
		}
		if minute == 39 && len(releaser.asked) > 21 {
			t.Errorf("minute %d: %d tries", minute, len(releaser.asked))
		}
	}
	if report := f.look(); report.Count != len(bad) || !report.OldestDueAt.Equal(begin) {
		t.Errorf("parked: %+v", report)
	}
}

// A parked hold is tried with a growing pause, and ends, as any other, at the next try
// after it was repaired. Nobody has to help.
func TestAParkedHoldIsTriedMoreAndMoreSeldomUntilItEnds(t *testing.T) {
	f := newWorld(t, 1).function()
	id := f.hold(1)
	f.clock.Advance(holdFor)
	dueAt := f.clock.Now()
	releaser := f.poison(id)
	f.releaser = releaser
	var tried []int
	for minute := range 60 {
		f.clock.Set(dueAt.Add(time.Duration(minute) * time.Minute))
		before := len(releaser.asked)
		f.mustTick()
		if len(releaser.asked) > before {
			tried = append(tried, minute)
		}
	}
	if want := []int{0, 1, 2, 3, 5, 9, 17, 32, 47}; !slices.Equal(tried, want) {
		t.Errorf("tried at the minutes %v, want %v", tried, want)
	}
	if len(f.world.failed.sent) != 1 {
		t.Errorf("told %d times", len(f.world.failed.sent))
	}
	f.releaser = f.commands
	f.clock.Set(dueAt.Add(62 * time.Minute))
	mustReport(t, f.mustTick(), map[string]float64{
		"expiry_released": 1, "expiry_parked": 1, "expiry_ghosts": 0, "expiry_failed": 0,
		"expiry_lag_seconds_max": 62 * 60, "expiry_release_delay_seconds_p95": 62 * 60,
	})
	f.mustBeExpired()
	mustReport(t, f.mustTick(), map[string]float64{"expiry_parked": 0, "expiry_lag_seconds_max": 0, "expiry_ghosts": 0})
}

// A failure that is the database's, or the lack of time, says nothing about a hold, and
// never parks it.
func TestAStrainedDatabaseParksNothing(t *testing.T) {
	for name, cause := range map[string]error{
		"unavailable":     &ledger.Error{Code: ledger.CodeUnavailable, Message: "the table is down"},
		"outcome unknown": &ledger.Error{Code: ledger.CodeOutcomeUnknown, Message: "ask again"},
		"busy":            &ledger.Error{Code: ledger.CodeBusy, Message: "too many races"},
		"no time":         fmt.Errorf("ending: %w", context.DeadlineExceeded),
		"given up":        fmt.Errorf("ending: %w", context.Canceled),
	} {
		f := newWorld(t, 1).function()
		id := f.hold(1)
		f.clock.Advance(holdFor)
		f.releaser = &releaserFunc{do: func(context.Context, ledger.HoldID) (bool, error) { return false, cause }}
		for range 5 {
			mustReport(t, f.mustTick(), map[string]float64{"expiry_failed": 1, "expiry_ghosts": 1, "expiry_parked": 0})
			ending := f.ender(f.releaser).End(context.Background(), ledger.DueHold{ID: id, DueAt: f.clock.Now()}, "request_end")
			if ending != (expiry.Ending{Outcome: expiry.OutcomeFailed, Strained: true}) {
				t.Errorf("%s: %+v", name, ending)
			}
		}
		known, err := f.world.store.Failures(context.Background(), id)
		if err != nil || known != (ledger.EndFailures{}) || len(f.world.failed.sent) > 0 {
			t.Errorf("%s: known %+v, %v; told %v", name, known, err, f.world.failed.sent)
		}
	}
}

// One that panics is a failure of its own, too, and so is what has no code.
func TestAPanicCountsAsAFailure(t *testing.T) {
	w := newWorld(t, 1)
	id := w.hold(1)
	w.clock.Advance(holdFor)
	entry := ledger.DueHold{ID: id, DueAt: w.clock.Now()}
	for i, do := range []func(context.Context, ledger.HoldID) (bool, error){
		func(context.Context, ledger.HoldID) (bool, error) { panic("nil map") },
		func(context.Context, ledger.HoldID) (bool, error) { return false, errors.New("odd") },
	} {
		ending := w.ender(&releaserFunc{do: do}).End(context.Background(), entry, "request_end")
		known, err := w.store.Failures(context.Background(), id)
		if ending != (expiry.Ending{Outcome: expiry.OutcomeFailed}) || err != nil || known.Count != i+1 {
			t.Errorf("try %d: %+v, known %+v, %v", i+1, ending, known, err)
		}
	}
}

// unsent is a queue that takes nothing while it is down.
type unsent struct {
	messages
	down bool
}

func (u *unsent) Send(ctx context.Context, body string, delay time.Duration) error {
	if u.down {
		return errors.New("the queue is down")
	}
	return u.messages.Send(ctx, body, delay)
}

// When nobody can be told, the hold is parked all the same, so that it delays no other, and
// the message is sent at the next failure.
func TestAMessageThatCannotBeSentIsSentAtTheNextFailure(t *testing.T) {
	f := newWorld(t, 1).function()
	id := f.hold(1)
	f.clock.Advance(holdFor)
	begin := f.clock.Now()
	queue := &unsent{down: true}
	f.failed, f.releaser = queue, f.poison(id)
	for minute := range 6 {
		f.clock.Set(begin.Add(time.Duration(minute) * time.Minute))
		f.mustTick()
	}
	if report := f.look(); report.Count != 1 || len(queue.sent) != 0 {
		t.Fatalf("parked %+v, told %v", report, queue.sent)
	}
	queue.down = false
	for minute := range 60 {
		f.clock.Set(begin.Add(time.Duration(6+minute) * time.Minute))
		f.mustTick()
	}
	if len(queue.sent) != 1 || !strings.Contains(queue.sent[0], begin.Format("2006-01-02T15:04:05.000Z")) {
		t.Errorf("told %v", queue.sent)
	}
}

// Any step of the hold puts it back among the others, without failures: here its payment
// begins while it is parked, which has a new due time.
func TestAStepOfAParkedHoldMakesItOneAsAnyOther(t *testing.T) {
	f := newWorld(t, 1).function()
	id := f.hold(1)
	f.park(id, f.read(id).ReleaseAt.Add(time.Hour))
	f.pay(id)
	if report := f.look(); report.Count != 0 {
		t.Errorf("parked: %+v", report)
	}
	dueAt, _ := f.read(id).DueAt()
	f.clock.Set(dueAt.Add(-time.Millisecond))
	mustReport(t, f.mustTick(), map[string]float64{"expiry_released": 0, "expiry_failed": 0, "expiry_lag_seconds_max": 0})
	f.clock.Set(dueAt)
	mustReport(t, f.mustTick(), map[string]float64{"expiry_released": 1})
}

// A hold that waits for its payment is listed at the time until which it waits, and a
// parked one apart: neither fills the head of a page, even of one entry.
func TestAHoldThatWaitsForItsPaymentNeverFillsTheHeadOfAPage(t *testing.T) {
	w := newWorld(t, 100)
	var waiting []ledger.HoldID
	for i := range 30 {
		id := w.hold(1)
		waiting = append(waiting, id)
		if i%2 == 0 {
			must(t, w.store.Commit(context.Background(), mustStart(t, w, id, i)))
		} else {
			w.park(id, start.Add(24*time.Hour))
		}
	}
	w.clock.Advance(time.Second)
	good := w.hold(1)
	w.clock.Set(w.read(good).ReleaseAt)
	entries, next, err := w.store.Due(context.Background(), ledger.DueShard(good), w.clock.Now(), ledger.Page{Limit: 1})
	if err != nil || next != "" || !slices.Equal(entries, []ledger.DueHold{{ID: good, DueAt: w.clock.Now()}}) {
		t.Errorf("the first page is %+v, then %q, %v", entries, next, err)
	}
	releaser := &releaserFunc{do: func(ctx context.Context, id ledger.HoldID) (bool, error) {
		return w.commands.ExpireHold(ctx, id, "request_end")
	}}
	if report := mustRun(t, w.sweep(nil, releaser, 1)); report.Released != 1 || !slices.Equal(releaser.asked, []ledger.HoldID{good}) {
		t.Errorf("report %+v after tries of %v", report, releaser.asked)
	}
	for _, id := range waiting {
		if got := w.read(id).Status; got != ledger.StatusHeld {
			t.Errorf("a hold that waits is %s", got)
		}
	}
}

func mustStart(t *testing.T, w *world, id ledger.HoldID, n int) ledger.Change {
	t.Helper()
	change, err := ledger.StartReservation(ledger.ReservationID(fmt.Sprintf("rsv_%026d", n)), w.read(id),
		origin(ledger.EventID(fmt.Sprintf("event_%d", n))), w.clock.Now())
	must(t, err)
	return change
}

// The look is bounded: it counts all, and looks at those that are tried next.
func TestALookAtParkedHoldsIsBounded(t *testing.T) {
	w := newWorld(t, 1000)
	w.holds(expiry.ParkedLooksMax+30, 0)
	w.clock.Advance(holdFor)
	for i, id := range w.ids {
		w.park(id, w.clock.Now().Add(time.Duration(i)*time.Millisecond))
	}
	report := w.look()
	if report.Count != len(w.ids) || !slices.Equal(report.Due, []ledger.DueHold{{ID: w.ids[0], DueAt: w.clock.Now(), TryAt: w.clock.Now()}}) {
		t.Errorf("%d parked, due %+v", report.Count, report.Due)
	}
	w.clock.Advance(time.Hour)
	if report = w.look(); report.Count != len(w.ids) || len(report.Due) != expiry.ParkedLooksMax || report.Due[0].ID != w.ids[0] {
		t.Errorf("%d parked, %d due", report.Count, len(report.Due))
	}
}

// What can't be read of a parked hold is told, and the hold is tried all the same: it is
// what parking is for.
func TestAParkedHoldOfWhichNothingIsKnownIsTriedAllTheSame(t *testing.T) {
	f := newWorld(t, 1).function()
	id := f.hold(1)
	f.clock.Advance(holdFor)
	f.park(id, f.clock.Now())
	unreadable := errors.New("unreadable")
	f.parking = parkingFunc{Parking: f.world.store, failures: func() error { return unreadable }}
	got, err := f.tick()
	if !errors.Is(err, unreadable) {
		t.Errorf("the tick says %v", err)
	}
	mustReport(t, got, map[string]float64{
		"expiry_heartbeat": 0, "expiry_released": 1, "expiry_parked": 1, "expiry_release_delay_seconds_p95": 0,
	})
	f.mustBeExpired()
}

// lateParking lists what is not parked any more, as an index that is late does.
type lateParking struct {
	expiry.Parking
	listed ledger.DueHold
}

func (p lateParking) Parked(_ context.Context, shard int, _ ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
	if shard != ledger.DueShard(p.listed.ID) {
		return nil, "", nil
	}
	return []ledger.DueHold{p.listed}, "", nil
}

// An entry of a hold that is not parked any more is no ghost and no lag, and is not tried.
func TestALateEntryOfAParkedHoldCountsNothing(t *testing.T) {
	f := newWorld(t, 1).function()
	id := f.hold(1)
	f.clock.Advance(holdFor)
	f.parking = lateParking{f.world.store, ledger.DueHold{ID: id, TryAt: f.clock.Now()}}
	if _, err := f.commands.ExpireHold(context.Background(), id, "request_end"); err != nil {
		t.Fatal(err)
	}
	f.clock.Advance(time.Hour)
	mustReport(t, f.mustTick(), map[string]float64{
		"expiry_parked": 0, "expiry_ghosts": 0, "expiry_lag_seconds_max": 0, "expiry_already_ended": 0, "expiry_failed": 0,
	})
}

// The log tells of the first failures of a run only; the next run tells again.
func TestLogLinesAboutSingleHoldsAreBounded(t *testing.T) {
	f := newWorld(t, 100).function()
	f.holds(60, 0)
	f.clock.Advance(holdFor)
	f.releaser = f.poison(f.ids...)
	handler := f.handler()
	for range 2 {
		f.logs.Reset()
		_, err := handler.Handle(context.Background(), json.RawMessage(`{}`))
		must(t, err)
		if lines := strings.Count(f.logs.String(), `"hold_id"`); lines != expiry.FailureLinesMax {
			t.Errorf("%d lines", lines)
		}
	}
}
