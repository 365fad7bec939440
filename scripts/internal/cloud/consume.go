package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

const (
	// messagesMax is SQS's limit of one receive.
	messagesMax = 10
	// pollSeconds is short because the emulator does not wake a long poll when a
	// message becomes visible again.
	pollSeconds = 1
	// receiveRetryWait is the wait after a receive that failed.
	receiveRetryWait = time.Second
)

// Event is one event as EventBridge gives it to a target.
type Event struct {
	ID         string          `json:"id"`
	Source     string          `json:"source"`
	DetailType string          `json:"detail-type"`
	Time       time.Time       `json:"time"`
	Detail     json.RawMessage `json:"detail"`
}

// ReadEvent reads an event from the body of a message.
func ReadEvent(body string) (Event, error) {
	var event Event
	if err := json.Unmarshal([]byte(body), &event); err != nil {
		return Event{}, fmt.Errorf("event: %w", err)
	}
	return event, nil
}

// Send puts one message into a queue.
func (c *Cloud) Send(ctx context.Context, queue Queue, body string) error {
	_, err := c.queues.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String(queue.URL), MessageBody: aws.String(body)})
	if err != nil {
		return fmt.Errorf("send to queue %s: %w", queue.URL, err)
	}
	return nil
}

// Waiting counts the messages that are in the queue, those that are hidden for a while
// included. On AWS it is a good guess; here it is exact.
func (c *Cloud) Waiting(ctx context.Context, queue Queue) (int, error) {
	names := []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages,
		types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		types.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	}
	out, err := c.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: aws.String(queue.URL), AttributeNames: names})
	if err != nil {
		return 0, fmt.Errorf("count the messages of queue %s: %w", queue.URL, err)
	}
	total := 0
	for _, name := range names {
		count, err := strconv.Atoi(out.Attributes[string(name)])
		if err != nil {
			return 0, fmt.Errorf("count the messages of queue %s: %s: %w", queue.URL, name, err)
		}
		total += count
	}
	return total, nil
}

// Take takes every message that is not hidden out of the queue, and returns their bodies.
func (c *Cloud) Take(ctx context.Context, queue Queue) ([]string, error) {
	var bodies []string
	for {
		out, err := c.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(queue.URL), MaxNumberOfMessages: messagesMax, VisibilityTimeout: int32(visibility / time.Second),
		})
		if err != nil {
			return nil, fmt.Errorf("receive from queue %s: %w", queue.URL, err)
		}
		if len(out.Messages) == 0 {
			return bodies, nil
		}
		for _, message := range out.Messages {
			bodies = append(bodies, aws.ToString(message.Body))
			_, err := c.queues.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: aws.String(queue.URL), ReceiptHandle: message.ReceiptHandle})
			if err != nil {
				return nil, fmt.Errorf("delete from queue %s: %w", queue.URL, err)
			}
		}
	}
}

// Consume hands the body of every message to handle until the context ends. A message
// that was handled is deleted. One whose handling failed is given back at once, and
// after receivesMax tries moves to the dead-letter queue if there is one. Messages come
// at least once and in no certain order, as from SQS.
func (c *Cloud) Consume(ctx context.Context, queue Queue, log *slog.Logger, handle func(context.Context, string) error) {
	for ctx.Err() == nil {
		out, err := c.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(queue.URL), MaxNumberOfMessages: messagesMax,
			WaitTimeSeconds: pollSeconds, VisibilityTimeout: int32(visibility / time.Second),
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			log.Warn("queue cannot be read; trying again", "queue", queue.URL, "error", err)
			select {
			case <-time.After(receiveRetryWait):
			case <-ctx.Done():
			}
			continue
		}
		for _, message := range out.Messages {
			if err := c.settle(ctx, queue, message, handle); err != nil && ctx.Err() == nil {
				log.Warn("message failed", "queue", queue.URL, "message_id", aws.ToString(message.MessageId), "error", err)
			}
		}
	}
}

// settle handles one message and deletes it, or gives it back. Whatever fails on the
// way, the message only comes again, as it may at any time.
func (c *Cloud) settle(ctx context.Context, queue Queue, message types.Message, handle func(context.Context, string) error) error {
	failure := handle(ctx, aws.ToString(message.Body))
	if failure != nil {
		_, err := c.queues.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
			QueueUrl: aws.String(queue.URL), ReceiptHandle: message.ReceiptHandle, VisibilityTimeout: 0,
		})
		return errors.Join(failure, err)
	}
	_, err := c.queues.DeleteMessage(ctx, &sqs.DeleteMessageInput{
		QueueUrl: aws.String(queue.URL), ReceiptHandle: message.ReceiptHandle,
	})
	return err
}
