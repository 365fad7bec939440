package httpapi

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/shared/ledger"
)

// This file has no input and no output: it finds groups among slots that are all fit to be
// members.

// stayDurationMax bounds how far ahead one slot makes a stay look. What lasts longer is
// found all the same, by one look more.
const stayDurationMax = 366 * 24 * time.Hour

// stayPlan is the stays of one length that begin with some slots, while the slots that
// could go on with them are still being read.
type stayPlan struct {
	nights int
	firsts []offeredSlot
	// known has firsts and what was read after them, each slot once, by id.
	known map[ledger.SlotID]offeredSlot
}

// newStayPlan keeps of the slots those that a stay can be made of: what lasts.
func newStayPlan(nights int, firsts []offeredSlot) stayPlan {
	p := stayPlan{nights: nights, known: make(map[ledger.SlotID]offeredSlot)}
	for _, first := range firsts {
		if lasts(first) {
			p.firsts = append(p.firsts, first)
		}
	}
	p.add(p.firsts)
	return p
}

// lasts reports whether the slot ends later than it starts. One that ends where it starts
// would go on with itself for ever.
func lasts(slot offeredSlot) bool {
	return !slot.StartsAt.IsZero() && slot.EndsAt.After(slot.StartsAt)
}

// add learns of more slots.
func (p stayPlan) add(slots []offeredSlot) {
	for _, slot := range slots {
		if lasts(slot) {
			p.known[slot.ID] = slot
		}
	}
}

// byStart are the known slots in the order of their start, and then of their id.
func (p stayPlan) byStart() []offeredSlot {
	return slices.SortedFunc(maps.Values(p.known), func(a, b offeredSlot) int {
		return cmp.Or(a.StartsAt.Compare(b.StartsAt), cmp.Compare(a.ID, b.ID))
	})
}

// needs says which starts could still matter: slots that start from first to last, both
// included, could go on with a stay, going by what is known. A slot that starts at any
// other time could not. No starts are needed when first is zero. ahead is how late the
// last slot of such a stay will start, if further slots last as long as the known ones.
func (p stayPlan) needs() (first, last, ahead time.Time) {
	// before is, for a start, how many slots of a stay lie before it, at the least. Slots
	// last, so a start is complete before the slots that start then are looked at.
	before := make(map[int64]int)
	var longest time.Duration
	need := func(start time.Time, slotsBefore int) {
		if slotsBefore >= p.nights {
			return
		}
		if least, known := before[start.UnixMilli()]; !known || slotsBefore < least {
			before[start.UnixMilli()] = slotsBefore
		}
	}
	for _, slot := range p.firsts {
		need(slot.EndsAt, 1)
	}
	for _, slot := range p.byStart() {
		longest = max(longest, min(slot.EndsAt.Sub(slot.StartsAt), stayDurationMax))
		if slotsBefore, reached := before[slot.StartsAt.UnixMilli()]; reached {
			need(slot.EndsAt, slotsBefore+1)
		}
	}
	for ms, slotsBefore := range before {
		start := time.UnixMilli(ms).UTC()
		if first.IsZero() || start.Before(first) {
			first = start
		}
		if start.After(last) {
			last = start
		}
		if end := start.Add(time.Duration(p.nights-1-slotsBefore) * longest); end.After(ahead) {
			ahead = end
		}
	}
	return first, last, ahead
}

// stayCost ranks the ways to stay: by how often the attributes change on the way. Who stays
// wants to keep the room.
type stayCost struct {
	changes int
	next    ledger.SlotID // what the stay goes on with, or "" at its end
}

// stayTier is the slots that start at one time. For a number of nights it has the cheapest
// stay that begins then: of all, and of each set of attributes.
type stayTier struct {
	any  []*tierEntry
	like map[string][]*tierEntry
}

type tierEntry struct {
	slot    ledger.SlotID
	changes int
}

// keep puts the stay of nights into the list if it is cheaper than what is there. Slots
// come in the order of their ids, so the first of two equal ones stays.
func keep(list []*tierEntry, nights int, slot ledger.SlotID, changes int) {
	if e := list[nights]; e == nil || changes < e.changes {
		list[nights] = &tierEntry{slot, changes}
	}
}

