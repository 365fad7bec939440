package commands

import (
	"context"
	"time"

	"holdfast/shared/ledger"
)

// ConfirmHold sells what the hold promises, on the word of a trusted service that it
// has been paid. With lines it sells those and gives back the rest in the same step. Whose
// hold it is does not matter.
//
// Errors: CodeHoldNotFound, CodeHoldNotActive, CodeInvalid, CodeReferenceUsed,
// CodeKeyReused, and those of the store.
func (c *Commands) ConfirmHold(ctx context.Context, r Request, id ledger.HoldID, reference ledger.PaymentReference, lines []ledger.ReturnLine, render RenderHold) (Answer, error) {
	over := false
	end := ending{commands: c, id: id, render: render,
		transition: func(h ledger.Hold, origin ledger.Origin, now time.Time) (ledger.Change, error) {
			status := h.StatusAt(now)
			over = status == ledger.StatusExpired || status == ledger.StatusPaymentChecking
			if lines != nil {
				return ledger.ConfirmPart(h, lines, reference, origin, now)
			}
			return ledger.Confirm(h, reference, origin, now)
		}}
	answer, err := c.carryOut(ctx, job{command: ledger.CommandConfirmHold, request: r, decide: end.decide, refused: end.refused})
	if over && ledger.CodeOf(err) == ledger.CodeHoldNotActive {
		c.counter.ConfirmedLate()
	}
	return answer, err
}

// CancelHold gives the hold back. A hold of another owner is answered as an unknown one
// (promise P11).
//
// Errors: CodeHoldNotFound, CodeHoldNotActive, CodeKeyReused, and those of the store.
func (c *Commands) CancelHold(ctx context.Context, r Request, id ledger.HoldID, render RenderHold) (Answer, error) {
	end := ending{commands: c, id: id, render: render,
		transition: func(h ledger.Hold, origin ledger.Origin, now time.Time) (ledger.Change, error) {
			if h.Owner != r.Owner {
				return ledger.Change{}, ledger.HoldNotFound()
			}
			return ledger.Cancel(h, origin, now)
		}}
	return c.carryOut(ctx, job{command: ledger.CommandCancelHold, request: r, decide: end.decide, refused: end.refused})
}

// ExpireHold ends the hold if it is over. It reports whether this call is what ended it:
// false without an error means that it had ended before. It may be repeated, and any
// number of callers may do so at once.
//
// A hold whose payment attempt is open ends later, together with a record in its
// reservation that the money is to be given back: whoever asks first, this or the saga,
// writes both.
//
// Errors: CodeHoldNotFound, CodeHoldNotDue, and those of the store.
func (c *Commands) ExpireHold(ctx context.Context, id ledger.HoldID, requestID ledger.RequestID) (bool, error) {
	released := false
	_, err := c.carryOut(ctx, job{
		command: ledger.CommandExpireHold,
		request: Request{Actor: ledger.ActorSystem, RequestID: requestID},
		decide: func(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
			hold, err := c.store.Hold(ctx, id)
			if err != nil {
				return decision{}, err
			}
			change, err := c.expire(ctx, hold, origin, now)
			released = err == nil && !change.Empty()
			return decision{change: change}, err
		},
	})
	return released && err == nil, err
}

func (c *Commands) expire(ctx context.Context, hold ledger.Hold, origin ledger.Origin, now time.Time) (ledger.Change, error) {
	if hold.Status != ledger.StatusHeld || hold.AttemptOpen == 0 {
		return expireWith(hold, ledger.Reservation{}, origin, now)
	}
	reservation, err := c.store.Reservation(ctx, hold.Reservation)
	if err != nil {
		return ledger.Change{}, err
	}
	return expireWith(hold, reservation, origin, now)
}

// expireWith ends the hold if it is over. The reservation is of no meaning while no attempt is
// open.
func expireWith(hold ledger.Hold, reservation ledger.Reservation, origin ledger.Origin, now time.Time) (ledger.Change, error) {
	if hold.Status != ledger.StatusHeld || hold.AttemptOpen == 0 {
		return ledger.Expire(hold, origin, now)
	}
	return ledger.GiveUp(hold, reservation, origin, now)
}

// ending is a transition of one stored hold that is being tried. After a lost race the
// hold is read again, and the new state decides.
type ending struct {
	commands   *Commands
	id         ledger.HoldID
	render     RenderHold
	transition func(ledger.Hold, ledger.Origin, time.Time) (ledger.Change, error)
}

func (e ending) decide(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
	hold, err := e.commands.store.Hold(ctx, e.id)
	if err != nil {
		return decision{}, err
	}
	change, err := e.transition(hold, origin, now)
	if err != nil {
		return decision{}, err
	}
	if !change.Empty() {
		hold = change.Holds[0].Next
	}
	response, err := e.render(hold, now)
	return decision{change: change, response: response}, err
}

func (e ending) refused(_ context.Context, r *ledger.Refused, _ time.Time) error {
	for _, leg := range r.LegsOf(ledger.LegUniqueness) {
		if leg.Uniqueness != nil && leg.Uniqueness.Hold != e.id {
			return &ledger.Error{Code: ledger.CodeReferenceUsed, Message: "this payment_reference has confirmed another hold"}
		}
	}
	return nil
}
