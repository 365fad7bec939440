package ledgertest

import (
	"time"

	"holdfast/shared/ledger"
)

// owned is what an audit adds up for one owner.
type owned struct {
	counts map[ledger.QuotaKey]ledger.Units
	// expired are the times at which counted holds expired.
	expired map[time.Time]bool
	expiry  ledger.Units // how many they are
}

// auditQuotas compares what is counted of the owners of these holds with what the holds say
// they are counted as. A count of zero is none.
func auditQuotas(t TB, store ledger.Store, holds []ledger.Hold) {
	t.Helper()
	owners := make(map[ledger.OwnerID]*owned)
	for _, hold := range holds {
		if owners[hold.Owner] == nil {
			owners[hold.Owner] = &owned{counts: make(map[ledger.QuotaKey]ledger.Units), expired: make(map[time.Time]bool)}
		}
		owners[hold.Owner].add(hold)
	}
	for owner, want := range owners {
		quota, err := store.Quota(t.Context(), owner)
		if err != nil {
			t.Fatalf("books: quota of %s: %v", owner, err)
		}
		if quota.Owner != owner {
			t.Errorf("books: the quota of %s is told to be of %q", owner, quota.Owner)
		}
		for key, units := range quota.Counts {
			want.counts[key] -= units
		}
		for key, units := range want.counts {
			if units != 0 {
				t.Errorf("books: %s has %d in count %s, but the holds add up to %d", owner, quota.Counts[key], key, quota.Counts[key]+units)
			}
		}
		if quota.Expired < 0 || quota.Expired > want.expiry || quota.Expired > 0 && !want.expired[quota.LastExpiredAt] {
			t.Errorf("books: %s has %d expired holds, the last at %s, but %d have expired", owner, quota.Expired, quota.LastExpiredAt, want.expiry)
		}
	}
}

// add counts the hold while it is HELD, and its lines until they are given back.
func (o *owned) add(hold ledger.Hold) {
	if hold.Status == ledger.StatusExpired && hold.CountsExpiry {
		o.expired[hold.EndedAt] = true
		o.expiry++
	}
	if hold.Status == ledger.StatusCanceled || hold.Status == ledger.StatusExpired {
		return
	}
	if hold.Status == ledger.StatusHeld {
		for _, key := range hold.CountsIn {
			o.counts[key]++
		}
	}
	for _, line := range hold.Lines {
		left := line.Quantity
		for _, back := range line.Returned {
			left -= back.Quantity
		}
		for _, key := range line.CountsIn {
			o.counts[key] += left
		}
	}
}
