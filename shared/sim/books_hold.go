package sim

import (
	"reflect"
	"slices"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/skew"
)

// holdBook is one hold through time.
type holdBook struct {
	now       ledger.Hold
	createdAt time.Time // true time of the commit, not what a clock said
	endedAt   time.Time // when it left HELD
	by        *request  // the request that made it
	endedBy   *request
	versions  []time.Time   // when each version was made
	history   []ledger.Hold // what each version was
	makers    []*request    // who asked for each version; nil for nobody outside
	// parkedUntil is when the next try to end it is due, zero unless it is parked.
	parkedUntil time.Time
	// failures is how many were noted of it since its last version.
	failures int
	retaken  ledger.HoldID // the hold that a late payment made in its place
}

// ever reports whether the hold was so at any moment between two times.
func (h *holdBook) ever(from, to time.Time, so func(ledger.Hold) bool) bool {
	for i, version := range h.history {
		lastsUntil := to
		if i+1 < len(h.versions) {
			lastsUntil = h.versions[i+1]
		}
		if !h.versions[i].After(to) && !lastsUntil.Before(from) && so(version) {
			return true
		}
	}
	return false
}

// writeHolds checks the steps of holds: P3, P4 and P5. A hold that was made in the place
// of another comes after it.
func (s *step) writeHolds() {
	slices.SortStableFunc(s.after.Holds, func(x, y ledger.StoredHold) int { return len(x.Hold.Reacquires) - len(y.Hold.Reacquires) })
	for _, stored := range s.after.Holds {
		s.writeHold(stored)
	}
}

func (s *step) writeHold(stored ledger.StoredHold) {
	hold, w := stored.Hold, s.world
	book := s.holds[hold.ID]
	if book == nil {
		book = &holdBook{createdAt: w.kernel.now, by: s.by}
		s.holds[hold.ID] = book
	}
	if hold.Version == book.now.Version {
		s.writeUnversioned(book, stored)
		return
	}
	book.parkedUntil, book.failures = time.Time{}, 0
	if hold.Version != book.now.Version+1 {
		s.violated("P3", "took %s from version %d to %d", hold.ID, book.now.Version, hold.Version)
	}
	if stored.Due != (hold.Status == ledger.StatusHeld) {
		s.violated("P9", "left %s, which is %s, in the due index: %t", hold.ID, hold.Status, stored.Due)
	}
	event, told := s.event("hold/"+string(hold.ID), hold.Version)
	if told {
		s.checkHold(book, hold, event)
	} else {
		s.violated("P5", "changed %s without an event", hold.ID)
	}
	if hold.Status != ledger.StatusHeld && book.endedAt.IsZero() {
		book.endedAt, book.endedBy = w.kernel.now, s.by
	}
	s.checkPrompt(book, hold)
	s.holdSteps(book.now, hold, event)
	s.promise(book.now, -1)
	s.promise(hold, 1)
	book.now = hold
	book.versions, book.history = append(book.versions, w.kernel.now), append(book.history, hold)
	book.makers = append(book.makers, s.by)
}

// checkHold checks that the hold may go this way, and goes no further than this way.
func (s *step) checkHold(book *holdBook, after ledger.Hold, e ledger.Event) {
	before := book.now
	same := before
	same.Version = after.Version
	switch from, to := before.Status, after.Status; {
	case from == "" && to == ledger.StatusHeld:
		s.checkNewHold(s.commit, after, s.by)
		s.checkCounted(after, ledger.Hold{})
		s.checkLife(after)
		if !after.CreatedAt.Equal(e.OccurredAt) || !after.ExpiresAt.After(after.CreatedAt) || !after.ReleaseAt.Equal(after.ExpiresAt) {
			s.violated("P4", "made %s with times that do not fit: %v", after.ID, after)
		}
		return
	case from == "" && to == ledger.StatusConfirmed:
		s.checkReacquired(after, e)
		return
	case e.Type == ledger.EventHoldChanged:
		s.checkEdited(before, after, e)
		same.Lines, same.ExpiresAt, same.ReleaseAt, same.HoldFor, same.HoldForMax = after.Lines, after.ExpiresAt, after.ReleaseAt, after.HoldFor, after.HoldForMax
		same.GraceFor, same.Terms, same.CountsIn, same.CountsExpiry, same.Scarce = after.GraceFor, after.Terms, after.CountsIn, after.CountsExpiry, after.Scarce
	case from == ledger.StatusHeld && to == ledger.StatusHeld:
		s.checkAttempt(before, after, e)
		same.Reservation, same.AttemptOpen, same.ReleaseAt = after.Reservation, after.AttemptOpen, after.ReleaseAt
	case from == ledger.StatusHeld && to == ledger.StatusConfirmed:
		s.checkConfirmed(before, after, e)
		s.checkPart(before, after)
		same.Lines = after.Lines
		same.Status, same.EndedAt, same.PaymentReference, same.AttemptOpen = to, after.EndedAt, after.PaymentReference, 0
	case from == ledger.StatusHeld && (to == ledger.StatusCanceled || to == ledger.StatusExpired):
		s.checkReleased(before, after, e)
		same.Status, same.EndedAt, same.AttemptOpen = to, after.EndedAt, 0
	case from == ledger.StatusConfirmed && (to == ledger.StatusConfirmed || to == ledger.StatusReturned):
		s.checkReturned(before, after)
		s.checkRestocked(before, after, e)
		same.Status, same.Lines = to, after.Lines
	default:
		s.violated("P3", "took %s from %q to %s", after.ID, from, to)
		return
	}
	if !reflect.DeepEqual(same, after) {
		s.violated("P2", "changed %s beyond its step: %v to %v", after.ID, before, after)
	}
}

