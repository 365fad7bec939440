package stripe_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/payment/stripe"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/system/systemtest"
)

var (
	webhookSecret = payment.NewSecret("whsec_canary_9b2e")
	oldSecret     = payment.NewSecret("whsec_old")
	secrets       = []payment.Secret{webhookSecret}
)

// body is a webhook with all that L2 speaks of: spaces, 1.0, an escape, a member twice, a
// CRLF at the end.
var body = []byte(`{ "id" : "evt_1", "object":"event", "created" : 1772359200.0, "type":"payment_intent.created",
  "type":"payment_intent.amount_capturable_updated", "api_version":"2019-01-01",
  "data":{"object":{"id":"pi_1","object":"payment_intent","amount":1000.0,"currency":"\u0075sd","status":"requires_capture",
  "client_secret":"pi_1_secret_x","metadata":{"holdfast_reservation":"` + string(reservation) + `","holdfast_attempt":"2"}}}}` + "\r\n")

func sign(at time.Time, with ...payment.Secret) string {
	return stripetest.SignatureHeader(body, at, with...)
}

func wantVerify(t *testing.T, body []byte, header string, secrets []payment.Secret, want error) payment.Notice {
	t.Helper()
	got, err := stripe.Verify(body, header, secrets, start)
	if !errors.Is(err, want) {
		t.Errorf("header %q: %v, want %v", header, err, want)
	}
	if err != nil && got != (payment.Notice{}) {
		t.Errorf("an error came with %+v", got)
	}
	return got
}

func TestCaseL2_SignatureIsOverTheExactBytes(t *testing.T) {
	got := wantVerify(t, body, sign(start, webhookSecret), secrets, nil)
	want := payment.Notice{
		ID: "evt_1", Type: "payment_intent.amount_capturable_updated", Payment: "pi_1", Reservation: reservation, Attempt: 2,
		OccurredAt: time.Unix(1772359200, 0).UTC(), AmountMinor: 1000, Currency: "USD", Status: payment.StatusAuthorized,
	}
	if got != want {
		t.Errorf("noticed %+v, want %+v", got, want)
	}
	header := sign(start, webhookSecret)
	for i := range body {
		flipped := bytes.Clone(body)
		flipped[i] ^= 1
		wantVerify(t, flipped, header, secrets, payment.ErrSignature)
	}
	for _, changed := range [][]byte{bytes.TrimSpace(body), bytes.ReplaceAll(body, []byte(" "), nil), append(bytes.Clone(body), '\n'), nil} {
		wantVerify(t, changed, header, secrets, payment.ErrSignature)
	}
}

func TestCaseL3_TimestampIsSignedAndSecretsCanRotate(t *testing.T) {
	header := sign(start, webhookSecret)
	stamp := fmt.Sprintf("t=%d", start.Unix())
	signature := strings.TrimPrefix(header, stamp+",")
	later := fmt.Sprintf("t=%d", start.Unix()+1)
	for _, bad := range []string{
		later + "," + signature,               // rewritten
		signature,                             // removed
		stamp + "," + later + "," + signature, // two times
		later + "," + stamp + "," + signature,
		stamp, "", "v1=", stamp + ",v1=", stamp + ",v0=" + strings.TrimPrefix(signature, "v1="),
		stamp + ",v1=zz", sign(start, oldSecret), sign(start),
	} {
		wantVerify(t, body, bad, secrets, payment.ErrSignature)
	}
	// Replayed unchanged it is good: that there is one effect is the business of who
	// keeps the event's id.
	wantVerify(t, body, header, secrets, nil)
	wantVerify(t, body, header, secrets, nil)
	both := []payment.Secret{oldSecret, webhookSecret}
	wantVerify(t, body, sign(start, oldSecret, webhookSecret), secrets, nil)
	wantVerify(t, body, sign(start, payment.NewSecret("whsec_next"), webhookSecret), secrets, nil)
	wantVerify(t, body, sign(start, oldSecret), both, nil)
	wantVerify(t, body, sign(start, webhookSecret), both, nil)
	wantVerify(t, body, sign(start, payment.NewSecret("whsec_else")), both, payment.ErrSignature)
	// A secret that is not set must not be one that anybody can sign with.
	wantVerify(t, body, sign(start, payment.Secret{}), []payment.Secret{{}}, payment.ErrSignature)
	wantVerify(t, body, header, nil, payment.ErrSignature)
	many := sign(start, payment.NewSecret("x"), payment.NewSecret("y"), webhookSecret)
	wantVerify(t, body, strings.ReplaceAll(many, ",", ", "), secrets, nil)
}

