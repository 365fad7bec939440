package expiry

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/ledger"
)

// Sender puts messages into one queue. A Queue is one.
type Sender interface {
	// Send puts one message into the queue, kept back for delay, in whole seconds and at
	// most due.DelayMax. After an error the message may have been sent all the same, so that
	// it may be there twice when it is sent again.
	Send(ctx context.Context, body string, delay time.Duration) error
}

// QueueClient is the part of the SQS client that a Queue needs.
type QueueClient interface {
	SendMessage(ctx context.Context, in *sqs.SendMessageInput, options ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
}

var _ QueueClient = (*sqs.Client)(nil)

// Queue is one queue of SQS.
type Queue struct {
	client QueueClient
	url    string
}

var _ Sender = (*Queue)(nil)

// NewQueue returns the queue with this address.
func NewQueue(client QueueClient, url string) *Queue { return &Queue{client: client, url: url} }

// Send implements Sender, with one try: each caller has its own way to try again.
func (q *Queue) Send(ctx context.Context, body string, delay time.Duration) error {
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: aws.String(q.url), MessageBody: aws.String(body), DelaySeconds: int32(delay / time.Second),
	})
	if err != nil {
		return fmt.Errorf("send to the queue: %w", err)
	}
	return nil
}

// SweepCall is the body of a message that calls for another sweep: a sweep that has more
// work than it can do sends it to the due queue.
const SweepCall = `{"sweep":true}`

// HelpQueue calls helpers by messages in the due queue.
type HelpQueue struct {
	queue Sender
}

var _ Helpers = (*HelpQueue)(nil)

// NewHelpQueue returns a HelpQueue that sends to the due queue.
func NewHelpQueue(queue Sender) *HelpQueue { return &HelpQueue{queue} }

// Call implements Helpers. After an error some may have been called.
func (q *HelpQueue) Call(ctx context.Context, n int) error {
	for i := range n {
		if err := q.queue.Send(ctx, SweepCall, 0); err != nil {
			return fmt.Errorf("call helper %d of %d: %w", i+1, n, err)
		}
	}
	return nil
}

// messageBytesMax bounds a message that is read for what it is: an honest one has about a
// hundred.
const messageBytesMax = 1 << 10

// isSweepCall reports whether the body calls for a sweep.
func isSweepCall(body string) bool {
	var call struct {
		Sweep bool `json:"sweep"`
	}
	return len(body) <= messageBytesMax && json.Unmarshal([]byte(body), &call) == nil && call.Sweep
}

// parkedMessage tells people of a hold that is parked. It has no names and no secrets:
// whose hold it is, the ledger knows.
type parkedMessage struct {
	Hold     ledger.HoldID `json:"hold_id"`
	DueAt    string        `json:"due_at"` // in timeLayout
	Failures int           `json:"failures"`
	Code     ledger.Code   `json:"code"`
}

// timeLayout writes every time in the same number of characters.
const timeLayout = "2006-01-02T15:04:05.000Z"

// encode returns the body of the message.
func (m parkedMessage) encode() (string, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("message of a parked hold: %w", err)
	}
	return string(body), nil
}
