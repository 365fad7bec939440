package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

// WakeFor bounds one call to the saga's queue.
const WakeFor = 3 * time.Second

// errLate is the failure of a record whose wake-up went out, and for whose publication no
// time was left.
var errLate = errors.New("no time was left to publish it")

// wakes is the reservation that must be looked at because of e, or "" for none.
//
// The event of a payment that was started comes twice, as the hold's and as the
// reservation's; the latter is enough.
func wakes(e ledger.Event) ledger.ReservationID {
	switch {
	case e.Reservation != nil && !settled(e):
		return e.Reservation.ID
	case e.Hold != nil && e.Type != ledger.EventHoldPaymentStarted:
		return e.Hold.Reservation
	}
	return ""
}

// settled reports whether the event left nothing to be done now: the reservation has
// ended without a question, nothing is owed, and it is looked at later or never. REVIEW
// is not settled: what must not stay is voided while a person thinks.
func settled(e ledger.Event) bool {
	r := e.Reservation
	switch r.Status {
	case ledger.ReservationCompleted, ledger.ReservationCanceled, ledger.ReservationRefunded:
		return r.OwedMinor() == 0 && (r.LookAt.IsZero() || r.LookAt.After(e.OccurredAt))
	default:
		return false
	}
}

// wakeUp is the message that wakes the saga because of e, or none.
func (r *Relay) wakeUp(e ledger.Event) (message, error) {
	id := wakes(e)
	if id == "" {
		return message{}, nil
	}
	body, err := (payment.Message{Reservation: id}).Encode()
	if err != nil {
		return message{}, err
	}
	return message{queueURL: r.settings.SagaQueueURL, body: body}, nil
}

// wake wakes the saga for the reservations of call, and returns one error for each
// record, nil where no wake-up is missing. One wake-up in a batch is enough for a
// reservation: all events of the batch were committed before it, and the saga reads how
// the reservation stands.
//
// It comes before the publication, so that a record whose wake-up failed is not published
// only to come again.
func (d *delivery) wake(ctx context.Context, call []record) []error {
	failures := d.tell(ctx, call, func(r record) message { return r.wake }, effort{TriesMax, WakeFor})
	for i, err := range failures {
		if err != nil {
			failures[i] = fmt.Errorf("wake the saga: %w", err)
		}
	}
	return failures
}
