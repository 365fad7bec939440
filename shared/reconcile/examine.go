package reconcile

import (
	"context"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/system"
)

// Reader reads what is looked at again: items strongly consistent, and lists that may lag. A
// dynamo.Store and a memory.Store are both.
type Reader interface {
	// Records returns all that is stored of one thing: itself and its events.
	Records(ctx context.Context, of ledger.RecordsOf) (ledger.Records, error)
	// Holds returns those of these holds that there are.
	Holds(ctx context.Context, ids []ledger.HoldID) ([]ledger.Hold, error)
	HoldsOfOwner(ctx context.Context, owner ledger.OwnerID, page ledger.Page) ([]ledger.Hold, ledger.Cursor, error)
	Quota(ctx context.Context, owner ledger.OwnerID) (ledger.Quota, error)
	Claimed(ctx context.Context, kind ledger.UniquenessKind, value string) (ledger.Uniqueness, bool, error)
	// Due and Parked list what is HELD, and EndedHolds what has ended since a time, and some
	// that ended before.
	Due(ctx context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error)
	Parked(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error)
	EndedHolds(ctx context.Context, shard int, since time.Time, page ledger.Page) ([]ledger.HoldID, ledger.Cursor, error)
}

// Payments lists the payments that the provider has. A payment.Lister is one.
type Payments = payment.Lister

// Examiner looks again at what a tally makes suspicious.
type Examiner struct {
	Store    Reader
	Payments Payments // nil for an audit that asks no provider
	Clock    system.Clock
	Wait     func(context.Context, time.Duration) error
}

// Examine finds out which suspects are findings.
func (e *Examiner) Examine(_ context.Context, _ *Tally) (Report, error) { return Report{}, nil }
