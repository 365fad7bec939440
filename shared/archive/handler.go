package archive

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"holdfast/shared/lease"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// Metrics takes the numbers of a run. A telemetry.Emitter is one.
type Metrics interface {
	Emit(properties telemetry.Properties, measurements ...telemetry.Measurement) error
}

// Handler runs the archive for each tick of the Scheduler, and reports it.
type Handler struct {
	worker  *Worker
	metrics Metrics
	random  system.Random
	logger  *slog.Logger
}

// NewHandler returns a Handler for the worker.
func NewHandler(worker *Worker, metrics Metrics, random system.Random, logger *slog.Logger) *Handler {
	return &Handler{worker: worker, metrics: metrics, random: random, logger: logger}
}

// Handle answers one tick. What the tick says decides nothing. The error is the run's;
// Lambda then runs it again, and it goes on where it stopped.
func (h *Handler) Handle(ctx context.Context, _ json.RawMessage) error {
	request := telemetry.RequestID(ctx, h.random)
	ctx = telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyRequestID, string(request)))
	// The worker is this run and not the request: Lambda repeats a request that failed, and
	// two runs must not have one lease.
	report, err := h.worker.Run(ctx, lease.Worker(ledger.NewRequestID(h.random.Bits128())))
	h.logger.InfoContext(ctx, "archive run ended",
		slog.Int("archived", report.Archived), slog.Int("put_off", report.PutOff), slog.Int("failed", report.Failed),
		slog.Int("taken_elsewhere", report.TakenElsewhere), slog.Bool("truncated", report.Truncated))
	if err != nil {
		err = fmt.Errorf("archive run: %w", err)
	}
	return errors.Join(err, h.metrics.Emit(
		telemetry.Properties{telemetry.KeyRequestID: string(request)}, measurements(report, err)...))
}

func measurements(r Report, err error) []telemetry.Measurement {
	heartbeat, truncated := 1, 0
	if err != nil {
		heartbeat = 0
	}
	if r.Truncated {
		truncated = 1
	}
	return []telemetry.Measurement{
		telemetry.Count(telemetry.MetricArchiveHeartbeat, heartbeat),
		telemetry.Count(telemetry.MetricArchiveArchived, r.Archived),
		telemetry.Count(telemetry.MetricArchivePutOff, r.PutOff),
		telemetry.Count(telemetry.MetricArchiveFailed, r.Failed),
		telemetry.Count(telemetry.MetricArchiveTruncated, truncated),
	}
}
