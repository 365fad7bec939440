// Package expirytest is a sweep for the tests of what it works with.
package expirytest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"holdfast/shared/expiry"
	"holdfast/shared/lease"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

// Parts are what a sweep works with in a test.
type Parts struct {
	Store    expiry.Store
	Parking  expiry.Parking
	Leases   lease.Leases
	Releaser expiry.Releaser
	Clock    system.Clock
}

// MustSweep returns a sweep that ends one hold after the other, without helpers, and reads
// pages of so many items. A hold that it parks fails the test.
func MustSweep(tb testing.TB, parts Parts, pageItems int) *expiry.Sweep {
	tb.Helper()
	logger := slog.New(slog.DiscardHandler)
	ender, err := expiry.NewEnder(expiry.EnderPorts{Releaser: parts.Releaser, Parking: parts.Parking, Failed: noQueue{tb}, Clock: parts.Clock, Logger: logger})
	if err != nil {
		tb.Fatal(err)
	}
	sweep, err := expiry.NewSweep(expiry.SweepPorts{
		Store: parts.Store, Ender: ender, Leases: parts.Leases, Clock: parts.Clock, Parallel: systemtest.OneByOne{}, Logger: logger,
	}, expiry.SweepSettings{PageItems: pageItems, ParallelMax: expiry.ParallelMaxDefault})
	if err != nil {
		tb.Fatal(err)
	}
	return sweep
}

// noQueue is a queue that is to get nothing.
type noQueue struct{ tb testing.TB }

// Send implements expiry.Sender.
func (q noQueue) Send(_ context.Context, body string, _ time.Duration) error {
	q.tb.Errorf("a hold was parked: %s", body)
	return nil
}
