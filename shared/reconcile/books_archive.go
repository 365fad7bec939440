package reconcile

import "holdfast/shared/ledger"

// liveEvents counts the events of what does not lie in the archive.
func (b *books) liveEvents() int {
	total := 0
	for v, n := range b.events {
		if !b.archived[v.subject] {
			total += n
		}
	}
	return total
}

// toldByLive adds up what the events tell of each stock item. Those of a subject that lies
// in the archive do not count, be they marked yet or not: they are in the stock's archived
// counters.
func (b *books) toldByLive() map[item]ledger.Counters {
	sum := make(map[item]ledger.Counters)
	for who, told := range b.told {
		if b.archived[who] {
			continue
		}
		for key, c := range told {
			total := sum[key]
			total.Available += c.Available
			total.Held += c.Held
			total.Confirmed += c.Confirmed
			sum[key] = total
		}
	}
	return sum
}

// closeArchivedHold requires of a hold in the archive that it had ended, and that no list
// leads anybody to it.
func (b *books) closeArchivedHold(stored ledger.StoredHold) {
	who := "hold " + string(stored.Hold.ID)
	if stored.Hold.Status == ledger.StatusHeld {
		b.violated("P9", who, "it is HELD, and archived")
	}
	if stored.Due || stored.Archivable {
		b.violated("P9", who, "it is archived, and in the due index")
	}
}

// closeArchivedReservation requires of a reservation in the archive that nothing was left
// to be done: no record goes while money may be on it.
func (b *books) closeArchivedReservation(stored ledger.StoredReservation) {
	r := stored.Reservation
	who := "reservation " + string(r.ID)
	if !atRest(r) {
		b.violated("P8", who, "it is %s with something left to do, and archived", r.Status)
	}
	if stored.Due || stored.Archivable {
		b.violated("P9", who, "it is archived, and in the due index")
	}
	b.closeHolds(r)
}

// closeHolds requires that each hold of the reservation is there and of it, or is noted as
// archived, and that no more are noted.
func (b *books) closeHolds(r ledger.Reservation) {
	who := "reservation " + string(r.ID)
	archived := 0
	for id := range holdsOf(r) {
		hold, left := b.holds[id]
		if left && hold.Hold.Reservation != r.ID {
			b.violated("P5", who, "its hold %s is of reservation %q", id, hold.Hold.Reservation)
		}
		if !left || hold.Hold.ArchivedIn != "" {
			archived++
		}
	}
	if archived != r.HoldsArchived {
		b.violated("P5", who, "%d of its holds are archived or not there, and %d are noted as archived", archived, r.HoldsArchived)
	}
}

// archivable reports whether the archive may take the reservation: it is at rest, and all
// of its holds lie there.
func (b *books) archivable(r ledger.Reservation) bool {
	return atRest(r) && r.HoldsArchived >= len(holdsOf(r))
}

func holdsOf(r ledger.Reservation) map[ledger.HoldID]bool {
	holds := map[ledger.HoldID]bool{r.Hold: true}
	if r.SoldHold != "" {
		holds[r.SoldHold] = true
	}
	return holds
}

// atRest reports whether nobody looks at the reservation again, no person must decide, and
// no money is owed. It is written out here so that a mistake in the ledger can't hide
// itself.
func atRest(r ledger.Reservation) bool {
	for _, refund := range r.Refunds {
		if refund.State != ledger.RefundDone {
			return false
		}
	}
	return ended(r.Status) && r.Status != ledger.ReservationReview && r.LookAt.IsZero()
}
