package reconcile

import (
	"context"
	"fmt"

	"holdfast/shared/ledger"
	"holdfast/shared/telemetry"
)

// Source reads the whole ledger, page by page. It calls visit for each page, in no fixed
// order, until all is read or visit returns an error.
type Source interface {
	ScanRecords(ctx context.Context, visit func(ledger.Records) error) error
}

// Violation is one broken promise with what shows it.
type Violation struct {
	Promise string // "P1", "P2", …
	Subject string // the slot and shard, the hold, the reservation, the policy, or the count of an owner
	Found   string
}

func (v Violation) String() string {
	return fmt.Sprintf("%s broken by %s: %s", v.Promise, v.Subject, v.Found)
}

// Report is what an audit found.
type Report struct {
	Slots, Policies, Holds, Reservations, Events int
	// Archived counts the holds and reservations that lie in the archive and have not left
	// the table yet. They and their events are not among those above.
	Archived int
	// Money is what the reservations above took and gave back, by currency.
	Money map[ledger.Currency]Money
	// Oversold are the slots of which more is promised than there is, as an operator has
	// marked them. That breaks no promise of the ledger, and somebody must keep those that
	// were made.
	Oversold   []Oversold
	Violations []Violation
	// Held is what is held of each resource.
	Held []telemetry.Held
	// Findings is what is wrong, in a fixed order, and Unsettled how many suspects could not
	// be looked at in peace.
	Findings  []Finding
	Unsettled int
	// ReadUnits is what reading the segments has cost, in Pages.
	ReadUnits float64
	Pages     int
}

// Money is a sum over all payment attempts and refunds of one currency, in minor units.
type Money struct {
	Captured int64 // taken from buyers
	Refunded int64 // given back
	Owed     int64 // to be given back, and not given back yet
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
