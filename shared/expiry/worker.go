package expiry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/due"
	"holdfast/shared/ledger"
	"holdfast/shared/skew"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

const (
	// MessagesAtOnceMax bounds how many messages of a batch are worked on at the same time.
	// It is a whole batch, so that a message that hangs makes no other late.
	MessagesAtOnceMax = 10
	// SendFor bounds the sending of one message.
	SendFor = 2 * time.Second
)

// WorkerPorts is what a Worker works with. All are needed.
type WorkerPorts struct {
	Ender *Ender
	// Sweep answers a call for another sweep.
	Sweep Helper
	// Queue is the queue that the messages come from.
	Queue Sender
	// Parking is read to learn of the clock, when nothing is known of it.
	Parking  Parking
	Skew     Skew
	Parallel system.Parallel
	Clock    system.Clock
	Logger   *slog.Logger
}

// Helper sweeps beside the sweep that has called for help. A Sweep is one.
type Helper interface {
	// Help sweeps once, and calls for no more help. Its report and its error are those of
	// any other sweep.
	Help(ctx context.Context, request ledger.RequestID) (Report, error)
}

// Worker ends the holds that due messages name. A message is a hint, as an entry of the
// due index is: it may come early, late, twice or never, and the sweep does what it does
// not.
type Worker struct {
	ports WorkerPorts
}

// NewWorker returns a Worker. It returns an error when a port is missing.
func NewWorker(ports WorkerPorts) (*Worker, error) {
	p := ports
	if p.Ender == nil || p.Sweep == nil || p.Queue == nil || p.Parking == nil || p.Skew == nil || p.Parallel == nil || p.Clock == nil || p.Logger == nil {
		return nil, errors.New("due messages: a port is missing")
	}
	return &Worker{ports}, nil
}

// BatchReport is what became of the messages of one batch.
type BatchReport struct {
	// Released counts the holds that were ended, Ended those that had ended before or are
	// due later, Forwarded the messages that were sent on, because their time had not come.
	Released, Ended, Forwarded int
	// Failed counts the messages that could not be worked on.
	Failed int
	// Delays are the times from the due time to the end of each hold that was released.
	Delays []time.Duration
	// Help is the sweep that a message has called for, and HelpErr its error. It is nil
	// without such a message.
	Help    *Report
	HelpErr error
}

// step is what became of one message.
type step int

const (
	stepFailed step = iota // it comes again
	stepParked             // it could not be worked on, and need not come again
	stepReleased
	stepEnded
	stepForwarded
	stepHelp // a call for a sweep, which is answered after all others
)

