package queuesource_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/scripts/internal/queuesource"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/topology"
)

const (
	hiddenFor = 6 * time.Minute
	// pollsMax ends a test whose messages never end.
	pollsMax = 100_000
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// message is a message of the fake queue.
type message struct {
	body      string
	visibleAt time.Time
	receives  int
}

// queue plays SQS by the test's clock. It ends the test's context when it is empty. A
// message's id is its body, and its handle names the receive, as an older one is no good.
type queue struct {
	mu       sync.Mutex
	clock    *systemtest.Clock
	end      context.CancelFunc
	messages []*message
	polls    int
	// failReceives and refuseDeletes are how many of the next calls go wrong.
	failReceives, refuseDeletes int
}

func (q *queue) handle(m *message) string { return fmt.Sprintf("%s/%d", m.body, m.receives) }

func (q *queue) ReceiveMessage(_ context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.polls++
	if len(q.messages) == 0 || q.polls > pollsMax {
		q.end()
	}
	if q.failReceives > 0 {
		q.failReceives--
		return nil, errors.New("told to fail")
	}
	now := q.clock.Now()
	out := &sqs.ReceiveMessageOutput{}
	for _, m := range q.messages {
		if len(out.Messages) == int(in.MaxNumberOfMessages) || m.visibleAt.After(now) {
			continue
		}
		m.receives++
		m.visibleAt = now.Add(time.Duration(in.VisibilityTimeout) * time.Second)
		out.Messages = append(out.Messages, types.Message{
			MessageId: aws.String(m.body), Body: aws.String(m.body), ReceiptHandle: aws.String(q.handle(m)),
			MD5OfBody: aws.String("md5"), Attributes: map[string]string{"ApproximateReceiveCount": fmt.Sprint(m.receives)},
		})
	}
	return out, nil
}

func (q *queue) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // as a client does
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	out := &sqs.DeleteMessageBatchOutput{}
	for _, entry := range in.Entries {
		if q.refuseDeletes > 0 {
			q.refuseDeletes--
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: entry.Id, Code: aws.String("InternalError")})
			continue
		}
		q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return q.handle(m) == aws.ToString(entry.ReceiptHandle) })
	}
	return out, nil
}

func (q *queue) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, entry := range in.Entries {
		for _, m := range q.messages {
			if q.handle(m) == aws.ToString(entry.ReceiptHandle) {
				m.visibleAt = q.clock.Now().Add(time.Duration(entry.VisibilityTimeout) * time.Second)
			}
		}
	}
	return &sqs.ChangeMessageVisibilityBatchOutput{}, nil
}

// world is a source, its queue, and what the function was given.
type world struct {
	t      *testing.T
	queue  *queue
	ctx    context.Context
	config queuesource.Config
}

// newWorld returns a world whose function answers by answer. One run at a time keeps the
// clock still while a run goes on.
func newWorld(t *testing.T, answer func(events.SQSEvent) (string, error), bodies ...string) *world {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	clock := systemtest.NewClock(start)
	q := &queue{clock: clock, end: end}
	for _, body := range bodies {
		q.messages = append(q.messages, &message{body: body})
	}
	return &world{t: t, queue: q, ctx: ctx, config: queuesource.Config{
		Queue: q, QueueURL: "http://queue", QueueARN: "arn:aws:sqs:us-east-1:000000000000:work", Region: "us-east-1",
		Trigger: topology.QueueTrigger{BatchMessagesMax: 10, VisibilityTimeout: hiddenFor, ReceivesMax: 10, ConcurrencyMax: 1},
		Invoke: func(_ context.Context, payload []byte) ([]byte, error) {
			var event events.SQSEvent
			if err := json.Unmarshal(payload, &event); err != nil {
				t.Errorf("event: %v", err)
			}
			text, err := answer(event)
			return []byte(text), err
		},
		Clock: clock, Log: slog.New(slog.DiscardHandler),
	}}
}

