package httpapi

import (
	"context"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

const (
	// groupReadSlots is how many slots a search for groups reads at a time.
	groupReadSlots = 200
	// groupSlotsLookedMax bounds the slots that one answer looks at beyond its first page: a
	// public question must not cost as much as anybody likes. The document tells it.
	groupSlotsLookedMax = groupReadSlots * pageReadsMax
	// groupReadsMax is one more read than these slots need: how far a stay reaches is guessed
	// before it is read, and a wrong guess ends one read early.
	groupReadsMax = pageReadsMax + 1
)

// findStays looks at one page of slots and finds the stays that begin with them.
//
// A stay is on the page of its first slot, and the next page begins after the last first
// slot. So that no stay is lost or cut where a page ends, the slots that could go on with
// one are read too, beyond the page and beyond the range, before anything is answered.
// Where these are too many to read, nothing is answered: an answer without some stays
// would look like one that has them all.
func (r *availabilityReader) findStays(ctx context.Context, s search) (found, error) {
	page, err := r.page(ctx, s.in, ledger.Page{Limit: s.limit, After: s.after})
	if err != nil {
		return found{}, err
	}
	firsts, err := r.fitting(ctx, s, page.slots)
	if err != nil {
		return found{}, err
	}
	plan := newStayPlan(s.nights, firsts)
	if err := r.readAhead(ctx, s, plan, knownUntil(s, page)); err != nil {
		return found{}, err
	}
	return found{next: page.next}.withGroups(plan.stays()), nil
}

// knownUntil is the time before which no slot starts that a page of first slots has not
// shown: the start of its last slot, or the end of the range. Zero says that all is known.
func knownUntil(s search, page slotPage) time.Time {
	if page.next == "" {
		if s.in.to.IsZero() {
			return time.Time{}
		}
		return s.in.to.Add(time.Millisecond)
	}
	if len(page.slots) == 0 {
		return s.in.from
	}
	return page.slots[len(page.slots)-1].StartsAt
}

// readAhead adds to the plan what its stays could go on with. All slots that start before
// known are in the plan already, as far as they matter.
func (r *availabilityReader) readAhead(ctx context.Context, s search, plan stayPlan, known time.Time) error {
	if known.IsZero() {
		return nil
	}
	in := s.in
	after, looked := ledger.Cursor(""), 0
	for range groupReadsMax {
		first, last, ahead := plan.needs()
		if first.IsZero() || last.Before(known) {
			return nil
		}
		if after == "" {
			in.from, in.to = later(known, first), endOfRange(ahead)
			if looked > 0 {
				in.to = time.Time{} // it was guessed wrong once
			}
		}
		page, err := r.page(ctx, in, ledger.Page{Limit: groupReadSlots, After: after})
		if err != nil {
			return err
		}
		fitting, err := r.fitting(ctx, s, page.slots)
		if err != nil {
			return err
		}
		plan.add(fitting)
		looked += len(page.slots)
		switch after = page.next; {
		case after == "" && in.to.IsZero():
			return nil
		case after == "":
			known = in.to.Add(time.Millisecond)
		case len(page.slots) > 0:
			known = page.slots[len(page.slots)-1].StartsAt
		}
	}
	return invalid("query", "nights", fmt.Sprintf(
		"some %d slots or more start within one such stay, which is too many to look at; ask for fewer nights", groupSlotsLookedMax))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// endOfRange is t, or no bound where t has no RFC 3339 text.
func endOfRange(t time.Time) time.Time {
	if t.Year() > yearMax {
		return time.Time{}
	}
	return t
}

// withGroups is f with the groups and their members, each once, in the order of the groups.
func (f found) withGroups(groups [][]offeredSlot) found {
	f.groups = [][]Name{}
	listed := make(map[ledger.SlotID]bool)
	for _, group := range groups {
		names := make([]Name, len(group))
		for i, slot := range group {
			names[i] = Name(slot.ID)
			if !listed[slot.ID] {
				listed[slot.ID] = true
				f.slots = append(f.slots, slot)
			}
		}
		f.groups = append(f.groups, names)
	}
	return f
}
