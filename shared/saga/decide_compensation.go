package saga

import (
	"slices"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

// compensating gives back whatever money there is, and releases the hold when none can
// come any more.
func (d decider) compensating() Decision {
	if attempt, p, late := d.lateMoney(); late {
		return d.authorize(attempt, p)
	}
	waiting, done := Decision{}, true
	for _, attempt := range d.Reservation.Attempts {
		decision, settled := d.giveBack(attempt)
		if settled {
			continue
		}
		if decision.acts() {
			return decision
		}
		waiting, done = soonest(waiting, decision), false
	}
	switch {
	case done:
		return d.compensated()
	case d.waitedEnough():
		return d.giveUp()
	case waiting.Answered && d.Reservation.Tries >= TriesMax:
		return d.needPerson()
	}
	return waiting
}

// lateMoney gives the current attempt's payment if it has come after the hold was given
// up for want of it, and may still buy the units. Money that was not wanted any more, as
// after a cancellation, buys nothing.
func (d decider) lateMoney() (ledger.Attempt, payment.Payment, bool) {
	attempt, begun := d.Reservation.Current()
	if !begun || attempt.Unwanted || d.Reservation.SoldHold != "" || !mayStillBuy(d.Reservation.Reason) {
		return attempt, payment.Payment{}, false
	}
	sighting := d.Sightings[attempt.Number]
	p := sighting.Payment
	return attempt, p, sighting.Seen && attempt.Payment != "" && holdsMoney(p) && p.RefundedMinor == 0 && d.matches(attempt, p)
}

func mayStillBuy(reason ledger.Reason) bool {
	switch reason {
	case ledger.ReasonExpired, ledger.ReasonDeclined, ledger.ReasonPaymentUnknown:
		return true
	default:
		return false
	}
}

// giveBack makes sure that an attempt keeps no money, and reports whether that is so.
func (d decider) giveBack(a ledger.Attempt) (Decision, bool) {
	if d.settled(a) && !d.contradicted(a) {
		return d.lastAsk(a)
	}
	sighting, first, known := d.known(a)
	if !known {
		return first, false
	}
	next := d.Reservation.Clone()
	attempt := next.Attempt(a.Number)
	attempt.Unwanted = true
	if sighting.Refused == EffectCreate || (sighting.Seen && sighting.Payment.Status == payment.StatusVoided) {
		attempt.State, next.LookAt = ledger.AttemptVoided, d.Now
		return d.closing(a, next), false
	}
	if sighting.Payment.Status != payment.StatusCaptured {
		return d.void(a, sighting), false
	}
	return d.refund(a, sighting, next), false
}

// settled reports whether the record says that the attempt keeps no money.
func (d decider) settled(a ledger.Attempt) bool {
	switch a.State {
	case ledger.AttemptVoided:
		return true
	case ledger.AttemptCaptured:
		return d.Reservation.RefundedMinor(a.Number, ledger.RefundDone) >= a.CapturedMinor
	default:
		return false
	}
}

// contradicted reports whether the provider now says otherwise: money in what it had
// voided, or less given back than it had said.
func (d decider) contradicted(a ledger.Attempt) bool {
	p := d.Sightings[a.Number].Payment
	switch a.State {
	case ledger.AttemptVoided:
		return holdsMoney(p)
	case ledger.AttemptCaptured:
		return p.Status == payment.StatusCaptured && p.RefundedMinor < d.Reservation.ProviderRefundedMinor(a.Number)
	default:
		return false
	}
}

// closing writes down that an attempt can't succeed any more. While the hold lives on, its
// own mark goes in the same Change.
func (d decider) closing(a ledger.Attempt, next ledger.Reservation) Decision {
	step := d.step(next, ledger.EventReservationPaymentClosed)
	if d.Reservation.Status != ledger.ReservationReview || !d.held() || d.Hold.AttemptOpen != a.Number {
		return Decision{Change: step}
	}
	return besides(ledger.CloseAttempt(d.Hold, d.Origin.Beside("hold"), d.Now), nil, step)
}

// compensated ends the reservation: no money is left in it and none can come.
func (d decider) compensated() Decision {
	next := d.Reservation.Clone()
	event := ledger.EventReservationCanceled
	next.Status = ledger.ReservationCanceled
	if slices.ContainsFunc(next.Refunds, func(r ledger.Refund) bool { return r.State == ledger.RefundDone }) {
		event, next.Status = ledger.EventReservationRefunded, ledger.ReservationRefunded
	}
	next.LookAt = d.lastLook()
	return d.release(d.step(next, event))
}