// run runs the source until the queue is empty.
func (w *world) run() {
	w.t.Helper()
	source, err := queuesource.New(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	source.Run(w.ctx)
	if w.queue.polls > pollsMax {
		w.t.Errorf("%d messages are left: %v", len(w.queue.messages), w.queue.messages)
	}
}

// told is a delivery of a message, and when it was.
type told map[string][]time.Duration

func (d told) note(event events.SQSEvent, clock *systemtest.Clock) {
	for _, record := range event.Records {
		d[record.Body] = append(d[record.Body], clock.Now().Sub(start))
	}
}

func (d told) counts() map[string]int {
	counts := map[string]int{}
	for body, times := range d {
		counts[body] = len(times)
	}
	return counts
}

// A message that failed comes again, alone, and not before its time.
func TestOnlyWhatFailedComesAgain(t *testing.T) {
	for _, retryAfter := range []time.Duration{0, 2 * time.Second} {
		seen := told{}
		var w *world
		w = newWorld(t, func(event events.SQSEvent) (string, error) {
			seen.note(event, w.queue.clock)
			if len(seen["b"]) == 1 {
				return `{"batchItemFailures":[{"itemIdentifier":"b"}]}`, nil
			}
			return `{"batchItemFailures":[]}`, nil
		}, "a", "b", "c")
		w.config.RetryAfter = retryAfter
		w.run()
		if want := map[string]int{"a": 1, "b": 2, "c": 1}; !maps.Equal(seen.counts(), want) {
			t.Errorf("deliveries %v, want %v", seen.counts(), want)
		}
		hidden := retryAfter
		if hidden == 0 {
			hidden = hiddenFor
		}
		if waited := seen["b"][1] - seen["b"][0]; waited < hidden || waited > hidden+time.Second {
			t.Errorf("b came again after %s, want %s", waited, hidden)
		}
	}
}

func TestAWrongAnswerBringsTheBatchBack(t *testing.T) {
	for name, wrong := range map[string]func() (string, error){
		"an error":           func() (string, error) { return "", errors.New("told to fail") },
		"no JSON":            func() (string, error) { return `{"batchItemFailures":`, nil },
		"an unknown message": func() (string, error) { return `{"batchItemFailures":[{"itemIdentifier":"z"}]}`, nil },
	} {
		seen := told{}
		var w *world
		w = newWorld(t, func(event events.SQSEvent) (string, error) {
			seen.note(event, w.queue.clock)
			if len(seen["a"]) == 1 {
				return wrong()
			}
			return `{}`, nil
		}, "a", "b")
		w.run()
		if want := map[string]int{"a": 2, "b": 2}; !maps.Equal(seen.counts(), want) {
			t.Errorf("%s: deliveries %v, want %v", name, seen.counts(), want)
		}
	}
}

func TestBatchesAreBounded(t *testing.T) {
	var bodies []string
	for n := range 25 {
		bodies = append(bodies, fmt.Sprintf("m%d", n))
	}
	var sizes []int
	w := newWorld(t, func(event events.SQSEvent) (string, error) {
		sizes = append(sizes, len(event.Records))
		return ``, nil
	}, bodies...)
	w.run()
	if want := []int{10, 10, 5}; !slices.Equal(sizes, want) {
		t.Errorf("batches of %v, want %v", sizes, want)
	}
}

// As many runs at once as are allowed, and no more.
func TestRunsAtOnceAreBounded(t *testing.T) {
	const atOnce, all = 3, 12
	var bodies []string
	for n := range all {
		bodies = append(bodies, fmt.Sprintf("m%d", n))
	}
	var running, most atomic.Int64
	var full sync.WaitGroup
	full.Add(atOnce)
	var first atomic.Int64
	w := newWorld(t, func(events.SQSEvent) (string, error) {
		now := running.Add(1)
		for {
			seen := most.Load()
			if now <= seen || most.CompareAndSwap(seen, now) {
				break
			}
		}
		if first.Add(1) <= atOnce {
			full.Done()
			full.Wait() // hangs if fewer run at once
		}
		running.Add(-1)
		return ``, nil
	}, bodies...)
	w.config.Trigger.BatchMessagesMax, w.config.Trigger.ConcurrencyMax = 1, atOnce
	w.run()
	// A message may come again while its run is being taken off the queue.
	if most.Load() != atOnce || first.Load() < all {
		t.Errorf("%d runs at once, %d in all; want %d and at least %d", most.Load(), first.Load(), atOnce, all)
	}
}

// What is done is deleted though the source is about to end; a run that was cut short is
// not done.
func TestWhatIsDoneAtTheEndDoesNotComeAgain(t *testing.T) {
	for _, isDone := range []bool{true, false} {
		var w *world
		w = newWorld(t, func(events.SQSEvent) (string, error) {
			w.queue.end()
			if isDone {
				return ``, nil
			}
			return ``, context.Canceled
		}, "a")
		w.run()
		if left := len(w.queue.messages); (left == 0) != isDone {
			t.Errorf("the run is done: %t; %d messages are left", isDone, left)
		}
	}
}

// A queue that can't be read is asked again, and what could not be deleted comes again.
func TestFailuresOfTheQueueCostTimeOnly(t *testing.T) {
	seen := told{}
	var w *world
	w = newWorld(t, func(event events.SQSEvent) (string, error) {
		seen.note(event, w.queue.clock)
		return ``, nil
	}, "a")
	w.queue.failReceives, w.queue.refuseDeletes = 3, 1
	w.run()
	if len(seen["a"]) != 2 || seen["a"][0] < 3*time.Second || seen["a"][0] > 4*time.Second {
		t.Errorf("a came at %v; want twice, and not before three waits", seen["a"])
	}
}

// The event as Lambda writes it, from its documentation:
// https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html
func TestTheEventIsThatOfLambda(t *testing.T) {
	w := newWorld(t, nil, "a")
	var payload string
	w.config.Invoke = func(_ context.Context, event []byte) ([]byte, error) {
		payload = string(event)
		return nil, nil
	}
	w.run()
	want := `{"Records":[{"messageId":"a","receiptHandle":"a/1","body":"a","md5OfBody":"md5","md5OfMessageAttributes":"",` +
		`"attributes":{"ApproximateReceiveCount":"1"},"messageAttributes":{},` +
		`"eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:work","eventSource":"aws:sqs","awsRegion":"us-east-1"}]}`
	if payload != want {
		t.Errorf("event\n%s\nwant\n%s", payload, want)
	}
}

func TestWrongConfigurationsAreRefused(t *testing.T) {
	for want, change := range map[string]func(*queuesource.Config){
		"batches":       func(c *queuesource.Config) { c.Trigger.BatchMessagesMax = 11 },
		"want 1 to":     func(c *queuesource.Config) { c.Trigger.BatchMessagesMax = 0 },
		"no run":        func(c *queuesource.Config) { c.Trigger.ConcurrencyMax = 0 },
		"must be":       func(c *queuesource.Config) { c.Trigger.VisibilityTimeout = 0 },
		"whole seconds": func(c *queuesource.Config) { c.RetryAfter = 1500 * time.Millisecond },
		"for -1s":       func(c *queuesource.Config) { c.RetryAfter = -time.Second },
	} {
		config := newWorld(t, nil).config
		change(&config)
		if _, err := queuesource.New(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not tell %q", err, want)
		}
	}
}
