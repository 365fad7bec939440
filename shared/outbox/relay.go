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
	// MarkFor bounds the marks of one call together: of what was published, and of what no
	// retry can publish.
	MarkFor = 3 * time.Second
	// MarginBeforeDeadline is the part of a run's time in which no call is begun. It is
	// longer than CallFor and MarkFor together, so that what the bus has accepted is
	// marked before Lambda ends the process. The queues are asked before the bus, and the
	// time is looked at in between.
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

// Marker notes in the table which events are published, and which can't be.
type Marker interface {
	// MarkPublished notes that the bus has accepted the event. It may be repeated.
	MarkPublished(ctx context.Context, event ledger.Event, at time.Time) error
	// Quarantine notes that no retry can publish the event as it is, and why. It may be
	// repeated, and does nothing to an event that is published or not there.
	Quarantine(ctx context.Context, event ledger.EventItem, reason string, at time.Time) error
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
	// DueQueueURL is the address of the queue whose messages end holds at their time.
	DueQueueURL string
}

// Relay publishes the events of stream batches.
type Relay struct {
	ports    Ports
	settings Settings
	recovery telemetry.Recovery
}

// NewRelay returns a Relay, or an error for settings that cannot be right.
func NewRelay(ports Ports, settings Settings) (*Relay, error) {
	switch {
	case settings.Bus == "" || settings.Stage == "":
		return nil, errors.New("relay: the bus and the stage must be named")
	case settings.SagaQueueURL == "":
		return nil, errors.New("relay: the saga's queue must be named")
	case settings.DueQueueURL == "":
		return nil, errors.New("relay: the due queue must be named")
	case settings.CallBytesMax < 1 || settings.CallBytesMax > CallBytesLimit:
		return nil, fmt.Errorf("relay: calls of %d bytes; want 1 to %d", settings.CallBytesMax, CallBytesLimit)
	}
	return &Relay{ports: ports, settings: settings}, nil
}

// Handle wakes the saga where the events of one batch concern it, has holds looked at when
// they are due, publishes the events, in order, and marks them. The answer names the first
// record that failed, if one did; Lambda then hands over that record and all after it
// again, so nothing after it is published before it (case G14). It may be called again with
// the same batch at any time: consumers see some events twice.
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
	d := r.newDelivery(r.stopAt(ctx, RelayForMax))
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

// stopAt is when the last call of a run may begin: after longest, or before the deadline.
func (r *Relay) stopAt(ctx context.Context, longest time.Duration) time.Time {
	return system.StopAt(ctx, r.ports.Clock, longest, MarginBeforeDeadline)
}
