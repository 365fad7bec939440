package memory

import (
	"context"
	"fmt"
	"math"
	"time"

	"holdfast/shared/ledger"
)

// Reservation implements ledger.Store.
func (s *Store) Reservation(ctx context.Context, id ledger.ReservationID) (ledger.Reservation, error) {
	if err := s.begin(ctx); err != nil {
		return ledger.Reservation{}, err
	}
	defer s.mutex.Unlock()
	reservation, found := s.reservations[id]
	if !found {
		return ledger.Reservation{}, ledger.ReservationNotFound()
	}
	return reservation.Clone(), nil
}

// ReservationsOfOwner implements ledger.Store.
func (s *Store) ReservationsOfOwner(ctx context.Context, owner ledger.OwnerID, page ledger.Page) ([]ledger.Reservation, ledger.Cursor, error) {
	if err := s.begin(ctx); err != nil {
		return nil, "", err
	}
	defer s.mutex.Unlock()
	var entries []entry[ledger.Reservation]
	for _, r := range s.reservations {
		if r.Owner == owner {
			newestFirst := fmt.Sprintf("%019d/%s", math.MaxInt64-r.CreatedAt.UnixMilli(), r.ID)
			entries = append(entries, entry[ledger.Reservation]{newestFirst, r.Clone()})
		}
	}
	return pageOf(entries, page)
}

// DueReservations implements ledger.Store.
func (s *Store) DueReservations(ctx context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueReservation, ledger.Cursor, error) {
	if err := s.begin(ctx); err != nil {
		return nil, "", err
	}
	defer s.mutex.Unlock()
	var entries []entry[ledger.DueReservation]
	for _, r := range s.reservations {
		if !r.LookAt.IsZero() && ledger.ReservationDueShard(r.ID) == shard && !r.LookAt.After(now) {
			oldestFirst := fmt.Sprintf("%019d/%s", r.LookAt.UnixMilli(), r.ID)
			entries = append(entries, entry[ledger.DueReservation]{oldestFirst, ledger.DueReservation{ID: r.ID, DueAt: r.LookAt}})
		}
	}
	return pageOf(entries, page)
}

// Claimed implements ledger.Store.
func (s *Store) Claimed(ctx context.Context, kind ledger.UniquenessKind, value string) (ledger.Uniqueness, bool, error) {
	if err := s.begin(ctx); err != nil {
		return ledger.Uniqueness{}, false, err
	}
	defer s.mutex.Unlock()
	claim, found := s.uniqueness[uniquenessKey{kind, value}]
	return claim, found, nil
}

// Postpone notes when the reservation is looked at again, and how often it was looked at
// since its last step. It does nothing to a reservation that has gone on to another
// version. It changes no promise, so it is not a Change.
func (s *Store) Postpone(ctx context.Context, id ledger.ReservationID, version ledger.Version, lookAt time.Time, tries int) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mutex.Unlock()
	reservation, found := s.reservations[id]
	if found && reservation.Version == version && reservation.ArchivedIn == "" {
		reservation.LookAt, reservation.Tries = lookAt, tries
		s.reservations[id] = reservation
	}
	return nil
}

func (s *Store) refusedReservation(write ledger.ReservationWrite) []ledger.RefusedLeg {
	// The version of a reservation that does not exist is zero, which is what a first
	// attempt replaces.
	stored := s.reservations[write.Next.ID]
	if stored.Version == write.Replaces && stored.Status == write.From &&
		stored.ArchivedIn == "" && stored.HoldsArchived == write.Next.HoldsArchived {
		return nil
	}
	return []ledger.RefusedLeg{s.reservationLeg(write.Next.ID)}
}
