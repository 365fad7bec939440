package expiry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/expiry"
	"holdfast/shared/expiry/expirytest"
	"holdfast/shared/lease"
	"holdfast/shared/lease/leasetest"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/system/systemtest"
)

// gatedStore is a store that a sweeper of a crew can be killed at.
type gatedStore struct {
	*memory.Store
	gate    *expirytest.Gate
	refused *int // counts the commits that were too late
}

type held struct {
	hold ledger.Hold
	err  error
}

func (s gatedStore) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	got := expirytest.Pass(s.gate, func() (h held) {
		h.hold, h.err = s.Store.Hold(ctx, id)
		return h
	})
	return got.hold, got.err
}

func (s gatedStore) Commit(ctx context.Context, c ledger.Change) error {
	return expirytest.Pass(s.gate, func() error {
		err := s.Store.Commit(ctx, c)
		if late := (*ledger.Refused)(nil); errors.As(err, &late) {
			*s.refused++
		}
		return err
	})
}

type listed struct {
	entries []ledger.DueHold
	next    ledger.Cursor
	err     error
}

func (s gatedStore) Due(ctx context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
	got := expirytest.Pass(s.gate, func() (l listed) {
		l.entries, l.next, l.err = s.Store.Due(ctx, shard, now, page)
		return l
	})
	return got.entries, got.next, got.err
}

// gatedLeases are leases that a sweeper of a crew can be killed at.
type gatedLeases struct {
	*leasetest.Memory
	gate *expirytest.Gate
}

type leased struct {
	lease lease.Lease
	is    bool
	err   error
}

func (l gatedLeases) TakeLease(ctx context.Context, kind lease.Kind, shard int, worker lease.Worker, now, until time.Time) (lease.Lease, bool, error) {
	got := expirytest.Pass(l.gate, func() (g leased) {
		g.lease, g.is, g.err = l.Memory.TakeLease(ctx, kind, shard, worker, now, until)
		return g
	})
	return got.lease, got.is, got.err
}

func (l gatedLeases) RenewLease(ctx context.Context, held lease.Lease, until time.Time) (lease.Lease, bool, error) {
	got := expirytest.Pass(l.gate, func() (g leased) {
		g.lease, g.is, g.err = l.Memory.RenewLease(ctx, held, until)
		return g
	})
	return got.lease, got.is, got.err
}

func (l gatedLeases) ReturnLease(ctx context.Context, held lease.Lease, now time.Time) error {
	return expirytest.Pass(l.gate, func() error { return l.Memory.ReturnLease(ctx, held, now) })
}

// Case B2 at its worst: two sweepers work through 10,000 overdue holds and are killed 100
// times, before and after any call, with leases in their hands. Each hold ends once, with
// one event, and the stock is exact. So it is when leases can't be kept, and both are at
// the same holds all the time.
func TestCaseB2_KilledSweepersEndEachHoldOnce(t *testing.T) {
	const seed = 7
	for name, test := range map[string]struct {
		holds, kills int
		leases       error
	}{
		"with leases":    {holds: 10_000, kills: 100},
		"without leases": {holds: 2_000, kills: 20, leases: errors.New("throttled")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ledger.Units(test.holds))
			w.overdue(test.holds)
			w.leases.Break(test.leases)
			refused, runs := 0, uint64(seed)
			expirytest.NewCrew(t, seed, w.clock, test.kills).Work(2, func(gate *expirytest.Gate) *expiry.Sweep {
				runs++
				store := gatedStore{w.store, gate, &refused}
				releaser := commands.New(store, w.clock, systemtest.NewRandom(runs))
				return w.sweepWith(expiry.SweepPorts{
					Store: store, Ender: w.ender(releaser), Leases: gatedLeases{w.leases, gate},
				}, expiry.SweepSettings{})
			})
			if test.leases != nil && refused == 0 {
				t.Error("the sweepers never met at a hold, so this shows nothing")
			}
			w.mustBeExpired()
			for _, id := range w.ids {
				if n := w.endings(id); n != 1 {
					t.Errorf("hold %s has %d events of its end", id, n)
				}
			}
			ledgertest.CheckBooks(t, w.store, []ledger.SlotID{slotID}, w.ids)
		})
	}
}
