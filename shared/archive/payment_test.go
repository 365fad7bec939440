package archive_test

import (
	"context"
	"testing"
	"time"

	"holdfast/shared/archive"
	"holdfast/shared/ledger"
)

func (w *world) origin() ledger.Origin {
	return ledger.Origin{
		Actor: "service:test", Command: ledger.CommandDriveReservation, RequestID: "request_pay", EventID: ledger.NewEventID(w.random.Bits128()),
	}
}

func (w *world) commit(change ledger.Change, err error) {
	w.tb.Helper()
	w.check(err)
	w.check(w.store.Commit(context.Background(), change))
}

func (w *world) reservation(id ledger.ReservationID) ledger.Reservation {
	w.tb.Helper()
	r, err := w.store.Reservation(context.Background(), id)
	w.check(err)
	return r
}

// step takes the reservation to a status, with what else is told.
func (w *world) step(id ledger.ReservationID, status ledger.ReservationStatus, t ledger.EventType, alter func(*ledger.Reservation)) {
	w.tb.Helper()
	r := w.reservation(id)
	next := r.Clone()
	next.Status = status
	alter(&next)
	w.commit(ledger.ReservationStep(r, next, t, nil, w.origin(), w.clock.Now()), nil)
	w.publish(ledger.ArchiveSubject{Reservation: id})
}

// captured makes a hold that is sold to a reservation whose money was taken, and which is
// to be delivered.
func (w *world) captured() (ledger.HoldID, ledger.ReservationID) {
	w.tb.Helper()
	hold := w.hold()
	id := ledger.NewReservationID(w.random.Bits128())
	change, err := ledger.StartReservation(id, w.read(hold), w.origin(), w.clock.Now())
	w.commit(change, err)
	w.step(id, ledger.ReservationAuthorized, ledger.EventReservationAuthorized, func(r *ledger.Reservation) {
		r.Attempts[0].State, r.Attempts[0].Payment, r.Attempts[0].AuthorizedAt = ledger.AttemptAuthorized, "pi_1", w.clock.Now()
	})
	change, err = ledger.ConfirmPaid(w.read(hold), w.origin(), w.clock.Now())
	w.check(err)
	r := w.reservation(id)
	next := r.Clone()
	next.Status, next.SoldHold = ledger.ReservationConfirmed, hold
	w.commit(ledger.Together(change, ledger.ReservationStep(r, next, ledger.EventReservationConfirmed, nil, w.origin(), w.clock.Now())), nil)
	w.step(id, ledger.ReservationCaptured, ledger.EventReservationCaptured, func(r *ledger.Reservation) {
		r.Attempts[0].State, r.Attempts[0].CapturedMinor = ledger.AttemptCaptured, r.Amount.AmountMinor
	})
	w.publish(ledger.ArchiveSubject{Hold: hold})
	return hold, id
}

func (w *world) complete(id ledger.ReservationID) {
	w.tb.Helper()
	w.step(id, ledger.ReservationCompleted, ledger.EventReservationCompleted, func(r *ledger.Reservation) {
		r.LookAt, r.DeliveredAt = time.Time{}, w.clock.Now()
	})
}

// M3: a payment that is under way, owes money, or waits for a person, keeps its reservation
// and its hold in the table, however old they are.
func TestCaseM3_NothingIsArchivedWhileMoneyIsOpen(t *testing.T) {
	owed := func(r *ledger.Reservation) {
		r.LookAt = time.Time{}
		r.Owe(1, 100, ledger.ReasonReturned, start)
	}
	states := map[string]func(w *world, id ledger.ReservationID){
		"captured":  func(*world, ledger.ReservationID) {},
		"looked at": func(w *world, id ledger.ReservationID) { w.complete(id); w.lookAt(id) },
		"owed": func(w *world, id ledger.ReservationID) {
			w.step(id, ledger.ReservationCompleted, ledger.EventReservationRefundOwed, owed)
		},
		"for a person": func(w *world, id ledger.ReservationID) {
			w.step(id, ledger.ReservationReview, ledger.EventReservationReview, func(r *ledger.Reservation) { r.LookAt = time.Time{} })
		},
	}
	for name, reach := range states {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 10)
			hold, id := w.captured()
			reach(w, id)
			w.clock.Advance(10 * reservationsAfter)
			if report := w.mustRun(); report != (archive.Report{PutOff: 1}) {
				t.Errorf("the run reports %+v", report)
			}
			if report := w.mustRun(); report != (archive.Report{}) {
				t.Errorf("what was put off is looked at again at once: %+v", report)
			}
			w.clock.Advance(archive.PutOffFor)
			if report := w.mustRun(); report != (archive.Report{PutOff: 1}) {
				t.Errorf("a day later the run reports %+v", report)
			}
			if w.read(hold).ArchivedIn != "" || w.reservation(id).ArchivedIn != "" {
				t.Error("one of them is archived")
			}
			if keys := w.watched.bucket.Keys(); len(keys) != 0 {
				t.Errorf("the bucket has %v", keys)
			}
		})
	}
}

