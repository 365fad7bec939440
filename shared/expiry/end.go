package expiry

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// Outcome says what became of one try to end a hold.
type Outcome int

// The outcomes.
const (
	// OutcomeReleased: this try has ended the hold.
	OutcomeReleased Outcome = iota + 1
	// OutcomeEnded: it had ended before, or is due later than the entry says.
	OutcomeEnded
	// OutcomeFailed: it could not be ended, and comes again at the next sweep.
	OutcomeFailed
	// OutcomeParked: it could not be ended again and again, and is tried more seldom now.
	OutcomeParked
)

// Ending is what one try to end a hold came to.
type Ending struct {
	Outcome Outcome
	// Delay is the time from the due time to the end of a hold that was released.
	Delay time.Duration
	// Strained says that the database was throttled, unavailable or too busy: the failure is
	// not the hold's own, and less at once may be more.
	Strained bool
}

// EnderPorts is what an Ender works with. All are needed.
type EnderPorts struct {
	Releaser Releaser
	Parking  Parking
	// Failed is the queue that is told of parked holds.
	Failed Sender
	Clock  system.Clock
	Logger *slog.Logger
}

// Ender ends single holds, for sweeps and for due messages alike. It is safe for
// concurrent use.
type Ender struct {
	ports EnderPorts
	lines lineBudget
}

// NewEnder returns an Ender. It returns an error when a port is missing.
func NewEnder(ports EnderPorts) (*Ender, error) {
	if ports.Releaser == nil || ports.Parking == nil || ports.Failed == nil || ports.Clock == nil || ports.Logger == nil {
		return nil, errors.New("ender: a port is missing")
	}
	return &Ender{ports: ports}, nil
}

// End tries once to end the hold of the entry, within StepFor, whatever happens on the
// way. A failure is counted and logged, and parks the hold if it is one too many. It may
// be repeated.
func (e *Ender) End(ctx context.Context, entry ledger.DueHold, request ledger.RequestID) Ending {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	released, err := guarded(func() (bool, error) { return e.ports.Releaser.ExpireHold(ctx, entry.ID, request) })
	switch code := ledger.CodeOf(err); {
	case err == nil && released:
		return Ending{Outcome: OutcomeReleased, Delay: max(0, system.Millisecond(e.ports.Clock).Sub(entry.DueAt))}
	case err == nil, code == ledger.CodeHoldNotDue, code == ledger.CodeHoldNotFound, code == ledger.CodePaymentInProgress:
		// With a payment in progress it is due later than the entry says.
		return Ending{Outcome: OutcomeEnded}
	case isStrain(err):
		e.log(ctx, request, "a hold could not be ended, because of the database; the next sweep tries again", entry, err)
		return Ending{Outcome: OutcomeFailed, Strained: true}
	}
	return e.failed(ctx, entry, err, request)
}

// failed deals with a failure that is the hold's own.
func (e *Ender) failed(ctx context.Context, entry ledger.DueHold, cause error, request ledger.RequestID) Ending {
	outcome, err := guarded(func() (Outcome, error) { return e.count(ctx, entry, ledger.CodeOf(cause)) })
	if outcome == 0 {
		outcome = OutcomeFailed // a panic
	}
	if outcome == OutcomeParked {
		e.log(ctx, request, "a hold could not be ended again and again, and is parked; see what is wrong with it", entry, cause)
	} else {
		e.log(ctx, request, "a hold could not be ended; the next sweep tries again", entry, cause)
	}
	if err != nil {
		e.log(ctx, request, "the failure of a hold could not be noted in full", entry, err)
	}
	return Ending{Outcome: outcome, Strained: isStrain(err)}
}

// count notes one more failure, and parks the hold when there are too many. The message
// is sent before the hold is parked, so that no crash loses it; it may come twice. One
// that can't be sent does not keep the hold among those that are due: it is parked with a
// count one short, so that the next failure sends again.
func (e *Ender) count(ctx context.Context, entry ledger.DueHold, code ledger.Code) (Outcome, error) {
	before, err := e.ports.Parking.Failures(ctx, entry.ID)
	if err != nil {
		return OutcomeFailed, err
	}
	failures := before.Count + 1
	tryAt, park := nextTry(failures, system.Millisecond(e.ports.Clock))
	if !park {
		_, err := e.ports.Parking.CountFailure(ctx, entry, failures)
		return OutcomeFailed, err
	}
	var unsent error
	if failures == FailuresMax {
		if unsent = e.tell(ctx, parkedMessage{entry.ID, entry.DueAt.UTC().Format(timeLayout), failures, code}); unsent != nil {
			failures--
		}
	}
	parked, err := e.ports.Parking.Park(ctx, entry, failures, tryAt)
	if err != nil || !parked {
		return OutcomeFailed, errors.Join(unsent, err)
	}
	return OutcomeParked, unsent
}

// tell sends the message of a hold that is being parked.
func (e *Ender) tell(ctx context.Context, message parkedMessage) error {
	body, err := message.encode()
	if err != nil {
		return err
	}
	return e.ports.Failed.Send(ctx, body, 0)
}

// isStrain reports whether the failure is the database's, or the lack of time, and says
// nothing about the hold.
func isStrain(err error) bool {
	code := ledger.CodeOf(err)
	if code == ledger.CodeUnavailable || code == ledger.CodeOutcomeUnknown || code == ledger.CodeBusy {
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

func (e *Ender) log(ctx context.Context, request ledger.RequestID, message string, entry ledger.DueHold, err error) {
	if e.lines.take(request) {
		e.ports.Logger.ErrorContext(ctx, message,
			slog.String(telemetry.KeyHoldID, string(entry.ID)), slog.Time("due_at", entry.DueAt), slog.Any("error", err))
	}
}

// lineBudget bounds the log lines about single holds of one request: ten thousand equal
// lines help nobody, and the counts go on.
type lineBudget struct {
	mutex   sync.Mutex
	request ledger.RequestID
	lines   int
}

// take reports whether one more line may be written. A new request begins anew.
func (b *lineBudget) take(request ledger.RequestID) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.request != request {
		b.request, b.lines = request, 0
	}
	b.lines++
	return b.lines <= FailureLinesMax
}
