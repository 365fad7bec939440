package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/shared/ledger"
)

const (
	// WakeFor bounds one call to the saga's queue.
	WakeFor = 3 * time.Second
	// WakesPerCallMax is the limit of one SendMessageBatch. Source:
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
	WakesPerCallMax = 10
	// A call to the bus has no more entries than that, so its wake-ups fit into one call.
	_ = uint(WakesPerCallMax - EntriesPerCallMax)
)

// errLate is the failure of a record whose wake-up went out, and for whose publication no
// time was left.
var errLate = errors.New("no time was left to publish it")

// Queue takes the messages that wake the saga. An sqs.Client is one.
type Queue interface {
	// SendMessageBatch answers without an error also when entries were refused: each entry
	// is named, by its id, as successful or as failed.
	SendMessageBatch(ctx context.Context, input *sqs.SendMessageBatchInput, options ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

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

// wake wakes the saga for the reservations of call, and returns one error for each
// record, nil where no wake-up is missing. One wake-up in a batch is enough for a
// reservation: all events of the batch were committed before it, and the saga reads how
// the reservation stands.
//
// It comes before the publication, so that a record whose wake-up failed is not published
// only to come again.
func (d *delivery) wake(ctx context.Context, call []record) []error {
	failures := make([]error, len(call))
	var wanted []record // the first of each reservation
	for _, r := range call {
		same := func(other record) bool { return other.wakes == r.wakes }
		if r.wakes != "" && !d.woken[r.wakes] && !slices.ContainsFunc(wanted, same) {
			wanted = append(wanted, r)
		}
	}
	results := d.persist(ctx, len(wanted), func(ctx context.Context, open []int) []error { return d.wakeOnce(ctx, wanted, open) })
	for i, err := range results {
		if err == nil {
			d.woken[wanted[i].wakes] = true
			continue
		}
		for at, r := range call {
			if r.wakes == wanted[i].wakes {
				failures[at] = fmt.Errorf("wake the saga: %w", err)
			}
		}
	}
	return failures
}

// wakeOnce sends the open ones of the wanted wake-ups, and returns an error for each of
// them, nil for one that the queue has taken.
func (d *delivery) wakeOnce(ctx context.Context, wanted []record, open []int) []error {
	ctx, cancel := context.WithTimeout(ctx, WakeFor)
	defer cancel()
	entries := make([]types.SendMessageBatchRequestEntry, len(open))
	for i, of := range open {
		entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(string(wanted[of].wakes)), MessageBody: aws.String(wanted[of].message),
		}
	}
	output, err := d.ports.Queue.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(d.settings.SagaQueueURL), Entries: entries})
	if err != nil {
		// The queue may have taken any of them. A wake-up that comes twice does no harm.
		return slices.Repeat([]error{fmt.Errorf("send messages: %w", err)}, len(open))
	}
	failures := make([]error, len(open))
	for i, entry := range entries {
		failures[i] = verdict(output, aws.ToString(entry.Id))
	}
	return failures
}

// verdict is what the answer says of the entry of that id. One that is not named as
// successful was not taken: the answer as a whole looks successful whatever happened.
func verdict(output *sqs.SendMessageBatchOutput, id string) error {
	for _, failed := range output.Failed {
		if aws.ToString(failed.Id) == id {
			return &entryError{"queue", aws.ToString(failed.Code), aws.ToString(failed.Message)}
		}
	}
	for _, taken := range output.Successful {
		if aws.ToString(taken.Id) == id && aws.ToString(taken.MessageId) != "" {
			return nil
		}
	}
	return errors.New("the queue's answer does not name the message")
}
