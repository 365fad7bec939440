package ledger

import "time"

// StartReservation begins the payment of h: a reservation with its first attempt, and the
// hold's grace. A hold that costs nothing needs no payment: its reservation begins as
// AUTHORIZED, without an attempt. Errors are those of StartAttempt.
func StartReservation(id ReservationID, h Hold, origin Origin, now time.Time) (Change, error) {
	if h.Reservation != "" {
		return Change{}, paymentInProgress()
	}
	next := Reservation{
		ID: id, Owner: h.Owner, Hold: h.ID, Status: ReservationPaymentPending, Amount: h.Total(),
		Attempts: []Attempt{{Number: 1, State: AttemptOpen, OpenedAt: now}}, LookAt: now,
	}
	open := AttemptNumber(1)
	if next.Amount.AmountMinor == 0 {
		next.Status, next.Attempts, open = ReservationAuthorized, nil, 0
	}
	held, err := StartAttempt(h, id, open, origin.Beside("hold"), now)
	if err != nil {
		return Change{}, err
	}
	change := Together(held, ReservationStep(Reservation{}, next, EventReservationPaymentStarted, nil, origin, now))
	change.Uniqueness = []Uniqueness{next.ClaimHold()}
	return change, nil
}

// StartNextAttempt lets the buyer of a hold that is kept try again. The attempt before is
// closed already (its State is voided), or is closed in this Change, because the
// provider has just confirmed that it can't succeed any more: voided says which.
// It returns CodeHoldNotActive for a hold that has ended (case B6), CodeReservationNotActive
// for a reservation that takes no payment, CodeInvalid after AttemptsMax attempts, and
// the errors of StartAttempt.
func StartNextAttempt(r Reservation, h Hold, voided AttemptNumber, origin Origin, now time.Time) (Change, error) {
	current, _ := r.Current()
	switch {
	case h.Status != StatusHeld:
		return Change{}, notActive(h, now)
	case r.Status != ReservationPaymentPending:
		return Change{}, ReservationNotActive(r)
	case len(r.Attempts) >= AttemptsMax:
		return Change{}, errorf(CodeInvalid, "this reservation has had %d payment attempts; make a new hold", AttemptsMax)
	case current.State != AttemptVoided && (current.State != AttemptOpen || current.Number != voided):
		return Change{}, paymentInProgress()
	}
	next := r.Clone()
	if closed := next.Attempt(voided); closed != nil {
		closed.State = AttemptVoided
	}
	next.Attempts = append(next.Attempts, Attempt{Number: current.Number + 1, State: AttemptOpen, OpenedAt: now})
	next.LookAt = now
	if h.AttemptOpen == voided {
		h.AttemptOpen = 0 // it ends in the same write that opens the next one
	}
	held, err := StartAttempt(h, r.ID, current.Number+1, origin.Beside("hold"), now)
	if err != nil {
		return Change{}, err
	}
	held.Holds[0].NoOpenAttempt = false
	return Together(held, ReservationStep(r, next, EventReservationPaymentStarted, nil, origin, now)), nil
}

// PaymentCreated records the provider's id of an attempt's payment. It returns an empty
// Change if it is recorded already.
func PaymentCreated(r Reservation, n AttemptNumber, id PaymentID, origin Origin, now time.Time) Change {
	attempt := r.Attempt(n)
	if attempt == nil || attempt.Payment == id {
		return Change{}
	}
	next := r.Clone()
	next.Attempt(n).Payment = id
	change := ReservationStep(r, next, EventReservationPaymentCreated, nil, origin, now)
	change.Uniqueness = []Uniqueness{r.ClaimPayment(id)}
	return change
}

// ReservationNotActive is the refusal of a step that the reservation's status has not.
func ReservationNotActive(r Reservation) *Error {
	if r.ArchivedIn != "" {
		return ReservationArchived()
	}
	return errorf(CodeReservationNotActive, "the reservation is %s; nothing of this kind can be done with it", r.Status)
}
