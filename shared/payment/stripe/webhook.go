package stripe

import (
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85/webhook"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

const (
	// SignatureHeader is the header that a webhook's signatures come in.
	SignatureHeader = "Stripe-Signature"
	// SignatureTolerance is how far the time of a signature may be from ours, to either
	// side. Stripe recommends five minutes; the future counts too, or a signature of next
	// year would be good until then.
	SignatureTolerance = 300 * time.Second
	// signaturesMax bounds the signatures that are compared. A header has one for each
	// secret that is active, and Stripe keeps an old one for at most a day.
	signaturesMax = 16
)

// Verify checks a webhook and gives the notice in it. The signature is over the exact
// bytes of body, so body must be what came in, before any decoding but that of the
// transport. Any of the secrets may have signed it, so that a secret can be changed
// without losing events; empty ones sign nothing.
//
// The error is one of payment.ErrSignature, payment.ErrNotOurs and payment.ErrMalformed.
// None has a word of the webhook.
func Verify(body []byte, signatureHeader string, secrets []payment.Secret, now time.Time) (payment.Notice, error) {
	if !signedLately(body, signatureHeader, secrets, now) {
		return payment.Notice{}, payment.ErrSignature
	}
	return notice(body)
}

// signedLately parses a header such as t=1700000000,v1=0a1b,v1=2c3d. Time is compared
// with now and not with the machine's clock, and the library's own check is not used
// because it takes every time in the future.
func signedLately(body []byte, header string, secrets []payment.Secret, now time.Time) bool {
	var stamp string
	var stamps int
	var signatures [][]byte
	for part := range strings.SplitSeq(header, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "t":
			stamp, stamps = value, stamps+1
		case "v1":
			signature, err := hex.DecodeString(value)
			if err == nil && len(signatures) < signaturesMax {
				signatures = append(signatures, signature)
			}
		}
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || stamps != 1 {
		return false
	}
	oldest, newest := now.Add(-SignatureTolerance).Unix(), now.Add(SignatureTolerance).Unix()
	if seconds < oldest || seconds > newest {
		return false
	}
	for _, secret := range secrets {
		if secret.Empty() {
			continue
		}
		expected := webhook.ComputeSignature(time.Unix(seconds, 0), body, secret.Reveal())
		for _, signature := range signatures {
			if hmac.Equal(expected, signature) {
				return true
			}
		}
	}
	return false
}

// event is the part of a webhook that is read. Stripe's versions differ in many members
// and in none of these, so the version is not looked at.
type event struct {
	ID      string      `json:"id"`
	Object  string      `json:"object"`
	Type    string      `json:"type"`
	Account string      `json:"account"`
	Created wholeNumber `json:"created"`
	Data    struct {
		Object json.RawMessage `json:"object"`
	} `json:"data"`
}

// subject is a payment, a charge or a refund in a webhook.
type subject struct {
	ID               string            `json:"id"`
	Object           string            `json:"object"`
	PaymentIntent    reached           `json:"payment_intent"`
	Amount           wholeNumber       `json:"amount"`
	AmountRefunded   wholeNumber       `json:"amount_refunded"`
	Currency         string            `json:"currency"`
	Status           string            `json:"status"`
	Metadata         map[string]string `json:"metadata"`
	LastPaymentError json.RawMessage   `json:"last_payment_error"`
}

func notice(body []byte) (payment.Notice, error) {
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		return payment.Notice{}, payment.ErrMalformed
	}
	// An event of an account that is connected to ours is not about our own money.
	if e.Object != "event" || e.Account != "" || !watched(e.Type) {
		return payment.Notice{}, payment.ErrNotOurs
	}
	var s subject
	if err := json.Unmarshal(e.Data.Object, &s); err != nil {
		return payment.Notice{}, payment.ErrMalformed
	}
	reservation, attempt, err := referenceOf(s.Metadata)
	switch {
	case err != nil:
		return payment.Notice{}, payment.ErrMalformed
	case reservation == "":
		return payment.Notice{}, payment.ErrNotOurs
	}
	n := payment.Notice{
		ID: ledger.ProviderEventID(e.ID), Type: e.Type, Reservation: reservation, Attempt: attempt,
		OccurredAt: time.Unix(int64(e.Created), 0).UTC(), Currency: currencyOf(s.Currency),
	}
	n.Payment, n.AmountMinor, n.Status = s.tells()
	if !ledger.ValidName(e.ID) || !ledger.ValidName(string(n.Payment)) || e.Created <= 0 {
		return payment.Notice{}, payment.ErrMalformed
	}
	return n, nil
}

// watched reports whether events of that type are about payments and refunds.
func watched(kind string) bool {
	return strings.HasPrefix(kind, "payment_intent.") || strings.HasPrefix(kind, "refund.") ||
		kind == "charge.refunded" || kind == "charge.refund.updated"
}

// tells is which payment the subject is about, how much money, and how the payment
// stands. A status that is not known is told as pending: a notice is only a hint.
func (s subject) tells() (ledger.PaymentID, int64, payment.Status) {
	switch s.Object {
	case "payment_intent":
		failed := len(s.LastPaymentError) > 0 && string(s.LastPaymentError) != "null"
		status, known := statusOf(s.Status, failed)
		if !known {
			status = payment.StatusPending
		}
		return ledger.PaymentID(s.ID), int64(s.Amount), status
	case "charge":
		return ledger.PaymentID(s.PaymentIntent), int64(s.AmountRefunded), payment.StatusCaptured
	case "refund":
		return ledger.PaymentID(s.PaymentIntent), int64(s.Amount), payment.StatusCaptured
	}
	return "", 0, ""
}

// reached is the id of another object, which Stripe gives as a text or as the object.
type reached string

// UnmarshalJSON reads either form, or null.
func (r *reached) UnmarshalJSON(data []byte) error {
	var id string
	if json.Unmarshal(data, &id) == nil {
		*r = reached(id)
		return nil
	}
	var object struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	*r = reached(object.ID)
	return nil
}

// wholeNumber is an integer that may be written as 5, 5.0 or null. JSON does not tell
// these apart, and who signs a webhook may write either.
type wholeNumber int64

// UnmarshalJSON reads the number without going through a float, so that it stays exact.
func (n *wholeNumber) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	whole, fraction, _ := strings.Cut(text, ".")
	if strings.Trim(fraction, "0") != "" {
		return errors.New("not a whole number")
	}
	value, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return fmt.Errorf("not a whole number: %w", strconv.ErrSyntax)
	}
	*n = wholeNumber(value)
	return nil
}
