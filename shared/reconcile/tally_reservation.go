package reconcile

import (
	"time"

	"holdfast/shared/ledger"
)

// How long a reservation may be on its way before somebody should know. The saga looks again
// after seconds or minutes, and an outage of the provider lasts longer: these are longer than
// the longest that a policy lets a payment be unknown, and than a worker needs after its end.
const (
	AuthorizedFor   = 30 * time.Minute
	CaptureFor      = 30 * time.Minute
	DeliveryFor     = time.Hour
	CompensationFor = time.Hour
)

// attemptRow is what is kept of a payment attempt.
type attemptRow struct {
	Number   ledger.AttemptNumber `json:"number"`
	State    ledger.AttemptState  `json:"state"`
	Payment  ledger.PaymentID     `json:"payment,omitempty"`
	Captured int64                `json:"captured,omitempty"`
	OpenedAt time.Time            `json:"opened_at"`
}

// reservationRow is what is kept of a reservation.
type reservationRow struct {
	ID            ledger.ReservationID     `json:"id"`
	Version       ledger.Version           `json:"version"`
	Status        ledger.ReservationStatus `json:"status"`
	Hold          ledger.HoldID            `json:"hold"`
	SoldHold      ledger.HoldID            `json:"sold_hold,omitempty"`
	HoldsArchived int                      `json:"holds_archived,omitempty"`
	Archived      bool                     `json:"archived,omitempty"`
	Currency      ledger.Currency          `json:"currency,omitempty"`
	Attempts      []attemptRow             `json:"attempts,omitempty"`
	// Grants is what it says that it granted of each slot, and Granted what its events moved.
	Grants  map[ledger.SlotID]ledger.Units `json:"grants,omitempty"`
	Granted []share                        `json:"granted,omitempty"`
	Told    bool                           `json:"told,omitempty"`
	Flaws   []flaw                         `json:"flaws,omitempty"`
}

func (r *reservationRow) attempt(n ledger.AttemptNumber) *attemptRow {
	if n < 1 || int(n) > len(r.Attempts) {
		return nil
	}
	return &r.Attempts[n-1]
}

// holds are the holds that the reservation is of.
func (r *reservationRow) holds() []ledger.HoldID {
	if r.SoldHold == "" || r.SoldHold == r.Hold {
		return []ledger.HoldID{r.Hold}
	}
	return []ledger.HoldID{r.Hold, r.SoldHold}
}

// addReservation takes a reservation into the tally.
func (t *Tally) addReservation(stored ledger.StoredReservation) {
	r := stored.Reservation
	row := &reservationRow{
		ID: r.ID, Version: r.Version, Status: r.Status, Hold: r.Hold, SoldHold: r.SoldHold, HoldsArchived: r.HoldsArchived,
		Archived: r.ArchivedIn != "", Currency: r.Amount.Currency,
	}
	for _, a := range r.Attempts {
		row.Attempts = append(row.Attempts, attemptRow{a.Number, a.State, a.Payment, a.CapturedMinor, a.OpenedAt})
	}
	for _, g := range r.Grants {
		if row.Grants == nil {
			row.Grants = map[ledger.SlotID]ledger.Units{}
		}
		row.Grants[g.Slot] += g.Quantity
	}
	if row.Archived {
		t.rows.Counts.Archived++
		row.Flaws = archivedReservationFlaws(stored)
		delete(t.rows.Histories, ledger.Event{Reservation: &r}.Subject())
	} else {
		t.rows.Counts.Reservations++
		row.Flaws = append(listFlaws(stored, row), t.lateFlaws(r)...)
		row.Flaws = append(row.Flaws, moneyFlaws(r)...)
		t.rows.Counts.Money[r.Amount.Currency] = t.rows.Counts.Money[r.Amount.Currency].plus(moneyOf(r))
	}
	t.rows.Reservations[r.ID] = row
}

