package ledger

import (
	"fmt"
	"time"
)

// ResolveReservation carries out what a person has decided about r, which is in REVIEW or in
// REFUND_REQUIRED, and whose hold is h: the one that was sold to it, or else the one that it
// pays for. Whatever is decided takes r out of that status, so that a reservation that waits
// again later is a new question. The provider is asked for nothing here: the saga does that
// afterwards.
//
// Errors: CodeDecisionNotPossible, which says what can be decided instead, CodeInvalid for a
// decision that the status does not have, CodeReservationNotActive for a reservation that does
// not wait for a person, and those of Return.
func ResolveReservation(r Reservation, h Hold, d ReviewDecision, takeBack map[SlotID][]Allocation, origin Origin, now time.Time) (Change, error) {
	kind, waits := r.ReviewKind()
	switch {
	case !waits:
		return Change{}, ReservationNotActive(r)
	case !kind.Allows(d):
		return Change{}, errorf(CodeInvalid, "a reservation in %s can't be decided as %q", r.Status, d)
	case r.Status == ReservationRefundRequired && d == DecisionRetry:
		return retryRefunds(r, origin, now), nil
	case r.Status == ReservationRefundRequired:
		return refundedByHand(r, origin, now), nil
	case d == DecisionApprove:
		return approve(r, h, origin, now)
	case d == DecisionVoid && r.takenMinor() > 0:
		return Change{}, errorf(CodeDecisionNotPossible, "%d %s of it were taken and not given back, so nothing can be voided; decide refund", r.takenMinor(), r.Amount.Currency)
	}
	reason := r.Reason
	if reason == "" {
		reason = ReasonOperatorCanceled
	}
	return CancelReservation(r, h, Cancellation{Reason: reason, TakeBack: takeBack}, origin, now)
}

// ReviewKind is the kind of the case that r is, and whether it is one.
func (r Reservation) ReviewKind() (ReviewKind, bool) {
	_, waits := r.InReviewSince()
	if r.Status == ReservationRefundRequired {
		return ReviewRefund, waits
	}
	return ReviewReservation, waits
}

// takenMinor is the money that was taken and not given back, in minor units.
func (r Reservation) takenMinor() int64 {
	var total int64
	for _, a := range r.Attempts {
		total += a.CapturedMinor - r.RefundedMinor(a.Number, RefundDone)
	}
	return total
}

// approve lets a payment count that a person had to look at. One that came late goes on to
// buy the units, if they are still there when the saga has asked for the payment once more;
// a sale that could not be delivered is delivered again.
func approve(r Reservation, h Hold, origin Origin, now time.Time) (Change, error) {
	current, paid := r.Current()
	next := r.Clone()
	next.ApprovedAt, next.LookAt = now, now
	switch {
	case !paid:
		return Change{}, errorf(CodeDecisionNotPossible, "there is no payment that could count; decide refund, which ends the reservation")
	case current.Unwanted:
		return Change{}, errorf(CodeDecisionNotPossible, "its money is not what was asked for, or is not wanted any more, and goes back; decide refund or void, which ends the reservation")
	case current.State == AttemptCaptured && (current.CapturedMinor != r.Amount.AmountMinor || r.refunds(current.Number) > 0):
		return Change{}, errorf(CodeDecisionNotPossible, "%d of %d %s were taken and not given back; decide refund", r.takenMinor(), r.Amount.AmountMinor, r.Amount.Currency)
	case current.State == AttemptCaptured && h.Status == StatusConfirmed:
		next.Status, next.Reason = ReservationCaptured, ""
		return ReservationStep(r, next, EventReservationCaptured, nil, origin, now), nil
	case h.Status == StatusConfirmed, h.Status == StatusReturned:
		return Change{}, errorf(CodeDecisionNotPossible, "the hold is %s already; decide refund or void, which takes the sale back", h.Status)
	case current.State != AttemptAuthorized && current.State != AttemptCaptured:
		return Change{}, errorf(CodeDecisionNotPossible, "the money is not there: the payment is %s; decide void, which ends the reservation", current.State)
	}
	next.Status, next.Reason = ReservationAuthorized, ""
	return ReservationStep(r, next, EventReservationAuthorized, nil, origin, now), nil
}

// retryRefunds has the saga ask the provider again for all that it would not do.
func retryRefunds(r Reservation, origin Origin, now time.Time) Change {
	next := r.Clone()
	for i := range next.Refunds {
		if refund := &next.Refunds[i]; refund.State == RefundFailed {
			refund.State, refund.EndedAt = RefundOwed, time.Time{}
			refund.Again++
		}
	}
	next.Status, next.LookAt = ReservationCompensating, now
	return ReservationStep(r, next, EventReservationCompensating, nil, origin, now)
}

// refundedByHand takes a person's word that no money is left with us: what was taken has been
// given back on another way, and nothing can come of what was not. Money that the provider
// shows all the same opens the reservation again.
func refundedByHand(r Reservation, origin Origin, now time.Time) Change {
	next := r.Clone()
	next.WantNoMoney()
	for i := range next.Attempts {
		a := &next.Attempts[i]
		if a.State != AttemptCaptured {
			a.State = AttemptVoided
			continue
		}
		if rest := a.CapturedMinor - next.RefundedMinor(a.Number, RefundOwed, RefundDone, RefundFailed); rest > 0 {
			next.Owe(a.Number, rest, handReason(r), now)
		}
	}
	for i := range next.Refunds {
		if refund := &next.Refunds[i]; refund.State != RefundDone {
			refund.State, refund.EndedAt, refund.ByHand = RefundDone, now, true
		}
	}
	next.Status, next.LookAt = ReservationCompensating, now
	return ReservationStep(r, next, EventReservationRefundEnded, nil, origin, now)
}

func handReason(r Reservation) Reason {
	if r.Reason == "" {
		return ReasonSurplus
	}
	return r.Reason
}

// ProviderRefundedMinor is the sum of the attempt's refunds that are done and that the
// provider gave: what its own sum must show.
func (r Reservation) ProviderRefundedMinor(n AttemptNumber) int64 {
	var total int64
	for _, refund := range r.Refunds {
		if refund.Attempt == n && refund.State == RefundDone && !refund.ByHand {
			total += refund.AmountMinor
		}
	}
	return total
}

// checkRefunds returns an error for a refund that no step can have made.
func (r Reservation) checkRefunds() error {
	for _, refund := range r.Refunds {
		if refund.ByHand && refund.State != RefundDone {
			return fmt.Errorf("reservation %s: refund %d was given by hand and is %s", r.ID, refund.Number, refund.State)
		}
	}
	return nil
}
