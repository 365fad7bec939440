package queuesource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/shared/system"
	"holdfast/shared/topology"
)

const (
	// messagesMax is SQS's limit of one receive:
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
	messagesMax = 10
	// pollEvery is the pause after a receive that brought nothing. It is short and the
	// receives do not wait, because the emulator does not wake a waiting receive when a
	// message becomes visible again.
	pollEvery = 50 * time.Millisecond
	// retryWait is the pause after a receive that failed.
	retryWait = time.Second
	// settleMax bounds the calls after a run. They are made also when the Source is about
	// to end: what is done must not come again for that.
	settleMax = 5 * time.Second
)

// Queue has the calls of SQS that a Source makes. *sqs.Client is one.
type Queue interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)
}

// Config describes one Source. Everything but RetryAfter is needed.
type Config struct {
	Queue                      Queue
	QueueURL, QueueARN, Region string
	Trigger                    topology.QueueTrigger
	// RetryAfter is how long a message stays hidden after a run that failed at it, in whole
	// seconds. Zero leaves it to the trigger's VisibilityTimeout, as deployed.
	RetryAfter time.Duration
	// Invoke gives an event to the function and returns its answer.
	Invoke func(ctx context.Context, payload []byte) ([]byte, error)
	// Measured is told each number that SQS would count of the queue; nil means nobody is.
	Measured func(metric Metric, value float64)
	Clock    system.Clock
	Log      *slog.Logger
}

// Source feeds one function from one queue.
type Source struct {
	config Config
}

// New checks the trigger.
func New(config Config) (*Source, error) {
	trigger := config.Trigger
	if trigger.BatchMessagesMax < 1 || trigger.BatchMessagesMax > messagesMax {
		return nil, fmt.Errorf("queue source: batches of %d messages, want 1 to %d", trigger.BatchMessagesMax, messagesMax)
	}
	if trigger.ConcurrencyMax < 1 {
		return nil, errors.New("queue source: no run at all is allowed")
	}
	for _, hidden := range []time.Duration{trigger.VisibilityTimeout, config.RetryAfter} {
		if hidden < 0 || hidden%time.Second != 0 {
			return nil, fmt.Errorf("queue source: a message can be hidden for whole seconds, not for %s", hidden)
		}
	}
	if trigger.VisibilityTimeout == 0 {
		return nil, errors.New("queue source: a message that is worked on must be hidden")
	}
	if config.Measured == nil {
		config.Measured = func(Metric, float64) {}
	}
	return &Source{config}, nil
}

// Run receives messages and gives them to the function until the context ends, and returns
// when no run is left. A run that the context has cut short is treated as one that failed.
func (s *Source) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	free := make(chan struct{}, s.config.Trigger.ConcurrencyMax)
	for {
		select {
		case free <- struct{}{}:
		case <-ctx.Done():
			return
		}
		batch, pause := s.receive(ctx)
		if len(batch) == 0 {
			<-free
			if s.config.Clock.Sleep(ctx, pause) != nil {
				return
			}
			continue
		}
		s.measure(batch)
		running.Go(func() {
			defer func() { <-free }()
			s.work(ctx, batch)
		})
	}
}

// receive returns the next batch, or how long to wait before asking again.
func (s *Source) receive(ctx context.Context) (batch []types.Message, pause time.Duration) {
	out, err := s.config.Queue.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: aws.String(s.config.QueueURL), MaxNumberOfMessages: int32(s.config.Trigger.BatchMessagesMax),
		VisibilityTimeout:           int32(s.config.Trigger.VisibilityTimeout / time.Second),
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		MessageAttributeNames:       []string{"All"},
	})
	if err != nil {
		if ctx.Err() == nil {
			s.config.Log.Warn("queue cannot be read; trying again", "queue", s.config.QueueURL, "error", err)
		}
		return nil, retryWait
	}
	return out.Messages, pollEvery
}

// work gives one batch to the function, and deletes what is done. Whatever fails on the
// way, messages only come again, as they may at any time.
func (s *Source) work(ctx context.Context, batch []types.Message) {
	ids := make([]string, len(batch))
	for i, message := range batch {
		ids[i] = aws.ToString(message.MessageId)
	}
	var answer []byte
	payload, err := json.Marshal(s.event(batch))
	if err == nil {
		answer, err = s.config.Invoke(ctx, payload)
	}
	failed, err := Failed(ids, answer, err)
	switch {
	case ctx.Err() != nil: // the run was cut short, or nobody waits for its end
	case err != nil:
		s.config.Log.Warn("a run failed at all of its messages", "queue", s.config.QueueURL, "message_ids", failed, "error", err)
	case len(failed) > 0:
		s.config.Log.Warn("messages failed", "queue", s.config.QueueURL, "message_ids", failed)
	}
	settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleMax)
	defer cancel()
	isFailed := func(m types.Message) bool { return slices.Contains(failed, aws.ToString(m.MessageId)) }
	again := slices.DeleteFunc(slices.Clone(batch), func(m types.Message) bool { return !isFailed(m) })
	done := slices.DeleteFunc(slices.Clone(batch), isFailed)
	if err := errors.Join(s.remove(settling, done), s.giveBack(settling, again)); err != nil {
		s.config.Log.Warn("messages of a finished run come again when they are visible again", "queue", s.config.QueueURL, "error", err)
	}
}

func (s *Source) remove(ctx context.Context, done []types.Message) error {
	if len(done) == 0 {
		return nil
	}
	entries := make([]types.DeleteMessageBatchRequestEntry, len(done))
	for i, message := range done {
		entries[i] = types.DeleteMessageBatchRequestEntry{Id: message.MessageId, ReceiptHandle: message.ReceiptHandle}
	}
	out, err := s.config.Queue.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: aws.String(s.config.QueueURL), Entries: entries})
	if err != nil {
		return fmt.Errorf("delete messages: %w", err)
	}
	return refused("delete", out.Failed)
}

// giveBack lets failed messages come again after RetryAfter.
func (s *Source) giveBack(ctx context.Context, again []types.Message) error {
	if len(again) == 0 || s.config.RetryAfter == 0 {
		return nil
	}
	entries := make([]types.ChangeMessageVisibilityBatchRequestEntry, len(again))
	for i, message := range again {
		entries[i] = types.ChangeMessageVisibilityBatchRequestEntry{
			Id: message.MessageId, ReceiptHandle: message.ReceiptHandle, VisibilityTimeout: int32(s.config.RetryAfter / time.Second),
		}
	}
	out, err := s.config.Queue.ChangeMessageVisibilityBatch(ctx, &sqs.ChangeMessageVisibilityBatchInput{
		QueueUrl: aws.String(s.config.QueueURL), Entries: entries,
	})
	if err != nil {
		return fmt.Errorf("give messages back: %w", err)
	}
	return refused("give back", out.Failed)
}

// refused is the error of a batch call of which only some entries were carried out.
func refused(call string, entries []types.BatchResultErrorEntry) error {
	var failures []error
	for _, entry := range entries {
		failures = append(failures, fmt.Errorf("%s message %s: %s: %s", call, aws.ToString(entry.Id), aws.ToString(entry.Code), aws.ToString(entry.Message)))
	}
	return errors.Join(failures...)
}
