package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/system"
	"holdfast/shared/telemetry/telemetrytest"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

const (
	slotID ledger.SlotID = "seat"
	apiKey string        = "sk_test_key-marker"
)

// world is the function on a real table, with a payment provider and a secret of its own.
type world struct {
	t      *testing.T
	handle handler
	store  *dynamo.Store
	shop   *commands.Commands
	stripe *stripetest.Server
	output func() string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	client, table := dynamotest.NewTable(t)
	store := dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})
	w := &world{t: t, store: store, shop: commands.New(store, system.RealClock{}, system.RealRandom{}), output: telemetrytest.Output(t)}
	stripe, err := stripetest.Start(stripetest.Options{APIKey: payment.NewSecret(apiKey), Clock: system.RealClock{}})
	w.check(err)
	t.Cleanup(func() { w.check(stripe.Close()) })
	w.stripe = stripe
	vault := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, _ *http.Request) {
		answer.Header().Set("Content-Type", "application/x-amz-json-1.1")
		_, _ = fmt.Fprintf(answer, `{"Name":"payment","SecretString":%q}`, `{"api_key":"`+apiKey+`","webhook_secrets":["whsec_1"]}`)
	}))
	t.Cleanup(vault.Close)
	environment(t, table, *client.Options().BaseEndpoint)
	t.Setenv("HOLDFAST_LOCAL_SECRETS_ENDPOINT", vault.URL)
	t.Setenv("HOLDFAST_LOCAL_STRIPE_ENDPOINT", stripe.URL())
	w.handle, err = compose(t.Context())
	w.check(err)
	_, err = w.shop.PutSlot(t.Context(), commands.Request{Actor: "service:catalog", RequestID: "request_test"}, slotID, ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: "KE0901", Capacity: 5, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: 2},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	w.check(err)
	return w
}

