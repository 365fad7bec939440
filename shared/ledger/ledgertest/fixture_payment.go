package ledgertest

import (
	"time"

	"holdfast/shared/ledger"
)

func (f *fixture) reservationID() ledger.ReservationID { return ledger.NewReservationID(f.random()) }

// started builds the change that begins the payment of the hold: its first attempt, the
// reservation, and the claim that keeps a second reservation away.
func (f *fixture) started(h ledger.Hold) ledger.Change {
	f.Helper()
	origin := f.origin(ledger.CommandStartPayment)
	next := ledger.Reservation{
		ID: f.reservationID(), Owner: h.Owner, Hold: h.ID, Status: ledger.ReservationPaymentPending, Amount: h.Total(),
		Attempts: []ledger.Attempt{{Number: 1, State: ledger.AttemptOpen, OpenedAt: f.now}}, LookAt: f.now.Add(time.Second),
	}
	change := ledger.Together(
		f.built(ledger.StartAttempt(h, next.ID, 1, origin.Beside("hold"), f.now)),
		f.step(ledger.Reservation{}, next, ledger.EventReservationPaymentStarted, origin))
	change.Uniqueness = []ledger.Uniqueness{next.ClaimHold()}
	return change
}

// step builds the change of a reservation's step that moves no stock.
func (f *fixture) step(r, next ledger.Reservation, event ledger.EventType, origin ledger.Origin) ledger.Change {
	return ledger.ReservationStep(r, next, event, nil, origin, f.now)
}

// paying commits a new hold of these lines and the start of its payment.
func (f *fixture) paying(takes ...take) (ledger.Hold, ledger.Reservation) {
	f.Helper()
	started := f.started(f.held(takes...))
	f.commit(started)
	return started.Holds[0].Next, started.Reservations[0].Next
}

// sold builds the change that sells the hold to its reservation, which becomes CONFIRMED.
func (f *fixture) sold(h ledger.Hold, r ledger.Reservation) ledger.Change {
	f.Helper()
	origin := f.origin(ledger.CommandDriveReservation)
	next := r.Clone()
	next.Status, next.SoldHold = ledger.ReservationConfirmed, h.ID
	next.Attempts[0].State, next.Attempts[0].AuthorizedAt = ledger.AttemptAuthorized, f.now
	return ledger.Together(
		f.built(ledger.ConfirmPaid(h, origin.Beside("hold"), f.now)),
		f.step(r, next, ledger.EventReservationConfirmed, origin))
}

// authorized commits that the money is there.
func (f *fixture) authorized(r ledger.Reservation) ledger.Reservation {
	f.Helper()
	next := r.Clone()
	next.Status = ledger.ReservationAuthorized
	next.Attempts[0].State, next.Attempts[0].AuthorizedAt = ledger.AttemptAuthorized, f.now
	change := f.step(r, next, ledger.EventReservationAuthorized, f.origin(ledger.CommandDriveReservation))
	f.commit(change)
	return change.Reservations[0].Next
}

// closed builds the change that closes the hold's open attempt.
func (f *fixture) closed(h ledger.Hold) ledger.Change {
	return ledger.CloseAttempt(h, f.origin(ledger.CommandDriveReservation), f.now)
}

// returned builds the change that gives back these lines, or all without any.
func (f *fixture) returned(h ledger.Hold, lines ...ledger.ReturnLine) ledger.Change {
	f.Helper()
	return f.built(ledger.Return(h, lines, f.origin(ledger.CommandCancelReservation), f.now))
}

// storedReservation reads a reservation that must exist.
func (f *fixture) storedReservation(id ledger.ReservationID) ledger.Reservation {
	f.Helper()
	reservation, err := f.store.Reservation(f.ctx, id)
	if err != nil {
		f.Fatalf("reservation %s: %v", id, err)
	}
	return reservation
}

// dueAt is when the due index names the hold, and whether it does.
func (f *fixture) dueAt(id ledger.HoldID) (time.Time, bool) {
	f.Helper()
	due, _, err := f.store.Due(f.ctx, ledger.DueShard(id), never, ledger.Page{Limit: ledger.PageItemsMax})
	f.read(err)
	for _, entry := range due {
		if entry.ID == id {
			return entry.DueAt, true
		}
	}
	return time.Time{}, false
}

// lookAt is when the due index names the reservation, and whether it does.
func (f *fixture) lookAt(id ledger.ReservationID) (time.Time, bool) {
	f.Helper()
	due, _, err := f.store.DueReservations(f.ctx, ledger.ReservationDueShard(id), never, ledger.Page{Limit: ledger.PageItemsMax})
	f.read(err)
	for _, entry := range due {
		if entry.ID == id {
			return entry.DueAt, true
		}
	}
	return time.Time{}, false
}
