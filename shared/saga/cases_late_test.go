package saga_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
	"holdfast/shared/telemetry"
)

// lateMoney is a way for money to arrive after its hold has ended: it returns the notices
// of a captured payment.
type lateMoney struct {
	name string
	// expire ends the hold of A at ten o'clock plus ten minutes.
	expire func(w *world)
	arrive func(w *world, secret payment.Secret) []*payment.Notice
}

// lateMoneys: the provider said "voided" and took the money all the same; and the provider
// was not to be reached while the hold was kept, which had been paid in time.
func lateMoneys() []lateMoney {
	return []lateMoney{
		{
			name:   "the void was a lie",
			expire: func(w *world) { w.sweep() },
			arrive: func(w *world, secret payment.Secret) []*payment.Notice {
				w.notices()
				_, err := w.bank.LateSuccess(secret.Reveal(), true)
				w.must(err)
				return of(paymenttest.EventSucceeded, w.notices())
			},
		},
		{
			name: "the provider was away",
			expire: func(w *world) {
				w.provider.Before = func(_ context.Context, _ paymenttest.Call) error { return errNoAnswer }
				w.sweep()
			},
			arrive: func(w *world, secret payment.Secret) []*payment.Notice {
				w.provider.Before = nil
				w.pay(secret)
				p, err := w.bank.LookUp(ledger.PaymentID(w.bank.Payments()[0].ID))
				w.must(err)
				_, err = w.bank.Capture("by hand", p.ID, 1000)
				w.must(err)
				return of(paymenttest.EventSucceeded, w.notices())
			},
		},
	}
}

// Case D1: money arrived after the unit had been sold to someone else. It goes back, once,
// under one key; and where the units are there and the policy says so, it buys them after
// all. An EXPIRED hold never comes back.
func TestCaseD1_MoneyAfterTheUnitWasSold(t *testing.T) {
	tests := []struct {
		policy   ledger.LatePayment
		capacity ledger.Units
		status   ledger.ReservationStatus
		reason   ledger.Reason
		refunded int64
		counters string
	}{
		{ledger.LatePaymentReacquire, 1, ledger.ReservationRefunded, ledger.ReasonSoldOut, 1000, "0/0/1/1"},
		{ledger.LatePaymentRefund, 1, ledger.ReservationRefunded, ledger.ReasonLate, 1000, "0/0/1/1"},
		{ledger.LatePaymentRefund, 2, ledger.ReservationRefunded, ledger.ReasonLate, 1000, "1/0/1/2"},
		{ledger.LatePaymentReacquire, 2, ledger.ReservationCompleted, "", 0, "0/0/2/2"},
		{ledger.LatePaymentReview, 2, ledger.ReservationReview, ledger.ReasonLate, 0, "1/0/1/2"},
	}
	for _, test := range tests {
		for _, late := range lateMoneys() {
			t.Run(late.name+"/"+string(test.policy)+"/"+test.counters, func(t *testing.T) {
				w := newWorld(t)
				w.slot("A", test.capacity, slotWith(func(p *ledger.Policy) {
					p.GraceFor, p.Payment.LatePayment, p.Payment.UnknownFor = 0, test.policy, 0
				}))
				w.bank.SetDefaultScript(paymenttest.Script{VoidLies: true})
				hold := w.hold("A", one("A"))
				id, secret := w.start("A", hold, "key")
				w.at(10 * time.Minute)
				late.expire(w)
				w.wantHold(hold, ledger.StatusExpired)
				w.at(11 * time.Minute)
				w.must(w.confirmHold(w.hold("B", one("A"))))
				captured := late.arrive(w, secret)
				w.at(12 * time.Minute)
				w.deliver(id, captured...)
				w.at(13 * time.Minute)
				w.deliver(id, captured...)
				w.settle(id)

				w.wantHold(hold, ledger.StatusExpired)
				w.wantReservation(id, test.status, test.reason)
				w.wantCounters("A", test.counters)
				w.wantMoney(id, "USD", 1000, test.refunded)
				w.wantOneRefundKey(id, test.refunded)
				w.wantReacquired(id, hold, test.status == ledger.ReservationCompleted)
				if w.releases(hold) != 1 {
					t.Errorf("the hold gave its units back %d times", w.releases(hold))
				}
				prevented := map[bool]int{true: 1}[test.reason == ledger.ReasonSoldOut]
				if late, oversold := w.metrics.of[telemetry.MetricConfirmsLate], w.metrics.of[telemetry.MetricOversellPrevented]; late != 1 || oversold != prevented {
					t.Errorf("counted %d late sales and %d oversells that were prevented, want 1 and %d", late, oversold, prevented)
				}
				w.checkBooks()
			})
		}
	}
}

