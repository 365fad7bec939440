package expiry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// Metrics takes the numbers of a run. A telemetry.Emitter is one.
type Metrics interface {
	Emit(properties telemetry.Properties, measurements ...telemetry.Measurement) error
}

// HandlerPorts is what a Handler works with. All are needed.
type HandlerPorts struct {
	Worker *Worker
	Tick   *Tick
	Skew   Skew
	// Commands is where the commands that end holds count how they fare.
	Commands telemetry.CommandTally
	Metrics  Metrics
	Random   system.Random
	Logger   *slog.Logger
}

// Handler is the expiry function: it hands batches of due messages to the Worker, and ticks
// of the Scheduler to the Tick, and reports both.
type Handler struct {
	ports    HandlerPorts
	recovery telemetry.Recovery
}

// NewHandler returns a Handler. It returns an error when a port is missing.
func NewHandler(ports HandlerPorts) (*Handler, error) {
	if ports.Worker == nil || ports.Tick == nil || ports.Skew == nil || ports.Metrics == nil || ports.Random == nil || ports.Logger == nil ||
		ports.Commands.Tally == nil || ports.Commands.Spread == nil {
		return nil, errors.New("expiry: a port is missing")
	}
	return &Handler{ports: ports}, nil
}

// Handle answers one event. A batch of the queue is what has Records, and its answer names
// the messages that must come again. Everything else is a tick, whatever it says, so that
// nothing in it can keep the sweep from running; it has no answer. With an error Lambda
// hands the event over again.
func (h *Handler) Handle(ctx context.Context, event json.RawMessage) (any, error) {
	request := telemetry.RequestID(ctx, h.ports.Random)
	ctx = telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyRequestID, string(request)))
	if !hasRecords(event) {
		return nil, h.runTick(ctx, request)
	}
	var batch events.SQSEvent
	if err := json.Unmarshal(event, &batch); err != nil {
		// The error may repeat what it read.
		return nil, errors.New("expiry: the records are not messages of a queue")
	}
	response, report, err := h.ports.Worker.Work(ctx, batch, request)
	if emitErr := h.reportBatch(ctx, request, report, err); emitErr != nil {
		// Failing the batch for it would work on everything again.
		h.ports.Logger.ErrorContext(ctx, "the batch could not be reported", slog.Any("error", emitErr))
	}
	if err != nil {
		return nil, fmt.Errorf("expiry: %w", err)
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
	report, err := h.ports.Tick.Run(ctx, request)
	h.logSweep(ctx, report.Report, err, slog.Int("parked_before", report.ParkedBefore), slog.Int("ghosts", report.Ghosts))
	measured := append(sweepMeasurements(report.Report, err),
		telemetry.Count(telemetry.MetricExpiryParked, report.ParkedBefore),
		telemetry.Count(telemetry.MetricExpiryGhosts, report.Ghosts),
		telemetry.Count(telemetry.MetricExpiryWorkers, report.Helpers),
		h.skew())
	if report.LagKnown {
		if took, recovered := h.recovery.Observe(report.At, report.Lag, 0); recovered {
			measured = append(measured, telemetry.Measurement{Metric: telemetry.MetricExpiryRecoverySeconds, Value: took.Seconds()})
		}
	}
	if err != nil {
		err = fmt.Errorf("sweep: %w", err)
	}
	// Silence must not pass for health.
	return errors.Join(err, h.emit(request, measured...), h.reportCommands(request))
}

// reportCommands tells how the commands of a run fared, if there is anything to tell: mostly
// they meet nobody, and what a run tells anyway is enough then.
func (h *Handler) reportCommands(request ledger.RequestID) error {
	var failures []error
	for _, line := range h.ports.Commands.Take(telemetry.MetricConflictRetries) {
		failures = append(failures, h.emit(request, line...))
	}
	return errors.Join(failures...)
}

// reportBatch reports a batch, and the sweep that it has made for another one. The error
// of that sweep makes no message come again: the next tick does its work.
func (h *Handler) reportBatch(ctx context.Context, request ledger.RequestID, report BatchReport, err error) error {
	measured := []telemetry.Measurement{
		telemetry.Count(telemetry.MetricDueReleased, report.Released),
		telemetry.Count(telemetry.MetricDueEnded, report.Ended),
		telemetry.Count(telemetry.MetricDueForwarded, report.Forwarded),
		telemetry.Count(telemetry.MetricDueFailed, report.Failed),
	}
	if len(report.Delays) > 0 {
		measured = append(measured, releaseDelay(percentile95(report.Delays)))
	}
	if errors.Is(err, ErrClockUnreliable) {
		measured = append(measured, h.skew())
	}
	failure := errors.Join(h.emit(request, measured...), h.reportCommands(request))
	if report.Help != nil {
		h.logSweep(ctx, *report.Help, report.HelpErr, slog.Bool("helps", true))
		failure = errors.Join(failure, h.emit(request, sweepMeasurements(*report.Help, report.HelpErr)...))
	}
	return failure
}

func (h *Handler) logSweep(ctx context.Context, r Report, err error, more ...slog.Attr) {
	level, attributes := slog.LevelInfo, []slog.Attr{
		slog.Int("released", r.Released), slog.Int("already_ended", r.AlreadyEnded), slog.Int("failed", r.Failed),
		slog.Int("parked", r.Parked), slog.Bool("truncated", r.Truncated), slog.Int("remaining_min", r.RemainingMin),
		slog.Int("helpers", r.Helpers), slog.Int("left_to_others", r.LeftToOthers),
		slog.Bool("lag_known", r.LagKnown), telemetry.Duration("lag_seconds", r.Lag),
	}
	if err != nil {
		level, attributes = slog.LevelError, append(attributes, slog.Any("error", err))
	}
	h.ports.Logger.LogAttrs(ctx, level, "sweep ended", append(attributes, more...)...)
}

func (h *Handler) emit(request ledger.RequestID, measured ...telemetry.Measurement) error {
	return h.ports.Metrics.Emit(telemetry.Properties{telemetry.KeyRequestID: string(request)}, measured...)
}

// skew is how far the clock is off, in either direction.
func (h *Handler) skew() telemetry.Measurement {
	return telemetry.Measurement{Metric: telemetry.MetricClockSkewSecondsMax, Value: h.ports.Skew.Skew().Abs().Seconds()}
}

func sweepMeasurements(r Report, err error) []telemetry.Measurement {
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
		telemetry.Count(telemetry.MetricExpiryFailed, r.Failed+r.Parked),
		telemetry.Count(telemetry.MetricExpiryTruncated, truncated),
		telemetry.Count(telemetry.MetricExpiryRemainingMin, r.RemainingMin),
	}
	if r.LagKnown {
		out = append(out, telemetry.Measurement{Metric: telemetry.MetricExpiryLagSecondsMax, Value: r.Lag.Seconds()})
	}
	if r.Released > 0 {
		out = append(out, releaseDelay(r.ReleaseDelayP95))
	}
	return out
}

func releaseDelay(p95 time.Duration) telemetry.Measurement {
	return telemetry.Measurement{Metric: telemetry.MetricExpiryReleaseDelaySecondsP95, Value: p95.Seconds()}
}
