package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

const (
	// CallFor bounds one call to the bus.
	CallFor = 4 * time.Second
	// MarkFor bounds the marks of what one call has published, together.
	MarkFor = 3 * time.Second
	// MarginBeforeDeadline is the part of a run's time in which no call is begun. It is
	// longer than CallFor and MarkFor together, so that what the bus has accepted is
	// marked before Lambda ends the process. The saga's queue is asked before the bus, and
	// the time is looked at in between.
	MarginBeforeDeadline = 8 * time.Second
	// RelayForMax bounds a batch whose caller sets no deadline.
	RelayForMax = 60 * time.Second
)

// Publisher is the bus. An eventbridge.Client is one.
type Publisher interface {
	// PutEvents answers without an error also when entries were refused: each entry of
	// the answer has an id or an error code, in the order of the request.
	PutEvents(ctx context.Context, input *eventbridge.PutEventsInput, options ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error)
}

// Marker notes in the table which events are published.
type Marker interface {
	// MarkPublished notes that the bus has accepted the event. It may be repeated.
	MarkPublished(ctx context.Context, event ledger.Event, at time.Time) error
}

// Metrics takes the numbers of a batch. A telemetry.Emitter is one.
type Metrics interface {
	Emit(properties telemetry.Properties, measurements ...telemetry.Measurement) error
}

// Ports are what a Relay works with. All of them must be set.
type Ports struct {
	Publisher Publisher
	Queue     Queue
	Marker    Marker
	// Decode turns the new image of a stream record into the event. It returns an error
	// for an image that is not exactly one.
	Decode  func(image map[string]events.DynamoDBAttributeValue) (ledger.Event, error)
	Metrics Metrics
	Clock   system.Clock
	Random  system.Random
	Logger  *slog.Logger
}

// Settings say where and how a Relay publishes.
type Settings struct {
	Bus   string // name of the event bus
	Stage string // told in every event
	// CallBytesMax bounds the entries of one call to the bus, together; see
	// CallBytesMaxDefault.
	CallBytesMax int
	// SagaQueueURL is the address of the queue that the saga is woken through.
	SagaQueueURL string
}

// Relay publishes the events of stream batches.
type Relay struct {
	ports    Ports
	settings Settings
}

// NewRelay returns a Relay, or an error for settings that cannot be right.
func NewRelay(ports Ports, settings Settings) (*Relay, error) {
	switch {
	case settings.Bus == "" || settings.Stage == "":
		return nil, errors.New("relay: the bus and the stage must be named")
	case settings.SagaQueueURL == "":
		return nil, errors.New("relay: the saga's queue must be named")
	case settings.CallBytesMax < 1 || settings.CallBytesMax > CallBytesLimit:
		return nil, fmt.Errorf("relay: calls of %d bytes; want 1 to %d", settings.CallBytesMax, CallBytesLimit)
	}
	return &Relay{ports: ports, settings: settings}, nil
}

// Handle wakes the saga where the events of one batch concern it, publishes them, in
// order, and marks them. The answer names
// the first record that failed, if one did; Lambda then hands over that record and all
// after it again, so nothing after it is published before it (case G14). It may be
// called again with the same batch at any time: consumers see some events twice.
//
// The error means that the whole batch must come again.
func (r *Relay) Handle(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	properties := telemetry.Properties{}
	if call, known := lambdacontext.FromContext(ctx); known {
		properties[telemetry.KeyRequestID] = call.AwsRequestID
		ctx = telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyRequestID, call.AwsRequestID))
	}
	records, err := r.read(batch)
	if err != nil {
		return events.DynamoDBEventResponse{}, fmt.Errorf("outbox: %w", err)
	}
	d := delivery{Relay: r, stopAt: r.stopAt(ctx), woken: map[ledger.ReservationID]bool{}}
	failed := d.publish(ctx, records)
	if err := r.ports.Metrics.Emit(properties, d.measurements()...); err != nil {
		// Failing the batch for it would publish everything again.
		r.ports.Logger.ErrorContext(ctx, "the batch could not be reported", slog.Any("error", err))
	}
	response := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	if failed >= 0 {
		response.BatchItemFailures = append(response.BatchItemFailures,
			events.DynamoDBBatchItemFailure{ItemIdentifier: records[failed].sequenceNumber})
	}
	return response, nil
}

func (r *Relay) stopAt(ctx context.Context) time.Time {
	stopAt := r.ports.Clock.Now().Add(RelayForMax)
	if deadline, bounded := ctx.Deadline(); bounded && deadline.Add(-MarginBeforeDeadline).Before(stopAt) {
		stopAt = deadline.Add(-MarginBeforeDeadline)
	}
	return stopAt
}

