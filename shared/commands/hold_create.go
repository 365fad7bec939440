package commands

import (
	"context"
	"slices"
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
// nothing before its transaction, except slot definitions that are not cached.
//
// Errors: CodeInvalid, CodeSlotNotFound, CodeSlotClosed, CodePriceChanged,
// CodeQuantityOverLimit, CodeInsufficientStock, CodeKeyReused, and those of the store.
// "Insufficient" is said only of slots that were seen short at one consistent moment
// (promise P10).
func (c *Commands) CreateHold(ctx context.Context, r Request, wish HoldWish, render RenderHold) (Answer, error) {
	quotes, err := ledger.NormalizeQuotes(wish.Quotes)
	if err != nil {
		return Answer{}, err
	}
	creation := &creation{
		commands: c, render: render, owner: r.Owner, quotes: quotes, signals: wish.Signals,
		id:          ledger.NewHoldID(c.random.Bits128()),
		allocations: make(map[ledger.SlotID][]ledger.Allocation),
	}
	return c.carryOut(ctx, job{
		command: ledger.CommandCreateHold, request: r,
		decide: creation.decide, refused: creation.refused,
	})
}

// creation is a hold that is being tried.
type creation struct {
	commands *Commands
	render   RenderHold
	owner    ledger.OwnerID
	quotes   []ledger.Quote
	signals  []ledger.Signal
	id       ledger.HoldID
	slots    map[ledger.SlotID]ledger.Slot
	// allocations are the shards to take from. A slot without an entry is tried on the
	// shard that the hold's id picks.
	allocations map[ledger.SlotID][]ledger.Allocation
}

func (h *creation) decide(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
	ids := make([]ledger.SlotID, len(h.quotes))
	for i, q := range h.quotes {
		ids[i] = q.Slot
	}
	var err error
	if h.slots, err = h.commands.slots.get(ctx, h.commands.store, ids, now); err != nil {
		return decision{}, err
	}
	for _, q := range h.quotes {
		slot, known := h.slots[q.Slot]
		if _, planned := h.allocations[q.Slot]; known && !planned {
			pick := ledger.PickShard(h.id, q.Slot, slot.Terms.Shards)
			h.allocations[q.Slot] = []ledger.Allocation{{Shard: pick, Quantity: q.Quantity}}
		}
	}
	change, err := ledger.NewHold(ledger.HoldPlan{
		ID: h.id, Owner: h.owner, Quotes: h.quotes, Slots: h.slots, Allocations: h.allocations,
		Signals: h.signals,
	}, origin, now)
	if err != nil {
		return decision{}, err
	}
	response, err := h.render(change.Holds[0].Next, now)
	return decision{change: change, response: response}, err
}

// refused learns from the stock items that refused the write. A wrong price or a closed
// slot is an answer at once, because the item itself said so. A shortage is an answer
// only after the whole slot was seen short; else the line gets new shards to try.
func (h *creation) refused(ctx context.Context, r *ledger.Refused, _ time.Time) error {
	var closed []ledger.SlotID
	var prices []ledger.SlotPrice
	var short []ledger.RefusedLeg
	for _, leg := range r.LegsOf(ledger.LegStock) {
		slot := h.slots[leg.Slot]
		switch {
		case leg.Stock == nil || leg.Stock.Terms.Shards != slot.Terms.Shards,
			leg.Stock.Terms.Price.Currency != slot.Terms.Price.Currency:
			// The cached definition is out of date.
			h.commands.slots.forget(leg.Slot)
			delete(h.allocations, leg.Slot)
		case !leg.Stock.Terms.Open:
			closed = appendOnce(closed, leg.Slot)
		case leg.Stock.Terms.Price.AmountMinor != h.quote(leg.Slot).UnitAmount:
			prices = appendOnce(prices, ledger.SlotPrice{Slot: leg.Slot, Price: leg.Stock.Terms.Price})
		default:
			short = append(short, leg)
		}
	}
	switch {
	case len(closed) > 0:
		return &ledger.Error{Code: ledger.CodeSlotClosed, Slots: closed, Message: "the slot does not take holds now; choose another"}
	case len(prices) > 0:
		return &ledger.Error{Code: ledger.CodePriceChanged, Prices: prices, Message: "the price has changed; ask again with the new price"}
	}
	return h.reallocate(ctx, short, r.Contended)
}

// reallocate finds other shards for every short line, or proves that there are none.
func (h *creation) reallocate(ctx context.Context, short []ledger.RefusedLeg, contended bool) error {
	var shortages []ledger.Shortage
	done := make(map[ledger.SlotID]bool, len(short))
	for _, leg := range short {
		if done[leg.Slot] {
			continue
		}
		done[leg.Slot] = true
		slot, quote := h.slots[leg.Slot], h.quote(leg.Slot)
		if slot.Terms.Shards == 1 && !contended {
			// The one item refused the one write: that is its state at one moment.
			shortages = append(shortages, ledger.Shortage{Slot: leg.Slot, Requested: quote.Quantity})
			continue
		}
		allocation, found, err := h.findShards(ctx, slot, quote)
		if err != nil {
			return err
		}
		if !found {
			shortages = append(shortages, ledger.Shortage{Slot: leg.Slot, Requested: quote.Quantity})
			continue
		}
		h.allocations[leg.Slot] = allocation
	}
	if len(shortages) > 0 {
		return &ledger.Error{Code: ledger.CodeInsufficientStock, Shortages: shortages,
			Message: "less is available than was asked for; choose other slots or a smaller quantity"}
	}
	return nil
}

// findShards looks where the quote fits: first by a cheap read, whose shards are not of
// one moment, then by the one read that proves a shortage.
func (h *creation) findShards(ctx context.Context, slot ledger.Slot, q ledger.Quote) ([]ledger.Allocation, bool, error) {
	pick := ledger.PickShard(h.id, slot.ID, slot.Terms.Shards)
	hint, err := h.commands.store.Stock(ctx, []ledger.Slot{slot})
	if err != nil {
		return nil, false, err
	}
	if allocation, fits := ledger.Allocate(hint, q.Quantity, pick); fits {
		return allocation, true, nil
	}
	proof, err := h.commands.store.StockAtOneMoment(ctx, slot)
	if err != nil {
		return nil, false, err
	}
	allocation, fits := ledger.Allocate(proof, q.Quantity, pick)
	return allocation, fits, nil
}

func (h *creation) quote(id ledger.SlotID) ledger.Quote {
	i := slices.IndexFunc(h.quotes, func(q ledger.Quote) bool { return q.Slot == id })
	return h.quotes[i]
}

func appendOnce[T comparable](list []T, item T) []T {
	if slices.Contains(list, item) {
		return list
	}
	return append(list, item)
}
