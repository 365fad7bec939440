package stripe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stripe/stripe-go/v85"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/system"
)

const (
	// CallFor is how long one method of the port may take, all its requests together. An
	// authorization at Stripe takes two to three seconds when a bank is slow; three times
	// that is a provider in trouble, and the caller has less than 30 seconds for itself.
	CallFor = 10 * time.Second
	// answerBytesMax bounds the answer that is read. A payment with its charge has 10 KB.
	answerBytesMax = 1 << 20
	// refundsRead is how many refunds of a payment are looked through: the most that
	// Stripe lists in one answer. More than that, none of them older than the one that is
	// looked for, are not to be had from one payment of at most 50 lines.
	refundsRead = 100
)

// The names of what we write on payments and refunds, so that each tells whose it is.
const (
	metadataReservation = "holdfast_reservation"
	metadataAttempt     = "holdfast_attempt"
	metadataKey         = "holdfast_key"
)

// Options are what a Provider needs.
type Options struct {
	APIKey payment.Secret
	// BaseURL is where the API is, without a path. Empty is Stripe's own; only a stage
	// on one machine has another.
	BaseURL string
	// Transport carries the requests; nil is the standard one.
	Transport http.RoundTripper
	Clock     system.Clock
}

// Provider is Stripe as a payment.Provider. It is safe for concurrent use.
type Provider struct {
	client *stripe.Client
	clock  system.Clock
}

var _ payment.Provider = (*Provider)(nil)

// New returns a Provider. It makes no call.
func New(o Options) (*Provider, error) {
	if o.APIKey.Empty() || strings.TrimSpace(o.APIKey.Reveal()) != o.APIKey.Reveal() {
		return nil, errors.New("stripe: the API key is missing or has space around it")
	}
	if o.Clock == nil {
		return nil, errors.New("stripe: there is no clock")
	}
	transport := o.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	backend := &stripe.BackendConfig{
		// The library's own messages hold what Stripe answered, so they go nowhere.
		LeveledLogger:     &stripe.LeveledLogger{Level: stripe.LevelNull},
		MaxNetworkRetries: stripe.Int64(0),
		EnableTelemetry:   stripe.Bool(false),
		HTTPClient: &http.Client{
			Transport: bounded{transport},
			// The API never sends a caller elsewhere. Whoever does is not to get our key.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	if o.BaseURL != "" {
		backend.URL = stripe.String(o.BaseURL)
	}
	client := stripe.NewClient(o.APIKey.Reveal(), stripe.WithBackends(stripe.NewBackendsWithConfig(backend)))
	return &Provider{client: client, clock: o.Clock}, nil
}

// bounded cuts answers that are too long. What was cut can't be read, and so says nothing.
type bounded struct{ next http.RoundTripper }

// RoundTrip sends the request on.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.next.RoundTrip(r)
	if err == nil {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, answerBytesMax), answer.Body}
	}
	return answer, err
}

// withCharge asks Stripe to answer with the payment's charge, which alone knows what was
// authorized, when, and what was refunded.
var withCharge = []*string{stripe.String("latest_charge")}

// Create begins a payment by card. Other methods can't be authorized first and captured
// later, or answer only after days, when the hold is long over.
func (p *Provider) Create(ctx context.Context, c payment.Creation) (payment.Payment, error) {
	if unit := foreignUnits[c.Amount.Currency]; unit != "" {
		return payment.Payment{}, &payment.Error{Kind: payment.KindRefused, Code: CodeForeignUnit, Cause: errors.New(unit)}
	}
	params := &stripe.PaymentIntentCreateParams{
		Amount:             stripe.Int64(c.Amount.AmountMinor),
		Currency:           stripe.String(strings.ToLower(string(c.Amount.Currency))),
		CaptureMethod:      stripe.String(stripe.PaymentIntentCaptureMethodManual),
		PaymentMethodTypes: []*string{stripe.String("card")},
		Metadata:           reference(c.Reservation, c.Attempt),
		Expand:             withCharge,
	}
	params.IdempotencyKey = stripe.String(string(c.Key))
	ctx, cancel := context.WithTimeout(ctx, CallFor)
	defer cancel()
	return understood(p.client.V1PaymentIntents.Create(ctx, params))
}

// LookUp says how a payment stands.
func (p *Provider) LookUp(ctx context.Context, id ledger.PaymentID) (payment.Payment, error) {
	ctx, cancel := context.WithTimeout(ctx, CallFor)
	defer cancel()
	return p.lookUp(ctx, id)
}

func (p *Provider) lookUp(ctx context.Context, id ledger.PaymentID) (payment.Payment, error) {
	params := &stripe.PaymentIntentRetrieveParams{Expand: withCharge}
	return understood(p.client.V1PaymentIntents.Retrieve(ctx, string(id), params))
}

