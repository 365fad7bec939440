package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
)

const (
	// TriesMax bounds how often an entry is sent in one run. A longer outage is for
	// the stream's own retries, which the topology bounds by the record's age.
	TriesMax = 5
	// pauseUnit is the bound of the random pause before the second attempt; it doubles
	// with every further one, up to pauseMax.
	pauseUnit = 100 * time.Millisecond
	pauseMax  = 2 * time.Second
)

// permanentCodes are the errors of an entry that no retry changes. Every other code is
// tried again, the unknown ones too: the attempts are bounded. Sources:
// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsResultEntry.html
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
func permanentCodes() []string {
	return []string{
		"AccessDeniedException", "InvalidAccountIdException", "InvalidArgument", "MalformedDetail",
		"RedactionFailure", "NotAuthorizedForSourceException", "NotAuthorizedForDetailTypeException",
		// Of the queue.
		"InvalidMessageContents", "InvalidParameterValue", "MissingParameter",
	}
}

// entryError is the refusal of one entry by the bus or the queue.
type entryError struct {
	by, code, message string
}

func (e *entryError) Error() string {
	return fmt.Sprintf("refused by the %s: %s: %s", e.by, e.code, e.message)
}

// send sends the chosen records of one call to the bus. It returns one error for each
// of them, nil for an accepted one.
func (d *delivery) send(ctx context.Context, call []record) []error {
	return d.persist(ctx, len(call), TriesMax, func(ctx context.Context, open []int) []error { return d.sendOnce(ctx, call, open) })
}

// persist asks once to send n things until all of them are accepted, or refused for good,
// or triesMax or time has run out. It returns one error for each, nil for an accepted
// one. Only what is not yet accepted, named by its index, is sent again.
func (d *delivery) persist(ctx context.Context, n, triesMax int, once func(ctx context.Context, open []int) []error) []error {
	failures := make([]error, n)
	open := make([]int, n)
	for i := range open {
		open[i] = i
	}
	for attempt := range triesMax {
		if len(open) == 0 || attempt > 0 && (d.late(ctx) || d.pause(ctx, attempt) != nil) {
			break
		}
		for i, err := range once(ctx, open) {
			failures[open[i]] = err
		}
		open = slices.DeleteFunc(open, func(i int) bool { return failures[i] == nil || permanent(failures[i]) })
	}
	return failures
}

// sendOnce sends the open records of the call, and returns an error for each of them,
// nil for an accepted one.
func (d *delivery) sendOnce(ctx context.Context, call []record, open []int) []error {
	ctx, cancel := context.WithTimeout(ctx, CallFor)
	defer cancel()
	entries := make([]types.PutEventsRequestEntry, len(open))
	for i, of := range open {
		entries[i] = call[of].entry
	}
	output, err := d.ports.Publisher.PutEvents(ctx, &eventbridge.PutEventsInput{Entries: entries})
	if err == nil && len(output.Entries) != len(entries) {
		err = fmt.Errorf("the bus answers for %d of %d entries", len(output.Entries), len(entries))
	}
	if err != nil {
		// The bus may have accepted any of them. They are sent again: twice is allowed,
		// never is not.
		return slices.Repeat([]error{fmt.Errorf("put events: %w", err)}, len(entries))
	}
	failures, refused := make([]error, len(entries)), int32(0)
	for i, result := range output.Entries {
		// An entry counts as accepted only if it has an id: the answer as a whole looks
		// successful whatever happened to its entries (case I1).
		if aws.ToString(result.EventId) == "" || aws.ToString(result.ErrorCode) != "" {
			failures[i] = &entryError{"bus", aws.ToString(result.ErrorCode), aws.ToString(result.ErrorMessage)}
			refused++
		}
	}
	if output.FailedEntryCount > refused {
		return slices.Repeat([]error{fmt.Errorf("the bus refused %d entries and names %d", output.FailedEntryCount, refused)}, len(entries))
	}
	return failures
}

func permanent(err error) bool {
	var refused *entryError
	return errors.As(err, &refused) && slices.Contains(permanentCodes(), refused.code)
}

// pause waits a random moment, longer with every attempt.
func (d *delivery) pause(ctx context.Context, attempt int) error {
	bound := min(pauseUnit<<(attempt-1), pauseMax)
	return d.ports.Clock.Sleep(ctx, time.Duration(d.ports.Random.Below(int64(bound))))
}
