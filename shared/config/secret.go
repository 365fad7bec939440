package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"holdfast/shared/payment"
	"holdfast/shared/system"
)

const (
	// WebhookSecretsMax bounds the secrets that a signature is tried with. A change of the
	// secret needs two for a while; Stripe lets an old one live for a day at most.
	WebhookSecretsMax = 4
	// SecretLife is how long a secret that was read is used before it is read again. It is
	// the longest that a new one waits to be seen, and one read in five minutes for each
	// running process costs cents a month.
	SecretLife = 5 * time.Minute
	// SecretRetryAfter is the pause after a read that failed while an older value is still
	// used, so that an outage of Secrets Manager does not slow down every request.
	SecretRetryAfter = 30 * time.Second
	// SecretOldest bounds the use of an older value while it can't be read anew. Outages of
	// the service are shorter; a value that was taken back is worth no longer wait.
	SecretOldest = time.Hour
)

// ErrPaymentSecret says that the payment secret can't be used: it has no value yet, or one
// that is not in its form. Only a person can mend it. The text tells what is wrong, and
// nothing of the value.
var ErrPaymentSecret = errors.New(`the payment secret must hold {"api_key":"…","webhook_secrets":["…"]}`)

// PaymentSecrets are what the payment provider knows us by, and what we know it by.
type PaymentSecrets struct {
	// APIKey goes with each call to the provider.
	APIKey payment.Secret
	// Webhook has the secrets of which one signs each webhook: one, or two while it is
	// being changed. There is at least one.
	Webhook []payment.Secret
}

// SecretReader is the one call of Secrets Manager that is needed. *secretsmanager.Client
// is one.
type SecretReader interface {
	GetSecretValue(ctx context.Context, in *secretsmanager.GetSecretValueInput, options ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error)
}

// PaymentSecrets reads the payment secret, once. Its error is ErrPaymentSecret if the value
// is missing or malformed, and otherwise that of the call. No error has anything of the
// value in it.
func (c Config) PaymentSecrets(ctx context.Context, client SecretReader) (PaymentSecrets, error) {
	out, err := client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: aws.String(c.PaymentSecretID)})
	if missing := (*types.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return PaymentSecrets{}, fmt.Errorf("%w: there is no secret of that name, or it has no value yet", ErrPaymentSecret)
	}
	if err != nil {
		return PaymentSecrets{}, fmt.Errorf("read the payment secret: %w", err)
	}
	return parsePaymentSecrets(aws.ToString(out.SecretString))
}

// parsePaymentSecrets wraps no error of the JSON package: those repeat what they read.
func parsePaymentSecrets(text string) (PaymentSecrets, error) {
	var read struct {
		APIKey  string   `json:"api_key"`
		Webhook []string `json:"webhook_secrets"`
	}
	if json.Unmarshal([]byte(text), &read) != nil {
		return PaymentSecrets{}, fmt.Errorf("%w: it is not that JSON object", ErrPaymentSecret)
	}
	if !isKey(read.APIKey) {
		return PaymentSecrets{}, fmt.Errorf("%w: api_key is missing, empty, or has spaces or control characters", ErrPaymentSecret)
	}
	if n := len(read.Webhook); n < 1 || n > WebhookSecretsMax {
		return PaymentSecrets{}, fmt.Errorf("%w: webhook_secrets has %d elements, want 1 to %d", ErrPaymentSecret, n, WebhookSecretsMax)
	}
	secrets := PaymentSecrets{APIKey: payment.NewSecret(read.APIKey)}
	for i, secret := range read.Webhook {
		// An empty secret would let everybody sign.
		if !isKey(secret) {
			return PaymentSecrets{}, fmt.Errorf("%w: webhook_secrets[%d] is empty, or has spaces or control characters", ErrPaymentSecret, i)
		}
		secrets.Webhook = append(secrets.Webhook, payment.NewSecret(secret))
	}
	return secrets, nil
}

// isKey reports whether text can be a key: a line end that was copied along would make
// each call fail, and each signature wrong, without a word about why.
func isKey(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == unicode.ReplacementChar
	})
}

// SecretCache keeps the payment secret for SecretLife, so that a changed one is seen by
// running processes and yet not every request waits for a read. It is safe for concurrent
// use; a caller that comes while another one reads waits for that read, which the AWS
// client bounds.
type SecretCache struct {
	read   func(context.Context) (PaymentSecrets, error)
	clock  system.Clock
	logger *slog.Logger

	mu       sync.Mutex
	kept     PaymentSecrets
	readAt   time.Time // zero before the first success
	nextRead time.Time
}

// NewSecretCache returns a cache of c.PaymentSecrets. It reads nothing yet.
func NewSecretCache(c Config, client SecretReader, clock system.Clock, logger *slog.Logger) *SecretCache {
	return &SecretCache{
		read:  func(ctx context.Context) (PaymentSecrets, error) { return c.PaymentSecrets(ctx, client) },
		clock: clock, logger: logger,
	}
}

// PaymentSecrets returns the secret as it was at most SecretLife ago. If it can't be read
// anew, the older one is used for up to SecretOldest, and the log is told: a payment that
// is refused because of an outage elsewhere is worse than a key that is an hour old. The
// error is that of Config.PaymentSecrets, and is not kept.
func (s *SecretCache) PaymentSecrets(ctx context.Context) (PaymentSecrets, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if now.Before(s.nextRead) {
		return s.kept, nil
	}
	secrets, err := s.read(ctx)
	if err == nil {
		s.kept, s.readAt, s.nextRead = secrets, now, now.Add(SecretLife)
		return secrets, nil
	}
	if s.readAt.IsZero() || now.Sub(s.readAt) >= SecretOldest {
		return PaymentSecrets{}, err
	}
	s.nextRead = now.Add(SecretRetryAfter)
	s.logger.WarnContext(ctx, "payment secret can't be read anew; the older one is used", "read_at", s.readAt, "error", err)
	return s.kept, nil
}
