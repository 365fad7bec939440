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
	wakeUpPattern  = regexp.MustCompile(`^\{"reservation_id":"rsv_[0-9a-z]{26}"\}$`)
	duePattern     = regexp.MustCompile(`^\{"hold_id":"hold_[0-9a-z]{26}","due_at_ms":[1-9][0-9]*\}$`)
)

// delaySecondsMax is the longest that SQS keeps a message back. Source:
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
const delaySecondsMax = 900

// Message is a message that the queue has taken.
type Message struct {
	QueueURL     string
	Body         string
	DelaySeconds int
}

// Queue is the queues of the relay, under one roof as with an SQS client: the saga's, and
// that of due messages. Its zero value takes everything that is right; it is safe for
// concurrent use.
type Queue struct {
	mutex      sync.Mutex
	calls      int
	messages   []Message
	violations []string

	refuse     func(body string) string
	down       bool
	downAt     map[string]bool
	loseNext   int
	silent     bool
	beforeCall func()
}

// Refuse makes the queue refuse each message for which code gives a code that is not "".
func (q *Queue) Refuse(code func(body string) string) { q.order(func() { q.refuse = code }) }

// Down makes every call fail with ErrDown, or ends that.
func (q *Queue) Down(down bool) { q.order(func() { q.down = down }) }

// DownAt makes every call to one queue fail with ErrDown, or ends that.
func (q *Queue) DownAt(queueURL string, down bool) {
	q.order(func() {
		if q.downAt == nil {
			q.downAt = map[string]bool{}
		}
		q.downAt[queueURL] = down
	})
}

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

// Messages are what the queue has taken, in order.
func (q *Queue) Messages() []Message {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return slices.Clone(q.messages)
}

// Woken are the reservations of the wake-ups that the queue has taken, in order.
func (q *Queue) Woken() []string {
	var out []string
	for _, m := range q.Messages() {
		var wakeUp struct {
			Reservation string `json:"reservation_id"`
		}
		if err := json.Unmarshal([]byte(m.Body), &wakeUp); err == nil && wakeUp.Reservation != "" {
			out = append(out, wakeUp.Reservation)
		}
	}
	return out
}

// Due are the due messages that the queue has taken, in order.
func (q *Queue) Due() []Message {
	return slices.DeleteFunc(q.Messages(), func(m Message) bool { return !duePattern.MatchString(m.Body) })
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
	if q.down || q.downAt[aws.ToString(input.QueueUrl)] {
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
		q.messages = append(q.messages, Message{aws.ToString(input.QueueUrl), body, int(entry.DelaySeconds)})
		output.Successful = append(output.Successful, types.SendMessageBatchResultEntry{
			Id: entry.Id, MessageId: aws.String(fmt.Sprintf("message-%d", len(q.messages))),
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
	ids, bodies, wakeUps := map[string]bool{}, map[string]bool{}, 0
	for _, entry := range input.Entries {
		id, body := aws.ToString(entry.Id), aws.ToString(entry.MessageBody)
		if !entryIDPattern.MatchString(id) || ids[id] {
			faults = append(faults, fmt.Sprintf("the entry id %q is wrong or comes twice", id))
		}
		isWakeUp := wakeUpPattern.MatchString(body)
		if !isWakeUp && !duePattern.MatchString(body) || bodies[body] {
			faults = append(faults, fmt.Sprintf("the message %q is no wake-up and no due message, or comes twice", body))
		}
		if delay := entry.DelaySeconds; delay < 0 || delay > delaySecondsMax || isWakeUp && delay > 0 {
			faults = append(faults, fmt.Sprintf("the message %q is kept back for %d s", body, delay))
		}
		if isWakeUp {
			wakeUps++
		}
		ids[id], bodies[body] = true, true
	}
	if wakeUps > 0 && wakeUps < len(input.Entries) {
		faults = append(faults, "wake-ups and due messages in one call to one queue")
	}
	return faults
}
