package commands

import (
	"context"
	"slices"
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
	// policies are those of resources and resource types, each for as long as a slot. The
	// whole policy of a cached slot is thus at most two times slotCacheFor old.
	policies map[ledger.PolicyScope]policyCacheEntry
}

type slotCacheEntry struct {
	slot   ledger.Slot // resolved
	readAt time.Time
}

// policyCacheEntry is what is said for a scope; its policy has version zero for nothing.
type policyCacheEntry struct {
	policy ledger.ScopePolicy
	readAt time.Time
}

func newSlotCache() *slotCache {
	return &slotCache{
		entries: make(map[ledger.SlotID]slotCacheEntry), policies: make(map[ledger.PolicyScope]policyCacheEntry),
	}
}

// get returns the definitions of ids that exist, resolved, from the cache where it is fresh.
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
	if slots, err = c.resolve(ctx, store, slots, now); err != nil {
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

// forgetScope drops what is said for the scope, and the slots that go by it.
func (c *slotCache) forgetScope(scope ledger.PolicyScope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.policies, scope)
	for id, e := range c.entries {
		if slices.Contains(ledger.Scopes(e.slot.ResourceType, e.slot.ResourceID), scope) {
			delete(c.entries, id)
		}
	}
}

// resolve gives the slots the whole of their policies.
func (c *slotCache) resolve(ctx context.Context, store ledger.Store, slots []ledger.Slot, now time.Time) ([]ledger.Slot, error) {
	var wanted []ledger.PolicyScope
	for _, slot := range slots {
		for _, scope := range ledger.Scopes(slot.ResourceType, slot.ResourceID) {
			if !slices.Contains(wanted, scope) {
				wanted = append(wanted, scope)
			}
		}
	}
	policies, missing := c.knownPolicies(wanted, now)
	for chunk := range slices.Chunk(missing, ledger.PageItemsMax) {
		read, err := store.Policies(ctx, chunk)
		if err != nil {
			return nil, err
		}
		c.keepPolicies(chunk, read, now)
		policies = append(policies, read...)
	}
	out := make([]ledger.Slot, len(slots))
	for i, slot := range slots {
		out[i] = slot.Resolve(policies)
	}
	return out, nil
}

// knownPolicies are the cached policies of the scopes, and the scopes that are not cached.
func (c *slotCache) knownPolicies(scopes []ledger.PolicyScope, now time.Time) ([]ledger.ScopePolicy, []ledger.PolicyScope) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var known []ledger.ScopePolicy
	var missing []ledger.PolicyScope
	for _, scope := range scopes {
		e, cached := c.policies[scope]
		switch fresh := now.Sub(e.readAt) < slotCacheFor && !now.Before(e.readAt); {
		case !cached || !fresh:
			missing = append(missing, scope)
		case e.policy.Version > 0:
			known = append(known, e.policy)
		}
	}
	return known, missing
}

// keepPolicies caches what was read of the scopes, also that nothing is said for some.
func (c *slotCache) keepPolicies(scopes []ledger.PolicyScope, read []ledger.ScopePolicy, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.policies)+len(scopes) > slotCacheEntriesMax {
		clear(c.policies)
	}
	for _, scope := range scopes {
		c.policies[scope] = policyCacheEntry{readAt: now}
	}
	for _, policy := range read {
		c.policies[policy.Scope] = policyCacheEntry{policy, now}
	}
}
