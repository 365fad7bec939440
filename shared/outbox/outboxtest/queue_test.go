package outboxtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"holdfast/shared/outbox/outboxtest"
)

func reservationID(n int) string { return fmt.Sprintf("rsv_%026d", n) }

func message(n int) types.SendMessageBatchRequestEntry {
	return types.SendMessageBatchRequestEntry{
		Id: aws.String(fmt.Sprintf("m%d", n)), MessageBody: aws.String(`{"reservation_id":"` + reservationID(n) + `"}`),
	}
}

func dueMessage(delaySeconds int32) types.SendMessageBatchRequestEntry {
	return types.SendMessageBatchRequestEntry{
		Id: aws.String("due"), DelaySeconds: delaySeconds, MessageBody: aws.String(`{"hold_id":"hold_00000000000000000000000000","due_at_ms":17}`),
	}
}

func sendTo(q *outboxtest.Queue, entries ...types.SendMessageBatchRequestEntry) (*sqs.SendMessageBatchOutput, error) {
	return q.SendMessageBatch(context.Background(), &sqs.SendMessageBatchInput{QueueUrl: aws.String("url"), Entries: entries})
}

func TestTheQueueFindsWhatIsWrong(t *testing.T) {
	var eleven []types.SendMessageBatchRequestEntry
	for i := range 11 {
		eleven = append(eleven, message(i))
	}
	changed := func(f func(*types.SendMessageBatchRequestEntry)) []types.SendMessageBatchRequestEntry {
		m := message(1)
		f(&m)
		return []types.SendMessageBatchRequestEntry{m}
	}
	for name, test := range map[string]struct {
		entries []types.SendMessageBatchRequestEntry
		wrong   bool
	}{
		"ten":              {eleven[:10], false},
		"a due message":    {[]types.SendMessageBatchRequestEntry{dueMessage(900)}, false},
		"a long delay":     {[]types.SendMessageBatchRequestEntry{dueMessage(901)}, true},
		"a negative delay": {[]types.SendMessageBatchRequestEntry{dueMessage(-1)}, true},
		"a late wake-up":   {changed(func(m *types.SendMessageBatchRequestEntry) { m.DelaySeconds = 1 }), true},
		"of two kinds":     {[]types.SendMessageBatchRequestEntry{message(1), dueMessage(1)}, true},
		"none":             {nil, true},
		"eleven":           {eleven, true},
		"one twice":        {[]types.SendMessageBatchRequestEntry{message(1), message(1)}, true},
		"no id":            {changed(func(m *types.SendMessageBatchRequestEntry) { m.Id = nil }), true},
		"an id with a dot": {changed(func(m *types.SendMessageBatchRequestEntry) { m.Id = aws.String("m.1") }), true},
		"no body":          {changed(func(m *types.SendMessageBatchRequestEntry) { m.MessageBody = nil }), true},
		"more than a wake-up": {changed(func(m *types.SendMessageBatchRequestEntry) {
			m.MessageBody = aws.String(`{"reservation_id":"x","card":1}`)
		}), true},
	} {
		q := &outboxtest.Queue{}
		if _, err := sendTo(q, test.entries...); (err != nil) != test.wrong || (len(q.Violations()) > 0) != test.wrong {
			t.Errorf("%s: %v, %v", name, err, q.Violations())
		}
		if test.wrong && len(q.Messages()) > 0 {
			t.Errorf("%s: messages of a wrong call are taken", name)
		}
	}
	if _, err := (&outboxtest.Queue{}).SendMessageBatch(context.Background(), &sqs.SendMessageBatchInput{Entries: eleven[:1]}); err == nil {
		t.Error("a call without a queue is taken")
	}
}

func TestTheQueueObeysOrders(t *testing.T) {
	q := &outboxtest.Queue{}
	q.Refuse(func(body string) string {
		if body == *message(2).MessageBody {
			return outboxtest.CodeInvalidMessage
		}
		return ""
	})
	output, err := sendTo(q, message(1), message(2))
	if err != nil || len(output.Failed) != 1 || aws.ToString(output.Failed[0].Id) != "m2" || len(output.Successful) != 1 {
		t.Errorf("Refuse: %+v, %v", output, err)
	}
	q.LoseAnswers(1)
	if _, err := sendTo(q, message(3)); !errors.Is(err, outboxtest.ErrAnswerLost) || !slices.Equal(q.Woken(), []string{reservationID(1), reservationID(3)}) {
		t.Errorf("LoseAnswers: %v, woken %v", err, q.Woken())
	}
	if _, err := sendTo(q, dueMessage(7)); err != nil {
		t.Error(err)
	}
	if due := q.Due(); len(due) != 1 || due[0] != (outboxtest.Message{QueueURL: "url", Body: *dueMessage(7).MessageBody, DelaySeconds: 7}) || len(q.Woken()) != 2 {
		t.Errorf("due messages: %+v", due)
	}
	q.DownAt("url", true)
	if _, err := sendTo(q, message(6)); !errors.Is(err, outboxtest.ErrDown) {
		t.Errorf("DownAt: %v", err)
	}
	q.DownAt("url", false)
	q.Silent(true)
	if output, err := sendTo(q, message(4)); err != nil || len(output.Successful)+len(output.Failed) != 0 {
		t.Errorf("Silent: %+v, %v", output, err)
	}
	q.Down(true)
	if _, err := sendTo(q, message(5)); !errors.Is(err, outboxtest.ErrDown) || q.Calls() != 4 {
		t.Errorf("Down: %v after %d calls", err, q.Calls())
	}
	q.Down(false)
	over, cancel := context.WithCancel(context.Background())
	q.BeforeCall(cancel)
	if _, err := q.SendMessageBatch(over, &sqs.SendMessageBatchInput{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose context ends: %v", err)
	}
}