// Work works on one batch. The answer names the messages that must come again: those that
// failed, those that can't be read, and those for which no time was left. The queue moves
// what comes too often to its dead letters; the sweep ends their holds in any case. The
// error means that the whole batch must come again, because the clock is wrong
// (ErrClockUnreliable), because the reads failed that would tell of it, or because a message
// has no id, so that it could not be named. A batch may be repeated, in parts and at the same
// time.
func (w *Worker) Work(ctx context.Context, batch events.SQSEvent, request ledger.RequestID) (events.SQSEventResponse, BatchReport, error) {
	response := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	var report BatchReport
	for i, m := range batch.Records {
		if m.MessageId == "" {
			return events.SQSEventResponse{}, report, fmt.Errorf("due messages: message %d of %d has no id", i+1, len(batch.Records))
		}
	}
	late := lateAfter(ctx, w.ports.Clock)
	if err := w.learnOfClock(ctx, batch); err != nil {
		report.Failed = len(batch.Records)
		return events.SQSEventResponse{}, report, err
	}
	if w.ports.Skew.Unreliable() {
		report.Failed = len(batch.Records)
		return events.SQSEventResponse{}, report, ErrClockUnreliable
	}
	steps, delays := make([]step, len(batch.Records)), make([]time.Duration, len(batch.Records))
	w.ports.Parallel.Do(len(batch.Records), MessagesAtOnceMax, func(i int) {
		steps[i], delays[i] = w.message(ctx, batch.Records[i], request, late)
	})
	calls := 0
	for i, m := range batch.Records {
		report.add(steps[i], delays[i])
		if steps[i] == stepFailed {
			response.BatchItemFailures = append(response.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
		if steps[i] == stepHelp {
			calls++
		}
	}
	if calls > 0 {
		w.help(ctx, request, calls-1, &report)
	}
	return response, report, nil
}

// help sweeps for another worker. Calls that came with others in one batch are sent on,
// each for a worker of its own. One that is lost costs time and nothing else: the next tick
// calls again, if there is still so much to do.
func (w *Worker) help(ctx context.Context, request ledger.RequestID, others int, report *BatchReport) {
	for range others {
		if err := w.send(ctx, SweepCall, 0); err != nil {
			w.ports.Logger.WarnContext(ctx, "a call for help could not be sent on", slog.Any("error", err))
			break
		}
	}
	sweep, err := w.ports.Sweep.Help(ctx, request)
	report.Help, report.HelpErr = &sweep, err
}

func (r *BatchReport) add(s step, delay time.Duration) {
	switch s {
	case stepReleased:
		r.Released++
		r.Delays = append(r.Delays, delay)
	case stepEnded:
		r.Ended++
	case stepForwarded:
		r.Forwarded++
	case stepFailed, stepParked:
		r.Failed++
	case stepHelp:
	}
}

// learnOfClock makes some reads, whose answers say how far the clock is off, when nothing
// is known of it: a process that has just begun, or was frozen, must not end by a clock
// that nobody has looked at. A message is no proof that a hold is over: its owner may have
// made it longer since. Where the reads fail, and nothing is known for that reason, the
// error says so.
func (w *Worker) learnOfClock(ctx context.Context, batch events.SQSEvent) error {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	reads := 0
	var failed error
	for _, m := range batch.Records {
		read := w.readFor(m.Body)
		for read != nil && reads < skew.Observations && !w.ports.Skew.Known() {
			if err := read(ctx); err != nil {
				failed = err
				w.ports.Logger.WarnContext(ctx, "a read that tells of the clock has failed", slog.Any("error", err))
			}
			reads++
		}
	}
	if failed != nil && !w.ports.Skew.Known() {
		return fmt.Errorf("due messages: nothing is known of this machine's clock: %w", failed)
	}
	return nil
}

// readFor is a cheap read near what the message is about, or nil for one that can't be read.
// A call for a sweep needs it as much as any other message: the sweep ends holds.
func (w *Worker) readFor(body string) func(ctx context.Context) error {
	if isSweepCall(body) {
		return func(ctx context.Context) error {
			_, _, err := w.ports.Parking.Parked(ctx, 0, ledger.Page{Limit: 1})
			return err
		}
	}
	message, err := due.DecodeMessage(body)
	if err != nil {
		return nil
	}
	return func(ctx context.Context) error {
		_, err := w.ports.Parking.Failures(ctx, message.Hold)
		return err
	}
}

// message works on one message, whatever happens on the way. What is logged of a message
// that can't be read is its id: the rest may be anything (promise P12).
func (w *Worker) message(ctx context.Context, m events.SQSMessage, request ledger.RequestID, late func() bool) (step, time.Duration) {
	ctx = telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyMessageID, m.MessageId))
	if isSweepCall(m.Body) {
		return stepHelp, 0
	}
	message, err := due.DecodeMessage(m.Body)
	if err != nil {
		w.ports.Logger.ErrorContext(ctx, "a message can't be read; it ends as a dead letter", slog.Any("error", err))
		return stepFailed, 0
	}
	if late() {
		w.ports.Logger.WarnContext(ctx, "no time was left for a message; it comes again")
		return stepFailed, 0
	}
	if wait := message.Delay(w.ports.Clock.Now()); wait > 0 {
		return w.forward(ctx, message, wait), 0
	}
	ending := w.ports.Ender.End(ctx, ledger.DueHold{ID: message.Hold, DueAt: message.DueAt}, request)
	switch ending.Outcome {
	case OutcomeReleased:
		return stepReleased, ending.Delay
	case OutcomeEnded:
		return stepEnded, 0
	case OutcomeParked:
		// From now on the sweep has its times.
		return stepParked, 0
	default:
		return stepFailed, 0
	}
}

// forward sends the message on: the queue keeps none back for longer than due.DelayMax. It
// is sent before the old one is deleted, so a crash doubles it and loses none.
func (w *Worker) forward(ctx context.Context, message due.Message, wait time.Duration) step {
	body, err := message.Encode()
	if err == nil {
		err = w.send(ctx, body, wait)
	}
	if err != nil {
		w.ports.Logger.ErrorContext(ctx, "a message before its time could not be sent on; it comes again",
			slog.String(telemetry.KeyHoldID, string(message.Hold)), slog.Any("error", err))
		return stepFailed
	}
	return stepForwarded
}

func (w *Worker) send(ctx context.Context, body string, delay time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, SendFor)
	defer cancel()
	_, err := guarded(func() (struct{}, error) { return struct{}{}, w.ports.Queue.Send(ctx, body, delay) })
	return err
}
