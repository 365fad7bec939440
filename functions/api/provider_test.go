package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

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