// stays are the stays, in the order of firsts: for each the one whose attributes change the
// least often, or none if no stay begins with it.
func (p stayPlan) stays() [][]offeredSlot {
	costs := make(map[ledger.SlotID][]*stayCost, len(p.known)) // by number of nights
	tiers := make(map[int64]*stayTier)
	ordered := p.byStart()
	// From the last start to the first one; within a start, the order of ids is kept.
	for end := len(ordered); end > 0; {
		begin := end - 1
		for begin > 0 && ordered[begin-1].StartsAt.Equal(ordered[begin].StartsAt) {
			begin--
		}
		tier := &stayTier{any: make([]*tierEntry, p.nights+1), like: make(map[string][]*tierEntry)}
		for _, slot := range ordered[begin:end] {
			attributes := attributesText(slot.Attributes)
			if tier.like[attributes] == nil {
				tier.like[attributes] = make([]*tierEntry, p.nights+1)
			}
			costs[slot.ID] = p.costsOf(tiers[slot.EndsAt.UnixMilli()], attributes)
			for nights, cost := range costs[slot.ID] {
				if cost != nil {
					keep(tier.any, nights, slot.ID, cost.changes)
					keep(tier.like[attributes], nights, slot.ID, cost.changes)
				}
			}
		}
		tiers[ordered[begin].StartsAt.UnixMilli()] = tier
		end = begin
	}
	var out [][]offeredSlot
	for _, first := range p.firsts {
		if costs[first.ID][p.nights] != nil {
			out = append(out, p.follow(first.ID, costs))
		}
	}
	return out
}

// costsOf are the cheapest stays that begin with a slot of these attributes, by number of
// nights, where after is the slots that start at its end; nil for none.
func (p stayPlan) costsOf(after *stayTier, attributes string) []*stayCost {
	costs := make([]*stayCost, p.nights+1)
	costs[1] = &stayCost{}
	if after == nil {
		return costs
	}
	for nights := 2; nights <= p.nights; nights++ {
		if e := after.any[nights-1]; e != nil {
			costs[nights] = &stayCost{e.changes + 1, e.slot}
		}
		if like := after.like[attributes]; like != nil && like[nights-1] != nil && like[nights-1].changes <= costs[nights].changes {
			costs[nights] = &stayCost{like[nights-1].changes, like[nights-1].slot}
		}
	}
	return costs
}

// follow lists the slots of the stay that begins with id.
func (p stayPlan) follow(id ledger.SlotID, costs map[ledger.SlotID][]*stayCost) []offeredSlot {
	stay := make([]offeredSlot, 0, p.nights)
	for nights := p.nights; nights > 0; nights-- {
		stay = append(stay, p.known[id])
		id = costs[id][nights].next
	}
	return stay
}

// attributesText is a text that two slots share if and only if their attributes are equal.
func attributesText(attributes map[string]string) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		text.WriteString(strconv.Quote(name) + strconv.Quote(attributes[name]))
	}
	return text.String()
}

// The attributes that say where a seat is.
const (
	attributeSection = "section"
	attributeRow     = "row"
	attributeSeat    = "seat"
	// seatDigitsMax bounds a seat's number, far below what an int holds.
	seatDigitsMax = 9
)

// seat is a slot that says where it is.
type seat struct {
	offeredSlot
	number int
}

// seatOf reads where a seat is. A slot without a row, or whose seat is not a whole number
// of digits only, is none.
func seatOf(slot offeredSlot) (seat, bool) {
	digits := slot.Attributes[attributeSeat]
	if slot.Attributes[attributeRow] == "" || digits == "" || len(digits) > seatDigitsMax || strings.Trim(digits, "0123456789") != "" {
		return seat{}, false
	}
	number, err := strconv.Atoi(digits)
	return seat{slot, number}, err == nil
}

// compareRows orders by start, end, section and row: seats for which it is zero are of one
// row at one time.
func compareRows(a, b seat) int {
	return cmp.Or(a.StartsAt.Compare(b.StartsAt), a.EndsAt.Compare(b.EndsAt),
		cmp.Compare(a.Attributes[attributeSection], b.Attributes[attributeSection]),
		cmp.Compare(a.Attributes[attributeRow], b.Attributes[attributeRow]))
}

// compareSeats orders the seats of a house. The id decides between two slots that say that
// they are the same seat.
func compareSeats(a, b seat) int {
	return cmp.Or(compareRows(a, b), cmp.Compare(a.number, b.number), cmp.Compare(a.ID, b.ID))
}

// seatsSideBySide are all groups of n seats of one row whose numbers rise by one, in the
// order of their first seat. Groups overlap: of three free seats there are two pairs. Of
// slots that say that they are the same seat, the first one counts.
func seatsSideBySide(slots []offeredSlot, n int) [][]offeredSlot {
	var seats []seat
	for _, slot := range slots {
		if s, is := seatOf(slot); is {
			seats = append(seats, s)
		}
	}
	slices.SortFunc(seats, compareSeats)
	seats = slices.CompactFunc(seats, func(a, b seat) bool { return compareRows(a, b) == 0 && a.number == b.number })
	var out [][]offeredSlot
	run := 0 // how many seats up to this one are side by side
	for i, s := range seats {
		if i > 0 && compareRows(seats[i-1], s) == 0 && s.number == seats[i-1].number+1 {
			run++
		} else {
			run = 1
		}
		if run >= n {
			group := make([]offeredSlot, n)
			for j, member := range seats[i-n+1 : i+1] {
				group[j] = member.offeredSlot
			}
			out = append(out, group)
		}
	}
	return out
}
