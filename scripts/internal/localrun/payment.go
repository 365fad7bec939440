package localrun

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"time"

	"holdfast/shared/payment"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

// webhookPath is the route that the provider tells of what happens.
const webhookPath = "/v1/webhooks/stripe"

// keyPrefix and webhookSecretPrefix make the keys of a run look like Stripe's test keys,
// which its own client library checks.
const (
	keyPrefix           = "sk_test_"
	webhookSecretPrefix = "whsec_"
	// nameBase writes a number in digits and letters.
	nameBase = 36
)

// startPayments starts the payment provider, and puts the keys under which it knows us
// into the payment secret, where the functions read them. Unless the options say otherwise,
// each run has keys of its own. The provider begins without a payment, and the table may
// have those of earlier runs: its ids are the run's own, so that none is taken for another.
func (s *System) startPayments(ctx context.Context) error {
	keys := s.options.PaymentKeys
	if keys.API.Empty() {
		keys.API = payment.NewSecret(randomText(keyPrefix))
	}
	if len(keys.Webhook) == 0 {
		keys.Webhook = []payment.Secret{payment.NewSecret(randomText(webhookSecretPrefix))}
	}
	if err := s.putPaymentSecret(ctx, keys); err != nil {
		return err
	}
	address := ""
	if s.options.Port != 0 {
		address = net.JoinHostPort(host, strconv.Itoa(s.options.Port+1))
	}
	started, err := stripetest.Start(stripetest.Options{
		Address: address, APIKey: keys.API, WebhookURL: s.BaseURL + webhookPath,
		WebhookSecrets: keys.Webhook[:1], Automatic: true, Run: runName(system.RealClock{}.Now()), Clock: system.RealClock{},
	})
	if err != nil {
		return fmt.Errorf("start the payment provider: %w", err)
	}
	s.Payments = started
	s.onClose(started.Close)
	s.tell("a payment provider that speaks Stripe's API, and knows no payment of an earlier run, is running on %s", started.URL())
	return nil
}

// putPaymentSecret gives the payment secret the form that package config reads.
func (s *System) putPaymentSecret(ctx context.Context, keys PaymentKeys) error {
	webhook := make([]string, len(keys.Webhook))
	for i, secret := range keys.Webhook {
		webhook[i] = secret.Reveal()
	}
	value, err := json.Marshal(map[string]any{"api_key": keys.API.Reveal(), "webhook_secrets": webhook})
	if err != nil {
		return fmt.Errorf("write the payment secret: %w", err)
	}
	return s.cloud.PutSecret(ctx, string(topology.ResourcePaymentSecret), string(value))
}

// runName is another one for each run of a folder, which one run at a time may use. It ends
// with a letter, so that what is counted after it stays apart.
func runName(startedAt time.Time) string {
	return strconv.FormatInt(startedAt.UnixMilli(), nameBase) + "x"
}

func randomText(prefix string) string {
	bits := system.RealRandom{}.Bits128()
	return prefix + hex.EncodeToString(bits[:])
}
