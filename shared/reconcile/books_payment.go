package reconcile

import "holdfast/shared/ledger"

// grant notes that an event of the reservation added units to a stock item.
func (b *books) grant(id ledger.ReservationID, key item, units ledger.Units) {
	if b.granted[id] == nil {
		b.granted[id] = map[item]ledger.Units{}
	}
	b.granted[id][key] += units
}

// closePayment looks at a hold from the side of its payment: whoever waits for money must
// be there, and a hold that took another one's place must be the only one of the two.
func (b *books) closePayment(h ledger.Hold) {
	who := "hold " + string(h.ID)
	paying, found := b.reservations[h.Reservation]
	if h.Reservation != "" && (!found || paying.Reservation.ArchivedIn != "") {
		b.violated("P5", who, "its reservation %s does not exist, or is archived before it", h.Reservation)
	}
	if h.AttemptOpen != 0 {
		attempt := paying.Reservation.Attempt(h.AttemptOpen)
		if attempt == nil || attempt.State == ledger.AttemptVoided || h.Status != ledger.StatusHeld {
			b.violated("P9", who, "it is %s and waits for attempt %d of reservation %q, which can't succeed", h.Status, h.AttemptOpen, h.Reservation)
		}
	}
	if h.Reacquires == "" {
		return
	}
	before, left := b.holds[h.Reacquires]
	if purged := !left && paying.Reservation.HoldsArchived > 0; purged {
		return // that it is archived is noted, and compared in closeHolds
	}
	if status := before.Hold.Status; status != ledger.StatusExpired && status != ledger.StatusCanceled {
		b.violated("P3", who, "it has taken the place of hold %s, which is %q", h.Reacquires, status)
	}
}

func (b *books) closeReservation(stored ledger.StoredReservation) {
	r := stored.Reservation
	who := "reservation " + string(r.ID)
	b.wantEvents(who, r.Version)
	b.closeHolds(r)
	if archivable := b.archivable(r); archivable != stored.Archivable {
		b.violated("P9", who, "it is to be archived: %t, and in the archive's list: %t", archivable, stored.Archivable)
	}
	if listed := !r.LookAt.IsZero(); listed != stored.Due {
		b.violated("P9", who, "it is to be looked at: %t, and in the due index: %t", listed, stored.Due)
	}
	if !ended(r.Status) && !stored.Due {
		b.violated("P9", who, "it is %s, and nobody looks at it again", r.Status)
	}
	b.closeSale(r)
	b.closeGrants(r)
	b.closeMoney(stored)
}

// ended reports whether a reservation of this status is at rest: all is done, or a person
// must decide. It is written out here so that a mistake in the ledger can't hide itself.
func ended(s ledger.ReservationStatus) bool {
	switch s {
	case ledger.ReservationCompleted, ledger.ReservationCanceled, ledger.ReservationRefunded, ledger.ReservationReview:
		return true
	case ledger.ReservationPaymentPending, ledger.ReservationAuthorized, ledger.ReservationConfirmed,
		ledger.ReservationCaptured, ledger.ReservationCompensating, ledger.ReservationRefundRequired:
		return false
	}
	return false
}

// closeSale requires that a reservation which keeps its money has a hold that was sold.
func (b *books) closeSale(r ledger.Reservation) {
	switch r.Status {
	case ledger.ReservationConfirmed, ledger.ReservationCaptured, ledger.ReservationCompleted:
	default:
		return
	}
	stored, left := b.holds[r.SoldHold]
	if purged := !left && r.HoldsArchived > 0; purged {
		return // that it is archived is noted, and compared in closeHolds
	}
	sold := stored.Hold
	if status := sold.Status; sold.Reservation != r.ID || (status != ledger.StatusConfirmed && status != ledger.StatusReturned) {
		b.violated("P8", "reservation "+string(r.ID), "it is %s, and its sold hold %q is %q", r.Status, r.SoldHold, status)
	}
}

// closeGrants compares the grants that the reservation says it made with what its events
// moved. What is taken back may come from another stock item of the slot than it was put
// into, so slots are compared.
func (b *books) closeGrants(r ledger.Reservation) {
	more := map[ledger.SlotID]ledger.Units{}
	for _, g := range r.Grants {
		more[g.Slot] -= g.Quantity
	}
	for key, units := range b.granted[r.ID] {
		more[key.slot] += units
	}
	for slot, units := range more {
		if units != 0 {
			b.violated("P3", "reservation "+string(r.ID), "its events granted %d more units to slot %s than it says", units, slot)
		}
	}
}

// closeMoney adds up the reservation's money, and requires that what was taken is what
// was asked for, or is on its way back, and that someone is at work on it.
func (b *books) closeMoney(stored ledger.StoredReservation) {
	r := stored.Reservation
	who := "reservation " + string(r.ID)
	var sum Money
	var kept int64 // of attempts whose money is wanted
	wanted := 0
	working := false // a refund is owed
	for _, refund := range r.Refunds {
		switch refund.State {
		case ledger.RefundDone:
			sum.Refunded += refund.AmountMinor
		case ledger.RefundOwed:
			working = true
			sum.Owed += refund.AmountMinor
		case ledger.RefundFailed:
			sum.Owed += refund.AmountMinor
		}
	}
	for _, a := range r.Attempts {
		sum.Captured += a.CapturedMinor
		back := refundsOf(r, a.Number)
		if back > a.CapturedMinor {
			b.violated("P8", who, "attempt %d took %d and has refunds of %d", a.Number, a.CapturedMinor, back)
		}
		if a.State == ledger.AttemptCaptured && !a.Unwanted {
			wanted++
			kept = a.CapturedMinor
		} else if ended(r.Status) && r.Status != ledger.ReservationReview && back != a.CapturedMinor {
			b.violated("P8", who, "it is %s, and attempt %d took %d that is not wanted, with refunds of %d", r.Status, a.Number, a.CapturedMinor, back)
		}
	}
	if (working || r.Status == ledger.ReservationCompensating) && !stored.Due {
		b.violated("P8", who, "it is %s and has money to give back, and nobody works on it", r.Status)
	}
	switch r.Status {
	case ledger.ReservationCaptured, ledger.ReservationCompleted:
		if r.Amount.AmountMinor > 0 && (wanted != 1 || kept != r.Amount.AmountMinor) {
			b.violated("P8", who, "it is %s, and %d captures took %d where %d was quoted", r.Status, wanted, kept, r.Amount.AmountMinor)
		}
	case ledger.ReservationCanceled, ledger.ReservationRefunded:
		if sum.Captured != sum.Refunded {
			b.violated("P8", who, "it is %s, and %d was taken and %d given back", r.Status, sum.Captured, sum.Refunded)
		}
	case ledger.ReservationPaymentPending, ledger.ReservationAuthorized, ledger.ReservationConfirmed,
		ledger.ReservationCompensating, ledger.ReservationRefundRequired, ledger.ReservationReview:
	}
	total := b.money[r.Amount.Currency]
	b.money[r.Amount.Currency] = Money{total.Captured + sum.Captured, total.Refunded + sum.Refunded, total.Owed + sum.Owed}
}

// refundsOf adds up the refunds of one attempt, whatever became of them.
func refundsOf(r ledger.Reservation, n ledger.AttemptNumber) int64 {
	var total int64
	for _, refund := range r.Refunds {
		if refund.Attempt == n {
			total += refund.AmountMinor
		}
	}
	return total
}
