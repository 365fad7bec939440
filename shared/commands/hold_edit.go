package commands

import (
	"context"
	"time"

	"holdfast/shared/ledger"
)

// EditWish is how a hold shall be changed. What is not named stays.
type EditWish struct {
	// Quotes are all lines as they shall be; nil leaves them.
	Quotes []ledger.Quote
	// ExtendFor is how long the hold shall live from now on; zero leaves its time.
	ExtendFor time.Duration
}

// EditHold makes the owner's hold what wish says, all of it or nothing: units are taken and
// given back, and the time is moved, in one step. A hold of another owner is answered as an
// unknown one (promise P11).
//
// Errors: CodeHoldNotFound, CodeHoldNotActive, CodePaymentInProgress, CodeHoldAtMaximum,
// CodeHoldArchived, and those of CreateHold.
func (c *Commands) EditHold(ctx context.Context, r Request, id ledger.HoldID, wish EditWish, render RenderHold) (Answer, error) {
	if wish.Quotes != nil {
		var err error
		if wish.Quotes, err = ledger.NormalizeQuotes(wish.Quotes); err != nil {
			return Answer{}, err
		}
	}
	return c.edit(ctx, r, ledger.CommandEditHold, id, wish, render)
}

// ExtendHold lets the owner's hold live extendFor from now on; zero stands for as long as
// its slots' policies promise it at a time. A hold of another owner is answered as an
// unknown one (promise P11).
//
// Errors: CodeHoldNotFound, CodeHoldNotActive, CodePaymentInProgress, CodeHoldAtMaximum,
// CodeHoldArchived, CodeInvalid, CodeKeyReused, and those of the store.
func (c *Commands) ExtendHold(ctx context.Context, r Request, id ledger.HoldID, extendFor time.Duration, render RenderHold) (Answer, error) {
	end := ending{commands: c, id: id, render: render,
		transition: func(h ledger.Hold, origin ledger.Origin, now time.Time) (ledger.Change, error) {
			if h.Owner != r.Owner {
				return ledger.Change{}, ledger.HoldNotFound()
			}
			edit := ledger.HoldEdit{ExtendFor: extendFor}
			if extendFor == 0 {
				edit.ExtendFor = h.HoldFor
			}
			return ledger.EditHold(h, edit, origin, now)
		}}
	return c.carryOut(ctx, job{command: ledger.CommandExtendHold, request: r, decide: end.decide})
}

func (c *Commands) edit(ctx context.Context, r Request, command ledger.Command, id ledger.HoldID, wish EditWish, render RenderHold) (Answer, error) {
	decide := func(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
		hold, err := c.store.Hold(ctx, id)
		if err == nil && hold.Owner != r.Owner {
			err = ledger.HoldNotFound()
		}
		if err != nil {
			return decision{}, err
		}
		edit := ledger.HoldEdit{Quotes: wish.Quotes, ExtendFor: wish.ExtendFor, Allocations: make(map[ledger.SlotID][]ledger.Allocation)}
		growth := hold.Growth(wish.Quotes)
		ids := make([]ledger.SlotID, len(growth))
		for i, q := range growth {
			ids[i] = q.Slot
		}
		if edit.Slots, err = c.slots.get(ctx, c.store, ids, now); err != nil {
			return decision{}, err
		}
		change, err := ledger.EditHold(hold, edit, origin, now)
		if err != nil {
			return decision{}, err
		}
		if !change.Empty() {
			hold = change.Holds[0].Next
		}
		response, err := render(hold, now)
		return decision{change: change, response: response}, err
	}
	return c.carryOut(ctx, job{command: command, request: r, decide: decide})
}
