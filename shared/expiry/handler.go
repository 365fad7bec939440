package expiry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// Metrics takes the numbers of a sweep. A telemetry.Emitter is one.
type Metrics interface {
	Emit(properties telemetry.Properties, measurements ...telemetry.Measurement) error
}

// Handler runs a sweep for each tick of the Scheduler, and reports it.
type Handler struct {
	sweep   *Sweep
	metrics Metrics
	random  system.Random
	logger  *slog.Logger
}

// NewHandler returns a Handler for the sweep.
func NewHandler(sweep *Sweep, metrics Metrics, random system.Random, logger *slog.Logger) *Handler {
	return &Handler{sweep: sweep, metrics: metrics, random: random, logger: logger}
}

// Handle answers one tick. What the tick says decides nothing, so that nothing in it
// can keep the sweep from running. The error is the sweep's; Lambda then runs it again.
func (h *Handler) Handle(ctx context.Context, _ json.RawMessage) error {
	request := h.requestID(ctx)
	ctx = telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyRequestID, string(request)))
	report, err := h.sweep.Run(ctx, request)
	h.logger.InfoContext(ctx, "sweep ended",
		slog.Int("released", report.Released), slog.Int("already_ended", report.AlreadyEnded),
		slog.Int("failed", report.Failed), slog.Bool("truncated", report.Truncated),
		slog.Int("remaining_min", report.RemainingMin),
		slog.Bool("lag_known", report.LagKnown), telemetry.Duration("lag_seconds", report.Lag))
	if err != nil {
		err = fmt.Errorf("sweep: %w", err)
	}
	return errors.Join(err, h.metrics.Emit(
		telemetry.Properties{telemetry.KeyRequestID: string(request)}, measurements(report, err)...))
}

// requestID is Lambda's name of this call, so that an event leads to its log lines.
func (h *Handler) requestID(ctx context.Context) ledger.RequestID {
	if call, known := lambdacontext.FromContext(ctx); known && call.AwsRequestID != "" {
		return ledger.RequestID(call.AwsRequestID)
	}
	return ledger.NewRequestID(h.random.Bits128())
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
		telemetry.Count(telemetry.MetricExpiryHeartbeat, heartbeat),
		telemetry.Count(telemetry.MetricExpiryReleased, r.Released),
		telemetry.Count(telemetry.MetricExpiryAlreadyEnded, r.AlreadyEnded),
		telemetry.Count(telemetry.MetricExpiryFailed, r.Failed),
		telemetry.Count(telemetry.MetricExpiryTruncated, truncated),
		telemetry.Count(telemetry.MetricExpiryRemainingMin, r.RemainingMin),
	}
	if r.LagKnown {
		out = append(out, telemetry.Measurement{Metric: telemetry.MetricExpiryLagSecondsMax, Value: r.Lag.Seconds()})
	}
	return out
}
