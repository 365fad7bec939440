package stripe

import (
	"context"
	"sync"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/system"
)

// codeNoKey is the code of a call that was not made, because there was no key for it.
const codeNoKey = "no_api_key"

// Keyed is Stripe with the API key as it is now. The key is read when a call needs it, and
// not at the start: a secret that has no value yet, or can't be read for a while, must not
// take anything else down. A key that was changed is used without a new deployment. It is
// safe for concurrent use.
type Keyed struct {
	key     func(context.Context) (payment.Secret, error)
	options Options

	mutex   sync.Mutex
	current *Provider // nil before the first key
	with    payment.Secret
}

var (
	_ payment.Provider = (*Keyed)(nil)
	_ payment.Lister   = (*Keyed)(nil)
)

// NewKeyed returns a Keyed that asks key before each call; key is to keep what it has read.
// BaseURL is as in Options.
func NewKeyed(key func(context.Context) (payment.Secret, error), baseURL string, clock system.Clock) *Keyed {
	return &Keyed{key: key, options: Options{BaseURL: baseURL, Clock: clock}}
}

// provider is Stripe with the key of the moment. Without a key nothing was asked, which to
// a caller is the same as a provider that does not answer.
func (k *Keyed) provider(ctx context.Context) (*Provider, error) {
	key, err := k.key(ctx)
	if err != nil {
		return nil, &payment.Error{Kind: payment.KindUnreachable, Code: codeNoKey, Cause: err}
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.current != nil && k.with == key {
		return k.current, nil
	}
	options := k.options
	options.APIKey = key
	fresh, err := New(options)
	if err != nil {
		return nil, &payment.Error{Kind: payment.KindUnreachable, Code: codeNoKey, Cause: err}
	}
	k.current, k.with = fresh, key
	return fresh, nil
}

// Create begins a payment.
func (k *Keyed) Create(ctx context.Context, c payment.Creation) (payment.Payment, error) {
	p, err := k.provider(ctx)
	if err != nil {
		return payment.Payment{}, err
	}
	return p.Create(ctx, c)
}

// LookUp says how a payment stands.
func (k *Keyed) LookUp(ctx context.Context, id ledger.PaymentID) (payment.Payment, error) {
	p, err := k.provider(ctx)
	if err != nil {
		return payment.Payment{}, err
	}
	return p.LookUp(ctx, id)
}

// Capture takes amountMinor of what is authorized.
func (k *Keyed) Capture(ctx context.Context, key payment.Key, id ledger.PaymentID, amountMinor int64) (payment.Payment, error) {
	p, err := k.provider(ctx)
	if err != nil {
		return payment.Payment{}, err
	}
	return p.Capture(ctx, key, id, amountMinor)
}

// Void makes sure that the payment can't succeed any more.
func (k *Keyed) Void(ctx context.Context, key payment.Key, id ledger.PaymentID) (payment.Payment, error) {
	p, err := k.provider(ctx)
	if err != nil {
		return payment.Payment{}, err
	}
	return p.Void(ctx, key, id)
}

// Refund gives amountMinor of what was captured back.
func (k *Keyed) Refund(ctx context.Context, key payment.Key, id ledger.PaymentID, amountMinor int64) (payment.Payment, error) {
	p, err := k.provider(ctx)
	if err != nil {
		return payment.Payment{}, err
	}
	return p.Refund(ctx, key, id, amountMinor)
}

// Payments lists the payments that were begun at since or later.
func (k *Keyed) Payments(ctx context.Context, since time.Time, after ledger.Cursor) ([]payment.Listed, ledger.Cursor, error) {
	p, err := k.provider(ctx)
	if err != nil {
		return nil, "", err
	}
	return p.Payments(ctx, since, after)
}
