package outbox_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/outbox/outboxtest"
)

// secretText stands for what a record, the bus or the queue may say and nobody may keep.
const secretText = "pi_3N_secret_abc"

// P12: what no retry can publish goes into quarantine under a reason of our own words,
// whatever the record, the bus and the queue say of it.
func TestP12_TheReasonOfAQuarantineTellsNothingOfTheEvent(t *testing.T) {
	w := newWorld(t)
	w.bytesMax = 4 << 10
	w.bus = outboxtest.NewBus(w.bytesMax)
	w.marker.bus = w.bus
	ports := w.ports()
	ports.Decode = func(image map[string]events.DynamoDBAttributeValue) (ledger.Event, error) {
		e, err := w.decode(image)
		if err != nil {
			return e, errors.New("can't read " + secretText)
		}
		return e, nil
	}
	ports.Publisher = busFunc(func(in *eventbridge.PutEventsInput) *eventbridge.PutEventsOutput {
		out := &eventbridge.PutEventsOutput{}
		for _, entry := range in.Entries {
			result := types.PutEventsResultEntry{EventId: aws.String("envelope")}
			if entry.Resources[0] == "hold/hold_refused" {
				out.FailedEntryCount++
				result = types.PutEventsResultEntry{ErrorCode: aws.String("MalformedDetail"), ErrorMessage: aws.String(secretText)}
			} else if _, err := w.bus.PutEvents(context.Background(), &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{entry}}); err != nil {
				t.Error(err)
			}
			out.Entries = append(out.Entries, result)
		}
		return out
	})
	w.queue.Refuse(func(string) string { return outboxtest.CodeInvalidMessage })
	batch := w.batch(event("hold_unreadable", 1), sized("seat", "x", 4<<10), event("hold_refused", 1), paidHold("hold_paid", 1, 1, ledger.EventHoldCanceled), event("hold_good", 1))
	delete(w.images, "event_hold_unreadable_1")
	if failed := mustHandle(context.Background(), t, w.relay(ports), batch); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	want := map[string]string{
		"HOLD#hold_unreadable EVENT#0000000001": outbox.ReasonUnreadable,
		"SLOT#seat EVENT#0000000002":            outbox.ReasonTooLarge,
		"HOLD#hold_refused EVENT#0000000001":    "refused by the bus: MalformedDetail",
		"HOLD#hold_paid EVENT#0000000001":       "refused by the queue: InvalidMessageContents",
	}
	if !maps.Equal(w.marker.quarantined, want) || !slices.Equal(w.marker.marked, []ledger.EventID{"event_hold_good_1"}) {
		t.Errorf("quarantined %v, marked %v", w.marker.quarantined, w.marker.marked)
	}
	if got := w.reported(); got["set_aside"] != 4 || got["failed"] != 0 {
		t.Errorf("reported %v", got)
	}
}

// A record that could not even be put into quarantine is handed back: it would be in
// nobody's sight otherwise. What is before it stays published.
func TestAFailedQuarantineIsAFailedRecord(t *testing.T) {
	for name, prepare := range map[string]func(*world){
		"unreadable": func(w *world) { delete(w.images, "event_hold_02_1") },
		"refused": func(w *world) {
			w.bus.Refuse(func(e types.PutEventsRequestEntry) string {
				if e.Resources[0] == "hold/hold_02" {
					return outboxtest.CodeInvalid
				}
				return ""
			})
		},
	} {
		w := newWorld(t)
		batch := w.batch(distinct(3)...)
		prepare(w)
		w.marker.failQuarantine = errors.New("throttled")
		if failed := mustHandle(context.Background(), t, w.relay(w.ports()), batch); !slices.Equal(failed, []string{"102"}) {
			t.Errorf("%s: handed back %v, want 102", name, failed)
		}
		if got := w.reported(); got["failed"] != 1 || got["set_aside"] != 0 || !slices.Contains(w.marker.marked, "event_hold_01_1") {
			t.Errorf("%s: reported %v, marked %v", name, got, w.marker.marked)
		}
		if log := w.logs.String(); !strings.Contains(log, "quarantine: throttled") {
			t.Errorf("%s: log %s", name, log)
		}
		w.marker.failQuarantine = nil
		if givenUp := w.deliver(w.relay(w.ports()), batch, 0); givenUp != nil || len(w.marker.quarantined) != 1 || !slices.Contains(w.marker.marked, "event_hold_03_1") {
			t.Errorf("%s: given up %v, quarantined %v, marked %v", name, givenUp, w.marker.quarantined, w.marker.marked)
		}
	}
}
