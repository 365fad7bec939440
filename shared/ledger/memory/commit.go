package memory

import (
	"context"

	"holdfast/shared/ledger"
)

// Commit implements ledger.Store. All conditions are looked at before anything is
// written, under one lock, so a change is either refused whole or applied whole.
func (s *Store) Commit(ctx context.Context, c ledger.Change) error {
	if err := c.Validate(); err != nil {
		return &ledger.Error{Code: ledger.CodeInternal, Message: "the change is at fault; nothing was written", Cause: err}
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mutex.Unlock()
	if s.applied(c) {
		return nil
	}
	if legs := s.refusedLegs(c); len(legs) > 0 {
		return &ledger.Refused{Legs: legs}
	}
	s.apply(c)
	return nil
}

// applied reports whether an earlier try of c was applied: its events are there, under
// the same ids. A change without events is known by its idempotency record alone, and
// that is for the caller to compare.
func (s *Store) applied(c ledger.Change) bool {
	for _, event := range c.Events {
		stored, exists := s.events[keyOf(event)]
		if !exists || stored.ID != event.ID {
			return false
		}
	}
	return len(c.Events) > 0
}

func (s *Store) refusedLegs(c ledger.Change) []ledger.RefusedLeg {
	var legs []ledger.RefusedLeg
	for _, write := range c.Holds {
		legs = append(legs, s.refusedHold(write, c)...)
	}
	for _, write := range c.Slots {
		legs = append(legs, s.refusedSlot(write)...)
	}
	for _, stock := range c.NewStock {
		if stored, exists := s.stock[stockKey{stock.Slot, stock.Shard}]; exists {
			legs = append(legs, ledger.RefusedLeg{Kind: ledger.LegStock, Slot: stock.Slot, Shard: stock.Shard, Stock: &stored})
		}
	}
	for _, write := range c.Stock {
		legs = append(legs, s.refusedStock(write)...)
	}
	for _, event := range c.Events {
		if stored, exists := s.events[keyOf(event)]; exists {
			stored = cloneEvent(stored)
			legs = append(legs, ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &stored})
		}
	}
	if c.Idempotency != nil {
		if stored, exists := s.records[c.Idempotency.ID]; exists && stored.RetainUntil.After(c.At) {
			stored = cloneRecord(stored)
			legs = append(legs, ledger.RefusedLeg{Kind: ledger.LegIdempotency, Idempotency: &stored})
		}
	}
	for _, claim := range c.Uniqueness {
		if holder, exists := s.uniqueness[uniquenessKey{claim.Kind, claim.Value}]; exists {
			stored := ledger.Uniqueness{Kind: claim.Kind, Value: claim.Value, Hold: holder}
			legs = append(legs, ledger.RefusedLeg{Kind: ledger.LegUniqueness, Uniqueness: &stored})
		}
	}
	return legs
}

func (s *Store) refusedHold(write ledger.HoldWrite, c ledger.Change) []ledger.RefusedLeg {
	stored, exists := s.holds[write.Next.ID]
	var holds bool
	switch {
	case write.Replaces == 0:
		holds = !exists
	case !exists || stored.Version != write.Replaces || stored.Status != ledger.StatusHeld:
		holds = false
	case write.When == ledger.BeforeRelease:
		holds = stored.ReleaseAt.After(c.At)
	case write.When == ledger.FromRelease:
		holds = !stored.ReleaseAt.After(c.At)
	default:
		holds = true
	}
	if holds {
		return nil
	}
	leg := ledger.RefusedLeg{Kind: ledger.LegHold}
	if exists {
		stored = cloneHold(stored)
		leg.Hold = &stored
	}
	return []ledger.RefusedLeg{leg}
}

func (s *Store) refusedSlot(write ledger.SlotWrite) []ledger.RefusedLeg {
	// The version of a slot that does not exist is zero, which is what a creation
	// replaces.
	stored, exists := s.slots[write.Next.ID]
	if stored.Version == write.Replaces {
		return nil
	}
	leg := ledger.RefusedLeg{Kind: ledger.LegSlot}
	if exists {
		stored = cloneSlot(stored)
		leg.StoredSlot = &stored
	}
	return []ledger.RefusedLeg{leg}
}

func (s *Store) refusedStock(write ledger.StockWrite) []ledger.RefusedLeg {
	stored, exists := s.stock[stockKey{write.Slot, write.Shard}]
	have, delta := stored.Counters, write.Delta
	if exists &&
		have.Available >= -delta.Available && have.Held >= -delta.Held &&
		have.Confirmed >= -delta.Confirmed && have.Capacity >= -delta.Capacity &&
		(write.Sale == nil || *write.Sale == stored.Terms) {
		return nil
	}
	leg := ledger.RefusedLeg{Kind: ledger.LegStock, Slot: write.Slot, Shard: write.Shard}
	if exists {
		leg.Stock = &stored
	}
	return []ledger.RefusedLeg{leg}
}

func (s *Store) apply(c ledger.Change) {
	for _, write := range c.Holds {
		s.holds[write.Next.ID] = cloneHold(write.Next)
	}
	for _, write := range c.Slots {
		s.slots[write.Next.ID] = cloneSlot(write.Next)
	}
	for _, stock := range c.NewStock {
		s.stock[stockKey{stock.Slot, stock.Shard}] = stock
	}
	for _, write := range c.Stock {
		key := stockKey{write.Slot, write.Shard}
		stock := s.stock[key]
		stock.Counters = stock.Counters.Plus(write.Delta)
		stock.Version++
		if write.SetTerms != nil {
			stock.Terms = *write.SetTerms
		}
		s.stock[key] = stock
	}
	for _, event := range c.Events {
		s.events[keyOf(event)] = cloneEvent(event)
	}
	if c.Idempotency != nil {
		s.records[c.Idempotency.ID] = cloneRecord(*c.Idempotency)
	}
	for _, claim := range c.Uniqueness {
		s.uniqueness[uniquenessKey{claim.Kind, claim.Value}] = claim.Hold
	}
}

func keyOf(e ledger.Event) eventKey {
	key := eventKey{version: e.Version}
	if e.Hold != nil {
		key.hold = e.Hold.ID
	} else {
		key.slot = e.Slot.ID
	}
	return key
}
