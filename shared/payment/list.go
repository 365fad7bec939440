package payment

import (
	"context"
	"time"

	"holdfast/shared/ledger"
)

// Listed is one payment of a provider's list.
type Listed struct {
	Payment
	// CreatedAt is when it was begun, by the provider's clock.
	CreatedAt time.Time
}

// Lister lists what a payment provider has, for whoever compares it with the ledger.
type Lister interface {
	// Payments lists the payments that were begun at since or later, page by page, in no
	// fixed order. The cursor is opaque, "" for the first page and after the last one. Its
	// error is an *Error.
	Payments(ctx context.Context, since time.Time, after ledger.Cursor) ([]Listed, ledger.Cursor, error)
}
