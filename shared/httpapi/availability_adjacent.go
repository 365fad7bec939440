package httpapi

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/shared/ledger"
)

// seatCursorPrefix tells a cursor of this list from those of a store.
const seatCursorPrefix = "seats:"

// seatPosition is where a page of seats side by side begins: with the slots that start at
// start, and there after the group whose first seat is after. It is zero at the beginning.
type seatPosition struct {
	given bool
	start time.Time // zero for slots without a start
	after ledger.SlotID
}

func (p seatPosition) cursor() ledger.Cursor {
	return ledger.Cursor(base64.RawURLEncoding.EncodeToString(
		fmt.Appendf(nil, "%s%d:%s", seatCursorPrefix, p.start.UnixMilli(), p.after)))
}

// seatPositionOf reads a cursor of the same search.
func seatPositionOf(s search) (seatPosition, error) {
	if s.after == "" {
		return seatPosition{}, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(string(s.after))
	rest, ours := strings.CutPrefix(string(text), seatCursorPrefix)
	number, after, whole := strings.Cut(rest, ":")
	ms, numeric := strconv.ParseInt(number, 10, 64)
	p := seatPosition{given: true, start: time.UnixMilli(ms).UTC(), after: ledger.SlotID(after)}
	switch {
	case err != nil || !ours || !whole || numeric != nil || (after != "" && !ledger.ValidName(after)),
		!p.start.IsZero() && (p.start.Year() < yearMin || p.start.Year() > yearMax),
		!s.in.from.IsZero() && p.start.Before(s.in.from), !s.in.to.IsZero() && p.start.After(s.in.to):
		return seatPosition{}, badSeatCursor()
	}
	return p, nil
}

func badSeatCursor() error {
	return invalid("query", "cursor", "the cursor is not from this list; begin again without one")
}

// findSeats finds seats side by side.
//
// The index orders slots by their start and their id, not by row and seat, so what is side
// by side may be far apart in it. Therefore all slots of one start, a house, are read before
// any group of them is answered, and a page ends between two groups of one start, or between
// two starts. Where one start has more slots than may be looked at, nothing is answered: an
// answer without some groups would look like one that has them all.
func (r *availabilityReader) findSeats(ctx context.Context, s search) (found, error) {
	position, err := seatPositionOf(s)
	if err != nil {
		return found{}, err
	}
	in := s.in
	if position.given && !position.start.IsZero() {
		in.from = position.start
	}
	var groups [][]offeredSlot
	var waiting []ledger.Slot // read, in the order of the index, and not looked at
	after, looked := ledger.Cursor(""), false
	for range pageReadsMax {
		page, err := r.page(ctx, in, ledger.Page{Limit: groupReadSlots, After: after})
		if err != nil {
			return found{}, err
		}
		waiting, after = slices.Concat(waiting, page.slots), page.next
		whole := len(waiting)
		if after != "" {
			whole = lastHouse(waiting)
		}
		if whole > 0 {
			more, err := r.groupsOf(ctx, s, waiting[:whole], position)
			if err != nil {
				return found{}, err
			}
			groups, waiting, position, looked = append(groups, more...), waiting[whole:], seatPosition{}, true
		}
		switch {
		case len(groups) > s.limit:
			groups = groups[:s.limit]
			last := groups[s.limit-1][0]
			return found{next: seatPosition{start: last.StartsAt, after: last.ID}.cursor()}.withGroups(groups), nil
		case after == "":
			return found{}.withGroups(groups), nil
		case len(groups) == s.limit:
			return found{next: seatPosition{start: waiting[0].StartsAt}.cursor()}.withGroups(groups), nil
		}
	}
	if !looked {
		return found{}, invalid("query", "adjacent", fmt.Sprintf(
			"some %d slots of the resource or more start at one time, which is too many to look at", groupSlotsLookedMax))
	}
	return found{next: seatPosition{start: waiting[0].StartsAt}.cursor()}.withGroups(groups), nil
}

// lastHouse is where the slots begin that start when the last of them does. There may be
// more of these; those before are whole.
func lastHouse(slots []ledger.Slot) int {
	i := len(slots)
	for i > 0 && slots[i-1].StartsAt.Equal(slots[len(slots)-1].StartsAt) {
		i--
	}
	return i
}

// groupsOf are the groups of whole houses, as far as they come after the position. The seat
// that the position names need not be free any more, but it must be there.
func (r *availabilityReader) groupsOf(ctx context.Context, s search, houses []ledger.Slot, position seatPosition) ([][]offeredSlot, error) {
	fitting, err := r.fitting(ctx, s, houses)
	if err != nil {
		return nil, err
	}
	groups := seatsSideBySide(fitting, s.adjacent)
	if position.after == "" {
		return groups, nil
	}
	i := slices.IndexFunc(houses, func(slot ledger.Slot) bool { return slot.ID == position.after })
	if i < 0 {
		return nil, badSeatCursor()
	}
	last, is := seatOf(offeredSlot{Slot: houses[i]})
	if !is {
		return nil, badSeatCursor()
	}
	return slices.DeleteFunc(groups, func(group []offeredSlot) bool {
		first, _ := seatOf(group[0])
		return compareSeats(first, last) <= 0
	}), nil
}