// Capture takes amountMinor of what is authorized.
func (p *Provider) Capture(ctx context.Context, key payment.Key, id ledger.PaymentID, amountMinor int64) (payment.Payment, error) {
	ctx, cancel := context.WithTimeout(ctx, CallFor)
	defer cancel()
	return p.pastSaved(key, func(key payment.Key) (*stripe.PaymentIntent, error) {
		params := &stripe.PaymentIntentCaptureParams{AmountToCapture: stripe.Int64(amountMinor), Expand: withCharge}
		params.IdempotencyKey = stripe.String(string(key))
		return p.client.V1PaymentIntents.Capture(ctx, string(id), params)
	})
}

// Void cancels a payment that is not captured.
func (p *Provider) Void(ctx context.Context, key payment.Key, id ledger.PaymentID) (payment.Payment, error) {
	ctx, cancel := context.WithTimeout(ctx, CallFor)
	defer cancel()
	return p.pastSaved(key, func(key payment.Key) (*stripe.PaymentIntent, error) {
		params := &stripe.PaymentIntentCancelParams{Expand: withCharge}
		params.IdempotencyKey = stripe.String(string(key))
		return p.client.V1PaymentIntents.Cancel(ctx, string(id), params)
	})
}

// pastSaved makes a call, and once more under another key when the answer is a saved
// error. Stripe saves refusals and faults under their key for a day, so a capture that
// came a moment too early would be refused all day. The second call is safe because the
// payment's own status lets a capture or a cancellation happen once, whatever the key is.
func (p *Provider) pastSaved(key payment.Key, call func(payment.Key) (*stripe.PaymentIntent, error)) (payment.Payment, error) {
	intent, err := call(key)
	if replayed(err) {
		intent, err = call(payment.Key(fmt.Sprintf("%s/again/%d", key, p.clock.Now().UnixNano())))
	}
	return understood(intent, err)
}

// Refund gives amountMinor of what was captured back. A refund that carries the key
// already is not made again: Stripe forgets keys after a day, and a second refund is
// money lost. A refund that has failed since is told as refused, with
// payment.CodeRefundFailed.
//
// The payment is looked up after the refund. When only that fails the error is of
// KindUnreachable, which is safe: the repeated call finds the refund.
func (p *Provider) Refund(ctx context.Context, key payment.Key, id ledger.PaymentID, amountMinor int64) (payment.Payment, error) {
	ctx, cancel := context.WithTimeout(ctx, CallFor)
	defer cancel()
	before, err := p.lookUp(ctx, id)
	if err != nil {
		return payment.Payment{}, notRefused(err)
	}
	made, err := p.refundOf(ctx, key, id)
	if err != nil {
		return payment.Payment{}, notRefused(err)
	}
	if made == nil {
		params := &stripe.RefundCreateParams{
			PaymentIntent: stripe.String(string(id)),
			Amount:        stripe.Int64(amountMinor),
			Metadata:      reference(before.Reservation, before.Attempt),
		}
		params.Metadata[metadataKey] = string(key)
		params.IdempotencyKey = stripe.String(string(key))
		if made, err = p.client.V1Refunds.Create(ctx, params); err != nil {
			return payment.Payment{}, meaning(err)
		}
	}
	if made.Status == stripe.RefundStatusFailed || made.Status == stripe.RefundStatusCanceled {
		return payment.Payment{}, &payment.Error{Kind: payment.KindRefused, Code: payment.CodeRefundFailed, Cause: errRefundFailed}
	}
	after, err := p.lookUp(ctx, id)
	return after, notRefused(err)
}

// notRefused is err, unless it says that a look was refused: that says nothing about the
// refund that the look was for, which must not count as refused for good.
func notRefused(err error) error {
	var failure *payment.Error
	if errors.As(err, &failure) && failure.Kind == payment.KindRefused {
		return &payment.Error{Kind: payment.KindUnreachable, Code: failure.Code, Cause: failure.Cause}
	}
	return err
}

// refundOf finds the refund that carries the key; nil if there is none.
func (p *Provider) refundOf(ctx context.Context, key payment.Key, id ledger.PaymentID) (*stripe.Refund, error) {
	params := &stripe.RefundListParams{PaymentIntent: stripe.String(string(id))}
	params.Limit = stripe.Int64(refundsRead)
	params.Single = true
	for refund, err := range p.client.V1Refunds.List(ctx, params).All(ctx) {
		if err != nil {
			return nil, meaning(err)
		}
		if refund.Metadata[metadataKey] == string(key) {
			return refund, nil
		}
	}
	return nil, nil
}

func reference(r ledger.ReservationID, a ledger.AttemptNumber) map[string]string {
	return map[string]string{metadataReservation: string(r), metadataAttempt: strconv.Itoa(int(a))}
}
