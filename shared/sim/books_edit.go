package sim

import (
	"slices"

	"holdfast/shared/ledger"
)

// lineOf is the line of the slot, and the zero line where there is none.
func lineOf(h ledger.Hold, id ledger.SlotID) ledger.Line {
	if i := slices.IndexFunc(h.Lines, func(l ledger.Line) bool { return l.Slot == id }); i >= 0 {
		return h.Lines[i]
	}
	return ledger.Line{}
}

// checkEdited: the owner changes a hold that is alive and that nobody has begun to pay, to
// what was asked for and nothing else. What is kept keeps its price, what comes has today's.
func (s *step) checkEdited(before, after ledger.Hold, e ledger.Event) {
	by := s.by
	if by == nil || by.about != after.ID || by.subject != string(after.Owner) || by.kind != askEdit && by.kind != askExtend {
		s.violated("edits", "changed %s, and its owner did not ask for it", after.ID)
		return
	}
	if !e.OccurredAt.Before(before.ExpiresAt) || before.Reservation != "" {
		s.violated("P4", "changed %s at %s, which expired at %s, with the reservation %q", after.ID, e.OccurredAt, before.ExpiresAt, before.Reservation)
	}
	if by.kind == askEdit && !sameLines(after.Lines, by.lines) {
		s.violated("edits", "made the lines of %s %v, and %s asked for %v", after.ID, after.Lines, by.name, by.lines)
	}
	for _, line := range after.Lines {
		s.checkEditedLine(lineOf(before, line.Slot), line)
	}
	s.checkEditedTimes(before, after, e)
	s.checkCounted(after, before)
}

func (s *step) checkEditedLine(before, after ledger.Line) {
	if after.Quantity <= before.Quantity {
		if after.UnitPrice != before.UnitPrice || s.by.kind == askExtend && after.Quantity != before.Quantity {
			s.violated("price", "changed what is kept of %s from %v to %v", after.Slot, before, after)
		}
		return
	}
	slot := s.slots[after.Slot]
	shown := s.by.quoted[after.Slot]
	if s.by.kind != askEdit || slot == nil || !slot.now.Terms.Open || slot.now.Terms.Price != after.UnitPrice || after.UnitPrice.AmountMinor != shown {
		s.violated("price", "sold more of %s at %v, which is not its price now, or not the %d that was shown, or it is closed", after.Slot, after.UnitPrice, shown)
	}
}

// checkEditedTimes: an edit gives no more time than the hold's longest life, and none that
// nobody asked for; the time is never over at once.
func (s *step) checkEditedTimes(before, after ledger.Hold, e ledger.Event) {
	switch longest := before.CreatedAt.Add(before.HoldForMax); {
	case !after.ReleaseAt.Equal(after.ExpiresAt), !after.CreatedAt.Equal(before.CreatedAt), after.GraceFor > before.GraceFor,
		after.HoldFor > before.HoldFor, after.HoldForMax > before.HoldForMax:
		s.violated("edits", "gave %s other times than an edit may: %v to %v", after.ID, before, after)
	// An earlier edit may have brought in a slot of a shorter longest life, which lets the hold
	// live for as long as a new hold of that slot would.
	case after.ExpiresAt.After(longest) && after.ExpiresAt.After(before.ExpiresAt), !after.ExpiresAt.After(e.OccurredAt):
		s.violated("edits", "let %s live until %s, and its longest life ends at %s", after.ID, after.ExpiresAt, longest)
	case after.ExpiresAt.After(before.ExpiresAt) && s.by.kind == askEdit && s.by.extend == 0:
		s.violated("edits", "let %s live until %s, and nobody asked for more than %s", after.ID, after.ExpiresAt, before.ExpiresAt)
	case after.ExpiresAt.Before(before.ExpiresAt) && s.by.kind == askExtend:
		s.violated("edits", "an extension of %s made its life shorter", after.ID)
	}
}

// checkPart: a confirm of a part keeps what it names, and gives back the rest.
func (s *step) checkPart(before, after ledger.Hold) {
	whole := len(before.Lines) == len(after.Lines)
	for _, line := range after.Lines {
		was := lineOf(before, line.Slot)
		whole = whole && was.Quantity == line.Quantity
		if line.Quantity > was.Quantity || line.Quantity < 1 || line.UnitPrice != was.UnitPrice {
			s.violated("P2", "sold %v of the line %v of %s", line, was, after.ID)
		}
	}
	named := s.by != nil && s.by.kind == askConfirm && len(s.by.lines) > 0
	if named && !sameLines(after.Lines, s.by.lines) || !named && !whole {
		s.violated("P2", "sold %v of the lines %v of %s", after.Lines, before.Lines, after.ID)
	}
}

// editSteps keeps what an edit, or the sale of a part, did to each slot, for the model.
func (s *step) editSteps(before, after ledger.Hold) {
	var slots []ledger.SlotID
	for _, line := range slices.Concat(before.Lines, after.Lines) {
		if !slices.Contains(slots, line.Slot) {
			slots = append(slots, line.Slot)
		}
	}
	for _, id := range slots {
		was, is := lineOf(before, id).Quantity, lineOf(after, id)
		switch {
		case is.Quantity > was:
			s.slotStep(id, slotStep{kind: stepTake, quantity: is.Quantity - was, amount: is.UnitPrice.AmountMinor})
		case is.Quantity < was:
			s.slotStep(id, slotStep{kind: stepGive, quantity: was - is.Quantity})
		}
	}
}
