package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/shared/topology"
)

const (
	queueDelayMin, queueDelayMax = 5 * time.Millisecond, 60 * time.Millisecond
	// queueHidesMax is how long a message that was handed over is hidden at most. At the
	// least it is the function's time-out.
	queueHidesMax = 2 * time.Minute
	// queueKeepsBackMax is the longest that a queue keeps a new message back.
	queueKeepsBackMax = 900 * time.Second
)

// The addresses of the queues.
const (
	sagaQueueURL         = "https://sqs.invalid/saga"
	dueQueueURL          = "https://sqs.invalid/due"
	expiryFailedQueueURL = "https://sqs.invalid/expiry-failed"
)

var (
	errQueueRefused = errors.New("the queue does not take it now (simulated)")
	errDelay        = errors.New("a message can be kept back for 0 to 900 seconds")
)

// queue is a standard SQS queue with the mapping that feeds a function from it: at least
// once, in any order, in batches, and again what failed or was not told to be done, until
// it was received too often. A queue without consumers is read by people.
type queue struct {
	world     *world
	name      string
	trigger   topology.QueueTrigger
	consumers []*instance
	handle    func(to *instance, event json.RawMessage) (events.SQSEventResponse, error)
	// visibility and receivesMax are the queue's, or harder.
	visibility  time.Duration
	receivesMax int
	// loses says that one message in n that it has taken vanishes, for what another way makes
	// good, and off that it takes none.
	loses *int
	off   bool

	waiting []*message // in the order in which they came
	dead    []*message
	sent    int
	batches int
	busy    int // batches that are being worked on
}

// message is a message in the queue.
type message struct {
	name     string
	id       string
	body     string
	visible  time.Time
	receives int
	failedAt time.Time // when a worker last did not do it
}

func (m *message) String() string { return m.name + " " + m.body }

// consume lets the instances of a function consume the queue. It hides messages for less long than the
// topology says, and may give them up earlier: what is right for a queue must not rest on
// its patience, and a history is short.
func (q *queue) consume(consumers []*instance, handle func(*instance, json.RawMessage) (events.SQSEventResponse, error)) {
	function := consumers[0].function
	if function.Queue == nil {
		panic("sim: the topology has no queue for function " + string(function.Name))
	}
	d := q.world.dice("terms of the " + q.name + " queue")
	q.trigger, q.consumers, q.handle = *function.Queue, consumers, handle
	q.visibility = d.between(function.Timeout, queueHidesMax)
	q.receivesMax = pick(d, []int{2, 4, q.trigger.ReceivesMax})
}

// put takes a message in, to be shown after a delay, and returns its id.
func (q *queue) put(body string, delay time.Duration) string {
	q.sent++
	m := &message{name: fmt.Sprintf("message %d of the %s queue", q.sent, q.name), id: "message-" + strconv.Itoa(q.sent), body: body}
	d := q.world.dice(m.name)
	delay += d.between(queueDelayMin, queueDelayMax) + d.between(0, q.world.faults.QueueLateMax)
	lost := q.loses != nil && d.chance(*q.loses)
	q.world.trace.add("%s is taken; lost: %t", m, lost)
	if !lost {
		q.waiting = append(q.waiting, m)
		q.show(m, delay)
	}
	return m.id
}

// show makes the message visible after a while.
func (q *queue) show(m *message, after time.Duration) {
	m.visible = q.world.kernel.now.Add(after)
	q.world.kernel.after(after, q.poll)
}

// poll hands visible messages to the function, unless enough is being worked on.
func (q *queue) poll() {
	if q.busy >= q.trigger.ConcurrencyMax {
		return // the end of a batch polls, if anybody does
	}
	name := fmt.Sprintf("batch %d of the %s queue", q.batches+1, q.name)
	d := q.world.dice(name)
	most := 1 + d.IntN(q.trigger.BatchMessagesMax)
	var batch []*message
	for _, m := range q.waiting {
		if len(batch) < most && !m.visible.After(q.world.kernel.now) {
			batch = append(batch, m)
		}
	}
	if len(batch) == 0 {
		return
	}
	q.batches++
	q.busy++
	event := events.SQSEvent{}
	for _, m := range batch {
		m.receives++
		m.visible = q.world.kernel.now.Add(q.visibility)
		event.Records = append(event.Records, events.SQSMessage{
			MessageId: m.id, ReceiptHandle: fmt.Sprintf("receipt of %s-%d", m.id, m.receives),
			Body: m.body, EventSource: "aws:sqs", Attributes: map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.receives)},
		})
		q.world.trace.add("%s: %s, for the %d. time", name, m, m.receives)
	}
	d.Shuffle(len(event.Records), func(i, j int) { event.Records[i], event.Records[j] = event.Records[j], event.Records[i] })
	to, body := pick(d, q.consumers), json.RawMessage(mustJSON(event))
	response, err := events.SQSEventResponse{}, error(nil)
	to.invoke(name, func() {
		response, err = q.handle(to, body)
	}, func(completed bool) { q.settle(name, batch, completed && err == nil, response) })
	q.world.kernel.after(0, q.poll)
}

