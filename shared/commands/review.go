package commands

import (
	"context"
	"errors"
	"time"

	"holdfast/shared/ledger"
)

// Waiting is what waits for a person and is listed beside the ledger: holds that could not be
// ended, and events that can't be published as they are. A dynamo.Store is one. Each method
// may be repeated.
type Waiting interface {
	// Failures says how often ending the hold has failed, and since when a parked one is due.
	Failures(ctx context.Context, id ledger.HoldID) (ledger.EndFailures, error)
	// Parked lists the parked holds of one due shard, those that are tried next first, as
	// entries whose DueAt is not known.
	Parked(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error)
	// Unpark puts a parked entry back to the due holds, and reports whether it was parked so.
	Unpark(ctx context.Context, entry ledger.DueHold) (bool, error)
	// Quarantined lists the quarantined events of one shard, the oldest first.
	Quarantined(ctx context.Context, shard int, page ledger.Page) ([]ledger.UnpublishedEvent, ledger.Cursor, error)
	// UnpublishedEvents reads event items, consistently, and leaves out what is published.
	UnpublishedEvents(ctx context.Context, items []ledger.EventItem) ([]ledger.StoredEvent, error)
	// Requeue takes an event out of the quarantine, and reports whether it was there.
	Requeue(ctx context.Context, event ledger.EventItem) (bool, error)
}

// Reviews is the queue of what a person must decide. It is safe for concurrent use.
//
// A case is named by what it is about: the id of a reservation, a hold or an event, or by its
// own id. Whether it waits is never stored twice: the reservation's status, the parking of the
// hold and the quarantine of the event say so. The case's record only says who has taken it,
// and what was decided. A record that is decided, of something that waits, is of an earlier
// time: it has come back, and the case is open.
type Reviews struct {
	commands *Commands
	waiting  Waiting
}

// NewReviews returns the queue on these commands. Without waiting it has no parked holds and
// no quarantined events.
func NewReviews(c *Commands, waiting Waiting) *Reviews {
	return &Reviews{commands: c, waiting: waiting}
}

// RenderCase turns the case into the answer that is given and kept, at the command's one
// moment.
type RenderCase func(c Case, now time.Time) (ledger.Response, error)

// Claim takes the case for the request's actor, so that nobody else decides it for
// ledger.ReviewClaimFor. A claim of one's own is renewed.
//
// Errors: CodeReviewNotFound, CodeReviewClaimed, CodeReviewDecided, CodeKeyReused, and those
// of the store.
func (v *Reviews) Claim(ctx context.Context, r Request, name string, render RenderCase) (Answer, error) {
	return v.commands.carryOut(ctx, job{
		command: ledger.CommandClaimReview, request: r,
		decide: func(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
			found, err := v.waitingCase(ctx, name)
			if err != nil {
				return decision{}, err
			}
			change, err := ledger.ClaimReview(found.Review, origin, now)
			if err != nil {
				return decision{}, err
			}
			found.Review = change.Reviews[0].Next
			response, err := render(found, now)
			return decision{change: change, response: response}, err
		},
	})
}

// Decide carries out what a person decides about the case, for the reason that the request
// gives. The record of it and what it does are one Change. Only that a hold is tried again, or an event, is no
// Change: it is done after the record is written, and again when the request is repeated.
//
// Errors: CodeReviewNotFound, CodeReviewClaimed, CodeReviewDecided, CodeDecisionNotPossible,
// which says what can be done instead, CodeAlreadyUsed, CodeInvalid for a decision that such a
// case does not have, CodeKeyReused, and those of the store.
func (v *Reviews) Decide(ctx context.Context, r Request, name string, d ledger.ReviewDecision, render RenderCase) (Answer, error) {
	step := &reviewStep{reviews: v, name: name, decided: d, render: render, takeBack: make(map[ledger.SlotID][]ledger.Allocation)}
	answer, err := v.commands.carryOut(ctx, job{
		command: ledger.CommandDecideReview, request: r, decide: step.decide, refused: step.refused,
	})
	if ledger.CodeOf(err) == ledger.CodeInternal && step.kind == ledger.ReviewExpiry {
		return Answer{}, notAsStored(err)
	}
	if err == nil && d == ledger.DecisionRetry {
		err = notedAlready(v.tryAgain(ctx, name))
	}
	if err != nil {
		return Answer{}, err
	}
	return answer, nil
}

