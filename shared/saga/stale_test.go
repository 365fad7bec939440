package saga_test

import (
	"context"
	"errors"
	"testing"

	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
)

// What one drive has seen of a payment is older than what another one has written since.
// A step on it would take a paid sale back, because the payment "is pending".
func TestWhatIsOlderThanTheReservationDecidesNothing(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, nil)
	hold := w.hold("U-1", one("A"))
	id := w.startWithoutAnswer("U-1", hold)
	nested := false
	lost := errors.New("no answer")
	w.provider.Before = func(_ context.Context, call paymenttest.Call) error {
		if call.Method == paymenttest.MethodCapture && nested {
			return lost
		}
		return nil
	}
	w.provider.After = func(_ context.Context, call paymenttest.Call) error {
		if call.Method != paymenttest.MethodCreate || nested {
			return nil
		}
		// Another drive is faster: it sees the payment paid, and sells the hold.
		nested = true
		if _, err := w.bank.Pay(string(w.bank.Payments()[0].ID)); err != nil {
			t.Fatal(err)
		}
		w.drive(id, nil)
		if r := w.reservation(id); r.Status != ledger.ReservationConfirmed {
			t.Fatalf("the other drive left it %s", r.Status)
		}
		nested = false
		w.provider.After = nil
		return nil
	}
	w.drive(id, nil)
	if r := w.reservation(id); r.Status != ledger.ReservationCompleted || w.storedHold(hold).Status != ledger.StatusConfirmed {
		t.Errorf("the reservation is %s (%s), the hold %s", r.Status, r.Reason, w.storedHold(hold).Status)
	}
	w.checkBooks()
}

// startWithoutAnswer begins a payment whose creation does not reach the provider.
func (w *world) startWithoutAnswer(owner ledger.OwnerID, hold ledger.HoldID) ledger.ReservationID {
	w.t.Helper()
	w.provider.Before = func(context.Context, paymenttest.Call) error { return errors.New("no answer") }
	id, _ := w.start(owner, hold, "key")
	w.provider.Before = nil
	return id
}
