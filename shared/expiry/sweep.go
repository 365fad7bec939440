package expiry

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"holdfast/shared/due"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

const (
	// StepFor bounds one step of a sweep: reading a page, or ending one hold. One that
	// hangs must not use up the time of all the others.
	StepFor = 4 * time.Second
	// MarginBeforeDeadline is the part of a run's time in which nothing new is begun. It
	// is longer than StepFor, so that the last step ends, and the report is written,
	// before Lambda ends the process.
	MarginBeforeDeadline = 5 * time.Second
	// SweepForMax bounds a sweep whose caller sets no deadline.
	SweepForMax = 50 * time.Second
	// FailureLinesMax bounds the log lines about single holds in one sweep. The count
	// goes on.
	FailureLinesMax = 20
)

// Store is what a sweep reads. A ledger.Store is one.
type Store interface {
	// Due lists entries of one shard of the due index, the oldest first.
	Due(ctx context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error)
	// Hold returns CodeHoldNotFound for an id without a hold.
	Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error)
}

// Releaser ends one hold. Commands of package commands are one.
type Releaser interface {
	// ExpireHold ends the hold if it is over, and reports whether this call did. False
	// without an error means that it had ended before. CodeHoldNotDue means that it is
	// not over, CodePaymentInProgress that its payment must be closed first,
	// CodeHoldNotFound that there is none. It may be repeated.
	ExpireHold(ctx context.Context, id ledger.HoldID, request ledger.RequestID) (bool, error)
}

// Sweep ends overdue holds, one at a time, the longest overdue first.
type Sweep struct {
	store     Store
	releaser  Releaser
	clock     system.Clock
	logger    *slog.Logger
	pageItems int
}

// NewSweep returns a Sweep that reads pageItems entries of a shard at once. It returns
// an error when that is not 1 to ledger.PageItemsMax.
func NewSweep(store Store, releaser Releaser, clock system.Clock, logger *slog.Logger, pageItems int) (*Sweep, error) {
	if pageItems < 1 || pageItems > ledger.PageItemsMax {
		return nil, fmt.Errorf("sweep: a page of %d items; want 1 to %d", pageItems, ledger.PageItemsMax)
	}
	return &Sweep{store: store, releaser: releaser, clock: clock, logger: logger, pageItems: pageItems}, nil
}

// Report is what a sweep saw and did.
type Report struct {
	// Lag is how long the oldest overdue hold had been over when the sweep began; zero
	// when none was. It is not known, and then LagKnown is false, when a shard could not
	// be read or time ran out before a hold was found: zero would be a lie.
	Lag      time.Duration
	LagKnown bool
	// Released counts the holds that this sweep ended.
	Released int
	// AlreadyEnded counts entries whose hold had ended, or is due later than the entry
	// says. The index is never strongly consistent, and other sweeps run.
	AlreadyEnded int
	// Failed counts the holds that should have been ended and could not be.
	Failed int
	// Truncated says that the sweep stopped for lack of time with work left, and
	// RemainingMin how many entries it had read and left behind.
	Truncated    bool
	RemainingMin int
}

// Run sweeps once. It returns an error when a shard could not be read to its end, after
// it has done what it could with the others; the Report is right in any case. A hold
// that fails is counted and logged, and is no error: the next sweep meets it again.
// It may be called again at any time, also while another call runs.
func (s *Sweep) Run(ctx context.Context, request ledger.RequestID) (Report, error) {
	now := system.Millisecond(s.clock)
	stopAt := now.Add(SweepForMax)
	if deadline, bounded := ctx.Deadline(); bounded && deadline.Add(-MarginBeforeDeadline).Before(stopAt) {
		stopAt = deadline.Add(-MarginBeforeDeadline)
	}
	late := func() bool { return ctx.Err() != nil || !s.clock.Now().Before(stopAt) }
	run := run{Sweep: s, now: now, request: request, queue: due.NewQueue(due.Source[ledger.DueHold]{
		List: func(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
			return s.store.Due(ctx, shard, now, page)
		},
		DueAt:     func(entry ledger.DueHold) time.Time { return entry.DueAt },
		PageItems: s.pageItems, PageFor: StepFor, Late: late,
	})}
	for {
		entry, found := run.queue.Next(ctx)
		if found && late() {
			run.report.Truncated = true
			run.report.RemainingMin = 1
			break
		}
		if !found {
			break
		}
		run.settle(ctx, entry)
	}
	run.report.Truncated = run.report.Truncated || run.queue.Cut()
	run.report.RemainingMin += run.queue.Waiting()
	if !run.report.LagKnown && !run.report.Truncated && run.queue.Err() == nil {
		run.report.LagKnown = true // every entry was looked at, and no hold was overdue
	}
	return run.report, run.queue.Err()
}

// run is one sweep under way.
type run struct {
	*Sweep
	now     time.Time
	request ledger.RequestID
	queue   *due.Queue[ledger.DueHold]
	report  Report
	// overdueSeen says that the oldest overdue hold has been met.
	overdueSeen bool
}

// settle deals with one entry, whatever happens on the way.
func (r *run) settle(ctx context.Context, entry ledger.DueHold) {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	if !r.overdueSeen {
		r.measureLag(ctx, entry)
	}
	released, err := guarded(func() (bool, error) { return r.releaser.ExpireHold(ctx, entry.ID, r.request) })
	switch code := ledger.CodeOf(err); {
	case err == nil && released:
		r.report.Released++
	case err == nil, code == ledger.CodeHoldNotDue, code == ledger.CodeHoldNotFound, code == ledger.CodePaymentInProgress:
		// With a payment in progress it is due later than the entry says.
		r.report.AlreadyEnded++
	default:
		r.report.Failed++
		if r.report.Failed <= FailureLinesMax {
			r.logger.ErrorContext(ctx, "a hold could not be ended; the next sweep tries again",
				slog.String(telemetry.KeyHoldID, string(entry.ID)), slog.Time("due_at", entry.DueAt), slog.Any("error", err))
		}
	}
}

// measureLag looks whether the entry is the oldest hold that is really overdue. The
// entries come in the order of their due time, so the first one that is HELD is it. A
// hold that cannot be read counts as overdue: a lag too long wakes somebody, and one
// too short lets everybody sleep. It is measured before any release, so that a sweep
// that can release nothing still tells how far behind it is.
func (r *run) measureLag(ctx context.Context, entry ledger.DueHold) {
	hold, err := guarded(func() (ledger.Hold, error) { return r.store.Hold(ctx, entry.ID) })
	if ledger.CodeOf(err) == ledger.CodeHoldNotFound {
		return
	}
	dueAt := entry.DueAt
	if err == nil {
		waits := false
		if dueAt, waits = hold.DueAt(); !waits || dueAt.After(r.now) {
			return
		}
	}
	r.overdueSeen = true
	r.report.Lag = r.now.Sub(dueAt)
	r.report.LagKnown = r.queue.Err() == nil
}

// guarded turns a panic about one hold into its failure: it would come again in every
// sweep at the same place, and keep all holds behind it from ending.
func guarded[T any](step func() (T, error)) (result T, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v\n%s", cause, debug.Stack())
		}
	}()
	return step()
}
