package saga

import (
	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

// pending decides while, as far as we know, the buyer has not paid.
func (d decider) pending() Decision {
	attempt, begun := d.Reservation.Current()
	lied := attempt.State == ledger.AttemptVoided && holdsMoney(d.Sightings[attempt.Number].Payment)
	if !begun || (attempt.State == ledger.AttemptVoided && !lied) {
		return d.pendingWithoutAttempt()
	}
	sighting, first, known := d.known(attempt)
	switch {
	case !known && first.Retry && d.waitedEnough():
		return d.giveUp()
	case !known:
		return first
	case sighting.Refused == EffectCreate:
		return d.attemptEnds(attempt, ledger.ReasonRefused)
	}
	p := sighting.Payment
	switch {
	case holdsMoney(p) && !d.matches(attempt, p):
		return d.mismatch(attempt, p)
	case holdsMoney(p) && d.Hold.Status == ledger.StatusCanceled:
		// The owner has given the hold up, which is allowed only when no attempt is open: the
		// provider has broken its word, and the money buys nothing.
		return d.compensate(ledger.ReasonHoldCanceled)
	case holdsMoney(p):
		return d.authorize(attempt, p)
	case p.Status == payment.StatusVoided:
		return d.attemptEnds(attempt, ledger.ReasonDeclined)
	case d.waitedEnough() && sighting.Refused == EffectVoid:
		return d.giveUp()
	case !d.live():
		return d.void(attempt, sighting)
	case p.Status == payment.StatusDeclined && d.Hold.Terms.OnDecline == ledger.OnDeclineRelease:
		return d.void(attempt, sighting)
	}
	return d.waitForBuyer()
}

// void makes sure that the attempt can't succeed any more, before anything is released.
func (d decider) void(a ledger.Attempt, s Sighting) Decision {
	if s.Refused == EffectVoid {
		return Decision{Retry: true, Answered: true}
	}
	return Decision{Effect: Effect{Kind: EffectVoid, Attempt: a}}
}

// pendingWithoutAttempt: every attempt is closed, and the buyer may make another one
// while the hold lives.
func (d decider) pendingWithoutAttempt() Decision {
	if d.live() {
		return d.wait(d.Hold.ReleaseAt)
	}
	next := d.Reservation.Clone()
	next.Status, next.Reason, next.LookAt = ledger.ReservationCanceled, ledger.ReasonExpired, d.lastLook()
	if d.Hold.Status == ledger.StatusCanceled {
		next.Reason = ledger.ReasonHoldCanceled
	}
	return d.release(d.step(next, ledger.EventReservationCanceled))
}

// attemptEnds closes an attempt that can't succeed any more. With the policy to keep, the
// hold waits for another one as long as it lives; otherwise it is released.
func (d decider) attemptEnds(a ledger.Attempt, reason ledger.Reason) Decision {
	next := d.Reservation.Clone()
	next.Attempt(a.Number).State = ledger.AttemptVoided
	if d.live() && d.Hold.Terms.OnDecline == ledger.OnDeclineKeep {
		next.LookAt = d.Hold.ReleaseAt
		closed := ledger.CloseAttempt(d.Hold, d.Origin.Beside("hold"), d.Now)
		return besides(closed, nil, d.step(next, ledger.EventReservationPaymentClosed))
	}
	next.Status, next.Reason, next.LookAt = ledger.ReservationCanceled, reason, d.lastLook()
	if !d.live() {
		next.Reason = ledger.ReasonExpired
	}
	return d.release(d.step(next, ledger.EventReservationCanceled))
}

// authorize writes down that the money is there.
func (d decider) authorize(a ledger.Attempt, p payment.Payment) Decision {
	next := d.Reservation.Clone()
	recordMoney(next.Attempt(a.Number), p)
	next.Status, next.Reason, next.LookAt = ledger.ReservationAuthorized, "", d.Now
	return Decision{Change: d.step(next, ledger.EventReservationAuthorized)}
}

// recordMoney writes what the provider says into the attempt. The provider's time of the
// authorization is kept as it is told first.
func recordMoney(a *ledger.Attempt, p payment.Payment) {
	a.State = ledger.AttemptAuthorized
	if p.Status == payment.StatusCaptured {
		a.State, a.CapturedMinor = ledger.AttemptCaptured, p.CapturedMinor
	}
	if a.AuthorizedAt.IsZero() {
		a.AuthorizedAt = p.AuthorizedAt
	}
}

// mismatch: money that is not what was asked for is never taken for a payment. It goes
// back, and a person is told.
func (d decider) mismatch(a ledger.Attempt, p payment.Payment) Decision {
	next := d.Reservation.Clone()
	attempt := next.Attempt(a.Number)
	recordMoney(attempt, p)
	attempt.Unwanted = true
	next.Status, next.Reason, next.LookAt = ledger.ReservationReview, ledger.ReasonMismatch, d.Now
	return Decision{Change: d.step(next, ledger.EventReservationReview)}
}
