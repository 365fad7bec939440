package commandstest

import (
	"context"
	"fmt"
	"slices"

	"holdfast/shared/ledger"
)

// item is one stock item.
type item struct {
	slot  ledger.SlotID
	shard ledger.Shard
}

// promised is what holds take from an item.
type promised struct{ held, confirmed ledger.Units }

// sight is how much of a slot was available from a write on.
type sight struct {
	written   int
	available ledger.Units
}

// books is a store that stops before every call, and that looks at the promises after every
// write. It keeps its own account of what the holds take, from the writes alone.
type books struct {
	ledger.Store
	holds    map[ledger.HoldID]ledger.Hold
	order    []ledger.HoldID
	promised map[item]promised
	// history has for each slot how much of it was available, the oldest first.
	history map[ledger.SlotID][]sight
	closed  map[ledger.SlotID]bool
	written int
	broken  error // the first promise that was broken
}

func newBooks(store ledger.Store) *books {
	return &books{
		Store: store, holds: make(map[ledger.HoldID]ledger.Hold), promised: make(map[item]promised),
		history: make(map[ledger.SlotID][]sight), closed: make(map[ledger.SlotID]bool),
	}
}

// Commit implements ledger.Store.
func (b *books) Commit(ctx context.Context, c ledger.Change) error {
	if err := await(ctx); err != nil {
		return err
	}
	if e, is := ctx.Value(errandKey{}).(*errand); is {
		e.commits++
	}
	err := b.Store.Commit(ctx, c)
	if err == nil && b.broken == nil {
		b.broken = b.enter(ctx, c)
	}
	return err
}

// Hold implements ledger.Store.
func (b *books) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	if err := await(ctx); err != nil {
		return ledger.Hold{}, err
	}
	return b.Store.Hold(ctx, id)
}

// Slots implements ledger.Store.
func (b *books) Slots(ctx context.Context, ids []ledger.SlotID) ([]ledger.Slot, error) {
	if err := await(ctx); err != nil {
		return nil, err
	}
	return b.Store.Slots(ctx, ids)
}

// tornTurns is how many turns pass within a read of stock that is not of one moment.
const tornTurns = 3

// Stock reads every other item some turns later than the rest, as a read may that is not of
// one moment.
func (b *books) Stock(ctx context.Context, slots []ledger.Slot) ([]ledger.Stock, error) {
	if err := await(ctx); err != nil {
		return nil, err
	}
	early, err := b.Store.Stock(ctx, slots)
	if err != nil {
		return nil, err
	}
	for range tornTurns {
		if err := await(ctx); err != nil {
			return nil, err
		}
	}
	stock, err := b.Store.Stock(ctx, slots)
	for i := range early {
		if i%2 == 0 && err == nil {
			stock[i] = early[i]
		}
	}
	return stock, err
}

// StockAtOneMoment implements ledger.Store.
func (b *books) StockAtOneMoment(ctx context.Context, slot ledger.Slot) ([]ledger.Stock, error) {
	if err := await(ctx); err != nil {
		return nil, err
	}
	return b.Store.StockAtOneMoment(ctx, slot)
}

// IdempotencyRecord implements ledger.Store.
func (b *books) IdempotencyRecord(ctx context.Context, id ledger.IdempotencyID) (ledger.IdempotencyRecord, bool, error) {
	if err := await(ctx); err != nil {
		return ledger.IdempotencyRecord{}, false, err
	}
	return b.Store.IdempotencyRecord(ctx, id)
}

