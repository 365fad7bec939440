package main

import (
	"context"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"holdfast/shared/config"
	"holdfast/shared/payment"
	"holdfast/shared/payment/stripe"
	"holdfast/shared/system"
)

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
	secrets := config.NewSecretCache(c, vault, clock, logger)
	key := func(ctx context.Context) (payment.Secret, error) {
		all, err := secrets.PaymentSecrets(ctx)
		return all.APIKey, err
	}
	return stripe.NewKeyed(key, c.LocalStripeEndpoint, clock)
}
