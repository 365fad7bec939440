package saga

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"holdfast/shared/due"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

const (
	// TickPageItems is how many due reservations are read from a shard at once: about as
	// many as one tick can drive, over all shards.
	TickPageItems = 25
	// StepFor bounds one read of a tick: a page of the index, or one reservation.
	StepFor = 4 * time.Second
)

// DueStore is what a tick reads. A ledger.Store is one.
type DueStore interface {
	// DueReservations lists entries of one shard of the due index, the oldest first.
	DueReservations(ctx context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueReservation, ledger.Cursor, error)
	// Reservation returns CodeReservationNotFound for an id without a reservation.
	Reservation(ctx context.Context, id ledger.ReservationID) (ledger.Reservation, error)
}

// Tick drives the reservations that are due, the longest overdue first. It finds what no
// message told of, so that a lost message costs time and no money.
type Tick struct {
	store  DueStore
	driver ReservationDriver
	clock  system.Clock
	logger *slog.Logger
}

// NewTick returns a Tick that finds in the store what the driver drives.
func NewTick(store DueStore, driver ReservationDriver, clock system.Clock, logger *slog.Logger) *Tick {
	return &Tick{store: store, driver: driver, clock: clock, logger: logger}
}

// Report is what a tick saw and did.
type Report struct {
	// At is when the tick began.
	At time.Time
	// Lag is how long the oldest due reservation had been due when the tick began; zero
	// when none was. It is not known, and then LagKnown is false, when a shard could not be
	// read or time ran out before one was found: zero would be a lie.
	Lag      time.Duration
	LagKnown bool
	// Driven counts the reservations that were driven, and Failed those that could not be.
	Driven, Failed int
	// Gone counts entries whose reservation is not there.
	Gone int
	// Truncated says that the tick stopped for lack of time with work left, and
	// RemainingMin how many entries it had read and left behind.
	Truncated    bool
	RemainingMin int
}

// Run looks once. It returns an error when a shard could not be read to its end, after it
// has done what it could with the others; the Report is right in any case. A reservation
// that fails is counted and logged, and is no error: the next tick meets it again. It may
// be called again at any time, also while another call runs.
func (t *Tick) Run(ctx context.Context, request ledger.RequestID) (Report, error) {
	now := system.Millisecond(t.clock)
	late := lateAfter(ctx, t.clock)
	run := tickRun{Tick: t, now: now, request: request, report: Report{At: now}, queue: due.NewQueue(due.Source[ledger.DueReservation]{
		List: func(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueReservation, ledger.Cursor, error) {
			return t.store.DueReservations(ctx, shard, now, page)
		},
		DueAt:     func(entry ledger.DueReservation) time.Time { return entry.DueAt },
		PageItems: TickPageItems, PageFor: StepFor, Late: late,
	})}
	for {
		entry, found := run.queue.Next(ctx)
		if found && late() {
			run.report.Truncated, run.report.RemainingMin = true, 1
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
		run.report.LagKnown = true // every entry was looked at, and none was due
	}
	if err := run.queue.Err(); err != nil {
		return run.report, fmt.Errorf("saga: %w", err)
	}
	return run.report, nil
}

// tickRun is one tick under way.
type tickRun struct {
	*Tick
	now     time.Time
	request ledger.RequestID
	queue   *due.Queue[ledger.DueReservation]
	report  Report
	// dueSeen says that the oldest due reservation has been met.
	dueSeen bool
}

// settle deals with one entry, whatever happens on the way.
func (r *tickRun) settle(ctx context.Context, entry ledger.DueReservation) {
	ctx = telemetry.WithCorrelation(ctx, slog.String(telemetry.KeyReservationID, string(entry.ID)))
	if !r.dueSeen {
		r.measureLag(ctx, entry)
	}
	switch err := driveGuarded(ctx, r.driver, entry.ID, nil, r.request); {
	case err == nil:
		r.report.Driven++
	case ledger.CodeOf(err) == ledger.CodeReservationNotFound:
		r.report.Gone++
	default:
		r.report.Failed++
		if r.report.Failed <= FailureLinesMax {
			r.logger.ErrorContext(ctx, "a due reservation could not be driven; the next tick tries again",
				slog.Time("due_at", entry.DueAt), slog.Any("error", err))
		}
	}
}

// measureLag looks whether the entry is the oldest reservation that is really due. The
// index lags, so the reservation itself says. One that cannot be read counts as due: a
// lag too long wakes somebody, and one too short lets everybody sleep. It is measured
// before any drive, so that a tick that can drive nothing still tells how far behind it
// is.
func (r *tickRun) measureLag(ctx context.Context, entry ledger.DueReservation) {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	var reservation ledger.Reservation
	err := guarded(func() (err error) {
		reservation, err = r.store.Reservation(ctx, entry.ID)
		return err
	})
	if ledger.CodeOf(err) == ledger.CodeReservationNotFound {
		return
	}
	dueAt := entry.DueAt
	if err == nil {
		if dueAt = reservation.LookAt; dueAt.IsZero() || dueAt.After(r.now) {
			return
		}
	}
	r.dueSeen = true
	r.report.Lag = r.now.Sub(dueAt)
	r.report.LagKnown = r.queue.Err() == nil
}
