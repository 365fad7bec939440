package sim

import (
	"reflect"
	"slices"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
)

// reservationBook is one reservation through time.
type reservationBook struct {
	now     ledger.Reservation
	history []reservationMoment
	// granted is what its deliveries put into other slots, less what was taken back.
	granted map[stockKey]ledger.Units
	// delivered says that a delivery was reported.
	delivered bool
}

// reservationMoment is a reservation from a time on, until the next moment, and who has
// made it so.
type reservationMoment struct {
	at  time.Time
	by  *request
	was ledger.Reservation
}

// ever reports whether the reservation was so at any moment between two times.
func (r *reservationBook) ever(from, to time.Time, so func(ledger.Reservation) bool) bool {
	for i, m := range r.history {
		lastsUntil := to
		if i+1 < len(r.history) {
			lastsUntil = r.history[i+1].at
		}
		if !m.at.After(to) && !lastsUntil.Before(from) && so(m.was) {
			return true
		}
	}
	return false
}

// moves are the ways of a reservation, as the design tells them; beside them it may stay
// where it is. They are written out here so that a mistake in the ledger can't hide itself.
var moves = map[ledger.ReservationStatus][]ledger.ReservationStatus{
	"":                               {ledger.ReservationPaymentPending, ledger.ReservationAuthorized},
	ledger.ReservationPaymentPending: {ledger.ReservationAuthorized, ledger.ReservationCompensating, ledger.ReservationCanceled, ledger.ReservationReview},
	ledger.ReservationAuthorized:     {ledger.ReservationConfirmed, ledger.ReservationCompensating, ledger.ReservationReview},
	ledger.ReservationConfirmed:      {ledger.ReservationCaptured, ledger.ReservationCompensating, ledger.ReservationReview},
	ledger.ReservationCaptured:       {ledger.ReservationCompleted, ledger.ReservationCompensating, ledger.ReservationReview},
	ledger.ReservationCompleted:      {ledger.ReservationCompensating},
	// Money that comes late buys what it may still buy.
	ledger.ReservationCompensating: {ledger.ReservationCanceled, ledger.ReservationRefunded, ledger.ReservationRefundRequired, ledger.ReservationAuthorized},
	// The last one is of money that a closed attempt has taken, and that is not given back.
	ledger.ReservationCanceled:       {ledger.ReservationCompensating, ledger.ReservationAuthorized, ledger.ReservationRefundRequired},
	ledger.ReservationRefunded:       {ledger.ReservationCompensating, ledger.ReservationRefundRequired},
	ledger.ReservationRefundRequired: {ledger.ReservationRefunded, ledger.ReservationCanceled},
	ledger.ReservationReview:         {ledger.ReservationCompensating},
}

// reservation is the reservation as this commit has written it.
func (s *step) reservation(id ledger.ReservationID) (ledger.Reservation, bool) {
	for _, stored := range s.after.Reservations {
		if stored.Reservation.ID == id {
			return stored.Reservation, true
		}
	}
	return ledger.Reservation{}, false
}

func (s *step) writeReservations() {
	for _, stored := range s.after.Reservations {
		s.writeReservation(stored)
	}
}

// writeReservation checks a step of a reservation, or the note of when to look again.
func (s *step) writeReservation(stored ledger.StoredReservation) {
	after := stored.Reservation
	book := s.reservations[after.ID]
	if book == nil {
		book = &reservationBook{granted: map[stockKey]ledger.Units{}}
		s.reservations[after.ID] = book
		s.checkNewReservation(after)
	}
	before := book.now
	if stored.Due == after.LookAt.IsZero() {
		s.violated("P9", "left %s, to be looked at at %s, in the due index: %t", after.ID, after.LookAt, stored.Due)
	}
	if after.Version == before.Version {
		s.writeUnversionedReservation(book, stored)
		return
	}
	book.now = after
	book.history = append(book.history, reservationMoment{s.world.kernel.now, s.by, after})
	event, told := s.event("reservation/"+string(after.ID), after.Version)
	if !told || after.Version != before.Version+1 {
		s.violated("P5", "took %s from version %d to %d, with an event: %t", after.ID, before.Version, after.Version, told)
	}
	if before.Status != after.Status && !slices.Contains(moves[before.Status], after.Status) {
		s.violated("saga", "took %s from %q to %s", after.ID, before.Status, after.Status)
	}
	if before.Version > 0 {
		s.checkFixed(before, after)
	}
	book.delivered = book.delivered || event.Type == ledger.EventReservationDelivered
	s.checkAttempts(before, after)
	s.checkRefunds(before, after)
	s.checkStatus(book, before, after)
	s.checkGrants(book, event)
	s.checkMoney(after)
}