// lookAt makes the reservation due, as an inquiry does.
func (w *world) lookAt(id ledger.ReservationID) {
	w.tb.Helper()
	w.check(w.store.Postpone(context.Background(), id, w.reservation(id).Version, w.clock.Now().Add(time.Hour), 1))
}

// At rest, the hold goes after its retention, and the reservation after its own, which is
// longer: the financial record is there when its hold has gone.
func TestAHoldGoesBeforeItsReservation(t *testing.T) {
	w := newWorld(t, 10)
	hold, id := w.captured()
	w.clock.Advance(holdsAfter)
	w.complete(id)
	if report := w.mustRun(); report != (archive.Report{Archived: 1}) {
		t.Errorf("the first run reports %+v", report)
	}
	w.archivedOnce(ledger.ArchiveHolds, []ledger.ArchiveSubject{{Hold: hold}})
	w.clock.Advance(reservationsAfter - time.Millisecond)
	if report := w.mustRun(); report != (archive.Report{}) || len(w.items(ledger.ArchiveSubject{Hold: hold})) != 0 {
		t.Errorf("before the retention is over the run reports %+v", report)
	}
	w.booksAreRight()
	w.clock.Advance(time.Millisecond)
	if report := w.mustRun(); report != (archive.Report{Archived: 1}) {
		t.Errorf("the last run reports %+v", report)
	}
	w.archivedOnce(ledger.ArchiveReservations, []ledger.ArchiveSubject{{Reservation: id}})
	w.booksAreRight()
	w.clock.Advance(archive.PurgeAfter)
	w.booksAreRight()
}

// neighbour makes a hold of the same shard and gives it up now.
func (w *world) neighbour(of ledger.HoldID) ledger.HoldID {
	w.tb.Helper()
	id := w.hold()
	for ledger.DueShard(id) != ledger.DueShard(of) {
		id = w.hold()
	}
	_, err := w.commands.CancelHold(context.Background(), owner(), id, rendered)
	w.check(err)
	w.publish(ledger.ArchiveSubject{Hold: id})
	return id
}

// A sale that is given back between the plan and the mark is left out of the batch, and is
// archived later as it is then, in another one.
func TestWhatChangesOnItsWayIsArchivedLater(t *testing.T) {
	w := newWorld(t, 200)
	hold, id := w.captured()
	w.complete(id)
	neighbour := ledger.ArchiveSubject{Hold: w.neighbour(hold)}
	w.clock.Advance(holdsAfter)
	w.watched.step = func(call string, done bool) {
		if call == "PutObject" && done {
			w.watched.step = nil
			h := w.read(hold)
			change, err := ledger.Return(h, h.Unreturned(), w.origin(), w.clock.Now())
			w.commit(change, err)
			w.publish(ledger.ArchiveSubject{Hold: hold})
		}
	}
	if report := w.mustRun(); report != (archive.Report{Archived: 1}) {
		t.Errorf("the run reports %+v", report)
	}
	w.archivedOnce(ledger.ArchiveHolds, []ledger.ArchiveSubject{neighbour})
	if h := w.read(hold); h.ArchivedIn != "" || h.Status != ledger.StatusReturned {
		t.Fatalf("the hold is %s and in batch %q", h.Status, h.ArchivedIn)
	}
	w.clock.Advance(holdsAfter)
	if report := w.mustRun(); report != (archive.Report{Archived: 1}) {
		t.Errorf("a retention later the run reports %+v", report)
	}
	w.archivedOnce(ledger.ArchiveHolds, []ledger.ArchiveSubject{{Hold: hold}, neighbour})
	w.booksAreRight()
}
