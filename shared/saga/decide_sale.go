package saga

import (
	"slices"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

// authorized decides when the money is there and the hold is not sold yet. Our own clock
// in the confirming write decides whether it came in time (case D3).
func (d decider) authorized() Decision {
	attempt, paid := d.Reservation.Current()
	if paid && d.approved() {
		if first, waits := d.stillThere(attempt); waits {
			return first
		}
	}
	switch {
	case !paid && d.Hold.Status == ledger.StatusCanceled:
		return d.compensate(ledger.ReasonHoldCanceled)
	case d.live():
		sold, err := ledger.ConfirmPaid(d.Hold, d.Origin.Beside("hold"), d.Now)
		return d.sell(d.Hold.ID, sold, err)
	}
	switch d.latePayment() {
	case ledger.LatePaymentRefund:
		return d.compensate(ledger.ReasonLate)
	case ledger.LatePaymentReview:
		next := d.Reservation.Clone()
		next.Status, next.Reason, next.LookAt = ledger.ReservationReview, ledger.ReasonLate, d.Now
		return Decision{Change: d.step(next, ledger.EventReservationReview)}
	default:
		return d.reacquire()
	}
}

// approved reports whether a person has let the payment count.
func (d decider) approved() bool { return !d.Reservation.ApprovedAt.IsZero() }

// stillThere makes sure that money which a person has let count is there as it was, before
// anything is sold for it: days may lie between. It gives what is to be done otherwise.
func (d decider) stillThere(a ledger.Attempt) (Decision, bool) {
	sighting, first, known := d.known(a)
	switch p := sighting.Payment; {
	case !known && first.Retry && d.waitedEnough():
		return d.giveUp(), true
	case !known:
		return first, true
	case !holdsMoney(p), p.RefundedMinor > 0:
		return d.compensate(ledger.ReasonAuthorizationLost), true
	case !d.matches(a, p):
		return d.mismatch(a, p), true
	}
	return Decision{}, false
}

// latePayment is the policy for this payment, which came late. A person who was asked by it,
// and has let the payment count, is not asked again.
func (d decider) latePayment() ledger.LatePayment {
	terms := d.Hold.Terms
	if d.approved() {
		return ledger.LatePaymentReacquire
	}
	attempt, paid := d.Reservation.Current()
	inTime := paid && !attempt.AuthorizedAt.IsZero() && attempt.AuthorizedAt.Before(d.Hold.ReleaseAt)
	if terms.LatePayment == ledger.LatePaymentRefund && terms.LateByProvider && inTime {
		return ledger.LatePaymentReacquire
	}
	return terms.LatePayment
}

// reacquire sells the units after all, if they are still there.
func (d decider) reacquire() Decision {
	if d.Closed {
		return d.compensate(ledger.ReasonSoldOut)
	}
	var allocations map[ledger.SlotID][]ledger.Allocation
	if !d.held() {
		if d.Stock == nil {
			return Decision{Effect: Effect{Kind: EffectReadStock, Slots: slotsOf(d.Hold)}}
		}
		var found bool
		if allocations, found = d.allocate(); !found {
			return d.compensate(ledger.ReasonSoldOut)
		}
	}
	sold, err := ledger.Reacquire(d.Hold, allocations, d.Origin.Beside("hold"), d.Now)
	if ledger.CodeOf(err) == ledger.CodeInsufficientStock {
		return d.compensate(ledger.ReasonSoldOut)
	}
	return d.sell(ledger.ReacquiredID(d.Hold), sold, err)
}

// allocate finds the units of every line in the stock that was read. It reports false
// when a slot has too few at the one moment at which it was read (promise P10).
func (d decider) allocate() (map[ledger.SlotID][]ledger.Allocation, bool) {
	out := make(map[ledger.SlotID][]ledger.Allocation, len(d.Hold.Lines))
	for _, line := range d.Hold.Lines {
		stock := stockOf(d.Stock, line.Slot)
		if len(stock) == 0 {
			return nil, false
		}
		pick := ledger.PickShard(ledger.ReacquiredID(d.Hold), line.Slot, len(stock))
		allocation, found := ledger.Allocate(stock, line.Quantity, pick)
		if !found {
			return nil, false
		}
		out[line.Slot] = allocation
	}
	return out, true
}

func stockOf(all []ledger.Stock, slot ledger.SlotID) []ledger.Stock {
	return slices.DeleteFunc(slices.Clone(all), func(s ledger.Stock) bool { return s.Slot != slot })
}

func slotsOf(h ledger.Hold) []ledger.SlotID {
	out := make([]ledger.SlotID, len(h.Lines))
	for i, line := range h.Lines {
		out[i] = line.Slot
	}
	return out
}

// sell writes the sale of the hold of that id.
func (d decider) sell(id ledger.HoldID, sold ledger.Change, err error) Decision {
	next := d.Reservation.Clone()
	next.Status, next.Reason, next.SoldHold, next.LookAt = ledger.ReservationConfirmed, "", id, d.Now
	return besides(sold, err, d.step(next, ledger.EventReservationConfirmed))
}

// compensate gives all money back. Nothing is released yet.
func (d decider) compensate(reason ledger.Reason) Decision {
	next := d.Reservation.Clone()
	next.Status, next.Reason, next.LookAt = ledger.ReservationCompensating, reason, d.Now
	next.WantNoMoney()
	return Decision{Change: d.step(next, ledger.EventReservationCompensating)}
}

// confirmed takes the money for what is sold.
func (d decider) confirmed() Decision {
	attempt, paid := d.Reservation.Current()
	if !paid || attempt.State == ledger.AttemptCaptured {
		return d.capturedNow(attempt.Number, payment.Payment{})
	}
	sighting := d.Sightings[attempt.Number]
	capture := Decision{Effect: Effect{Kind: EffectCapture, Attempt: attempt, AmountMinor: d.Reservation.Amount.AmountMinor}}
	switch p := sighting.Payment; {
	case !sighting.saysAnything() && sighting.Refused == EffectCapture:
		return d.ask(attempt)
	case !sighting.saysAnything():
		return capture
	case sighting.Unreachable:
		return Decision{Retry: true}
	case sighting.NotFound:
		return Decision{Retry: true, Answered: true}
	case p.Status == payment.StatusCaptured && d.matches(attempt, p):
		return d.capturedNow(attempt.Number, p)
	case p.Status == payment.StatusCaptured:
		return d.mismatch(attempt, p)
	case p.Status == payment.StatusAuthorized && sighting.Refused != EffectCapture:
		return capture
	}
	return d.authorizationLost(attempt, sighting.Payment)
}

// capturedNow writes down that the money is ours.
func (d decider) capturedNow(n ledger.AttemptNumber, p payment.Payment) Decision {
	next := d.Reservation.Clone()
	if attempt := next.Attempt(n); attempt != nil && p.Status == payment.StatusCaptured {
		recordMoney(attempt, p)
	}
	next.Status, next.LookAt = ledger.ReservationCaptured, d.Now
	return Decision{Change: d.step(next, ledger.EventReservationCaptured)}
}

// authorizationLost: what was sold will not be paid. The sale is taken back.
func (d decider) authorizationLost(a ledger.Attempt, p payment.Payment) Decision {
	next := d.Reservation.Clone()
	next.Status, next.Reason, next.LookAt = ledger.ReservationCompensating, ledger.ReasonAuthorizationLost, d.Now
	next.WantNoMoney()
	if p.Status == payment.StatusVoided {
		next.Attempt(a.Number).State = ledger.AttemptVoided
	}
	returned, err := ledger.Return(d.Sold, nil, d.Origin.Beside("hold"), d.Now)
	return besides(returned, err, d.step(next, ledger.EventReservationCompensating))
}

// captured delivers: nothing, or what others deliver, or units of other slots.
func (d decider) captured() Decision {
	if owed, owes := d.payOwed(); owes {
		return owed
	}
	if d.Sold.Terms.Delivery == ledger.DeliveryEvent && d.Reservation.DeliveredAt.IsZero() {
		if attempt, paid := d.Reservation.Current(); paid {
			if ask, over := d.lastAsk(attempt); !over {
				return ask
			}
		}
		return Decision{LookAt: d.seldom()}
	}
	granted := grantedSlots(d.Sold)
	if len(granted) > 0 && d.Stock == nil {
		return Decision{Effect: Effect{Kind: EffectReadStock, Slots: granted}}
	}
	next := d.Reservation.Clone()
	movements, grants, err := ledger.GrantSteps(d.Reservation, d.Sold, d.Stock)
	if err != nil {
		next.Status, next.Reason, next.LookAt = ledger.ReservationReview, ledger.ReasonDeliveryFailed, d.Now
		return Decision{Change: d.step(next, ledger.EventReservationReview)}
	}
	next.Status, next.Grants, next.LookAt = ledger.ReservationCompleted, grants, d.nextLookOfEnded(next)
	next.DeliveredAt = d.Now
	return Decision{Change: ledger.ReservationStep(d.Reservation, next, ledger.EventReservationCompleted, movements, d.Origin, d.Now)}
}

func grantedSlots(sold ledger.Hold) []ledger.SlotID {
	var out []ledger.SlotID
	for _, line := range sold.Lines {
		if line.GrantTo != "" && line.Quantity > line.ReturnedQuantity() && !slices.Contains(out, line.GrantTo) {
			out = append(out, line.GrantTo)
		}
	}
	return out
}
