package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

const (
	// SignalWindow is how long a signal is counted: its counter is of one such window, and
	// means nothing afterwards.
	SignalWindow = time.Hour
	// SignalKeptFor is how long after its window a counter stays, for who has to explain it.
	SignalKeptFor = 24 * time.Hour
	// SignalHashCharacters is the length of a signal's hash.
	SignalHashCharacters = 64
)

// QuotaKey names what is counted of an owner: "holds", "slot/ID" or "resource/TYPE/ID".
type QuotaKey string

// QuotaHolds counts an owner's HELD holds.
const QuotaHolds QuotaKey = "holds"

// SlotQuota counts an owner's units of one slot.
func SlotQuota(id SlotID) QuotaKey { return QuotaKey("slot/" + string(id)) }

// ResourceQuota counts an owner's units of all slots of one resource.
func ResourceQuota(t ResourceType, id ResourceID) QuotaKey {
	return QuotaKey("resource/" + string(t) + "/" + string(id))
}

// Slot is the slot that the key is of, and whether it is of one.
func (k QuotaKey) Slot() (SlotID, bool) {
	id, found := strings.CutPrefix(string(k), "slot/")
	return SlotID(id), found
}

// Resource is the resource that the key is of, and whether it is of one. No name has a slash.
func (k QuotaKey) Resource() (ResourceType, ResourceID, bool) {
	name, found := strings.CutPrefix(string(k), "resource/")
	t, id, _ := strings.Cut(name, "/")
	return ResourceType(t), ResourceID(id), found
}

// Quota is what is counted of one owner. Only what a policy limits is counted.
type Quota struct {
	Owner  OwnerID
	Counts map[QuotaKey]Units
	// Expired is how many holds have expired, one after the other, since the owner last
	// bought something.
	Expired       Units
	LastExpiredAt time.Time
}

// QuotaDelta changes one count. With Max set, the count may not be more than that
// afterwards. Only a step that takes something has one: what only gives back is never
// refused, so that a limit that is lowered strands nothing.
type QuotaDelta struct {
	Key   QuotaKey
	Units Units
	Max   Units // zero for no condition
	// Was, if set, requires that the count is exactly that before; a count that is not there
	// is zero. Only a repair has it, and leaves no count below zero.
	Was *Units
}

// QuotaWrite changes what is counted of one owner. The owner's record is made when it is
// first needed.
type QuotaWrite struct {
	Owner  OwnerID
	Deltas []QuotaDelta // each key once, ordered by key
	// Expired counts one more hold that expired, at Change.At.
	Expired bool
	// Forget sets the count of expired holds to zero.
	Forget bool
	// ExpiredBelow requires fewer expired holds than this; zero requires nothing.
	ExpiredBelow Units
	// LastExpiredBy, if set, requires that no hold has expired after that time.
	LastExpiredBy time.Time
}

// countsOf is what a hold is counted as now.
func countsOf(h Hold) map[QuotaKey]Units {
	counts := make(map[QuotaKey]Units)
	switch h.Status {
	case StatusHeld:
		for _, key := range h.CountsIn {
			counts[key]++
		}
	case StatusConfirmed, StatusReturned:
	case StatusCanceled, StatusExpired, StatusPaymentChecking:
		return counts
	}
	for _, line := range h.Lines {
		for _, key := range line.CountsIn {
			counts[key] += line.Quantity - line.ReturnedQuantity()
		}
	}
	return counts
}

// quotaWrites is what the step of a hold from before to after changes of its owner's
// counts; before is the zero hold for one that is made. Most are the limits of the slots of
// which it takes more: they hold for the whole count, also where what the same step gives
// back makes up for what it takes. Else who has many units of a resource could exchange some
// for a slot of it whose own limit is smaller, and have what no new hold would give; and who
// has many holds could bring into one of them a slot that nobody may have with so many.
// Nothing is written where nothing changes and nothing is limited, so that a hold without
// limits costs no write.
func quotaWrites(before, after Hold, most map[QuotaKey]Units) []QuotaWrite {
	change := countsOf(after)
	for key, units := range countsOf(before) {
		change[key] -= units
	}
	w := QuotaWrite{Owner: after.Owner}
	for _, key := range slices.Sorted(maps.Keys(change)) {
		d := QuotaDelta{Key: key, Units: change[key], Max: most[key]}
		if d.Units != 0 || d.Max > 0 {
			w.Deltas = append(w.Deltas, d)
		}
	}
	if w.empty() {
		return nil
	}
	return []QuotaWrite{w}
}

