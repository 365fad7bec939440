package httpapi

import (
	"context"
	"sync"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const (
	// availabilityReadFor is how long one process answers from what it has read. What it
	// answers is a hint, and many people look at the same slots before the same sale.
	availabilityReadFor = time.Second
	// The caches are bounded by their entries; a full one is emptied. A page has at most
	// groupReadSlots slots, so all pages together have some ten thousand, or about 10 MB.
	availabilityPagesMax = 50
	availabilitySlotsMax = 2_000
	availabilityStockMax = 20_000
)

// readCache keeps what was read for availabilityReadFor. It is safe for concurrent use;
// two who miss at once both read, which costs a read and nothing else.
type readCache[K comparable, V any] struct {
	entriesMax int
	mutex      sync.Mutex
	entries    map[K]wasRead[V]
}

// wasRead is a value, with a time at which it was true or became true later: the moment
// before it was read.
type wasRead[V any] struct {
	value V
	at    time.Time
}

func newReadCache[K comparable, V any](entriesMax int) *readCache[K, V] {
	return &readCache[K, V]{entriesMax: entriesMax, entries: make(map[K]wasRead[V])}
}

// get returns what was read under the key, and whether it may still be used at now. What
// seems to be read later than now is not used: the clock was set back, and nobody knows
// how old it is.
func (c *readCache[K, V]) get(key K, now time.Time) (wasRead[V], bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	e, found := c.entries[key]
	return e, found && !now.Before(e.at) && now.Sub(e.at) < availabilityReadFor
}

func (c *readCache[K, V]) put(key K, value V, at time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if _, there := c.entries[key]; !there && len(c.entries) >= c.entriesMax {
		clear(c.entries)
	}
	c.entries[key] = wasRead[V]{value, at}
}

// availabilityCache is what a process has read to show it. It never decides anything about
// a hold: what is promised is decided by the write.
type availabilityCache struct {
	pages *readCache[pageKey, slotPage]
	// slots are those asked for by their id. The pointer is nil for an id without a slot.
	slots *readCache[ledger.SlotID, *ledger.Slot]
	// stock is what is available of a slot, over all of its stock items.
	stock *readCache[ledger.SlotID, ledger.Units]
}

func newAvailabilityCache() *availabilityCache {
	return &availabilityCache{
		pages: newReadCache[pageKey, slotPage](availabilityPagesMax),
		slots: newReadCache[ledger.SlotID, *ledger.Slot](availabilitySlotsMax),
		stock: newReadCache[ledger.SlotID, ledger.Units](availabilityStockMax),
	}
}

// resourceRange is the slots of a resource that start between two times, both included. A
// zero time is no bound.
type resourceRange struct {
	resourceType ledger.ResourceType
	resourceID   ledger.ResourceID
	from, to     time.Time
}

// pageKey names one page of a range. Its times are numbers, because two times that are
// equal may differ for ==.
type pageKey struct {
	resourceType ledger.ResourceType
	resourceID   ledger.ResourceID
	fromMs, toMs int64
	page         ledger.Page
}

// slotPage is one page of a range, its slots with their whole policies, and where the next
// one begins. It is shared: nobody may change it.
type slotPage struct {
	slots []ledger.Slot
	next  ledger.Cursor
}

// offeredSlot is a slot with its whole policy, and what was available of it.
type offeredSlot struct {
	ledger.Slot
	available ledger.Units
}

// availabilityReader reads for one answer, from the cache where it can, and notes how old
// the oldest part of the answer is. It is for one goroutine.
type availabilityReader struct {
	api  *API
	now  time.Time // of the whole answer
	asOf time.Time
}

func (a *API) newAvailabilityReader() *availabilityReader {
	now := system.Millisecond(a.clock)
	return &availabilityReader{api: a, now: now, asOf: now}
}

// uses notes that the answer has a part that was read at that time.
func (r *availabilityReader) uses(at time.Time) {
	if at.Before(r.asOf) {
		r.asOf = at
	}
}

// page reads one page of a range.
func (r *availabilityReader) page(ctx context.Context, in resourceRange, page ledger.Page) (slotPage, error) {
	key := pageKey{in.resourceType, in.resourceID, in.from.UnixMilli(), in.to.UnixMilli(), page}
	if e, fresh := r.api.seen.pages.get(key, r.now); fresh {
		r.uses(e.at)
		return e.value, nil
	}
	at := system.Millisecond(r.api.clock)
	slots, next, err := r.api.store.SlotsOfResource(ctx, in.resourceType, in.resourceID, in.from, in.to, page)
	if err != nil {
		return slotPage{}, err
	}
	if slots, err = r.api.commands.Resolved(ctx, slots); err != nil {
		return slotPage{}, err
	}
	out := slotPage{slots, next}
	r.api.seen.pages.put(key, out, at)
	r.uses(at)
	return out, nil
}

// named reads slots by their ids, in one batch, and returns those that exist.
func (r *availabilityReader) named(ctx context.Context, ids []ledger.SlotID) (map[ledger.SlotID]ledger.Slot, error) {
	out := make(map[ledger.SlotID]ledger.Slot, len(ids))
	var missing []ledger.SlotID
	for _, id := range ids {
		e, fresh := r.api.seen.slots.get(id, r.now)
		if !fresh {
			missing = append(missing, id)
			continue
		}
		r.uses(e.at)
		if e.value != nil {
			out[id] = *e.value
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	at := system.Millisecond(r.api.clock)
	slots, err := r.api.store.Slots(ctx, missing)
	if err != nil {
		return nil, err
	}
	if slots, err = r.api.commands.Resolved(ctx, slots); err != nil {
		return nil, err
	}
	for _, slot := range slots {
		out[slot.ID] = slot
	}
	for _, id := range missing {
		var known *ledger.Slot
		if slot, exists := out[id]; exists {
			known = &slot
		}
		r.api.seen.slots.put(id, known, at)
	}
	r.uses(at)
	return out, nil
}

// offered reads what is available of the slots, in one batch, and keeps their order. Of a
// closed slot nothing is read, and nothing is available.
func (r *availabilityReader) offered(ctx context.Context, slots []ledger.Slot) ([]offeredSlot, error) {
	available := make(map[ledger.SlotID]ledger.Units, len(slots))
	var missing []ledger.Slot
	for _, slot := range slots {
		if !slot.Terms.Open {
			continue
		}
		if e, fresh := r.api.seen.stock.get(slot.ID, r.now); fresh {
			r.uses(e.at)
			available[slot.ID] = e.value
		} else {
			missing = append(missing, slot)
		}
	}
	if len(missing) > 0 {
		at := system.Millisecond(r.api.clock)
		stock, err := r.api.store.Stock(ctx, missing)
		if err != nil {
			return nil, err
		}
		for _, s := range stock {
			available[s.Slot] += s.Counters.Available
		}
		for _, slot := range missing {
			r.api.seen.stock.put(slot.ID, available[slot.ID], at)
		}
		r.uses(at)
	}
	out := make([]offeredSlot, len(slots))
	for i, slot := range slots {
		out[i] = offeredSlot{slot, available[slot.ID]}
	}
	return out, nil
}

// onSale reports whether holds of the slot are made at now, as far as it depends on time
// and on the catalogue.
func (o offeredSlot) onSale(now time.Time) bool { return o.Terms.Open && o.OnSale(now) == nil }

// takes reports whether a hold could take the quantity of the slot at now, and ofResource
// of its resource, by the slot's whole policy and by what was available. What one owner has
// already is not looked at.
func (o offeredSlot) takes(quantity, ofResource ledger.Units, now time.Time) bool {
	within := func(wanted, limit ledger.Units) bool { return limit == 0 || wanted <= limit }
	return o.onSale(now) && o.available >= quantity && quantity <= o.Policy.QuantityPerHoldMax &&
		within(quantity, o.Policy.QuantityPerOwnerMax) && within(ofResource, o.Policy.QuantityPerOwnerOfResourceMax)
}
