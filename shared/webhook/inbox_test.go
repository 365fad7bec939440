package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
	"holdfast/shared/webhook"
)

// What is kept of a delivery is the notice, and it goes to the queue as it was verified.
func TestADeliveryIsQueued(t *testing.T) {
	w := newWorld(t)
	if answer := w.deliver(w.signed(told("evt_1")), 200); answer.Body != `{"result":"queued"}` {
		t.Errorf("answered %s", answer.Body)
	}
	m, err := payment.DecodeMessage(w.queue[0])
	if err != nil || m.Reservation != reservation || m.Notice == nil || m.Notice.ID != "evt_1" || m.Notice.AmountMinor != 1000 || m.Notice.Status != payment.StatusAuthorized {
		t.Errorf("queued %s, %v", w.queue[0], err)
	}
	if got := w.counted(); !maps.Equal(got, map[telemetry.MetricName]float64{telemetry.MetricWebhookQueued: 1}) {
		t.Errorf("counted %v", got)
	}
	if log := w.logs.String(); !strings.Contains(log, string(reservation)) || !strings.Contains(log, "evt_1") || !strings.Contains(log, "JKJaXmPLvHcESHA=") {
		t.Errorf("the log does not name the event: %s", log)
	}
}

// Case D13, the webhook's side: the same event 5 times at once, 5 times in a row, and
// once after 3 days, each answered 200. It is queued until the saga has recorded it, and
// not afterwards; another event of the same payment is another event.
func TestCaseD13_ARepeatedEventHasOneEffect(t *testing.T) {
	w := newWorld(t)
	first := w.signed(told("evt_1"))
	var parallel sync.WaitGroup
	for range 5 {
		parallel.Go(func() { w.deliver(first, 200) })
	}
	parallel.Wait()
	if w.sent != 5 {
		t.Errorf("queued %d times before anything was recorded", w.sent)
	}
	w.saga()
	for range 5 {
		if answer := w.deliver(first, 200); answer.Body != `{"result":"recorded"}` {
			t.Errorf("answered %s", answer.Body)
		}
	}
	w.clock.Advance(3 * 24 * time.Hour)
	w.deliver(w.signed(told("evt_1")), 200)
	if w.sent != 5 {
		t.Errorf("queued %d times, and %d before it was recorded", w.sent, 5)
	}
	w.deliver(w.signed(told("evt_2")), 200)
	w.saga()
	if !maps.Equal(w.effects, map[ledger.ProviderEventID]int{"evt_1": 1, "evt_2": 1}) || w.sent != 6 {
		t.Errorf("effects %v after %d messages", w.effects, w.sent)
	}
	if got := w.counted(); got[telemetry.MetricWebhookQueued] != 6 || got[telemetry.MetricWebhookRecorded] != 6 {
		t.Errorf("counted %v", got)
	}
}

// Case D14: at each step the function is killed, or the step fails, before and after its
// effect. That delivery gives no 2xx; the next one does, and there is one effect. An event
// never counts as done before its effect is recorded.
func TestCaseD14_ADeliveryThatDiesComesAgain(t *testing.T) {
	killed := errors.New("killed")
	for _, port := range []string{"verify", "recorded", "send"} {
		for _, when := range []string{"before", "after"} {
			for _, how := range []string{"killed", "failed"} {
				t.Run(fmt.Sprintf("%s %s %s", how, when, port), func(t *testing.T) {
					w := newWorld(t)
					order := func(at string) error {
						if at != port {
							return nil
						}
						if how == "killed" {
							panic(killed)
						}
						return errors.New("told to fail")
					}
					none := w.before
					if when == "before" {
						w.before = order
					} else {
						w.after = order
					}
					if how == "failed" {
						w.deliver(w.signed(told("evt_1")), 503)
						if got := w.counted(); got[telemetry.MetricWebhookFailed] != 1 {
							t.Errorf("counted %v", got)
						}
					} else {
						func() {
							defer func() {
								if recover() != any(killed) {
									t.Error("it should have been killed, and answered")
								}
							}()
							w.deliver(w.signed(told("evt_1")), 0)
						}()
					}
					if len(w.recorded) > 0 {
						t.Error("the event counts as done")
					}
					w.before, w.after = none, none
					w.deliver(w.signed(told("evt_1")), 200)
					w.saga()
					if w.effects["evt_1"] != 1 {
						t.Errorf("%d effects", w.effects["evt_1"])
					}
				})
			}
		}
	}
}

// What is signed and about nothing of ours is a success, or the provider would send it
// for days; what can't be read is nobody's success.
func TestOtherEventsAreAnswered(t *testing.T) {
	w := newWorld(t)
	if answer := w.deliver(w.signed(`{"id":"evt_1"}`), 200); answer.Body != `{"result":"ignored"}` {
		t.Errorf("answered %s", answer.Body)
	}
	w.deliver(w.signed(`not JSON`), 400)
	w.deliver(w.signed(strings.Replace(told("evt_1"), string(reservation), "rsv_1", 1)), 400)
	w.deliver(w.signed(strings.Replace(told("evt_1"), "pay_1", "pay_1_secret_x", 1)), 400)
	if w.sent != 0 {
		t.Errorf("%d messages", w.sent)
	}
	if got := w.counted(); got[telemetry.MetricWebhookIgnored] != 1 || got[telemetry.MetricWebhookMalformed] != 3 {
		t.Errorf("counted %v", got)
	}
}