// settle deletes what is done, unless it comes again all the same, and lets the rest come
// again when its time is up, or gives it up.
func (q *queue) settle(name string, batch []*message, handled bool, response events.SQSEventResponse) {
	w := q.world
	q.busy--
	d := w.dice("after " + name)
	for _, m := range batch {
		failed := !handled || slices.ContainsFunc(response.BatchItemFailures, func(f events.SQSBatchItemFailure) bool {
			return f.ItemIdentifier == m.id
		})
		switch {
		case failed && m.receives >= q.receivesMax:
			w.trace.add("%s: %s is given up", name, m)
			m.failedAt = w.kernel.now
			q.waiting = remove(q.waiting, m)
			q.dead = append(q.dead, m)
		case failed:
			w.trace.add("%s: %s is not done", name, m)
			m.failedAt = w.kernel.now
			w.kernel.after(m.visible.Sub(w.kernel.now), q.poll)
		case d.chance(w.faults.QueueDoubled) && m.receives < q.receivesMax:
			w.trace.add("%s: %s comes again", name, m)
			q.show(m, d.between(0, q.visibility))
		default:
			q.waiting = remove(q.waiting, m)
		}
	}
	w.kernel.after(0, q.poll)
}

func remove(list []*message, m *message) []*message {
	return slices.DeleteFunc(list, func(other *message) bool { return other == m })
}

// close checks that nothing is left, and nothing was given up without a reason.
func (q *queue) close() {
	if q.consumers == nil {
		return
	}
	for _, m := range q.waiting {
		q.world.violated("liveness", "%s is still there", m)
	}
	for _, m := range q.dead {
		if q.world.calmSince.Before(m.failedAt.Add(-q.consumers[0].function.Timeout)) {
			q.world.violated("liveness", "%s was given up although all was well", m)
		}
	}
}

// sender is the queues as one function instance meets them.
type sender struct {
	world    *world
	instance *instance
}

// send sends once, and returns what the caller sees.
func (s *sender) send(take func(d *dice)) error {
	f := s.world.faults
	return s.instance.call(f.QueueLostRequest, f.QueueAnswerLost, take)
}

// offer is one message that is offered to the queue of an address.
type offer struct {
	url, body    *string
	delaySeconds int32
}

// take takes one message, and returns its id, or why it does not.
func (s *sender) take(d *dice, o offer) (*string, error) {
	q := s.world.queues[aws.ToString(o.url)]
	delay := time.Duration(o.delaySeconds) * time.Second
	switch {
	case q == nil:
		return nil, fmt.Errorf("there is no queue %q", aws.ToString(o.url))
	case delay < 0 || delay > queueKeepsBackMax:
		return nil, errDelay
	case q.off || d.chance(s.world.faults.QueueRefused):
		return nil, errQueueRefused
	}
	return aws.String(q.put(aws.ToString(o.body), delay)), nil
}

// SendMessage takes one message.
func (s *sender) SendMessage(_ context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	out, refused := &sqs.SendMessageOutput{}, error(nil)
	err := s.send(func(d *dice) { out.MessageId, refused = s.take(d, offer{in.QueueUrl, in.MessageBody, in.DelaySeconds}) })
	if err = errors.Join(err, refused); err != nil {
		return nil, fmt.Errorf("SendMessage: %w", err)
	}
	return out, nil
}

// SendMessageBatch takes the entries that it does not refuse.
func (s *sender) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out := &sqs.SendMessageBatchOutput{}
	err := s.send(func(d *dice) {
		for _, entry := range in.Entries {
			id, refused := s.take(d, offer{in.QueueUrl, entry.MessageBody, entry.DelaySeconds})
			if refused != nil {
				out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: entry.Id, Code: aws.String("ServiceUnavailable"), Message: aws.String(refused.Error())})
				continue
			}
			out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: entry.Id, MessageId: id})
		}
	})
	if err != nil {
		return nil, fmt.Errorf("SendMessageBatch: %w", err)
	}
	return out, nil
}
