package localrun_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/topology"
)

// bodyBytesMax is the limit of a webhook's body, as the contract has it.
const bodyBytesMax = 65_536

// countQueued counts the messages that the webhook function sends, until the test ends.
func (p *payingWorld) countQueued() *atomic.Int64 {
	var sent atomic.Int64
	end := p.observer.inject(topology.FunctionWebhook, func(target string, forward func()) bool {
		if strings.HasPrefix(target, "AmazonSQS.") {
			sent.Add(1)
		}
		forward()
		return false
	})
	p.t.Cleanup(end)
	return &sent
}

// paid is a purchase that is paid and that nobody has told the saga of, and the body of the
// news.
func (p *payingWorld) paid() (purchase, stripetest.Webhook) {
	p.t.Helper()
	b := p.purchase(p.slot(1, ""), 1)
	p.rest()
	b.pay()
	return b, b.told(paymenttest.EventAuthorized)
}

// wantUntouched checks that the reservation still waits for its payment and that nothing
// was put into the saga's queue.
func (b purchase) wantUntouched(sent *atomic.Int64, want int64, why string) {
	b.w.t.Helper()
	if got := sent.Load(); got != want {
		b.w.t.Errorf("%s: %d messages were queued, want %d", why, got, want)
	}
	if got := b.read().text("status"); got != string(ledger.ReservationPaymentPending) {
		b.w.t.Errorf("%s: the reservation is %s", why, got)
	}
}

// Case L2: the signature was checked on a rewritten body. Each body passes on its exact
// bytes, as text and in base64, and with one flipped byte it does not and changes nothing.
func TestCaseL2_ExactBytesThroughTheGateway(t *testing.T) {
	p := newPayingWorld(t)
	b, news := p.paid()
	sent := p.countQueued()
	replaced := func(old, with string) func([]byte) []byte {
		return func(body []byte) []byte {
			if !bytes.Contains(body, []byte(old)) {
				t.Fatalf("the event has no %s: %s", old, body)
			}
			return bytes.Replace(body, []byte(old), []byte(with), 1)
		}
	}
	amount := fmt.Sprintf(`"amount": %d,`, unitAmount)
	forms := map[string]func([]byte) []byte{
		"extra spaces":           replaced(`"type":`, `  "type"  :   `),
		"1.0":                    replaced(amount, fmt.Sprintf(`"amount": %d.0,`, unitAmount)),
		"unicode escapes":        replaced(`"object": "event"`, `"object": "\u0065vent"`),
		"duplicate member names": replaced(`"object": "event"`, `"object": "other", "object": "event"`),
		"a CRLF at the end":      func(body []byte) []byte { return append(body, "\r\n"...) },
		"as Stripe sends it":     func(body []byte) []byte { return body },
	}
	for name, form := range forms {
		for _, transport := range []string{asText, asBase64} {
			flipped := sign(form(renamed(news)), transport)
			flipped.body[len(flipped.body)/2] ^= 1
			p.hook(flipped).wantProblem(http.StatusUnauthorized, "signature_invalid")
			b.wantUntouched(sent, 0, name)
		}
	}
	for name, form := range forms {
		for _, transport := range []string{asText, asBase64} {
			before := sent.Load()
			if got := p.hook(sign(form(renamed(news)), transport)); got.Status != http.StatusOK || sent.Load() != before+1 {
				t.Errorf("%s, %s: %d with %d messages: %s", name, transport, got.Status, sent.Load()-before, got.Body)
			}
		}
	}
	b.until(ledger.ReservationCompleted)
	p.rest()
	b.wantOneSale()
}

