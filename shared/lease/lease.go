// Package lease deals work out over workers, so that two of them do not do the same.
//
// The problem it solves: many sweeps may run at once, and each could do all of the work.
// That would be right, because every write is under a condition, and it would be waste:
// all but one would lose each race. A [Lease] says which worker is at a shard now. It
// ends by itself, so that a worker that dies leaves nothing locked behind, and it has a
// fencing number that grows with every taking, so that a worker that was thought dead
// finds out that another has taken over.
//
// Safety never rests on a lease: clocks differ, and a worker may stop for a minute
// between looking at its lease and writing. What is written is decided by the conditions
// of the write.
package lease

import (
	"context"
	"time"
)

// Kind names a kind of work.
type Kind string

// The kinds.
const (
	KindExpiry  Kind = "expiry"  // ending the due holds of a shard
	KindArchive Kind = "archive" // archiving the ended records of a shard
)

// Fence is the fencing number of a lease: it grows with every taking.
type Fence int64

// Worker names who takes a lease: one run of a function.
type Worker string

// Lease is one worker's right to work on one shard, until it ends.
type Lease struct {
	Kind   Kind
	Shard  int
	Worker Worker
	Fence  Fence
	Until  time.Time
}

// Leases keeps leases. A dynamo.Store is one. Every method may be repeated after any
// error: the same worker that takes what it has gets it again, with a new fencing number.
type Leases interface {
	// TakeLease gives the shard to the worker until a time, if nobody has it at now, or the
	// worker itself has. It reports false, with the lease as it stands, if another has it.
	TakeLease(ctx context.Context, kind Kind, shard int, worker Worker, now, until time.Time) (Lease, bool, error)
	// RenewLease makes the lease last longer. It reports false if another has taken it.
	RenewLease(ctx context.Context, lease Lease, until time.Time) (Lease, bool, error)
	// ReturnLease ends the lease early. It does nothing if another has taken it.
	ReturnLease(ctx context.Context, lease Lease, now time.Time) error
}
