package outboxtest

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// CodeInvalidMessage refuses a message for good.
const CodeInvalidMessage = "InvalidMessageContents"

// The limits of SendMessageBatch, written down here a second time on purpose. Source:
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
const messagesMax = 10

var (
	entryIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)
	messagePattern = regexp.MustCompile(`^\{"reservation_id":"rsv_[0-9a-z]{26}"\}$`)
)

// Queue is the saga's queue. Its zero value takes everything that is right; it is safe
// for concurrent use.
type Queue struct {
	mutex      sync.Mutex
	calls      int
	bodies     []string
	violations []string

	refuse     func(body string) string
	down       bool
	loseNext   int
	silent     bool
	beforeCall func()
}

// Refuse makes the queue refuse each message for which code gives a code that is not "".
func (q *Queue) Refuse(code func(body string) string) { q.order(func() { q.refuse = code }) }

// Down makes every call fail with ErrDown, or ends that.
func (q *Queue) Down(down bool) { q.order(func() { q.down = down }) }

// LoseAnswers makes the next n calls take their messages and answer with ErrAnswerLost.
func (q *Queue) LoseAnswers(n int) { q.order(func() { q.loseNext = n }) }

// Silent makes the answers name no message, taken or not, or ends that.
func (q *Queue) Silent(silent bool) { q.order(func() { q.silent = silent }) }

// BeforeCall makes the queue call f at the beginning of every call.
func (q *Queue) BeforeCall(f func()) { q.order(func() { q.beforeCall = f }) }

func (q *Queue) order(f func()) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	f()
}

// Calls counts the calls that reached the queue.
func (q *Queue) Calls() int {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return q.calls
}

// Woken are the reservations of the messages that the queue has taken, in order.
func (q *Queue) Woken() []string {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	var out []string
	for _, body := range q.bodies {
		var message struct {
			Reservation string `json:"reservation_id"`
		}
		if err := json.Unmarshal([]byte(body), &message); err != nil {
			q.violations = append(q.violations, err.Error())
		}
		out = append(out, message.Reservation)
	}
	return out
}

// Violations say what no call should have contained.
func (q *Queue) Violations() []string {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return slices.Clone(q.violations)
}

// SendMessageBatch takes the messages as a real queue would, and obeys the orders given
// before.
func (q *Queue) SendMessageBatch(ctx context.Context, input *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	q.mutex.Lock()
	hook := q.beforeCall
	q.mutex.Unlock()
	if hook != nil {
		hook()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if q.down {
		return nil, ErrDown
	}
	q.calls++
	if faults := messageFaults(input); len(faults) > 0 {
		q.violations = append(q.violations, faults...)
		return nil, &smithy.GenericAPIError{Code: "BatchRequestInvalid", Message: faults[0], Fault: smithy.FaultClient}
	}
	output := &sqs.SendMessageBatchOutput{}
	for _, entry := range input.Entries {
		body, code := aws.ToString(entry.MessageBody), ""
		if q.refuse != nil {
			code = q.refuse(body)
		}
		if code != "" {
			output.Failed = append(output.Failed, types.BatchResultErrorEntry{Id: entry.Id, Code: aws.String(code), Message: aws.String("refused on order")})
			continue
		}
		q.bodies = append(q.bodies, body)
		output.Successful = append(output.Successful, types.SendMessageBatchResultEntry{
			Id: entry.Id, MessageId: aws.String(fmt.Sprintf("message-%d", len(q.bodies))),
		})
	}
	if q.loseNext > 0 {
		q.loseNext--
		return nil, ErrAnswerLost
	}
	if q.silent {
		return &sqs.SendMessageBatchOutput{}, nil
	}
	return output, nil
}

// messageFaults says what is wrong with a call.
func messageFaults(input *sqs.SendMessageBatchInput) []string {
	var faults []string
	if aws.ToString(input.QueueUrl) == "" {
		faults = append(faults, "a call without a queue")
	}
	if n := len(input.Entries); n < 1 || n > messagesMax {
		faults = append(faults, fmt.Sprintf("%d messages in one call", n))
	}
	ids, bodies := map[string]bool{}, map[string]bool{}
	for _, entry := range input.Entries {
		id, body := aws.ToString(entry.Id), aws.ToString(entry.MessageBody)
		if !entryIDPattern.MatchString(id) || ids[id] {
			faults = append(faults, fmt.Sprintf("the entry id %q is wrong or comes twice", id))
		}
		if !messagePattern.MatchString(body) || bodies[body] {
			faults = append(faults, fmt.Sprintf("the message %q is no wake-up, or comes twice", body))
		}
		ids[id], bodies[body] = true, true
	}
	return faults
}
