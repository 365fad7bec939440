package commands

import (
	"context"
	"time"

	"holdfast/shared/ledger"
)

// ReturnHold gives back what was sold by ConfirmHold: the named lines, or with no lines all
// that is left. A trusted service asks for it, so whose hold it is does not matter. What
// was sold through a reservation is given back by CancelReservation, with its money.
//
// Errors: CodeHoldNotFound, CodeHoldNotActive, CodeHasReservation, CodeReturnOverSale,
// CodeInvalid, CodeHoldArchived, CodeKeyReused, and those of the store.
func (c *Commands) ReturnHold(ctx context.Context, r Request, id ledger.HoldID, lines []ledger.ReturnLine, render RenderHold) (Answer, error) {
	end := ending{commands: c, id: id, render: render,
		transition: func(h ledger.Hold, origin ledger.Origin, now time.Time) (ledger.Change, error) {
			return ledger.ReturnUnpaid(h, lines, origin, now)
		}}
	return c.carryOut(ctx, job{command: ledger.CommandReturnHold, request: r, decide: end.decide})
}
