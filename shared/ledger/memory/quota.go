package memory

import (
	"context"
	"maps"

	"holdfast/shared/ledger"
)

// Quota implements ledger.Store.
func (s *Store) Quota(ctx context.Context, owner ledger.OwnerID) (ledger.Quota, error) {
	if err := s.begin(ctx); err != nil {
		return ledger.Quota{}, err
	}
	defer s.mutex.Unlock()
	return s.quota(owner), nil
}

// quota is what is counted of the owner. The caller owns it.
func (s *Store) quota(owner ledger.OwnerID) ledger.Quota {
	quota := s.quotas[owner]
	quota.Owner, quota.Counts = owner, maps.Clone(quota.Counts)
	return quota
}

// TidyQuota takes counts that have fallen to zero out of what is counted of the owner. It
// changes no promise, so it is not a Change, and may be repeated.
func (s *Store) TidyQuota(ctx context.Context, owner ledger.OwnerID, keys []ledger.QuotaKey) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mutex.Unlock()
	counts := s.quotas[owner].Counts
	for _, key := range keys {
		if counts[key] == 0 {
			delete(counts, key)
		}
	}
	return nil
}

// refusedLimits are the legs of an owner, or of a signal, that would go beyond a limit.
func (s *Store) refusedLimits(c ledger.Change) []ledger.RefusedLeg {
	var legs []ledger.RefusedLeg
	for _, write := range c.Quotas {
		if quota := s.quota(write.Owner); !allows(quota, write) {
			legs = append(legs, ledger.RefusedLeg{Kind: ledger.LegQuota, Quota: &quota})
		}
	}
	for _, write := range c.Signals {
		if count := s.signals[keyOfSignal(write)]; count >= write.Max {
			write.Max = count
			legs = append(legs, ledger.RefusedLeg{Kind: ledger.LegSignal, Signal: &write})
		}
	}
	return legs
}

func allows(quota ledger.Quota, write ledger.QuotaWrite) bool {
	for _, d := range write.Deltas {
		if d.Max > 0 && quota.Counts[d.Key]+d.Units > d.Max {
			return false
		}
		if d.Was != nil && quota.Counts[d.Key] != *d.Was {
			return false
		}
	}
	return (write.ExpiredBelow == 0 || quota.Expired < write.ExpiredBelow) &&
		(write.LastExpiredBy.IsZero() || !quota.LastExpiredAt.After(write.LastExpiredBy))
}

func (s *Store) applyLimits(c ledger.Change) {
	for _, write := range c.Quotas {
		quota := s.quota(write.Owner)
		if quota.Counts == nil {
			quota.Counts = make(map[ledger.QuotaKey]ledger.Units)
		}
		for _, d := range write.Deltas {
			if d.Units != 0 { // one of none only requires something
				quota.Counts[d.Key] += d.Units
			}
		}
		if write.Forget {
			quota.Expired = 0
		}
		if write.Expired {
			quota.Expired++
			quota.LastExpiredAt = c.At
		}
		s.quotas[write.Owner] = quota
	}
	for _, write := range c.Signals {
		s.signals[keyOfSignal(write)]++
	}
}

func keyOfSignal(write ledger.SignalWrite) signalKey {
	return signalKey{write.Signal, write.Window.UnixMilli()}
}
