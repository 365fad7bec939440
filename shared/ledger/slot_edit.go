package ledger

import (
	"maps"
	"slices"
	"time"
)

// EditSlot turns the slot into what d says. A capacity that differs moves units in or out of
// available; it is refused with CodeCapacityInUse when too few are available, unless d
// accepts an oversold slot. Another number of shards moves what is available onto them.
// Opening an oversold slot is refused with CodeSlotOversold until its units are enough for
// what is held and confirmed. The resource is fixed. An edit that changes nothing returns an
// empty Change, so a repeated PUT writes nothing.
//
// The stock is all of the slot's stock items in the order of their shards, read after the
// slot: then whatever has changed between the two reads has changed the slot's version too,
// and the write is refused.
//
// Shards retire instead of vanishing: holds write down from which stock item they took, and
// give back to it. An item that went away would lose their units, or every hold of it had to
// be rewritten with it.
func EditSlot(slot Slot, stock []Stock, d SlotDefinition, origin Origin, now time.Time) (Change, error) {
	if err := d.Validate(); err != nil {
		return Change{}, err
	}
	if d.ResourceType != slot.ResourceType || d.ResourceID != slot.ResourceID {
		return Change{}, &Error{Code: CodeSlotFixed, Slots: []SlotID{slot.ID},
			Message: "resource_type and resource_id of a slot can't be changed; define another slot"}
	}
	var total Counters
	for _, s := range stock {
		total = total.Plus(s.Counters)
	}
	next := editedSlot(slot, d, now)
	left, err := settleCapacity(&next, d, total)
	if err != nil {
		return Change{}, err
	}
	next.Terms.Retired = max(0, slot.Terms.StockItems()-next.Terms.Shards)
	var movements []Movement
	if resharded := next.Terms.Shards != slot.Terms.Shards; resharded || left != total.Available {
		movements = availableMovements(slot.ID, stock, spreadAvailable(stock, next.Terms, left, resharded))
	}
	if len(movements) == 0 && slotsEqual(slot, next) {
		return Change{}, nil
	}
	event := slotEvent(EventSlotChanged, next, origin, now)
	event.Movements = movements
	change := Change{At: now, Slots: []SlotWrite{{Next: next, Replaces: slot.Version}}, Events: []Event{event}}
	change.Stock = stockWrites(movements, nil)
	if next.Terms != slot.Terms {
		change.Stock = setTerms(change.Stock, slot.ID, next.Terms)
	}
	change.addShards(len(stock), next)
	return change, nil
}

// addShards makes the writes of stock items that are not there yet their creation.
func (c *Change) addShards(there int, slot Slot) {
	for _, w := range c.Stock {
		if int(w.Shard) >= there {
			c.NewStock = append(c.NewStock, Stock{Slot: slot.ID, Shard: w.Shard, Terms: slot.Terms, Version: 1, Counters: w.Delta})
		}
	}
	c.Stock = slices.DeleteFunc(c.Stock, func(w StockWrite) bool { return int(w.Shard) >= there })
}

// settleCapacity decides how many units stay available, and marks next where there are
// fewer units than were promised. Next still has the mark of the slot before.
func settleCapacity(next *Slot, d SlotDefinition, total Counters) (Units, error) {
	kept := d.KeepCapacity && d.Capacity == next.unitsOf(total.Capacity)
	inUse := total.Held + total.Confirmed
	switch {
	case kept && (next.Oversold == 0 || !next.Terms.Open):
		return total.Available, nil
	case d.Capacity >= inUse:
		next.Oversold = 0
		return d.Capacity - inUse, nil
	case kept:
		return 0, stillOversold(next.ID)
	case !d.AcceptOversold:
		return 0, &Error{Code: CodeCapacityInUse, Slots: []SlotID{next.ID},
			Message: "the capacity would fall below what is held and confirmed; close the slot, choose a larger capacity, or say accept_oversold to mark what is missing"}
	}
	next.Oversold, next.Terms.Open = inUse-d.Capacity, false
	return 0, nil
}

func stillOversold(id SlotID) *Error {
	return &Error{Code: CodeSlotOversold, Slots: []SlotID{id},
		Message: "more of the slot is promised than there is; it stays closed until its capacity is set to at least what is held and confirmed"}
}

func editedSlot(slot Slot, d SlotDefinition, now time.Time) Slot {
	next := slot
	next.StartsAt, next.EndsAt = d.StartsAt, d.EndsAt
	next.Attributes = maps.Clone(d.Attributes)
	layer := PolicyLayer{d.Policy, d.Inherits}.normalized()
	next.Terms, next.Policy, next.Inherits = d.Terms, layer.Policy, layer.Inherits
	if d.Terms.Price != slot.Terms.Price {
		next.PriceVersion++
	}
	next.Version++
	next.UpdatedAt = now
	return next
}

// slotsEqual reports whether b says the same as a, its version and time left aside.
func slotsEqual(a, b Slot) bool {
	return a.StartsAt.Equal(b.StartsAt) && a.EndsAt.Equal(b.EndsAt) && maps.Equal(a.Attributes, b.Attributes) &&
		a.Terms == b.Terms && PolicyLayer{a.Policy, a.Inherits}.equal(PolicyLayer{b.Policy, b.Inherits}) && a.Oversold == b.Oversold
}
