package outbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"

	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/outbox/outboxtest"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
)

const (
	sagaURL = "https://queue.example/saga"
	dueURL  = "https://queue.example/due"
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// world is a relay between a stream of the test's making and a bus that obeys orders.
type world struct {
	tb      testing.TB
	clock   *systemtest.Clock
	bus     *outboxtest.Bus
	queue   *outboxtest.Queue
	marker  *marker
	images  map[string]ledger.Event
	metrics bytes.Buffer
	logs    bytes.Buffer
	// bytesMax bounds a call; zero is the default.
	bytesMax int
}

func newWorld(tb testing.TB) *world {
	w := &world{tb: tb, clock: systemtest.NewClock(start), queue: &outboxtest.Queue{}, images: map[string]ledger.Event{}}
	w.bus = outboxtest.NewBus(outbox.CallBytesMaxDefault)
	w.marker = &marker{tb: tb, bus: w.bus}
	tb.Cleanup(func() {
		for _, violation := range w.bus.Violations() {
			tb.Errorf("the bus was given what it can't take: %s", violation)
		}
		for _, violation := range w.queue.Violations() {
			tb.Errorf("the queue was given what it can't take: %s", violation)
		}
	})
	return w
}

func (w *world) ports() outbox.Ports {
	source := telemetry.Source{Stage: "dev", Function: "outbox"}
	return outbox.Ports{
		Publisher: w.bus, Queue: w.queue, Marker: w.marker, Decode: w.decode,
		Metrics: telemetry.NewEmitter(&w.metrics, w.clock, source),
		Clock:   w.clock, Random: systemtest.NewRandom(3), Logger: telemetry.NewLogger(&w.logs, source),
	}
}

func (w *world) relay(ports outbox.Ports) *outbox.Relay {
	w.tb.Helper()
	bytesMax := w.bytesMax
	if bytesMax == 0 {
		bytesMax = outbox.CallBytesMaxDefault
	}
	relay, err := outbox.NewRelay(ports, outbox.Settings{
		Bus: "events", Stage: "dev", CallBytesMax: bytesMax, SagaQueueURL: sagaURL, DueQueueURL: dueURL,
	})
	if err != nil {
		w.tb.Fatal(err)
	}
	return relay
}

// decode knows the images that the world has made, by the event id in them.
func (w *world) decode(image map[string]events.DynamoDBAttributeValue) (ledger.Event, error) {
	event, known := w.images[image["event_id"].String()]
	if !known {
		return ledger.Event{}, errors.New("no such image")
	}
	return event, nil
}

// record is the stream record of an event that was just written.
func (w *world) record(sequenceNumber int, e ledger.Event) events.DynamoDBEventRecord {
	w.images[string(e.ID)] = e
	kind, id, _ := strings.Cut(e.Subject(), "/")
	pk := map[string]string{"hold": "HOLD#", "reservation": "RES#", "slot": "SLOT#"}[kind] + id
	return events.DynamoDBEventRecord{
		EventName: "INSERT",
		Change: events.DynamoDBStreamRecord{
			SequenceNumber: strconv.Itoa(sequenceNumber),
			Keys: map[string]events.DynamoDBAttributeValue{
				"pk": events.NewStringAttribute(pk),
				"sk": events.NewStringAttribute(fmt.Sprintf("EVENT#%010d", e.Version)),
			},
			NewImage: map[string]events.DynamoDBAttributeValue{"event_id": events.NewStringAttribute(string(e.ID))},
		},
	}
}

// batch is the events as one batch, with the sequence numbers 101, 102, and so on.
func (w *world) batch(list ...ledger.Event) events.DynamoDBEvent {
	var out events.DynamoDBEvent
	for i, e := range list {
		out.Records = append(out.Records, w.record(101+i, e))
	}
	return out
}

// event is the event that made a version of a hold, at that many seconds after start.
func event(hold string, version int) ledger.Event {
	return ledger.Event{
		ID: ledger.EventID(fmt.Sprintf("event_%s_%d", hold, version)), Type: ledger.EventHoldCreated,
		Version: ledger.Version(version), OccurredAt: start.Add(-time.Duration(version) * time.Second),
		Hold: &ledger.Hold{ID: ledger.HoldID(hold), Version: ledger.Version(version)},
	}
}

// distinct is one event for each of n holds.
func distinct(n int) []ledger.Event {
	var out []ledger.Event
	for i := range n {
		out = append(out, event(fmt.Sprintf("hold_%02d", i+1), 1))
	}
	return out
}

// mustHandle returns the sequence numbers that the relay hands back.
func mustHandle(ctx context.Context, tb testing.TB, relay *outbox.Relay, batch events.DynamoDBEvent) []string {
	tb.Helper()
	response, err := relay.Handle(ctx, batch)
	if err != nil {
		tb.Fatalf("handle: %v", err)
	}
	if response.BatchItemFailures == nil {
		tb.Error("the answer has null in place of an empty list")
	}
	var out []string
	for _, f := range response.BatchItemFailures {
		out = append(out, f.ItemIdentifier)
	}
	return out
}

// delivered are the ids of the events that the bus accepted, in order.
func (w *world) delivered() []ledger.EventID {
	w.tb.Helper()
	var out []ledger.EventID
	for _, d := range w.bus.Deliveries() {
		var detail struct {
			EventID ledger.EventID `json:"event_id"`
		}
		if err := json.Unmarshal([]byte(aws.ToString(d.Entry.Detail)), &detail); err != nil {
			w.tb.Fatal(err)
		}
		out = append(out, detail.EventID)
	}
	return out
}

// reported is the sum of each metric over all lines since the last call, and how often
// a line said so.
func (w *world) reported() map[string]float64 {
	w.tb.Helper()
	out := map[string]float64{}
	for line := range strings.SplitSeq(strings.TrimSpace(w.metrics.String()), "\n") {
		var members map[string]any
		if err := json.Unmarshal([]byte(line), &members); err != nil {
			w.tb.Fatalf("%v: %q", err, line)
		}
		for name, value := range members {
			if _, metric := telemetry.MetricNamed(telemetry.MetricName(name)); metric {
				out[strings.TrimPrefix(name, "outbox_")] += value.(float64)
			}
		}
	}
	w.metrics.Reset()
	return out
}

func ids(list []ledger.Event) []ledger.EventID {
	var out []ledger.EventID
	for _, e := range list {
		out = append(out, e.ID)
	}
	return out
}

// marker notes marks, and holds the relay to P7: nothing is marked that the bus has not
// accepted.
type marker struct {
	tb     testing.TB
	bus    *outboxtest.Bus
	marked []ledger.EventID
	// quarantined are the reasons by the item, and failQuarantine is the error of the next
	// ones, if any.
	quarantined    map[string]string
	failQuarantine error
	// fail gives the error of a mark; nil marks everything.
	fail func(ledger.EventID) error
}

func (m *marker) MarkPublished(_ context.Context, e ledger.Event, at time.Time) error {
	accepted := slices.ContainsFunc(m.bus.Deliveries(), func(d outboxtest.Delivery) bool {
		return strings.Contains(aws.ToString(d.Entry.Detail), `"event_id":"`+string(e.ID)+`"`)
	})
	if !accepted {
		m.tb.Errorf("P7: %s is marked, and the bus has not accepted it", e.ID)
	}
	if at.IsZero() || !at.Equal(at.Truncate(time.Millisecond)) {
		m.tb.Errorf("%s is marked at %s", e.ID, at)
	}
	if m.fail != nil {
		if err := m.fail(e.ID); err != nil {
			return err
		}
	}
	m.marked = append(m.marked, e.ID)
	return nil
}

func (m *marker) Quarantine(_ context.Context, item ledger.EventItem, reason string, at time.Time) error {
	if at.IsZero() || !at.Equal(at.Truncate(time.Millisecond)) {
		m.tb.Errorf("%s is quarantined at %s", item, at)
	}
	if m.failQuarantine != nil {
		return m.failQuarantine
	}
	if m.quarantined == nil {
		m.quarantined = map[string]string{}
	}
	m.quarantined[item.String()] = reason
	return nil
}

// endsAt is a context that says when it ends by the test's clock.
type endsAt struct {
	context.Context
	at time.Time
}

func (c endsAt) Deadline() (time.Time, bool) { return c.at, true }

// deliveriesMax bounds how often a batch is delivered in a test.
const deliveriesMax = 2000

// deliver hands the batch to the relay as the event source mapping does: what the relay
// hands back comes again, from the reported record on, and a record that was handed back
// retries times is given up and returned.
func (w *world) deliver(relay *outbox.Relay, batch events.DynamoDBEvent, retries int) []string {
	w.tb.Helper()
	var givenUp []string
	handedBack := map[string]int{}
	for range deliveriesMax {
		failed := mustHandle(context.Background(), w.tb, relay, batch)
		if len(failed) == 0 {
			return givenUp
		}
		at := slices.IndexFunc(batch.Records, func(r events.DynamoDBEventRecord) bool { return r.Change.SequenceNumber == failed[0] })
		if len(failed) != 1 || at < 0 {
			w.tb.Fatalf("the relay hands back %v", failed)
		}
		batch.Records = batch.Records[at:]
		if handedBack[failed[0]]++; handedBack[failed[0]] > retries {
			givenUp = append(givenUp, failed[0])
			batch.Records = batch.Records[1:]
		}
	}
	w.tb.Fatal("the batch comes again for ever")
	return nil
}