// Case H1: text and base64 are one body; the limit counts decoded bytes; base64 that is
// broken is the sender's mistake.
func TestCaseH1_BodiesInBothForms(t *testing.T) {
	w := newWorld(t)
	w.deliver(w.signed(told("evt_1")), 200)
	w.deliver(w.signed(told("evt_1")).inBase64(), 200)
	if w.sent != 2 || w.queue[0] != w.queue[1] {
		t.Errorf("queued %v", w.queue)
	}
	body := told("evt_2")
	most := body + strings.Repeat(" ", webhook.BodyBytesMax-len(body))
	for _, tooMuch := range []string{most + " ", most + strings.Repeat(" ", 100_000)} {
		w.deliver(w.signed(most), 200)
		w.deliver(w.signed(most).inBase64(), 200)
		w.deliver(w.signed(tooMuch), 413)
		w.deliver(w.signed(tooMuch).inBase64(), 413)
	}
	for _, text := range []string{"!", "abc", "YQ=", "YQ==YQ==", "한"} {
		broken := w.signed(text)
		broken.base64 = true
		w.deliver(broken, 400)
	}
	if w.sent != 6 {
		t.Errorf("%d messages", w.sent)
	}
}

// Case L2: the signature is over the exact bytes, whatever they mean, and one bit less is
// another body.
func TestCaseL2_TheExactBytesCount(t *testing.T) {
	for name, body := range map[string]string{
		"extra spaces":      "  " + strings.ReplaceAll(told("evt_1"), `,"`, ` ,  "`),
		"an escape":         strings.Replace(told("evt_1"), "evt_1", `\u0065vt_1`, 1),
		"a name twice":      strings.Replace(told("evt_1"), `{`, `{"id":"evt_0",`, 1),
		"a CRLF at the end": told("evt_1") + "\r\n",
	} {
		for _, form := range []func(delivery) delivery{func(d delivery) delivery { return d }, delivery.inBase64} {
			w := newWorld(t)
			w.deliver(form(w.signed(body)), 200)
			flipped := w.signed(body)
			flipped.body = flipped.body[:5] + string(flipped.body[5]^1) + flipped.body[6:]
			w.deliver(form(flipped), 401)
			if w.sent != 1 {
				t.Errorf("%s: %d messages", name, w.sent)
			}
		}
	}
}

// Case L3: a recorded delivery with another timestamp, or without, is refused; unchanged
// it is a success with still one effect.
func TestCaseL3_AReplayHasOneEffect(t *testing.T) {
	w := newWorld(t)
	original := w.signed(told("evt_1"))
	w.deliver(original, 200)
	w.saga()
	_, mac, _ := strings.Cut(original.headers["provider-signature"], ".")
	w.clock.Advance(200 * time.Second)
	for _, stamp := range []string{fmt.Sprint(w.clock.Now().Unix()), ""} {
		w.deliver(delivery{headers: map[string]string{"provider-signature": stamp + "." + mac}, body: original.body}, 401)
	}
	w.deliver(original, 200)
	w.saga()
	if w.sent != 1 || w.effects["evt_1"] != 1 {
		t.Errorf("%d messages, effects %v", w.sent, w.effects)
	}
}

// Case J3: the verifier is given the inbox's clock and the sender's signature, and its
// verdict is the answer: 299 s off is good, 301 s is not, to both sides.
func TestCaseJ3_TheClockDecides(t *testing.T) {
	for off, status := range map[time.Duration]int{
		-299 * time.Second: 200, 0: 200, 299 * time.Second: 200, -301 * time.Second: 401, 301 * time.Second: 401,
	} {
		w := newWorld(t)
		d := w.signed(told("evt_1"))
		w.clock.Advance(off)
		w.deliver(d, status)
		if want := map[int]int{200: 1, 401: 0}[status]; w.sent != want {
			t.Errorf("%s off: %d messages", off, w.sent)
		}
	}
}

// The header's name has no case. No header, and two that differ in case, are none.
func TestTheSignatureHeaderIsFound(t *testing.T) {
	w := newWorld(t)
	body := told("evt_1")
	signature := w.signature(body)
	for name, headers := range map[string]map[string]string{
		"lower":   {"provider-signature": signature},
		"upper":   {"PROVIDER-SIGNATURE": signature, "other": "x"},
		"as sent": {"Provider-Signature": signature},
	} {
		if answer := w.deliver(delivery{headers: headers, body: body}, 200); answer.Body != `{"result":"queued"}` {
			t.Errorf("%s: %s", name, answer.Body)
		}
	}
	for _, headers := range []map[string]string{
		nil, {}, {"provider-signature": ""}, {"signature": signature},
		{"provider-signature": signature, "Provider-Signature": signature},
	} {
		w.deliver(delivery{headers: headers, body: body}, 401)
	}
}

