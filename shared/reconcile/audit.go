package reconcile

import (
	"context"
	"fmt"

	"holdfast/shared/ledger"
)

// Source reads the whole ledger, page by page. It calls visit for each page, in no fixed
// order, until all is read or visit returns an error.
type Source interface {
	ScanRecords(ctx context.Context, visit func(ledger.Records) error) error
}

// Violation is one broken promise with what shows it.
type Violation struct {
	Promise string // "P1", "P2", …
	Subject string // the slot and shard, or the hold
	Found   string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s broken by %s: %s", v.Promise, v.Subject, v.Found)
}

// Report is what an audit found.
type Report struct {
	Slots, Holds, Events int
	Violations           []Violation
}

// Audit reads everything that source has and checks it. The ledger must be at rest: an
// audit beside traffic would see one item before and another after the same change.
func Audit(ctx context.Context, source Source) (Report, error) {
	b := newBooks()
	err := source.ScanRecords(ctx, func(r ledger.Records) error {
		b.add(r)
		return nil
	})
	if err != nil {
		return Report{}, fmt.Errorf("audit: %w", err)
	}
	return b.close(), nil
}
