package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

const (
	// alternativesMax bounds what one refusal proposes, and for how many of its short slots
	// alternatives are looked for.
	alternativesMax = 5
	// alternativesLooked is how many slots of a resource are looked at on either side of the
	// wanted one, and of a resource whose slots have no time. When a hot slot is sold out,
	// every process looks once in availabilityReadFor.
	alternativesLooked = 25
	// alternativesBefore is how much earlier than the wanted slot an alternative may start.
	alternativesBefore = 24 * time.Hour
	// alternativesReadsMax bounds the pages that are read to find the nearest earlier slots.
	// Each one halves the time that is looked at, so the last one looks at less than an hour.
	alternativesReadsMax = 6
)

// refuseHold answers a create that was refused. If slots were short, it names alternatives
// and a hold of the caller's own. That they cannot be looked up changes nothing of the
// answer.
func (a *API) refuseHold(ctx context.Context, x *exchange, quotes []ledger.Quote, refused error) {
	a.refuseEdit(ctx, x, "", quotes, refused)
}

// refuseEdit answers a change of a hold that was refused, as refuseHold does. The hold that
// was to be changed is known to its owner and is not named as another one.
func (a *API) refuseEdit(ctx context.Context, x *exchange, edited ledger.HoldID, quotes []ledger.Quote, refused error) {
	p := problemOf(refused, x.caller.RequestID)
	var e *ledger.Error
	if errors.As(refused, &e) && e.Code == ledger.CodeInsufficientStock {
		var err error
		if p.Alternatives, err = a.findAlternatives(ctx, e.Shortages, quotes); err != nil {
			x.causes = append(x.causes, fmt.Errorf("look for alternatives: %w", err))
		}
		if p.ExistingHoldID, err = a.findExistingHold(ctx, x.caller.Principal.Subject, e.Shortages, edited); err != nil {
			x.causes = append(x.causes, fmt.Errorf("look for the caller's own hold: %w", err))
		}
	}
	x.failWith(p, refused)
}

// findAlternatives proposes other slots with enough left, at most alternativesMax over all
// short slots: the best one of each, then the second best of each, and so on.
func (a *API) findAlternatives(ctx context.Context, shortages []ledger.Shortage, quotes []ledger.Quote) ([]Alternative, error) {
	reader := a.newAvailabilityReader()
	lists := make([][]Alternative, min(len(shortages), alternativesMax))
	for i := range lists {
		var err error
		if lists[i], err = reader.alternativesTo(ctx, shortages[i], quotes); err != nil {
			return nil, err
		}
	}
	var out []Alternative
	for rank := range alternativesMax {
		for _, list := range lists {
			if rank < len(list) && len(out) < alternativesMax {
				out = append(out, list[rank])
			}
		}
	}
	return out, nil
}

// alternativesTo are the slots that fit in the place of a short one, the best first: those
// with the same options, then the nearest in time.
func (r *availabilityReader) alternativesTo(ctx context.Context, short ledger.Shortage, quotes []ledger.Quote) ([]Alternative, error) {
	named, err := r.named(ctx, []ledger.SlotID{short.Slot})
	if err != nil {
		return nil, err
	}
	wanted, exists := named[short.Slot]
	if !exists {
		return nil, nil
	}
	near, err := r.neighbours(ctx, wanted)
	if err != nil {
		return nil, err
	}
	asked := func(slot ledger.Slot) bool {
		return slices.ContainsFunc(quotes, func(q ledger.Quote) bool { return q.Slot == slot.ID })
	}
	near = slices.DeleteFunc(near, func(slot ledger.Slot) bool {
		return slot.ID == wanted.ID || asked(slot) || isOver(slot, r.now) || slot.Terms.Price.Currency != wanted.Terms.Price.Currency
	})
	offered, err := r.offered(ctx, near)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(offered, func(x, y offeredSlot) int { return compareAlternatives(wanted, x.Slot, y.Slot) })
	var out []Alternative
	for _, slot := range offered {
		if len(out) < alternativesMax && slot.takes(short.Requested, short.Requested, r.now) {
			out = append(out, Alternative{
				SlotID: string(slot.ID), InsteadOf: string(short.Slot), StartsAt: timeOrNil(slot.StartsAt),
				RemainingHint: remainingHint(slot, r.now),
				UnitAmount:    slot.Terms.Price.AmountMinor, Currency: string(slot.Terms.Price.Currency),
			})
		}
	}
	return out, nil
}

