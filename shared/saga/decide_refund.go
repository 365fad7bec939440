package saga

import (
	"slices"

	"holdfast/shared/ledger"
)

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
	given := d.Reservation.ProviderRefundedMinor(a.Number)
	if short := given - s.Payment.RefundedMinor; short > 0 {
		return d.refundFailed(next, failedAfterwards(next.Refunds, a.Number, short))
	}
	i := nextRefund(next.Refunds, a.Number, s.Payment.RefundedMinor-given)
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
		return Decision{LookAt: d.seldom()}
	}
	return Decision{Effect: Effect{Kind: EffectRefund, Attempt: a, AmountMinor: refund.AmountMinor, Refund: refund.Number, Again: refund.Again}}
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

// nextRefund is the refund to be settled next, or -1: one of exactly the amount that was
// given and is in no record yet, because a person may have given what had failed; else the
// first that is owed, and after those the first that has failed.
func nextRefund(refunds []ledger.Refund, n ledger.AttemptNumber, surplus int64) int {
	open := []ledger.RefundState{ledger.RefundOwed, ledger.RefundFailed}
	for _, exact := range []bool{true, false} {
		for _, state := range open {
			i := slices.IndexFunc(refunds, func(r ledger.Refund) bool {
				return r.Attempt == n && r.State == state && (!exact || r.AmountMinor == surplus)
			})
			if i >= 0 {
				return i
			}
		}
	}
	return -1
}

// failedAfterwards is the refund that was done and is not any more, when short is missing:
// the last one of that amount, or else the last one.
func failedAfterwards(refunds []ledger.Refund, n ledger.AttemptNumber, short int64) int {
	last := -1
	for i, r := range refunds {
		if r.Attempt != n || r.State != ledger.RefundDone || r.ByHand {
			continue
		}
		if last < 0 || r.AmountMinor == short || refunds[last].AmountMinor != short {
			last = i
		}
	}
	return last
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
