package ledger

import "time"

// limits are what the policies of a hold's slots allow its owner. Of two limits of one count
// the smaller one holds.
//
// They are charged on the hold: it writes down what it is counted as, and its own
// transaction counts it. A counter beside the transaction could be passed by two holds at
// once, and one that is taken back by the limits of the day would keep, or lose, units
// whenever a limit is set or taken away while a hold lives.
type limits struct {
	most map[QuotaKey]Units // of each count; none where there is no limit
	// expiries and cooldown are the strictest of the policies that have them.
	expiries Units
	cooldown time.Duration
	// holdsPerSignal bounds the holds of one signal in one window.
	holdsPerSignal Units
}

// limitsOf reads the limits of slots, which must be resolved.
func limitsOf(slots []Slot) limits {
	l := limits{most: make(map[QuotaKey]Units)}
	for _, s := range slots {
		p := s.Policy
		l.limit(SlotQuota(s.ID), p.QuantityPerOwnerMax)
		l.limit(ResourceQuota(s.ResourceType, s.ResourceID), p.QuantityPerOwnerOfResourceMax)
		l.limit(QuotaHolds, p.HoldsPerOwnerMax)
		if p.ExpiriesMax > 0 {
			l.expiries = smaller(l.expiries, p.ExpiriesMax)
			l.cooldown = max(l.cooldown, p.CooldownFor)
		}
		l.holdsPerSignal = smaller(l.holdsPerSignal, p.HoldsPerSignalMax)
	}
	return l
}

func (l limits) limit(key QuotaKey, units Units) {
	if units > 0 {
		l.most[key] = smaller(l.most[key], units)
	}
}

// smaller is the stricter of two limits, of which zero is none.
func smaller(a, b Units) Units {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// countsInOf are the counts that each unit of a line of the slot is part of: those that the
// slot's own policy limits, whatever else is in the hold. The slot must be resolved.
func countsInOf(s Slot) []QuotaKey {
	var keys []QuotaKey
	if s.Policy.QuantityPerOwnerOfResourceMax > 0 {
		keys = append(keys, ResourceQuota(s.ResourceType, s.ResourceID))
	}
	if s.Policy.QuantityPerOwnerMax > 0 {
		keys = append(keys, SlotQuota(s.ID))
	}
	return keys
}

// coolDown adds what the write requires of the owner's expired holds. After says that the
// cool-down has passed since the last of them, which the write then makes sure of.
func (l limits) coolDown(c *Change, owner OwnerID, after bool) {
	if l.expiries == 0 {
		return
	}
	c.withQuota(owner, func(w *QuotaWrite) {
		if after {
			w.LastExpiredBy, w.Forget = c.At.Add(-l.cooldown), true
			return
		}
		w.ExpiredBelow = l.expiries
	})
}

// withinLimits returns CodeLimitReached where the writes ask for more than a limit allows
// whatever the owner has already.
func withinLimits(writes []QuotaWrite) error {
	var over []Limit
	for _, w := range writes {
		for _, d := range w.Deltas {
			if d.Max > 0 && d.Units > d.Max {
				over = append(over, Limit{d.Key, d.Max})
			}
		}
	}
	if len(over) > 0 {
		return LimitReached(over)
	}
	return nil
}

// LimitReached is the answer for an owner who would go beyond limits.
func LimitReached(limits []Limit) *Error {
	return &Error{Code: CodeLimitReached, Limits: limits,
		Message: "you would have more of this than one customer may; ask for fewer, or give some back first"}
}