// checkConfirmed: P4, and one payment for one hold.
func (s *step) checkConfirmed(before, after ledger.Hold, e ledger.Event) {
	if !e.OccurredAt.Before(before.ReleaseAt) {
		s.violated("P4", "confirmed %s at %s, and it was over at %s", after.ID, e.OccurredAt, before.ReleaseAt)
	}
	if before.Reservation != "" {
		if r, written := s.reservation(before.Reservation); !written || r.Status != ledger.ReservationConfirmed || r.SoldHold != after.ID {
			s.violated("P5", "confirmed %s beside its reservation %s", after.ID, before.Reservation)
		}
		return
	}
	if other, twice := s.payments[after.PaymentReference]; twice {
		s.violated("payments", "confirmed %s by the payment that has confirmed %s", after.ID, other)
	}
	s.payments[after.PaymentReference] = after.ID
}

// checkReleased: not before its time, and not while money can still come for it.
func (s *step) checkReleased(before, after ledger.Hold, e ledger.Event) {
	if after.Status == ledger.StatusExpired && e.OccurredAt.Before(before.ReleaseAt) {
		s.violated("P4", "expired %s at %s, before it was over at %s", after.ID, e.OccurredAt, before.ReleaseAt)
	}
	if early := before.ReleaseAt.Sub(s.world.kernel.now); after.Status == ledger.StatusExpired && early > skew.UnreliableOver {
		s.violated("clock", "expired %s %s before its time, by a clock that must not be used", after.ID, early)
	}
	retaken := slices.ContainsFunc(s.after.Holds, func(h ledger.StoredHold) bool { return h.Hold.Reacquires == after.ID })
	if before.AttemptOpen == 0 || retaken || s.world.bank.closed(before.Reservation, before.AttemptOpen) {
		return
	}
	r, written := s.reservation(before.Reservation)
	owes := written && slices.Contains([]ledger.ReservationStatus{ledger.ReservationCompensating, ledger.ReservationRefundRequired, ledger.ReservationReview}, r.Status)
	if e.OccurredAt.Before(before.ReleaseAt.Add(before.Terms.UnknownFor)) || !owes {
		s.violated("void before release", "released %s at %s, and its attempt %d was not voided; it waits until %s, and the compensation is recorded: %t",
			after.ID, e.OccurredAt, before.AttemptOpen, before.ReleaseAt.Add(before.Terms.UnknownFor), owes)
	}
}

// checkAttempt: an attempt begins in the user's time and moves the release time once, or
// it ends, because it can't succeed any more.
func (s *step) checkAttempt(before, after ledger.Hold, e ledger.Event) {
	if before.AttemptOpen != 0 && !s.world.bank.closed(before.Reservation, before.AttemptOpen) {
		s.violated("void before release", "took attempt %d of %s for closed, and the provider has not said so", before.AttemptOpen, after.ID)
	}
	if before.Reservation != "" && before.Reservation != after.Reservation {
		s.violated("P8", "gave %s from %s to %s", after.ID, before.Reservation, after.Reservation)
	}
	if _, written := s.reservation(after.Reservation); !written {
		s.violated("P5", "changed the attempt of %s without its reservation", after.ID)
	}
	started := after.AttemptOpen != 0 || before.Reservation == ""
	switch {
	case started && (!e.OccurredAt.Before(before.ExpiresAt) || !after.ReleaseAt.Equal(before.ExpiresAt.Add(before.GraceFor))):
		s.violated("P4", "began to pay %s at %s, which expires at %s with a grace of %s, and is over at %s",
			after.ID, e.OccurredAt, before.ExpiresAt, before.GraceFor, after.ReleaseAt)
	case !started && !after.ReleaseAt.Equal(before.ReleaseAt):
		s.violated("P4", "moved the end of %s from %s to %s", after.ID, before.ReleaseAt, after.ReleaseAt)
	}
}

