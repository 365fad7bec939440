package memory

import (
	"context"
	"time"

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
	if s.applied(c) || s.marked(c) {
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
	for _, write := range c.Reservations {
		legs = append(legs, s.refusedReservation(write)...)
	}
	for _, write := range c.Slots {
		legs = append(legs, s.refusedSlot(write)...)
	}
	for _, write := range c.Policies {
		legs = append(legs, s.refusedPolicy(write)...)
	}
	for _, stock := range c.NewStock {
		if stored, exists := s.stock[stockKey{stock.Slot, stock.Shard}]; exists {
			legs = append(legs, ledger.RefusedLeg{Kind: ledger.LegStock, Slot: stock.Slot, Shard: stock.Shard, Stock: &stored})
		}
	}
	for _, write := range c.Stock {
		legs = append(legs, s.refusedStock(write)...)
	}
	for _, repair := range c.StockRepairs {
		legs = append(legs, s.refusedRepair(repair)...)
	}
	for _, write := range c.Reviews {
		legs = append(legs, s.refusedReview(write)...)
	}
	legs = append(legs, s.refusedLimits(c)...)
	for _, event := range c.Events {
		if stored, exists := s.events[keyOf(event)]; exists {
			stored = cloneEvent(stored)
			legs = append(legs, ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &stored})
		}
	}
	if c.Idempotency != nil {
		legs = append(legs, s.refusedRecord(*c.Idempotency, c.At)...)
	}
	for _, claim := range c.Uniqueness {
		if stored, exists := s.uniqueness[uniquenessKey{claim.Kind, claim.Value}]; exists {
			legs = append(legs, ledger.RefusedLeg{Kind: ledger.LegUniqueness, Uniqueness: &stored})
		}
	}
	return append(legs, s.refusedArchives(c)...)
}

func (s *Store) refusedHold(write ledger.HoldWrite, c ledger.Change) []ledger.RefusedLeg {
	stored, exists := s.holds[write.Next.ID]
	if write.Replaces == 0 && !exists {
		return nil
	}
	if exists && stored.Version == write.Replaces && stored.Status == write.Status() && stored.ArchivedIn == "" &&
		inTime(stored, write, c.At) && (!write.NoOpenAttempt || stored.AttemptOpen == 0) &&
		(write.Of == nil || *write.Of == stored.Reservation) {
		return nil
	}
	return []ledger.RefusedLeg{s.holdLeg(write.Next.ID)}
}

// inTime reports whether the hold is on the side of its release time that write wants.
func inTime(stored ledger.Hold, write ledger.HoldWrite, at time.Time) bool {
	switch write.When {
	case ledger.BeforeRelease:
		return stored.ReleaseAt.After(at)
	case ledger.FromRelease:
		return !stored.ReleaseAt.After(at.Add(-write.OverFor))
	case ledger.BeforeExpiry:
		return stored.ExpiresAt.After(at)
	default:
		return true
	}
}

// refusedRecord refuses an idempotency record whose place is taken: by a live record, or
// for a write that takes over a claim, by anything but that claim.
func (s *Store) refusedRecord(record ledger.IdempotencyRecord, at time.Time) []ledger.RefusedLeg {
	stored, exists := s.records[record.ID]
	free := !exists || !stored.Live(at)
	if record.Takes != "" {
		free = exists && stored.Claim == record.Takes
	}
	if free {
		return nil
	}
	leg := ledger.RefusedLeg{Kind: ledger.LegIdempotency}
	if exists {
		stored = cloneRecord(stored)
		leg.Idempotency = &stored
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
		(write.Sale == nil || *write.Sale == stored.Terms) && (!write.Open || stored.Terms.Open) {
		return nil
	}
	leg := ledger.RefusedLeg{Kind: ledger.LegStock, Slot: write.Slot, Shard: write.Shard}
	if exists {
		leg.Stock = &stored
	}
	return []ledger.RefusedLeg{leg}
}

func (s *Store) refusedRepair(repair ledger.StockRepair) []ledger.RefusedLeg {
	stored, exists := s.stock[stockKey{repair.Slot, repair.Shard}]
	if stored.Version == repair.Replaces {
		return nil
	}
	leg := ledger.RefusedLeg{Kind: ledger.LegStock, Slot: repair.Slot, Shard: repair.Shard}
	if exists {
		leg.Stock = &stored
	}
	return []ledger.RefusedLeg{leg}
}

func (s *Store) apply(c ledger.Change) {
	for _, write := range c.Holds {
		s.holds[write.Next.ID] = cloneHold(write.Next)
		delete(s.parking, write.Next.ID)
		s.putWaiting(write.Next)
	}
	for _, write := range c.Reservations {
		s.reservations[write.Next.ID] = write.Next.Clone()
	}
	for _, write := range c.Slots {
		s.slots[write.Next.ID] = cloneSlot(write.Next)
	}
	for _, write := range c.Policies {
		s.policies[write.Next.Scope] = write.Next
	}
	s.applyLimits(c)
	for _, stock := range c.NewStock {
		s.stock[stockKey{stock.Slot, stock.Shard}] = stock
	}
	for _, write := range c.Stock {
		key := stockKey{write.Slot, write.Shard}
		stock := s.stock[key]
		stock.Counters = stock.Counters.Plus(write.Delta)
		stock.Archived = stock.Archived.Plus(write.Archived)
		stock.Version++
		if write.SetTerms != nil {
			stock.Terms = *write.SetTerms
		}
		s.stock[key] = stock
	}
	for _, repair := range c.StockRepairs {
		key := stockKey{repair.Slot, repair.Shard}
		stock := s.stock[key]
		stock.Counters, stock.Terms = repair.Counters, repair.Terms
		stock.Version++
		s.stock[key] = stock
	}
	for _, write := range c.Reviews {
		s.reviews[write.Next.ID] = write.Next
	}
	for _, event := range c.Events {
		key := keyOf(event)
		s.events[key] = cloneEvent(event)
		s.versions[key.subject] = append(s.versions[key.subject], key.version)
	}
	if c.Idempotency != nil {
		record := cloneRecord(*c.Idempotency)
		record.Takes = ""
		s.records[record.ID] = record
	}
	for _, claim := range c.Uniqueness {
		s.uniqueness[uniquenessKey{claim.Kind, claim.Value}] = claim
	}
	s.applyArchives(c)
}

func keyOf(e ledger.Event) eventKey { return eventKey{e.Subject(), e.Version} }

// putWaiting enters the hold in its due shard while it waits for its end.
func (s *Store) putWaiting(hold ledger.Hold) {
	shard := ledger.DueShard(hold.ID)
	if s.waiting[shard] == nil {
		s.waiting[shard] = make(map[ledger.HoldID]struct{})
	}
	if _, waits := hold.DueAt(); waits {
		s.waiting[shard][hold.ID] = struct{}{}
	} else {
		delete(s.waiting[shard], hold.ID)
	}
}
