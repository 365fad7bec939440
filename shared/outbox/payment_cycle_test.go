package outbox_test

import (
	"context"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// paying is one reservation in the life cycle, whose steps are written as the saga writes
// them.
type paying struct {
	*lifeCycle
	reservation ledger.ReservationID
	hold        ledger.HoldID
}

// paymentSlots are a slot whose sale grants points to the buyer, and the buyer's points.
func (l *lifeCycle) paymentSlots() []ledger.SlotID {
	l.tb.Helper()
	points, packs := ledger.SlotID("points.U-17"), ledger.SlotID("POINTS-PACK")
	definition := ledger.SlotDefinition{
		ResourceType: "points", ResourceID: "U-17", Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 0, Currency: "KRW"}, Shards: 1},
	}
	_, err := l.commands.PutSlot(context.Background(), l.request("service:catalog"), points, definition, renderSlot)
	l.check(err)
	definition.ResourceType, definition.ResourceID, definition.Capacity = "pack", "POINTS", 100
	definition.Terms.Price.AmountMinor = 10000
	definition.Policy.GrantTo, definition.Policy.Payment.Delivery = "points.{owner}", ledger.DeliveryEvent
	definition.Policy.NoRestock = true
	_, err = l.commands.PutSlot(context.Background(), l.request("service:catalog"), packs, definition, renderSlot)
	l.check(err)
	return []ledger.SlotID{points, packs}
}

