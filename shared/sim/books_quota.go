package sim

import (
	"maps"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// quotaMoment is what was counted of an owner from a time on.
type quotaMoment struct {
	at  time.Time
	was ledger.Quota
}

// writeQuotas checks what the commit counts of owners: the counts are what the holds say,
// and expired holds are counted and forgotten as they must be.
func (s *step) writeQuotas() {
	touched := map[ledger.OwnerID]bool{}
	for _, stored := range s.after.Holds {
		touched[stored.Hold.Owner] = true
	}
	for _, quota := range s.after.Quotas {
		touched[quota.Owner] = true
		before := s.quota(quota.Owner)
		s.checkExpiries(before, quota)
		s.quotas[quota.Owner] = append(s.quotas[quota.Owner], quotaMoment{s.world.kernel.now, quota})
	}
	for _, owner := range slices.Sorted(maps.Keys(touched)) {
		want := s.counted(owner)
		have := maps.Clone(s.quota(owner).Counts)
		maps.DeleteFunc(have, func(_ ledger.QuotaKey, units ledger.Units) bool { return units == 0 })
		if !maps.Equal(want, have) {
			s.violated("limits", "left %s counted as %v, and the holds say %v", owner, have, want)
		}
	}
}

// quota is what is counted of the owner now.
func (b *books) quota(owner ledger.OwnerID) ledger.Quota {
	moments := b.quotas[owner]
	if len(moments) == 0 {
		return ledger.Quota{Owner: owner}
	}
	return moments[len(moments)-1].was
}

// counted adds up what the holds of the owner count as, by arithmetic of our own.
func (b *books) counted(owner ledger.OwnerID) map[ledger.QuotaKey]ledger.Units {
	counts := map[ledger.QuotaKey]ledger.Units{}
	for _, book := range b.holds {
		h := book.now
		live := h.Status == ledger.StatusHeld
		sold := h.Status == ledger.StatusConfirmed || h.Status == ledger.StatusReturned
		if h.Owner != owner || !live && !sold {
			continue
		}
		for _, key := range h.CountsIn {
			if live {
				counts[key]++
			}
		}
		for _, line := range h.Lines {
			for _, key := range line.CountsIn {
				counts[key] += line.Quantity - quantityOf(line.Returned)
			}
		}
	}
	maps.DeleteFunc(counts, func(_ ledger.QuotaKey, units ledger.Units) bool { return units == 0 })
	return counts
}

// limitsOf are the limits of the slots of lines, written out a second time.
func (b *books) limitsOf(lines []ledger.SlotID) (limits map[ledger.QuotaKey]ledger.Units, expiries ledger.Units, cooldown time.Duration, signal ledger.Units) {
	limits = map[ledger.QuotaKey]ledger.Units{}
	lower := func(old, limit ledger.Units) ledger.Units {
		if limit > 0 && (old == 0 || limit < old) {
			return limit
		}
		return old
	}
	for _, id := range lines {
		p := b.slots[id].now.Policy
		for key, limit := range map[ledger.QuotaKey]ledger.Units{
			"holds": p.HoldsPerOwnerMax, ledger.QuotaKey("slot/" + string(id)): p.QuantityPerOwnerMax,
			"resource/show/R1": p.QuantityPerOwnerOfResourceMax,
		} {
			if limit > 0 {
				limits[key] = lower(limits[key], limit)
			}
		}
		expiries, signal = lower(expiries, p.ExpiriesMax), lower(signal, p.HoldsPerSignalMax)
		if p.ExpiriesMax > 0 {
			cooldown = max(cooldown, p.CooldownFor)
		}
	}
	return limits, expiries, cooldown, signal
}

// checkCounted: a hold that is made, or takes more, counts where its slots have limits, and
// leaves its owner within them.
func (s *step) checkCounted(after, before ledger.Hold) {
	var grown []ledger.SlotID
	for _, line := range after.Lines {
		if line.Quantity > lineOf(before, line.Slot).Quantity {
			grown = append(grown, line.Slot)
		}
	}
	limits, expiries, _, signal := s.limitsOf(grown)
	for _, id := range grown {
		want := s.countsIn(id)
		if got := lineOf(after, id).CountsIn; !slices.Equal(got, want) {
			s.violated("limits", "counts the line of %s of %s in %v, and its limits are of %v", id, after.ID, got, want)
		}
	}
	if limits["holds"] > 0 && !slices.Contains(after.CountsIn, "holds") || expiries > 0 && !after.CountsExpiry {
		s.violated("limits", "does not count %s, which is of limited slots", after.ID)
	}
	s.wanted = append(s.wanted, limitCheck{after.Owner, limits})
	if before.Version == 0 {
		s.checkSignal(after, signal)
	}
}

// countsIn are the counts that a unit of the slot is part of: those that its own policy
// limits.
func (b *books) countsIn(id ledger.SlotID) []ledger.QuotaKey {
	var keys []ledger.QuotaKey
	if p := b.slots[id].now.Policy; p.QuantityPerOwnerOfResourceMax > 0 {
		keys = append(keys, "resource/show/R1")
	}
	if p := b.slots[id].now.Policy; p.QuantityPerOwnerMax > 0 {
		keys = append(keys, ledger.QuotaKey("slot/"+string(id)))
	}
	return keys
}

// limitCheck is what an owner must not have more of after a commit.
type limitCheck struct {
	owner  ledger.OwnerID
	limits map[ledger.QuotaKey]ledger.Units
}

func (s *step) checkLimits() {
	for _, check := range s.wanted {
		counts := s.counted(check.owner)
		for key, limit := range check.limits {
			if counts[key] > limit {
				s.violated("limits", "let %s have %d of %s, and %d is the most", check.owner, counts[key], key, limit)
			}
		}
	}
}

// checkSignal: no more holds are made with one device in an hour than a slot allows.
func (s *step) checkSignal(made ledger.Hold, limit ledger.Units) {
	if limit == 0 || s.by == nil || s.by.device == "" {
		return
	}
	if n := s.madeWith(s.by.device, made.CreatedAt, true); n+1 > limit {
		s.violated("limits", "made %s, the %d. with %s in its hour, and %d is the most", made.ID, n+1, s.by.device, limit)
	}
}

// madeWith counts the holds that were made with a device in the hour of a time, and were
// counted: those of a slot with a limit of that kind.
func (b *books) madeWith(device string, at time.Time, limited bool) ledger.Units {
	var n ledger.Units
	for _, book := range b.holds {
		if book.by == nil || book.by.device != device || len(book.history) == 0 {
			continue
		}
		first := book.history[0]
		var slots []ledger.SlotID
		for _, line := range first.Lines {
			slots = append(slots, line.Slot)
		}
		_, _, _, signal := b.limitsOf(slots)
		if (signal > 0 || !limited) && first.CreatedAt.Truncate(time.Hour).Equal(at.Truncate(time.Hour)) {
			n++
		}
	}
	return n
}

// checkExpiries: the count of expired holds rises by one with one that expires unpaid, and
// falls to nothing with a sale, or when the cool-down is over.
func (s *step) checkExpiries(before, after ledger.Quota) {
	expired, sold := false, false
	last := before.LastExpiredAt
	for _, e := range s.created {
		if e.Hold == nil || e.Hold.Owner != after.Owner || !e.Hold.CountsExpiry {
			continue
		}
		switch e.Type {
		case ledger.EventHoldExpired:
			if e.Hold.Reservation == "" {
				expired, last = true, e.OccurredAt
			}
		case ledger.EventHoldConfirmed, ledger.EventHoldReacquired:
			sold = true
		default:
		}
	}
	slots, made := s.comeToCount(after.Owner)
	_, most, cooldown, _ := s.limitsOf(slots)
	coolingDown := most > 0 && before.Expired >= most
	want := before.Expired
	switch {
	case expired:
		want++
	case sold, coolingDown:
		want = 0
	}
	if since := made.Sub(before.LastExpiredAt); coolingDown && since < cooldown {
		s.violated("limits", "made a hold of %s %s after the last of %d expired, and the cool-down is %s", after.Owner, since, before.Expired, cooldown)
	}
	if after.Expired != want || !after.LastExpiredAt.Equal(last) {
		s.violated("limits", "left %s with %d expired holds after %d, the last at %s", after.Owner, after.Expired, before.Expired, after.LastExpiredAt)
	}
}

// comeToCount are the slots that this commit gives to a hold of the owner that was not
// counted by its expiry before: a new one, or one of other slots that is edited. A cool-down
// keeps from both. With them comes the time that the commit says of itself.
func (s *step) comeToCount(owner ledger.OwnerID) ([]ledger.SlotID, time.Time) {
	var out []ledger.SlotID
	var at time.Time
	for _, e := range s.created {
		if e.Hold == nil || e.Hold.Owner != owner || e.Type != ledger.EventHoldCreated && e.Type != ledger.EventHoldChanged {
			continue
		}
		before := s.heldBefore(*e.Hold)
		if before.CountsExpiry {
			continue
		}
		at = e.OccurredAt
		for _, line := range e.Hold.Lines {
			if line.Quantity > lineOf(before, line.Slot).Quantity {
				out = append(out, line.Slot)
			}
		}
	}
	return out, at
}

// heldBefore is the version of the hold before this one; the zero hold for its first.
func (s *step) heldBefore(h ledger.Hold) ledger.Hold {
	book := s.holds[h.ID]
	if book == nil {
		return ledger.Hold{}
	}
	for _, old := range book.history {
		if old.Version == h.Version-1 {
			return old
		}
	}
	return ledger.Hold{}
}

// everCounted reports whether the owner was counted so at any moment between two times.
func (b *books) everCounted(owner ledger.OwnerID, from, to time.Time, so func(at time.Time, q ledger.Quota) bool) bool {
	moments := append([]quotaMoment{{was: ledger.Quota{Owner: owner}}}, b.quotas[owner]...)
	for i, m := range moments {
		lastsUntil := to
		if i+1 < len(moments) {
			lastsUntil = moments[i+1].at
		}
		if !m.at.After(to) && !lastsUntil.Before(from) && so(maxTime(m.at, from), m.was) {
			return true
		}
	}
	return false
}
