package sim

import (
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// judgeEdited checks a success of a request that changes a hold in its life, or gives parts
// of its sale back: what was asked for was true of it at some moment since.
func (w *world) judgeEdited(r *request, t *try, a answer) {
	hold := w.books.holds[a.HoldID]
	if hold == nil || a.HoldID != r.about || string(hold.now.Owner) != r.subject && r.kind != askReturn {
		w.violated("P5", "%s was answered %d with %s, which does not exist, or is another's", r.name, t.status, a.HoldID)
		return
	}
	w.judgeOneAnswer(r, t)
	if !slices.ContainsFunc(hold.history, func(h ledger.Hold) bool { return r.fulfilledBy(h) }) {
		w.violated("P5", "%s was answered %d, and %s never was like that", r.name, t.status, a.HoldID)
	}
}

// fulfilledBy reports whether a version of a hold is what the request asked for.
func (r *request) fulfilledBy(h ledger.Hold) bool {
	switch r.kind {
	case askEdit:
		return h.Status == ledger.StatusHeld && sameLines(h.Lines, r.lines)
	case askReturn:
		if len(r.lines) == 0 {
			return h.Status == ledger.StatusReturned
		}
		return !slices.ContainsFunc(r.lines, func(back wish) bool { return returnedOf(h, back.slot) < back.quantity })
	default:
		return h.Status == ledger.StatusHeld
	}
}

// judgeHoldRefusal reports whether a refusal that edits, parts, returns or limits brought
// was true at some moment of the request.
func (w *world) judgeHoldRefusal(r *request, t *try, a answer) bool {
	switch a.Code {
	case ledger.CodeLimitReached:
		return w.limited(r, t)
	case ledger.CodeCoolingDown:
		book := w.books.holds[r.about]
		exchanged := r.kind == askEdit && book != nil && book.ever(t.begin, t.end, func(h ledger.Hold) bool { return !h.CountsExpiry })
		return (r.kind == askCreate || exchanged) && w.coolingDown(r, t)
	case ledger.CodeSlotOversold:
		return r.kind == askOpen && w.books.ever(r.slot, t.begin, t.end, func(m moment) bool { return m.missing > m.available })
	default:
	}
	hold := w.books.holds[r.about]
	if hold == nil {
		return false
	}
	ever := func(so func(ledger.Hold) bool) bool { return hold.ever(t.begin, t.end, so) }
	switch a.Code {
	case ledger.CodeHoldAtMaximum:
		return (r.kind == askExtend || r.extend > 0) && ever(func(h ledger.Hold) bool {
			return !h.ExpiresAt.Before(h.CreatedAt.Add(min(h.HoldForMax, w.longestOf(r.lines))))
		})
	case ledger.CodeHasReservation:
		return r.kind == askReturn && ever(func(h ledger.Hold) bool { return h.Reservation != "" })
	case ledger.CodeReturnOverSale:
		return r.kind == askReturn && ever(func(h ledger.Hold) bool {
			return slices.ContainsFunc(r.lines, func(back wish) bool {
				return lineOf(h, back.slot).Quantity-returnedOf(h, back.slot) < r.quantity(back.slot)
			})
		})
	case ledger.CodeInvalid:
		return (r.kind == askConfirm || r.kind == askReturn) && ever(func(h ledger.Hold) bool {
			return slices.ContainsFunc(r.lines, func(part wish) bool { return lineOf(h, part.slot).Quantity < part.quantity })
		})
	default:
		return false
	}
}

// longestOf is the longest life of a hold of these slots: an edit that brings them in makes
// the hold's own no longer.
func (w *world) longestOf(lines []wish) time.Duration {
	longest := ledger.HoldForLimit
	for _, line := range lines {
		longest = min(longest, w.books.slots[line.slot].now.Policy.HoldForMax)
	}
	return longest
}

// limited reports whether the request would have taken its owner, or its device, beyond a
// limit. What the same request had taken under its key is no reason.
func (w *world) limited(r *request, t *try) bool {
	var slots []ledger.SlotID
	had := func(ledger.SlotID) ledger.Units { return 0 }
	if hold := w.books.holds[r.about]; r.kind == askEdit && hold != nil {
		had = func(id ledger.SlotID) ledger.Units { return lineOf(hold.now, id).Quantity }
	}
	for _, line := range r.lines {
		slots = append(slots, line.slot)
	}
	limits, _, _, signal := w.books.limitsOf(slots)
	if r.kind == askCreate && signal > 0 && r.device != "" && w.books.madeWith(r.device, w.kernel.now, true) >= signal {
		return true
	}
	more := map[ledger.QuotaKey]ledger.Units{"holds": 1}
	if hold := w.books.holds[r.about]; r.kind == askEdit && hold != nil &&
		!hold.ever(t.begin, t.end, func(h ledger.Hold) bool { return !slices.Contains(h.CountsIn, "holds") }) {
		more["holds"] = 0 // it is counted already
	}
	seen := map[ledger.SlotID]bool{}
	for _, id := range slots {
		for _, key := range w.books.countsIn(id) {
			if !seen[id] {
				more[key] += r.quantity(id) - had(id)
			}
		}
		seen[id] = true
	}
	return w.books.everCounted(ledger.OwnerID(r.subject), t.begin, t.end, func(_ time.Time, q ledger.Quota) bool {
		for key, limit := range limits {
			if q.Counts[key]+more[key] > limit {
				return true
			}
		}
		return false
	})
}

// coolingDown reports whether too many of the owner's holds had expired, the last of them
// not long enough ago by the clock that judged it.
func (w *world) coolingDown(r *request, t *try) bool {
	var slots []ledger.SlotID
	for _, line := range r.lines {
		slots = append(slots, line.slot)
	}
	_, most, cooldown, _ := w.books.limitsOf(slots)
	return most > 0 && w.books.everCounted(ledger.OwnerID(r.subject), t.begin, t.end, func(at time.Time, q ledger.Quota) bool {
		return q.Expired >= most && at.Add(t.clock.skewMin).Before(q.LastExpiredAt.Add(cooldown))
	})
}

// judgePolicy checks that a policy that was answered with exists, and says what was asked
// for.
func (w *world) judgePolicy(r *request, version ledger.Version) {
	moments := w.books.policies[r.policyScope()]
	if version < 1 || int(version) > len(moments) || moments[version-1].was.Layer.Policy.HoldFor != r.holdFor {
		w.violated("edits", "%s was answered with version %d, which has not what it asked for", r.name, version)
	}
}

// rememberHad keeps what a hold had when an edit of it was refused as short, unless it changed
// meanwhile: then nobody can say what the edit was short of.
func (w *world) rememberHad(r *request, t *try) {
	hold := w.books.holds[r.about]
	if r.kind != askEdit || hold == nil {
		return
	}
	had := map[ledger.SlotID]ledger.Units{}
	versions := 0
	hold.ever(t.begin, t.end, func(h ledger.Hold) bool {
		versions++
		for _, line := range h.Lines {
			had[line.Slot] = line.Quantity
		}
		return false
	})
	if versions == 1 {
		t.had = had
	}
}
