package localrun_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/scripts/internal/gateway"
	"holdfast/scripts/internal/localrun"
	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// The canaries of a payment: texts that stand where secrets stand.
const (
	canaryCard      = "4242424242424242"
	canaryCookie    = "canary-cookie-2f60"
	canaryBearer    = "canary-bearer-2f60"
	canarySignature = "canary-signature-2f60"
	// canaryPoison is in a message of the saga's queue that is none of ours.
	canaryPoison = "canary-poison-2f60"
)

// canaries is one run through all that can happen to a payment.
type canaries struct {
	*payingWorld
	token  string
	secret http.Header // goes with each request of a buyer
}

// Case L5: secrets were written to the logs. Every function does its work and meets its
// failures while canaries stand where the secrets are; then all that is kept, sent or told
// is searched for them. That the search can find something is shown with what must be there.
func TestCaseL5_NoSecretOfAPaymentIsKept(t *testing.T) {
	p := newPayingWorld(t)
	c := &canaries{payingWorld: p}
	var err error
	c.token, err = p.system.Token(gateway.TokenRequest{Subject: newName("owner"), Scopes: []topology.Scope{topology.ScopeHolds}, Life: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	c.secret = http.Header{"Cookie": {"session=" + canaryCookie}, "Stripe-Signature": {"t=1,v1=" + canarySignature}}
	if err := p.system.SendMessage(t.Context(), topology.ResourceSagaQueue, `{"reservation":"`+canaryPoison+`"}`); err != nil {
		t.Fatal(err)
	}
	sold := c.sale()
	c.providerTellsSecrets()
	c.declines()
	c.refusedRequests(sold)
	c.refusedWebhooks(sold)
	c.brokenServices()
	p.until("the poison is a dead letter", func() bool { return p.waiting(topology.ResourceSagaFailures) > 0 })
	p.rest()

	kept := c.everything()
	secrets := []string{
		canaryCard, canaryCookie, canaryBearer, canarySignature,
		c.token, c.token[strings.LastIndex(c.token, ".")+1:], paymentKeys.API.Reveal(),
	}
	for _, secret := range paymentKeys.Webhook {
		secrets = append(secrets, secret.Reveal())
	}
	for _, made := range p.bank.Payments() {
		secrets = append(secrets, made.Secret.Reveal())
	}
	for _, secret := range secrets {
		for _, where := range found(kept, secret) {
			t.Errorf("%s is in %s", secret, where)
		}
	}
	c.searchFinds(kept, sold)
}

// everything is all that is kept, sent or told: the table, the logs, the events, the
// messages to queues and to the bus, the dead letters, and each answer that is a refusal.
func (c *canaries) everything() map[string]string {
	c.t.Helper()
	kept := c.kept()
	for i, message := range c.observer.sent() {
		kept[fmt.Sprintf("message %d: %s", i, message)] = message
	}
	for _, queue := range []topology.Resource{
		topology.ResourceSagaFailures, topology.ResourceOutboxFailures, topology.ResourceScheduleFailures, topology.ResourceSagaQueue,
	} {
		bodies, err := c.system.TakeMessages(c.t.Context(), queue)
		if err != nil {
			c.t.Fatal(err)
		}
		for i, body := range bodies {
			kept[fmt.Sprintf("message %d of %s", i, queue)] = body
		}
	}
	for i, a := range refusals.all() {
		kept[fmt.Sprintf("refusal %d: %s", i, a.Body)] = fmt.Sprint(a.Header) + string(a.Body)
	}
	return kept
}

// searchFinds is the control: what must be there is found, and where it must be. A poison
// is kept as the dead letter that it is, and nobody repeats what it says.
func (c *canaries) searchFinds(kept map[string]string, sold purchase) {
	c.t.Helper()
	inKind := func(text, kind string) bool {
		for _, where := range found(kept, text) {
			if strings.HasPrefix(where, kind) {
				return true
			}
		}
		return false
	}
	for _, kind := range []string{"item ", "log events.log", "message "} {
		if !inKind(sold.hold, kind) {
			c.t.Errorf("the search does not find hold %s in any %q", sold.hold, kind)
		}
	}
	for _, log := range []string{"log saga.log", "log webhook.log", "log api.log"} {
		if !inKind(string(sold.reservation), log) {
			c.t.Errorf("the search does not find reservation %s in %s", sold.reservation, log)
		}
	}
	// The lines that add many things up are searched too, and a line of one leads to its hold.
	for log, texts := range map[string][]string{
		"log api.log":    {sold.hold, string(telemetry.MetricHoldRequestsMade), string(telemetry.MetricCommandReplays)},
		"log saga.log":   {sold.hold, string(telemetry.MetricSagaDwellCapturedSeconds)},
		"log outbox.log": {string(telemetry.MetricHoldsCreated)},
	} {
		for _, text := range texts {
			if !inKind(text, log) {
				c.t.Errorf("the search does not find %s in %s", text, log)
			}
		}
	}
	if !inKind("signature_invalid", "refusal ") {
		c.t.Error("the search finds no refused webhook")
	}
	places := found(kept, canaryPoison)
	if len(places) != 1 || !strings.Contains(places[0], string(topology.ResourceSagaFailures)) {
		c.t.Errorf("the poison is in %v, want only among the dead letters", places)
	}
}

// as makes a request with the canaries beside it.
func (c *canaries) as(method, path, body string) answer {
	c.t.Helper()
	header := c.secret.Clone()
	header.Set("Authorization", "Bearer "+c.token)
	return c.do(c.shop, localrun.Request{Method: method, Path: path, Key: newName("key"), Header: header, Body: body})
}

// start begins a payment of one unit of a slot with the policy.
func (c *canaries) start(policy string) purchase {
	c.t.Helper()
	b := purchase{w: c.payingWorld, owner: c.shop, slot: c.slot(1, policy)}
	b.hold = c.as(http.MethodPost, "/v1/holds", holdBody(b.slot, 1)).want(http.StatusCreated).text("hold_id")
	begun := c.as(http.MethodPost, "/v1/holds/"+b.hold+"/payment", "").want(http.StatusAccepted)
	b.reservation = ledger.ReservationID(begun.text("reservation_id"))
	session := c.as(http.MethodPost, "/v1/reservations/"+string(b.reservation)+"/payment-session", "").want(http.StatusOK)
	b.secret = session.text("client_secret")
	return b
}

// withCard is the webhook's body with a card in it, as the charges of a payment have one.
func withCard(body []byte) []byte {
	return bytes.Replace(body, []byte(`"object": "payment_intent"`),
		[]byte(`"object": "payment_intent", "charges": {"data": [{"payment_method_details": {"card": {"number": "`+canaryCard+`"}}}]}`), 1)
}

// sale is a sale whose news has a card in it, and a part of it given back.
func (c *canaries) sale() purchase {
	c.t.Helper()
	b := c.start("")
	b.pay()
	body := withCard(b.told(paymenttest.EventAuthorized).Body)
	if !bytes.Contains(body, []byte(canaryCard)) {
		c.t.Fatalf("no card was put into %s", body)
	}
	for _, transport := range []string{asText, asBase64} {
		c.hook(sign(body, transport)).want(http.StatusOK)
	}
	b.until(ledger.ReservationCompleted)
	return b
}

// providerTellsSecrets lets the provider fail at every kind of call, with an error that
// repeats a card, our key and the buyer's secret, and lose answers.
func (c *canaries) providerTellsSecrets() {
	c.t.Helper()
	fail := func(method paymenttest.Method, outcome stripetest.Outcome, status int, told string) {
		c.provider.AddFault(stripetest.Fault{Method: method, Calls: 1, Outcome: outcome, Error: stripetest.ErrorAnswer{
			HTTPStatus: status, Type: "api_error", Code: "processing_error",
			Message: "card " + canaryCard + ", key " + paymentKeys.API.Reveal() + ", secret " + told,
		}})
	}
	fail(paymenttest.MethodCreate, stripetest.ErrorInstead, http.StatusInternalServerError, "")
	b := c.start("")
	fail(paymenttest.MethodLookUp, stripetest.ErrorInstead, http.StatusInternalServerError, b.secret)
	fail(paymenttest.MethodCapture, stripetest.ErrorInstead, http.StatusInternalServerError, b.secret)
	fail(paymenttest.MethodCapture, stripetest.AnswerLost, 0, "")
	b.pay()
	c.deliver(b.told(paymenttest.EventAuthorized), http.StatusOK)
	b.until(ledger.ReservationCompleted)
	fail(paymenttest.MethodRefund, stripetest.ErrorInstead, http.StatusInternalServerError, b.secret)
	fail(paymenttest.MethodRefund, stripetest.AnswerLost, 0, "")
	c.as(http.MethodPost, "/v1/reservations/"+string(b.reservation)+"/cancel", "").want(http.StatusOK)
	b.until(ledger.ReservationRefunded)
	c.provider.ClearFaults()
}

// declines lets a card be declined while the void of the payment first fails, and lets the
// provider refuse a payment for good.
func (c *canaries) declines() {
	c.t.Helper()
	b := c.start("")
	refusal := stripetest.ErrorAnswer{
		HTTPStatus: http.StatusPaymentRequired, Type: "card_error", Code: "card_declined", Message: "card " + canaryCard + " of " + b.secret,
	}
	c.provider.AddFault(stripetest.Fault{Method: paymenttest.MethodVoid, Calls: 1, Outcome: stripetest.ErrorInstead})
	if _, err := c.bank.Decline(b.secret); err != nil {
		c.t.Fatal(err)
	}
	c.hook(sign(withCard(b.told(paymenttest.EventDeclined).Body), asText)).want(http.StatusOK)
	b.until(ledger.ReservationCanceled)
	c.provider.AddFault(stripetest.Fault{Method: paymenttest.MethodCreate, Outcome: stripetest.ErrorInstead, Error: refusal})
	slot := c.slot(1, "")
	hold := c.as(http.MethodPost, "/v1/holds", holdBody(slot, 1)).want(http.StatusCreated).text("hold_id")
	begun := c.as(http.MethodPost, "/v1/holds/"+hold+"/payment", "").want(http.StatusAccepted)
	refused := purchase{w: c.payingWorld, owner: c.shop, slot: slot, hold: hold, reservation: ledger.ReservationID(begun.text("reservation_id"))}
	refused.until(ledger.ReservationCanceled)
	c.provider.ClearFaults()
}

// refusedRequests sends what the API refuses, with secrets in every place.
func (c *canaries) refusedRequests(sold purchase) {
	c.t.Helper()
	reservation := "/v1/reservations/" + string(sold.reservation)
	for _, refused := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodPost, "/v1/holds", `{"lines":[],"card":"` + canaryCard + `"}`, http.StatusBadRequest},
		{http.MethodPost, "/v1/holds", `{"card":` + canaryCard, http.StatusBadRequest},
		{http.MethodPost, reservation + "/cancel", `{"card":"` + canaryCard + `"}`, http.StatusBadRequest},
		{http.MethodPost, reservation + "/cancel", `{"lines":[{"slot_id":"` + canaryCard + `","quantity":"` + canaryCard + `"}]}`, http.StatusBadRequest},
		{http.MethodPost, "/v1/holds/" + sold.hold + "/payment", "", http.StatusConflict},
		{http.MethodPost, reservation + "/delivery", `{"delivered":true}`, http.StatusForbidden},
		{http.MethodGet, "/v1/reservations?status=" + canaryCard, "", http.StatusBadRequest},
		{http.MethodGet, "/v1/reservations/" + canaryCard, "", http.StatusNotFound},
		{http.MethodGet, "/v1/holds/" + canaryCard, "", http.StatusNotFound},
		{http.MethodPost, "/v1/holds/hold_" + canaryCard + "/cancel", "", http.StatusNotFound},
		{http.MethodPost, "/v1/reviews/" + canaryCard + "/claim", "", http.StatusForbidden},
	} {
		if got := c.as(refused.method, refused.path, refused.body); got.Status != refused.status {
			c.t.Errorf("%s %s: %d, want %d: %s", refused.method, refused.path, got.Status, refused.status, got.Body)
		}
	}
	stolen := c.secret.Clone()
	stolen.Set("Authorization", "Bearer "+canaryBearer)
	c.do(c.shop, localrun.Request{Method: http.MethodGet, Path: reservation, Header: stolen}).want(http.StatusUnauthorized)
}

