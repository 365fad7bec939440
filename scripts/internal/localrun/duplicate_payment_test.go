package localrun_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/topology"
)

// slowCreation holds the provider's answer to the next creation back. The payment is there
// at once; release lets the answer go.
func (p *payingWorld) slowCreation() (release func()) {
	p.t.Helper()
	until := make(chan struct{})
	p.provider.AddFault(stripetest.Fault{Method: paymenttest.MethodCreate, Calls: 1, Until: until})
	release = sync.OnceFunc(func() { close(until) })
	p.t.Cleanup(release)
	return release
}

// beginSlowly begins a payment whose answer is held back, and returns when the provider has
// the payment.
func (p *payingWorld) beginSlowly(slot string) (b purchase, answered chan answer) {
	p.t.Helper()
	before := len(p.bank.Payments())
	owner := p.owner()
	b = purchase{w: p, owner: owner, slot: slot, hold: p.mustHold(owner, slot, 1), paymentKey: newName("key")}
	b.path = "/v1/holds/" + b.hold + "/payment"
	answered = make(chan answer, 1)
	go func() { answered <- p.post(owner, b.path, b.paymentKey, "") }()
	p.until("the provider has the payment", func() bool { return len(p.bank.Payments()) > before })
	made := p.bank.Payments()[before]
	b.reservation, b.secret = made.Reservation, made.Secret.Reveal()
	return b, answered
}

// Case D9: the payment signal was faster than our own save. The sale is complete before the
// provider's answer to our own call is there.
func TestCaseD9_WebhookBeforeTheAnswer(t *testing.T) {
	p := newPayingWorld(t)
	release := p.slowCreation()
	b, answered := p.beginSlowly(p.slot(1, ""))
	b.pay()
	p.deliver(b.told(paymenttest.EventAuthorized), http.StatusOK)
	b.until(ledger.ReservationCompleted)
	select {
	case early := <-answered:
		t.Fatalf("answered before the provider: %d %s", early.Status, early.Body)
	default:
	}
	release()
	(<-answered).want(http.StatusAccepted)
	p.rest()
	b.until(ledger.ReservationCompleted)
	b.wantOneSale()
	p.wantCounters(b.slot, counters{Confirmed: 1, Capacity: 1})
}

// Case E9 on the whole system: while a payment waits for the provider, its request again is
// told to wait, another request with its key is refused, and afterwards it is replayed.
func TestCaseE9_SameKeyDuringTheProvidersWait(t *testing.T) {
	p := newPayingWorld(t)
	slot := p.slot(2, "")
	release := p.slowCreation()
	b, answered := p.beginSlowly(slot)
	other := p.mustHold(b.owner, slot, 1)
	for range 2 {
		again := p.post(b.owner, b.path, b.paymentKey, "")
		again.wantProblem(http.StatusConflict, "idempotency_in_progress")
		if wait, err := strconv.Atoi(again.Header.Get("Retry-After")); err != nil || wait < 1 {
			t.Errorf("Retry-After is %q", again.Header.Get("Retry-After"))
		}
	}
	p.post(b.owner, "/v1/holds/"+other+"/payment", b.paymentKey, "").wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	release()
	first := (<-answered).want(http.StatusAccepted)
	replay := p.post(b.owner, b.path, b.paymentKey, "").want(http.StatusAccepted)
	if first.isReplayed() || !replay.isReplayed() {
		t.Errorf("replayed: the first one %v, the second one %v", first.isReplayed(), replay.isReplayed())
	}
	for _, member := range []string{"reservation_id", "status", "status_url", "client_secret"} {
		if first.text(member) != replay.text(member) {
			t.Errorf("%s: %s and then %s", member, first.text(member), replay.text(member))
		}
	}
	if book := b.money(); book.Payments != 1 {
		t.Errorf("the provider has %+v, want one payment", book)
	}
	b.complete()
	b.wantOneSale()
	p.wantCounters(slot, counters{Held: 1, Confirmed: 1, Capacity: 2})
}