// wantOneRefundKey requires one full refund under the one key that follows from the
// reservation, and COMPENSATING before it.
func (w *world) wantOneRefundKey(id ledger.ReservationID, refunded int64) {
	w.t.Helper()
	for _, c := range w.provider.Calls() {
		if c.Method == paymenttest.MethodRefund && (c.Key != payment.RefundKey(id, 1, 1) || c.AmountMinor != refunded) {
			w.t.Errorf("a refund of %d was asked for under %s", c.AmountMinor, c.Key)
		}
	}
	refunds := w.bank.Payments()[0].Refunds
	switch {
	case refunded == 0 && len(refunds) != 0, refunded != 0 && len(refunds) != 1:
		w.t.Errorf("the bank made the refunds %+v", refunds)
	case refunded != 0 && w.steps(id)[ledger.EventReservationCompensating] == 0:
		w.t.Errorf("the reservation went %v, not through COMPENSATING", w.path(id))
	}
}

// wantReacquired requires, or forbids, a new hold that is linked to the old one.
func (w *world) wantReacquired(id ledger.ReservationID, old ledger.HoldID, want bool) {
	w.t.Helper()
	born, err := w.store.Hold(w.t.Context(), ledger.ReacquiredID(w.storedHold(old)))
	switch {
	case !want:
		w.wantCode(err, ledger.CodeHoldNotFound)
	case err != nil:
		w.t.Errorf("no new hold: %v", err)
	case born.Status != ledger.StatusConfirmed || born.Reacquires != old || w.reservation(id).SoldHold != born.ID:
		w.t.Errorf("the new hold is %+v, and the reservation sold %s", born, w.reservation(id).SoldHold)
	}
}

// Case D3: news of an on-time payment reached us after the hold had ended. Our own clock at
// the time of the write decides.
func TestCaseD3_LateNewsOfAnOnTimePayment(t *testing.T) {
	tests := []struct {
		delivered  time.Duration // after ten o'clock; the hold is over ten minutes after it
		byProvider bool
		status     ledger.ReservationStatus
		reason     ledger.Reason
		hold       ledger.Status
		counters   string
		captured   int64
	}{
		{9*time.Minute + 59*time.Second, false, ledger.ReservationCompleted, "", ledger.StatusConfirmed, "0/0/1/1", 1000},
		{10*time.Minute - time.Millisecond, false, ledger.ReservationCompleted, "", ledger.StatusConfirmed, "0/0/1/1", 1000},
		{10 * time.Minute, false, ledger.ReservationCanceled, ledger.ReasonLate, ledger.StatusExpired, "1/0/0/1", 0},
		{10*time.Minute + time.Second, false, ledger.ReservationCanceled, ledger.ReasonLate, ledger.StatusExpired, "1/0/0/1", 0},
		{10*time.Minute + 20*time.Second, false, ledger.ReservationCanceled, ledger.ReasonLate, ledger.StatusExpired, "1/0/0/1", 0},
		{10*time.Minute + 20*time.Second, true, ledger.ReservationCompleted, "", ledger.StatusExpired, "0/0/1/1", 1000},
	}
	for _, test := range tests {
		w := newWorld(t)
		w.slot("A", 1, slotWith(func(p *ledger.Policy) {
			p.GraceFor, p.Payment.LatePayment, p.Payment.LateByProvider = 0, ledger.LatePaymentRefund, test.byProvider
		}))
		hold := w.hold("A", one("A"))
		id, secret := w.start("A", hold, "key")
		w.at(9*time.Minute + 50*time.Second)
		w.pay(secret)
		w.at(test.delivered)
		w.settle(id)
		w.minutes(2)

		w.wantReservation(id, test.status, test.reason)
		w.wantHold(hold, test.hold)
		w.wantCounters("A", test.counters)
		w.wantMoney(id, "USD", test.captured, 0)
		if voids := w.calls(paymenttest.MethodVoid); (test.captured == 0) != (voids == 1) {
			t.Errorf("delivered after %s: voided %d times", test.delivered, voids)
		}
		w.checkBooks()
	}
}

