package stripe_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/stripe"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/system"
)

// A key that was changed is used by a running process, and while it can't be read nothing
// is asked, which is told as a provider that does not answer.
func TestAChangedKeyIsUsed(t *testing.T) {
	server, err := stripetest.Start(stripetest.Options{APIKey: payment.NewSecret("sk_test_new"), Clock: system.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	var key string
	var failure error
	provider := stripe.NewKeyed(func(context.Context) (payment.Secret, error) { return payment.NewSecret(key), failure }, server.URL(), system.RealClock{})
	creation := payment.Creation{Key: "key", Amount: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Reservation: "rsv_1", Attempt: 1}
	away := errors.New("away")
	for _, read := range []struct {
		key     string
		failure error
		works   bool
	}{
		{"sk_test_old", nil, false}, {"sk_test_new", nil, true}, {"sk_test_new", away, false}, {"", nil, false}, {"sk_test_new", nil, true},
	} {
		key, failure = read.key, read.failure
		_, err := provider.Create(t.Context(), creation)
		var refusal *payment.Error
		if (err == nil) != read.works || err != nil && (!errors.As(err, &refusal) || refusal.Kind != payment.KindUnreachable) {
			t.Errorf("with the key %q and %v: %v", read.key, read.failure, err)
		}
	}
	p, err := provider.Create(t.Context(), creation)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Bank().Pay(string(p.ID)); err != nil {
		t.Fatal(err)
	}
	if p, err = provider.Capture(t.Context(), "capture", p.ID, 1000); err != nil || p.Status != payment.StatusCaptured {
		t.Errorf("captured: %+v, %v", p, err)
	}
	if p, err = provider.Refund(t.Context(), "refund", p.ID, 400); err != nil || p.RefundedMinor != 400 {
		t.Errorf("refunded: %+v, %v", p, err)
	}
	if p, err := provider.LookUp(t.Context(), p.ID); err != nil || p.RefundedMinor != 400 {
		t.Errorf("looked up: %+v, %v", p, err)
	}
	if _, err = provider.Void(t.Context(), "void", p.ID); err == nil {
		t.Error("what was captured is voided")
	}
	if listed, _, err := provider.Payments(t.Context(), time.Time{}, ""); err != nil || len(listed) != 1 || listed[0].ID != p.ID {
		t.Errorf("listed: %+v, %v", listed, err)
	}
	failure = away
	if _, _, err := provider.Payments(t.Context(), time.Time{}, ""); !errors.Is(err, away) {
		t.Errorf("list without a key: %v", err)
	}
	for name, call := range map[string]func() (payment.Payment, error){
		"look up": func() (payment.Payment, error) { return provider.LookUp(t.Context(), p.ID) },
		"capture": func() (payment.Payment, error) { return provider.Capture(t.Context(), "capture", p.ID, 1000) },
		"void":    func() (payment.Payment, error) { return provider.Void(t.Context(), "void", p.ID) },
		"refund":  func() (payment.Payment, error) { return provider.Refund(t.Context(), "refund", p.ID, 400) },
	} {
		if _, err := call(); !errors.Is(err, away) {
			t.Errorf("%s without a key: %v", name, err)
		}
	}
}