// Case D13: a repeated event was applied again. It comes 5 times in parallel, 5 times in a
// row and once with a later signature; then a different event tells the same.
func TestCaseD13_RepeatedEvent(t *testing.T) {
	const times, later = 5, 250 * time.Second
	p := newPayingWorld(t)
	b := p.purchase(p.slot(1, ""), 1)
	p.rest()
	b.pay()
	news := b.told(paymenttest.EventAuthorized)
	atOnce(times, func(int) { p.deliver(news, http.StatusOK) })
	for range times {
		p.deliver(news, http.StatusOK)
	}
	b.until(ledger.ReservationCompleted)
	p.hook(signed{news.Body, stripetest.SignatureHeader(news.Body, time.Now().Add(later), paymentKeys.Webhook[0]), asText}).want(http.StatusOK)
	p.hook(sign(renamed(news), asText)).want(http.StatusOK)
	p.rest()
	b.wantOneSale()
	p.wantCounters(b.slot, counters{Confirmed: 1, Capacity: 1})
}

// Case D14: customers paid, but the order stayed open because the event already counted as
// done. The function's process is killed at each step that it makes outside of itself,
// before and after the step.
func TestCaseD14_WebhookKilledAtEachStep(t *testing.T) {
	p := newPayingWorld(t)
	for _, step := range []string{"DynamoDB_20120810.GetItem", "AmazonSQS.SendMessage"} {
		for _, isDone := range []bool{false, true} {
			b := p.purchase(p.slot(1, ""), 1)
			p.rest()
			b.pay()
			news := b.told(paymenttest.EventAuthorized)
			var kills sync.Once
			gone := make(chan struct{})
			end := p.observer.inject(topology.FunctionWebhook, func(target string, forward func()) (isLost bool) {
				if target != step || isDone {
					forward()
				}
				if target == step {
					kills.Do(func() {
						isLost = true
						p.system.KillFunction(topology.FunctionWebhook)
						close(gone)
					})
				}
				return isLost
			})
			status, err := p.provider.Send(t.Context(), news)
			select {
			case <-gone:
			case <-time.After(comesWithin):
				t.Fatalf("the function never makes the step %s", step)
			}
			end()
			if err == nil && status < http.StatusInternalServerError {
				t.Errorf("killed at %s (done: %v), the delivery was answered with %d", step, isDone, status)
			}
			queued := isDone && strings.HasPrefix(step, "AmazonSQS")
			if !queued {
				p.rest()
				if got := b.read().text("status"); got != string(ledger.ReservationPaymentPending) {
					t.Errorf("killed at %s (done: %v), and it is %s", step, isDone, got)
				}
				if _, counts, err := p.store.Claimed(t.Context(), ledger.UniqueProviderEvent, string(news.Event.ID)); counts || err != nil {
					t.Errorf("the event counts as done: %v, %v", counts, err)
				}
			}
			p.deliver(news, http.StatusOK)
			b.until(ledger.ReservationCompleted)
			p.rest()
			b.wantOneSale()
			p.wantCounters(b.slot, counters{Confirmed: 1, Capacity: 1})
		}
	}
}

// Case K1: currencies without two decimals were charged 100 times too much or too little.
// What the provider was sent is compared with literals, not with our own conversion.
func TestCaseK1_AmountsReachTheProviderAsQuoted(t *testing.T) {
	p := newPayingWorld(t)
	for _, test := range []struct {
		currency, unitAmount   string // as our API takes them
		sentCurrency, sentUnit string // as Stripe must get them
	}{
		{"JPY", "500", "jpy", "500"},
		{"KRW", "1000", "krw", "1000"},
		{"USD", "500", "usd", "500"},
		{"KWD", "1234", "kwd", "1234"},
	} {
		b := p.priced(test.currency, test.unitAmount, nil)
		b.complete()
		form := b.sent(paymenttest.MethodCreate)
		if form.Get("amount") != test.sentUnit || form.Get("currency") != test.sentCurrency {
			t.Errorf("%s %s was sent as %s %s", test.currency, test.unitAmount, form.Get("currency"), form.Get("amount"))
		}
		if form := b.sent(paymenttest.MethodCapture); form.Get("amount_to_capture") != test.sentUnit {
			t.Errorf("%s %s was captured as %s", test.currency, test.unitAmount, form.Get("amount_to_capture"))
		}
	}
}