func TestCaseJ3_TimestampsWithinFiveMinutesEitherWay(t *testing.T) {
	for offset, good := range map[int]bool{-301: false, -300: true, -299: true, 0: true, 299: true, 300: true, 301: false} {
		want := payment.ErrSignature
		if good {
			want = nil
		}
		wantVerify(t, body, sign(start.Add(time.Duration(offset)*time.Second), webhookSecret), secrets, want)
	}
	signature := sign(start, webhookSecret)[strings.Index(sign(start, webhookSecret), ",")+1:]
	for _, stamp := range []string{"", "t=,", "t=NaN,", fmt.Sprintf("t=%d,", start.UnixMilli()), "t=-1,", "t=9223372036854775807,", "t=99999999999999999999,", fmt.Sprintf("t=%d.0,", start.Unix())} {
		wantVerify(t, body, stamp+signature, secrets, payment.ErrSignature)
	}
	// Signed as milliseconds it is as far away as it looks.
	wantVerify(t, body, sign(time.Unix(start.UnixMilli(), 0), webhookSecret), secrets, payment.ErrSignature)
}

func TestWebhooksThatAreNotOurs(t *testing.T) {
	for name, change := range map[string][2]string{
		"another type":      {"payment_intent.amount_capturable_updated", "customer.created"},
		"another charge":    {"payment_intent.amount_capturable_updated", "charge.succeeded"},
		"no reference":      {"holdfast_reservation", "order"},
		"connected account": {`"object":"event"`, `"object":"event","account":"acct_1"`},
		"thin event":        {`"object":"event"`, `"object":"v2.core.event"`},
	} {
		t.Run(name, func(t *testing.T) { verifyChanged(t, change, payment.ErrNotOurs) })
	}
	for name, change := range map[string][2]string{
		"not JSON":             {`{ "id"`, `[ "id"`},
		"no event id":          {`"evt_1"`, `""`},
		"no payment id":        {`"pi_1"`, `""`},
		"no time":              {`1772359200.0`, `null`},
		"a half":               {`1000.0`, `1000.5`},
		"a text":               {`1000.0`, `"1000"`},
		"too big":              {`1000.0`, `1e30`},
		"attempt zero":         {`"2"`, `"0"`},
		"attempt is no number": {`"2"`, `"two"`},
		"bad reservation":      {string(reservation), "a b"},
		"another object":       {`"object":"payment_intent"`, `"object":"customer"`},
	} {
		t.Run(name, func(t *testing.T) { verifyChanged(t, change, payment.ErrMalformed) })
	}
}

func verifyChanged(t *testing.T, change [2]string, want error) {
	t.Helper()
	changed := bytes.Replace(body, []byte(change[0]), []byte(change[1]), 1)
	if bytes.Equal(changed, body) {
		t.Fatal("nothing was changed")
	}
	wantVerify(t, changed, stripetest.SignatureHeader(changed, start, webhookSecret), secrets, want)
}

// Every event of the bank, as the server sends it, must give the notice that the bank
// itself says it is.
func TestEveryEventGivesItsNotice(t *testing.T) {
	clock := systemtest.NewClock(start)
	bank := paymenttest.NewBank(clock.Now)
	created, err := bank.Create(creation(1, usd(1000)))
	if err != nil {
		t.Fatal(err)
	}
	id := created.Payment.ID
	for _, act := range []func() error{
		func() error { _, err := bank.Decline(string(id)); return err },
		func() error { _, err := bank.RequireAction(string(id)); return err },
		func() error { _, err := bank.CompleteAction(string(id)); return err },
		func() error { _, err := bank.Capture("c", id, 1000); return err },
		func() error { _, err := bank.Refund("r", id, 400); return err },
		func() error { _, err := bank.FailRefund("re_00000001"); return err },
		func() error { _, err := bank.Create(creation(2, usd(1000))); return err },
		func() error { _, err := bank.Void("v", "pi_00000002"); return err },
	} {
		clock.Advance(time.Second)
		if err := act(); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, e := range bank.TakeEvents() {
		sent := stripetest.WebhookBody(e)
		got := wantVerify(t, sent, stripetest.SignatureHeader(sent, start, webhookSecret), secrets, nil)
		if got != e.Notice() {
			t.Errorf("%s: noticed %+v, want %+v", e.Type, got, e.Notice())
		}
		seen[e.Type] = true
	}
	if len(seen) != 8 {
		t.Errorf("only these types were seen: %v", seen)
	}
}
