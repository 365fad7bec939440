package expiry_test

import (
	"context"
	"testing"
	"time"

	"holdfast/shared/expiry"
	"holdfast/shared/ledger"
)

const reservation ledger.ReservationID = "rsv_00000000000000000000000001"

// pay begins the payment of the hold now. From then on it has its grace, and an open
// attempt.
func (w *world) pay(id ledger.HoldID) {
	w.tb.Helper()
	change, err := ledger.StartReservation(reservation, w.read(id), origin("event_pay"), w.clock.Now())
	if err == nil {
		err = w.store.Commit(context.Background(), change)
	}
	if err != nil {
		w.tb.Fatalf("start payment: %v", err)
	}
}

// closeAttempt says that the attempt can't succeed any more.
func (w *world) closeAttempt(id ledger.HoldID) {
	w.tb.Helper()
	if err := w.store.Commit(context.Background(), ledger.CloseAttempt(w.read(id), origin("event_close"), w.clock.Now())); err != nil {
		w.tb.Fatalf("close the attempt: %v", err)
	}
}

func origin(id ledger.EventID) ledger.Origin {
	return ledger.Origin{Actor: "owner:U-1", Command: ledger.CommandStartPayment, RequestID: "request_pay", EventID: id}
}

// A hold whose payment may still succeed is no work for the sweep, and no lag, until it has
// been over for as long as its terms keep it. Then it ends, with the compensation owed in
// the same Change; and the lag counts from there.
func TestAHoldWithAnOpenAttemptEndsAfterUnknownFor(t *testing.T) {
	dueAt := start.Add(holdFor + ledger.GraceForDefault + ledger.UnknownForDefault)
	for _, test := range []struct {
		at       time.Time
		released int
		lag      time.Duration
	}{
		{start.Add(holdFor), 0, 0},
		{start.Add(holdFor + ledger.GraceForDefault), 0, 0},
		{dueAt.Add(-time.Millisecond), 0, 0},
		{dueAt, 1, 0},
		{dueAt.Add(90 * time.Second), 1, 90 * time.Second},
	} {
		w := newWorld(t, 1)
		id := w.hold(1)
		w.pay(id)
		w.clock.Set(test.at)
		report := mustRun(t, w.sweep(nil, nil, 100))
		if want := (expiry.Report{Released: test.released, ReleaseDelayP95: test.lag, Lag: test.lag, LagKnown: true}); report != want {
			t.Errorf("at %s: report %+v, want %+v", test.at, report, want)
		}
		hold := w.read(id)
		r, err := w.store.Reservation(context.Background(), reservation)
		if err != nil {
			t.Fatal(err)
		}
		if test.released == 0 {
			if hold.Status != ledger.StatusHeld || r.Status != ledger.ReservationPaymentPending {
				t.Errorf("at %s the hold is %s, the reservation %s", test.at, hold.Status, r.Status)
			}
			continue
		}
		if hold.Status != ledger.StatusExpired || r.Status != ledger.ReservationCompensating || r.LookAt.IsZero() {
			t.Errorf("at %s the hold is %s, the reservation %s, looked at %s", test.at, hold.Status, r.Status, r.LookAt)
		}
		if got := w.counters(); got != (ledger.Counters{Available: 1, Capacity: 1}) {
			t.Errorf("at %s: %+v", test.at, got)
		}
		if report := mustRun(t, w.sweep(nil, nil, 100)); report != (expiry.Report{LagKnown: true}) {
			t.Errorf("again: %+v", report)
		}
	}
}

// Closing the attempt sets the due time back to the release time, so nothing is kept
// longer than it must be.
func TestAHoldWhoseAttemptIsClosedEndsAtItsRelease(t *testing.T) {
	w := newWorld(t, 1)
	id := w.hold(1)
	w.pay(id)
	w.clock.Set(start.Add(holdFor))
	w.closeAttempt(id)
	w.clock.Set(start.Add(holdFor + ledger.GraceForDefault - time.Millisecond))
	if report := mustRun(t, w.sweep(nil, nil, 100)); report != (expiry.Report{LagKnown: true}) {
		t.Errorf("before its release: %+v", report)
	}
	w.clock.Set(start.Add(holdFor + ledger.GraceForDefault + time.Minute))
	if report := mustRun(t, w.sweep(nil, nil, 100)); report != (expiry.Report{Released: 1, ReleaseDelayP95: time.Minute, Lag: time.Minute, LagKnown: true}) {
		t.Errorf("after its release: %+v", report)
	}
}

// The index may still list a hold at the time before its payment began. It is due later
// than the entry says: no lag, and no failure, whether the releaser says so as not due or
// as a payment in progress.
func TestALateEntryOfAPaidHoldIsNoFailure(t *testing.T) {
	for name, says := range map[string]func(*world) expiry.Releaser{
		"not due": func(w *world) expiry.Releaser { return w.commands },
		"payment in progress": func(*world) expiry.Releaser {
			return &releaserFunc{do: func(context.Context, ledger.HoldID) (bool, error) {
				return false, &ledger.Error{Code: ledger.CodePaymentInProgress, Message: "a payment is in progress"}
			}}
		},
	} {
		w := newWorld(t, 1)
		id := w.hold(1)
		w.pay(id)
		w.clock.Set(start.Add(holdFor + ledger.GraceForDefault + time.Minute))
		stale := storeFunc{w.store, func(shard int, _ time.Time, _ ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
			if shard != ledger.DueShard(id) {
				return nil, "", nil
			}
			return []ledger.DueHold{{ID: id, DueAt: start.Add(holdFor)}}, "", nil
		}}
		if report := mustRun(t, w.sweep(stale, says(w), 100)); report != (expiry.Report{AlreadyEnded: 1, LagKnown: true}) {
			t.Errorf("%s: report %+v", name, report)
		}
		if hold := w.read(id); hold.Status != ledger.StatusHeld {
			t.Errorf("%s: the hold is %s", name, hold.Status)
		}
	}
}