// delivery is one batch under way.
type delivery struct {
	*Relay
	stopAt time.Time
	// woken are the reservations whose wake-up the queue has taken.
	woken map[ledger.ReservationID]bool

	published, failed, aside, truncated int
	lagMax                              time.Duration
}

// publish publishes and marks records until one fails that may succeed later, and returns
// its index, or -1.
func (d *delivery) publish(ctx context.Context, records []record) int {
	for done := 0; done < len(records); {
		if first := records[done]; first.err != nil {
			d.setAside(ctx, first, first.err)
			done++
			continue
		}
		if d.late(ctx) {
			d.stop(ctx, len(records)-done)
			return done
		}
		call := records[done : done+d.nextCall(records[done:])]
		failures := d.wake(ctx, call)
		d.publishWoken(ctx, call, failures)
		d.mark(ctx, call, failures)
		if failed := d.settle(ctx, call, failures); failed >= 0 {
			return done + failed
		}
		done += len(call)
	}
	return -1
}

// publishWoken publishes the records of call whose failure is nil, and notes the failures
// of those that the bus did not accept.
func (d *delivery) publishWoken(ctx context.Context, call []record, failures []error) {
	var ready []record
	var at []int
	for i, r := range call {
		if failures[i] == nil {
			ready, at = append(ready, r), append(at, i)
		}
	}
	if d.late(ctx) {
		// The wake-ups took the time that the bus and the marks need.
		for _, i := range at {
			failures[i] = errLate
		}
		return
	}
	for i, err := range d.send(ctx, ready) {
		failures[at[i]] = err
	}
}

// settle deals with the failures of one call, and returns the index of the first that may
// succeed later, or -1.
func (d *delivery) settle(ctx context.Context, call []record, failures []error) int {
	first, left := -1, 0
	for i, err := range failures {
		switch {
		case err == nil:
			continue
		case permanent(err):
			d.setAside(ctx, call[i], err)
			continue
		case errors.Is(err, errLate):
			left++
		default:
			d.reportFailure(ctx, call[i], err)
		}
		if first < 0 {
			first = i
		}
	}
	if left > 0 {
		d.stop(ctx, left)
	}
	return first
}

// stop notes that a batch ends for lack of time.
func (d *delivery) stop(ctx context.Context, left int) {
	d.truncated = 1
	d.ports.Logger.WarnContext(ctx, "the time ended before all was published; the rest comes again", slog.Int("records_left", left))
}

// mark marks what the bus has accepted: the records of call whose failure is nil. It is
// never done before, because a mark is the end of all care about an event (promise P7).
// An event whose mark fails becomes a failure, and will be published again.
func (d *delivery) mark(ctx context.Context, call []record, failures []error) {
	ctx, cancel := context.WithTimeout(ctx, MarkFor)
	defer cancel()
	at := system.Millisecond(d.ports.Clock)
	for i, r := range call {
		if failures[i] != nil {
			continue
		}
		d.lagMax = max(d.lagMax, at.Sub(r.event.OccurredAt))
		if err := d.ports.Marker.MarkPublished(ctx, r.event, at); err != nil {
			failures[i] = fmt.Errorf("mark as published: %w", err)
			continue
		}
		d.published++
	}
}

func (d *delivery) late(ctx context.Context) bool {
	return ctx.Err() != nil || !d.ports.Clock.Now().Before(d.stopAt)
}

// setAside passes over a record that no retry can publish. It is not lost: its event is
// in the table, unmarked, and so in the unpublished index. Handing it back instead would
// hold up every event behind it for as long as the stream tries.
func (d *delivery) setAside(ctx context.Context, r record, err error) {
	d.aside++
	d.ports.Logger.ErrorContext(ctx, "an event can't be published as it is; it stays in the unpublished index",
		slog.String("sequence_number", r.sequenceNumber), slog.String("item", r.item),
		slog.String(telemetry.KeyEventID, string(r.event.ID)), slog.Any("error", err))
}

func (d *delivery) reportFailure(ctx context.Context, r record, err error) {
	d.failed++
	d.ports.Logger.ErrorContext(ctx, "an event could not be published; it comes again",
		slog.String("sequence_number", r.sequenceNumber), slog.String("item", r.item),
		slog.String(telemetry.KeyEventID, string(r.event.ID)), slog.Any("error", err))
}

func (d *delivery) measurements() []telemetry.Measurement {
	out := []telemetry.Measurement{
		telemetry.Count(telemetry.MetricOutboxPublished, d.published),
		telemetry.Count(telemetry.MetricOutboxFailed, d.failed),
		telemetry.Count(telemetry.MetricOutboxSetAside, d.aside),
		telemetry.Count(telemetry.MetricOutboxTruncated, d.truncated),
	}
	if d.published > 0 {
		out = append(out, telemetry.Measurement{Metric: telemetry.MetricOutboxLagSecondsMax, Value: d.lagMax.Seconds()})
	}
	return out
}
