package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/topology"
)

// created are the payments that the provider was asked to begin.
func (f *fixture) created() []payment.Creation {
	var out []payment.Creation
	for _, c := range f.provider.Calls() {
		if c.Method == paymenttest.MethodCreate {
			out = append(out, c.Creation)
		}
	}
	return out
}

// away makes the provider lose every request.
func away(context.Context, paymenttest.Call) error {
	return errors.New("marker: no route to the provider")
}

// What a started payment answers, to the letter, and what its hold tells afterwards.
func TestPaymentAnswer(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	hold := f.mustHold(owner("U"), "seat", 2)
	f.clock.Advance(time.Minute)
	a := f.pay(owner("U"), hold, f.key())
	a.want(http.StatusAccepted)
	id := a.text("reservation_id")
	want := `{"amount":{"amount":2000,"currency":"KRW"},"attempts":1,"captured_amount":0,"created_at":"2026-11-30T12:01:00.000Z",` +
		`"hold_id":"` + hold + `","message":"The units are held for you. The payment has not been made yet.","money":"expected",` +
		`"owed_amount":0,"refunded_amount":0,"refunds":[],"reservation_id":"` + id + `","server_time":"2026-11-30T12:01:00.000Z",` +
		`"status":"PAYMENT_PENDING","status_url":"/v1/reservations/` + id + `","stock":"held",` +
		`"updated_at":"2026-11-30T12:01:00.000Z","version":2,"client_secret":"` + a.text("client_secret") + `"}`
	if a.body != want {
		t.Errorf("got\n%s\nwant\n%s", a.body, want)
	}
	if !ledger.ValidReservationID(id) || a.headers["Cache-Control"] != "no-store" || a.text("client_secret") == "" {
		t.Errorf("id, secret or headers: %s %v", a.body, a.headers)
	}
	held := f.get("/v1/holds/"+hold, "", owner("U"))
	if held.text("reservation_id") != id || held.json()["payment_open"] != true || held.text("status") != "HELD" ||
		held.text("expires_at") != "2026-11-30T12:10:00.000Z" || held.text("release_at") != "2026-11-30T12:12:00.000Z" {
		t.Errorf("the hold is %s", held.body)
	}
	f.get(a.text("status_url"), "", owner("U")).want(http.StatusOK)
	f.balanced()
}

// A hold whose payment is under way is ended by its reservation alone.
func TestAPaymentKeepsTheHold(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 1)
	hold := f.mustHold(owner("U"), "seat", 1)
	f.mustPay(owner("U"), hold)
	f.pay(owner("U"), hold, f.key()).wantProblem(http.StatusConflict, "payment_in_progress")
	f.post("/v1/holds/"+hold+"/cancel", "", owner("U"), f.key()).wantProblem(http.StatusConflict, "payment_in_progress")
	f.post("/v1/holds/"+hold+"/confirm", "", service(), f.key()).wantProblem(http.StatusConflict, "payment_in_progress")
	f.clock.Set(noon.Add(ledger.HoldForDefault + ledger.GraceForDefault))
	if got := f.get("/v1/holds/"+hold, "", owner("U")).text("status"); got != "PAYMENT_CHECKING" {
		t.Errorf("over, the hold is %s", got)
	}
	if got := f.pages("status=PAYMENT_CHECKING", owner("U")); len(got) != 1 {
		t.Errorf("listed as PAYMENT_CHECKING: %v", got)
	}
	late := f.mustHoldOf(owner("V"), "spare")
	f.clock.Advance(ledger.HoldForDefault)
	f.pay(owner("V"), late, f.key()).wantProblem(http.StatusConflict, "hold_not_active")
	f.counters("seat", 0, 1, 0, 1)
	f.balanced()
}

// mustHoldOf makes a hold of the one unit of a new slot.
func (f *fixture) mustHoldOf(who map[string]any, slot string) string {
	f.t.Helper()
	f.define(slot, 1)
	return f.mustHold(who, slot, 1)
}