// enter takes in a change that was written, and looks at all slots that it moved.
func (b *books) enter(ctx context.Context, c ledger.Change) error {
	b.written++
	for _, w := range c.Holds {
		if err := b.enterHold(w.Next); err != nil {
			return err
		}
	}
	for _, w := range c.Slots {
		b.closed[w.Next.ID] = !w.Next.Terms.Open
	}
	moved := make(map[ledger.SlotID]bool)
	for _, s := range c.NewStock {
		moved[s.Slot] = true
	}
	for _, w := range c.Stock {
		moved[w.Slot] = true
	}
	for id := range moved {
		if err := b.look(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// enterHold checks that a hold goes on only as it may (promise P3).
func (b *books) enterHold(next ledger.Hold) error {
	before, known := b.holds[next.ID]
	if !known {
		b.order = append(b.order, next.ID)
		before.Status = ledger.StatusHeld
	}
	switch sold := before.Status == ledger.StatusConfirmed; {
	case !known && next.Status != ledger.StatusHeld:
		return fmt.Errorf("P3: hold %s was born %s", next.ID, next.Status)
	case before.Status != ledger.StatusHeld && !sold, sold && next.Status != ledger.StatusConfirmed && next.Status != ledger.StatusReturned:
		return fmt.Errorf("P3: hold %s went from %s to %s", next.ID, before.Status, next.Status)
	}
	b.count(before, -1)
	b.count(next, 1)
	b.holds[next.ID] = next
	return nil
}

// count adds what the hold takes to what is promised, or with a factor of -1 takes it out.
func (b *books) count(h ledger.Hold, factor ledger.Units) {
	for _, line := range h.Lines {
		for _, a := range line.Shards {
			p := b.promised[item{line.Slot, a.Shard}]
			switch h.Status {
			case ledger.StatusHeld:
				p.held += factor * a.Quantity
			case ledger.StatusConfirmed, ledger.StatusReturned:
				p.confirmed += factor * a.Quantity
			default:
			}
			b.promised[item{line.Slot, a.Shard}] = p
		}
		for _, a := range line.Returned {
			p := b.promised[item{line.Slot, a.Shard}]
			p.confirmed -= factor * a.Quantity
			b.promised[item{line.Slot, a.Shard}] = p
		}
	}
}

// look compares the stock of a slot with the account (promises P1 and P2), and notes how much
// is available now.
func (b *books) look(ctx context.Context, id ledger.SlotID) error {
	slots, err := b.Store.Slots(ctx, []ledger.SlotID{id})
	if err != nil || len(slots) != 1 {
		return fmt.Errorf("slot %s: found %d: %w", id, len(slots), err)
	}
	stock, err := b.Store.StockAtOneMoment(ctx, slots[0])
	if err != nil {
		return err
	}
	if len(stock) != slots[0].Terms.StockItems() {
		return fmt.Errorf("slot %s has %d stock items, want %d", id, len(stock), slots[0].Terms.StockItems())
	}
	var available ledger.Units
	for _, s := range stock {
		if err := s.Counters.Check(); err != nil {
			return fmt.Errorf("P1: shard %s of slot %s: %w", s.Shard, id, err)
		}
		if s.Terms != slots[0].Terms {
			return fmt.Errorf("shard %s of slot %s has the terms %+v, the slot %+v", s.Shard, id, s.Terms, slots[0].Terms)
		}
		if p := b.promised[item{id, s.Shard}]; p.held != s.Counters.Held || p.confirmed != s.Counters.Confirmed {
			return fmt.Errorf("P2: shard %s of slot %s has %+v, but its holds add up to %+v", s.Shard, id, s.Counters, p)
		}
		available += s.Counters.Available
	}
	b.history[id] = append(b.history[id], sight{b.written, available})
	return nil
}

// leastSince is the least that was available of the slot at any moment since so much had been
// written.
func (b *books) leastSince(id ledger.SlotID, written int) ledger.Units {
	history := b.history[id]
	least := history[len(history)-1].available
	for i := len(history) - 1; i >= 0; i-- {
		least = min(least, history[i].available)
		if history[i].written <= written {
			break
		}
	}
	return least
}

// unitsOf is what the owner has of a slot in holds that are HELD, and has bought and kept.
func (b *books) unitsOf(owner ledger.OwnerID, id ledger.SlotID) ledger.Units {
	var out ledger.Units
	for _, h := range b.holds {
		if h.Owner != owner || h.Status == ledger.StatusCanceled || h.Status == ledger.StatusExpired {
			continue
		}
		for _, line := range h.Lines {
			if line.Slot == id {
				out += line.Quantity - line.ReturnedQuantity()
			}
		}
	}
	return out
}

// shapes is how many holds take a slot from more than one shard, and how many have as many
// lines as a hold may have.
func (b *books) shapes() (split, wide int) {
	for _, h := range b.holds {
		if slices.ContainsFunc(h.Lines, func(l ledger.Line) bool { return len(l.Shards) > 1 }) {
			split++
		}
		if len(h.Lines) == ledger.LinesMax {
			wide++
		}
	}
	return split, wide
}
