package sim

import (
	"fmt"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
)

const (
	// lateSuccessAfterMax is how long after a void that lied the money comes at most. It is
	// shorter than saga.LastLookAfter: whoever comes later, and is not told of either, is
	// known to nobody.
	lateSuccessAfterMax = 8 * time.Minute
	// refundFailsAfterMax is how long after a refund it fails at most.
	refundFailsAfterMax = 3 * time.Minute
)

// bank is the provider's side of the history: the truth about the money.
type bank struct {
	world *world
	real  *paymenttest.Bank
	port  *paymenttest.Provider
	// scripts are how it misbehaves, by the creation's key.
	scripts map[payment.Key]bankScript
	// voided are the payments that it has said to be voided, and late those that succeed
	// all the same, once.
	voided, late map[ledger.PaymentID]bool
	// failed are the payments of which a refund has failed.
	failed map[ledger.PaymentID]bool
	// outage is when it is away.
	outage outage
}

// bankScript is how the bank misbehaves with one payment.
type bankScript struct {
	paymenttest.Script
	// lateAfter and lateCaptured are of a void that lies; zero for no late success.
	lateAfter    time.Duration
	lateCaptured bool
	// refundFailsAfter is how long after it a refund fails; zero for never.
	refundFailsAfter time.Duration
}

func newBank(w *world) *bank {
	b := &bank{
		world: w, scripts: map[payment.Key]bankScript{},
		voided: map[ledger.PaymentID]bool{}, late: map[ledger.PaymentID]bool{}, failed: map[ledger.PaymentID]bool{},
	}
	b.real = paymenttest.NewBank(func() time.Time { return w.kernel.now })
	b.port = paymenttest.NewProvider(b.real)
	b.outage = w.drawOutage("the provider", w.faults.ProviderOutageMax)
	return b
}

// away reports whether the provider is away now.
func (b *bank) away() bool { return b.outage.covers(b.world.kernel.now) }

// script draws how the bank will treat the payment, once for each attempt.
func (b *bank) script(c payment.Creation) {
	if _, drawn := b.scripts[c.Key]; drawn {
		return
	}
	d := b.world.dice("script of " + string(c.Key))
	var s bankScript
	if d.chance(b.world.faults.BankMisbehaves) {
		s = drawScript(d, c.Amount)
		b.world.trace.add("the bank treats %s as %+v", c.Key, s)
	}
	b.scripts[c.Key] = s
	b.real.SetScript(c.Reservation, c.Attempt, s.Script)
}

func drawScript(d *dice, asked ledger.Money) bankScript {
	var s bankScript
	switch d.IntN(8) {
	case 0:
		s.AmountMinor = asked.AmountMinor + pick(d, []int64{-1, 1, 100})
	case 1:
		s.Currency = "EUR"
	case 2, 3, 4:
		s.VoidLies = true
		s.lateAfter, s.lateCaptured = d.between(time.Millisecond, pick(d, []time.Duration{time.Second, time.Minute, lateSuccessAfterMax})), d.chance(2)
		s.RefundRefused = d.chance(6)
	case 5:
		s.CreateRefused, s.CaptureRefused = d.chance(2), true
	case 6:
		s.RefundRefused = true
	default:
		s.refundFailsAfter = d.between(time.Second, refundFailsAfterMax)
	}
	return s
}

// scriptOf is how the bank treats that payment.
func (b *bank) scriptOf(p payment.Payment) bankScript {
	return b.scripts[payment.CreateKey(p.Reservation, p.Attempt)]
}

// carryOut lets the bank do what it was asked, and sends its notices on their way.
func (b *bank) carryOut(by, name string, do func() (payment.Payment, error)) (payment.Payment, error) {
	answer, err := do()
	b.world.trace.add("BANK for %s: %s: %s, %v", by, name, answer.Status, err)
	b.tell()
	return answer, err
}

// act is what a buyer does, or the buyer's own bank.
func (b *bank) act(name string, do func() (paymenttest.Payment, error)) (paymenttest.Payment, error) {
	done, err := do()
	b.world.trace.add("BANK: %s: %s, %v", name, done.Status, err)
	b.tell()
	return done, err
}

// tell takes what the bank has to tell, keeps it for the books, and sends it.
func (b *bank) tell() {
	for _, e := range b.real.TakeEvents() {
		b.keep(e)
		b.world.notify(e)
	}
}

// keep notes what the event says, and plans what follows by the payment's script.
func (b *bank) keep(e paymenttest.Event) {
	id, k := e.Payment.ID, b.world.kernel
	script := b.scriptOf(e.Payment.Payment)
	switch e.Type {
	case paymenttest.EventCanceled:
		b.voided[id] = true
		if script.VoidLies && script.lateAfter > 0 && !b.late[id] {
			b.late[id] = true
			k.after(script.lateAfter, func() { b.succeedLate(id, script.lateCaptured) })
		}
	case paymenttest.EventRefunded:
		if script.refundFailsAfter > 0 {
			refund := e.Refund.ID
			k.after(script.refundFailsAfter, func() { b.failRefund(id, refund) })
		}
	}
}

func (b *bank) succeedLate(id ledger.PaymentID, captured bool) {
	_, err := b.act(fmt.Sprintf("%s succeeds after all", id), func() (paymenttest.Payment, error) {
		return b.real.LateSuccess(string(id), captured)
	})
	if err != nil {
		panic("sim: a payment that was voided by a lie can't succeed: " + err.Error())
	}
}

func (b *bank) failRefund(id ledger.PaymentID, refund paymenttest.RefundID) {
	_, err := b.act(fmt.Sprintf("refund %s of %s fails", refund, id), func() (paymenttest.Payment, error) {
		b.failed[id] = true
		return b.real.FailRefund(refund)
	})
	if err != nil {
		panic("sim: a refund that was made can't fail: " + err.Error())
	}
}

// paymentsOf are the payments of a reservation, in the order of their creation.
func (b *bank) paymentsOf(id ledger.ReservationID) []paymenttest.Payment {
	var out []paymenttest.Payment
	for _, p := range b.real.Payments() {
		if p.Reservation == id {
			out = append(out, p)
		}
	}
	return out
}

// closed reports whether the provider has said that the attempt can't succeed any more:
// it has voided its payment, or refused to begin one.
func (b *bank) closed(id ledger.ReservationID, n ledger.AttemptNumber) bool {
	for _, p := range b.paymentsOf(id) {
		if p.Attempt == n {
			return b.voided[p.ID]
		}
	}
	return b.scripts[payment.CreateKey(id, n)].CreateRefused
}

// refusesToBegin reports whether the bank will not begin the payment of that attempt.
func (b *bank) refusesToBegin(id ledger.ReservationID, n ledger.AttemptNumber) bool {
	return b.scripts[payment.CreateKey(id, n)].CreateRefused
}
