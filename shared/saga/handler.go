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
	worker   *Worker
	tick     *Tick
	dwells   *telemetry.Spread
	recovery telemetry.Recovery
	metrics  Metrics
	random   system.Random
	logger   *slog.Logger
}

// NewHandler returns a Handler for both. It reports what their driver gathers in dwells, after
// each run, so that nothing of it is frozen with the process.
func NewHandler(worker *Worker, tick *Tick, dwells *telemetry.Spread, metrics Metrics, random system.Random, logger *slog.Logger) *Handler {
	return &Handler{worker: worker, tick: tick, dwells: dwells, metrics: metrics, random: random, logger: logger}
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
	if emitErr := h.reportDwells(request); emitErr != nil {
		// Failing the batch for it would drive everything again.
		h.logger.ErrorContext(ctx, "how long reservations took could not be reported", slog.Any("error", emitErr))
	}
	if err != nil {
		return nil, err
	}
	return response, nil
}

// reportDwells tells how long reservations were in a status. A run in which none moved has
// nothing to tell.
func (h *Handler) reportDwells(request ledger.RequestID) error {
	for _, line := range h.dwells.Take() {
		if err := h.metrics.Emit(telemetry.Properties{telemetry.KeyRequestID: string(request)}, line...); err != nil {
			return err
		}
	}
	return nil
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
	measured := measurements(report, err)
	if report.LagKnown {
		if took, recovered := h.recovery.Observe(report.At, report.Lag, 0); recovered {
			measured = append(measured, telemetry.Measurement{Metric: telemetry.MetricSagaRecoverySeconds, Value: took.Seconds()})
		}
	}
	emitErr := h.metrics.Emit(telemetry.Properties{telemetry.KeyRequestID: string(request)}, measured...)
	if emitErr = errors.Join(emitErr, h.reportDwells(request)); emitErr != nil {
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
