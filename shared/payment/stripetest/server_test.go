package stripetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/payment/stripe"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

var (
	start       = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	reservation = ledger.NewReservationID([16]byte{9})
	apiKey      = payment.NewSecret("sk_test_1")
	secret      = payment.NewSecret("whsec_1")
)

func mustStart(tb testing.TB, o stripetest.Options) *stripetest.Server {
	tb.Helper()
	o.APIKey = apiKey
	if o.Clock == nil {
		o.Clock = systemtest.NewClock(start)
	}
	s, err := stripetest.Start(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

func mustCreate(tb testing.TB, s *stripetest.Server, attempt ledger.AttemptNumber) paymenttest.Payment {
	tb.Helper()
	answer, err := s.Bank().Create(payment.Creation{
		Key: payment.CreateKey(reservation, attempt), Amount: ledger.Money{AmountMinor: 1000, Currency: "USD"},
		Reservation: reservation, Attempt: attempt,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return answer.Payment
}

// shop takes webhooks as Holdfast would, and answers what it is told to.
type shop struct {
	*httptest.Server
	mutex   sync.Mutex
	answers []int // of the next calls; then 200
	notices []payment.Notice
	errs    []error
	arrived chan struct{}
}

func mustShop(tb testing.TB, clock system.Clock, secrets ...payment.Secret) *shop {
	tb.Helper()
	s := &shop{arrived: make(chan struct{}, 1000)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		notice, verifyErr := stripe.Verify(body, r.Header.Get(stripe.SignatureHeader), secrets, clock.Now())
		s.mutex.Lock()
		defer s.mutex.Unlock()
		status := http.StatusOK
		if len(s.answers) > 0 {
			status, s.answers = s.answers[0], s.answers[1:]
		}
		s.notices, s.errs = append(s.notices, notice), append(s.errs, errors.Join(err, verifyErr))
		w.WriteHeader(status)
		s.arrived <- struct{}{}
	}))
	tb.Cleanup(s.Close)
	return s
}

// types are the types of the webhooks so far. Any that did not verify fails the test.
func (s *shop) types(tb testing.TB) []string {
	tb.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var types []string
	for i, n := range s.notices {
		if s.errs[i] != nil {
			tb.Error(s.errs[i])
		}
		types = append(types, n.Type)
	}
	return types
}

func (s *shop) await(tb testing.TB, n int) {
	tb.Helper()
	deadline := time.After(10 * time.Second)
	for range n {
		select {
		case <-s.arrived:
		case <-deadline:
			tb.Fatal("a webhook did not arrive")
		}
	}
}

func wantTypes(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("webhooks %v, want %v", got, want)
	}
}

// A server forgets its payments, and its client does not. No id of an earlier one comes again.
func TestIDsAreOfTheirRun(t *testing.T) {
	given := map[string]bool{}
	for _, run := range []string{"", "a", "b"} {
		s := mustStart(t, stripetest.Options{Run: run})
		p := mustCreate(t, s, 1)
		for _, id := range []string{string(p.ID), string(s.Queue()[0].Event.ID), p.Secret.Reveal()} {
			if given[id] {
				t.Errorf("the run %q gives %s again", run, id)
			}
			given[id] = true
		}
	}
}

func TestWebhooksWaitUntilTheyAreDelivered(t *testing.T) {
	clock := systemtest.NewClock(start)
	s := mustStart(t, stripetest.Options{Clock: clock})
	taker := mustShop(t, clock, secret)
	s.SetWebhook(taker.URL, payment.NewSecret("whsec_old"), secret)
	ctx := context.Background()
	p := mustCreate(t, s, 1)
	if _, err := s.Bank().Pay(string(p.ID)); err != nil {
		t.Fatal(err)
	}
	wantTypes(t, taker.types(t))
	if n := len(s.Queue()); n != 2 {
		t.Fatalf("%d webhooks wait", n)
	}
	newest, err := s.Take(1)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // out of order, and twice
		if status, err := s.Send(ctx, newest); err != nil || status != http.StatusOK {
			t.Fatal(status, err)
		}
	}
	if err := s.DeliverAll(ctx); err != nil {
		t.Fatal(err)
	}
	wantTypes(t, taker.types(t), paymenttest.EventAuthorized, paymenttest.EventAuthorized, paymenttest.EventCreated)
	if _, err := s.Deliver(ctx, 0); err == nil {
		t.Error("there was nothing to deliver, and no error")
	}
	taker.answers = []int{http.StatusInternalServerError}
	if _, err := s.Bank().Capture("c", p.ID, 1000); err != nil {
		t.Fatal(err)
	}
	if err := s.DeliverAll(ctx); err == nil {
		t.Error("a webhook that was not taken is no error")
	}
}

