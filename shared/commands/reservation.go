package commands

import (
	"context"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// RenderReservation turns the reservation, and the hold that it is about, into the answer
// that is given and kept, at the command's one moment.
type RenderReservation func(r ledger.Reservation, h ledger.Hold, now time.Time) (ledger.Response, error)

// CancelBy says on whose wish a reservation is cancelled.
type CancelBy int

// The wishes.
const (
	// CancelByOwner is bound to the owner's own reservations and to the policy's time.
	CancelByOwner CancelBy = iota
	// CancelByOperator is not.
	CancelByOperator
)

// CancelReservation takes the reservation back: before the sale as a whole, after it as a
// whole or by line, with no lines standing for the whole. What the provider has to do is
// recorded as owed and done afterwards.
//
// Errors: CodeReservationNotFound, CodeReservationNotActive, CodeTooLateToCancel,
// CodeReturnOverSale, CodePaymentInProgress, CodeAlreadyUsed, CodeInvalid, CodeKeyReused,
// and those of the store.
func (c *Commands) CancelReservation(ctx context.Context, r Request, id ledger.ReservationID, lines []ledger.ReturnLine, by CancelBy, render RenderReservation) (Answer, error) {
	wish := ledger.Cancellation{Lines: lines, TakeBack: make(map[ledger.SlotID][]ledger.Allocation), Reason: ledger.ReasonOperatorCanceled}
	may := anybody
	if by == CancelByOwner {
		wish.Reason, may = ledger.ReasonOwnerCanceled, onlyOwner(r.Owner)
	}
	step := &reservationStep{commands: c, id: id, render: render, may: may, takeBack: wish.TakeBack,
		transition: func(reservation ledger.Reservation, h ledger.Hold, origin ledger.Origin, now time.Time) (ledger.Change, error) {
			return ledger.CancelReservation(reservation, h, wish, origin, now)
		}}
	return c.carryOut(ctx, job{command: ledger.CommandCancelReservation, request: r, decide: step.decide, refused: step.refused})
}

// DeliverReservation records what an external delivery came to. A failed one takes the
// sale back.
//
// Errors: CodeReservationNotFound, CodeReservationNotActive, CodeKeyReused, and those of the
// store.
func (c *Commands) DeliverReservation(ctx context.Context, r Request, id ledger.ReservationID, delivered bool, render RenderReservation) (Answer, error) {
	step := &reservationStep{commands: c, id: id, render: render, may: anybody,
		transition: func(reservation ledger.Reservation, h ledger.Hold, origin ledger.Origin, now time.Time) (ledger.Change, error) {
			return ledger.Deliver(reservation, h, delivered, origin, now)
		}}
	return c.carryOut(ctx, job{command: ledger.CommandDeliverReservation, request: r, decide: step.decide, refused: step.refused})
}

// reservationStep is a transition of one stored reservation that is being tried.
type reservationStep struct {
	commands *Commands
	id       ledger.ReservationID
	render   RenderReservation
	// may says whose reservations are meant.
	may        func(ledger.Reservation) bool
	transition func(ledger.Reservation, ledger.Hold, ledger.Origin, time.Time) (ledger.Change, error)
	// takeBack are the stock items that granted units are taken back from, where they are not
	// where they were put.
	takeBack map[ledger.SlotID][]ledger.Allocation
	tried    ledger.Change
}

func (s *reservationStep) decide(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
	reservation, hold, err := s.commands.reservationWithHold(ctx, s.id, s.may)
	if err != nil {
		return decision{}, err
	}
	if takenBackBetween(reservation, hold) {
		return decision{}, errTwoMoments
	}
	change, err := s.transition(reservation, hold, origin, now)
	if err != nil {
		return decision{}, err
	}
	s.tried = change
	if len(change.Reservations) > 0 {
		reservation = change.Reservations[0].Next
	}
	if len(change.Holds) > 0 {
		hold = change.Holds[0].Next
	}
	response, err := s.render(reservation, hold, now)
	return decision{change: change, response: response}, err
}

// takenBackBetween reports whether the sale of r was taken back after r was read and before
// h was: a whole return changes both in one step. Deciding on that would refuse with the
// hold's words what the reservation allows, as a second wish to cancel the whole.
func takenBackBetween(r ledger.Reservation, h ledger.Hold) bool {
	switch r.Status {
	case ledger.ReservationConfirmed, ledger.ReservationCaptured, ledger.ReservationCompleted:
		return h.Status == ledger.StatusReturned
	default:
		return false
	}
}

// refused looks for granted units that are not where they were put, and tells where they
// are gone. Every other refusal is a lost race.
func (s *reservationStep) refused(ctx context.Context, r *ledger.Refused, _ time.Time) error {
	if r.Contended {
		return nil
	}
	for _, leg := range r.LegsOf(ledger.LegStock) {
		if units := s.takesBack(leg.Slot); units > 0 {
			if err := s.findGranted(ctx, leg, units); err != nil {
				return err
			}
		}
	}
	return nil
}

// takesBack is how many granted units the tried change takes out of a slot.
func (s *reservationStep) takesBack(slot ledger.SlotID) ledger.Units {
	var units ledger.Units
	for _, e := range s.tried.Events {
		for _, m := range e.Movements {
			if e.Reservation != nil && m.Slot == slot && m.From == ledger.BucketAvailable {
				units += m.Quantity
			}
		}
	}
	return units
}

// findGranted looks for granted units in all of the slot's stock, at one moment. It returns
// CodeAlreadyUsed where they are not there. Stock that is not of the slot as it was read says
// nothing, and is read again by the next try.
func (s *reservationStep) findGranted(ctx context.Context, leg ledger.RefusedLeg, units ledger.Units) error {
	slots, err := s.commands.store.Slots(ctx, []ledger.SlotID{leg.Slot})
	if err != nil || len(slots) == 0 {
		return err
	}
	stock, err := s.commands.store.StockAtOneMoment(ctx, slots[0])
	if err != nil || slices.ContainsFunc(stock, func(item ledger.Stock) bool { return item.Terms != slots[0].Terms }) {
		return err
	}
	allocation, found := ledger.Allocate(stock, units, leg.Shard)
	if !found {
		return ledger.AlreadyUsed(leg.Slot)
	}
	s.takeBack[leg.Slot] = allocation
	return nil
}

// anybody may: the caller's rights have been looked at.
func anybody(ledger.Reservation) bool { return true }

func onlyOwner(owner ledger.OwnerID) func(ledger.Reservation) bool {
	return func(r ledger.Reservation) bool { return r.Owner == owner }
}

// reservationWithHold reads a reservation and the hold that it is about: the sold one, or
// else the one that it pays for. One that is not the caller's is answered as an unknown
// one, before anything more is read, so that not even the time tells the two apart
// (promise P11).
func (c *Commands) reservationWithHold(ctx context.Context, id ledger.ReservationID, may func(ledger.Reservation) bool) (ledger.Reservation, ledger.Hold, error) {
	reservation, err := c.store.Reservation(ctx, id)
	if err == nil && !may(reservation) {
		err = ledger.ReservationNotFound()
	}
	if err != nil {
		return ledger.Reservation{}, ledger.Hold{}, err
	}
	holdID := reservation.Hold
	if reservation.SoldHold != "" {
		holdID = reservation.SoldHold
	}
	hold, err := ledger.HoldOf(ctx, c.store, reservation, holdID)
	return reservation, hold, err
}