// isOver reports whether nobody has any use of the slot at now any more.
func isOver(slot ledger.Slot, now time.Time) bool {
	end := slot.EndsAt
	if end.IsZero() {
		end = slot.StartsAt
	}
	return !end.IsZero() && !end.After(now)
}

// compareAlternatives orders slots by how good they are in the place of the wanted one, the
// best first: by how many attributes are the same, by how near they are in time, and for
// one order of all by id.
func compareAlternatives(wanted, x, y ledger.Slot) int {
	distance := func(slot ledger.Slot) time.Duration { return slot.StartsAt.Sub(wanted.StartsAt).Abs() }
	return cmp.Or(
		cmp.Compare(sharedAttributes(wanted, y), sharedAttributes(wanted, x)),
		cmp.Compare(distance(x), distance(y)),
		cmp.Compare(x.ID, y.ID))
}

// sharedAttributes counts the attributes that both slots have with the same value.
func sharedAttributes(a, b ledger.Slot) int {
	shared := 0
	for name, value := range a.Attributes {
		if other, has := b.Attributes[name]; has && other == value {
			shared++
		}
	}
	return shared
}

// neighbours are the slots of the wanted one's resource near to it in time, on both sides,
// in no fixed order. For a slot without a time they are the first ones of the resource,
// which are those without a time.
func (r *availabilityReader) neighbours(ctx context.Context, wanted ledger.Slot) ([]ledger.Slot, error) {
	in := resourceRange{resourceType: wanted.ResourceType, resourceID: wanted.ResourceID, from: wanted.StartsAt}
	page, err := r.page(ctx, in, ledger.Page{Limit: alternativesLooked})
	if err != nil || wanted.StartsAt.IsZero() {
		return slices.Clone(page.slots), err
	}
	earlier, err := r.neighboursBefore(ctx, wanted)
	return slices.Concat(page.slots, earlier), err
}

// neighboursBefore are slots that start before the wanted one, and the nearest among them.
// The index is read forward only, and the nearest ones are its last: so a stretch of time
// with more slots than a page is halved, and its later half is looked at first, until there
// are enough or the reads are used up. In most resources all of it is one read.
func (r *availabilityReader) neighboursBefore(ctx context.Context, wanted ledger.Slot) ([]ledger.Slot, error) {
	in := resourceRange{resourceType: wanted.ResourceType, resourceID: wanted.ResourceID}
	type stretch struct{ from, to time.Time }
	last := wanted.StartsAt.Add(-time.Millisecond)
	stretches := []stretch{{wanted.StartsAt.Add(-alternativesBefore), last}} // the latest at the end
	seen := make(map[ledger.SlotID]ledger.Slot)
	whole := 0 // slots of stretches that were read to their end
	for reads := 0; reads < alternativesReadsMax && len(stretches) > 0 && whole < alternativesLooked; reads++ {
		next := stretches[len(stretches)-1]
		stretches = stretches[:len(stretches)-1]
		in.from, in.to = next.from, next.to
		page, err := r.page(ctx, in, ledger.Page{Limit: alternativesLooked})
		if err != nil {
			return nil, err
		}
		for _, slot := range page.slots {
			seen[slot.ID] = slot
		}
		middle := next.from.Add(next.to.Sub(next.from) / 2).Truncate(time.Millisecond)
		if page.next == "" || !middle.Before(next.to) {
			whole += len(page.slots)
			continue
		}
		stretches = append(stretches, stretch{next.from, middle}, stretch{middle.Add(time.Millisecond), next.to})
	}
	out := make([]ledger.Slot, 0, len(seen))
	for _, slot := range seen {
		out = append(out, slot)
	}
	return out, nil
}
