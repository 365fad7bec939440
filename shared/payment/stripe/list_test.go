package stripe_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
)

// All payments since a time are listed, page by page, as they stand, and without their secrets;
// the bank without a wire lists the same.
func TestPaymentsAreListed(t *testing.T) {
	w := mustWorld(t)
	const old, count = 3, 120
	for i := range old + count {
		if i == old {
			w.clock.Advance(time.Hour)
		}
		attempt := ledger.AttemptNumber(i + 1)
		made, err := w.provider.Create(t.Context(), payment.NewCreation(reservation, attempt, ledger.Money{AmountMinor: 500 + int64(i), Currency: "USD"}))
		if err != nil {
			t.Fatal(err)
		}
		if i%4 == 0 {
			if _, err := w.server.Bank().Pay(string(made.ID)); err != nil {
				t.Fatal(err)
			}
		}
		if i%8 == 0 {
			if _, err := w.provider.Capture(t.Context(), payment.CaptureKey(reservation, attempt), made.ID, 500+int64(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	since := start.Add(time.Minute)
	want := map[ledger.PaymentID]string{}
	for _, p := range w.server.Bank().Payments()[old:] {
		want[p.ID] = fmt.Sprint(p.Status, p.Amount, p.CapturedMinor, p.Reservation, p.Attempt, p.CreatedAt)
	}
	for name, lister := range map[string]payment.Lister{"stripe": w.provider, "bank": paymenttest.NewProvider(w.server.Bank())} {
		got := map[ledger.PaymentID]string{}
		pages := 0
		for after, more := ledger.Cursor(""), true; more; more = after != "" {
			listed, next, err := lister.Payments(t.Context(), since, after)
			if err != nil {
				t.Fatal(name, err)
			}
			for _, p := range listed {
				if !p.Secret.Empty() {
					t.Errorf("%s: %s is listed with its secret", name, p.ID)
				}
				got[p.ID] = fmt.Sprint(p.Status, p.Amount, p.CapturedMinor, p.Reservation, p.Attempt, p.CreatedAt)
			}
			after, pages = next, pages+1
		}
		if len(got) != count || pages < 2 {
			t.Errorf("%s: %d payments on %d pages, want %d on several", name, len(got), pages, count)
		}
		for id, said := range want {
			if got[id] != said {
				t.Errorf("%s: %s is listed as %s, want %s", name, id, got[id], said)
			}
		}
	}
}
