package reconcile

import (
	"fmt"

	"holdfast/shared/ledger"
)

// ownerCount names one count of one owner.
type ownerCount struct {
	owner ledger.OwnerID
	key   ledger.QuotaKey
}

func (c ownerCount) String() string { return fmt.Sprintf("count %s of owner %s", c.key, c.owner) }

// The keys of counts, written out here so that a mistake in the ledger can't hide itself.
const keyOfHolds ledger.QuotaKey = "holds"

func keyOfSlot(id ledger.SlotID) ledger.QuotaKey { return ledger.QuotaKey("slot/" + string(id)) }

func keyOfResource(s ledger.Slot) ledger.QuotaKey {
	return ledger.QuotaKey("resource/" + string(s.ResourceType) + "/" + string(s.ResourceID))
}

// closeCounts adds a hold to what its owner has by the holds of the table. One that lies in
// the archive is counted like any other, as its owner still has what it sold.
func (b *books) closeCounts(h ledger.Hold) {
	b.closeCountsIn(h)
	switch h.Status {
	case ledger.StatusHeld:
		for _, key := range h.CountsIn {
			b.counted[ownerCount{h.Owner, key}]++
		}
	case ledger.StatusConfirmed, ledger.StatusReturned:
	case ledger.StatusCanceled, ledger.StatusExpired, ledger.StatusPaymentChecking:
		return
	}
	for _, line := range h.Lines {
		left := line.Quantity
		for _, back := range line.Returned {
			left -= back.Quantity
		}
		for _, key := range line.CountsIn {
			b.counted[ownerCount{h.Owner, key}] += left
		}
		if h.ArchivedIn != "" {
			b.archivedSales[line.Slot] += left
		}
	}
}

// closeCountsIn requires that a hold says of nothing but itself where it is counted.
func (b *books) closeCountsIn(h ledger.Hold) {
	for _, key := range h.CountsIn {
		if key != keyOfHolds {
			b.violated("P5", "hold "+string(h.ID), "it is counted in %s, which counts no holds", key)
		}
	}
	for _, line := range h.Lines {
		for _, key := range line.CountsIn {
			slot, found := b.slots[line.Slot]
			if ofIts := key == keyOfSlot(line.Slot) || found && key == keyOfResource(slot); !ofIts {
				b.violated("P5", "hold "+string(h.ID), "its line of %s is counted in %s, which is not of that slot", line.Slot, key)
			}
		}
	}
}

// closeQuotas compares what is counted of each owner with what the owner's holds say. Each
// count is written in the transaction of its hold, so they are equal at rest.
//
// A sale that lies in the archive counts on when its hold has left the table: "one for each
// customer" is true for ever. What such a hold said is not known here any more, but how many
// units of its slot they have sold together is. So a count may be above what the holds of
// the table say, by no more than that over all owners; it may never be below.
func (b *books) closeQuotas() {
	above := map[ledger.QuotaKey]ledger.Units{}
	for _, q := range b.quotas {
		for key, units := range q.Counts {
			who := ownerCount{q.Owner, key}
			above[key] += b.closeCount(who, units)
			delete(b.counted, who)
		}
		if q.Expired < 0 || q.Expired > 0 && q.LastExpiredAt.IsZero() {
			b.violated("P5", "owner "+string(q.Owner), "%d of its holds have expired, the last one at %s", q.Expired, q.LastExpiredAt)
		}
	}
	for who, units := range b.counted {
		if units != 0 {
			b.closeCount(who, 0)
		}
	}
	gone := b.salesGone()
	for key, units := range above {
		if units > gone[key] {
			b.violated("P5", fmt.Sprintf("count %s", key), "over all owners it is %d above what their holds have, and holds that have left the table sold %d",
				units, gone[key])
		}
	}
}

// closeCount compares one count, and returns by how much it is above what the holds of the
// table say.
func (b *books) closeCount(who ownerCount, units ledger.Units) ledger.Units {
	want := b.counted[who]
	if units < want { // want is never negative, so that this finds a negative count, too
		b.violated("P5", who.String(), "it is %d, and the owner's holds have %d", units, want)
		return 0
	}
	return units - want
}

// salesGone is how many units were sold, and not given back, by holds that lie in the
// archive and have left the table, under the keys that may count them. No HELD hold is
// ever archived, so nothing is under the key of holds.
func (b *books) salesGone() map[ledger.QuotaKey]ledger.Units {
	bySlot := map[ledger.SlotID]ledger.Units{}
	for key, s := range b.stock {
		bySlot[key.slot] += s.Archived.Confirmed
	}
	out := map[ledger.QuotaKey]ledger.Units{}
	for id, archived := range bySlot {
		gone := max(0, archived-b.archivedSales[id])
		out[keyOfSlot(id)] = gone
		if slot, found := b.slots[id]; found {
			out[keyOfResource(slot)] += gone
		}
	}
	return out
}