// Whatever the function is given, it answers, and nothing the sender does is a fault of
// ours.
func TestEveryEventHasAnAnswer(t *testing.T) {
	w := newWorld(t)
	for _, raw := range []string{``, `null`, `[]`, `"x"`, `{"headers":17}`, `{}`, `{"body":null}`} {
		answer, err := w.inbox.Handle(context.Background(), json.RawMessage(raw))
		if err != nil || answer.StatusCode < 400 || answer.StatusCode >= 500 {
			t.Errorf("%s: %d, %v", raw, answer.StatusCode, err)
		}
	}
}

// Case L5 and P12: markers in every header, in the body and in the secret are in no log,
// no metric, no answer and no message, whatever becomes of the delivery.
func TestCaseL5_NothingOfADeliveryIsTold(t *testing.T) {
	w := newWorld(t)
	var answers strings.Builder
	deliver := func(d delivery, status int) {
		headers := maps.Clone(d.headers)
		if headers == nil {
			headers = map[string]string{}
		}
		headers["Authorization"], headers["Cookie"], headers["X-Api-Key"] = "Bearer header-marker", "session=header-marker", "header-marker"
		d.headers = headers
		answer := w.deliver(d, status)
		fmt.Fprint(&answers, answer.Body, answer.Headers)
	}
	body := strings.Replace(told("evt_1"), `{`, `{"client_secret":"pi_secret_body-marker","card":"4242424242424242",`, 1)
	deliver(w.signed(body), 200)
	deliver(w.signed(body).inBase64(), 200)
	deliver(delivery{headers: map[string]string{"provider-signature": "1.signature-marker"}, body: body}, 401)
	deliver(w.signed(`body-marker`), 400)
	deliver(w.signed(strings.Replace(body, "pay_1", "pay_1_secret_body-marker", 1)), 400)
	deliver(w.signed(strings.Replace(body, string(reservation), "body-marker", 1)), 400)
	deliver(w.signed(strings.Repeat("body-marker", 10_000)), 413)
	deliver(delivery{headers: map[string]string{"provider-signature": "signature-marker"}, body: "body-marker!", base64: true}, 400)
	for _, port := range []string{"verify", "recorded", "send"} {
		w.before = func(at string) error {
			if at == port {
				return errors.New("told to fail")
			}
			return nil
		}
		deliver(w.signed(strings.Replace(body, "evt_1", "evt_2", 1)), 503)
	}
	if _, err := w.inbox.Handle(context.Background(), json.RawMessage(`{"body":17,"headers":{"a":"body-marker"}} body-marker`)); err != nil {
		t.Error(err)
	}
	everything := w.logs.String() + w.metrics.String() + answers.String() + strings.Join(w.queue, "\n")
	for _, marker := range []string{"header-marker", "body-marker", "signature-marker", secret, "4242424242424242", w.signature(body)} {
		if at := strings.Index(everything, marker); at >= 0 {
			t.Errorf("%s is told: …%s…", marker, everything[max(0, at-200):min(len(everything), at+80)])
		}
	}
	if !strings.Contains(everything, "told to fail") || len(w.queue) != 2 {
		t.Error("the deliveries did not go the ways that they should")
	}
}

type brokenMetrics struct{}

func (brokenMetrics) Emit(telemetry.Properties, ...telemetry.Measurement) error {
	return errors.New("broken pipe")
}

// A count that is lost is logged, and the delivery is a success all the same.
func TestALostCountIsLogged(t *testing.T) {
	w := newWorld(t)
	inbox, err := webhook.NewInbox(webhook.Ports{
		Verify: w.verify, Recorded: w.isRecorded, Queue: w, Metrics: brokenMetrics{}, Clock: w.clock,
		Logger: telemetry.NewLogger(&w.logs, telemetry.Source{Stage: "dev", Function: "webhook"}),
	}, webhook.Settings{SignatureHeader: "Provider-Signature", SagaQueueURL: "https://queue.example/saga"})
	if err != nil {
		t.Fatal(err)
	}
	w.inbox = inbox
	w.deliver(w.signed(told("evt_1")), 200)
	if !strings.Contains(w.logs.String(), "broken pipe") {
		t.Errorf("log: %s", w.logs.String())
	}
}

// A delivery that can't be taken in is answered before Lambda ends the function.
func TestTheStepsFitIntoTheTimeOut(t *testing.T) {
	if all := webhook.VerifyFor + webhook.RecordedFor + webhook.QueueFor; all >= topology.WebhookTimeout {
		t.Errorf("the steps take %s, the function has %s", all, topology.WebhookTimeout)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, settings := range []webhook.Settings{{}, {SignatureHeader: "s"}, {SagaQueueURL: "q"}} {
		if _, err := webhook.NewInbox(webhook.Ports{}, settings); err == nil {
			t.Errorf("%+v: no error", settings)
		}
	}
}
