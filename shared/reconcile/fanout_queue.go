package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// messagesMax is the most that SQS takes in one call:
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
const messagesMax = 10

// QueueClient is the part of the SQS client that a TaskQueue needs.
type QueueClient interface {
	SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, options ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
}

var _ QueueClient = (*sqs.Client)(nil)

// TaskQueue sends the parts of audits to whoever does them.
type TaskQueue struct {
	client QueueClient
	url    string
}

// NewTaskQueue returns the queue with that address.
func NewTaskQueue(client QueueClient, url string) *TaskQueue { return &TaskQueue{client, url} }

// Send sends the tasks, with one try. After an error some of them may have been sent, which
// does no harm: the next tick sends those again that are not done.
func (q *TaskQueue) Send(ctx context.Context, tasks []Task) error {
	for batch := range slices.Chunk(tasks, messagesMax) {
		if err := q.send(ctx, batch); err != nil {
			return fmt.Errorf("send to the audit's queue: %w", err)
		}
	}
	return nil
}

func (q *TaskQueue) send(ctx context.Context, batch []Task) error {
	entries := make([]types.SendMessageBatchRequestEntry, len(batch))
	for i, task := range batch {
		body, err := json.Marshal(task)
		if err != nil {
			return err
		}
		entries[i] = types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body))}
	}
	out, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: aws.String(q.url), Entries: entries})
	if err != nil {
		return err
	}
	// A call that succeeds may have refused some of its messages.
	var refused []error
	for _, entry := range out.Failed {
		refused = append(refused, fmt.Errorf("message %s: %s: %s", aws.ToString(entry.Id), aws.ToString(entry.Code), aws.ToString(entry.Message)))
	}
	return errors.Join(refused...)
}
