package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// remainingSteps are what a caller learns of how much is left. Exact numbers would tell
// a competitor how well a slot sells.
var remainingSteps = []ledger.Units{100, 50, 10, 5, 1, 0}

// remainingHint is the largest step that is not more than what can be held at now.
func remainingHint(slot offeredSlot, now time.Time) RemainingHint {
	if !slot.onSale(now) {
		return 0
	}
	for _, step := range remainingSteps {
		if slot.available >= step {
			return RemainingHint(step)
		}
	}
	return 0
}

// FindAvailability answers with what can be held now, as a hint. The answer is as of the
// moment when the oldest part of it was read, which need not be now.
func (a *API) FindAvailability(w http.ResponseWriter, r *http.Request, params FindAvailabilityParams) {
	x := exchangeOf(r)
	reader := a.newAvailabilityReader()
	found, err := reader.find(r.Context(), params)
	if err != nil {
		x.fail(err)
		return
	}
	out := Availability{AsOf: Time(reader.asOf), Slots: []AvailableSlot{}, NextCursor: cursorOrNil(found.next)}
	for _, slot := range found.slots {
		out.Slots = append(out.Slots, availableSlotOf(slot, reader.now))
	}
	if found.groups != nil {
		out.Groups = found.groups
	}
	w.Header().Set("Cache-Control", "public, max-age=1")
	x.answerJSON(http.StatusOK, out)
}

// found is what an answer tells: slots, and with groups the members of the groups.
type found struct {
	slots  []offeredSlot
	groups [][]Name // nil where none were asked for
	next   ledger.Cursor
}

// find answers either form of the question.
func (r *availabilityReader) find(ctx context.Context, p FindAvailabilityParams) (found, error) {
	if p.SlotIds != nil {
		return r.findBySlots(ctx, p)
	}
	s, err := searchOf(p)
	if err != nil {
		return found{}, err
	}
	switch {
	case s.nights > 0:
		return r.findStays(ctx, s)
	case s.adjacent > 0:
		return r.findSeats(ctx, s)
	default:
		return r.findSlots(ctx, s)
	}
}

// findBySlots looks at the named slots.
func (r *availabilityReader) findBySlots(ctx context.Context, p FindAvailabilityParams) (found, error) {
	if p.ResourceType != nil || p.ResourceID != nil || p.Date != nil || p.From != nil || p.To != nil ||
		p.PartySize != nil || p.Attributes != nil || p.Nights != nil || p.Adjacent != nil || p.Limit != nil || p.Cursor != nil {
		return found{}, invalid("query", "slot_ids", "slot_ids goes with no other parameter")
	}
	var ids []ledger.SlotID
	for _, name := range p.SlotIds {
		if id := ledger.SlotID(name); !slices.Contains(ids, id) { // an id that is asked for twice is answered once
			ids = append(ids, id)
		}
	}
	byID, err := r.named(ctx, ids)
	if err != nil {
		return found{}, err
	}
	var slots []ledger.Slot
	for _, id := range ids {
		if slot, exists := byID[id]; exists {
			slots = append(slots, slot)
		}
	}
	offered, err := r.offered(ctx, slots)
	return found{slots: offered}, err
}

// search is a question for slots of a resource.
type search struct {
	in         resourceRange
	party      ledger.Units // that each slot has to have left
	attributes attributePairs
	limit      int // of the slots, or of the groups, in an answer
	after      ledger.Cursor
	// nights and adjacent ask for groups of so many slots; zero does not.
	nights, adjacent int
}

// searchOf reads the parameters, of which the document has checked each on its own.
func searchOf(p FindAvailabilityParams) (search, error) {
	if p.ResourceType == nil || p.ResourceID == nil {
		return search{}, invalid("query", "resource_id", "name resource_type and resource_id, or slot_ids")
	}
	s := search{in: resourceRange{resourceType: ledger.ResourceType(*p.ResourceType), resourceID: ledger.ResourceID(*p.ResourceID)}, party: 1}
	var err error
	if s.in.from, s.in.to, err = startsBetween(p); err != nil {
		return search{}, err
	}
	if s.attributes, err = attributePairsOf(p.Attributes); err != nil {
		return search{}, err
	}
	switch {
	case p.Nights != nil && p.Adjacent != nil:
		return search{}, invalid("query", "adjacent", "ask either for nights or for adjacent seats")
	case p.Adjacent != nil && p.PartySize != nil:
		return search{}, invalid("query", "party_size", "adjacent says how many seats are wanted; leave party_size out")
	case p.Nights != nil:
		s.nights = int(*p.Nights)
	case p.Adjacent != nil:
		s.adjacent = int(*p.Adjacent)
	}
	if p.PartySize != nil {
		s.party = ledger.Units(*p.PartySize)
	}
	s.limit, s.after = pageOf(p.Limit, p.Cursor)
	return s, nil
}

// startsBetween reads date, or from and to. A date is a UTC day.
func startsBetween(p FindAvailabilityParams) (from, to time.Time, err error) {
	from, to = timeOrZero(p.From), timeOrZero(p.To)
	switch {
	case p.Date == nil && !from.IsZero() && !to.IsZero() && to.Before(from):
		return from, to, invalid("query", "to", "to must not be before from")
	case p.Date == nil:
		return from, to, nil
	case p.From != nil || p.To != nil:
		return from, to, invalid("query", "date", "name either date, or from and to")
	}
	return p.Date.Time, p.Date.AddDate(0, 0, 1).Add(-time.Millisecond), nil
}

// findSlots looks at one page of a resource's slots and leaves out those that the party
// cannot take.
func (r *availabilityReader) findSlots(ctx context.Context, s search) (found, error) {
	out := found{next: s.after}
	for range pageReadsMax {
		page, err := r.page(ctx, s.in, ledger.Page{Limit: s.limit - len(out.slots), After: out.next})
		if err != nil {
			return found{}, err
		}
		fitting, err := r.fitting(ctx, s, page.slots)
		if err != nil {
			return found{}, err
		}
		out.slots, out.next = append(out.slots, fitting...), page.next
		if out.next == "" || len(out.slots) == s.limit {
			break
		}
	}
	return out, nil
}

// fitting are those of the slots that the party can take, in their order. One batch of
// stock is read for all of them; slots of other attributes cost nothing.
func (r *availabilityReader) fitting(ctx context.Context, s search, slots []ledger.Slot) ([]offeredSlot, error) {
	var wanted []ledger.Slot
	for _, slot := range slots {
		if s.attributes.of(slot) {
			wanted = append(wanted, slot)
		}
	}
	offered, err := r.offered(ctx, wanted)
	if err != nil {
		return nil, err
	}
	ofResource := s.party * ledger.Units(max(1, s.nights, s.adjacent)) // a whole group counts there
	return slices.DeleteFunc(offered, func(slot offeredSlot) bool { return !slot.takes(s.party, ofResource, r.now) }), nil
}

func availableSlotOf(s offeredSlot, now time.Time) AvailableSlot {
	return AvailableSlot{
		SlotID: string(s.ID), ResourceType: string(s.ResourceType), ResourceID: string(s.ResourceID),
		StartsAt: timeOrNil(s.StartsAt), EndsAt: timeOrNil(s.EndsAt), Open: s.Terms.Open,
		RemainingHint: remainingHint(s, now),
		UnitAmount:    s.Terms.Price.AmountMinor, Currency: string(s.Terms.Price.Currency),
		Attributes: attributesOrNil(s.Attributes),
	}
}
