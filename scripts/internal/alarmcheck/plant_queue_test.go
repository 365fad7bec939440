package alarmcheck_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/scripts/internal/queuesource"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/topology"
)

var errQueueDown = errors.New("the queue does not answer")

// queues are the queues of the topology, by their address, which is their name.
type queues struct {
	clock *systemtest.Clock
	// mutex guards the calls, which a mapping makes at once.
	mutex sync.Mutex
	all   map[string]*queue
	// down are the queues that take nothing.
	down map[topology.Resource]bool
}

// queue is a standard queue of SQS: what is received is hidden for a while, and is a dead
// letter after it was received too often.
type queue struct {
	name        topology.Resource
	messages    []*message
	sent        int
	visibility  time.Duration
	receivesMax int
	dead        *queue
}

type message struct {
	id, body      string
	sent, visible time.Time
	receives      int
}

var _ queuesource.Queue = (*queues)(nil)

func newQueues(clock *systemtest.Clock) *queues {
	q := &queues{clock: clock, all: map[string]*queue{}, down: map[topology.Resource]bool{}}
	for _, resource := range topology.QueuesForPeople() {
		q.all[string(resource)] = &queue{name: resource}
	}
	for _, f := range topology.Functions() {
		if f.Queue != nil {
			q.all[string(f.Queue.Queue)] = &queue{
				name: f.Queue.Queue, visibility: f.Queue.VisibilityTimeout, receivesMax: f.Queue.ReceivesMax,
				dead: q.all[string(f.Queue.DeadLetters)],
			}
		}
	}
	return q
}

func (q *queues) of(resource topology.Resource) *queue { return q.all[string(resource)] }

// give puts a message into a queue. Runs that overlap give up at once.
func (q *queues) give(resource topology.Resource, body string) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.of(resource).put(q.clock.Now(), body, 0)
}

// holds reports whether there is a message in the queue.
func (q *queues) holds(resource topology.Resource) bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return len(q.of(resource).messages) > 0
}

func (q *queue) put(now time.Time, body string, delay time.Duration) *message {
	q.sent++
	m := &message{id: fmt.Sprintf("%s-%d", q.name, q.sent), body: body, sent: now, visible: now.Add(delay)}
	q.messages = append(q.messages, m)
	return m
}

// visible counts the messages that may be received, as ApproximateNumberOfMessagesVisible
// does.
func (q *queue) visible(now time.Time) int {
	count := 0
	for _, m := range q.messages {
		if !m.visible.After(now) {
			count++
		}
	}
	return count
}

// receive hands out messages, and moves those that were received too often away.
func (q *queue) receive(now time.Time, most int) []*message {
	var out []*message
	for _, m := range slices.Clone(q.messages) {
		if m.visible.After(now) || len(out) == most {
			continue
		}
		if q.dead != nil && m.receives == q.receivesMax {
			q.remove(m.id)
			m.visible = now
			q.dead.messages = append(q.dead.messages, m)
			continue
		}
		m.receives++
		m.visible = now.Add(q.visibility)
		out = append(out, m)
	}
	return out
}

func (q *queue) remove(id string) {
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return m.id == id })
}

// SendMessage is what functions do.
func (q *queues) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	to := q.all[aws.ToString(in.QueueUrl)]
	if q.down[to.name] {
		return nil, errQueueDown
	}
	m := to.put(q.clock.Now(), aws.ToString(in.MessageBody), time.Duration(in.DelaySeconds)*time.Second)
	return &sqs.SendMessageOutput{MessageId: aws.String(m.id)}, nil
}

// SendMessageBatch is what the outbox does.
func (q *queues) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	to := q.all[aws.ToString(in.QueueUrl)]
	if q.down[to.name] {
		return nil, errQueueDown
	}
	out := &sqs.SendMessageBatchOutput{}
	for _, entry := range in.Entries {
		m := to.put(q.clock.Now(), aws.ToString(entry.MessageBody), time.Duration(entry.DelaySeconds)*time.Second)
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: entry.Id, MessageId: aws.String(m.id)})
	}
	return out, nil
}

// ReceiveMessage is what the mapping does.
func (q *queues) ReceiveMessage(_ context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	out := &sqs.ReceiveMessageOutput{}
	for _, m := range q.all[aws.ToString(in.QueueUrl)].receive(q.clock.Now(), int(in.MaxNumberOfMessages)) {
		out.Messages = append(out.Messages, types.Message{
			MessageId: aws.String(m.id), ReceiptHandle: aws.String(m.id), Body: aws.String(m.body),
			Attributes: map[string]string{
				string(types.MessageSystemAttributeNameSentTimestamp):           strconv.FormatInt(m.sent.UnixMilli(), 10),
				string(types.MessageSystemAttributeNameApproximateReceiveCount): strconv.Itoa(m.receives),
			},
		})
	}
	return out, nil
}

// DeleteMessageBatch is what the mapping does with what is done.
func (q *queues) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	for _, entry := range in.Entries {
		q.all[aws.ToString(in.QueueUrl)].remove(aws.ToString(entry.ReceiptHandle))
	}
	return &sqs.DeleteMessageBatchOutput{}, nil
}

// ChangeMessageVisibilityBatch is what the mapping would do with what failed.
func (q *queues) ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return nil, errors.New("the deployed mapping leaves it to the queue when a message comes again")
}