// pay makes a hold of so many packs, and begins its payment.
func (l *lifeCycle) pay(packs ledger.Units) paying {
	l.tb.Helper()
	p := paying{lifeCycle: l, reservation: ledger.NewReservationID(l.random.Bits128())}
	_, err := l.commands.CreateHold(context.Background(), l.request("owner:U-17"),
		commands.HoldWish{Quotes: []ledger.Quote{{Slot: "POINTS-PACK", Quantity: packs, UnitAmount: 10000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			p.hold = h.ID
			return ledger.Response{Status: 201}, nil
		})
	l.check(err)
	p.commit(func(_ ledger.Reservation, h ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
		o.Command = ledger.CommandStartPayment
		return ledger.StartReservation(p.reservation, h, o, now)
	})
	p.commit(func(r ledger.Reservation, _ ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
		return ledger.PaymentCreated(r, 1, ledger.PaymentID("pi_"+string(p.reservation[4:12])), o, now), nil
	})
	return p
}

// commit writes what decide makes of how things stand.
func (p paying) commit(decide func(ledger.Reservation, ledger.Hold, ledger.Origin, time.Time) (ledger.Change, error)) {
	p.tb.Helper()
	r, err := p.store.Reservation(context.Background(), p.reservation)
	if ledger.CodeOf(err) != ledger.CodeReservationNotFound {
		p.check(err)
	}
	id := p.hold
	if r.SoldHold != "" {
		id = r.SoldHold
	}
	h, err := p.store.Hold(context.Background(), id)
	p.check(err)
	request := p.request("system")
	origin := ledger.Origin{
		Actor: request.Actor, Command: ledger.CommandDriveReservation, RequestID: request.RequestID,
		EventID: ledger.NewEventID(p.random.Bits128()),
	}
	change, err := decide(r, h, origin, system.Millisecond(p.clock))
	p.check(err)
	p.check(p.store.Commit(context.Background(), change))
}

// step writes a step of the reservation alone.
func (p paying) step(t ledger.EventType, change func(*ledger.Reservation)) {
	p.tb.Helper()
	p.commit(func(r ledger.Reservation, _ ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
		next := r.Clone()
		change(&next)
		return ledger.ReservationStep(r, next, t, nil, o, now), nil
	})
}

func (p paying) authorize() {
	p.tb.Helper()
	p.step(ledger.EventReservationPaymentNoticed, func(*ledger.Reservation) {})
	p.step(ledger.EventReservationAuthorized, func(r *ledger.Reservation) {
		r.Status = ledger.ReservationAuthorized
		r.Attempts[0].State, r.Attempts[0].AuthorizedAt = ledger.AttemptAuthorized, system.Millisecond(p.clock).Add(-time.Second)
	})
}

// sell confirms the hold, or what its late payment makes of it.
func (p paying) sell(sell func(ledger.Hold, ledger.Origin, time.Time) (ledger.Change, error)) {
	p.tb.Helper()
	p.commit(func(r ledger.Reservation, h ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
		sold, err := sell(h, o.Beside("hold"), now)
		p.check(err)
		next := r.Clone()
		next.Status, next.SoldHold = ledger.ReservationConfirmed, sold.Holds[len(sold.Holds)-1].Next.ID
		return ledger.Together(sold, ledger.ReservationStep(r, next, ledger.EventReservationConfirmed, nil, o, now)), nil
	})
	p.step(ledger.EventReservationCaptured, func(r *ledger.Reservation) {
		r.Status = ledger.ReservationCaptured
		r.Attempts[0].State, r.Attempts[0].CapturedMinor = ledger.AttemptCaptured, r.Amount.AmountMinor
	})
}

// deliver says that it is delivered, and grants the points.
func (p paying) deliver() {
	p.tb.Helper()
	p.commit(func(r ledger.Reservation, h ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
		o.Actor, o.Command = "service:shop", ledger.CommandDeliverReservation
		return ledger.Deliver(r, h, true, o, now)
	})
	p.commit(func(r ledger.Reservation, h ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
		movements, grants, err := ledger.GrantSteps(r, h, []ledger.Stock{{Slot: "points.U-17"}})
		p.check(err)
		next := r.Clone()
		next.Status, next.Grants = ledger.ReservationCompleted, grants
		return ledger.ReservationStep(r, next, ledger.EventReservationCompleted, movements, o, now), nil
	})
}

func (p paying) cancel(lines ...ledger.ReturnLine) {
	p.tb.Helper()
	p.commit(func(r ledger.Reservation, h ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
		o.Actor, o.Command = "owner:U-17", ledger.CommandCancelReservation
		return ledger.CancelReservation(r, h, ledger.Cancellation{Lines: lines, Reason: ledger.ReasonOwnerCanceled}, o, now)
	})
}

// refund ends the last refund in this way, and the reservation at this status.
func (p paying) refund(state ledger.RefundState, t ledger.EventType, status ledger.ReservationStatus) {
	p.tb.Helper()
	p.step(ledger.EventReservationRefundEnded, func(r *ledger.Reservation) {
		last := &r.Refunds[len(r.Refunds)-1]
		last.State, last.EndedAt = state, system.Millisecond(p.clock)
	})
	if t != "" {
		p.step(t, func(r *ledger.Reservation) { r.Status = status })
	}
}

// payments is every way of a reservation: sold, given back in part and then whole;
// cancelled before it was paid; paid late; and two that need a person.
func (l *lifeCycle) payments() []paying {
	l.tb.Helper()
	sold := l.pay(3)
	sold.authorize()
	sold.sell(ledger.ConfirmPaid)
	sold.deliver()
	sold.cancel(ledger.ReturnLine{Slot: "POINTS-PACK", Quantity: 1})
	sold.refund(ledger.RefundDone, "", "")
	sold.cancel()
	sold.refund(ledger.RefundDone, ledger.EventReservationRefunded, ledger.ReservationRefunded)

	canceled := l.pay(1)
	canceled.cancel()
	canceled.commit(func(r ledger.Reservation, h ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
		next := r.Clone()
		next.Attempts[0].State = ledger.AttemptVoided
		return ledger.Together(ledger.CloseAttempt(h, o.Beside("hold"), now),
			ledger.ReservationStep(r, next, ledger.EventReservationPaymentClosed, nil, o, now)), nil
	})
	canceled.commit(func(r ledger.Reservation, h ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
		released, err := ledger.ReleaseUnpaid(h, o.Beside("hold"), now)
		l.check(err)
		next := r.Clone()
		next.Status = ledger.ReservationCanceled
		return ledger.Together(released, ledger.ReservationStep(r, next, ledger.EventReservationCanceled, nil, o, now)), nil
	})

	late := l.pay(2)
	l.clock.Advance(ledger.HoldForDefault + ledger.GraceForDefault)
	late.authorize()
	late.sell(func(h ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
		return ledger.Reacquire(h, nil, o, now)
	})
	late.cancel()
	late.refund(ledger.RefundFailed, ledger.EventReservationRefundRequired, ledger.ReservationRefundRequired)

	odd := l.pay(1)
	odd.step(ledger.EventReservationReview, func(r *ledger.Reservation) {
		r.Status, r.Reason = ledger.ReservationReview, ledger.ReasonMismatch
		r.Attempts[0].Unwanted = true
	})
	return []paying{sold, canceled, late, odd}
}
