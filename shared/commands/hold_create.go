package commands

import (
	"context"
	"time"

	"holdfast/shared/ledger"
)

// RenderHold turns the hold into the answer that is given and kept, at the command's
// one moment.
type RenderHold func(hold ledger.Hold, now time.Time) (ledger.Response, error)

// HoldWish is what a hold shall promise, and what its caller is known by.
type HoldWish struct {
	Quotes []ledger.Quote
	// Signals are those of the caller's device and means of payment.
	Signals []ledger.Signal
}

// CreateHold promises all that wish quotes to the owner of the request, or nothing. It reads
// nothing before its transaction, except slot definitions that are not cached, and the
// stock of slots that were short a moment ago.
//
// Errors: CodeInvalid, CodeSlotNotFound, CodeSlotClosed, CodeSaleNotOpen, CodeSaleOver,
// CodePriceChanged, CodeQuantityOverLimit, CodeLimitReached, CodeCoolingDown,
// CodeInsufficientStock, CodeKeyReused, and those of the store. "Insufficient" is said only
// of slots that were seen short at one consistent moment (promise P10); there may be more of
// them than are named. Of several reasons to refuse, the first in this order is told.
func (c *Commands) CreateHold(ctx context.Context, r Request, wish HoldWish, render RenderHold) (Answer, error) {
	quotes, err := ledger.NormalizeQuotes(wish.Quotes)
	if err != nil {
		return Answer{}, err
	}
	id := ledger.NewHoldID(c.random.Bits128())
	creation := &creation{
		allocator: newAllocator(c, id), render: render, owner: r.Owner, quotes: quotes, signals: wish.Signals,
	}
	answer, err := c.carryOut(ctx, job{
		command: ledger.CommandCreateHold, request: r,
		decide: creation.decide, refused: creation.refused, metNobody: creation.metNobody,
	})
	creation.count(answer, err)
	return answer, err
}

// creation is a hold that is being tried.
type creation struct {
	allocator
	render  RenderHold
	owner   ledger.OwnerID
	quotes  []ledger.Quote
	signals []ledger.Signal
	cooling coolDown
	tried   ledger.Change
	origin  ledger.Origin
}

func (h *creation) decide(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
	wants := make([]want, len(h.quotes))
	for i, q := range h.quotes {
		wants[i] = want{Quote: q, take: q.Quantity}
	}
	if err := h.prepare(ctx, wants, now); err != nil {
		return decision{}, err
	}
	change, err := h.plan(h.cooling.over, origin, now)
	if err != nil {
		return decision{}, err
	}
	looked, err := h.look(ctx, now)
	if err == nil && looked {
		change, err = h.plan(h.cooling.over, origin, now)
	}
	if err != nil {
		return decision{}, err
	}
	h.tried, h.origin = change, origin
	response, err := h.render(change.Holds[0].Next, now)
	return decision{change: change, response: response}, err
}

// plan is the hold on the stock items that are known so far.
func (h *creation) plan(cooledDown bool, origin ledger.Origin, now time.Time) (ledger.Change, error) {
	return ledger.NewHold(ledger.HoldPlan{
		ID: h.hold, Owner: h.owner, Quotes: h.quotes, Slots: h.slots, Allocations: h.allocations,
		Signals: h.signals, CooledDown: cooledDown,
	}, origin, now)
}

// refused learns from what refused the write. A shortage is an answer only after the whole
// slot was seen short; else its line gets other stock items to try.
func (h *creation) refused(ctx context.Context, r *ledger.Refused, now time.Time) error {
	short, err := h.learn(r)
	if err != nil {
		return err
	}
	if err := beyondLimits(r, h.tried, now); err != nil {
		return err
	}
	cooled, knew := func() (ledger.Change, error) { return h.plan(true, h.origin, now) }, h.cooling.over
	if err := h.cooling.learn(r, h.tried, cooled); err != nil {
		return err
	}
	h.alone = h.cooling.over && !knew
	return h.reallocate(ctx, r, short, now)
}
