package memory

import (
	"context"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// parking is what is known of a hold that could not be ended. Its next step forgets it.
type parking struct {
	failures int
	tryAt    time.Time // zero for one that is not parked
}

// Failures says how often ending the hold has failed since its last step, and since when a
// parked one is due.
func (s *Store) Failures(ctx context.Context, id ledger.HoldID) (ledger.EndFailures, error) {
	if err := s.begin(ctx); err != nil {
		return ledger.EndFailures{}, err
	}
	defer s.mutex.Unlock()
	known := ledger.EndFailures{Count: s.parking[id].failures}
	if !s.parking[id].tryAt.IsZero() {
		known.DueAt, _ = s.holds[id].DueAt()
	}
	return known, nil
}

// CountFailure notes how often ending the hold has failed. It reports false, and does
// nothing, when the hold is not due as the entry says.
func (s *Store) CountFailure(ctx context.Context, entry ledger.DueHold, failures int) (bool, error) {
	if err := s.begin(ctx); err != nil {
		return false, err
	}
	defer s.mutex.Unlock()
	if !s.listed(entry) {
		return false, nil
	}
	s.parking[entry.ID] = parking{failures, entry.TryAt}
	return true, nil
}

// Park notes how often ending the hold has failed, and lists it among the parked ones
// until tryAt. It reports false, and does nothing, when the hold is not due as the entry
// says.
func (s *Store) Park(ctx context.Context, entry ledger.DueHold, failures int, tryAt time.Time) (bool, error) {
	if err := s.begin(ctx); err != nil {
		return false, err
	}
	defer s.mutex.Unlock()
	if !s.listed(entry) {
		return false, nil
	}
	s.parking[entry.ID] = parking{failures, tryAt}
	return true, nil
}

// Unpark puts a parked hold back among those that are due, without failures. It reports
// false, and does nothing, when the hold is not parked as the entry says.
func (s *Store) Unpark(ctx context.Context, entry ledger.DueHold) (bool, error) {
	if err := s.begin(ctx); err != nil {
		return false, err
	}
	defer s.mutex.Unlock()
	if entry.TryAt.IsZero() || !s.listed(entry) {
		return false, nil
	}
	delete(s.parking, entry.ID)
	return true, nil
}

// listed reports whether the entry is the one that the due index has of its hold.
func (s *Store) listed(entry ledger.DueHold) bool {
	dueAt, waits := s.holds[entry.ID].DueAt()
	tryAt := s.parking[entry.ID].tryAt
	if !tryAt.IsZero() || !entry.TryAt.IsZero() {
		return waits && tryAt.Equal(entry.TryAt)
	}
	return waits && dueAt.Equal(entry.DueAt)
}

// Parked lists the parked holds of one shard, those that are tried next first, as entries
// whose DueAt is not known.
func (s *Store) Parked(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
	if err := s.begin(ctx); err != nil {
		return nil, "", err
	}
	defer s.mutex.Unlock()
	var entries []entry[ledger.DueHold]
	for id, parked := range s.parking {
		if !parked.tryAt.IsZero() && ledger.DueShard(id) == shard {
			nextFirst := fmt.Sprintf("%019d/%s", parked.tryAt.UnixMilli(), id)
			entries = append(entries, entry[ledger.DueHold]{nextFirst, ledger.DueHold{ID: id, TryAt: parked.tryAt}})
		}
	}
	return pageOf(entries, page)
}
