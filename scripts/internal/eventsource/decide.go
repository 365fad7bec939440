package eventsource

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// Batch is a run of records, in stream order, that the function is given together.
type Batch struct {
	Records []events.DynamoDBEventRecord
	// Retries counts how often this batch, or the one it was split from, has been
	// delivered again.
	Retries int
}

// Limits are when the mapping stops trying.
type Limits struct {
	Retries      int
	RecordAgeMax time.Duration
}

// Outcome is what the function made of a batch.
type Outcome struct {
	// Failed has the sequence numbers that the function returned. Empty is success.
	Failed []string
	// Err says that the invocation failed, or that its answer cannot be read.
	Err error
}

// Condition says why a batch was given up, in the words of a failure message.
type Condition string

// The conditions.
const (
	RetryAttemptsExhausted Condition = "RetryAttemptsExhausted"
	RecordAgeExceeded      Condition = "RecordAgeExceeded"
)

// Step is what to do after a batch.
type Step struct {
	// Done counts the records from the front of the batch that are finished. They are
	// checkpointed, after GivenUp has been delivered.
	Done int
	// Next has what is delivered next, in this order, before any later record.
	Next []Batch
	// GivenUp has the condition if the finished records are given up.
	GivenUp Condition
}

// ReadOutcome reads what an invocation returned. A function that answers nothing, null
// or an empty list has handled everything.
func ReadOutcome(response []byte, err error) Outcome {
	if err != nil {
		return Outcome{Err: err}
	}
	if len(response) == 0 {
		return Outcome{}
	}
	var answer events.DynamoDBEventResponse
	if err := json.Unmarshal(response, &answer); err != nil {
		return Outcome{Err: fmt.Errorf("answer of the function: %w", err)}
	}
	var outcome Outcome
	for _, failure := range answer.BatchItemFailures {
		outcome.Failed = append(outcome.Failed, failure.ItemIdentifier)
	}
	return outcome
}

// Decide says what to do after a batch had an outcome. It never reads a clock. The
// work it asks for ends: each step finishes records, makes batches smaller, or uses up
// a retry.
func Decide(batch Batch, outcome Outcome, limits Limits) Step {
	size := len(batch.Records)
	if outcome.Err == nil && len(outcome.Failed) == 0 {
		return Step{Done: size}
	}
	checkpoint, isKnown := lowestFailed(batch, outcome)
	switch {
	case isKnown && checkpoint > 0:
		return Step{Done: checkpoint, Next: []Batch{{batch.Records[checkpoint:], batch.Retries}}}
	case !isKnown && size > 1:
		half := size / 2
		return Step{Next: []Batch{{batch.Records[:half], batch.Retries}, {batch.Records[half:], batch.Retries}}}
	case batch.Retries < limits.Retries:
		return Step{Next: []Batch{{batch.Records, batch.Retries + 1}}}
	}
	return Step{Done: size, GivenUp: RetryAttemptsExhausted}
}

// lowestFailed returns the place of the first failed record. It is not known if the
// invocation failed, or if a returned number is not one of the batch: an empty one,
// for example, or an event id in its place (case G14).
func lowestFailed(batch Batch, outcome Outcome) (int, bool) {
	if outcome.Err != nil {
		return 0, false
	}
	lowest := len(batch.Records)
	for _, number := range outcome.Failed {
		place := slices.IndexFunc(batch.Records, func(r events.DynamoDBEventRecord) bool {
			return r.Change.SequenceNumber == number
		})
		if place < 0 {
			return 0, false
		}
		lowest = min(lowest, place)
	}
	return lowest, true
}

// DecideAge says what to do with a batch before it is delivered: nothing has to be done
// if no record of it is too old, and ok is true then. Records are in the order of their
// age, so the too old ones are at the front.
func DecideAge(batch Batch, limits Limits, now time.Time) (step Step, ok bool) {
	for step.Done < len(batch.Records) {
		written := batch.Records[step.Done].Change.ApproximateCreationDateTime
		if now.Sub(written.Time) <= limits.RecordAgeMax {
			break
		}
		step.Done++
	}
	if step.Done == 0 {
		return Step{}, true
	}
	step.GivenUp = RecordAgeExceeded
	if step.Done < len(batch.Records) {
		step.Next = []Batch{{batch.Records[step.Done:], batch.Retries}}
	}
	return step, false
}
