package ledger

import (
	"maps"
	"slices"
	"time"
)

// EditSlot turns the slot, whose stock was read as given, into what d says. A capacity
// that differs moves units in or out of available; it is refused with
// CodeCapacityInUse when too few are available, unless d accepts an oversold slot. Another
// number of shards moves what is available onto them. The resource is fixed. An edit that
// changes nothing returns an empty Change, so a repeated PUT writes nothing.
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
	targets := spreadAvailable(stock, next.Terms, left)
	movements := availableMovements(slot.ID, stock, targets)
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
	change.addShards(stock, next)
	return change, nil
}

// addShards makes the writes of stock items that are not there yet their creation.
func (c *Change) addShards(stock []Stock, slot Slot) {
	there := Shard(len(stock))
	for _, w := range c.Stock {
		if w.Shard >= there {
			c.NewStock = append(c.NewStock, Stock{Slot: slot.ID, Shard: w.Shard, Terms: slot.Terms, Version: 1, Counters: w.Delta})
		}
	}
	c.Stock = slices.DeleteFunc(c.Stock, func(w StockWrite) bool { return w.Shard >= there })
}

// settleCapacity decides how many units stay available, and marks next where there are
// fewer units than were promised.
func settleCapacity(next *Slot, d SlotDefinition, total Counters) (Units, error) {
	if d.KeepCapacity && d.Capacity == total.Capacity {
		if next.Oversold > 0 && next.Terms.Open {
			return 0, stillOversold(next.ID)
		}
		return total.Available, nil
	}
	inUse := total.Held + total.Confirmed
	if d.Capacity >= inUse {
		next.Oversold = 0
		return d.Capacity - inUse, nil
	}
	if !d.AcceptOversold {
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
	next.Terms, next.Policy, next.Inherits = d.Terms, d.Policy, d.Inherits
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
		a.Terms == b.Terms && a.Policy.Equal(b.Policy) && a.Inherits == b.Inherits && a.Oversold == b.Oversold
}
