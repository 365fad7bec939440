package ledgertest

import "holdfast/shared/ledger"

// auditReservation adds up one reservation, which may not exist, and its events.
func auditReservation(t TB, store ledger.Store, id ledger.ReservationID, fromEvents, archived map[item]counted) {
	t.Helper()
	events, err := store.ReservationEvents(t.Context(), id)
	if err != nil {
		t.Fatalf("books: events of reservation %s: %v", id, err)
	}
	reservation, err := store.Reservation(t.Context(), id)
	if ledger.CodeOf(err) == ledger.CodeReservationNotFound {
		if len(events) > 0 {
			t.Errorf("books: reservation %s does not exist but has %d events", id, len(events))
		}
		return
	}
	if err != nil {
		t.Fatalf("books: reservation %s: %v", id, err)
	}
	auditVersions(t, "reservation "+string(id), events, reservation.Version)
	if last := len(events) - 1; last >= 0 && !sameStep(events[last].Reservation, reservation) {
		t.Errorf("books: the last event of reservation %s tells\n%s\nbut it is\n%s", id, text(events[last].Reservation), text(reservation))
	}
	auditGrants(t, reservation, events)
	for _, event := range events {
		addMovements(fromEvents, event)
		if reservation.ArchivedIn != "" {
			addMovements(archived, event)
		}
	}
	auditSale(t, store, reservation)
}

// sameStep reports whether the event tells the reservation as it is. When it is looked at
// again, and what of it is archived, is kept beside the steps, and may have moved since.
func sameStep(told *ledger.Reservation, is ledger.Reservation) bool {
	if told == nil {
		return false
	}
	step := *told
	step.LookAt, step.Tries = is.LookAt, is.Tries
	step.HoldsArchived, step.ArchivedIn = is.HoldsArchived, is.ArchivedIn
	return same(step, is)
}

// auditGrants compares the grants that the reservation has with what its events moved: a
// grant makes units, and taking it back ends them, on whatever shard they are by then.
func auditGrants(t TB, r ledger.Reservation, events []ledger.Event) {
	t.Helper()
	left := make(map[ledger.SlotID]ledger.Units)
	for _, event := range events {
		for _, m := range event.Movements {
			switch {
			case m.From == ledger.BucketOutside && m.To == ledger.BucketAvailable:
				left[m.Slot] += m.Quantity
			case m.From == ledger.BucketAvailable && m.To == ledger.BucketOutside:
				left[m.Slot] -= m.Quantity
			default:
				t.Errorf("books: event %s of reservation %s moves units from %s to %s", event.Type, r.ID, m.From, m.To)
			}
		}
	}
	for _, g := range r.Grants {
		left[g.Slot] -= g.Quantity
	}
	for slot, units := range left {
		if units != 0 {
			t.Errorf("books: reservation %s granted %d more units to slot %s than it says", r.ID, units, slot)
		}
	}
}

// auditSale requires that a reservation whose money is kept has a hold that was sold.
func auditSale(t TB, store ledger.Store, r ledger.Reservation) {
	t.Helper()
	switch r.Status {
	case ledger.ReservationConfirmed, ledger.ReservationCaptured, ledger.ReservationCompleted:
	default:
		return
	}
	sold, exists := auditedHold(t, store, r.SoldHold)
	if !exists || sold.Reservation != r.ID || (sold.Status != ledger.StatusConfirmed && sold.Status != ledger.StatusReturned) {
		t.Errorf("books: P8: reservation %s is %s, and its sold hold %q is %q of reservation %q", r.ID, r.Status, r.SoldHold, sold.Status, sold.Reservation)
	}
}