// reviewStep is one decision that is being tried.
type reviewStep struct {
	reviews *Reviews
	name    string
	decided ledger.ReviewDecision
	render  RenderCase
	// takeBack are the stock items that granted units are taken back from, where they are not
	// where they were put.
	takeBack map[ledger.SlotID][]ledger.Allocation
	kind     ledger.ReviewKind
	tried    ledger.Change
}

func (s *reviewStep) decide(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
	found, err := s.reviews.waitingCase(ctx, s.name)
	if err != nil {
		return decision{}, err
	}
	s.kind = found.Review.Kind
	if found.Reservation.ID != "" && takenBackBetween(found.Reservation, found.Hold) {
		return decision{}, errTwoMoments
	}
	record, err := ledger.DecideReview(found.Review, s.decided, origin.Beside("review"), now)
	if err != nil {
		return decision{}, err
	}
	effect, err := found.effect(s.decided, s.takeBack, origin, now)
	if err != nil {
		return decision{}, err
	}
	s.tried = ledger.Together(record, effect)
	found.take(s.tried)
	response, err := s.render(found, now)
	return decision{change: s.tried, response: response}, err
}

// refused looks for stock that does not have what the decision moves. Where that is all that
// is wrong, nobody was faster: the counters and the hold differ, or granted units are gone.
func (s *reviewStep) refused(ctx context.Context, r *ledger.Refused, now time.Time) error {
	legs := r.LegsOf(ledger.LegStock)
	if r.Contended || len(legs) == 0 || len(legs) < len(r.Legs) {
		return nil
	}
	grants := reservationStep{commands: s.reviews.commands, takeBack: s.takeBack, tried: s.tried}
	for _, leg := range legs {
		if grants.takesBack(leg.Slot) > 0 {
			return grants.refused(ctx, r, now)
		}
	}
	return &ledger.Error{
		Code: ledger.CodeDecisionNotPossible, Slots: []ledger.SlotID{legs[0].Slot},
		Message: "the stock of this slot does not have the units that the hold has; have the audit look, and repair the stock first",
	}
}

// notAsStored is the refusal of a decision about a hold of which no step can be made.
func notAsStored(cause error) *ledger.Error {
	return &ledger.Error{
		Code:    ledger.CodeDecisionNotPossible,
		Message: "nothing can be done with the hold as it is stored, so its item must be repaired first: " + cause.Error(), Cause: cause,
	}
}

// notedAlready is the error of a call whose decision is written, so that none may say that
// nothing was.
func notedAlready(err error) error {
	if err == nil {
		return nil
	}
	return &ledger.Error{
		Code: ledger.CodeOutcomeUnknown, Message: "the decision is noted, and what it asks for could not be done yet; ask again with the same key", Cause: err,
	}
}

// unparkPagesMax bounds the pages that are read to find one parked hold in its shard.
const unparkPagesMax = 10

// tryAgain has a parked hold or a quarantined event tried again, if the name is of one.
func (v *Reviews) tryAgain(ctx context.Context, name string) error {
	place, err := v.locate(ctx, name)
	if ledger.CodeOf(err) == ledger.CodeReviewNotFound {
		return nil // it is out of the quarantine already
	}
	switch {
	case err != nil:
		return err
	case place.kind == ledger.ReviewExpiry && v.waiting != nil:
		return v.unpark(ctx, ledger.HoldID(place.subject))
	case place.kind == ledger.ReviewEvent && v.waiting != nil:
		_, err := v.waiting.Requeue(ctx, place.item)
		return err
	}
	return nil
}

// unpark finds the hold among the parked ones and puts it back. One that is parked by its own
// record and is not listed yet is an error, after which the same request is sent again.
func (v *Reviews) unpark(ctx context.Context, id ledger.HoldID) error {
	page := ledger.Page{Limit: ledger.PageItemsMax}
	for range unparkPagesMax {
		entries, next, err := v.waiting.Parked(ctx, ledger.DueShard(id), page)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.ID == id {
				_, err := v.waiting.Unpark(ctx, entry)
				return err
			}
		}
		if page.After = next; next == "" {
			break
		}
	}
	known, err := v.waiting.Failures(ctx, id)
	if err != nil || known.DueAt.IsZero() {
		return err
	}
	return errors.New("the hold is parked, and the index does not list it yet")
}
