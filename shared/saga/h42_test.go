package saga_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
)

// The story of hold H-42: two units of S-1930 are held at 10:00:01 until 10:10:00. The
// buyer pays at 10:09:59, and around 10:10:00 an expiry and two copies of the success
// meet. The question of the story is not which server is faster, but to which write the
// units belong.
const (
	h42Slot    ledger.SlotID = "S-1930"
	h42Held                  = time.Second                    // 10:00:01
	h42Paid                  = 9*time.Minute + 59*time.Second // 10:09:59
	h42Expires               = 10 * time.Minute               // 10:10:00
	h42Amount                = 100_000                        // two units of KRW 50000
)

// h42Signal is one thing that happens around the expiry.
type h42Signal string

const (
	h42Sweep     h42Signal = "expiry"
	h42Success   h42Signal = "success"
	h42Duplicate h42Signal = "duplicate"
)

// h42Policy is what the story leaves open: how late money may be, and what it may buy.
type h42Policy struct {
	grace time.Duration
	late  ledger.LatePayment
}

// holdH42 plays the story up to the payment.
func holdH42(t *testing.T, policy h42Policy) (*world, ledger.HoldID, ledger.ReservationID, *payment.Notice) {
	w := newWorld(t)
	w.slot(h42Slot, 2, func(d *ledger.SlotDefinition) {
		d.ResourceID, d.Terms.Price = "hall-7", ledger.Money{AmountMinor: 50_000, Currency: "KRW"}
		d.Policy.HoldFor, d.Policy.GraceFor = h42Expires-h42Held, policy.grace
		d.Policy.Payment.LatePayment = policy.late
	})
	w.at(h42Held)
	hold := w.hold("U-17", ledger.Quote{Slot: h42Slot, Quantity: 2, UnitAmount: 50_000})
	if h := w.storedHold(hold); !h.ExpiresAt.Equal(tenOClock.Add(h42Expires)) {
		t.Fatalf("the hold expires at %s", h.ExpiresAt)
	}
	w.at(h42Paid)
	id, secret := w.start("U-17", hold, "H-42")
	w.pay(secret)
	return w, hold, id, of(paymenttest.EventAuthorized, w.notices())[0]
}

// TestH42_ExpiryMeetsTwoSuccesses plays the three signals in every order, each at moments
// from half a second before the expiry to two minutes after it. The first of them that
// reaches us decides, by our clock.
func TestH42_ExpiryMeetsTwoSuccesses(t *testing.T) {
	signals := []h42Signal{h42Sweep, h42Success, h42Duplicate}
	moments := []time.Duration{
		h42Paid + 500*time.Millisecond, h42Expires - time.Millisecond, h42Expires,
		h42Expires + time.Millisecond, h42Expires + time.Second, h42Expires + 2*time.Minute,
	}
	policies := []h42Policy{
		{0, ledger.LatePaymentReacquire}, {0, ledger.LatePaymentRefund}, {0, ledger.LatePaymentReview},
		{2 * time.Minute, ledger.LatePaymentRefund},
	}
	played := 0
	for _, policy := range policies {
		for _, order := range permutations(len(signals)) {
			for first := range moments {
				for second := first; second < len(moments); second++ {
					for third := second; third < len(moments); third++ {
						at := []time.Duration{moments[first], moments[second], moments[third]}
						name := fmt.Sprintf("%+v:", policy)
						w, hold, id, success := holdH42(t, policy)
						for i, signal := range order {
							name += fmt.Sprintf(" %s at +%s", signals[signal], at[i])
							w.at(at[i])
							w.h42(signals[signal], id, success)
							w.h42Decided(name, policy, at[0], hold, id)
						}
						w.settle(id)
						w.h42Decided(name, policy, at[0], hold, id)
						w.checkBooks()
						if t.Failed() {
							t.Fatal(name)
						}
						played++
					}
				}
			}
		}
	}
	if want := 4 * 6 * 56; played != want {
		t.Errorf("%d stories, want %d", played, want)
	}
}

