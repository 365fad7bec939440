package commands

import (
	"context"
	"slices"
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
// CodeHoldArchived, and those of CreateHold. CodeCoolingDown is only said of a hold that had
// no slot with a cool-down before.
func (c *Commands) EditHold(ctx context.Context, r Request, id ledger.HoldID, wish EditWish, render RenderHold) (Answer, error) {
	if wish.Quotes != nil {
		var err error
		if wish.Quotes, err = ledger.NormalizeQuotes(wish.Quotes); err != nil {
			return Answer{}, err
		}
	}
	editing := &editing{allocator: newAllocator(c, id), render: render, owner: r.Owner, wish: wish}
	answer, err := c.carryOut(ctx, job{
		command: ledger.CommandEditHold, request: r,
		decide: editing.decide, refused: editing.refused, metNobody: editing.metNobody,
	})
	editing.count(answer, err)
	return answer, err
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

// editing is a change of a stored hold that is being tried. What comes to the hold is found
// like what a new hold takes.
type editing struct {
	allocator
	render RenderHold
	owner  ledger.OwnerID
	wish   EditWish
	// held is the hold as it was read for the last try.
	held    ledger.Hold
	cooling coolDown
	tried   ledger.Change
	origin  ledger.Origin
}

func (e *editing) decide(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
	hold, err := e.commands.store.Hold(ctx, e.hold)
	if err == nil && hold.Owner != e.owner {
		err = ledger.HoldNotFound()
	}
	if err != nil {
		return decision{}, err
	}
	if err := e.prepare(ctx, growth(hold, e.wish.Quotes), now); err != nil {
		return decision{}, err
	}
	change, err := e.edit(hold, e.cooling.over, origin, now)
	if err != nil {
		return decision{}, err
	}
	looked, err := e.look(ctx, now)
	if err == nil && looked {
		change, err = e.edit(hold, e.cooling.over, origin, now)
	}
	if err != nil {
		return decision{}, err
	}
	e.held, e.tried, e.origin = hold, change, origin
	if !change.Empty() {
		hold = change.Holds[0].Next
	}
	response, err := e.render(hold, now)
	return decision{change: change, response: response}, err
}

// growth is what the quotes want beyond what the hold has.
func growth(h ledger.Hold, quotes []ledger.Quote) []want {
	var out []want
	for _, q := range h.Growth(quotes) {
		w := want{Quote: q, take: q.Quantity}
		if i := slices.IndexFunc(h.Lines, func(l ledger.Line) bool { return l.Slot == q.Slot }); i >= 0 {
			w.take -= h.Lines[i].Quantity
		}
		out = append(out, w)
	}
	return out
}

func (e *editing) edit(hold ledger.Hold, cooledDown bool, origin ledger.Origin, now time.Time) (ledger.Change, error) {
	return ledger.EditHold(hold, ledger.HoldEdit{
		Quotes: e.wish.Quotes, Slots: e.slots, Allocations: e.allocations, ExtendFor: e.wish.ExtendFor,
		CooledDown: cooledDown,
	}, origin, now)
}

// refused learns from what refused the write. Where the hold itself did, it is not as it
// was read, so what the rest says is about an edit that nobody wants any more.
func (e *editing) refused(ctx context.Context, r *ledger.Refused, now time.Time) error {
	if len(r.LegsOf(ledger.LegHold)) > 0 {
		e.alone = false
		return nil
	}
	short, err := e.learn(r)
	if err != nil {
		return err
	}
	if err := beyondLimits(r, e.tried, now); err != nil {
		return err
	}
	cooled, knew := func() (ledger.Change, error) { return e.edit(e.held, true, e.origin, now) }, e.cooling.over
	if err := e.cooling.learn(r, e.tried, cooled); err != nil {
		return err
	}
	e.alone = e.cooling.over && !knew
	return e.reallocate(ctx, r, short, now)
}
