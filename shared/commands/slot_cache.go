package commands

import (
	"context"
	"sync"
	"time"

	"holdfast/shared/ledger"
)

const (
	// slotCacheFor is how long a slot's definition may be used without reading it again.
	// It decides only how long a hold lives and which shards are tried: what a sale
	// depends on (open, price, shards) is checked in the write, on the stock items.
	slotCacheFor = 5 * time.Second
	// slotCacheEntriesMax bounds the memory of the cache. A full cache is emptied, which
	// costs reads and nothing else.
	slotCacheEntriesMax = 10_000
)

// slotCache keeps slot definitions for a few seconds, so that a create usually reads
// nothing before its transaction.
type slotCache struct {
	mu      sync.Mutex
	entries map[ledger.SlotID]slotCacheEntry
}

type slotCacheEntry struct {
	slot   ledger.Slot
	readAt time.Time
}

func newSlotCache() *slotCache {
	return &slotCache{entries: make(map[ledger.SlotID]slotCacheEntry)}
}

// get returns the definitions of ids that exist, from the cache where it is fresh.
func (c *slotCache) get(ctx context.Context, store ledger.Store, ids []ledger.SlotID, now time.Time) (map[ledger.SlotID]ledger.Slot, error) {
	found := make(map[ledger.SlotID]ledger.Slot, len(ids))
	var missing []ledger.SlotID
	c.mu.Lock()
	for _, id := range ids {
		if e, ok := c.entries[id]; ok && now.Sub(e.readAt) < slotCacheFor && !now.Before(e.readAt) {
			found[id] = e.slot
		} else {
			missing = append(missing, id)
		}
	}
	c.mu.Unlock()
	if len(missing) == 0 {
		return found, nil
	}
	slots, err := store.Slots(ctx, missing)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.entries)+len(slots) > slotCacheEntriesMax {
		clear(c.entries)
	}
	for _, slot := range slots {
		found[slot.ID] = slot
		c.entries[slot.ID] = slotCacheEntry{slot, now}
	}
	return found, nil
}

func (c *slotCache) forget(id ledger.SlotID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, id)
}
