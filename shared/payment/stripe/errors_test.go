package stripe_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/payment/stripe"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/system/systemtest"
)

func TestErrorsBecomeKinds(t *testing.T) {
	const unreachable, refused, conflict, notFound = payment.KindUnreachable, payment.KindRefused, payment.KindConflict, payment.KindNotFound
	tests := []struct {
		status     int
		kind, code string
		want       payment.ErrorKind
	}{
		{400, "invalid_request_error", "payment_intent_unexpected_state", conflict},
		{400, "invalid_request_error", "intent_invalid_state", conflict},
		{400, "invalid_request_error", "charge_already_captured", conflict},
		{400, "invalid_request_error", "charge_already_refunded", conflict},
		{400, "invalid_request_error", "charge_expired_for_capture", conflict},
		{404, "invalid_request_error", "resource_missing", notFound},
		{400, "invalid_request_error", "resource_missing", notFound},
		{404, "invalid_request_error", "", unreachable},
		{400, "invalid_request_error", "amount_too_small", refused},
		{400, "invalid_request_error", "", refused},
		{402, "card_error", "card_declined", refused},
		{402, "card_error", "processing_error", refused},
		{401, "invalid_request_error", "", unreachable},
		{401, "invalid_request_error", "api_key_expired", unreachable},
		{403, "invalid_request_error", "", unreachable},
		{408, "invalid_request_error", "", unreachable},
		{409, "invalid_request_error", "idempotency_key_in_use", unreachable},
		{409, "invalid_request_error", "", unreachable},
		{429, "invalid_request_error", "lock_timeout", unreachable},
		{429, "invalid_request_error", "rate_limit", unreachable},
		{400, "invalid_request_error", "lock_timeout", unreachable},
		{400, "api_error", "", unreachable},
		{500, "api_error", "", unreachable},
		{500, "invalid_request_error", "payment_intent_unexpected_state", unreachable},
		{503, "api_error", "", unreachable},
	}
	w := mustWorld(t)
	for _, test := range tests {
		w.server.AddFault(stripetest.Fault{
			Calls: 1, Outcome: stripetest.ErrorInstead,
			Error: stripetest.ErrorAnswer{HTTPStatus: test.status, Type: test.kind, Code: test.code, Message: "words"},
		})
		_, err := w.provider.Create(context.Background(), creation(1, usd(1000)))
		t.Run(fmt.Sprintf("%d %s %s", test.status, test.kind, test.code), func(t *testing.T) {
			wantKind(t, err, test.want, test.code)
		})
	}
}

func TestAnswerThatSaysNothingIsUnreachable(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"a page":            func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502); _, _ = io.WriteString(w, "<html>") },
		"half a body":       func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id":"pi_1","sta`) },
		"an empty object":   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{}`) },
		"an unknown status": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id":"pi_1","status":"new"}`) },
		"an error page 404": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); _, _ = io.WriteString(w, "no") },
		"another place": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		},
		"too much": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"id":"pi_1","status":"succeeded","description":"`+strings.Repeat("x", 2<<20)+`"}`)
		},
	} {
		server := httptest.NewServer(answer)
		provider := mustProvider(t, server.URL, systemtest.NewClock(start))
		_, err := provider.LookUp(context.Background(), "pi_1")
		t.Run(name, func(t *testing.T) { wantKind(t, err, payment.KindUnreachable, "") })
		server.Close()
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	_, err := mustProvider(t, gone.URL, systemtest.NewClock(start)).LookUp(context.Background(), "pi_1")
	wantKind(t, err, payment.KindUnreachable, "")
}

func TestMetadataThatSomebodyChangedIsToldAsNone(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"pi_1","status":"canceled","amount":5,"currency":"usd","metadata":{"holdfast_reservation":"r","holdfast_attempt":"x"}}`)
	}))
	defer server.Close()
	p, err := mustProvider(t, server.URL, systemtest.NewClock(start)).LookUp(context.Background(), "pi_1")
	if err != nil || p.Reservation != "" || p.Attempt != 0 || p.Status != payment.StatusVoided {
		t.Errorf("looked up %+v, %v", p, err)
	}
}

