package leasetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast/shared/lease"
)

// Memory is a lease.Leases in memory, made with NewMemory. It is safe for concurrent use.
type Memory struct {
	mutex  sync.Mutex
	leases map[place]lease.Lease
	broken error
	takes  int
	renews int
}

type place struct {
	kind  lease.Kind
	shard int
}

var _ lease.Leases = (*Memory)(nil)

// NewMemory returns leases of which nobody has any.
func NewMemory() *Memory { return &Memory{leases: make(map[place]lease.Lease)} }

// Break makes every call from now on fail with err; nil repairs it.
func (m *Memory) Break(err error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.broken = err
}

// Takes is how often TakeLease was called.
func (m *Memory) Takes() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.takes
}

// Renews is how often RenewLease was called.
func (m *Memory) Renews() int {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.renews
}

// Stored is the lease of a shard as it stands, which is zero if it was never taken.
func (m *Memory) Stored(kind lease.Kind, shard int) lease.Lease {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.leases[place{kind, shard}]
}

// begin locks the leases, unless the call fails.
func (m *Memory) begin(ctx context.Context) error {
	m.mutex.Lock()
	err := ctx.Err()
	if err == nil {
		err = m.broken
	}
	if err != nil {
		m.mutex.Unlock()
		return fmt.Errorf("leases in memory: %w", err)
	}
	return nil
}

// TakeLease implements lease.Leases.
func (m *Memory) TakeLease(ctx context.Context, kind lease.Kind, shard int, worker lease.Worker, now, until time.Time) (lease.Lease, bool, error) {
	if err := m.begin(ctx); err != nil {
		return lease.Lease{}, false, err
	}
	defer m.mutex.Unlock()
	m.takes++
	stored, taken := m.leases[place{kind, shard}]
	if taken && stored.Worker != worker && stored.Until.After(now) {
		return stored, false, nil
	}
	next := lease.Lease{Kind: kind, Shard: shard, Worker: worker, Fence: stored.Fence + 1, Until: until}
	m.leases[place{kind, shard}] = next
	return next, true, nil
}

// RenewLease implements lease.Leases.
func (m *Memory) RenewLease(ctx context.Context, held lease.Lease, until time.Time) (lease.Lease, bool, error) {
	if err := m.begin(ctx); err != nil {
		return held, false, err
	}
	defer m.mutex.Unlock()
	m.renews++
	stored := m.leases[place{held.Kind, held.Shard}]
	if stored.Worker != held.Worker || stored.Fence != held.Fence {
		return held, false, nil
	}
	stored.Until = until
	m.leases[place{held.Kind, held.Shard}] = stored
	return stored, true, nil
}

// ReturnLease implements lease.Leases.
func (m *Memory) ReturnLease(ctx context.Context, held lease.Lease, now time.Time) error {
	if err := m.begin(ctx); err != nil {
		return err
	}
	defer m.mutex.Unlock()
	stored := m.leases[place{held.Kind, held.Shard}]
	if stored.Worker == held.Worker && stored.Fence == held.Fence && stored.Until.After(now) {
		stored.Until = now
		m.leases[place{held.Kind, held.Shard}] = stored
	}
	return nil
}
