package reconcile

import (
	"cmp"
	"fmt"
	"slices"

	"holdfast/shared/ledger"
)

// Oversold is a slot of which more is promised than there is, as an operator has marked it.
type Oversold struct {
	Slot  ledger.SlotID
	Units ledger.Units // by how many
}

func (o Oversold) String() string { return fmt.Sprintf("%s by %d", o.Slot, o.Units) }

// closeSlot requires that all of the slot's stock items are there, those that a reshard has
// retired too, and that nobody sells what is oversold.
func (b *books) closeSlot(s ledger.Slot) {
	who := "slot " + string(s.ID)
	b.wantEvents(who, s.Version)
	for shard := range stockItems(s) {
		key := item{s.ID, ledger.Shard(shard)}
		if _, found := b.stock[key]; !found {
			b.violated("P1", key.String(), "the slot has %d shards and %d retired ones, and this stock item is missing", s.Terms.Shards, s.Terms.Retired)
		}
	}
	if s.Oversold < 0 || s.Oversold > 0 && s.Terms.Open {
		b.violated("P1", who, "it is oversold by %d, and open: %t", s.Oversold, s.Terms.Open)
	}
}

// stockItems is how many stock items the slot has, written out here so that a mistake in
// the ledger can't hide itself.
func stockItems(s ledger.Slot) int { return s.Terms.Shards + s.Terms.Retired }

// oversold lists the slots that are marked, which is no violation: somebody has said so,
// and works on it.
func (b *books) oversold() []Oversold {
	var out []Oversold
	for _, s := range b.slots {
		if s.Oversold > 0 {
			out = append(out, Oversold{s.ID, s.Oversold})
		}
	}
	slices.SortFunc(out, func(x, y Oversold) int { return cmp.Compare(x.Slot, y.Slot) })
	return out
}
