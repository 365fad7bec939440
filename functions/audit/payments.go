package main

import (
	"context"
	"errors"
	"log/slog"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"holdfast/shared/config"
	"holdfast/shared/payment"
	"holdfast/shared/payment/stripe"
	"holdfast/shared/system"
)

// newPayments lists what the payment provider of this stage has. A run on one machine must
// name both of its own servers: it must never reach the real ones.
func newPayments(c config.Config, shared aws.Config, clock system.Clock, logger *slog.Logger) (payment.Lister, error) {
	if c.Local() && (c.LocalSecretsEndpoint == "" || c.LocalStripeEndpoint == "") {
		return nil, errors.New("a local run must name its servers of secrets and payments")
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
	return stripe.NewKeyed(key, c.LocalStripeEndpoint, clock), nil
}
