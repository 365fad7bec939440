package ledger

import (
	"slices"
	"time"
)

// Cancellation is a wish to take a reservation back.
type Cancellation struct {
	// Lines are what is given back; none stands for all.
	Lines []ReturnLine
	// TakeBack says from which stock items the units are taken back that were granted to a
	// slot. A slot without an entry gives them back where they were put. They are like any
	// others of the slot by then: a reshard, or a sale, may have left them elsewhere.
	TakeBack map[SlotID][]Allocation
	// Reason is why. ReasonOperatorCanceled and ReasonDeliveryFailed are not bound to the
	// policy's time.
	Reason Reason
}

// CancelReservation takes r back, whose hold is h: the one that was sold to it, or else
// the one that it pays for.
//
// Before the sale the whole of it is cancelled: every attempt is voided first, and only
// then is the hold released. After the sale the return of the units and the refund that
// is owed are one Change, written before the provider is asked for anything. A reservation
// in REVIEW may be of either kind: a sale that can't be delivered still has its units.
//
// Doing again what the same wish has done returns an empty Change. Errors:
// CodeReservationNotActive, CodeTooLateToCancel, CodePaymentInProgress for a part of a sale
// that is just being captured, CodeInvalid for lines before the sale or in REVIEW and for
// a part after PartsMax of them, those of Return, and CodeReservationArchived for a
// reservation that lies in the archive.
func CancelReservation(r Reservation, h Hold, wish Cancellation, origin Origin, now time.Time) (Change, error) {
	switch r.Status {
	case ReservationPaymentPending, ReservationAuthorized, ReservationReview:
		if len(wish.Lines) > 0 {
			return Change{}, errorf(CodeInvalid, "before the sale, or while a person must decide, a reservation can only be cancelled as a whole; leave lines out")
		}
		if h.Status == StatusConfirmed {
			return cancelSold(r, h, wish, origin, now)
		}
		return cancelUnsold(r, wish.Reason, origin, now)
	case ReservationConfirmed, ReservationCaptured, ReservationCompleted:
		return cancelSold(r, h, wish, origin, now)
	case ReservationCompensating, ReservationCanceled, ReservationRefunded, ReservationRefundRequired:
		if r.Reason == wish.Reason && len(wish.Lines) == 0 {
			return Change{}, nil
		}
	}
	return Change{}, ReservationNotActive(r)
}

func cancelUnsold(r Reservation, reason Reason, origin Origin, now time.Time) (Change, error) {
	next := r.Clone()
	next.Status, next.Reason, next.LookAt = ReservationCompensating, reason, now
	next.WantNoMoney()
	return ReservationStep(r, next, EventReservationCompensating, nil, origin, now), nil
}

func cancelSold(r Reservation, h Hold, wish Cancellation, origin Origin, now time.Time) (Change, error) {
	lines := wish.Lines
	if len(lines) == 0 {
		lines = h.Unreturned()
	}
	returned, err := Return(h, lines, origin.Beside("hold"), now)
	if err != nil {
		return Change{}, err
	}
	if wish.Reason == ReasonOwnerCanceled {
		if err := inTimeToCancel(h, lines, now); err != nil {
			return Change{}, err
		}
	}
	left := returned.Holds[0].Next
	next := r.Clone()
	next.LookAt = now
	var amount int64
	for _, line := range lines {
		amount += h.line(line.Slot).UnitPrice.Times(line.Quantity).AmountMinor
	}
	event := EventReservationRefundOwed
	current, paid := r.Current()
	switch {
	case left.Status == StatusReturned:
		next.Status, next.Reason, event = ReservationCompensating, wish.Reason, EventReservationCompensating
		next.WantNoMoney()
		if paid && current.State == AttemptCaptured {
			amount = current.CapturedMinor - r.RefundedMinor(current.Number, RefundOwed, RefundDone, RefundFailed)
		}
	case r.Status != ReservationCaptured && r.Status != ReservationCompleted:
		return Change{}, paymentInProgress()
	case r.refunds(current.Number) >= PartsMax:
		return Change{}, errorf(CodeInvalid, "parts were given back %d times; give back all that is left", PartsMax)
	}
	if paid && current.State == AttemptCaptured && amount > 0 {
		next.Owe(current.Number, amount, refundReason(wish), now)
	}
	movements, grants := takeBack(r.Grants, h, left, wish.TakeBack)
	next.Grants = grants
	if len(movements)+len(returned.Stock) > StockActionsMax {
		return Change{}, AlreadyUsed(movements[0].Slot)
	}
	return Together(returned, ReservationStep(r, next, event, movements, origin, now)), nil
}

