package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/shared/due"
)

const (
	// MessagesPerCallMax is the limit of one SendMessageBatch. Source:
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
	MessagesPerCallMax = 10
	// A call to the bus has no more entries than that, so its messages of one kind fit into
	// one call.
	_ = uint(MessagesPerCallMax - EntriesPerCallMax)
)

// Queue takes the messages that wake others. An sqs.Client is one.
type Queue interface {
	// SendMessageBatch answers without an error also when entries were refused: each entry
	// is named, by its id, as successful or as failed.
	SendMessageBatch(ctx context.Context, input *sqs.SendMessageBatchInput, options ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

// message is what a record has for a queue, besides its event for the bus. The zero value
// is none. Two messages that are equal say the same, and one of them is enough.
type message struct {
	queueURL string
	body     string
	// dueAt is until when the queue keeps it back, as far as it can; zero for not at all.
	dueAt time.Time
}

// effort bounds what is done to get the messages of one call to their queue.
type effort struct {
	triesMax int
	callFor  time.Duration // of one call to the queue
}

// tell sends the messages of call that of picks, each of them once in a batch. It returns
// one error for each record, nil where no message is missing.
func (d *delivery) tell(ctx context.Context, call []record, of func(record) message, bounds effort) []error {
	failures := make([]error, len(call))
	var wanted []message
	for _, r := range call {
		if m := of(r); m != (message{}) && !d.told[m] && !slices.Contains(wanted, m) {
			wanted = append(wanted, m)
		}
	}
	results := d.persist(ctx, len(wanted), bounds.triesMax, func(ctx context.Context, open []int) []error {
		return d.tellOnce(ctx, wanted, open, bounds.callFor)
	})
	for i, err := range results {
		if err == nil {
			d.told[wanted[i]] = true
			continue
		}
		for at, r := range call {
			if of(r) == wanted[i] {
				failures[at] = err
			}
		}
	}
	return failures
}

// tellOnce sends the open ones of the wanted messages, which are all for one queue, and
// returns an error for each of them, nil for one that the queue has taken.
func (d *delivery) tellOnce(ctx context.Context, wanted []message, open []int, callFor time.Duration) []error {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	now := d.ports.Clock.Now()
	entries := make([]types.SendMessageBatchRequestEntry, len(open))
	for i, of := range open {
		delay := due.Message{DueAt: wanted[of].dueAt}.Delay(now)
		entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(of)), MessageBody: aws.String(wanted[of].body), DelaySeconds: int32(delay / time.Second),
		}
	}
	output, err := d.ports.Queue.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{
		QueueUrl: aws.String(wanted[open[0]].queueURL), Entries: entries,
	})
	if err != nil {
		// The queue may have taken any of them. A message that comes twice does no harm.
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
