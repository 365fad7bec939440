// Package expirytest is a sweep for the tests of what it works with.
package expirytest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"holdfast/shared/expiry"
	"holdfast/shared/lease/leasetest"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

// Store is what a sweep reads, and where it keeps what is known of failures.
type Store interface {
	expiry.Store
	expiry.Parking
}

// MustSweep returns a sweep that ends one hold after the other, alone. A hold that it parks
// fails the test.
func MustSweep(tb testing.TB, store Store, releaser expiry.Releaser, clock system.Clock, pageItems int) *expiry.Sweep {
	tb.Helper()
	logger := slog.New(slog.DiscardHandler)
	ender, err := expiry.NewEnder(expiry.EnderPorts{Releaser: releaser, Parking: store, Failed: noQueue{tb}, Clock: clock, Logger: logger})
	if err != nil {
		tb.Fatal(err)
	}
	sweep, err := expiry.NewSweep(expiry.SweepPorts{
		Store: store, Ender: ender, Leases: leasetest.NewMemory(), Clock: clock, Parallel: systemtest.OneByOne{}, Logger: logger,
	}, expiry.SweepSettings{PageItems: pageItems, ParallelMax: expiry.ParallelMaxDefault})
	if err != nil {
		tb.Fatal(err)
	}
	return sweep
}

// noQueue is a queue that is to get nothing.
type noQueue struct{ tb testing.TB }

func (q noQueue) Send(_ context.Context, body string, _ time.Duration) error {
	q.tb.Errorf("a hold was parked: %s", body)
	return nil
}