// settleReservation compares a reservation with its events.
func (t *Tally) settleReservation(row *reservationRow, told *history) bool {
	if row.Archived {
		return true // what its events moved is in the archived counters
	}
	if !told.whole(row.Version) {
		return false
	}
	t.rows.Counts.Events += len(told.Versions)
	row.Told, row.Granted = true, told.Moved
	// What is taken back may come from another stock item of the slot than it was put into, so
	// slots are compared.
	more := map[ledger.SlotID]ledger.Units{}
	for slot, units := range row.Grants {
		more[slot] -= units
	}
	for _, s := range told.Moved {
		more[s.Slot] += s.Available
	}
	for slot, units := range more {
		if units != 0 {
			row.Flaws = append(row.Flaws, mismatched("P3", "its events granted %d more units to slot %s than it says", units, slot))
		}
	}
	return true
}

// archivedReservationFlaws require of a reservation in the archive that nothing was left to be
// done: no record goes while money may be on it.
func archivedReservationFlaws(stored ledger.StoredReservation) []flaw {
	var flaws []flaw
	r := stored.Reservation
	if !atRest(r) {
		flaws = append(flaws, flawed(FindingArchiveMismatch, "P8", "the archive took what was not at rest", "it is %s with something left to do, and archived", r.Status))
	}
	if stored.Due || stored.Archivable {
		flaws = append(flaws, flawed(FindingArchiveMismatch, "P9", "its mark has left the keys of the index", "it is archived, and in the due index"))
	}
	return flaws
}

// listFlaws require that a reservation is in the lists where it belongs.
func listFlaws(stored ledger.StoredReservation, row *reservationRow) []flaw {
	const cause = "the keys of the index were lost or written wrong, or a step forgot that something is left to do"
	r := stored.Reservation
	var flaws []flaw
	working := r.Status == ledger.ReservationCompensating
	for _, refund := range r.Refunds {
		working = working || refund.State == ledger.RefundOwed
	}
	listed := !r.LookAt.IsZero()
	archivable := atRest(r) && r.HoldsArchived >= len(row.holds())
	switch {
	case working && !stored.Due && !listed:
		flaws = append(flaws, flawed(FindingDueIndexHole, "P8", cause, "it is %s and has money to give back, and nobody works on it", r.Status))
	case listed != stored.Due, !ended(r.Status) && !stored.Due:
		flaws = append(flaws, flawed(FindingDueIndexHole, "P9", cause, "it is %s, it is to be looked at: %t, and it is in the due index: %t", r.Status, listed, stored.Due))
	case archivable != stored.Archivable:
		flaws = append(flaws, flawed(FindingDueIndexHole, "P9", cause, "it is to be archived: %t, and in the archive's list: %t", archivable, stored.Archivable))
	}
	return flaws
}

// lateFlaws tell of what a reservation has waited for too long.
func (t *Tally) lateFlaws(r ledger.Reservation) []flaw {
	since := r.StatusSince.Format(time.RFC3339)
	switch {
	case r.Status == ledger.ReservationAuthorized && t.overdue(r.StatusSince, AuthorizedFor):
		return []flaw{flawed(FindingAuthorizedTooLong, "P8", "the saga does not come to sell the hold", "it is AUTHORIZED since %s", since)}
	case r.Status == ledger.ReservationConfirmed && t.overdue(r.StatusSince, CaptureFor):
		return []flaw{flawed(FindingCaptureMissing, "P8", "the saga does not come to take the money", "it is CONFIRMED since %s, and nothing was captured", since)}
	case r.Status == ledger.ReservationCaptured && t.overdue(r.StatusSince, DeliveryFor):
		return []flaw{flawed(FindingDeliveryMissing, "P8", "nobody has delivered, or said so", "it is CAPTURED since %s, and nothing was delivered", since)}
	case r.Status == ledger.ReservationCompensating && t.overdue(r.StatusSince, CompensationFor):
		return []flaw{flawed(FindingCompensationOwed, "P8", "the provider does not answer, or the saga does not ask", "it is COMPENSATING since %s", since)}
	}
	for _, refund := range r.Refunds {
		if refund.State == ledger.RefundOwed && t.overdue(refund.OwedAt, CompensationFor) {
			return []flaw{flawed(FindingCompensationOwed, "P8", "the provider does not answer, or the saga does not ask",
				"refund %d of %d is owed since %s", refund.Number, refund.AmountMinor, refund.OwedAt.Format(time.RFC3339))}
		}
	}
	return nil
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
