package ledger

import (
	"time"
)

// StartAttempt lets a payment attempt of the reservation begin: the hold gets its grace,
// once, and until the attempt is closed only the reservation can release it. It is
// refused with CodeHoldNotActive from h.ExpiresAt on, which is what the user sees, and
// with CodePaymentInProgress while an attempt is open or for another reservation.
func StartAttempt(h Hold, r ReservationID, attempt AttemptNumber, origin Origin, now time.Time) (Change, error) {
	switch {
	case h.ArchivedIn != "":
		return Change{}, HoldArchived()
	case h.Status != StatusHeld || !now.Before(h.ExpiresAt):
		return Change{}, errorf(CodeHoldNotActive, "the hold is %s or its time is over; make a new hold", h.StatusAt(now))
	case h.AttemptOpen != 0, h.Reservation != "" && h.Reservation != r:
		return Change{}, paymentInProgress()
	}
	next := h
	next.Reservation, next.AttemptOpen = r, attempt
	next.ReleaseAt = h.ExpiresAt.Add(h.GraceFor)
	next.Version++
	change := changeHold(h, next, EventHoldPaymentStarted, origin, now)
	change.Holds[0].When, change.Holds[0].NoOpenAttempt = BeforeExpiry, true
	change.Holds[0].Of = &h.Reservation
	return change, nil
}

// CloseAttempt says that the open attempt can't succeed any more. The hold lives on
// until its release time.
func CloseAttempt(h Hold, origin Origin, now time.Time) Change {
	next := h
	next.AttemptOpen = 0
	next.Version++
	change := changeHold(h, next, EventHoldPaymentClosed, origin, now)
	change.Holds[0].Of = &h.Reservation
	return change
}

// ConfirmPaid sells what h promises to its own reservation, which has the money. It is
// refused with CodeHoldNotActive once h has ended or now has reached h.ReleaseAt
// (promise P4).
func ConfirmPaid(h Hold, origin Origin, now time.Time) (Change, error) {
	if h.Status != StatusHeld || !now.Before(h.ReleaseAt) {
		return Change{}, notActive(h, now)
	}
	change := endHold(h, ended(h, StatusConfirmed, now), EventHoldConfirmed, BucketConfirmed, origin, now)
	change.Holds[0].When, change.Holds[0].Of = BeforeRelease, &h.Reservation
	return change, nil
}

// ReleaseUnpaid ends h when its reservation has made sure that no money can come: as
// CANCELED in its time, as EXPIRED afterwards.
func ReleaseUnpaid(h Hold, origin Origin, now time.Time) (Change, error) {
	if h.Status != StatusHeld {
		return Change{}, notActive(h, now)
	}
	status, event, when := StatusCanceled, EventHoldCanceled, AnyTime
	if !now.Before(h.ReleaseAt) {
		status, event, when = StatusExpired, EventHoldExpired, FromRelease
	}
	change := endHold(h, ended(h, status, now), event, BucketAvailable, origin, now)
	change.Holds[0].When, change.Holds[0].Of = when, &h.Reservation
	return change, nil
}

// ExpireUnknown ends h although its payment may still succeed, because it has been over
// for as long as its terms keep it. Whoever calls it writes in the same Change that the
// money is to be given back. Before that time it returns CodeHoldNotDue.
func ExpireUnknown(h Hold, origin Origin, now time.Time) (Change, error) {
	switch {
	case h.Status != StatusHeld:
		return Change{}, notActive(h, now)
	case now.Before(h.ReleaseAt.Add(h.Terms.UnknownFor)):
		return Change{}, errorf(CodeHoldNotDue, "the hold still waits for its payment")
	}
	change := endHold(h, ended(h, StatusExpired, now), EventHoldExpired, BucketAvailable, origin, now)
	change.Holds[0].When, change.Holds[0].OverFor = FromRelease, h.Terms.UnknownFor
	change.Holds[0].Of = &h.Reservation
	return change, nil
}

// ReacquiredID is the id of the hold that a late payment of h makes. It follows from h,
// so that two workers who try at once make one.
func ReacquiredID(h Hold) HoldID { return NewHoldID(derivedBits("reacquire", string(h.ID))) }

// Reacquire sells the units of h, which is over, to its reservation after all: a new hold
// is born CONFIRMED, because a hold that has ended never comes back. If h still holds the
// units, it ends in the same Change and they move once. If it has ended, allocations say
// where to take them from, by slot; the Change then needs them to be available. It needs
// every slot to be open, and looks at no price, sale window or limit. It returns
// CodeHoldNotDue before h is over, CodeHoldNotActive for a hold that was sold, and
// CodeInsufficientStock for units on too many stock items.
func Reacquire(h Hold, allocations map[SlotID][]Allocation, origin Origin, now time.Time) (Change, error) {
	born := Hold{
		ID: ReacquiredID(h), Owner: h.Owner, Status: StatusConfirmed, CreatedAt: now,
		ExpiresAt: h.ExpiresAt, ReleaseAt: h.ReleaseAt, HoldFor: h.HoldFor, HoldForMax: h.HoldForMax,
		GraceFor: h.GraceFor, Terms: h.Terms, CountsIn: h.CountsIn, CountsExpiry: h.CountsExpiry, Scarce: h.Scarce,
		Reservation: h.Reservation, Reacquires: h.ID, EndedAt: now, Version: 1,
	}
	from := BucketAvailable
	switch {
	case h.Status == StatusConfirmed, h.Status == StatusReturned:
		return Change{}, notActive(h, now)
	case h.Status == StatusHeld && now.Before(h.ReleaseAt):
		return Change{}, errorf(CodeHoldNotDue, "the hold is not over yet")
	case h.Status == StatusHeld:
		from = BucketHeld
	}
	var movements []Movement
	for _, line := range h.Lines {
		line.Returned = nil
		if from == BucketAvailable {
			line.Shards = allocations[line.Slot]
		}
		born.Lines = append(born.Lines, line)
		movements = append(movements, line.movements(from, BucketConfirmed)...)
	}
	if len(movements)+h.grantedSlots() > StockActionsMax {
		return Change{}, errorf(CodeInsufficientStock, "the units are spread over more than %d stock items", StockActionsMax)
	}
	change := Change{
		At: now, Holds: []HoldWrite{{Next: born}}, Stock: stockWrites(movements, nil),
		Quotas: quotaWrites(Hold{}, born, nil),
		Events: []Event{holdEvent(EventHoldReacquired, born, origin.Beside("reacquired"), movements, now)},
	}
	change.forgetAfterSale(born)
	for i := range change.Stock {
		change.Stock[i].Open = true
	}
	if from == BucketAvailable {
		return change, nil
	}
	old := changeHold(h, ended(h, StatusExpired, now), EventHoldExpired, origin, now)
	old.Holds[0].When, old.Holds[0].Of = FromRelease, &h.Reservation
	return Together(old, change), nil
}

// changeHold builds the Change of a step that moves no stock.
func changeHold(h, next Hold, t EventType, origin Origin, now time.Time) Change {
	return Change{
		At: now, Holds: []HoldWrite{{Next: next, Replaces: h.Version}},
		Quotas: quotaWrites(h, next, nil),
		Events: []Event{holdEvent(t, next, origin, nil, now)},
	}
}

func noReservation() *ReservationID {
	var none ReservationID
	return &none
}
