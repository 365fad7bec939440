package main

import (
	"context"
	"log/slog"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"holdfast/shared/config"
	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/stripe"
	"holdfast/shared/system"
)

// keyedProvider is Stripe with the API key as it is now. The key is read when the first
// payment needs it, and not at the start: a secret that has no value yet, or can't be read
// for a while, must not take holds and availability down. A key that was changed is used
// without a new deployment. It is safe for concurrent use.
type keyedProvider struct {
	secrets func(context.Context) (config.PaymentSecrets, error)
	baseURL string // "" is Stripe's own
	clock   system.Clock

	mutex   sync.Mutex
	key     payment.Secret
	current *stripe.Provider // nil before the first key
}

var _ payment.Provider = (*keyedProvider)(nil)

// newProvider is the payment provider of this stage. A run on one machine that does not
// name both of its own servers has none: it must never reach the real ones.
func newProvider(c config.Config, shared aws.Config, clock system.Clock, logger *slog.Logger) payment.Provider {
	if c.Local() && (c.LocalSecretsEndpoint == "" || c.LocalStripeEndpoint == "") {
		return nil
	}
	vault := secretsmanager.NewFromConfig(shared, func(o *secretsmanager.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalSecretsEndpoint)
		}
	})
	return &keyedProvider{
		secrets: config.NewSecretCache(c, vault, clock, logger).PaymentSecrets,
		baseURL: c.LocalStripeEndpoint, clock: clock,
	}
}

// provider is Stripe with the key of the moment. Without a key nothing was asked, which to
// a caller is the same as a provider that does not answer.
func (k *keyedProvider) provider(ctx context.Context) (*stripe.Provider, error) {
	secrets, err := k.secrets(ctx)
	if err != nil {
		return nil, &payment.Error{Kind: payment.KindUnreachable, Code: "no_api_key", Cause: err}
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.current != nil && k.key == secrets.APIKey {
		return k.current, nil
	}
	fresh, err := stripe.New(stripe.Options{APIKey: secrets.APIKey, BaseURL: k.baseURL, Clock: k.clock})
	if err != nil {
		return nil, &payment.Error{Kind: payment.KindUnreachable, Code: "no_api_key", Cause: err}
	}
	k.key, k.current = secrets.APIKey, fresh
	return fresh, nil
}

// Create begins a payment.
func (k *keyedProvider) Create(ctx context.Context, c payment.Creation) (payment.Payment, error) {
	p, err := k.provider(ctx)
	if err != nil {
		return payment.Payment{}, err
	}
	return p.Create(ctx, c)
}

// LookUp says how a payment stands.
func (k *keyedProvider) LookUp(ctx context.Context, id ledger.PaymentID) (payment.Payment, error) {
	p, err := k.provider(ctx)
	if err != nil {
		return payment.Payment{}, err
	}
	return p.LookUp(ctx, id)
}

// Capture takes amountMinor of what is authorized.
func (k *keyedProvider) Capture(ctx context.Context, key payment.Key, id ledger.PaymentID, amountMinor int64) (payment.Payment, error) {
	p, err := k.provider(ctx)
	if err != nil {
		return payment.Payment{}, err
	}
	return p.Capture(ctx, key, id, amountMinor)
}

// Void makes sure that the payment can't succeed any more.
func (k *keyedProvider) Void(ctx context.Context, key payment.Key, id ledger.PaymentID) (payment.Payment, error) {
	p, err := k.provider(ctx)
	if err != nil {
		return payment.Payment{}, err
	}
	return p.Void(ctx, key, id)
}

// Refund gives amountMinor of what was captured back.
func (k *keyedProvider) Refund(ctx context.Context, key payment.Key, id ledger.PaymentID, amountMinor int64) (payment.Payment, error) {
	p, err := k.provider(ctx)
	if err != nil {
		return payment.Payment{}, err
	}
	return p.Refund(ctx, key, id, amountMinor)
}
