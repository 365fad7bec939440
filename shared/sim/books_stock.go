package sim

import (
	"holdfast/shared/ledger"
)

type stockKey struct {
	slot  ledger.SlotID
	shard ledger.Shard
}

// writeStock checks P1 and P2 of every stock item that changed, and that it changed as
// the events of the same commit tell (P5).
func (b *books) writeStock(c commit, after []ledger.Stock, created []ledger.Event) {
	w := b.world
	told := map[stockKey]ledger.Counters{}
	for _, e := range created {
		for _, m := range e.Movements {
			key := stockKey{m.Slot, m.Shard}
			told[key] = moved(moved(told[key], m.From, -m.Quantity), m.To, m.Quantity)
		}
	}
	for _, s := range after {
		key := stockKey{s.Slot, s.Shard}
		before, now := b.stock[key].Counters, s.Counters
		if now.Available < 0 || now.Held < 0 || now.Confirmed < 0 || now.Available+now.Held+now.Confirmed != now.Capacity {
			w.violated("P1", "%s left %s/%d at %+v", c.by, s.Slot, s.Shard, now)
		}
		if sum := b.promised[key]; now.Held != sum.Held || now.Confirmed != sum.Confirmed {
			w.violated("P2", "%s left %s/%d at %+v, and its holds have %+v", c.by, s.Slot, s.Shard, now, sum)
		}
		change := ledger.Counters{Available: now.Available - before.Available, Held: now.Held - before.Held, Confirmed: now.Confirmed - before.Confirmed}
		if tells := told[key]; change != tells {
			w.violated("P5", "%s changed %s/%d by %+v, and its events tell %+v", c.by, s.Slot, s.Shard, change, tells)
		}
		if want := b.archived[key]; s.Archived.Available != want.Available || s.Archived.Held != want.Held || s.Archived.Confirmed != want.Confirmed {
			w.violated("archive", "%s left %s/%d with %+v of what is archived, and its events have moved %+v", c.by, s.Slot, s.Shard, s.Archived, want)
		}
		delete(told, key)
		b.stock[key] = s
	}
	for key, tells := range told {
		w.violated("P5", "%s told of %s/%d moving by %+v, and it did not move", c.by, key.slot, key.shard, tells)
	}
}

func moved(c ledger.Counters, bucket ledger.Bucket, units ledger.Units) ledger.Counters {
	switch bucket {
	case ledger.BucketAvailable:
		c.Available += units
	case ledger.BucketHeld:
		c.Held += units
	case ledger.BucketConfirmed:
		c.Confirmed += units
	case ledger.BucketOutside:
	}
	return c
}
