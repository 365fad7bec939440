package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const (
	// alternativesMax bounds what one refusal proposes.
	alternativesMax = 5
	// alternativesLooked is how many slots of a resource are looked at.
	alternativesLooked = 25
	// alternativesBefore is how much earlier than the wanted slot an alternative may start.
	alternativesBefore = 24 * time.Hour
	// alternativesFor is how long what was looked up is used again. When a hot slot is
	// sold out nearly every caller is refused, and a look-up for each of them would cost
	// more than the refusals.
	alternativesFor = time.Second
	// alternativesEntriesMax bounds the memory of the cache. A full cache is emptied.
	alternativesEntriesMax = 1_000
)

// candidate is a slot that may be proposed, with what was available of it.
type candidate struct {
	slot      ledger.Slot
	available ledger.Units
}

// neighbourhood is a short slot with the others of its resource, the nearest first.
type neighbourhood struct {
	wanted     ledger.Slot
	candidates []candidate
	readAt     time.Time
}

// alternativesCache keeps neighbourhoods for a moment. It is safe for concurrent use.
type alternativesCache struct {
	mutex   sync.Mutex
	entries map[ledger.SlotID]neighbourhood
}

func newAlternativesCache() *alternativesCache {
	return &alternativesCache{entries: make(map[ledger.SlotID]neighbourhood)}
}

func (c *alternativesCache) get(id ledger.SlotID, now time.Time) (neighbourhood, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	n, found := c.entries[id]
	return n, found && !now.Before(n.readAt) && now.Sub(n.readAt) < alternativesFor
}

func (c *alternativesCache) put(id ledger.SlotID, n neighbourhood) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if len(c.entries) >= alternativesEntriesMax {
		clear(c.entries)
	}
	c.entries[id] = n
}

// refuseHold answers a create that was refused. If slots were short, it names alternatives
// and a hold of the caller's own. That they cannot be looked up changes nothing of the
// answer.
func (a *API) refuseHold(ctx context.Context, x *exchange, quotes []ledger.Quote, refused error) {
	p := problemOf(refused, x.caller.RequestID)
	var e *ledger.Error
	if errors.As(refused, &e) && e.Code == ledger.CodeInsufficientStock {
		var err error
		if p.Alternatives, err = a.findAlternatives(ctx, e.Shortages, quotes); err != nil {
			x.causes = append(x.causes, fmt.Errorf("look for alternatives: %w", err))
		}
		if p.ExistingHoldID, err = a.findExistingHold(ctx, x.caller.Principal.Subject, e.Shortages); err != nil {
			x.causes = append(x.causes, fmt.Errorf("look for the caller's own hold: %w", err))
		}
	}
	x.failWith(p, refused)
}

// findAlternatives proposes other slots with enough left for each short line, at most
// alternativesMax over all of them.
func (a *API) findAlternatives(ctx context.Context, shortages []ledger.Shortage, quotes []ledger.Quote) ([]Alternative, error) {
	var out []Alternative
	asked := func(id ledger.SlotID) bool {
		return slices.ContainsFunc(quotes, func(q ledger.Quote) bool { return q.Slot == id })
	}
	for _, short := range shortages {
		n, err := a.neighbourhoodOf(ctx, short.Slot)
		if err != nil {
			return out, err
		}
		for _, c := range n.candidates {
			if len(out) == alternativesMax {
				return out, nil
			}
			if !asked(c.slot.ID) && c.available >= short.Requested &&
				c.slot.Terms.Price.Currency == n.wanted.Terms.Price.Currency && short.Requested <= c.slot.Policy.QuantityPerHoldMax {
				out = append(out, Alternative{
					SlotID: string(c.slot.ID), InsteadOf: string(short.Slot), StartsAt: timeOrNil(c.slot.StartsAt),
					RemainingHint: remainingHint(c.slot, c.available),
					UnitAmount:    c.slot.Terms.Price.AmountMinor, Currency: string(c.slot.Terms.Price.Currency),
				})
			}
		}
	}
	return out, nil
}

// neighbourhoodOf looks at the slots of the same resource: those without a time, or
// those from a day before the wanted one.
func (a *API) neighbourhoodOf(ctx context.Context, id ledger.SlotID) (neighbourhood, error) {
	now := system.Millisecond(a.clock)
	if n, fresh := a.alternatives.get(id, now); fresh {
		return n, nil
	}
	slots, err := a.store.Slots(ctx, []ledger.SlotID{id})
	if err != nil || len(slots) == 0 {
		return neighbourhood{}, err
	}
	n := neighbourhood{wanted: slots[0], readAt: now}
	var from time.Time
	if start := n.wanted.StartsAt; !start.IsZero() {
		from = start.Add(-alternativesBefore)
	}
	near, _, err := a.store.SlotsOfResource(ctx, n.wanted.ResourceType, n.wanted.ResourceID, from, time.Time{}, ledger.Page{Limit: alternativesLooked})
	if err != nil {
		return neighbourhood{}, err
	}
	near = slices.DeleteFunc(near, func(s ledger.Slot) bool { return s.ID == id || !s.Terms.Open })
	available, err := a.available(ctx, near)
	if err != nil {
		return neighbourhood{}, err
	}
	for _, s := range near {
		n.candidates = append(n.candidates, candidate{s, available[s.ID]})
	}
	slices.SortStableFunc(n.candidates, func(x, y candidate) int {
		return cmp.Compare(x.slot.StartsAt.Sub(n.wanted.StartsAt).Abs(), y.slot.StartsAt.Sub(n.wanted.StartsAt).Abs())
	})
	a.alternatives.put(id, n)
	return n, nil
}
