package saga_test

import (
	"context"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/telemetry"
)

// Money of an attempt that was closed long ago comes to a reservation that has ended, and
// the provider will not give it back: the reservation must not look ended.
func TestRefusedRefundOpensACanceledReservation(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, func(d *ledger.SlotDefinition) { d.Policy.Payment.OnDecline = ledger.OnDeclineKeep })
	w.bank.SetDefaultScript(paymenttest.Script{VoidLies: true, RefundRefused: true})
	hold := w.hold("U-1", one("A"))
	id, first := w.start("U-1", hold, "first")
	w.drive(id, nil)
	w.start("U-1", hold, "second")
	w.drive(id, nil)
	_, err := w.commands.CancelReservation(t.Context(), commands.Request{Actor: "owner", Owner: "U-1"}, id, nil, commands.CancelByOwner, renderNothing)
	w.must(err)
	w.drive(id, nil)
	if r := w.reservation(id); r.Status != ledger.ReservationCanceled || len(r.Attempts) != 2 {
		t.Fatalf("the reservation is %+v", r)
	}
	w.notices()
	w.clock.Advance(time.Minute)
	if _, err := w.bank.LateSuccess(first.Reveal(), true); err != nil {
		t.Fatal(err)
	}
	for _, n := range w.notices() {
		w.drive(id, n)
	}
	if r := w.reservation(id); r.Status != ledger.ReservationRefundRequired || r.OwedMinor() != 1000 {
		t.Errorf("the reservation is %s and owes %d", r.Status, r.OwedMinor())
	}
}

// lagging is a provider whose sum of refunds, told with a refund, is without that refund.
type lagging struct{ payment.Provider }

func (l lagging) Refund(ctx context.Context, key payment.Key, id ledger.PaymentID, amountMinor int64) (payment.Payment, error) {
	p, err := l.Provider.Refund(ctx, key, id, amountMinor)
	p.RefundedMinor -= amountMinor
	return p, err
}

// A refund that the provider has made counts, also while its sum lags behind: it has not
// failed since, and nobody is called for it.
func TestARefundCountsWhileTheSumLags(t *testing.T) {
	for _, lines := range [][]ledger.ReturnLine{nil, {{Slot: "A", Quantity: 1}}} {
		w := newWorld(t)
		w.slot("A", 2, nil)
		w.driver = w.driverOf(lagging{w.provider})
		id, secret := w.start("U-1", w.hold("U-1", ledger.Quote{Slot: "A", Quantity: 2, UnitAmount: 1000}), "key")
		w.pay(secret)
		w.drive(id, nil)
		_, err := w.commands.CancelReservation(t.Context(), commands.Request{Actor: "owner", Owner: "U-1"}, id, lines, commands.CancelByOwner, renderNothing)
		w.must(err)
		w.drive(id, nil)
		want := ledger.ReservationRefunded
		if lines != nil {
			want = ledger.ReservationCompleted
		}
		if r := w.reservation(id); r.Status != want || r.OwedMinor() != 0 || w.metrics.of[telemetry.MetricReservationsRefundRequired] != 0 {
			t.Errorf("the reservation is %s and owes %d; a person was called %d times", r.Status, r.OwedMinor(), w.metrics.of[telemetry.MetricReservationsRefundRequired])
		}
		w.checkBooks()
	}
}

// The owner gives a hold up whose attempt is closed, and the provider takes the money of
// that attempt all the same, before a saga has seen the one or the other: the money goes
// back, as it would a moment later.
func TestMoneyBuysNothingThatItsOwnerHasGivenUp(t *testing.T) {
	for _, captured := range []bool{false, true} {
		w := newWorld(t)
		w.slot("A", 1, func(d *ledger.SlotDefinition) { d.Policy.Payment.OnDecline = ledger.OnDeclineKeep })
		w.bank.SetDefaultScript(paymenttest.Script{VoidLies: true})
		hold := w.hold("U-1", one("A"))
		id, secret := w.start("U-1", hold, "key")
		if _, err := w.provider.Void(t.Context(), "by hand", w.bank.Payments()[0].ID); err != nil {
			t.Fatal(err)
		}
		for _, n := range w.notices() {
			w.drive(id, n)
		}
		_, err := w.commands.CancelHold(t.Context(), commands.Request{Actor: "owner", Owner: "U-1"}, hold,
			func(ledger.Hold, time.Time) (ledger.Response, error) { return ledger.Response{}, nil })
		w.must(err)
		if _, err := w.bank.LateSuccess(secret.Reveal(), captured); err != nil {
			t.Fatal(err)
		}
		for _, n := range w.notices() {
			w.drive(id, n)
		}
		if r := w.reservation(id); r.SoldHold != "" || r.Reason != ledger.ReasonHoldCanceled || !r.Status.Ended() {
			t.Errorf("the reservation is %s (%s), and sold %q", r.Status, r.Reason, r.SoldHold)
		}
		w.checkBooks()
	}
}
