package httpapi

import (
	"context"
	"net/http"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// remainingSteps are what a caller learns of how much is left. Exact numbers would tell
// a competitor how well a slot sells.
var remainingSteps = []ledger.Units{100, 50, 10, 5, 1, 0}

// remainingHint is the largest step that is not more than what can be held.
func remainingHint(slot ledger.Slot, available ledger.Units) RemainingHint {
	if !slot.Terms.Open {
		return 0
	}
	for _, step := range remainingSteps {
		if available >= step {
			return RemainingHint(step)
		}
	}
	return 0
}

// FindAvailability answers with what can be held now, as a hint.
func (a *API) FindAvailability(w http.ResponseWriter, r *http.Request, params FindAvailabilityParams) {
	x := exchangeOf(r)
	out := Availability{AsOf: Time(system.Millisecond(a.clock))}
	find := a.findByResource
	if params.SlotIds != nil {
		find = a.findBySlots
	}
	slots, cursor, err := find(r.Context(), params)
	if err != nil {
		x.fail(err)
		return
	}
	out.Slots, out.NextCursor = slots, cursorOrNil(cursor)
	w.Header().Set("Cache-Control", "public, max-age=1")
	x.answerJSON(http.StatusOK, out)
}

// findBySlots looks at the named slots.
func (a *API) findBySlots(ctx context.Context, p FindAvailabilityParams) ([]AvailableSlot, ledger.Cursor, error) {
	if p.ResourceType != nil || p.ResourceID != nil || p.Date != nil || p.From != nil || p.To != nil ||
		p.PartySize != nil || p.Limit != nil || p.Cursor != nil {
		return nil, "", invalid("query", "slot_ids", "slot_ids goes with no other parameter")
	}
	ids := make([]ledger.SlotID, 0, len(p.SlotIds))
	for _, id := range p.SlotIds {
		ids = append(ids, ledger.SlotID(id))
	}
	slots, err := a.store.Slots(ctx, ids)
	if err != nil {
		return nil, "", err
	}
	available, err := a.available(ctx, slots)
	if err != nil {
		return nil, "", err
	}
	byID := make(map[ledger.SlotID]ledger.Slot, len(slots))
	for _, s := range slots {
		byID[s.ID] = s
	}
	out := []AvailableSlot{}
	for _, id := range ids {
		if s, found := byID[id]; found {
			out = append(out, availableSlotOf(s, available[id]))
			delete(byID, id) // an id that is asked for twice is answered once
		}
	}
	return out, "", nil
}

// findByResource looks at one page of a resource's slots and leaves out those that the
// party cannot take.
func (a *API) findByResource(ctx context.Context, p FindAvailabilityParams) ([]AvailableSlot, ledger.Cursor, error) {
	if p.ResourceType == nil || p.ResourceID == nil {
		return nil, "", invalid("query", "resource_id", "name resource_type and resource_id, or slot_ids")
	}
	from, to, err := startsBetween(p)
	if err != nil {
		return nil, "", err
	}
	party := ledger.Units(1)
	if p.PartySize != nil {
		party = ledger.Units(*p.PartySize)
	}
	limit, cursor := pageOf(p.Limit, p.Cursor)
	out := []AvailableSlot{}
	for range pageReadsMax {
		var slots []ledger.Slot
		slots, cursor, err = a.store.SlotsOfResource(ctx, ledger.ResourceType(*p.ResourceType), ledger.ResourceID(*p.ResourceID),
			from, to, ledger.Page{Limit: limit - len(out), After: cursor})
		if err != nil {
			return nil, "", err
		}
		available, err := a.available(ctx, slots)
		if err != nil {
			return nil, "", err
		}
		for _, s := range slots {
			if s.Terms.Open && available[s.ID] >= party {
				out = append(out, availableSlotOf(s, available[s.ID]))
			}
		}
		if cursor == "" || len(out) == limit {
			break
		}
	}
	return out, cursor, nil
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

// available sums what can be held of each slot over its shards.
func (a *API) available(ctx context.Context, slots []ledger.Slot) (map[ledger.SlotID]ledger.Units, error) {
	if len(slots) == 0 {
		return nil, nil
	}
	stock, err := a.store.Stock(ctx, slots)
	if err != nil {
		return nil, err
	}
	out := make(map[ledger.SlotID]ledger.Units, len(slots))
	for _, s := range stock {
		out[s.Slot] += s.Counters.Available
	}
	return out, nil
}

func availableSlotOf(s ledger.Slot, available ledger.Units) AvailableSlot {
	return AvailableSlot{
		SlotID: string(s.ID), ResourceType: string(s.ResourceType), ResourceID: string(s.ResourceID),
		StartsAt: timeOrNil(s.StartsAt), EndsAt: timeOrNil(s.EndsAt), Open: s.Terms.Open,
		RemainingHint: remainingHint(s, available),
		UnitAmount:    s.Terms.Price.AmountMinor, Currency: string(s.Terms.Price.Currency),
		Attributes: attributesOrNil(s.Attributes),
	}
}
