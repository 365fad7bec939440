package commands

import (
	"time"

	"holdfast/shared/ledger"
)

// Case is a case as it stands: its record, or what its record would be, and what it is about.
type Case struct {
	// Name is what the case is called by: the id of a reservation, a hold or an event, or for
	// a finding, and for an event whose id is not known, the case's own.
	Name   string
	Review ledger.Review
	// Waits says that there is something to decide.
	Waits bool
	// Since is since when it waits, and zero for one that does not.
	Since time.Time

	// Reservation and Hold are of a case about a reservation. A case about a parked hold has
	// its Hold, and the Reservation whose payment is open. In a list both holds are left out.
	Reservation ledger.Reservation
	Hold        ledger.Hold
	// HoldUnreadable is why the hold can't be read; nil if it can.
	HoldUnreadable error
	Failures       ledger.EndFailures // of a parked hold
	Event          ledger.StoredEvent // of a quarantined event
}

// Option is one decision that a case of this kind has.
type Option struct {
	Decision ledger.ReviewDecision
	// Effect says what it does, or would do.
	Effect string
	// NotPossible says why it can't be decided now, and what can be; "" if it can.
	NotPossible string
}

// decisionsOfKind are what people can decide, in the order in which they are told.
// ledger.DecisionRepaired is the audit's own.
var decisionsOfKind = []ledger.ReviewDecision{
	ledger.DecisionApprove, ledger.DecisionRefund, ledger.DecisionVoid, ledger.DecisionRelease, ledger.DecisionRetry, ledger.DecisionDismiss,
}

// Options lists the decisions that the case has at now. Nothing is left to decide about one
// that does not wait.
func (c Case) Options(now time.Time) []Option {
	var out []Option
	for _, d := range decisionsOfKind {
		if !c.Waits || !c.Review.Kind.Allows(d) {
			continue
		}
		option := Option{Decision: d, Effect: c.effectText(d)}
		_, err := c.effect(d, nil, ledger.Origin{}, now)
		if err != nil {
			option.NotPossible = messageOf(err)
		}
		out = append(out, option)
	}
	return out
}

// effect is what the decision changes beside the case's record; nothing where the record is
// all, and where what follows is no Change.
func (c Case) effect(d ledger.ReviewDecision, takeBack map[ledger.SlotID][]ledger.Allocation, origin ledger.Origin, now time.Time) (ledger.Change, error) {
	switch {
	case c.HoldUnreadable != nil && d != ledger.DecisionRetry:
		return ledger.Change{}, notAsStored(c.HoldUnreadable)
	case c.Review.Kind == ledger.ReviewReservation, c.Review.Kind == ledger.ReviewRefund:
		return ledger.ResolveReservation(c.Reservation, c.Hold, d, takeBack, origin, now)
	case c.Review.Kind == ledger.ReviewExpiry && d == ledger.DecisionRelease:
		return c.release(origin, now)
	}
	return ledger.Change{}, nil
}

// release ends the parked hold as the sweep would.
func (c Case) release(origin ledger.Origin, now time.Time) (ledger.Change, error) {
	change, err := expireWith(c.Hold, c.Reservation, origin, now)
	if err == nil && change.Empty() {
		return change, &ledger.Error{Code: ledger.CodeDecisionNotPossible, Message: "the hold has ended by itself, as " + string(c.Hold.Status)}
	}
	code := ledger.CodeOf(err)
	if code == ledger.CodeHoldNotDue || code == ledger.CodePaymentInProgress || code == ledger.CodeHoldArchived {
		return change, &ledger.Error{Code: ledger.CodeDecisionNotPossible, Message: "it can't be released now: " + messageOf(err), Cause: err}
	}
	return change, err
}

// take makes the case what the change has made of it.
func (c *Case) take(change ledger.Change) {
	for _, w := range change.Reviews {
		c.Review = w.Next
	}
	for _, w := range change.Reservations {
		c.Reservation = w.Next
	}
	if len(change.Holds) > 0 {
		c.Hold = change.Holds[0].Next
	}
	c.Waits, c.Since = false, time.Time{}
}

// standing makes the record say how things are: a record that does not exist yet is a new
// case, and one that is decided, of something that waits again, is open.
func (c *Case) standing(kind ledger.ReviewKind, subject string, stored ledger.Review, since time.Time, waits bool) {
	record := stored
	if record.Version == 0 {
		record = ledger.NewReview(kind, subject, since)
	}
	if waits && record.Status == ledger.ReviewDecided {
		record.Status, record.OpenedAt = ledger.ReviewOpen, since
	}
	c.Review, c.Waits = record, waits
	if waits {
		c.Since = since
	}
}