// Cases D1 and D3: the units of a hold that is over and still there move once, straight
// from held to confirmed; the old hold ends and a new one is born.
func TestCaseD3_LateMoneyTakesTheUnitsThatItsHoldStillHas(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, slotWith(func(p *ledger.Policy) { p.GraceFor = 0 }))
	hold := w.hold("A", one("A"))
	id, secret := w.start("A", hold, "key")
	w.at(9 * time.Minute)
	w.pay(secret)
	w.at(11 * time.Minute)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantHold(hold, ledger.StatusExpired)
	w.wantReacquired(id, hold, true)
	w.wantCounters("A", "0/0/1/1")
	if n := w.releases(hold); n != 0 {
		t.Errorf("the units were available %d times in between", n)
	}
	w.checkBooks()
}

// Case M3: nothing is deleted, released or refunded while a payment is not known, and
// afterwards the stock is released with the compensation owed until the provider answers.
func TestCaseM3_NothingIsCleanedAwayWhileMoneyMayBeOnIt(t *testing.T) {
	w := newWorld(t)
	w.slot("delivered", 1, slotWith(func(p *ledger.Policy) { p.Payment.Delivery = ledger.DeliveryEvent }))
	w.slot("unknown", 1, slotWith(func(p *ledger.Policy) { p.GraceFor = 0 }))
	sold := w.hold("U-1", one("delivered"))
	captured, secret := w.start("U-1", sold, "captured")
	w.pay(secret)
	w.settle(captured)
	w.wantReservation(captured, ledger.ReservationCaptured, "")

	held := w.hold("U-2", one("unknown"))
	review, secret := w.start("U-2", held, "review")
	w.bank.SetScript(review, 1, paymenttest.Script{AmountMinor: 999})
	w.pay(secret)
	told := w.notices()
	w.provider.Before = func(_ context.Context, c paymenttest.Call) error {
		if c.Method != paymenttest.MethodLookUp || w.reservation(review).Status == ledger.ReservationReview {
			return errNoAnswer
		}
		return nil
	}
	w.deliver(review, told...)
	w.wantReservation(review, ledger.ReservationReview, ledger.ReasonMismatch)

	over := w.storedHold(held).ReleaseAt
	for until := over.Add(ledger.UnknownForDefault - time.Minute); w.clock.Now().Before(until); {
		w.sweep()
		w.wantReservation(captured, ledger.ReservationCaptured, "")
		w.wantReservation(review, ledger.ReservationReview, ledger.ReasonMismatch)
		w.wantCounters("delivered", "0/0/1/1")
		w.wantCounters("unknown", "0/1/0/1")
		w.clock.Advance(time.Minute)
	}
	w.clock.Set(over.Add(ledger.UnknownForDefault))
	w.sweep()
	w.wantHold(held, ledger.StatusExpired)
	w.wantCounters("unknown", "1/0/0/1")
	w.wantReservation(review, ledger.ReservationReview, ledger.ReasonMismatch)
	if a, _ := w.reservation(review).Current(); !a.Unwanted || w.reservation(review).LookAt.IsZero() {
		t.Errorf("nobody works on the money that is owed: %+v", w.reservation(review))
	}
	w.minutes(60)
	if w.reservation(review).LookAt.IsZero() || w.bank.Book(review, "USD").AuthorizedMinor != 999 {
		t.Error("the money is not worked on any more, or was given back by nobody")
	}
	w.provider.Before = nil
	w.minutes(2)
	w.wantMoney(review, "USD", 0, 0)
	w.wantReservation(captured, ledger.ReservationCaptured, "")
	w.wantCounters("delivered", "0/0/1/1")
	w.checkBooks()
}

