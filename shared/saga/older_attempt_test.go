package saga_test

import (
	"testing"

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
