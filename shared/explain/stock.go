package explain

import (
	"cmp"
	"maps"
	"slices"

	"holdfast/shared/ledger"
)

// Counters are the numbers of a stock item, or what a hold has of them.
type Counters struct {
	Available ledger.Units `json:"available"`
	Held      ledger.Units `json:"held"`
	Confirmed ledger.Units `json:"confirmed"`
	Capacity  ledger.Units `json:"capacity"`
}

// Move is units that went from one bucket to another, and the counters right after. For the
// story of a slot they are those of the stock item; for another one, what the story itself has
// done to them until then.
type Move struct {
	Slot     ledger.SlotID `json:"slot_id"`
	Shard    ledger.Shard  `json:"shard"`
	From     ledger.Bucket `json:"from"`
	To       ledger.Bucket `json:"to"`
	Quantity ledger.Units  `json:"quantity"`
	After    Counters      `json:"after"`
}

// StockSum is what the movements of one stock item add up to.
type StockSum struct {
	Slot  ledger.SlotID `json:"slot_id"`
	Shard ledger.Shard  `json:"shard"`
	// Unseen is what events moved that lie in the archive and are no steps of this story.
	Unseen Counters `json:"archived_before"`
	Told   Counters `json:"told"`
	// Stored are the counters of the stock item as it is stored; nil for a story that is not
	// of a slot, to which other holds add.
	Stored *Counters `json:"stored,omitempty"`
}

type stockItem struct {
	slot  ledger.SlotID
	shard ledger.Shard
}

// stockBook adds movements up.
type stockBook struct {
	slot   ledger.SlotID // what is told alone; "" for everything
	unseen map[stockItem]ledger.Counters
	told   map[stockItem]ledger.Counters
	stored map[stockItem]ledger.Counters
}

// newStockBook begins with what is in the archived counters of the stock of a slot and in no
// event of the story.
func newStockBook(r Records) *stockBook {
	b := &stockBook{
		slot: r.Slot, unseen: map[stockItem]ledger.Counters{}, told: map[stockItem]ledger.Counters{}, stored: map[stockItem]ledger.Counters{},
	}
	if r.Slot == "" {
		return b
	}
	for _, s := range r.Stock {
		if s.Slot == r.Slot {
			at := stockItem{s.Slot, s.Shard}
			b.stored[at], b.unseen[at], b.told[at] = s.Counters, s.Archived, ledger.Counters{}
		}
	}
	for _, e := range r.Events {
		if !r.archivedEvent(e) {
			continue
		}
		for _, m := range e.Movements {
			if at := (stockItem{m.Slot, m.Shard}); m.Slot == r.Slot {
				b.unseen[at] = b.unseen[at].Plus(negative(m.Delta()))
			}
		}
	}
	for at, unseen := range b.unseen {
		b.told[at] = unseen
	}
	return b
}

// take adds a movement up, and reports false for one of another slot than the story is of.
func (b *stockBook) take(m ledger.Movement) (Move, bool) {
	if b.slot != "" && m.Slot != b.slot {
		return Move{}, false
	}
	at := stockItem{m.Slot, m.Shard}
	b.told[at] = b.told[at].Plus(m.Delta())
	return Move{m.Slot, m.Shard, m.From, m.To, m.Quantity, Counters(b.told[at])}, true
}

// sums are in the order of slots and shards.
func (b *stockBook) sums() []StockSum {
	out := make([]StockSum, 0, len(b.told))
	for _, at := range slices.SortedFunc(maps.Keys(b.told), compareItems) {
		sum := StockSum{Slot: at.slot, Shard: at.shard, Unseen: Counters(b.unseen[at]), Told: Counters(b.told[at])}
		if stored, there := b.stored[at]; there {
			counters := Counters(stored)
			sum.Stored = &counters
		}
		out = append(out, sum)
	}
	return out
}

func compareItems(a, b stockItem) int {
	return cmp.Or(cmp.Compare(a.slot, b.slot), cmp.Compare(a.shard, b.shard))
}

func negative(c ledger.Counters) ledger.Counters {
	return ledger.Counters{Available: -c.Available, Held: -c.Held, Confirmed: -c.Confirmed, Capacity: -c.Capacity}
}
