package commands

import (
	"context"
	"strings"
	"time"

	"holdfast/shared/ledger"
)

// quarantinePagesMax bounds the pages of one shard of the quarantine that are read to find one
// event, of ledger.PageItemsMax entries. What lies further behind is named by its own case, or
// found once the first ones are decided.
const quarantinePagesMax = 4

// place is what a case is about, as its record says it.
type place struct {
	kind    ledger.ReviewKind // "" for a reservation, whose status says it
	subject string
	item    ledger.EventItem // of an event
	id      ledger.EventID   // of an event, where it is known
	// record is that of a case that was named by its own id; zero for any other.
	record ledger.Review
}

// Case returns the case of that name, with all that it is about. One that has been claimed or
// decided is found as long as what it is about is in the table, or its record names it.
//
// Errors: CodeReviewNotFound, and those of the store.
func (v *Reviews) Case(ctx context.Context, name string) (Case, error) {
	at, err := v.locate(ctx, name)
	if err != nil {
		return Case{}, err
	}
	switch at.kind {
	case ledger.ReviewFinding:
		c := Case{Name: name}
		since, waits := at.record.InReviewSince()
		c.standing(at.kind, at.subject, at.record, since, waits)
		return c, nil
	case ledger.ReviewExpiry:
		return v.expiryCase(ctx, ledger.HoldID(at.subject))
	case ledger.ReviewEvent:
		return v.eventCase(ctx, at)
	default:
		return v.reservationCase(ctx, ledger.ReservationID(at.subject))
	}
}

// waitingCase is a case in which there is something to decide, or which the command that asks
// will refuse as claimed or decided.
func (v *Reviews) waitingCase(ctx context.Context, name string) (Case, error) {
	c, err := v.Case(ctx, name)
	if err == nil && !c.Waits && c.Review.Status != ledger.ReviewDecided {
		err = &ledger.Error{Code: ledger.CodeReviewDecided, Message: "nothing is left to decide: " + c.settledText()}
	}
	return c, err
}

// locate finds out what the name is of. It reads nothing for a reservation or a hold.
func (v *Reviews) locate(ctx context.Context, name string) (place, error) {
	switch {
	case ledger.ValidReservationID(name):
		return place{subject: name}, nil
	case ledger.ValidHoldID(name):
		return place{kind: ledger.ReviewExpiry, subject: name}, nil
	case ledger.ValidReviewID(name):
		return v.locateReview(ctx, ledger.ReviewID(name))
	case ledger.ValidEventID(name):
		return v.locateEvent(ctx, func(e ledger.UnpublishedEvent) bool { return string(e.ID) == name })
	}
	return place{}, ledger.ReviewNotFound()
}

// locateReview finds a case by its own id: by its record, or among the quarantined events.
func (v *Reviews) locateReview(ctx context.Context, id ledger.ReviewID) (place, error) {
	records, err := v.commands.store.Reviews(ctx, []ledger.ReviewID{id})
	if err != nil {
		return place{}, err
	}
	if len(records) == 0 {
		return v.locateEvent(ctx, func(e ledger.UnpublishedEvent) bool {
			return ledger.ReviewIDOf(ledger.ReviewEvent, e.Item.String()) == id
		})
	}
	at := place{kind: records[0].Kind, subject: records[0].Subject, record: records[0]}
	if at.kind == ledger.ReviewEvent {
		partition, sort, found := strings.Cut(at.subject, " ")
		if !found {
			return place{}, ledger.ReviewNotFound()
		}
		at.item = ledger.EventItem{PartitionKey: partition, SortKey: sort}
	}
	return at, nil
}

// locateEvent looks for an event through the whole quarantine, which is small or the people
// are busy elsewhere. No index leads from an event's id to its item.
func (v *Reviews) locateEvent(ctx context.Context, is func(ledger.UnpublishedEvent) bool) (place, error) {
	if v.waiting == nil {
		return place{}, ledger.ReviewNotFound()
	}
	for shard := range ledger.UnpublishedShards {
		page := ledger.Page{Limit: ledger.PageItemsMax}
		for range quarantinePagesMax {
			entries, next, err := v.waiting.Quarantined(ctx, shard, page)
			if err != nil {
				return place{}, err
			}
			for _, e := range entries {
				if is(e) {
					return place{kind: ledger.ReviewEvent, subject: e.Item.String(), item: e.Item, id: e.ID}, nil
				}
			}
			if page.After = next; next == "" {
				break
			}
		}
	}
	return place{}, ledger.ReviewNotFound()
}

// record reads the record of a case; zero for one that has none.
func (v *Reviews) record(ctx context.Context, kind ledger.ReviewKind, subject string) (ledger.Review, error) {
	records, err := v.commands.store.Reviews(ctx, []ledger.ReviewID{ledger.ReviewIDOf(kind, subject)})
	if err != nil || len(records) == 0 {
		return ledger.Review{}, err
	}
	return records[0], nil
}