// h42 plays one signal.
func (w *world) h42(signal h42Signal, id ledger.ReservationID, success *payment.Notice) {
	w.t.Helper()
	if signal == h42Sweep {
		w.sweep()
		return
	}
	w.drive(id, success)
}

// h42Decided requires the end that the first signal has decided, and that no later signal
// has moved it.
func (w *world) h42Decided(name string, policy h42Policy, first time.Duration, hold ledger.HoldID, id ledger.ReservationID) {
	w.t.Helper()
	type end struct {
		status   ledger.ReservationStatus
		reason   ledger.Reason
		hold     ledger.Status
		counters ledger.Counters
		captured int64
	}
	sold := ledger.Counters{Confirmed: 2, Capacity: 2}
	want := end{ledger.ReservationCompleted, "", ledger.StatusConfirmed, sold, h42Amount}
	if first >= h42Expires+policy.grace {
		switch policy.late {
		case ledger.LatePaymentReacquire:
			want.hold = ledger.StatusExpired // and a new hold has the units
		case ledger.LatePaymentRefund:
			want = end{ledger.ReservationCanceled, ledger.ReasonLate, ledger.StatusExpired, ledger.Counters{Available: 2, Capacity: 2}, 0}
		case ledger.LatePaymentReview:
			want = end{ledger.ReservationReview, ledger.ReasonLate, ledger.StatusHeld, ledger.Counters{Held: 2, Capacity: 2}, 0}
		}
	}
	r, b := w.reservation(id), w.bank.Book(id, "KRW")
	got := end{r.Status, r.Reason, w.storedHold(hold).Status, w.counters(h42Slot), b.CapturedMinor}
	if got != want {
		w.t.Errorf("%s\nends as %+v\nwant    %+v", name, got, want)
	}
	if b.Payments != 1 || b.Captures > 1 || b.RefundedMinor != 0 {
		w.t.Errorf("%s: the bank's book is %+v", name, b)
	}
}

// TestH42_TheUnitIsSoldToAnotherMeanwhile: the success of H-42 reaches us when its units
// have been given back and sold on. It never takes them back; the money goes.
func TestH42_TheUnitIsSoldToAnotherMeanwhile(t *testing.T) {
	w, hold, id, success := holdH42(t, h42Policy{0, ledger.LatePaymentReacquire})
	w.provider.Before = func(_ context.Context, _ paymenttest.Call) error { return errNoAnswer }
	w.at(h42Expires + ledger.UnknownForDefault)
	w.sweep()
	w.wantHold(hold, ledger.StatusExpired)
	w.provider.Before = nil
	other := w.hold("U-18", ledger.Quote{Slot: h42Slot, Quantity: 2, UnitAmount: 50_000})
	w.must(w.confirmHold(other))
	for range 2 {
		w.drive(id, success)
		w.settle(id)
	}
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonSoldOut)
	w.wantHold(hold, ledger.StatusExpired)
	w.wantCounters(h42Slot, "0/0/2/2")
	w.wantMoney(id, "KRW", 0, 0)
	w.checkBooks()
}

// TestH42_OpeningTheAppAgainMakesNoSecondPayment: the buyer opens the app again and starts
// the payment of the same hold once more, with the same key and with another one.
func TestH42_OpeningTheAppAgainMakesNoSecondPayment(t *testing.T) {
	w, hold, id, success := holdH42(t, h42Policy{0, ledger.LatePaymentReacquire})
	again, _ := w.start("U-17", hold, "H-42")
	if again != id {
		t.Errorf("the same key gives %s and %s", id, again)
	}
	w.wantCode(w.tryStart("U-17", hold, "another"), ledger.CodePaymentInProgress)
	w.drive(id, success)
	w.wantCode(w.tryStart("U-17", hold, "yet another"), ledger.CodeHoldNotActive)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantMoney(id, "KRW", h42Amount, 0)
	if n := len(w.bank.Payments()); n != 1 {
		t.Errorf("%d payments", n)
	}
	w.checkBooks()
}