// Case M3, the other unknown: an attempt of which the provider has said nothing at all.
func TestCaseM3_AfterUnknownMaxTheStockIsReleasedAndTheMoneyOwed(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, slotWith(func(p *ledger.Policy) {
		p.GraceFor, p.Payment.UnknownFor, p.Payment.LatePayment = 0, 5*time.Minute, ledger.LatePaymentRefund
	}))
	hold := w.hold("U-1", one("A"))
	id, secret := w.start("U-1", hold, "key")
	w.pay(secret)
	w.notices()
	w.provider.Before = func(context.Context, paymenttest.Call) error { return errNoAnswer }
	for w.clock.Now().Before(tenOClock.Add(14*time.Minute + 30*time.Second)) {
		w.clock.Advance(30 * time.Second)
		w.sweep()
		w.wantHold(hold, ledger.StatusHeld)
		w.wantReservation(id, ledger.ReservationPaymentPending, "")
	}
	w.at(15 * time.Minute)
	w.sweep()
	w.wantHold(hold, ledger.StatusExpired)
	w.wantReservation(id, ledger.ReservationCompensating, ledger.ReasonPaymentUnknown)
	w.minutes(30)
	w.wantReservation(id, ledger.ReservationCompensating, ledger.ReasonPaymentUnknown)
	w.provider.Before = nil
	w.minutes(2)
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonLate)
	w.wantMoney(id, "USD", 0, 0)
	w.wantCounters("A", "1/0/0/1")
	w.checkBooks()
}

// impatient is a context whose time is over by the test's clock, so that a driver pauses
// for nothing.
type impatient struct {
	context.Context
	clock interface{ Now() time.Time }
}

// Deadline is so near that no pause fits before it.
func (i impatient) Deadline() (time.Time, bool) {
	return i.clock.Now().Add(saga.MarginBeforeDeadline), true
}

// Case M7: during a provider outage nothing is decided. Not answering is not counted, and
// one "not found" does not make a payment failed.
func TestCaseM7_AnOutageDecidesNothing(t *testing.T) {
	w := newWorld(t)
	const buyers = 200
	w.slot("A", buyers, slotWith(func(p *ledger.Policy) { p.HoldFor, p.HoldForMax = 3*time.Hour, 3*time.Hour }))
	ids := make([]ledger.ReservationID, buyers)
	secrets := make([]payment.Secret, buyers)
	for i := range buyers {
		ids[i], secrets[i] = w.start("U-1", w.hold("U-1", one("A")), ledger.IdempotencyKey(fmt.Sprintf("key-%d", i)))
	}
	w.notices()
	notFound := 0
	w.provider.Before = func(_ context.Context, c paymenttest.Call) error {
		if c.Number%50 == 0 {
			notFound++
			return &payment.Error{Kind: payment.KindNotFound, Code: paymenttest.CodeMissing, Cause: errNoAnswer}
		}
		return errNoAnswer
	}
	ctx := impatient{t.Context(), w.clock}
	for range 120 { // two hours, looked at every minute
		w.clock.Advance(time.Minute)
		for _, id := range ids {
			w.must(w.driver.Drive(ctx, id, nil, "tick"))
		}
	}
	counted := 0
	for _, id := range ids {
		r := w.reservation(id)
		if r.Status != ledger.ReservationPaymentPending || w.steps(id)[ledger.EventReservationReview] > 0 {
			t.Errorf("the reservation is %+v", r)
		}
		counted += r.Tries
	}
	if notFound == 0 || counted != notFound {
		t.Errorf("the provider said %d times that it knows no such payment, and %d looks count as answered", notFound, counted)
	}
	w.provider.Before = nil
	for i, id := range ids {
		w.pay(secrets[i])
		w.drive(id, nil)
		w.wantReservation(id, ledger.ReservationCompleted, "")
	}
	w.wantCounters("A", "0/0/200/200")
	w.checkBooks()
}
