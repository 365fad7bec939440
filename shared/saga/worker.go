package saga

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

const (
	// DriveFor bounds the drive of one reservation: one call to the provider and one write
	// at their slowest, and room for the reads. One that hangs must not use up the time of
	// all the others; what it has not done, a later drive does.
	DriveFor = topology.ProviderBudget + topology.DatabaseBudget + 2*time.Second
	// DriveMargin is the part of a run's time in which no drive is begun. It is longer than
	// DriveFor, so that the last drive ends, and the run is reported, before Lambda ends the
	// process.
	DriveMargin = DriveFor + 2*time.Second
	// RunForMax bounds a run whose caller sets no deadline.
	RunForMax = 30 * time.Second
	// FailureLinesMax bounds the log lines about single reservations in one run. The count
	// goes on.
	FailureLinesMax = 20
)

// ReservationDriver drives one reservation. A Driver is one.
type ReservationDriver interface {
	// Drive takes the reservation as far as it can go now. It returns nil when that is
	// done, also when it must be looked at later. CodeReservationNotFound says that there is
	// none, or none yet; every other error that it should be tried again. It may be repeated.
	Drive(ctx context.Context, id ledger.ReservationID, notice *payment.Notice, request ledger.RequestID) error
}

var _ ReservationDriver = (*Driver)(nil)

// errPanic is the failure of a drive that panicked.
var errPanic = errors.New("panic")

// Worker drives the reservations that messages name.
type Worker struct {
	driver  ReservationDriver
	metrics Metrics
	clock   system.Clock
	logger  *slog.Logger
}

// NewWorker returns a Worker for the driver.
func NewWorker(driver ReservationDriver, metrics Metrics, clock system.Clock, logger *slog.Logger) *Worker {
	return &Worker{driver: driver, metrics: metrics, clock: clock, logger: logger}
}

// Handle works on one batch, message by message, so that two of one reservation never
// meet. The answer names the messages that must come again: those that failed, those that
// can't be read, those of a reservation that is not there yet (case D9), and those for
// which no time was left. The queue moves what comes too often to its dead letters. The
// error means that the whole batch must come again: a message has no id, so that it could
// not be named.
func (w *Worker) Handle(ctx context.Context, batch events.SQSEvent, request ledger.RequestID) (events.SQSEventResponse, error) {
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for i, m := range batch.Records {
		if m.MessageId == "" {
			return events.SQSEventResponse{}, fmt.Errorf("saga: message %d of %d has no id", i+1, len(batch.Records))
		}
	}
	work := batchWork{Worker: w, request: request, late: lateAfter(ctx, w.clock)}
	for _, m := range batch.Records {
		if !work.message(ctx, m) {
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
	}
	if err := w.metrics.Emit(telemetry.Properties{telemetry.KeyRequestID: string(request)}, work.measurements()...); err != nil {
		// Failing the batch for it would drive everything again.
		w.logger.ErrorContext(ctx, "the batch could not be reported", slog.Any("error", err))
	}
	return response, nil
}

// batchWork is one batch under way.
type batchWork struct {
	*Worker
	request ledger.RequestID
	late    func() bool

	driven, unknown, failed, left int
}

// message works on one message, whatever happens on the way, and reports whether it is
// done. What is logged of a message that can't be read is its id: the rest may be anything
// (promise P12).
func (w *batchWork) message(ctx context.Context, m events.SQSMessage) bool {
	ctx = telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyMessageID, m.MessageId))
	if w.late() {
		w.left++
		w.logger.WarnContext(ctx, "no time was left for a message; it comes again")
		return false
	}
	message, err := payment.DecodeMessage(m.Body)
	if err != nil {
		w.failed++
		w.logger.ErrorContext(ctx, "a message can't be read; it ends as a dead letter", slog.Any("error", err))
		return false
	}
	ctx = telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyReservationID, string(message.Reservation)))
	switch err := driveGuarded(ctx, w.driver, message.Reservation, message.Notice, w.request); {
	case err == nil:
		w.driven++
		return true
	case ledger.CodeOf(err) == ledger.CodeReservationNotFound:
		w.unknown++
		w.logger.WarnContext(ctx, "a message is of a reservation that is not there; it comes again")
	default:
		w.failed++
		w.logger.ErrorContext(ctx, "a message could not be worked on; it comes again", slog.Any("error", err))
	}
	return false
}

func (w *batchWork) measurements() []telemetry.Measurement {
	return []telemetry.Measurement{
		telemetry.Count(telemetry.MetricSagaDriven, w.driven),
		telemetry.Count(telemetry.MetricSagaUnknown, w.unknown),
		telemetry.Count(telemetry.MetricSagaFailed, w.failed),
		telemetry.Count(telemetry.MetricSagaTruncated, min(w.left, 1)),
	}
}

// lateAfter reports, from DriveMargin before the deadline on, that nothing new may begin.
func lateAfter(ctx context.Context, clock system.Clock) func() bool {
	stopAt := system.StopAt(ctx, clock, RunForMax, DriveMargin)
	return func() bool { return system.Late(ctx, clock, stopAt) }
}

// driveGuarded drives with the bound of one drive.
func driveGuarded(ctx context.Context, driver ReservationDriver, id ledger.ReservationID, notice *payment.Notice, request ledger.RequestID) error {
	ctx, cancel := context.WithTimeout(ctx, DriveFor)
	defer cancel()
	return guarded(func() error { return driver.Drive(ctx, id, notice, request) })
}

// guarded turns a panic about one reservation into its failure: it would come again in
// every run at the same place, and keep all behind it from being driven. What was panicked
// with may hold anything, so only its type and the place are told.
func guarded(step func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w of type %T\n%s", errPanic, cause, debug.Stack())
		}
	}()
	return step()
}
