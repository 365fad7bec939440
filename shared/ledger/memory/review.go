package memory

import (
	"context"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// Reviews implements ledger.Store.
func (s *Store) Reviews(ctx context.Context, ids []ledger.ReviewID) ([]ledger.Review, error) {
	if len(ids) > ledger.PageItemsMax {
		return nil, invalid(fmt.Sprintf("%d cases are more than %d; ask for fewer at once", len(ids), ledger.PageItemsMax))
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mutex.Unlock()
	var out []ledger.Review
	seen := make(map[ledger.ReviewID]bool, len(ids))
	for _, id := range ids {
		if stored, exists := s.reviews[id]; exists && !seen[id] {
			out = append(out, stored)
		}
		seen[id] = true
	}
	return out, nil
}

// ReviewEvents implements ledger.Store.
func (s *Store) ReviewEvents(ctx context.Context, id ledger.ReviewID) ([]ledger.Event, error) {
	return s.eventsOf(ctx, ledger.Event{Review: &ledger.Review{ID: id}}.Subject())
}

// InReview implements ledger.Store.
func (s *Store) InReview(ctx context.Context, page ledger.Page) ([]ledger.InReview, ledger.Cursor, error) {
	if err := s.begin(ctx); err != nil {
		return nil, "", err
	}
	defer s.mutex.Unlock()
	var entries []entry[ledger.InReview]
	add := func(since time.Time, id string, e ledger.InReview) {
		e.Since = since
		entries = append(entries, entry[ledger.InReview]{fmt.Sprintf("%019d/%s", since.UnixMilli(), id), e})
	}
	for id, r := range s.reservations {
		if since, waits := r.InReviewSince(); waits {
			add(since, string(id), ledger.InReview{Reservation: id})
		}
	}
	for id, r := range s.reviews {
		if since, waits := r.InReviewSince(); waits {
			add(since, string(id), ledger.InReview{Review: id})
		}
	}
	return pageOf(entries, page)
}

func (s *Store) refusedReview(write ledger.ReviewWrite) []ledger.RefusedLeg {
	stored, exists := s.reviews[write.Next.ID]
	if stored.Version == write.Replaces {
		return nil
	}
	leg := ledger.RefusedLeg{Kind: ledger.LegReview}
	if exists {
		leg.Review = &stored
	}
	return []ledger.RefusedLeg{leg}
}
