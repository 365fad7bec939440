package commands

import (
	"slices"
	"sync"
	"time"

	"holdfast/shared/ledger"
)

const (
	// stockCacheFor is how long after a slot was seen short its stock is looked at before
	// the next hold of it is written. It decides what is tried first, and never an answer.
	stockCacheFor = 2 * time.Second
	// stockCacheEntriesMax bounds the memory of the cache: few slots are short and wanted in
	// the same two seconds. A full cache is emptied, which costs reads and nothing else.
	stockCacheEntriesMax = 1_000
)

// stockCache knows of slots that were short a moment ago the versions that all their stock
// items had together.
//
// The problem it solves: when a hot slot is sold out, most of those who come are losers. A
// loser who finds that out by a write costs a failed transaction, which is charged like a
// good one and stands in the way of holds that end, then a read of all shards, then a read
// of all shards at one moment. With what the loser before has proven, one plain read is
// enough.
//
// Why that is still a proof (promise P10): a version of a stock item only grows, and every
// write of the item raises it, whatever it changes. The versions that are kept here were
// read at one moment. An item that is read later with the same version was the same at every
// moment between. If that is so for all items, the whole slot was as proven at the moment at
// which the later read began, which lies within the request that is answered. Should the
// kept versions be of another request that proved them while this one was reading, then its
// moment lies within this request. A reshard can add no item unnoticed: it writes the terms
// of all items that there are. So equal versions mean one moment, and what is read then may
// be believed like a read of one moment.
type stockCache struct {
	mu      sync.Mutex
	entries map[ledger.SlotID]stockCacheEntry
}

type stockCacheEntry struct {
	versions []ledger.Version // in shard order
	seenAt   time.Time
}

func newStockCache() *stockCache {
	return &stockCache{entries: make(map[ledger.SlotID]stockCacheEntry)}
}

// doubts reports whether the slot was seen short a moment ago.
func (c *stockCache) doubts(id ledger.SlotID, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, known := c.entries[id]
	return known && now.Sub(e.seenAt) < stockCacheFor && !now.Before(e.seenAt)
}

// same reports whether stock, which was read item by item, is of one moment, because all
// items still have the versions that they had at one.
func (c *stockCache) same(id ledger.SlotID, stock []ledger.Stock) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, known := c.entries[id]
	return known && slices.Equal(e.versions, versionsOf(stock))
}

// keep remembers the stock of a slot that was short, all of it at one moment.
func (c *stockCache) keep(id ledger.SlotID, stock []ledger.Stock, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.entries[id]; !known && len(c.entries) >= stockCacheEntriesMax {
		clear(c.entries)
	}
	c.entries[id] = stockCacheEntry{versionsOf(stock), now}
}

func (c *stockCache) forget(id ledger.SlotID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, id)
}

func versionsOf(stock []ledger.Stock) []ledger.Version {
	out := make([]ledger.Version, len(stock))
	for i, item := range stock {
		out[i] = item.Version
	}
	return out
}