// L5: the markers stand in every place that a provider can quote. Neither an error nor
// what the library prints may have one.
func TestCaseL5_NoSecretInErrorsOrOutput(t *testing.T) {
	const card = "4242424242424242"
	printed := captureOutput(t, func() {
		w := mustWorld(t)
		p := w.mustCreate(t, 1, usd(1000))
		markers := []string{apiKey.Reveal(), p.Secret.Reveal(), webhookSecret.Reveal(), card}
		quoting := stripetest.ErrorAnswer{Type: "card_error", Code: card + " " + p.Secret.Reveal(), Message: strings.Join(markers, " ")}
		var errs []error
		for _, status := range []int{400, 401, 402, 404, 409, 429, 500} {
			quoting.HTTPStatus = status
			for _, m := range []paymenttest.Method{paymenttest.MethodCreate, paymenttest.MethodLookUp, paymenttest.MethodCapture, paymenttest.MethodVoid, paymenttest.MethodRefund} {
				w.server.AddFault(stripetest.Fault{Method: m, Calls: 1, Outcome: stripetest.ErrorInstead, Error: quoting})
			}
			errs = append(errs, callAll(w.provider, p)...)
		}
		body := strings.Join(markers, " ")
		for _, raw := range []http.HandlerFunc{
			func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(500); _, _ = io.WriteString(rw, body) },
			func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, body) },
			func(rw http.ResponseWriter, r *http.Request) {
				http.Redirect(rw, r, "http://127.0.0.1:1/"+card, http.StatusFound)
			},
			func(rw http.ResponseWriter, _ *http.Request) { // not HTTP at all
				connection, _, err := rw.(http.Hijacker).Hijack()
				if err == nil {
					_, _ = io.WriteString(connection, body+"\r\n\r\n")
					_ = connection.Close()
				}
			},
		} {
			server := httptest.NewServer(raw)
			errs = append(errs, callAll(mustProvider(t, server.URL, w.clock), p)...)
			server.Close()
		}
		_, err := stripe.Verify([]byte(body), "t=1,v1="+body, []payment.Secret{webhookSecret}, start)
		errs = append(errs, err)
		signed := []byte(body)
		_, err = stripe.Verify(signed, stripetest.SignatureHeader(signed, start, webhookSecret), []payment.Secret{webhookSecret}, start)
		errs = append(errs, err)
		if len(errs) < 40 {
			t.Errorf("only %d errors were made", len(errs))
		}
		for _, err := range errs {
			if err == nil {
				t.Error("a call that must fail did not")
				continue
			}
			findMarkers(t, fmt.Sprintf("%v %+v %#v", err, err, err), markers)
		}
		findMarkers(t, fmt.Sprintf("%v %+v %#v", p, p, p), markers[1:2])
	})
	if printed != "" {
		t.Errorf("this was printed: %s", printed)
	}
}

func findMarkers(t *testing.T, text string, markers []string) {
	t.Helper()
	for _, marker := range markers {
		if strings.Contains(text, marker) {
			t.Errorf("%q has the marker %q", text, marker)
		}
	}
}

func callAll(p *stripe.Provider, of payment.Payment) []error {
	ctx := context.Background()
	_, create := p.Create(ctx, creation(2, usd(1000)))
	_, lookUp := p.LookUp(ctx, of.ID)
	_, capture := p.Capture(ctx, "capture", of.ID, 1)
	_, void := p.Void(ctx, "void", of.ID)
	_, refund := p.Refund(ctx, "refund", of.ID, 1)
	return []error{create, lookUp, capture, void, refund}
}

// captureOutput gives what do prints on either output of the process.
func captureOutput(t *testing.T, do func()) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, errOut := os.Stdout, os.Stderr
	os.Stdout, os.Stderr = write, write
	read2 := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(read)
		read2 <- string(all)
	}()
	func() {
		defer func() { os.Stdout, os.Stderr = out, errOut; _ = write.Close() }()
		do()
	}()
	return <-read2
}
