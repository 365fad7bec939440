package reconcile

import (
	"cmp"
	"slices"

	"holdfast/shared/ledger"
)

// share is what one thing adds to one stock item. Capacity is the sum of the three.
type share struct {
	Slot      ledger.SlotID `json:"slot"`
	Shard     ledger.Shard  `json:"shard,omitempty"`
	Available ledger.Units  `json:"available,omitempty"`
	Held      ledger.Units  `json:"held,omitempty"`
	Confirmed ledger.Units  `json:"confirmed,omitempty"`
}

func (s share) counters() ledger.Counters {
	return ledger.Counters{Available: s.Available, Held: s.Held, Confirmed: s.Confirmed, Capacity: s.Available + s.Held + s.Confirmed}
}

// nothing reports whether the share adds to no number.
func (s share) nothing() bool { return s.Available == 0 && s.Held == 0 && s.Confirmed == 0 }

// summed adds up the shares of each stock item, in order, without those that add nothing.
func summed(shares []share) []share {
	slices.SortFunc(shares, func(a, b share) int { return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Shard, b.Shard)) })
	var out []share
	for _, s := range shares {
		if last := len(out) - 1; last >= 0 && out[last].Slot == s.Slot && out[last].Shard == s.Shard {
			out[last].Available += s.Available
			out[last].Held += s.Held
			out[last].Confirmed += s.Confirmed
			continue
		}
		out = append(out, s)
	}
	return slices.DeleteFunc(out, share.nothing)
}

// without is what a has more than b.
func without(a, b []share) []share {
	both := slices.Clone(a)
	for _, s := range b {
		both = append(both, share{s.Slot, s.Shard, -s.Available, -s.Held, -s.Confirmed})
	}
	return summed(both)
}

// history is what the events of one thing tell, as far as they were seen.
type history struct {
	Subject     string               `json:"subject"`
	Hold        ledger.HoldID        `json:"hold,omitempty"`
	Owner       ledger.OwnerID       `json:"owner,omitempty"` // of the hold
	Reservation ledger.ReservationID `json:"reservation,omitempty"`
	Slot        ledger.SlotID        `json:"slot,omitempty"`
	Policy      ledger.PolicyScope   `json:"policy,omitzero"`
	Review      ledger.ReviewID      `json:"review,omitempty"`
	Versions    []ledger.Version     `json:"versions"`
	Moved       []share              `json:"moved,omitempty"`
}

// whole reports whether there is one event for each version from 1 to last, and no more.
func (h *history) whole(last ledger.Version) bool {
	if ledger.Version(len(h.Versions)) != last {
		return false
	}
	slices.Sort(h.Versions)
	for i, v := range h.Versions {
		if v != ledger.Version(i+1) {
			return false
		}
	}
	return true
}

func (h *history) merge(other *history) {
	h.Versions = append(h.Versions, other.Versions...)
	h.Moved = summed(append(h.Moved, other.Moved...))
}

// addEvent notes what an event tells.
func (t *Tally) addEvent(e ledger.Event) {
	subject := e.Subject()
	told := t.rows.Histories[subject]
	if told == nil {
		told = &history{Subject: subject}
		switch {
		case e.Hold != nil:
			told.Hold, told.Owner = e.Hold.ID, e.Hold.Owner
		case e.Reservation != nil:
			told.Reservation = e.Reservation.ID
		case e.Slot != nil:
			told.Slot = e.Slot.ID
		case e.Policy != nil:
			told.Policy = e.Policy.Scope
		case e.Review != nil:
			told.Review = e.Review.ID
		}
		t.rows.Histories[subject] = told
	}
	told.Versions = append(told.Versions, e.Version)
	for _, m := range e.Movements {
		told.Moved = append(told.Moved, moved(m.Slot, m.Shard, m.From, -m.Quantity), moved(m.Slot, m.Shard, m.To, m.Quantity))
	}
	told.Moved = summed(told.Moved)
}

// moved adds units to one bucket. It is written out here, and not taken from the ledger,
// so that a mistake there can't hide itself.
func moved(slot ledger.SlotID, shard ledger.Shard, bucket ledger.Bucket, units ledger.Units) share {
	s := share{Slot: slot, Shard: shard}
	switch bucket {
	case ledger.BucketAvailable:
		s.Available = units
	case ledger.BucketHeld:
		s.Held = units
	case ledger.BucketConfirmed:
		s.Confirmed = units
	case ledger.BucketOutside:
	}
	return s
}
