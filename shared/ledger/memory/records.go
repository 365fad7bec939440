package memory

import (
	"context"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// Records returns all that is stored of one thing: itself with its places in the lists, and
// its events. A thing that is not there has no records.
func (s *Store) Records(ctx context.Context, of ledger.RecordsOf) (ledger.Records, error) {
	if err := s.begin(ctx); err != nil {
		return ledger.Records{}, err
	}
	defer s.mutex.Unlock()
	var r ledger.Records
	subject := ""
	switch {
	case of.Hold != "":
		subject = ledger.Event{Hold: &ledger.Hold{ID: of.Hold}}.Subject()
		if hold, found := s.holds[of.Hold]; found {
			r.Holds = append(r.Holds, storedHold(hold))
		}
	case of.Reservation != "":
		subject = ledger.Event{Reservation: &ledger.Reservation{ID: of.Reservation}}.Subject()
		if reservation, found := s.reservations[of.Reservation]; found {
			r.Reservations = append(r.Reservations, storedReservation(reservation))
		}
	case of.OfStock:
		if stock, found := s.stock[stockKey{of.Slot, of.Shard}]; found {
			r.Stock = append(r.Stock, stock)
		}
	case of.Slot != "":
		subject = ledger.Event{Slot: &ledger.Slot{ID: of.Slot}}.Subject()
		if slot, found := s.slots[of.Slot]; found {
			r.Slots = append(r.Slots, cloneSlot(slot))
		}
	case of.Policy.ResourceType != "":
		subject = ledger.Event{Policy: &ledger.ScopePolicy{Scope: of.Policy}}.Subject()
		if policy, found := s.policies[of.Policy]; found {
			r.Policies = append(r.Policies, policy)
		}
	case of.Review != "":
		subject = ledger.Event{Review: &ledger.Review{ID: of.Review}}.Subject()
		if review, found := s.reviews[of.Review]; found {
			r.Reviews = append(r.Reviews, review)
		}
	default:
		return r, invalid("records of nothing")
	}
	for _, version := range s.versions[subject] {
		r.Events = append(r.Events, cloneEvent(s.events[eventKey{subject, version}]))
	}
	return r, nil
}

// storedHold is the hold with the lists that it is in: this store has no lists that could
// differ from the hold.
func storedHold(h ledger.Hold) ledger.StoredHold {
	_, archivable := h.ArchiveFrom(h.EndedAt)
	return ledger.StoredHold{Hold: cloneHold(h), Due: h.Status == ledger.StatusHeld, Archivable: archivable}
}

func storedReservation(r ledger.Reservation) ledger.StoredReservation {
	_, archivable := r.ArchiveFrom()
	return ledger.StoredReservation{Reservation: r.Clone(), Due: !r.LookAt.IsZero(), Archivable: archivable}
}

// EndedHolds lists the holds of one due shard that have ended, and whose retention counts from
// since or later.
func (s *Store) EndedHolds(ctx context.Context, shard int, since time.Time, page ledger.Page) ([]ledger.HoldID, ledger.Cursor, error) {
	if err := s.begin(ctx); err != nil {
		return nil, "", err
	}
	defer s.mutex.Unlock()
	var entries []entry[ledger.HoldID]
	for id, hold := range s.holds {
		from, archivable := hold.ArchiveFrom(hold.EndedAt)
		if archivable && ledger.DueShard(id) == shard && !from.Before(since) {
			entries = append(entries, entry[ledger.HoldID]{fmt.Sprintf("%019d/%s", from.UnixMilli(), id), id})
		}
	}
	return pageOf(entries, page)
}

// ScanSegment reads the part of the ledger whose things fall into the segment, in one page and
// at one moment.
func (s *Store) ScanSegment(ctx context.Context, segment, total int, _ ledger.Cursor) (ledger.RecordsPage, error) {
	if err := s.begin(ctx); err != nil {
		return ledger.RecordsPage{}, err
	}
	defer s.mutex.Unlock()
	in := func(id string) bool { return ledger.DueShard(ledger.HoldID(id))%total == segment }
	var r ledger.Records
	for id, hold := range s.holds {
		if in(string(id)) {
			r.Holds = append(r.Holds, storedHold(hold))
		}
	}
	for id, reservation := range s.reservations {
		if in(string(id)) {
			r.Reservations = append(r.Reservations, storedReservation(reservation))
		}
	}
	for id, slot := range s.slots {
		if in(string(id)) {
			r.Slots = append(r.Slots, cloneSlot(slot))
		}
	}
	for key, stock := range s.stock {
		if in(fmt.Sprintf("%s/%d", key.slot, key.shard)) {
			r.Stock = append(r.Stock, stock)
		}
	}
	s.scanOthers(&r, in)
	for key, event := range s.events {
		if in(key.subject) {
			r.Events = append(r.Events, cloneEvent(event))
		}
	}
	return ledger.RecordsPage{Records: r}, nil
}

func (s *Store) scanOthers(r *ledger.Records, in func(id string) bool) {
	for scope, policy := range s.policies {
		if in(string(scope.ResourceType)) {
			r.Policies = append(r.Policies, policy)
		}
	}
	for owner := range s.quotas {
		if in(string(owner)) {
			r.Quotas = append(r.Quotas, s.quota(owner))
		}
	}
	for id, review := range s.reviews {
		if in(string(id)) {
			r.Reviews = append(r.Reviews, review)
		}
	}
}
