package sim

import (
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// slotBook is one slot through time.
type slotBook struct {
	now     ledger.Slot
	moments []moment
	edits   []edit
	steps   []stepMade   // by holds and grants
	gone    ledger.Units // given back by holds, and not to be sold again
	granted ledger.Units // by deliveries
}

// stepMade is a step of a slot that was committed.
type stepMade struct {
	at   time.Time
	by   *request // nil for what no client asked for
	step slotStep
}

// edit is a change of the slot itself.
type edit struct {
	at   time.Time
	by   *request
	step slotStep
	made ledger.Slot // the slot right after
}

// moment is a slot from a time on, until the next moment.
type moment struct {
	at        time.Time
	available ledger.Units
	missing   ledger.Units // what is promised and is not there
	terms     ledger.Terms
}

func (b *books) writeSlot(c commit, slot ledger.Slot, created []ledger.Event, by *request) {
	book := b.slots[slot.ID]
	if book == nil {
		book = &slotBook{}
		b.slots[slot.ID] = book
	}
	if slot.Version != book.now.Version+1 {
		b.world.violated("P5", "%s took slot %s from version %d to %d", c.by, slot.ID, book.now.Version, slot.Version)
	}
	at := slices.IndexFunc(created, func(e ledger.Event) bool { return e.Slot != nil && e.Slot.ID == slot.ID && e.Version == slot.Version })
	if at < 0 {
		b.world.violated("P5", "%s changed slot %s without an event", c.by, slot.ID)
		return
	}
	asked := kind("")
	if by != nil {
		asked = by.kind
	}
	step := editStep(asked, book.now, slot, created[at].Movements)
	b.checkOversold(c, book.now, slot, by, step)
	if by != nil && !by.asks(step, b.surplus(book.now), slot) {
		b.world.violated("edits", "%s asked for another change of %s than %+v", by.name, slot.ID, step)
	}
	book.edits = append(book.edits, edit{b.world.kernel.now, by, step, slot})
	book.now = slot
}

// surplus is how much more the stock of an oversold slot has than there really is. What was
// given back for good since then is not promised any more.
func (b *books) surplus(slot ledger.Slot) ledger.Units {
	return min(slot.Oversold, b.capacity(slot))
}

// capacity is what all stock items of the slot have.
func (b *books) capacity(slot ledger.Slot) ledger.Units {
	var total ledger.Units
	for shard := range slot.Terms.StockItems() {
		total += b.stock[stockKey{slot.ID, ledger.Shard(shard)}].Counters.Capacity
	}
	return total
}

// asks reports whether the step is what the request asked for. Surplus is what the stock had
// beyond the capacity until now.
func (r *request) asks(s slotStep, surplus ledger.Units, made ledger.Slot) bool {
	switch r.kind {
	case askBatch:
		row, named := r.row(made.ID)
		return named && s.kind == stepCapacity && s.quantity == ledger.Units(row.delta)-surplus
	case askShards:
		return s.kind == stepShards && s.quantity == 0 && made.Terms.Shards == r.shards
	case askOversold:
		return s.kind == stepOversold
	case askCapacity:
		return s.kind == stepCapacity && s.quantity == ledger.Units(r.delta)-surplus
	case askPrice:
		return s.kind == stepPrice && s.amount == r.amount
	case askOpen:
		return s.kind == stepOpen && s.open == r.open
	default:
		return false
	}
}

// editStep says what an edit changed. A planned edit changes one thing.
func editStep(asked kind, before, after ledger.Slot, movements []ledger.Movement) slotStep {
	var capacity ledger.Units
	for _, m := range movements {
		capacity += m.Delta().Capacity
	}
	amount, open := after.Terms.Price.AmountMinor, after.Terms.Open
	switch {
	case before.Version == 0:
		return slotStep{kind: stepDefine, quantity: capacity, amount: amount}
	case asked == askOversold:
		return slotStep{kind: stepOversold, quantity: capacity, missing: after.Oversold, open: open}
	case asked == askShards:
		return slotStep{kind: stepShards, quantity: capacity}
	case amount != before.Terms.Price.AmountMinor:
		return slotStep{kind: stepPrice, amount: amount}
	case open != before.Terms.Open:
		return slotStep{kind: stepOpen, quantity: capacity, open: open}
	default:
		return slotStep{kind: stepCapacity, quantity: capacity}
	}
}

// checkOversold: a slot is marked with what its stock has beyond what there really is, and
// is closed while it is. Units that were given back for good while the edit was under way
// are gone from the stock, and units that were granted are more of it; the edit knows of
// neither.
func (b *books) checkOversold(c commit, before, after ledger.Slot, by *request, step slotStep) {
	if after.Oversold > 0 && after.Terms.Open {
		b.world.violated("oversold", "%s opened %s, of which %d are promised that there are not", c.by, after.ID, after.Oversold)
	}
	least, most := before.Oversold, before.Oversold
	switch {
	case by != nil && by.kind == askOversold:
		surplus := b.capacity(before) + step.quantity - ledger.Units(by.capacity)
		least = max(0, surplus-b.slots[after.ID].granted)
		most = max(0, surplus) + b.slots[after.ID].gone
	case by != nil && (by.kind == askCapacity || by.kind == askBatch || by.kind == askOpen && by.open):
		least, most = 0, 0
	}
	if after.Oversold < least || after.Oversold > most {
		b.world.violated("oversold", "%s marked %s with %d, and it is %d", c.by, after.ID, after.Oversold, least)
	}
}

func touchedSlots(r ledger.Records) []ledger.SlotID {
	var ids []ledger.SlotID
	for _, s := range r.Stock {
		if !slices.Contains(ids, s.Slot) {
			ids = append(ids, s.Slot)
		}
	}
	for _, slot := range r.Slots {
		// A closed slot without a free unit becomes oversold without a write of its stock.
		if !slices.Contains(ids, slot.ID) {
			ids = append(ids, slot.ID)
		}
	}
	return ids
}

// remember adds a moment to the slot's book.
func (b *books) remember(id ledger.SlotID) {
	book := b.slots[id]
	if book == nil {
		b.world.violated("P5", "stock of %s was written before the slot", id)
		return
	}
	m := moment{at: b.world.kernel.now, terms: book.now.Terms, missing: b.surplus(book.now)}
	for shard := range book.now.Terms.StockItems() {
		s := b.stock[stockKey{id, ledger.Shard(shard)}]
		m.available += s.Counters.Available
		if s.Terms != book.now.Terms {
			b.world.violated("P5", "shard %d of %s has other terms than the slot", shard, id)
		}
	}
	book.moments = append(book.moments, m)
}

// ever reports whether the slot was so at any moment between two times.
func (b *books) ever(id ledger.SlotID, from, to time.Time, so func(moment) bool) bool {
	book := b.slots[id]
	if book == nil {
		return false
	}
	for i, m := range book.moments {
		lastsUntil := to
		if i+1 < len(book.moments) {
			lastsUntil = book.moments[i+1].at
		}
		if !m.at.After(to) && !lastsUntil.Before(from) && so(m) {
			return true
		}
	}
	return false
}
