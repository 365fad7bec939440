package queuesource_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/scripts/internal/cloud"
	"holdfast/scripts/internal/queuesource"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

// arrivalMax bounds the wait for a message.
const arrivalMax = 60 * time.Second

// On the queue that a local run uses: a message that always fails is tried as often as the
// queue allows and ends as a dead letter, and the others of its batch are done once.
func TestPoisonEndsAsADeadLetter(t *testing.T) {
	const receives = 3
	program, err := cloud.Build(t.Context(), "../../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := cloud.Start(t.Context(), program, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	dead, err := c.CreateQueue(t.Context(), "dead")
	if err != nil {
		t.Fatal(err)
	}
	work, err := c.CreateQueueInto(t.Context(), "work", dead, receives)
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"good", "poison", "fine"} {
		if err := c.Send(t.Context(), work, body); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	tries := map[string][]string{} // by body: the receive counts
	source, err := queuesource.New(queuesource.Config{
		Queue: sqs.NewFromConfig(c.AWSConfig()), QueueURL: work.URL, QueueARN: work.ARN, Region: cloud.Region,
		Trigger:    topology.QueueTrigger{BatchMessagesMax: 10, VisibilityTimeout: time.Hour, ReceivesMax: receives, ConcurrencyMax: 2},
		RetryAfter: time.Second,
		Invoke: func(_ context.Context, payload []byte) ([]byte, error) {
			var event events.SQSEvent
			if err := json.Unmarshal(payload, &event); err != nil {
				return nil, err
			}
			answer := events.SQSEventResponse{}
			mu.Lock()
			defer mu.Unlock()
			for _, record := range event.Records {
				tries[record.Body] = append(tries[record.Body], record.Attributes["ApproximateReceiveCount"])
				if record.Body == "poison" {
					answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
				}
			}
			return json.Marshal(answer)
		},
		Clock: system.RealClock{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { source.Run(ctx) })
	letters := make(chan string, 1)
	running.Go(func() {
		c.Consume(ctx, dead, slog.New(slog.DiscardHandler), func(_ context.Context, body string) error {
			letters <- body
			return nil
		})
	})
	select {
	case body := <-letters:
		if body != "poison" {
			t.Errorf("dead letter %q, want poison", body)
		}
	case <-time.After(arrivalMax):
		t.Error("no dead letter came")
	}
	end()
	running.Wait()
	if len(tries["good"]) != 1 || len(tries["fine"]) != 1 || len(tries["poison"]) != receives || tries["poison"][receives-1] != "3" {
		t.Errorf("tries %v; want one of each, and %d of poison with its count", tries, receives)
	}
	if left, err := c.Waiting(t.Context(), work); err != nil || left != 0 {
		t.Errorf("%d messages wait, %v; want none", left, err)
	}
}