// sent is what the provider was sent in a call of this kind. A call may be repeated under its
// key, and then says the same each time.
func (b purchase) sent(method paymenttest.Method) url.Values {
	b.w.t.Helper()
	var first stripetest.Request
	for _, request := range b.w.provider.Requests() {
		if request.Method != method || !strings.HasPrefix(string(request.Key), string(b.reservation)) {
			continue
		}
		if first.Key == "" {
			first = request
		}
		if request.Key != first.Key || request.Form.Encode() != first.Form.Encode() {
			b.w.t.Errorf("the provider was sent %+v and %+v", first, request)
		}
	}
	if first.Key == "" {
		b.w.t.Fatalf("the provider was sent no %s for %s", method, b.reservation)
	}
	return first.Form
}

// priced is a purchase of one unit of a new slot at that price. The header goes with each
// of the buyer's calls.
func (p *payingWorld) priced(currency, amount string, header http.Header) purchase {
	p.t.Helper()
	slot, owner := newName("slot"), p.owner()
	p.do(p.catalog, localrun.Request{
		Method: http.MethodPut, Path: "/v1/slots/" + slot,
		Body: `{"resource_type":"test","resource_id":"` + slot + `","capacity":1,"unit_amount":` + amount + `,"currency":"` + currency + `","open":true}`,
	}).want(http.StatusCreated)
	hold := p.do(owner, localrun.Request{
		Method: http.MethodPost, Path: "/v1/holds", Key: newName("key"), Header: header,
		Body: `{"lines":[{"slot_id":"` + slot + `","quantity":1,"unit_amount":` + amount + `}]}`,
	}).want(http.StatusCreated).text("hold_id")
	b := purchase{w: p, owner: owner, slot: slot, hold: hold}
	begun := p.do(owner, localrun.Request{
		Method: http.MethodPost, Path: "/v1/holds/" + hold + "/payment", Key: newName("key"), Header: header,
	}).want(http.StatusAccepted)
	b.reservation, b.secret = ledger.ReservationID(begun.text("reservation_id")), begun.text("client_secret")
	return b
}

// Case K3: the client could choose the currency, and the paid amount was not checked.
func TestCaseK3_OtherMoneyThanQuoted(t *testing.T) {
	p := newPayingWorld(t)
	cookie := http.Header{"Cookie": {"currency=JPY"}}
	for _, script := range []paymenttest.Script{{AmountMinor: 999}, {AmountMinor: 1001}, {Currency: "JPY"}} {
		b := p.priced("USD", "1000", cookie)
		if form := b.sent(paymenttest.MethodCreate); form.Get("amount") != "1000" || form.Get("currency") != "usd" {
			t.Errorf("the charge is %s %s", form.Get("currency"), form.Get("amount"))
		}
		alarms := p.logged(topology.FunctionSaga, `"reservations_review":1`)
		p.bank.SetScript(b.reservation, 1, script)
		b.pay()
		p.deliver(b.told(paymenttest.EventAuthorized), http.StatusOK)
		b.told(paymenttest.EventCanceled) // it was voided
		b.until(ledger.ReservationReview)
		p.rest()
		for _, book := range p.bank.Books() {
			if book.Reservation == b.reservation && (book.AuthorizedMinor != 0 || book.Captures != 0 || book.Payments != 1) {
				t.Errorf("%+v: the bank has %+v", script, book)
			}
		}
		if got := p.logged(topology.FunctionSaga, `"reservations_review":1`); got != alarms+1 {
			t.Errorf("the alarm's metric was written %d times, want once", got-alarms)
		}
		if got := p.hold(b.hold).text("status"); got != "HELD" {
			t.Errorf("the hold is %s, want that it lives until its time", got)
		}
	}
}
