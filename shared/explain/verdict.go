package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/shared/ledger"
)

// differences are all that does not add up, each as a sentence.
func (t *teller) differences(s Story) []string {
	out := t.versions()
	for _, sum := range s.Stock {
		if t.records.Slot != "" && sum.Stored == nil {
			out = append(out, fmt.Sprintf("events moved units of shard %s, and there is no such stock item", sum.Shard))
		} else if sum.Stored != nil && *sum.Stored != sum.Told {
			out = append(out, fmt.Sprintf("the events of shard %s add up to %s, and its stock item says %s", sum.Shard, sum.Told, *sum.Stored))
		}
	}
	if t.records.Slot != "" {
		return out
	}
	for _, h := range t.records.Holds {
		out = append(out, t.holdDifferences(h)...)
	}
	for _, r := range t.records.Reservations {
		out = append(out, t.reservationDifferences(r)...)
	}
	return out
}

// versions compares the versions of each subject with its events: version n has the nth.
func (t *teller) versions() []string {
	stored := make(map[string]ledger.Version)
	for _, h := range t.records.Holds {
		stored["hold/"+string(h.ID)] = h.Version
	}
	for _, r := range t.records.Reservations {
		stored["reservation/"+string(r.ID)] = r.Version
	}
	for _, s := range t.records.Slots {
		stored["slot/"+string(s.ID)] = s.Version
	}
	told := make(map[string][]ledger.Version)
	for _, e := range t.records.Events {
		told[e.Subject()] = append(told[e.Subject()], e.Version)
	}
	var out []string
	for _, subject := range slices.Sorted(maps.Keys(told)) {
		if _, there := stored[subject]; !there && t.tellsWhole(subject) {
			out = append(out, fmt.Sprintf("%s has events, and is not there itself", subject))
		}
	}
	for _, subject := range slices.Sorted(maps.Keys(stored)) {
		if !t.tellsWhole(subject) {
			continue
		}
		for version := ledger.Version(1); version <= stored[subject]; version++ {
			if n := count(told[subject], version); n != 1 {
				out = append(out, fmt.Sprintf("version %d of %s has %d events in place of one", version, subject, n))
			}
		}
		if len(told[subject]) > 0 && slices.Max(told[subject]) > stored[subject] {
			out = append(out, fmt.Sprintf("%s is at version %d, and an event is of version %d", subject, stored[subject], slices.Max(told[subject])))
		}
	}
	return out
}

// tellsWhole reports whether the story has all events of the subject. That of a slot has only
// those of a hold or a reservation that moved units of the slot.
func (t *teller) tellsWhole(subject string) bool {
	return t.records.Slot == "" || subject == "slot/"+string(t.records.Slot)
}

func count(versions []ledger.Version, version ledger.Version) int {
	n := 0
	for _, v := range versions {
		if v == version {
			n++
		}
	}
	return n
}

// holdDifferences compares the lines of a hold with what its own events moved: a HELD hold
// holds them, and of a sale they are sold, but for what was given back.
func (t *teller) holdDifferences(h ledger.Hold) []string {
	want := make(map[stockItem]ledger.Counters)
	for _, line := range h.Lines {
		for _, taken := range line.Shards {
			at := stockItem{line.Slot, taken.Shard}
			c := want[at]
			switch h.Status {
			case ledger.StatusHeld:
				c.Held += taken.Quantity
			case ledger.StatusConfirmed, ledger.StatusReturned:
				c.Confirmed += taken.Quantity - returnedTo(line, taken.Shard)
			case ledger.StatusCanceled, ledger.StatusExpired, ledger.StatusPaymentChecking:
			}
			want[at] = c
		}
	}
	got := t.moved(h.ID)
	for at := range got {
		if _, named := want[at]; !named {
			want[at] = ledger.Counters{} // what the hold had once
		}
	}
	var out []string
	for _, at := range slices.SortedFunc(maps.Keys(want), compareItems) {
		if got[at].Held != want[at].Held || got[at].Confirmed != want[at].Confirmed {
			out = append(out, fmt.Sprintf("hold %s is %s with %d held and %d sold units of slot %s, shard %s, and its events moved %d held and %d sold",
				h.ID, h.Status, want[at].Held, want[at].Confirmed, at.slot, at.shard, got[at].Held, got[at].Confirmed))
		}
	}
	return out
}