// empty reports whether w would change nothing and require nothing.
func (w QuotaWrite) empty() bool {
	return len(w.Deltas) == 0 && !w.Expired && !w.Forget && w.ExpiredBelow == 0 && w.LastExpiredBy.IsZero()
}

// withQuota changes the one quota write of the owner, which it adds where there is none.
func (c *Change) withQuota(owner OwnerID, change func(w *QuotaWrite)) {
	i := slices.IndexFunc(c.Quotas, func(w QuotaWrite) bool { return w.Owner == owner })
	if i < 0 {
		i, c.Quotas = len(c.Quotas), append(c.Quotas, QuotaWrite{Owner: owner})
	}
	change(&c.Quotas[i])
}

// togetherQuotas is what both a and b change, with one write for each owner.
func togetherQuotas(a, b []QuotaWrite) []QuotaWrite {
	c := Change{Quotas: slices.Clone(a)}
	for _, more := range b {
		c.withQuota(more.Owner, func(w *QuotaWrite) {
			w.Deltas = togetherDeltas(w.Deltas, more.Deltas)
			w.Expired, w.Forget = w.Expired || more.Expired, w.Forget || more.Forget
			w.ExpiredBelow = smaller(w.ExpiredBelow, more.ExpiredBelow)
			if w.LastExpiredBy.IsZero() || !more.LastExpiredBy.IsZero() && more.LastExpiredBy.Before(w.LastExpiredBy) {
				w.LastExpiredBy = more.LastExpiredBy
			}
		})
	}
	return slices.DeleteFunc(c.Quotas, QuotaWrite.empty)
}

// togetherDeltas adds up what both do to each count. What one of them gives back makes room
// for what the other one takes, and the stricter limit holds.
func togetherDeltas(a, b []QuotaDelta) []QuotaDelta {
	sums := make(map[QuotaKey]QuotaDelta, len(a)+len(b))
	for _, d := range slices.Concat(a, b) {
		sum := sums[d.Key]
		sums[d.Key] = QuotaDelta{Key: d.Key, Units: sum.Units + d.Units, Max: smaller(sum.Max, d.Max), Was: cmp.Or(sum.Was, d.Was)}
	}
	var out []QuotaDelta
	for _, key := range slices.Sorted(maps.Keys(sums)) {
		if d := sums[key]; d.Units != 0 || d.Max > 0 {
			out = append(out, d)
		}
	}
	return out
}

// ForgetExpiries ends an owner's cool-down: the operator's unblock. It may be repeated.
func ForgetExpiries(owner OwnerID, now time.Time) Change {
	return Change{At: now, Quotas: []QuotaWrite{{Owner: owner, Forget: true}}}
}

// validate returns an error for a write that could not be meant.
func (w QuotaWrite) validate() error {
	if w.empty() || w.Owner == "" {
		return errors.New("change: a quota write that counts nothing, or of nobody")
	}
	for i, d := range w.Deltas {
		switch ordered := i == 0 || w.Deltas[i-1].Key < d.Key; {
		case d.Key == "" || !ordered:
			return fmt.Errorf("change: count %q of %s is not in order after %d others", d.Key, w.Owner, i)
		case d.Units == 0 && d.Max == 0, d.Max < 0, d.Max > 0 && d.Units > d.Max:
			return fmt.Errorf("change: count %+v of %s could never be written", d, w.Owner)
		case d.Was != nil && (d.Units == 0 || d.Max != 0 || *d.Was+d.Units < 0):
			return fmt.Errorf("change: count %q of %s, which was %d, can't be repaired by %d", d.Key, w.Owner, *d.Was, d.Units)
		}
	}
	return nil
}