// refunds counts the refunds of an attempt.
func (r Reservation) refunds(n AttemptNumber) int {
	count := 0
	for _, refund := range r.Refunds {
		if refund.Attempt == n {
			count++
		}
	}
	return count
}

func refundReason(wish Cancellation) Reason {
	if len(wish.Lines) > 0 && wish.Reason == ReasonOwnerCanceled {
		return ReasonReturned
	}
	return wish.Reason
}

func inTimeToCancel(h Hold, lines []ReturnLine, now time.Time) error {
	for _, line := range lines {
		if until := h.line(line.Slot).CancelUntil; !until.IsZero() && !now.Before(until) {
			return &Error{Code: CodeTooLateToCancel, Slots: []SlotID{line.Slot}, Message: "this could be cancelled until " + until.UTC().Format(time.RFC3339)}
		}
	}
	return nil
}

func (h Hold) line(slot SlotID) Line {
	if i := slices.IndexFunc(h.Lines, func(l Line) bool { return l.Slot == slot }); i >= 0 {
		return h.Lines[i]
	}
	return Line{}
}

// takeBack says which granted units go when the hold becomes left: as many of each grant
// as were just returned of the line that it is of, from where the wish says. The write
// refuses it where they are not there any more.
func takeBack(grants []Grant, h, left Hold, from map[SlotID][]Allocation) ([]Movement, []Grant) {
	back := make(map[SlotID]Units)
	for i, line := range left.Lines {
		if line.GrantTo != "" {
			back[line.GrantTo] += line.ReturnedQuantity() - h.Lines[i].ReturnedQuantity()
		}
	}
	places := make(map[SlotID][]Allocation)
	var slots []SlotID
	var kept []Grant
	for _, g := range grants {
		if units := min(g.Quantity, back[g.Slot]); units > 0 {
			if places[g.Slot] == nil {
				slots = append(slots, g.Slot)
			}
			back[g.Slot] -= units
			places[g.Slot] = addAllocations(places[g.Slot], []Allocation{{g.Shard, units}})
			g.Quantity -= units
		}
		if g.Quantity > 0 {
			kept = append(kept, g)
		}
	}
	var movements []Movement
	for _, slot := range slots {
		if chosen := from[slot]; sum(chosen) == sum(places[slot]) {
			places[slot] = chosen
		}
		movements = append(movements, Line{Slot: slot, Shards: places[slot]}.movements(BucketAvailable, BucketOutside)...)
	}
	return movements, kept
}

// AlreadyUsed is the answer where granted units are not there any more to be taken back.
func AlreadyUsed(slot SlotID) *Error {
	return &Error{Code: CodeAlreadyUsed, Slots: []SlotID{slot}, Message: "what was delivered is not there any more, so the sale can't be taken back"}
}

// Deliver records what an external system made of the delivery of r, whose sold hold is h.
// A failed delivery takes the sale back. Saying the same again returns an empty Change.
// It returns CodeReservationNotActive for a reservation that waits for no delivery.
func Deliver(r Reservation, h Hold, delivered bool, origin Origin, now time.Time) (Change, error) {
	switch {
	case delivered && !r.DeliveredAt.IsZero(), !delivered && r.Reason == ReasonDeliveryFailed:
		return Change{}, nil
	case r.Status != ReservationCaptured || h.Terms.Delivery != DeliveryEvent || !r.DeliveredAt.IsZero():
		return Change{}, ReservationNotActive(r)
	case !delivered:
		return CancelReservation(r, h, Cancellation{Reason: ReasonDeliveryFailed}, origin, now)
	}
	next := r.Clone()
	next.DeliveredAt, next.LookAt = now, now
	return ReservationStep(r, next, EventReservationDelivered, nil, origin, now), nil
}