// Case E9: refusing a duplicate also unlocked the first request, so the work ran twice. The
// provider waits 8 s, and while it does so the others come.
func TestCaseE9_AStartThatWaitsForTheProvider(t *testing.T) {
	f := newFixture(t)
	hold, other := f.mustHoldOf(owner("U"), "A"), f.mustHoldOf(owner("U"), "B")
	key := keyed("K")
	began := f.clock.Now()
	f.provider.Before = func(_ context.Context, c paymenttest.Call) error {
		if c.Method != paymenttest.MethodCreate {
			return nil
		}
		for _, early := range []struct {
			after time.Duration
			wait  string
		}{{time.Second, "29"}, {2 * time.Second, "28"}, {2500 * time.Millisecond, "28"}} {
			f.clock.Set(began.Add(early.after))
			waiting := f.pay(owner("U"), hold, key)
			waiting.wantProblem(http.StatusConflict, "idempotency_in_progress")
			if got := waiting.headers["Retry-After"]; got != early.wait {
				t.Errorf("after %s: Retry-After is %q, want %q", early.after, got, early.wait)
			}
		}
		f.clock.Set(began.Add(3 * time.Second))
		f.pay(owner("U"), other, key).wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
		f.clock.Set(began.Add(8 * time.Second))
		return nil
	}
	first := f.pay(owner("U"), hold, key)
	first.want(http.StatusAccepted)
	if first.headers["Idempotent-Replayed"] != "" || first.text("client_secret") == "" {
		t.Errorf("the first answer is %s %v", first.body, first.headers)
	}
	f.clock.Set(began.Add(9 * time.Second))
	for _, body := range []string{"", "{}", " { } "} {
		f.post("/v1/holds/"+hold+"/payment", body, owner("U"), key).wantReplayOf(first)
	}
	if got := f.created(); len(got) != 1 {
		t.Errorf("the provider was asked to begin %v", got)
	}
	if r, _ := f.paid(first.text("reservation_id")); len(r.Attempts) != 1 {
		t.Errorf("attempts %+v", r.Attempts)
	}
	f.balanced()
}

// A provider that does not answer at the start is no error: the attempt is recorded, the
// hold has its grace, and the secret is given later. The replay of the start has it too
// once it can be had.
func TestAStartWithoutTheProvider(t *testing.T) {
	f := newFixture(t)
	hold := f.mustHoldOf(owner("U"), "seat")
	f.provider.Before = away
	first := f.pay(owner("U"), hold, keyed("K"))
	first.want(http.StatusAccepted)
	if first.text("status") != "PAYMENT_PENDING" || first.text("money") != "expected" || strings.Contains(first.body, "client_secret") {
		t.Errorf("the answer is %s", first.body)
	}
	path := first.text("status_url") + "/payment-session"
	for range 2 {
		refused := f.post(path, "", owner("U"), nil)
		refused.wantProblem(http.StatusServiceUnavailable, "payment_provider_unavailable")
		if strings.Contains(refused.body, "marker") {
			t.Errorf("the answer tells the cause: %s", refused.body)
		}
	}
	f.pay(owner("U"), hold, keyed("K")).wantReplayOf(first)
	if !strings.Contains(f.logs.String(), "its secret could not be had") || !strings.Contains(f.logs.String(), string(payment.KindUnreachable)) {
		t.Errorf("why there is no secret is not logged: %s", f.logs.String())
	}
	f.provider.Before = nil
	session := f.post(path, "", owner("U"), nil)
	session.want(http.StatusOK)
	again := f.pay(owner("U"), hold, keyed("K"))
	if secret := session.text("client_secret"); secret == "" || again.text("client_secret") != secret ||
		strings.Replace(again.body, `,"client_secret":"`+secret+`"`, "", 1) != first.body {
		t.Errorf("session %s, replay %s of %s", session.body, again.body, first.body)
	}
	if got := f.created(); got[0].Key != got[len(got)-1].Key {
		t.Errorf("two payments: %v", got)
	}
	f.balanced()
}

// A session is for the open attempt of one's own, needs no key, and changes nothing.
func TestPaymentSession(t *testing.T) {
	f := newFixture(t)
	started := f.pay(owner("U"), f.mustHoldOf(owner("U"), "seat"), f.key())
	path := started.text("status_url")
	before := f.get(path, "", owner("U"))
	session := f.post(path+"/payment-session", "", owner("U"), nil)
	session.want(http.StatusOK)
	if session.text("client_secret") != started.text("client_secret") || session.headers["Cache-Control"] != "no-store" {
		t.Errorf("answer %s %v", session.body, session.headers)
	}
	if after := f.get(path, "", owner("U")); after.body != before.body || strings.Contains(after.body, "secret") {
		t.Errorf("a session made %s of %s", after.body, before.body)
	}
	f.post(path+"/payment-session", "{}", owner("U"), nil).wantProblem(http.StatusBadRequest, "invalid_request")
	f.sell(started.text("reservation_id"))
	f.post(path+"/payment-session", "", owner("U"), nil).wantProblem(http.StatusConflict, "reservation_not_active")
	f.balanced()
}