// reservationCase is the case that the reservation is, or was last.
func (v *Reviews) reservationCase(ctx context.Context, id ledger.ReservationID) (Case, error) {
	reservation, hold, err := v.commands.reservationWithHold(ctx, id, anybody)
	c := Case{Name: string(id), Reservation: reservation, Hold: hold}
	switch code := ledger.CodeOf(err); {
	case code == ledger.CodeReservationNotFound:
		return Case{}, ledger.ReviewNotFound()
	case reservation.ID != "" && (code == ledger.CodeHoldNotFound || code == ledger.CodeInternal):
		c.HoldUnreadable = err
	case err != nil:
		return Case{}, err
	}
	kind, waits := reservation.ReviewKind()
	since, _ := reservation.InReviewSince()
	record, err := v.record(ctx, kind, string(id))
	if err == nil && !waits {
		kind, record, err = v.lastRecord(ctx, string(id))
	}
	if err != nil {
		return Case{}, err
	}
	c.standing(kind, string(id), record, since, waits)
	return c, nil
}

// lastRecord is the record of the two cases of a reservation that was changed last.
func (v *Reviews) lastRecord(ctx context.Context, subject string) (ledger.ReviewKind, ledger.Review, error) {
	ids := []ledger.ReviewID{ledger.ReviewIDOf(ledger.ReviewReservation, subject), ledger.ReviewIDOf(ledger.ReviewRefund, subject)}
	records, err := v.commands.store.Reviews(ctx, ids)
	if err != nil {
		return "", ledger.Review{}, err
	}
	var last ledger.Review
	for _, r := range records {
		if last.Version == 0 || changedAt(r).After(changedAt(last)) {
			last = r
		}
	}
	if last.Version == 0 {
		return "", last, ledger.ReviewNotFound()
	}
	return last.Kind, last, nil
}

func changedAt(r ledger.Review) time.Time {
	if r.Status == ledger.ReviewClaimed {
		return r.ClaimedAt
	}
	return r.DecidedAt
}

// expiryCase is the case of a hold that could not be ended. One that can't even be read is
// shown all the same.
//
// The hold is read first and the record last. So a hold that another operator has ended comes
// with the record of that decision, and is not taken for one that has ended by itself.
func (v *Reviews) expiryCase(ctx context.Context, id ledger.HoldID) (Case, error) {
	c := Case{Name: string(id)}
	hold, holdErr := v.commands.store.Hold(ctx, id)
	var err error
	if v.waiting != nil {
		if c.Failures, err = v.waiting.Failures(ctx, id); err != nil {
			return Case{}, err
		}
	}
	record, err := v.record(ctx, ledger.ReviewExpiry, string(id))
	if err != nil {
		return Case{}, err
	}
	parked := !c.Failures.DueAt.IsZero()
	if !parked && record.Version == 0 {
		return Case{}, ledger.ReviewNotFound()
	}
	c.standing(ledger.ReviewExpiry, string(id), record, c.Failures.DueAt, parked)
	c.Hold = hold
	switch code := ledger.CodeOf(holdErr); {
	case code == ledger.CodeInternal:
		c.HoldUnreadable = holdErr
		return c, nil
	case code == ledger.CodeHoldNotFound:
		return Case{}, ledger.ReviewNotFound()
	case holdErr != nil || hold.AttemptOpen == 0:
		return c, holdErr
	}
	c.Reservation, err = v.commands.store.Reservation(ctx, hold.Reservation)
	return c, err
}

// eventCase is the case of an event that no retry can publish as it is.
func (v *Reviews) eventCase(ctx context.Context, at place) (Case, error) {
	record, err := v.record(ctx, ledger.ReviewEvent, at.subject)
	if err != nil {
		return Case{}, err
	}
	var stored []ledger.StoredEvent
	if v.waiting != nil {
		if stored, err = v.waiting.UnpublishedEvents(ctx, []ledger.EventItem{at.item}); err != nil {
			return Case{}, err
		}
	}
	if len(stored) == 0 && record.Version == 0 {
		return Case{}, ledger.ReviewNotFound()
	}
	return eventCaseOf(at, stored, record), nil
}

// eventCaseOf puts together what is known of the event. One that a person has dismissed stays
// where it is, and is a case again only if it comes into quarantine anew.
func eventCaseOf(at place, stored []ledger.StoredEvent, record ledger.Review) Case {
	c := Case{Name: string(ledger.ReviewIDOf(ledger.ReviewEvent, at.subject))}
	var since time.Time
	waits := false
	if len(stored) > 0 {
		c.Event = stored[0]
		if c.Event.Event.ID != "" {
			at.id = c.Event.Event.ID
		}
		if c.Event.Quarantine != nil {
			since = c.Event.Quarantine.At
			dismissed := record.Status == ledger.ReviewDecided && record.Decision == ledger.DecisionDismiss
			waits = !dismissed || since.After(record.DecidedAt)
		}
	}
	if ledger.ValidEventID(string(at.id)) {
		c.Name = string(at.id)
	}
	c.Event.Item = at.item
	c.standing(ledger.ReviewEvent, at.subject, record, since, waits)
	return c
}
