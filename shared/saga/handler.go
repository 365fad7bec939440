package saga

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// Handler is the saga function: it hands batches of messages to the Worker, and ticks of
// the Scheduler to the Tick.
type Handler struct {
	worker  *Worker
	tick    *Tick
	metrics Metrics
	random  system.Random
	logger  *slog.Logger
}

// NewHandler returns a Handler for both.
func NewHandler(worker *Worker, tick *Tick, metrics Metrics, random system.Random, logger *slog.Logger) *Handler {
	return &Handler{worker: worker, tick: tick, metrics: metrics, random: random, logger: logger}
}

// Handle answers one event. A batch of the queue is what has Records, and its answer names
// the messages that must come again. Everything else is a tick, whatever it says, so that
// nothing in it can keep the saga from looking; it has no answer. With an error Lambda
// hands the event over again.
func (h *Handler) Handle(ctx context.Context, event json.RawMessage) (any, error) {
	request := telemetry.RequestID(ctx, h.random)
	ctx = telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyRequestID, string(request)))
	if !hasRecords(event) {
		return nil, h.runTick(ctx, request)
	}
	var batch events.SQSEvent
	if err := json.Unmarshal(event, &batch); err != nil {
		// The error may repeat what it read.
		return nil, errors.New("saga: the records are not messages of a queue")
	}
	response, err := h.worker.Handle(ctx, batch, request)
	if err != nil {
		return nil, err
	}
	return response, nil
}

// hasRecords reports whether the event is of an event source, and not a tick.
func hasRecords(event json.RawMessage) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(event, &members) != nil {
		return false
	}
	_, has := members["Records"]
	return has
}

func (h *Handler) runTick(ctx context.Context, request ledger.RequestID) error {
	report, err := h.tick.Run(ctx, request)
	h.logger.InfoContext(ctx, "tick ended",
		slog.Int("driven", report.Driven), slog.Int("failed", report.Failed), slog.Int("gone", report.Gone),
		slog.Bool("truncated", report.Truncated), slog.Int("remaining_min", report.RemainingMin),
		slog.Bool("lag_known", report.LagKnown), telemetry.Duration("lag_seconds", report.Lag))
	if emitErr := h.metrics.Emit(telemetry.Properties{telemetry.KeyRequestID: string(request)}, measurements(report, err)...); emitErr != nil {
		// Silence must not pass for health.
		err = errors.Join(err, fmt.Errorf("saga: report: %w", emitErr))
	}
	return err
}

func measurements(r Report, err error) []telemetry.Measurement {
	heartbeat, truncated := 1, 0
	if err != nil {
		heartbeat = 0
	}
	if r.Truncated {
		truncated = 1
	}
	out := []telemetry.Measurement{
		telemetry.Count(telemetry.MetricSagaHeartbeat, heartbeat),
		telemetry.Count(telemetry.MetricSagaDriven, r.Driven),
		telemetry.Count(telemetry.MetricSagaFailed, r.Failed),
		telemetry.Count(telemetry.MetricSagaTruncated, truncated),
		telemetry.Count(telemetry.MetricSagaRemainingMin, r.RemainingMin),
	}
	if r.LagKnown {
		out = append(out, telemetry.Measurement{Metric: telemetry.MetricSagaLagSecondsMax, Value: r.Lag.Seconds()})
	}
	return out
}
