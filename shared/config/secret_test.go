package config_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"holdfast/shared/config"
	"holdfast/shared/system/systemtest"
)

// vault is Secrets Manager with one secret, which can be told to fail.
type vault struct {
	mu    sync.Mutex
	value string
	err   error
	asked int
	name  string
}

func (v *vault) GetSecretValue(_ context.Context, in *secretsmanager.GetSecretValueInput, _ ...func(*secretsmanager.Options)) (*secretsmanager.GetSecretValueOutput, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked++
	v.name = aws.ToString(in.SecretId)
	if v.err != nil {
		return nil, v.err
	}
	return &secretsmanager.GetSecretValueOutput{SecretString: aws.String(v.value)}, nil
}

const goodSecret = `{"api_key":"key-marker","webhook_secrets":["hook-marker-1","hook-marker-2"],"note":"kept by the shop"}`

var withSecret = config.Config{PaymentSecretID: "holdfast/payment"}

func TestPaymentSecretsAreRead(t *testing.T) {
	v := &vault{value: goodSecret}
	got, err := withSecret.PaymentSecrets(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	if v.name != "holdfast/payment" || got.APIKey.Reveal() != "key-marker" || len(got.Webhook) != 2 ||
		got.Webhook[0].Reveal() != "hook-marker-1" || got.Webhook[1].Reveal() != "hook-marker-2" {
		t.Errorf("read %q of %s", got.APIKey.Reveal(), v.name)
	}
	// P12: whoever prints them shows nothing.
	if text := fmt.Sprintf("%v %+v %#v", got, got, got); strings.Contains(text, "marker") {
		t.Errorf("printing shows %s", text)
	}
}

// P12: what is wrong is told, and nothing of the value.
func TestP12_MalformedSecretsAreToldWithoutTheirValue(t *testing.T) {
	for value, want := range map[string]string{
		``:             "not that JSON object",
		`marker`:       "not that JSON object",
		`["marker"]`:   "not that JSON object",
		`{"api_key":1`: "not that JSON object",
		`{"api_key":"marker","webhook_secrets":"marker"}`:                   "not that JSON object",
		`{"api_key":918273645,"webhook_secrets":["marker"]}`:                "not that JSON object",
		`{"webhook_secrets":["marker"]}`:                                    "api_key",
		`{"api_key":"","webhook_secrets":["marker"]}`:                       "api_key",
		`{"api_key":"marker\n","webhook_secrets":["marker"]}`:               "api_key",
		`{"api_key":"mar ker","webhook_secrets":["marker"]}`:                "api_key",
		`{"api_key":"marker"}`:                                              "webhook_secrets has 0",
		`{"api_key":"marker","webhook_secrets":[]}`:                         "webhook_secrets has 0",
		`{"api_key":"marker","webhook_secrets":["a","b","c","d","marker"]}`: "webhook_secrets has 5",
		`{"api_key":"marker","webhook_secrets":["marker",""]}`:              "webhook_secrets[1]",
		`{"api_key":"marker","webhook_secrets":["marker ",""]}`:             "webhook_secrets[0]",
	} {
		got, err := withSecret.PaymentSecrets(t.Context(), &vault{value: value})
		if !errors.Is(err, config.ErrPaymentSecret) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v does not tell %q", value, err, want)
			continue
		}
		if strings.Contains(err.Error(), "marker") || strings.Contains(err.Error(), "918273645") {
			t.Errorf("%q: the error repeats the value: %v", value, err)
		}
		if !got.APIKey.Empty() || got.Webhook != nil {
			t.Errorf("%q: half of it is used", value)
		}
	}
}

func TestASecretWithoutAValueIsTold(t *testing.T) {
	_, err := withSecret.PaymentSecrets(t.Context(), &vault{err: &types.ResourceNotFoundException{}})
	if !errors.Is(err, config.ErrPaymentSecret) || !strings.Contains(err.Error(), "no value yet") {
		t.Errorf("error %v", err)
	}
	denied := errors.New("told to fail")
	if _, err := withSecret.PaymentSecrets(t.Context(), &vault{err: denied}); !errors.Is(err, denied) || errors.Is(err, config.ErrPaymentSecret) {
		t.Errorf("error %v, want that of the call", err)
	}
}

// A changed secret is seen after SecretLife without a deployment, and not looked for before.
func TestAChangedSecretIsSeen(t *testing.T) {
	v := &vault{value: goodSecret}
	clock := systemtest.NewClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	cache := config.NewSecretCache(withSecret, v, clock, slog.New(slog.DiscardHandler))
	want := func(key string, asked int) {
		t.Helper()
		got, err := cache.PaymentSecrets(t.Context())
		if err != nil || got.APIKey.Reveal() != key || v.asked != asked {
			t.Errorf("got %q after %d reads, %v; want %q after %d", got.APIKey.Reveal(), v.asked, err, key, asked)
		}
	}
	want("key-marker", 1)
	v.value = strings.ReplaceAll(goodSecret, "key-marker", "new-marker")
	clock.Advance(config.SecretLife - time.Millisecond)
	want("key-marker", 1)
	clock.Advance(time.Millisecond)
	want("new-marker", 2)
	want("new-marker", 2)
}

// While the secret can't be read, or somebody has broken it, the older one is used for a
// bounded time, and the log is told each time that a read failed.
func TestAnOlderSecretOutlivesAnOutage(t *testing.T) {
	v := &vault{err: errors.New("told to fail")}
	clock := systemtest.NewClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC))
	var log bytes.Buffer
	cache := config.NewSecretCache(withSecret, v, clock, slog.New(slog.NewTextHandler(&log, nil)))
	for asked := 1; asked <= 2; asked++ {
		if _, err := cache.PaymentSecrets(t.Context()); err == nil || v.asked != asked {
			t.Errorf("the first read failed: %v after %d reads, want an error after %d", err, v.asked, asked)
		}
	}
	v.value, v.err = goodSecret, nil
	if _, err := cache.PaymentSecrets(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.value = `{"api_key":"broken-marker"}`
	clock.Advance(config.SecretLife)
	for _, step := range []time.Duration{0, config.SecretRetryAfter - time.Millisecond, time.Millisecond} {
		clock.Advance(step)
		if got, err := cache.PaymentSecrets(t.Context()); err != nil || got.APIKey.Reveal() != "key-marker" {
			t.Errorf("%q, %v; want the older one", got.APIKey.Reveal(), err)
		}
	}
	if v.asked != 5 || strings.Count(log.String(), "can't be read anew") != 2 || strings.Contains(log.String(), "broken-marker") {
		t.Errorf("%d reads, want 5; the log says:\n%s", v.asked, log.String())
	}
	clock.Advance(config.SecretOldest)
	if got, err := cache.PaymentSecrets(t.Context()); !errors.Is(err, config.ErrPaymentSecret) || !got.APIKey.Empty() {
		t.Errorf("after %s: %q, %v; want the error", config.SecretOldest, got.APIKey.Reveal(), err)
	}
	v.value = goodSecret
	if _, err := cache.PaymentSecrets(t.Context()); err != nil {
		t.Errorf("mended, and still: %v", err)
	}
}