// An API without a provider says so.
func TestWithoutAProvider(t *testing.T) {
	f := newFixture(t)
	hold := f.mustHoldOf(owner("U"), "seat")
	id := f.mustPay(owner("U"), hold)
	options := f.options(f.store)
	options.Provider = nil
	f.api = mustAPI(t, options)
	f.pay(owner("U"), hold, f.key()).wantProblem(http.StatusServiceUnavailable, "payment_provider_unavailable")
	f.post("/v1/reservations/"+id+"/payment-session", "", owner("U"), nil).wantProblem(http.StatusServiceUnavailable, "payment_provider_unavailable")
	f.get("/v1/reservations/"+id, "", owner("U")).want(http.StatusOK)
}

// Case B6: a declined card took the units from a buyer who wanted to try again. With
// `on_decline: keep` the second attempt voids the first one and takes its place.
func TestCaseB6_ASecondAttempt(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 1, `"policy":{"hold_seconds":900,"on_decline":"keep"}`)
	hold := f.mustHold(owner("U"), "seat", 1)
	first := f.pay(owner("U"), hold, f.key())
	first.want(http.StatusAccepted)
	f.clock.Set(noon.Add(3 * time.Minute))
	if _, err := f.provider.Bank.Decline(first.text("client_secret")); err != nil {
		t.Fatal(err)
	}
	f.clock.Set(noon.Add(10 * time.Minute))
	if got := f.get("/v1/holds/"+hold, "", owner("U")).text("status"); got != "HELD" {
		t.Errorf("between the attempts the hold is %s", got)
	}
	second := f.pay(owner("U"), hold, f.key())
	second.want(http.StatusAccepted)
	if second.number("attempts") != 2 || second.text("reservation_id") != first.text("reservation_id") ||
		second.text("client_secret") == first.text("client_secret") {
		t.Errorf("the second attempt is answered %s", second.body)
	}
	if _, err := f.provider.Bank.Pay(first.text("client_secret")); err == nil {
		t.Error("the first attempt can still be paid")
	}
	f.sell(second.text("reservation_id"))
	f.complete(second.text("reservation_id"))
	if a := f.get(second.text("status_url"), "", owner("U")); a.text("status") != "COMPLETED" || a.text("stock") != "confirmed" {
		t.Errorf("at the end: %s", a.body)
	}
	f.counters("seat", 0, 0, 1, 1)
	f.balanced()
}

