package outboxtest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"holdfast/shared/outbox/outboxtest"
	"holdfast/shared/system/systemtest"
)

const bytesMax = 1000

func entry(resource, detail string) types.PutEventsRequestEntry {
	return types.PutEventsRequestEntry{
		EventBusName: aws.String("events"), Source: aws.String("test"), DetailType: aws.String("kind"),
		Time: aws.Time(time.Unix(0, 0)), Resources: []string{resource}, Detail: aws.String(detail),
	}
}

func put(b *outboxtest.Bus, entries ...types.PutEventsRequestEntry) (*eventbridge.PutEventsOutput, error) {
	return b.PutEvents(context.Background(), &eventbridge.PutEventsInput{Entries: entries})
}

// A fake that lets everything pass proves nothing about who uses it.
func TestTheBusFindsWhatIsWrong(t *testing.T) {
	var eleven []types.PutEventsRequestEntry
	for i := range 11 {
		eleven = append(eleven, entry(strings.Repeat("x", i+1), `{}`))
	}
	empty := outboxtest.Bytes(entry("a", `{"t":""}`))
	fits := entry("a", `{"t":"`+strings.Repeat("x", bytesMax-empty)+`"}`)
	tooLong := entry("a", `{"t":"`+strings.Repeat("x", bytesMax-empty-2)+"한"+`"}`) // one letter, three bytes
	nameless, busless := entry("a", `{}`), entry("a", `{}`)
	nameless.DetailType, busless.EventBusName = nil, nil
	for name, test := range map[string]struct {
		entries []types.PutEventsRequestEntry
		wrong   bool
	}{
		"ten entries":            {eleven[:10], false},
		"as many bytes as fit":   {[]types.PutEventsRequestEntry{fits}, false},
		"no entry":               {nil, true},
		"eleven entries":         {eleven, true},
		"one byte too many":      {[]types.PutEventsRequestEntry{tooLong}, true},
		"too much together":      {[]types.PutEventsRequestEntry{fits, entry("b", `{}`)}, true},
		"two of one hold":        {[]types.PutEventsRequestEntry{entry("a", `{}`), entry("a", `{}`)}, true},
		"a detail that is text":  {[]types.PutEventsRequestEntry{entry("a", `text`)}, true},
		"a detail that is a sum": {[]types.PutEventsRequestEntry{entry("a", `17`)}, true},
		"no type":                {[]types.PutEventsRequestEntry{nameless}, true},
		"no bus":                 {[]types.PutEventsRequestEntry{busless}, true},
	} {
		b := outboxtest.NewBus(bytesMax)
		if _, err := put(b, test.entries...); (err != nil) != test.wrong || (len(b.Violations()) > 0) != test.wrong {
			t.Errorf("%s: %v, %v", name, err, b.Violations())
		}
		if delivered := len(b.Deliveries()); test.wrong && delivered > 0 {
			t.Errorf("%s: %d entries of a wrong call are accepted", name, delivered)
		}
	}
	// 14 for the time, 4 and 4 for the source and the type, 1 for the resource, 8 for the detail.
	if empty != 31 {
		t.Errorf("the empty entry counts %d bytes, want 31", empty)
	}
}

func TestTheBusObeysOrders(t *testing.T) {
	b := outboxtest.NewBus(bytesMax)
	b.FailNext(2, outboxtest.CodeThrottled)
	output, err := put(b, entry("a", `{}`), entry("b", `{}`), entry("c", `{}`))
	if err != nil || output.FailedEntryCount != 2 || aws.ToString(output.Entries[1].ErrorCode) != outboxtest.CodeThrottled || output.Entries[2].EventId == nil {
		t.Errorf("FailNext: %+v, %v", output, err)
	}
	b.LoseAnswers(1)
	if _, err := put(b, entry("d", `{}`)); !errors.Is(err, outboxtest.ErrAnswerLost) || len(b.Deliveries()) != 2 {
		t.Errorf("LoseAnswers: %v, %d deliveries", err, len(b.Deliveries()))
	}
	b.Down(true)
	if _, err := put(b, entry("e", `{}`)); !errors.Is(err, outboxtest.ErrDown) || len(b.Deliveries()) != 2 || len(b.Calls()) != 2 {
		t.Errorf("Down: %v, %d deliveries in %d calls", err, len(b.Deliveries()), len(b.Calls()))
	}
	b.Down(false)
	over, cancel := context.WithCancel(context.Background())
	b.BeforeCall(cancel)
	if _, err := b.PutEvents(over, &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{entry("f", `{}`)}}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call whose context ends: %v", err)
	}
	const calls = 400
	b = outboxtest.NewBus(bytesMax)
	b.FailShare(0.25, outboxtest.CodeThrottled, systemtest.NewRandom(1))
	for range calls {
		if _, err := put(b, entry("g", `{}`)); err != nil {
			t.Fatal(err)
		}
	}
	if accepted := len(b.Deliveries()); accepted < calls*65/100 || accepted > calls*85/100 {
		t.Errorf("with a quarter refused, %d of %d are accepted", accepted, calls)
	}
}
