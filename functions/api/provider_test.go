package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"holdfast/shared/config"
	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/system"
)

const seat = `{"resource_type":"flight","resource_id":"KE0901","capacity":3,"unit_amount":1000,"currency":"KRW","open":true}`

// vault is Secrets Manager with the one secret, in the form of its JSON protocol.
func vault(t *testing.T, value *atomic.Value) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Amz-Target") != "secretsmanager.GetSecretValue" {
			t.Errorf("asked for %s", r.Header.Get("X-Amz-Target"))
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		text, found := value.Load().(string)
		if !found {
			w.WriteHeader(http.StatusBadRequest)
			text = `{"__type":"ResourceNotFoundException","message":"no value yet"}`
		} else if quoted, err := json.Marshal(text); err == nil {
			text = fmt.Sprintf(`{"Name":"payment","SecretString":%s}`, quoted)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func startStripe(t *testing.T, key string) *stripetest.Server {
	t.Helper()
	server, err := stripetest.Start(stripetest.Options{APIKey: payment.NewSecret(key), Clock: system.RealClock{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return server
}

// The real wiring of a payment: the key is read when the first payment needs it, so a
// secret without a value takes down nothing but the secret of the session; and once it is
// there, the session has it.
func TestThePaymentWiringWorks(t *testing.T) {
	var value atomic.Value
	stripe := startStripe(t, "sk_test_1")
	t.Setenv("HOLDFAST_LOCAL_SECRETS_ENDPOINT", vault(t, &value))
	t.Setenv("HOLDFAST_LOCAL_STRIPE_ENDPOINT", stripe.URL())
	send := sender(t)
	send(http.MethodPut, "/v1/slots/seat", seat, "catalog", http.StatusCreated)
	hold := send(http.MethodPost, "/v1/holds", `{"slot_ids":["seat"],"quantity":3,"quoted_price":1000}`, "holds", http.StatusCreated)
	start := func() map[string]any {
		return send(http.MethodPost, fmt.Sprintf("/v1/holds/%s/payment", hold["hold_id"]), "", "holds", http.StatusAccepted)
	}
	started := start()
	session := fmt.Sprint(started["status_url"], "/payment-session")
	if started["client_secret"] != nil || started["status"] != "PAYMENT_PENDING" {
		t.Errorf("without a key: %v", started)
	}
	if p := send(http.MethodPost, session, "", "holds", http.StatusServiceUnavailable); p["code"] != "payment_provider_unavailable" {
		t.Errorf("without a key: %v", p)
	}
	value.Store(`{"api_key":"sk_test_1","webhook_secrets":["whsec_1"]}`)
	opened := send(http.MethodPost, session, "", "holds", http.StatusOK)
	paid, err := stripe.Bank().Pay(fmt.Sprint(opened["client_secret"]))
	if err != nil || paid.AuthorizedMinor != 3000 || paid.Amount.Currency != "KRW" || string(paid.Reservation) != opened["reservation_id"] {
		t.Errorf("paid %+v, %v", paid, err)
	}
	if again := start(); again["client_secret"] != opened["client_secret"] {
		t.Errorf("the replay has %v, want %v", again["client_secret"], opened["client_secret"])
	}
	if read := send(http.MethodGet, fmt.Sprint(started["status_url"]), "", "holds", http.StatusOK); read["stock"] != "held" {
		t.Errorf("read: %v", read)
	}
}

// A run on one machine that names no servers of its own asks none.
func TestNoServersNoProvider(t *testing.T) {
	send := sender(t)
	send(http.MethodPut, "/v1/slots/seat", seat, "catalog", http.StatusCreated)
	hold := send(http.MethodPost, "/v1/holds", `{"slot_ids":["seat"],"quantity":1,"quoted_price":1000}`, "holds", http.StatusCreated)
	p := send(http.MethodPost, fmt.Sprintf("/v1/holds/%s/payment", hold["hold_id"]), "", "holds", http.StatusServiceUnavailable)
	if p["code"] != "payment_provider_unavailable" {
		t.Errorf("answered %v", p)
	}
}

// A key that was changed is used by a running process, and while it can't be read nothing
// is asked.
func TestAChangedKeyIsUsed(t *testing.T) {
	stripe := startStripe(t, "sk_test_new")
	var keys config.PaymentSecrets
	var failure error
	provider := &keyedProvider{
		secrets: func(context.Context) (config.PaymentSecrets, error) { return keys, failure },
		baseURL: stripe.URL(), clock: system.RealClock{},
	}
	creation := payment.Creation{Key: "key", Amount: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Reservation: "rsv_1", Attempt: 1}
	for _, read := range []struct {
		key     string
		failure error
		works   bool
	}{
		{"sk_test_old", nil, false}, {"sk_test_new", nil, true}, {"sk_test_new", errors.New("away"), false}, {"", nil, false}, {"sk_test_new", nil, true},
	} {
		keys, failure = config.PaymentSecrets{APIKey: payment.NewSecret(read.key)}, read.failure
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
	if _, err := stripe.Bank().Pay(string(p.ID)); err != nil {
		t.Fatal(err)
	}
	if p, err = provider.Capture(t.Context(), "capture", p.ID, 1000); err != nil || p.Status != payment.StatusCaptured {
		t.Errorf("captured: %+v, %v", p, err)
	}
	if p, err = provider.Refund(t.Context(), "refund", p.ID, 400); err != nil || p.RefundedMinor != 400 {
		t.Errorf("refunded: %+v, %v", p, err)
	}
	if _, err = provider.Void(t.Context(), "void", p.ID); err == nil {
		t.Error("what was captured is voided")
	}
	failure = errors.New("away")
	for name, call := range map[string]func() (payment.Payment, error){
		"look up": func() (payment.Payment, error) { return provider.LookUp(t.Context(), p.ID) },
		"capture": func() (payment.Payment, error) { return provider.Capture(t.Context(), "capture", p.ID, 1000) },
		"void":    func() (payment.Payment, error) { return provider.Void(t.Context(), "void", p.ID) },
		"refund":  func() (payment.Payment, error) { return provider.Refund(t.Context(), "refund", p.ID, 400) },
	} {
		if _, err := call(); !errors.Is(err, failure) {
			t.Errorf("%s without a key: %v", name, err)
		}
	}
}