// Case B6, the other policy: with `on_decline: release` an open attempt is not replaced, and
// once the unit is free there is nothing to pay any more.
func TestCaseB6_NoSecondAttempt(t *testing.T) {
	f := newFixture(t)
	hold := f.mustHoldOf(owner("U"), "seat")
	first := f.pay(owner("U"), hold, f.key())
	if _, err := f.provider.Bank.Decline(first.text("client_secret")); err != nil {
		t.Fatal(err)
	}
	f.pay(owner("U"), hold, f.key()).wantProblem(http.StatusConflict, "payment_in_progress")
	if got := len(f.created()); got != 1 {
		t.Errorf("%d payments were begun", got)
	}
	id := first.text("reservation_id")
	_, h := f.paid(id)
	released, err := ledger.ReleaseUnpaid(h, f.origin(), f.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	f.step(id, ledger.EventReservationCanceled, func(r *ledger.Reservation) {
		r.Status, r.Reason, r.Attempts[0].State = ledger.ReservationCanceled, ledger.ReasonDeclined, ledger.AttemptVoided
	}, released)
	f.get("/v1/reservations/"+id, "", owner("U")).tells("CANCELED", "released", "none")
	f.pay(owner("U"), hold, f.key()).wantProblem(http.StatusConflict, "hold_not_active")
	f.counters("seat", 1, 0, 0, 1)
	f.balanced()
}

// Case K1: currencies without two decimals were charged 100 times too much or too little.
// What the provider hears are the minor units of the quote, whatever the currency.
func TestCaseK1_MinorUnitsReachTheProvider(t *testing.T) {
	f := newFixture(t)
	var want []ledger.Money
	for _, m := range []ledger.Money{{AmountMinor: 500, Currency: "JPY"}, {AmountMinor: 1000, Currency: "KRW"}, {AmountMinor: 500, Currency: "USD"}, {AmountMinor: 1234, Currency: "KWD"}} {
		slot := "slot-" + string(m.Currency)
		f.define(slot, 1, fmt.Sprintf(`"unit_amount":%d,"currency":%q`, m.AmountMinor, m.Currency))
		hold := f.create(owner("U"), fmt.Sprintf(`{"slot_ids":[%q],"quantity":1,"quoted_price":%d}`, slot, m.AmountMinor), f.key())
		f.mustPay(owner("U"), hold.text("hold_id"))
		want = append(want, m)
	}
	for i, c := range f.created() {
		if c.Amount != want[i] {
			t.Errorf("the provider was asked for %v, want %v", c.Amount, want[i])
		}
	}
	if got := len(f.created()); got != len(want) {
		t.Errorf("%d payments", got)
	}
	f.balanced()
}

// Case K3: the client could choose the currency.
func TestCaseK3_TheClientChoosesNoMoney(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 1, `"currency":"USD"`)
	hold := f.mustHold(owner("U"), "seat", 1)
	for _, body := range []string{`{"currency":"JPY"}`, `{"amount":1}`, `{"amount":{"amount":1,"currency":"JPY"}}`, `{"unit_amount":1}`} {
		f.post("/v1/holds/"+hold+"/payment", body, owner("U"), f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	f.do(call{method: http.MethodPost, path: "/v1/holds/" + hold + "/payment", query: "currency=JPY", claims: owner("U"), headers: f.key()}).
		wantProblem(http.StatusBadRequest, "invalid_request")
	headers := f.key()
	headers["cookie"], headers["x-currency"], headers["accept-language"] = "currency=JPY; amount=1", "JPY", "ja-JP"
	f.pay(owner("U"), hold, headers).want(http.StatusAccepted)
	if got := f.created(); len(got) != 1 || got[0].Amount != (ledger.Money{AmountMinor: 1000, Currency: "USD"}) {
		t.Errorf("the provider was asked for %v", got)
	}
	f.balanced()
}

// Case K5: a price change during payment broke the order.
func TestCaseK5_TheQuoteIsCharged(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 2)
	hold := f.mustHold(owner("U"), "seat", 1)
	f.patch("seat", `{"unit_amount":1500}`).want(http.StatusOK)
	paid := f.pay(owner("U"), hold, f.key())
	paid.want(http.StatusAccepted)
	if got := f.created(); len(got) != 1 || got[0].Amount.AmountMinor != 1000 || !strings.Contains(paid.body, `"amount":{"amount":1000,"currency":"KRW"}`) {
		t.Errorf("the provider was asked for %v, the buyer was told %s", got, paid.body)
	}
	f.sell(paid.text("reservation_id"))
	next := f.create(owner("U"), strings.ReplaceAll(line("seat", 1), "1000", "1500"), f.key())
	next.want(http.StatusCreated)
	f.mustPay(owner("U"), next.text("hold_id"))
	if got := f.created(); got[len(got)-1].Amount.AmountMinor != 1500 {
		t.Errorf("the new hold is charged %v", got)
	}
	f.counters("seat", 0, 1, 1, 2)
	f.balanced()
}

// A slot that costs nothing is paid without the provider.
func TestNothingToPay(t *testing.T) {
	f := newFixture(t)
	f.define("coupon", 1, `"unit_amount":0`)
	hold := f.create(owner("U"), `{"slot_ids":["coupon"],"quantity":1,"quoted_price":0}`, f.key())
	a := f.pay(owner("U"), hold.text("hold_id"), f.key())
	a.want(http.StatusAccepted)
	if a.text("status") != "AUTHORIZED" || a.text("money") != "none" || a.number("attempts") != 0 ||
		a.text("message") != "The units are held for you. Nothing has to be paid." || len(f.provider.Calls()) != 0 {
		t.Errorf("answer %s after %v", a.body, f.provider.Calls())
	}
	f.balanced()
}

// P12 and case L5: the client secret is in the answers that it is for, and nowhere else:
// not in the log, the metrics, the record that is answered again, or the events.
func TestP12_TheClientSecretIsKeptNowhere(t *testing.T) {
	f := newFixture(t)
	hold := f.mustHoldOf(owner("U"), "seat")
	started := f.pay(owner("U"), hold, keyed("K"))
	secret, id := started.text("client_secret"), started.text("reservation_id")
	if secret == "" {
		t.Fatal("there is no secret to look for")
	}
	var told strings.Builder
	for _, a := range []answer{
		f.get("/v1/reservations/"+id, "", owner("U")), f.get("/v1/reservations", "", owner("U")), f.get("/v1/holds/"+hold, "", owner("U")),
		f.pay(owner("U"), hold, f.key()), f.pay(owner("V"), hold, f.key()),
		f.post("/v1/reservations/"+id+"/payment-session", "", owner("V"), nil),
		f.post("/v1/reservations/"+id+"/cancel", "", owner("U"), f.key()),
		f.post("/v1/reservations/"+id+"/payment-session", "", owner("U"), nil),
	} {
		fmt.Fprintln(&told, a.body, a.headers)
	}
	for name, headers := range map[string]map[string]string{"replay": started.headers} {
		if strings.Contains(fmt.Sprint(headers), secret) {
			t.Errorf("%s: the secret is in the headers", name)
		}
	}
	record, found, err := f.store.IdempotencyRecord(t.Context(), ledger.NewIdempotencyID("U", ledger.CommandStartPayment, "K"))
	if err != nil || !found || len(record.Response.Body) == 0 {
		t.Fatalf("the record is %+v, %t, %v", record, found, err)
	}
	events, err := f.store.ReservationEvents(t.Context(), ledger.ReservationID(id))
	if err != nil || len(events) == 0 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	r, h := f.paid(id)
	for where, text := range map[string]string{
		"other answers": told.String(), "log": f.logs.String(), "metrics": f.metrics.String(),
		"record": string(record.Response.Body), "events": fmt.Sprintf("%+v", events), "reservation": fmt.Sprintf("%+v %+v", r, h),
	} {
		if strings.Contains(text, secret) || strings.Contains(text, "client_secret") {
			t.Errorf("the secret is in the %s: %s", where, text)
		}
	}
	f.balanced()
}

// A secret is text like any other in JSON, and what is no text is a fault that is not told.
func TestAnOddSecret(t *testing.T) {
	f := newFixture(t)
	id := f.mustPay(owner("U"), f.mustHoldOf(owner("U"), "seat"))
	for secret, status := range map[string]int{`a"b\c` + "\n\u2028": http.StatusOK, "marker-\xff": http.StatusInternalServerError, "": http.StatusServiceUnavailable} {
		options := f.options(f.store)
		options.Provider = oddSecrets{f.provider, payment.NewSecret(secret)}
		f.api = mustAPI(t, options)
		a := f.post("/v1/reservations/"+id+"/payment-session", "", owner("U"), nil)
		a.want(status)
		if status == http.StatusOK && a.text("client_secret") != secret {
			t.Errorf("%q is told as %s", secret, a.body)
		}
	}
	if strings.Contains(f.logs.String(), "marker") {
		t.Errorf("the secret is logged: %s", f.logs.String())
	}
}

// oddSecrets answers every look-up with its secret.
type oddSecrets struct {
	payment.Provider
	secret payment.Secret
}

func (o oddSecrets) LookUp(ctx context.Context, id ledger.PaymentID) (payment.Payment, error) {
	p, err := o.Provider.LookUp(ctx, id)
	p.Secret = o.secret
	return p, err
}

// Cases E9 and H8: a route that waits for the provider has its time on top of the
// database's, and the provider is not given more than its own.
func TestCaseH8_TheProvidersBudgetComesOnTop(t *testing.T) {
	store := &deadlineStore{Store: memory.New()}
	f := newFixtureOn(t, store)
	hold := f.mustHoldOf(owner("U"), "seat")
	var provider time.Time
	f.provider.Before = func(ctx context.Context, _ paymenttest.Call) error {
		provider, _ = ctx.Deadline()
		return nil
	}
	earliest := time.Now()
	id := f.mustPay(owner("U"), hold)
	latest := time.Now()
	total := topology.DatabaseBudget + topology.ProviderBudget
	if store.deadline.Before(earliest.Add(total)) || store.deadline.After(latest.Add(total)) {
		t.Errorf("the work ends at %s, want %s after %s", store.deadline, total, earliest)
	}
	if provider.Before(earliest.Add(commands.ProviderFor)) || provider.After(latest.Add(topology.ProviderBudget)) {
		t.Errorf("the provider is given until %s, want %s after %s", provider, topology.ProviderBudget, earliest)
	}
	f.post("/v1/reservations/"+id+"/cancel", "", owner("U"), f.key()).want(http.StatusOK)
	if store.deadline.After(time.Now().Add(topology.DatabaseBudget)) {
		t.Errorf("a cancellation is given until %s", store.deadline)
	}
}