// checkReacquired: a hold in the place of another is of the same units at the same price,
// for the same reservation, once.
func (s *step) checkReacquired(born ledger.Hold, e ledger.Event) {
	old := s.holds[born.Reacquires]
	if old == nil || old.retaken != "" || (old.now.Status != ledger.StatusExpired && old.now.Status != ledger.StatusCanceled) {
		s.violated("P3", "made %s in the place of %q, which is not over, or has been sold", born.ID, born.Reacquires)
		return
	}
	old.retaken = born.ID
	// A hold that ended before was ended by a clock that may be ahead of this one.
	endedHere := old.now.Status == ledger.StatusExpired && old.now.EndedAt.Equal(e.OccurredAt)
	if endedHere && e.OccurredAt.Before(old.now.ReleaseAt) {
		s.violated("P4", "made %s at %s in the place of a hold that is over at %s", born.ID, e.OccurredAt, old.now.ReleaseAt)
	}
	if r, written := s.reservation(born.Reservation); !written || r.SoldHold != born.ID || old.now.Reservation != born.Reservation || born.Owner != old.now.Owner {
		s.violated("P5", "sold %s beside the reservation %q of %s", born.ID, born.Reservation, old.now.ID)
	}
	if !s.mayBuyLate(old.now) {
		s.violated("saga", "sold %s late, and its policy is %+v", born.ID, born.Terms)
	}
	same := len(born.Lines) == len(old.now.Lines)
	for i := range born.Lines {
		x, y := born.Lines[i], old.now.Lines[min(i, len(old.now.Lines)-1)]
		same = same && x.Slot == y.Slot && x.Quantity == y.Quantity && x.UnitPrice == y.UnitPrice && len(x.Returned) == 0
	}
	if !same {
		s.violated("P2", "made %s of %v in the place of %v", born.ID, born.Lines, old.now.Lines)
	}
}

// mayBuyLate reports whether the hold's policy lets a late payment buy. The provider's time
// may say that it was not late. What costs nothing is never late by the provider.
func (s *step) mayBuyLate(h ledger.Hold) bool {
	switch h.Terms.LatePayment {
	case ledger.LatePaymentReacquire:
		return true
	case ledger.LatePaymentRefund:
		r, _ := s.reservation(h.Reservation)
		current, _ := r.Current()
		p, there := attemptPayment(s.world.bank.paymentsOf(h.Reservation), current.Number)
		return h.Terms.LateByProvider && there && p.AuthorizedAt.Before(h.ReleaseAt)
	default:
		return false
	}
}

// checkReturned: what was given back grows, up to what was sold.
func (s *step) checkReturned(before, after ledger.Hold) {
	left, grew, same := ledger.Units(0), false, len(before.Lines) == len(after.Lines)
	for i, line := range after.Lines {
		was := before.Lines[min(i, len(before.Lines)-1)]
		back, backBefore := quantityOf(line.Returned), quantityOf(was.Returned)
		left += line.Quantity - back
		grew = grew || back > backBefore
		was.Returned = line.Returned
		same = same && back >= backBefore && back <= line.Quantity && reflect.DeepEqual(was, line)
		for _, a := range line.Returned {
			same = same && a.Quantity <= quantityIn(line.Shards, a.Shard)
		}
	}
	if !same || !grew || (left == 0) != (after.Status == ledger.StatusReturned) {
		s.violated("P3", "returned %s: %v to %v, %s", after.ID, before.Lines, after.Lines, after.Status)
	}
}

// checkRestocked: what is given back is sold again as the shop wished, or else as the
// policy said when the hold was made.
func (s *step) checkRestocked(before, after ledger.Hold, e ledger.Event) {
	for _, line := range after.Lines {
		back := quantityOf(line.Returned) - quantityOf(lineOf(before, line.Slot).Returned)
		again := !line.NoRestock
		if s.by != nil && s.by.kind == askReturn && s.by.restock != "" && len(s.by.lines) > 0 {
			again = s.by.restock == "true"
		}
		if !again {
			s.slots[line.Slot].gone += back
		}
		if want := restocked(e, line.Slot); again && want != back || !again && want != 0 {
			s.violated("P3", "gave back %d of %s, to be sold again: %t, and %d are", back, line.Slot, again, want)
		}
	}
}

func quantityOf(parts []ledger.Allocation) ledger.Units {
	var total ledger.Units
	for _, a := range parts {
		total += a.Quantity
	}
	return total
}

func quantityIn(parts []ledger.Allocation, shard ledger.Shard) ledger.Units {
	var total ledger.Units
	for _, a := range parts {
		if a.Shard == shard {
			total += a.Quantity
		}
	}
	return total
}

