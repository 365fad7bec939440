package eventsource_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/scripts/internal/eventsource"
)

var (
	now    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	limits = eventsource.Limits{Retries: 2, RecordAgeMax: time.Hour}
)

// batch makes records with the sequence numbers first to last, all written now.
func batch(first, last, retries int) eventsource.Batch {
	made := eventsource.Batch{Retries: retries}
	for number := first; number <= last; number++ {
		made.Records = append(made.Records, events.DynamoDBEventRecord{
			EventID: fmt.Sprintf("id-%d", number),
			Change: events.DynamoDBStreamRecord{
				SequenceNumber:              fmt.Sprint(number),
				ApproximateCreationDateTime: events.SecondsEpochTime{Time: now},
			},
		})
	}
	return made
}

// describe writes a step as text, so that the table below can be read.
func describe(step eventsource.Step) string {
	text := fmt.Sprintf("done %d", step.Done)
	if step.GivenUp != "" {
		text += " given up " + string(step.GivenUp)
	}
	for _, next := range step.Next {
		first, last := next.Records[0], next.Records[len(next.Records)-1]
		text += fmt.Sprintf(", %s-%s retry %d", first.Change.SequenceNumber, last.Change.SequenceNumber, next.Retries)
	}
	return text
}

func TestDecide(t *testing.T) {
	failed := errors.New("the function failed")
	tests := []struct {
		name     string
		batch    eventsource.Batch
		response string
		err      error
		want     string
	}{
		{"empty list", batch(1, 10, 0), `{"batchItemFailures":[]}`, nil, "done 10"},
		{"null list", batch(1, 10, 0), `{"batchItemFailures":null}`, nil, "done 10"},
		{"empty object", batch(1, 10, 0), `{}`, nil, "done 10"},
		{"null", batch(1, 10, 0), `null`, nil, "done 10"},
		{"nothing", batch(1, 10, 0), ``, nil, "done 10"},

		{"one failed", batch(1, 10, 0), `{"batchItemFailures":[{"itemIdentifier":"4"}]}`, nil, "done 3, 4-10 retry 0"},
		{"the lowest counts", batch(1, 10, 0), `{"batchItemFailures":[{"itemIdentifier":"9"},{"itemIdentifier":"4"},{"itemIdentifier":"7"}]}`, nil, "done 3, 4-10 retry 0"},
		{"lowest by place, not as text", batch(8, 11, 0), `{"batchItemFailures":[{"itemIdentifier":"10"},{"itemIdentifier":"9"}]}`, nil, "done 1, 9-11 retry 0"},
		{"a split keeps the retries", batch(4, 10, 2), `{"batchItemFailures":[{"itemIdentifier":"10"}]}`, nil, "done 6, 10-10 retry 2"},
		{"the first failed", batch(4, 10, 0), `{"batchItemFailures":[{"itemIdentifier":"4"}]}`, nil, "done 0, 4-10 retry 1"},
		{"the first failed for the last time", batch(4, 10, 2), `{"batchItemFailures":[{"itemIdentifier":"4"}]}`, nil, "done 7 given up RetryAttemptsExhausted"},

		{"error", batch(1, 10, 0), ``, failed, "done 0, 1-5 retry 0, 6-10 retry 0"},
		{"error of an odd batch", batch(1, 3, 1), ``, failed, "done 0, 1-1 retry 1, 2-3 retry 1"},
		{"empty number", batch(1, 2, 0), `{"batchItemFailures":[{"itemIdentifier":""}]}`, nil, "done 0, 1-1 retry 0, 2-2 retry 0"},
		{"null number", batch(1, 2, 0), `{"batchItemFailures":[{"itemIdentifier":null}]}`, nil, "done 0, 1-1 retry 0, 2-2 retry 0"},
		{"misspelt key", batch(1, 2, 0), `{"batchItemFailures":[{"item":"2"}]}`, nil, "done 0, 1-1 retry 0, 2-2 retry 0"},
		{"event id in its place", batch(1, 2, 0), `{"batchItemFailures":[{"itemIdentifier":"id-2"}]}`, nil, "done 0, 1-1 retry 0, 2-2 retry 0"},
		{"one known, one not", batch(1, 2, 0), `{"batchItemFailures":[{"itemIdentifier":"2"},{"itemIdentifier":"3"}]}`, nil, "done 0, 1-1 retry 0, 2-2 retry 0"},
		{"not JSON", batch(1, 2, 0), `done`, nil, "done 0, 1-1 retry 0, 2-2 retry 0"},

		{"single record", batch(1, 1, 0), ``, failed, "done 0, 1-1 retry 1"},
		{"single record for the last time", batch(1, 1, 2), ``, failed, "done 1 given up RetryAttemptsExhausted"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			outcome := eventsource.ReadOutcome([]byte(test.response), test.err)
			if got := describe(eventsource.Decide(test.batch, outcome, limits)); got != test.want {
				t.Errorf("step = %q, want %q", got, test.want)
			}
		})
	}
}

func TestDecideAge(t *testing.T) {
	aged := func(ages ...time.Duration) eventsource.Batch {
		made := batch(1, len(ages), 1)
		for i, age := range ages {
			made.Records[i].Change.ApproximateCreationDateTime.Time = now.Add(-age)
		}
		return made
	}
	tests := []struct {
		name  string
		batch eventsource.Batch
		want  string
		ok    bool
	}{
		{"all fresh", aged(time.Hour, 0), "done 0", true},
		{"some too old", aged(2*time.Hour, time.Hour+time.Second, time.Hour, 0), "done 2 given up RecordAgeExceeded, 3-4 retry 1", false},
		{"all too old", aged(2*time.Hour, 2*time.Hour), "done 2 given up RecordAgeExceeded", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			step, ok := eventsource.DecideAge(test.batch, limits, now)
			if got := describe(step); got != test.want || ok != test.ok {
				t.Errorf("step = %q, %v; want %q, %v", got, ok, test.want, test.ok)
			}
		})
	}
}

// One record that can never be handled costs itself only, whatever its place, if the
// function fails on it; all others are delivered, in order.
func TestPoisonRecordIsIsolated(t *testing.T) {
	const size, stepsMax = 100, 1000
	for poison := 1; poison <= size; poison++ {
		var handled, givenUp []string
		pending := []eventsource.Batch{batch(1, size, 0)}
		for steps := 0; len(pending) > 0; steps++ {
			if steps == stepsMax {
				t.Fatalf("poison %d: no end after %d steps", poison, stepsMax)
			}
			current := pending[0]
			var err error
			for _, record := range current.Records {
				if record.Change.SequenceNumber == fmt.Sprint(poison) {
					err = errors.New("poison")
				}
			}
			step := eventsource.Decide(current, eventsource.ReadOutcome(nil, err), limits)
			for _, record := range current.Records[:step.Done] {
				if step.GivenUp != "" {
					givenUp = append(givenUp, record.Change.SequenceNumber)
				} else {
					handled = append(handled, record.Change.SequenceNumber)
				}
			}
			pending = append(append([]eventsource.Batch{}, step.Next...), pending[1:]...)
		}
		var want []string
		for number := 1; number <= size; number++ {
			if number != poison {
				want = append(want, fmt.Sprint(number))
			}
		}
		if strings.Join(handled, " ") != strings.Join(want, " ") || strings.Join(givenUp, " ") != fmt.Sprint(poison) {
			t.Errorf("poison %d: handled %v, given up %v", poison, handled, givenUp)
		}
	}
}
