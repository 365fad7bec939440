package saga_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
)

// P8: a bank says that the first attempt is cancelled, and takes its money after all; the
// news of it is lost, and the sale waits for its delivery. The money is found and given
// back while it waits.
func TestP8_MoneyOfAnOlderAttemptIsFoundWhileTheDeliveryIsAwaited(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, func(d *ledger.SlotDefinition) {
		d.Policy.Payment.OnDecline, d.Policy.Payment.Delivery = ledger.OnDeclineKeep, ledger.DeliveryEvent
	})
	w.bank.SetDefaultScript(paymenttest.Script{VoidLies: true})
	hold := w.hold("U-1", one("A"))
	id, first := w.start("U-1", hold, "key-1")
	if _, err := w.bank.Decline(first.Reveal()); err != nil {
		t.Fatal(err)
	}
	_, second := w.start("U-1", hold, "key-2")
	if _, err := w.bank.Pay(second.Reveal()); err != nil {
		t.Fatal(err)
	}
	w.drive(id, nil)
	if r := w.reservation(id); r.Status != ledger.ReservationCaptured || len(r.Attempts) != 2 {
		t.Fatalf("the reservation is %+v", r)
	}
	if _, err := w.bank.LateSuccess(first.Reveal(), true); err != nil {
		t.Fatal(err)
	}
	w.notices() // all of them are lost
	w.clock.Advance(saga.LastLookAfter)
	w.sweep()
	r, book := w.reservation(id), w.bank.Book(id, "USD")
	if r.Status != ledger.ReservationCaptured || r.OwedMinor() != 0 || book.CapturedMinor-book.RefundedMinor != r.Amount.AmountMinor {
		t.Errorf("the reservation is %+v, the bank's book %+v", r, book)
	}
	w.checkBooks()
}

// Case D14: the news that a refund has failed comes while the provider does not answer, and
// the sale waits for its delivery. The event does not count as done, and the failed refund
// is found once the provider answers, though the news is gone.
func TestCaseD14_NewsThatCouldNotBeLookedUpIsNotDone(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 2, func(d *ledger.SlotDefinition) { d.Policy.Payment.Delivery = ledger.DeliveryEvent })
	id, secret := w.start("U-1", w.hold("U-1", ledger.Quote{Slot: "A", Quantity: 2, UnitAmount: 1000}), "key")
	w.pay(secret)
	w.drive(id, nil)
	w.must(w.cancel(id, ledger.ReturnLine{Slot: "A", Quantity: 1}))
	w.drive(id, nil)
	w.wantReservation(id, ledger.ReservationCaptured, "")
	w.notices()
	if _, err := w.bank.FailRefund(w.bank.Payments()[0].Refunds[0].ID); err != nil {
		t.Fatal(err)
	}
	failed := w.notices()
	w.provider.Before = func(context.Context, paymenttest.Call) error { return errors.New("down") }
	for _, n := range failed {
		w.drive(id, n)
		if _, recorded, err := w.store.Claimed(t.Context(), ledger.UniqueProviderEvent, string(n.ID)); recorded || err != nil {
			t.Errorf("the event is done, and nobody knows how the payment stands (%v)", err)
		}
	}
	w.provider.Before = nil
	w.minutes(2)
	if r := w.reservation(id); r.OwedMinor() != 1000 {
		t.Errorf("the failed refund is not owed: %+v", r.Refunds)
	}
	w.checkBooks()
}

// P8: a refund of a part fails after it was done, and the news of it is lost. The last look
// at the sale finds it.
func TestP8_APartsRefundThatFailsUnheardIsFound(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 2, nil)
	_, id := w.buy("U-1", ledger.Quote{Slot: "A", Quantity: 2, UnitAmount: 1000})
	w.must(w.cancel(id, ledger.ReturnLine{Slot: "A", Quantity: 1}))
	w.drive(id, nil)
	w.settle(id)
	if _, err := w.bank.FailRefund(w.bank.Payments()[0].Refunds[0].ID); err != nil {
		t.Fatal(err)
	}
	w.notices() // all of them are lost
	w.minutes(int(saga.LastLookAfter/time.Minute) + 2)
	if r := w.reservation(id); r.Status != ledger.ReservationCompleted || r.OwedMinor() != 1000 {
		t.Errorf("the reservation is %s and owes %d", r.Status, r.OwedMinor())
	}
	w.checkBooks()
}
