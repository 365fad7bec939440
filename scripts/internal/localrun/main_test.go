package localrun_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/payment"
	"holdfast/shared/reconcile"
)

const (
	// startMax bounds the start of the System, with its builds.
	startMax = 10 * time.Minute
	// sweepNever is a schedule whose first tick comes after the tests: they start the
	// expiry function themselves, when they want it.
	sweepNever = 24 * time.Hour
	// auditEvery leaves an audit twice the time that its looks take on a machine at rest. One
	// that takes longer is given up, and a test waits for the next.
	auditEvery = 2 * reconcile.IndexLagMax
)

// paymentKeys are those of the System. The secret of webhooks is being changed: the second
// one was good before, and is still taken. They are known here so that tests can sign, and
// can look whether a key is where it must not be.
var paymentKeys = localrun.PaymentKeys{
	API: payment.NewSecret("sk_test_canary5b1e7d90"),
	Webhook: []payment.Secret{
		payment.NewSecret("whsec_canary81f0c2a4new"), payment.NewSecret("whsec_canary3de95b77old"),
	},
}

// shared is the one System of this package. A test binary has no other place that TestMain
// and the tests share.
var shared struct {
	once     sync.Once
	system   *localrun.System
	observer *observer
	numbers  numbers
	err      error
}

// mustSystem returns the System of all tests, and starts it for the first one. What a test
// makes has names of its own, so that tests do not see each other's slots.
func mustSystem(t *testing.T) (*localrun.System, *observer) {
	t.Helper()
	shared.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), startMax)
		defer cancel()
		shared.observer = newObserver()
		shared.system, shared.err = localrun.Start(ctx, localrun.Options{
			SweepEvery: sweepNever, AuditEvery: auditEvery, QueueRetryAfter: time.Second, OwnEngine: true, Between: shared.observer.between,
			PaymentKeys: paymentKeys, Measured: shared.numbers.note, Progress: os.Stderr,
		})
	})
	if shared.err != nil {
		t.Fatalf("start the system of the tests: %v", shared.err)
	}
	return shared.system, shared.observer
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.system != nil {
		shared.observer.close()
		if err := shared.system.Close(); err != nil {
			fmt.Fprintln(os.Stderr, "end the system of the tests:", err)
			code = 1
		}
	}
	os.Exit(code)
}