// checkNewReservation: it pays for a hold of its owner, what was quoted, because its owner
// wants to.
func (s *step) checkNewReservation(r ledger.Reservation) {
	hold := s.holds[r.Hold]
	if hold == nil || hold.now.Reservation != r.ID || hold.now.Owner != r.Owner || s.by == nil || s.by.kind != askPay || s.by.subject != string(r.Owner) {
		s.violated("P5", "began %s of %s for %s, which nobody asked for", r.ID, r.Owner, r.Hold)
		return
	}
	var quoted int64
	for _, line := range hold.now.Lines {
		quoted += int64(line.Quantity) * line.UnitPrice.AmountMinor
	}
	if r.Amount.AmountMinor != quoted || r.Amount.Currency != "USD" {
		s.violated("P8", "began %s over %v, and %d was quoted", r.ID, r.Amount, quoted)
	}
	if quoted == 0 {
		s.begin(r.ID, 0)
	}
	if (quoted == 0) != (r.Status == ledger.ReservationAuthorized) {
		s.violated("P8", "began %s over %d as %s", r.ID, quoted, r.Status)
	}
}

func (s *step) checkFixed(before, after ledger.Reservation) {
	same := before
	same.Status, same.Reason, same.Version, same.UpdatedAt = after.Status, after.Reason, after.Version, after.UpdatedAt
	same.Attempts, same.Refunds, same.Grants, same.DeliveredAt = after.Attempts, after.Refunds, after.Grants, after.DeliveredAt
	same.LookAt, same.Tries = after.LookAt, after.Tries
	if before.Status != after.Status {
		same.StatusSince = after.UpdatedAt
	}
	if before.Status == ledger.ReservationAuthorized && after.Status == ledger.ReservationConfirmed {
		same.SoldHold = after.SoldHold
	}
	if !reflect.DeepEqual(same, after) {
		s.violated("P5", "changed of %s what is fixed: %v to %v", after.ID, before, after)
	}
}

// checkAttempts: what is written of an attempt is what the bank has said, and another one
// begins only after the provider has closed the one before.
func (s *step) checkAttempts(before, after ledger.Reservation) {
	bank := s.world.bank
	for i, a := range after.Attempts {
		was := ledger.Attempt{Number: ledger.AttemptNumber(i + 1), OpenedAt: a.OpenedAt, State: ledger.AttemptOpen}
		if i < len(before.Attempts) {
			was = before.Attempts[i]
		} else {
			s.checkNewAttempt(after, a)
		}
		p, there := attemptPayment(bank.paymentsOf(after.ID), a.Number)
		if a.Number != was.Number || was.Payment != "" && a.Payment != was.Payment || a.Payment != "" && (!there || a.Payment != p.ID) || was.Unwanted && !a.Unwanted {
			s.violated("P8", "took attempt %+v of %s for %+v", was, after.ID, a)
		}
		if a.State == was.State {
			continue
		}
		truly := false
		switch a.State {
		case ledger.AttemptVoided:
			truly = bank.closed(after.ID, a.Number)
		case ledger.AttemptAuthorized:
			truly = there && !p.AuthorizedAt.IsZero() && (was.State == ledger.AttemptOpen || bank.late[p.ID])
		case ledger.AttemptCaptured:
			truly = there && p.CapturedMinor > 0 && p.CapturedMinor == a.CapturedMinor && (was.State != ledger.AttemptVoided || bank.late[p.ID])
		case ledger.AttemptOpen:
		}
		if !truly {
			s.violated("saga", "wrote that attempt %d of %s is %s, and the bank has never said so: %+v", a.Number, after.ID, a.State, p)
		}
	}
}

func (s *step) checkNewAttempt(r ledger.Reservation, a ledger.Attempt) {
	if s.by == nil || s.by.kind != askPay || s.by.subject != string(r.Owner) {
		s.violated("P5", "began attempt %d of %s, which nobody asked for", a.Number, r.ID)
		return
	}
	s.begin(r.ID, a.Number)
	for _, earlier := range r.Attempts[:a.Number-1] {
		if !s.world.bank.closed(r.ID, earlier.Number) {
			s.violated("void before release", "began attempt %d of %s, and attempt %d can still succeed", a.Number, r.ID, earlier.Number)
		}
	}
}

// begin notes what the request has begun: one thing under one key.
func (s *step) begin(id ledger.ReservationID, n ledger.AttemptNumber) {
	if other, twice := s.begun[s.by.idempotency()]; twice {
		s.violated("P6", "began attempt %d of %s under a key that had begun %d of %s", n, id, other.attempt, other.reservation)
	}
	s.begun[s.by.idempotency()] = begun{id, n, s.by, s.world.kernel.now}
}

// begun is an attempt that a request has begun.
type begun struct {
	reservation ledger.ReservationID
	attempt     ledger.AttemptNumber
	by          *request
	at          time.Time
}