func environment(t *testing.T, table, endpoint string) {
	t.Helper()
	t.Setenv("HOLDFAST_STAGE", "local")
	t.Setenv("HOLDFAST_TABLE_NAME", table)
	t.Setenv("HOLDFAST_PAYMENT_SECRET_ID", "payment")
	t.Setenv("HOLDFAST_LOCAL_DYNAMODB_ENDPOINT", endpoint)
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// start makes a hold of one unit and begins its payment, as the API does.
func (w *world) start() ledger.ReservationID {
	w.t.Helper()
	var hold ledger.Hold
	_, err := w.shop.CreateHold(w.t.Context(), commands.Request{Actor: "owner:U-17", Owner: "U-17", RequestID: "request_test"},
		commands.HoldWish{Quotes: []ledger.Quote{{Slot: slotID, Quantity: 1, UnitAmount: 1000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			hold = h
			return ledger.Response{Status: 201}, nil
		})
	w.check(err)
	id := ledger.NewReservationID(system.RealRandom{}.Bits128())
	change, err := ledger.StartReservation(id, hold, ledger.Origin{
		Actor: "owner:U-17", Command: ledger.CommandStartPayment, RequestID: "request_test", EventID: ledger.NewEventID(system.RealRandom{}.Bits128()),
	}, system.Millisecond(system.RealClock{}))
	w.check(err)
	w.check(w.store.Commit(w.t.Context(), change))
	return id
}

func (w *world) reservation(id ledger.ReservationID) ledger.Reservation {
	w.t.Helper()
	r, err := w.store.Reservation(w.t.Context(), id)
	w.check(err)
	return r
}

// send hands the function a batch of these messages, and returns its answer as JSON.
func (w *world) send(messages ...payment.Message) string {
	w.t.Helper()
	var records []map[string]any
	for i, m := range messages {
		body, err := m.Encode()
		w.check(err)
		records = append(records, map[string]any{"messageId": fmt.Sprintf("m%d", i+1), "body": body, "eventSource": "aws:sqs"})
	}
	event, err := json.Marshal(map[string]any{"Records": records})
	w.check(err)
	answer, err := w.handle(w.t.Context(), event)
	w.check(err)
	text, err := json.Marshal(answer)
	w.check(err)
	return string(text)
}

// The real wiring, against a real table and a provider over HTTP: a wake-up begins the
// payment, the buyer pays, the provider's notice is queued, and the reservation is
// completed, with one capture. The same notice again changes nothing (case D13).
func TestAPaymentIsDrivenToItsEnd(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	if answer := w.send(payment.Message{Reservation: id}); answer != `{"batchItemFailures":[]}` {
		t.Fatalf("answered %s", answer)
	}
	_, err := w.stripe.Bank().Pay(string(w.reservation(id).Attempts[0].Payment))
	w.check(err)
	var told []payment.Message
	for _, e := range w.stripe.Bank().TakeEvents() {
		notice := e.Notice()
		told = append(told, payment.Message{Reservation: id, Notice: &notice})
	}
	for range 2 {
		if answer := w.send(told...); answer != `{"batchItemFailures":[]}` {
			t.Errorf("answered %s", answer)
		}
		r := w.reservation(id)
		hold, err := w.store.Hold(t.Context(), r.Hold)
		w.check(err)
		if r.Status != ledger.ReservationCompleted || hold.Status != ledger.StatusConfirmed {
			t.Fatalf("the reservation is %s, the hold %s", r.Status, hold.Status)
		}
	}
	book := w.stripe.Bank().Book(id, "KRW")
	if book.CapturedMinor != 1000 || book.Captures != 1 || book.Payments != 1 || book.AuthorizedMinor != 0 || book.RefundedMinor != 0 {
		t.Errorf("the bank's book says %+v", book)
	}
	for _, m := range told {
		if _, recorded, err := w.store.Claimed(t.Context(), ledger.UniqueProviderEvent, string(m.Notice.ID)); err != nil || !recorded {
			t.Errorf("event %s is recorded: %t, %v", m.Notice.ID, recorded, err)
		}
	}
	if out := w.output(); strings.Contains(out, "key-marker") || strings.Contains(out, "_secret") || !strings.Contains(out, string(id)) {
		t.Errorf("the log has a secret, or does not name the reservation: %s", out)
	}
}

// What no message told of, the tick finds; what is of no reservation comes again.
func TestTheTickFindsWhatNoMessageToldOf(t *testing.T) {
	w := newWorld(t)
	id := w.start()
	tick, err := os.ReadFile("../../events/lambda/saga_tick.json")
	w.check(err)
	if answer, err := w.handle(t.Context(), tick); err != nil || answer != nil {
		t.Fatalf("answered %v, %v", answer, err)
	}
	if r := w.reservation(id); r.Attempts[0].Payment == "" {
		t.Errorf("the tick left the reservation at %+v", r)
	}
	if out := w.output(); !strings.Contains(out, `"saga_heartbeat":1`) || !strings.Contains(out, `"saga_driven":1`) || !strings.Contains(out, `"saga_lag_seconds_max":`) {
		t.Errorf("reported %s", out)
	}
	batch, err := os.ReadFile("../../events/lambda/saga.json")
	w.check(err)
	answer, err := w.handle(t.Context(), batch)
	w.check(err)
	text, err := json.Marshal(answer)
	w.check(err)
	if want := `{"batchItemFailures":[{"itemIdentifier":"059f36b4-87a3-44ab-83d2-661975830a7d"},{"itemIdentifier":"2e1424d4-f796-459a-8184-9c92662be6da"}]}`; string(text) != want {
		t.Errorf("answered %s", text)
	}
}

// A table that can't be read is an error, never a tick that had nothing to do.
func TestAnUnreachableTableIsAnError(t *testing.T) {
	environment(t, "no-such-table", *dynamotest.Engine(t).Client().Options().BaseEndpoint)
	t.Setenv("HOLDFAST_LOCAL_SECRETS_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("HOLDFAST_LOCAL_STRIPE_ENDPOINT", "http://127.0.0.1:1")
	output := telemetrytest.Output(t)
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := handle(ctx, json.RawMessage(`{}`)); err == nil {
		t.Error("the tick on a table that does not exist succeeds")
	}
	if got := output(); strings.Contains(got, `"saga_lag_seconds_max":`) || !strings.Contains(got, `"saga_heartbeat":0`) {
		t.Errorf("reported %s", got)
	}
}

// A local run without servers of its own does not start, and neither does a function
// whose environment is not complete.
func TestAnIncompleteEnvironmentStopsTheStart(t *testing.T) {
	environment(t, "table", "http://127.0.0.1:1")
	if _, err := compose(t.Context()); err == nil {
		t.Error("a local run might ask the real provider")
	}
	t.Setenv("HOLDFAST_PAYMENT_SECRET_ID", "")
	if _, err := compose(t.Context()); err == nil || !strings.Contains(err.Error(), "HOLDFAST_PAYMENT_SECRET_ID") {
		t.Errorf("error %v", err)
	}
}