// refusedWebhooks sends webhooks that are not signed, or signed and not readable.
func (c *canaries) refusedWebhooks(sold purchase) {
	c.t.Helper()
	for _, body := range []string{
		`card ` + canaryCard, `{"id":"evt_1","object":"event","type":"payment_intent.succeeded","data":{"object":"` + canaryCard + `"}}`,
		`{"id":"` + sold.secret + `","object":"event","type":"payment_intent.` + canaryCard + `","created":"` + canaryCard + `","data":{"object":{"metadata":{}}}}`,
	} {
		for _, transport := range []string{asText, asBase64} {
			if got := c.hook(sign([]byte(body), transport)); got.Status != http.StatusBadRequest {
				c.t.Errorf("%s: %d %s", body, got.Status, got.Body)
			}
		}
		c.hook(signed{[]byte(body), "t=1,v1=" + canarySignature, asText}).want(http.StatusUnauthorized)
		c.hook(signed{[]byte(body), canarySignature, asText}).want(http.StatusUnauthorized)
	}
}

// brokenServices takes from each function, while it works on a sale, the services that it
// calls: calls that are not answered, and a process that is killed.
func (c *canaries) brokenServices() {
	c.t.Helper()
	lose := func(function topology.FunctionName, part string, times int) func() {
		var mu sync.Mutex
		return c.observer.inject(function, func(target string, forward func()) bool {
			mu.Lock()
			isLost := times > 0 && strings.HasSuffix(target, part)
			if isLost {
				times--
			}
			mu.Unlock()
			if !isLost {
				forward()
			}
			return isLost
		})
	}
	const forAWhile, forever = 4, 1 << 20
	for _, end := range []func(){
		lose(topology.FunctionOutbox, "", forAWhile), lose(topology.FunctionSaga, "", forAWhile),
	} {
		c.t.Cleanup(end)
	}
	b := c.start("")
	b.pay()
	news := b.told(paymenttest.EventAuthorized)
	news.Body = withCard(news.Body)
	end := lose(topology.FunctionWebhook, "", forever)
	c.hook(sign(news.Body, asText)).want(http.StatusServiceUnavailable)
	end()
	end = lose(topology.FunctionAPI, "", forever)
	c.as(http.MethodPost, "/v1/reservations/"+string(b.reservation)+"/cancel", "").want(http.StatusServiceUnavailable)
	end()
	gone := make(chan struct{})
	end = c.observer.inject(topology.FunctionWebhook, func(_ string, _ func()) bool {
		c.system.KillFunction(topology.FunctionWebhook)
		close(gone)
		return true
	})
	c.hook(sign(news.Body, asText)).want(http.StatusInternalServerError)
	<-gone
	end()
	c.deliver(news, http.StatusOK)
	b.until(ledger.ReservationCompleted)
	end = lose(topology.FunctionSaga, ".Query", forever)
	defer end()
	if _, err := c.system.Invoke(c.t.Context(), topology.FunctionSaga, []byte(`{"card":"`+canaryCard+`"}`)); err == nil {
		c.t.Error("a tick that can't read the index is no failure")
	}
	end = lose(topology.FunctionExpiry, ".Query", forever)
	defer end()
	if _, err := c.system.Invoke(c.t.Context(), topology.FunctionExpiry, []byte(`{"card":"`+canaryCard+`"}`)); err == nil {
		c.t.Error("a sweep that can't read the index is no failure")
	}
}