// Case L3: an old webhook was accepted with a new timestamp. Unchanged it may come again;
// while the secret is being changed, one good signature among several is enough.
func TestCaseL3_ReplaysAndRotation(t *testing.T) {
	p := newPayingWorld(t)
	b, news := p.paid()
	sent := p.countQueued()
	now := time.Now()
	current, previous, foreign := paymentKeys.Webhook[0], paymentKeys.Webhook[1], payment.NewSecret("whsec_of_somebody_else")
	recorded := signed{news.Body, stripetest.SignatureHeader(news.Body, now.Add(-100*time.Second), current), asText}
	stamp, mac, _ := strings.Cut(recorded.signature, ",")
	for name, signature := range map[string]string{
		"a new timestamp":    fmt.Sprintf("t=%d,%s", now.Unix(), mac),
		"no timestamp":       mac,
		"no signature":       stamp,
		"two timestamps":     fmt.Sprintf("%s,t=%d,%s", stamp, now.Unix(), mac),
		"no header":          "",
		"a foreign secret":   stripetest.SignatureHeader(news.Body, now, foreign),
		"an old test scheme": strings.ReplaceAll(recorded.signature, "v1=", "v0="),
	} {
		p.hook(signed{news.Body, signature, asText}).wantProblem(http.StatusUnauthorized, "signature_invalid")
		b.wantUntouched(sent, 0, name)
	}
	p.hook(recorded).want(http.StatusOK)
	p.hook(recorded).want(http.StatusOK)
	b.until(ledger.ReservationCompleted)
	p.hook(recorded).want(http.StatusOK)
	for _, secrets := range [][]payment.Secret{
		{current}, {previous}, {current, previous}, {previous, current}, {foreign, previous}, {foreign, current},
	} {
		p.hook(signed{news.Body, stripetest.SignatureHeader(news.Body, time.Now(), secrets...), asText}).want(http.StatusOK)
	}
	p.rest()
	b.wantOneSale()
}

// Case J3: good webhooks were refused because of small clock differences, and 300 s is the
// limit to both sides.
func TestCaseJ3_SignatureTimes(t *testing.T) {
	p := newPayingWorld(t)
	b, news := p.paid()
	sent := p.countQueued()
	withStamp := func(stamp string) string {
		_, mac, _ := strings.Cut(sign(news.Body, asText).signature, ",")
		return "t=" + stamp + "," + mac
	}
	for _, stamp := range []string{"NaN", "", fmt.Sprint(time.Now().UnixMilli()), fmt.Sprint(time.Now().Unix()) + ".0"} {
		p.hook(signed{news.Body, withStamp(stamp), asText}).wantProblem(http.StatusUnauthorized, "signature_invalid")
		b.wantUntouched(sent, 0, "timestamp "+stamp)
	}
	millis := time.Unix(time.Now().UnixMilli(), 0)
	p.hook(signed{news.Body, stripetest.SignatureHeader(news.Body, millis, paymentKeys.Webhook[0]), asText}).wantProblem(http.StatusUnauthorized, "signature_invalid")
	for _, off := range []time.Duration{-301 * time.Second, 301 * time.Second} {
		p.signedOff(news.Body, off).wantProblem(http.StatusUnauthorized, "signature_invalid")
		b.wantUntouched(sent, 0, off.String())
	}
	for _, off := range []time.Duration{-299 * time.Second, 0, 299 * time.Second} {
		p.signedOff(news.Body, off).want(http.StatusOK)
	}
	b.until(ledger.ReservationCompleted)
	p.rest()
	b.wantOneSale()
}

// signedOff sends the body with a signature whose time is that far off. The answer counts
// only if it came within the second in which the body was signed: later the difference is
// another one.
func (p *payingWorld) signedOff(body []byte, off time.Duration) answer {
	p.t.Helper()
	const triesMax = 20
	for range triesMax {
		signedAt := time.Now()
		got := p.hook(signed{body, stripetest.SignatureHeader(body, signedAt.Add(off), paymentKeys.Webhook[0]), asText})
		if time.Now().Unix() == signedAt.Unix() {
			return got
		}
	}
	p.t.Fatalf("no answer came within its second in %d tries", triesMax)
	return answer{}
}

// Case H1 for webhooks: the limit counts decoded bytes, in both transports.
func TestCaseH1_WebhookBodies(t *testing.T) {
	p := newPayingWorld(t)
	b, news := p.paid()
	sent := p.countQueued()
	padded := func(size int) []byte {
		body := renamed(news)
		return append(body, strings.Repeat(" ", size-len(body))...)
	}
	for _, transport := range []string{asText, asBase64} {
		p.hook(sign(padded(bodyBytesMax+1), transport)).wantProblem(http.StatusRequestEntityTooLarge, "body_too_large")
		b.wantUntouched(sent, 0, transport)
	}
	for i, transport := range []string{asText, asBase64} {
		p.hook(sign(padded(bodyBytesMax), transport)).want(http.StatusOK)
		if got := sent.Load(); got != int64(i+1) {
			t.Errorf("%s: %d messages, want %d", transport, got, i+1)
		}
	}
	b.until(ledger.ReservationCompleted)
	p.rest()
	b.wantOneSale()
}
