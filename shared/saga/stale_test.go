package saga_test

import (
	"context"
	"errors"
	"testing"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
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

// meeting is a store on which one drive meets another.
type meeting struct {
	saga.Store
	// onStock runs once, right after stock was read.
	onStock func()
	// diesAt is the status at whose commit a drive dies; "" for none.
	diesAt ledger.ReservationStatus
}

func (m *meeting) StockAtOneMoment(ctx context.Context, slot ledger.Slot) ([]ledger.Stock, error) {
	stock, err := m.Store.StockAtOneMoment(ctx, slot)
	if meet := m.onStock; meet != nil {
		m.onStock = nil
		meet()
	}
	return stock, err
}

func (m *meeting) Commit(ctx context.Context, c ledger.Change) error {
	err := m.Store.Commit(ctx, c)
	if err == nil && len(c.Reservations) > 0 && c.Reservations[0].Next.Status == m.diesAt {
		m.diesAt = ""
		return errors.New("killed")
	}
	return err
}

// The stock that one drive has read for a late sale is not the stock of the delivery,
// which another drive has left to it: a delivery must not fail for stock that was not read.
func TestStockReadForAnotherStepDecidesNothing(t *testing.T) {
	store := &meeting{Store: memory.New()}
	w := newWorldOn(t, store)
	w.slot("wallet", 0, nil)
	w.slot("A", 5, func(d *ledger.SlotDefinition) { d.Policy.GrantTo = "wallet" })
	w.bank.SetDefaultScript(paymenttest.Script{VoidLies: true})
	id, secret := w.start("U-1", w.hold("U-1", one("A")), "key")
	w.minutes(14)
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonExpired)
	w.notices()
	if _, err := w.bank.LateSuccess(secret.Reveal(), true); err != nil {
		t.Fatal(err)
	}
	store.onStock = func() {
		store.diesAt = ledger.ReservationCaptured
		if err := w.driver.Drive(t.Context(), id, nil, "other"); err == nil {
			t.Error("the other drive was to die")
		}
	}
	w.deliver(id, w.notices()...)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantCounters("wallet", "1/0/0/1")
	w.checkBooks()
}