// moved is what the events moved into and out of a hold. One that was born in place of another
// took its units over in one movement: they leave the old one, and are sold by the new one.
func (t *teller) moved(id ledger.HoldID) map[stockItem]ledger.Counters {
	got := make(map[stockItem]ledger.Counters)
	for _, e := range t.records.Events {
		if e.Hold == nil {
			continue
		}
		for _, m := range e.Movements {
			at := stockItem{m.Slot, m.Shard}
			takenOver := e.Type == ledger.EventHoldReacquired && m.From == ledger.BucketHeld
			switch {
			case takenOver && e.Hold.Reacquires == id:
				got[at] = got[at].Plus(ledger.Counters{Held: -m.Quantity})
			case takenOver && e.Hold.ID == id:
				got[at] = got[at].Plus(ledger.Counters{Confirmed: m.Quantity})
			case e.Hold.ID == id:
				got[at] = got[at].Plus(m.Delta())
			}
		}
	}
	return got
}

func returnedTo(line ledger.Line, shard ledger.Shard) ledger.Units {
	var units ledger.Units
	for _, back := range line.Returned {
		if back.Shard == shard {
			units += back.Quantity
		}
	}
	return units
}

// reservationDifferences compares a reservation with how its last event left it, and with what
// was sold to it.
func (t *teller) reservationDifferences(r ledger.Reservation) []string {
	var out []string
	told, there := t.money[r.ID]
	if there && moneyOf(told) != moneyOf(r) {
		out = append(out, fmt.Sprintf("the payments of reservation %s add up to %s, and it is stored with %s", r.ID, moneyOf(told), moneyOf(r)))
	}
	if there && told.Status != r.Status {
		out = append(out, fmt.Sprintf("reservation %s is %s, and its last event left it %s", r.ID, r.Status, told.Status))
	}
	sold, found := t.records.hold(r.SoldHold)
	if r.Status == ledger.ReservationCompleted && found {
		var worth int64
		for _, line := range sold.Lines {
			if sold.Status == ledger.StatusConfirmed {
				worth += line.UnitPrice.Times(line.Quantity - line.ReturnedQuantity()).AmountMinor
			}
		}
		if kept := moneyOf(r).Kept; kept != worth {
			out = append(out, fmt.Sprintf("reservation %s keeps %s, and what is still sold to it is worth %s", r.ID, amount(kept, r.Amount.Currency), amount(worth, r.Amount.Currency)))
		}
	}
	return append(out, t.grantDifferences(r)...)
}

// grantDifferences compares the grants of a reservation with what its events moved. What was
// taken back may have come from any of the slot's stock items, so it is compared for the slot.
func (t *teller) grantDifferences(r ledger.Reservation) []string {
	left := make(map[ledger.SlotID]ledger.Units)
	for _, g := range r.Grants {
		left[g.Slot] += g.Quantity
	}
	for _, e := range t.records.Events {
		if e.Reservation == nil || e.Reservation.ID != r.ID {
			continue
		}
		for _, m := range e.Movements {
			left[m.Slot] -= m.Delta().Capacity
		}
	}
	var out []string
	for _, slot := range slices.Sorted(maps.Keys(left)) {
		if left[slot] != 0 {
			out = append(out, fmt.Sprintf("the grants of reservation %s to slot %s, and what its events moved there, differ by %d", r.ID, slot, left[slot]))
		}
	}
	return out
}

// verdict says in a sentence whether everything adds up.
func verdict(s Story, r Records) string {
	compared := "the hold as it is stored"
	switch {
	case r.Slot != "":
		compared = "the stock as it is stored"
	case s.Money != nil:
		compared = "the holds and the reservation as they are stored"
	}
	if s.Matches {
		return fmt.Sprintf("The sums of these %d events match %s.", len(s.Steps), compared)
	}
	text := fmt.Sprintf("The sums of these %d events do not match %s: %s.", len(s.Steps), compared, strings.Join(s.Differences, "; "))
	if r.Moved {
		text += " The stock changed while it was read, so this may be of two moments: run it again."
	}
	return text
}

func (c Counters) String() string {
	return fmt.Sprintf("%d available, %d held, %d confirmed, capacity %d", c.Available, c.Held, c.Confirmed, c.Capacity)
}

func (m MoneySum) String() string {
	return fmt.Sprintf("%d captured, %d refunded, %d owed, %d kept, in minor units of %s", m.Captured, m.Refunded, m.Owed, m.Kept, m.Currency)
}
