package reconcile

import (
	"fmt"

	"holdfast/shared/ledger"
)

// item names one stock item.
type item struct {
	slot  ledger.SlotID
	shard ledger.Shard
}

func (i item) String() string { return fmt.Sprintf("stock of %s, shard %d", i.slot, i.shard) }

// resource names what a slot belongs to.
type resource struct {
	Type ledger.ResourceType `json:"type"`
	ID   ledger.ResourceID   `json:"id"`
}

// slotRow is what is kept of a slot.
type slotRow struct {
	ID       ledger.SlotID  `json:"id"`
	Version  ledger.Version `json:"version"`
	Resource resource       `json:"resource"`
	Terms    ledger.Terms   `json:"terms"`
	Oversold ledger.Units   `json:"oversold,omitempty"`
	// Shares is what its own events moved: capacity that came, went, or changed its shard.
	Shares []share `json:"shares,omitempty"`
	Told   bool    `json:"told,omitempty"`
}

// stockRow is a stock item.
type stockRow struct {
	Slot     ledger.SlotID   `json:"slot"`
	Shard    ledger.Shard    `json:"shard"`
	Counters ledger.Counters `json:"counters"`
	Archived ledger.Counters `json:"archived"`
	Terms    ledger.Terms    `json:"terms"`
	Version  ledger.Version  `json:"version"`
}

func (t *Tally) addSlot(s ledger.Slot) {
	t.rows.Slots[s.ID] = &slotRow{
		ID: s.ID, Version: s.Version, Resource: resource{s.ResourceType, s.ResourceID}, Terms: s.Terms, Oversold: s.Oversold,
	}
}

// resourceOf is the resource of a slot, and whether it is known.
func (t *Tally) resourceOf(id ledger.SlotID) (resource, bool) {
	if row, found := t.rows.Slots[id]; found {
		return row.Resource, true
	}
	known, found := t.resources[id]
	return known, found
}

// stockItems is how many stock items the slot has, written out here so that a mistake in
// the ledger can't hide itself.
func stockItems(terms ledger.Terms) int { return terms.Shards + terms.Retired }
