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

func keyOfResource(r resource) ledger.QuotaKey {
	return ledger.QuotaKey("resource/" + string(r.Type) + "/" + string(r.ID))
}

// quotas compares what is counted of each owner with what the owner's holds say. Each count
// is written in the transaction of its hold, so they are equal at rest.
//
// A sale that lies in the archive counts on when its hold has left the table: "one for each
// customer" is true for ever. What such a hold said is not known here any more, but how many
// units of its slot they have sold together is. So a count may be above what the holds of
// the table say, by no more than that over all owners; it may never be below.
func (s *suspicion) quotas() {
	counted := map[ownerCount]ledger.Units{}
	for _, row := range s.t.rows.Holds {
		for key, units := range row.Counts {
			counted[ownerCount{row.Owner, key}] += units
		}
	}
	gone, above := s.t.salesGone(), map[ledger.QuotaKey]ledger.Units{}
	for _, q := range s.t.rows.Quotas {
		for key, units := range q.Counts {
			who := ownerCount{q.Owner, key}
			above[key] += s.quota(who, units, counted[who], gone[key])
			delete(counted, who)
		}
		if q.Expired < 0 || q.Expired > 0 && q.LastExpiredAt.IsZero() {
			s.wrong(Finding{Subject: "owner " + string(q.Owner), Owner: q.Owner}, flawed(FindingQuotaMismatch, "P5", "the owner's record was written by itself",
				"%d of its holds have expired, the last one at %s", q.Expired, q.LastExpiredAt))
		}
	}
	for who, units := range counted {
		if units != 0 {
			s.quota(who, 0, units, gone[who.key])
		}
	}
	for key, units := range above {
		if units > gone[key] {
			f := countAbove(key, units, gone[key])
			f.Proof.At = s.t.rows.At
			s.findings = append(s.findings, f)
		}
	}
}

// countAbove is the finding of a count that is too high, of nobody knows whom.
func countAbove(key ledger.QuotaKey, units, gone ledger.Units) Finding {
	return Finding{
		Kind: FindingQuotaMismatch, Promise: "P5", Subject: fmt.Sprintf("count %s", key), Count: key,
		Evidence: fmt.Sprintf("over all owners it is %d above what their holds have, and holds that have left the table sold %d", units, gone),
		Cause:    "a count was raised without a hold, or not lowered with one",
	}
}

// quota compares one count. Where sales of holds that have left the table may explain that it
// is above what the holds say, it only returns by how much.
func (s *suspicion) quota(who ownerCount, units, want, gone ledger.Units) ledger.Units {
	switch {
	case units == want:
		return 0
	case units > want && gone > 0:
		return units - want
	}
	s.wrong(Finding{
		Subject: who.String(), Owner: who.owner, Count: who.key, Proof: Proof{Certain: gone == 0, Was: units, Want: want},
	}, flawed(FindingQuotaMismatch, "P5", "the count was changed without a hold, or a hold without the count", "it is %d, and the owner's holds have %d", units, want))
	return 0
}

// salesGone is how many units were sold, and not given back, by holds that lie in the
// archive and have left the table, under the keys that may count them. No HELD hold is
// ever archived, so nothing is under the key of holds.
func (t *Tally) salesGone() map[ledger.QuotaKey]ledger.Units {
	if t.gone != nil {
		return t.gone
	}
	bySlot := map[ledger.SlotID]ledger.Units{}
	for _, row := range t.rows.Stock {
		bySlot[row.Slot] += row.Archived.Confirmed
	}
	out := map[ledger.QuotaKey]ledger.Units{}
	for id, archived := range bySlot {
		gone := max(0, archived-t.rows.ArchivedSales[id])
		if gone == 0 {
			continue
		}
		out[keyOfSlot(id)] = gone
		if of, found := t.resourceOf(id); found {
			out[keyOfResource(of)] += gone
		}
	}
	return out
}
