package saga

import (
	"slices"
	"time"

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

// lastAsk asks once more about an attempt that keeps no money, when what has ended is
// looked at for the last time, and reports whether that is over.
func (d decider) lastAsk(a ledger.Attempt) (Decision, bool) {
	r := d.Reservation
	if !r.Status.Ended() || a.Payment == "" || r.LookAt.IsZero() || r.LookAt.After(d.Now) {
		return Decision{}, true
	}
	_, first, known := d.known(a)
	return first, known
}

// contradicted reports whether the provider now says otherwise: money in what it had
// voided, or less given back than it had said.
func (d decider) contradicted(a ledger.Attempt) bool {
	p := d.Sightings[a.Number].Payment
	switch a.State {
	case ledger.AttemptVoided:
		return holdsMoney(p)
	case ledger.AttemptCaptured:
		return p.Status == payment.StatusCaptured && p.RefundedMinor < d.Reservation.RefundedMinor(a.Number, ledger.RefundDone)
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

// refund writes down what is owed of a captured attempt, asks for it, and writes down what
// was given.
func (d decider) refund(a ledger.Attempt, s Sighting, next ledger.Reservation) Decision {
	p := s.Payment
	recordMoney(next.Attempt(a.Number), p)
	next.LookAt = d.Now
	rest := p.CapturedMinor - d.Reservation.RefundedMinor(a.Number, ledger.RefundOwed, ledger.RefundDone, ledger.RefundFailed)
	if rest > 0 {
		next.Owe(a.Number, rest, d.refundReason(), d.Now)
		return Decision{Change: d.step(next, ledger.EventReservationRefundOwed)}
	}
	return d.settleRefund(a, s, next)
}

func (d decider) refundReason() ledger.Reason {
	if d.Reservation.Reason == "" {
		return ledger.ReasonSurplus
	}
	return d.Reservation.Reason
}

// settleRefund takes the attempt's refunds that are not done to their end: first what is
// owed, then what a person must see to. How much the provider says it has given back
// decides, so that an answer that was lost, or a refund that a person made by hand, is
// not given twice.
func (d decider) settleRefund(a ledger.Attempt, s Sighting, next ledger.Reservation) Decision {
	given := d.Reservation.RefundedMinor(a.Number, ledger.RefundDone)
	if short := given - s.Payment.RefundedMinor; short > 0 {
		return d.refundFailed(next, failedAfterwards(next.Refunds, a.Number, short))
	}
	i := firstRefund(next.Refunds, a.Number, ledger.RefundOwed)
	if i < 0 {
		i = firstRefund(next.Refunds, a.Number, ledger.RefundFailed)
	}
	if i < 0 {
		return Decision{}
	}
	refund := &next.Refunds[i]
	switch {
	case s.Payment.RefundedMinor >= given+refund.AmountMinor, s.Refunded == refund.Number:
		refund.State, refund.EndedAt = ledger.RefundDone, d.Now
		return Decision{Change: d.step(next, ledger.EventReservationRefundEnded)}
	case refund.State == ledger.RefundFailed && (next.Status == ledger.ReservationCompensating || next.Status == ledger.ReservationCanceled), s.Refused == EffectRefund && refund.State == ledger.RefundOwed:
		return d.refundFailed(next, i)
	case refund.State == ledger.RefundFailed:
		return Decision{LookAt: d.Now.Add(LookSeldom)}
	}
	return Decision{Effect: Effect{Kind: EffectRefund, Attempt: a, AmountMinor: refund.AmountMinor, Refund: refund.Number}}
}

// refundFailed writes down that a refund is left to a person. What is owed beside it is
// still given.
func (d decider) refundFailed(next ledger.Reservation, i int) Decision {
	refund := &next.Refunds[i]
	refund.State, refund.EndedAt, next.LookAt = ledger.RefundFailed, d.Now, d.Now
	switch next.Status {
	case ledger.ReservationCompensating, ledger.ReservationRefunded, ledger.ReservationCanceled:
		next.Status = ledger.ReservationRefundRequired // there is no sale that the money could be for
	default:
	}
	return Decision{Change: d.step(next, ledger.EventReservationRefundRequired)}
}

func firstRefund(refunds []ledger.Refund, n ledger.AttemptNumber, state ledger.RefundState) int {
	return slices.IndexFunc(refunds, func(r ledger.Refund) bool { return r.Attempt == n && r.State == state })
}

// failedAfterwards is the refund that was done and is not any more, when short is missing:
// the last one of that amount, or else the last one.
func failedAfterwards(refunds []ledger.Refund, n ledger.AttemptNumber, short int64) int {
	last := -1
	for i, r := range refunds {
		if r.Attempt != n || r.State != ledger.RefundDone {
			continue
		}
		if last < 0 || r.AmountMinor == short || refunds[last].AmountMinor != short {
			last = i
		}
	}
	return last
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

// needPerson: the provider answers and does not do it.
func (d decider) needPerson() Decision {
	next := d.Reservation.Clone()
	next.Status, next.LookAt = ledger.ReservationRefundRequired, d.Now.Add(LookSeldom)
	return Decision{Change: d.step(next, ledger.EventReservationRefundRequired)}
}

// refundRequired looks now and then whether a person has given the money back.
func (d decider) refundRequired() Decision {
	if d.waitedEnough() {
		return d.giveUp()
	}
	done := true
	for _, attempt := range d.Reservation.Attempts {
		decision, settled := d.giveBack(attempt)
		if decision.acts() {
			return decision
		}
		done = done && settled
	}
	if done {
		return d.compensated()
	}
	return Decision{LookAt: d.Now.Add(LookSeldom)}
}

// review keeps no unwanted money, and keeps the units no longer than others may.
func (d decider) review() Decision {
	waiting := Decision{LookAt: d.laterLook()}
	for _, attempt := range d.Reservation.Attempts {
		if !attempt.Unwanted {
			continue
		}
		decision, settled := d.giveBack(attempt)
		if settled {
			continue
		}
		if decision.acts() {
			return decision
		}
		waiting = soonest(waiting, decision)
	}
	switch {
	case d.waitedEnough() && d.Hold.AttemptOpen != 0:
		return d.giveUp()
	case d.held() && d.Hold.AttemptOpen != 0:
		return soonest(waiting, d.wait(d.Now.Add(LookSeldom)))
	}
	return waiting
}

// ended sees to a reservation that has come to its end: it owes nothing, and nothing more
// comes of it, unless the provider says otherwise.
func (d decider) ended() Decision {
	r := d.Reservation
	if attempt, p, late := d.lateMoney(); late && r.Status == ledger.ReservationCanceled {
		return d.authorize(attempt, p)
	}
	attempt, begun := r.Current()
	if !begun {
		return Decision{}
	}
	if !r.LookAt.IsZero() && attempt.Payment != "" {
		if _, asked := d.Sightings[attempt.Number]; !asked {
			return d.ask(attempt)
		}
	}
	sighting := d.Sightings[attempt.Number]
	unwanted := r.Status != ledger.ReservationCompleted && holdsMoney(sighting.Payment)
	switch {
	case sighting.Unreachable, sighting.NotFound:
		return Decision{Retry: true, Answered: sighting.NotFound}
	case !sighting.Seen:
		return Decision{LookAt: d.laterLook()}
	case unwanted && (attempt.State == ledger.AttemptVoided || !d.settled(attempt)):
		return d.reopen(attempt, sighting.Payment)
	}
	if refunds := d.checkRefunds(attempt, sighting); refunds.acts() || !refunds.LookAt.IsZero() {
		return refunds
	}
	return Decision{LookAt: d.laterLook()}
}

// laterLook is when what has ended is looked at for the last time: LastLookAfter its last
// step. Zero is for what was looked at already, or had no payment, and for a single
// payment that bought what it was for.
func (d decider) laterLook() time.Time {
	r := d.Reservation
	at := r.UpdatedAt.Add(LastLookAfter)
	bought := r.Status == ledger.ReservationCompleted && len(r.Attempts) == 1
	if !at.After(d.Now) || bought || d.lastLook().IsZero() {
		return time.Time{}
	}
	return at
}

// reopen: money has come to a reservation that had ended without it.
func (d decider) reopen(a ledger.Attempt, p payment.Payment) Decision {
	next := d.Reservation.Clone()
	attempt := next.Attempt(a.Number)
	recordMoney(attempt, p)
	attempt.Unwanted = true
	next.Status, next.LookAt = ledger.ReservationCompensating, d.Now
	return Decision{Change: d.step(next, ledger.EventReservationCompensating)}
}

// checkRefunds gives what is owed of a sale that stands, and notices a refund that has
// failed after the provider had taken it on.
func (d decider) checkRefunds(a ledger.Attempt, s Sighting) Decision {
	if d.Reservation.RefundedMinor(a.Number, ledger.RefundOwed, ledger.RefundFailed) == 0 && !d.contradicted(a) {
		return Decision{}
	}
	next := d.Reservation.Clone()
	next.LookAt = d.Now
	return d.settleRefund(a, s, next)
}

// payOwed gives back what is owed of a sale that stands, and reports whether that is the
// next thing to do. What a person must see to keeps nothing else waiting.
func (d decider) payOwed() (Decision, bool) {
	attempt, paid := d.Reservation.Current()
	owes := d.Reservation.RefundedMinor(attempt.Number, ledger.RefundOwed) > 0
	if !paid || (!owes && !d.contradicted(attempt)) {
		return Decision{}, false
	}
	sighting, first, known := d.known(attempt)
	if !known {
		return first, true
	}
	decision := d.checkRefunds(attempt, sighting)
	return decision, decision.acts()
}

// lastLook is when a reservation that ended is looked at once more; never for one that
// never had a payment.
func (d decider) lastLook() time.Time {
	for _, attempt := range d.Reservation.Attempts {
		if attempt.Payment != "" {
			return d.Now.Add(LastLookAfter)
		}
	}
	return time.Time{}
}

// nextLookOfEnded keeps a completed reservation in the due index while it owes something,
// or has an attempt before the one that paid.
func (d decider) nextLookOfEnded(next ledger.Reservation) time.Time {
	switch {
	case next.OwedMinor() > 0:
		return d.Now
	case len(next.Attempts) > 1:
		return d.lastLook()
	}
	return time.Time{}
}
