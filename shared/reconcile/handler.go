package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"holdfast/shared/outbox"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

const (
	// RedriveAge is how old an unpublished event is before the reconciler takes it up. The
	// stream brings an event within a second, and tries for hours when the bus is down; what
	// both publish comes twice, which consumers stand.
	RedriveAge = 10 * time.Minute
	// RedriveFor bounds the publishing of one run, so that there is time to count what is in
	// quarantine.
	RedriveFor = 150 * time.Second
	// LookFor bounds the looking of a run whose caller sets no deadline.
	LookFor = 60 * time.Second
	// MarginBeforeDeadline is the part of a run's time in which no read is begun. It is longer
	// than a page.
	MarginBeforeDeadline = 10 * time.Second
)

// Redriver publishes events that are older than an age. An outbox.Redrive is one.
type Redriver interface {
	Run(ctx context.Context, age, longest time.Duration) (outbox.RedriveReport, error)
}

// Metrics takes the numbers of a run. A telemetry.Emitter is one.
type Metrics interface {
	Emit(properties telemetry.Properties, measurements ...telemetry.Measurement) error
}

// Ports are what a Handler works with. All of them must be set.
type Ports struct {
	Redrive    Redriver
	Quarantine Quarantine
	Metrics    Metrics
	Clock      system.Clock
	Logger     *slog.Logger
}

// Handler does, for each tick of the Scheduler, what the outbox is told of by nobody.
type Handler struct {
	ports Ports
}

// NewHandler returns a Handler.
func NewHandler(ports Ports) *Handler { return &Handler{ports} }

// Handle answers one tick. What the tick says decides nothing. A part that fails keeps none
// of the others from its work, and its numbers are left out; the error is all of their
// errors, and Lambda then runs it again. It may run at any time, also twice at once.
func (h *Handler) Handle(ctx context.Context, _ json.RawMessage) error {
	properties := telemetry.Properties{}
	if call, known := lambdacontext.FromContext(ctx); known {
		properties[telemetry.KeyRequestID] = call.AwsRequestID
		ctx = telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyRequestID, call.AwsRequestID))
	}
	redriven, redriveErr := h.ports.Redrive.Run(ctx, RedriveAge, RedriveFor)
	quarantined, quarantineErr := quarantineSize(ctx, h.ports.Quarantine, h.lateAfter(ctx))
	h.ports.Logger.InfoContext(ctx, "reconciled",
		slog.Int("republished", redriven.Republished), slog.Int("failed", redriven.Failed), slog.Int("set_aside", redriven.Quarantined),
		slog.Int("left_min", redriven.Left), slog.Int("due_unsent", redriven.DueUnsent), slog.Bool("truncated", redriven.Truncated),
		slog.Bool("futile", redriven.Futile), slog.Bool("lag_known", redriven.LagKnown), telemetry.Duration("lag_seconds", redriven.Lag),
		slog.Int("quarantine_size", quarantined))
	heartbeat := 1
	if redriveErr != nil {
		heartbeat = 0
	}
	measurements := []telemetry.Measurement{
		telemetry.Count(telemetry.MetricReconcileHeartbeat, heartbeat),
		telemetry.Count(telemetry.MetricOutboxRepublished, redriven.Republished),
	}
	if redriven.LagKnown {
		measurements = append(measurements, telemetry.Measurement{Metric: telemetry.MetricOutboxUnpublishedLagSecondsMax, Value: redriven.Lag.Seconds()})
	}
	if quarantineErr == nil {
		measurements = append(measurements, telemetry.Count(telemetry.MetricOutboxQuarantineSize, quarantined))
	}
	return errors.Join(redriveErr, quarantineErr, h.ports.Metrics.Emit(properties, measurements...))
}

// lateAfter says when no read may be begun any more.
func (h *Handler) lateAfter(ctx context.Context) func() bool {
	stopAt := h.ports.Clock.Now().Add(LookFor)
	if deadline, bounded := ctx.Deadline(); bounded {
		stopAt = deadline.Add(-MarginBeforeDeadline)
	}
	return func() bool { return system.Late(ctx, h.ports.Clock, stopAt) }
}