// holdSteps keeps what the hold's step did to each of its slots, for the model.
func (s *step) holdSteps(before, after ledger.Hold, e ledger.Event) {
	if before.Status == ledger.StatusHeld && (after.Status == ledger.StatusHeld || after.Status == ledger.StatusConfirmed) {
		s.editSteps(before, after)
		return
	}
	for _, line := range after.Lines {
		done := slotStep{quantity: line.Quantity, amount: line.UnitPrice.AmountMinor}
		switch {
		case before.Status == "" && after.Reacquires == "":
			done.kind = stepTake
		case before.Status == "":
			if slices.ContainsFunc(s.after.Holds, func(h ledger.StoredHold) bool { return h.Hold.ID == after.Reacquires }) {
				continue // the units were held for it; none came free in between
			}
			done.kind = stepRetake
		case before.Status == ledger.StatusHeld && (after.Status == ledger.StatusCanceled || after.Status == ledger.StatusExpired):
			if slices.ContainsFunc(s.after.Holds, func(h ledger.StoredHold) bool { return h.Hold.Reacquires == after.ID }) {
				continue
			}
			done.kind = stepGive
		case before.Status == ledger.StatusConfirmed:
			done.kind, done.quantity = stepGive, restocked(e, line.Slot)
		default:
			continue
		}
		if done.quantity > 0 {
			s.slotStep(line.Slot, done)
		}
	}
}

// restocked is what an event gave back to be sold again.
func restocked(e ledger.Event, id ledger.SlotID) ledger.Units {
	var units ledger.Units
	for _, m := range e.Movements {
		if m.Slot == id && m.From == ledger.BucketConfirmed && m.To == ledger.BucketAvailable {
			units += m.Quantity
		}
	}
	return units
}

func (s *step) slotStep(id ledger.SlotID, done slotStep) {
	if book := s.slots[id]; book != nil {
		book.steps = append(book.steps, stepMade{s.world.kernel.now, s.by, done})
	}
}

// checkNewHold checks what a new hold was sold at: it must be what the slot said at the
// moment of the commit.
func (b *books) checkNewHold(c commit, hold ledger.Hold, by *request) {
	w := b.world
	for _, line := range hold.Lines {
		slot := b.slots[line.Slot]
		if slot == nil || !slot.now.Terms.Open || slot.now.Terms.Price != line.UnitPrice {
			w.violated("price", "%s sold %s at %v, which is not its price now, or it is closed", c.by, line.Slot, line.UnitPrice)
		}
	}
	if by == nil {
		w.violated("P5", "%s made %s and nobody asked for it", c.by, hold.ID)
		return
	}
	if other, twice := b.effects[by.idempotency()]; twice && !b.forgotten(other) {
		w.violated("P6", "%s made %s under a key that had made %s", c.by, hold.ID, other)
	}
	b.effects[by.idempotency()] = hold.ID
	for _, line := range hold.Lines {
		if shown := by.quoted[line.Slot]; line.UnitPrice.AmountMinor != shown {
			w.violated("price", "%s sold %s at %v, and %s was shown %d", c.by, line.Slot, line.UnitPrice, by.name, shown)
		}
	}
	if string(hold.Owner) != by.subject || !sameLines(hold.Lines, by.lines) {
		w.violated("P6", "%s made %s of %s, which is not what %s asked for", c.by, hold.ID, hold.Owner, by.name)
	}
}

// forgotten reports whether the key of an earlier hold may be used again: by the clock
// of any instance.
func (b *books) forgotten(earlier ledger.HoldID) bool {
	age := b.world.kernel.now.Sub(b.holds[earlier].createdAt)
	return age >= ledger.IdempotencyRetainFor-2*clockJumpMax-time.Minute
}

func sameLines(lines []ledger.Line, wishes []wish) bool {
	total := map[ledger.SlotID]ledger.Units{}
	for _, l := range lines {
		total[l.Slot] += l.Quantity
	}
	for _, wanted := range wishes {
		total[wanted.slot] -= wanted.quantity
	}
	for _, left := range total {
		if left != 0 {
			return false
		}
	}
	return true
}

// promise adds what the hold promises to our own sums, or takes it off.
func (b *books) promise(h ledger.Hold, sign ledger.Units) {
	for _, line := range h.Lines {
		for _, a := range line.Shards {
			key := stockKey{line.Slot, a.Shard}
			sum := b.promised[key]
			switch h.Status {
			case ledger.StatusHeld:
				sum.Held += sign * a.Quantity
			case ledger.StatusConfirmed, ledger.StatusReturned:
				sum.Confirmed += sign * (a.Quantity - quantityIn(line.Returned, a.Shard))
			case ledger.StatusCanceled, ledger.StatusExpired, ledger.StatusPaymentChecking:
			}
			b.promised[key] = sum
		}
	}
}