func attemptPayment(payments []paymenttest.Payment, n ledger.AttemptNumber) (paymenttest.Payment, bool) {
	for _, p := range payments {
		if p.Attempt == n {
			return p, true
		}
	}
	return paymenttest.Payment{}, false
}

// checkStatus checks what the new status says.
func (s *step) checkStatus(book *reservationBook, before, after ledger.Reservation) {
	if before.Status == after.Status {
		return
	}
	current, paid := after.Current()
	p, there := attemptPayment(s.world.bank.paymentsOf(after.ID), current.Number)
	free := after.Amount.AmountMinor == 0
	asked := there && p.Amount == after.Amount && !current.Unwanted
	switch after.Status {
	case ledger.ReservationAuthorized:
		if !free && (!paid || !asked || p.AuthorizedAt.IsZero()) {
			s.violated("P8", "took %s for authorized, and the bank has %+v", after.ID, p)
		}
	case ledger.ReservationConfirmed:
		sold := s.holds[after.SoldHold]
		if sold == nil || sold.now.Status != ledger.StatusConfirmed || sold.now.Reservation != after.ID {
			s.violated("P5", "took %s for sold without its hold %q", after.ID, after.SoldHold)
		}
		if !free && (!asked || p.AuthorizedAt.IsZero()) {
			s.violated("P8", "sold %s without money: the bank has %+v", after.ID, p)
		}
	case ledger.ReservationCaptured:
		if !free && (!asked || p.CapturedMinor != after.Amount.AmountMinor) {
			s.violated("P8", "took %s for captured, and the bank has %+v", after.ID, p)
		}
	case ledger.ReservationCompleted:
		if sold := s.holds[after.SoldHold]; sold != nil && sold.now.Terms.Delivery == ledger.DeliveryEvent && !book.delivered {
			s.violated("saga", "completed %s, which nobody has delivered", after.ID)
		}
	case ledger.ReservationCompensating:
		if after.Reason == ledger.ReasonSoldOut && before.Status == ledger.ReservationAuthorized {
			s.checkSoldOut(after)
		}
	case ledger.ReservationCanceled, ledger.ReservationRefunded:
		s.checkNoMoney(after)
	case ledger.ReservationPaymentPending, ledger.ReservationRefundRequired, ledger.ReservationReview:
	}
}

// soldOutWithin is how old the reading may be that "sold out" rests on: it was made in the
// same call of the function.
const soldOutWithin = time.Minute

// checkSoldOut: P10 holds for the saga as well.
func (s *step) checkSoldOut(r ledger.Reservation) {
	hold, now := s.holds[r.Hold], s.world.kernel.now
	for _, line := range hold.now.Lines {
		if s.ever(line.Slot, now.Add(-soldOutWithin), now, func(m moment) bool { return !m.terms.Open || m.available < line.Quantity }) {
			return
		}
	}
	s.violated("P10", "gave the money of %s back as sold out, and it never was", r.ID)
}

// checkGrants: a delivery puts into another slot what was sold and not given back, once,
// and a cancellation takes it back.
func (s *step) checkGrants(book *reservationBook, e ledger.Event) {
	r := book.now
	for _, m := range e.Movements {
		units := m.Quantity
		switch {
		case m.From == ledger.BucketOutside && m.To == ledger.BucketAvailable:
		case m.From == ledger.BucketAvailable && m.To == ledger.BucketOutside:
			units = -units
		default:
			s.violated("P3", "moved stock for %s from %s to %s", r.ID, m.From, m.To)
		}
		book.granted[stockKey{m.Slot, m.Shard}] += units
		if slot := s.slots[m.Slot]; slot != nil {
			slot.granted += max(0, units)
		}
		s.slotStep(m.Slot, slotStep{kind: stepCapacity, quantity: units})
	}
	want := map[ledger.SlotID]ledger.Units{}
	if sold := s.holds[r.SoldHold]; sold != nil && r.Status == ledger.ReservationCompleted {
		for _, line := range sold.now.Lines {
			if line.GrantTo != "" {
				want[line.GrantTo] += line.Quantity - quantityOf(line.Returned)
			}
		}
	}
	for key, units := range book.granted {
		want[key.slot] -= units
	}
	for slot, units := range want {
		if units != 0 {
			s.violated("P3", "left %s, which is %s, with %d units too few in %s", r.ID, r.Status, units, slot)
		}
	}
}

// keepsMoney reports whether a reservation of this status is a sale.
func keepsMoney(r ledger.Reservation) bool {
	switch r.Status {
	case ledger.ReservationConfirmed, ledger.ReservationCaptured, ledger.ReservationCompleted:
		return true
	default:
		return false
	}
}