func TestAutomaticWebhooksAreRepeatedAndBounded(t *testing.T) {
	clock := systemtest.NewClock(start)
	taker := mustShop(t, clock, secret)
	s := mustStart(t, stripetest.Options{Clock: clock, Automatic: true, WebhookURL: taker.URL, WebhookSecrets: []payment.Secret{secret}})
	taker.mutex.Lock()
	taker.answers = []int{500, 503}
	taker.mutex.Unlock()
	p := mustCreate(t, s, 1)
	s.Collect()
	taker.await(t, 3)
	s.SetWebhookFaults(stripetest.WebhookFaults{Twice: true})
	if _, err := s.Bank().Pay(string(p.ID)); err != nil {
		t.Fatal(err)
	}
	s.Collect()
	taker.await(t, 2)
	wantTypes(t, taker.types(t), paymenttest.EventCreated, paymenttest.EventCreated, paymenttest.EventCreated, paymenttest.EventAuthorized, paymenttest.EventAuthorized)

	s.SetWebhookFaults(stripetest.WebhookFaults{})
	taker.mutex.Lock()
	taker.answers = slices.Repeat([]int{500}, stripetest.WebhookTriesMax)
	taker.mutex.Unlock()
	if _, err := s.Bank().Capture("c", p.ID, 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Bank().Refund("r", p.ID, 1000); err != nil {
		t.Fatal(err)
	}
	s.Collect()
	taker.await(t, stripetest.WebhookTriesMax+1)
	got := taker.types(t)
	if last := got[len(got)-1]; last != paymenttest.EventRefunded || s.GivenUp() != 1 {
		t.Errorf("after a webhook that nobody takes came %s; %d were given up", last, s.GivenUp())
	}
	if paused := clock.Now().Sub(start); paused != time.Second+500*time.Millisecond+15*time.Second+500*time.Millisecond {
		t.Errorf("the pauses sum to %v", paused)
	}
}

func TestPausedAndThrownAwayWebhooks(t *testing.T) {
	clock := systemtest.NewClock(start)
	taker := mustShop(t, clock, secret)
	s := mustStart(t, stripetest.Options{Clock: clock, Automatic: true, WebhookURL: taker.URL, WebhookSecrets: []payment.Secret{secret}})
	s.SetWebhookFaults(stripetest.WebhookFaults{Paused: true})
	p := mustCreate(t, s, 1)
	mustControl(t, s, "/_test/payments/"+string(reservation)+"/pay", nil, http.StatusOK)
	if n := len(s.Queue()); n != 2 {
		t.Fatalf("%d webhooks wait", n)
	}
	mustControl(t, s, "/_test/webhooks/deliver", url.Values{"order": {"reversed"}}, http.StatusOK)
	wantTypes(t, taker.types(t), paymenttest.EventAuthorized, paymenttest.EventCreated)
	if got, _ := s.Bank().LookUp(p.ID); got.Status != payment.StatusAuthorized {
		t.Errorf("it is %s", got.Status)
	}
}

// D9: the answer to the creation is late, and the webhook of the payment is faster.
func TestCaseD9_WebhookBeforeTheAnswer(t *testing.T) {
	clock := systemtest.NewClock(start)
	s := mustStart(t, stripetest.Options{Clock: clock})
	taker := mustShop(t, clock, secret)
	s.SetWebhook(taker.URL, secret)
	release := make(chan struct{})
	s.AddFault(stripetest.Fault{Method: paymenttest.MethodCreate, Calls: 1, Until: release})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	provider, err := stripe.New(stripe.Options{APIKey: apiKey, BaseURL: s.URL(), Transport: transport, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := provider.Create(context.Background(), payment.Creation{Key: "k", Amount: ledger.Money{AmountMinor: 5, Currency: "USD"}, Reservation: reservation, Attempt: 1})
		answered <- err
	}()
	for len(s.Bank().Payments()) == 0 {
		runtime.Gosched() // the creation reaches the bank before its answer is held back
	}
	if err := s.DeliverAll(context.Background()); err != nil {
		t.Fatal(err)
	}
	wantTypes(t, taker.types(t), paymenttest.EventCreated)
	select {
	case err := <-answered:
		t.Fatalf("the answer came first: %v", err)
	default:
	}
	close(release)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

func TestDelayIsByTheServersClock(t *testing.T) {
	clock := systemtest.NewClock(start)
	s := mustStart(t, stripetest.Options{Clock: clock})
	s.AddFault(stripetest.Fault{Calls: 1, Delay: 3500 * time.Millisecond})
	if status, _ := send(t, s, http.MethodGet, "/v1/payment_intents", apiKey.Reveal(), nil); status != http.StatusOK {
		t.Errorf("answered %d", status)
	}
	if got := clock.Now().Sub(start); got != 3500*time.Millisecond {
		t.Errorf("the delay was %v", got)
	}
}

func send(tb testing.TB, s *stripetest.Server, method, path, key string, form url.Values) (int, map[string]any) {
	tb.Helper()
	request, err := http.NewRequest(method, s.URL()+path, strings.NewReader(form.Encode()))
	if err != nil {
		tb.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer "+key)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answered, err := transport.RoundTrip(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer answered.Body.Close()
	raw, err := io.ReadAll(answered.Body)
	if err != nil {
		tb.Fatal(err)
	}
	var body map[string]any
	if len(raw) > 0 && raw[0] == '{' {
		if err := json.Unmarshal(raw, &body); err != nil {
			tb.Fatal(err)
		}
	}
	return answered.StatusCode, body
}

func mustControl(tb testing.TB, s *stripetest.Server, path string, form url.Values, want int) map[string]any {
	tb.Helper()
	status, body := send(tb, s, http.MethodPost, path, "", form)
	if status != want {
		tb.Fatalf("%s answered %d %v, want %d", path, status, body, want)
	}
	return body
}

func TestWhatTheServerRefuses(t *testing.T) {
	s := mustStart(t, stripetest.Options{})
	good := url.Values{
		"amount": {"1000"}, "currency": {"usd"}, "capture_method": {"manual"}, "payment_method_types[0]": {"card"},
		"metadata[holdfast_reservation]": {string(reservation)}, "metadata[holdfast_attempt]": {"1"},
	}
	if status, body := send(t, s, http.MethodPost, "/v1/payment_intents", "sk_test_2", good); status != http.StatusUnauthorized {
		t.Errorf("another key: %d %v", status, body)
	}
	for name, value := range map[string]string{
		"amount": "10.00", "currency": "USD", "capture_method": "automatic", "metadata[holdfast_attempt]": "x", "confirm": "true",
	} {
		form := url.Values{}
		for k, v := range good {
			form[k] = v
		}
		form.Set(name, value)
		if status, body := send(t, s, http.MethodPost, "/v1/payment_intents", apiKey.Reveal(), form); status != http.StatusBadRequest {
			t.Errorf("%s=%s: %d %v", name, value, status, body)
		}
	}
	if status, _ := send(t, s, http.MethodPost, "/v1/customers", apiKey.Reveal(), nil); status != http.StatusNotFound {
		t.Errorf("another path: %d", status)
	}
	if n := len(s.Bank().Payments()); n != 0 {
		t.Errorf("%d payments were made", n)
	}
	if status, body := send(t, s, http.MethodPost, "/v1/payment_intents", apiKey.Reveal(), good); status != http.StatusOK {
		t.Errorf("the good one: %d %v", status, body)
	}
}

func TestBuyerConfirmsWithTheSecret(t *testing.T) {
	s := mustStart(t, stripetest.Options{})
	p := mustCreate(t, s, 1)
	path := "/v1/payment_intents/" + string(p.ID) + "/confirm"
	form := func(method string) url.Values {
		return url.Values{"client_secret": {p.Secret.Reveal()}, "payment_method": {method}}
	}
	status, body := send(t, s, http.MethodPost, path, "", form(stripetest.CardDeclined))
	if status != http.StatusPaymentRequired || body["error"].(map[string]any)["code"] != "card_declined" {
		t.Errorf("declined: %d %v", status, body)
	}
	if status, body = send(t, s, http.MethodPost, path, "", form(stripetest.CardRequiresAction)); body["status"] != "requires_action" {
		t.Errorf("action: %d %v", status, body)
	}
	if status, body = send(t, s, http.MethodPost, path, "", form(stripetest.CardGood)); body["status"] != "requires_capture" {
		t.Errorf("good: %d %v", status, body)
	}
	wrong := url.Values{"client_secret": {"pi_secret"}, "payment_method": {stripetest.CardGood}}
	if status, _ = send(t, s, http.MethodPost, path, "", wrong); status != http.StatusBadRequest {
		t.Errorf("wrong secret: %d", status)
	}
	if status, _ = send(t, s, http.MethodPost, path, "", nil); status != http.StatusUnauthorized {
		t.Errorf("no secret: %d", status)
	}
}

func TestControlRoutes(t *testing.T) {
	s := mustStart(t, stripetest.Options{})
	mustControl(t, s, "/_test/scripts", url.Values{"reservation": {string(reservation)}, "attempt": {"1"}, "amount_minor": {"999"}, "void_lies": {"true"}}, http.StatusNoContent)
	p := mustCreate(t, s, 1)
	at := "/_test/payments/" + string(p.ID)
	if got := mustControl(t, s, at+"/decline", nil, http.StatusOK)["status"]; got != "declined" {
		t.Errorf("declined: %v", got)
	}
	mustControl(t, s, at+"/require-action", nil, http.StatusOK)
	paid := mustControl(t, s, at+"/complete-action", nil, http.StatusOK)
	if paid["status"] != "authorized" || paid["amount_minor"] != 999.0 {
		t.Errorf("paid: %v", paid)
	}
	if _, has := paid["client_secret"]; has {
		t.Error("a control route shows the secret")
	}
	mustControl(t, s, at+"/lapse", nil, http.StatusOK)
	if got := mustControl(t, s, at+"/late-capture", nil, http.StatusOK)["status"]; got != "captured" {
		t.Errorf("late: %v", got)
	}
	mustControl(t, s, at+"/pay", nil, http.StatusBadRequest)
	mustControl(t, s, at+"/steal", nil, http.StatusNotFound)
	refund, err := s.Bank().Refund("r", p.ID, 999)
	if err != nil {
		t.Fatal(err)
	}
	if got := mustControl(t, s, "/_test/refunds/"+string(refund.Refund.ID)+"/fail", nil, http.StatusOK)["refunded_minor"]; got != 0.0 {
		t.Errorf("failed refund: %v", got)
	}
	mustControl(t, s, "/_test/faults", url.Values{"outcome": {"error_instead"}, "http_status": {"429"}}, http.StatusNoContent)
	if status, _ := send(t, s, http.MethodGet, "/v1/payment_intents", apiKey.Reveal(), nil); status != http.StatusTooManyRequests {
		t.Errorf("fault: %d", status)
	}
	mustControl(t, s, "/_test/faults", url.Values{"outcome": {"sleepy"}}, http.StatusBadRequest)
	if status, _ := send(t, s, http.MethodDelete, "/_test/faults", "", nil); status != http.StatusNoContent {
		t.Errorf("clear: %d", status)
	}
	if status, _ := send(t, s, http.MethodGet, "/v1/payment_intents", apiKey.Reveal(), nil); status != http.StatusOK {
		t.Errorf("after clear: %d", status)
	}
}

// A server that is closed leaves nothing running, not even what waits on a fault or
// between two tries of a webhook.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		s, err := stripetest.Start(stripetest.Options{APIKey: apiKey, Clock: system.RealClock{}, Automatic: true, WebhookURL: "http://127.0.0.1:1/"})
		if err != nil {
			t.Fatal(err)
		}
		mustCreate(t, s, 1)
		s.Collect()
		s.AddFault(stripetest.Fault{Until: make(chan struct{})})
		transport, gone := &http.Transport{}, make(chan struct{})
		go func() {
			defer close(gone)
			request, _ := http.NewRequest(http.MethodGet, s.URL()+"/v1/payment_intents", nil)
			request.Header.Set("Authorization", "Bearer "+apiKey.Reveal())
			if answered, err := transport.RoundTrip(request); err == nil {
				_ = answered.Body.Close()
			}
		}()
		for len(s.Requests()) == 0 {
			runtime.Gosched()
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Error(err)
		}
		<-gone
		transport.CloseIdleConnections()
	}
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(time.Millisecond) // an ended goroutine is counted for a moment longer
	}
	t.Errorf("%d goroutines, and %d before", runtime.NumGoroutine(), before)
}
