package expiry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	"holdfast/shared/due"
	"holdfast/shared/lease"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
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
	// RoundFor is after what time a round begins nothing more, so that the pace follows a
	// database that has become slow, and leases are renewed in time: a round and its last
	// step take less than half of LeaseFor.
	RoundFor = 5 * time.Second
	// WorkersMax is how many workers share a backlog. The queue that calls the helpers lets
	// no more run at once (topology), and 16 shards give each two.
	WorkersMax = 8
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

// HoldEnder ends one hold, whatever happens on the way. An Ender is one. It is called from
// several goroutines at once.
type HoldEnder interface {
	End(ctx context.Context, entry ledger.DueHold, request ledger.RequestID) Ending
}

// Helpers are other workers.
type Helpers interface {
	// Call asks for n more sweeps, 1 to WorkersMax-1, which begin when they can. It may be
	// repeated: a sweep that finds nothing to do ends at once.
	Call(ctx context.Context, n int) error
}

// Ahead reads the holds of a round together. A ReadAhead is one.
type Ahead interface {
	// Read reads them for whoever ends them. An error costs time only.
	Read(ctx context.Context, ids []ledger.HoldID) error
}

// SweepPorts is what a Sweep works with. All but Helpers and Ahead are needed; without the
// ones it does all of the work alone, and without the other each hold is read by itself.
type SweepPorts struct {
	Store    Store
	Ender    HoldEnder
	Leases   lease.Leases
	Helpers  Helpers
	Ahead    Ahead
	Clock    system.Clock
	Parallel system.Parallel
	Logger   *slog.Logger
}

// SweepSettings is how a Sweep works.
type SweepSettings struct {
	// PageItems is how many entries of a shard it reads at once at the most, 1 to
	// ledger.PageItemsMax.
	PageItems int
	// ParallelMax is how many holds it ends at once at the most, 1 to ParallelLimit.
	ParallelMax int
	// ParallelMin is how many it ends at once at the least, however slow writes become, 1 to
	// ParallelMax; 0 stands for 1. More than 1 takes from the buyers.
	ParallelMin int
}

// Sweep ends overdue holds, the longest overdue first.
type Sweep struct {
	ports    SweepPorts
	settings SweepSettings
}

// NewSweep returns a Sweep. It returns an error when a port is missing or a setting is out
// of bounds.
func NewSweep(ports SweepPorts, settings SweepSettings) (*Sweep, error) {
	if ports.Store == nil || ports.Ender == nil || ports.Leases == nil || ports.Clock == nil || ports.Parallel == nil || ports.Logger == nil {
		return nil, errors.New("sweep: a port is missing")
	}
	if settings.PageItems < 1 || settings.PageItems > ledger.PageItemsMax {
		return nil, fmt.Errorf("sweep: a page of %d items; want 1 to %d", settings.PageItems, ledger.PageItemsMax)
	}
	if settings.ParallelMax < 1 || settings.ParallelMax > ParallelLimit {
		return nil, fmt.Errorf("sweep: %d holds at once; want 1 to %d", settings.ParallelMax, ParallelLimit)
	}
	if settings.ParallelMin < 0 || settings.ParallelMin > settings.ParallelMax {
		return nil, fmt.Errorf("sweep: %d holds at once at the least; want 0 to %d", settings.ParallelMin, settings.ParallelMax)
	}
	return &Sweep{ports: ports, settings: settings}, nil
}

// Report is what a sweep saw and did.
type Report struct {
	// Lag is how long the oldest overdue hold had been over when the sweep began; zero
	// when none was. It is not known, and then LagKnown is false, when a shard could not
	// be read or time ran out before a hold was found: zero would be a lie. Parked holds are
	// not in it.
	Lag      time.Duration
	LagKnown bool
	// Released counts the holds that this sweep ended.
	Released int
	// ReleaseDelayP95 is the time from the due time to the end that 95 % of them stay at or
	// under. It is zero when there are none.
	ReleaseDelayP95 time.Duration
	// AlreadyEnded counts entries whose hold had ended, or is due later than the entry
	// says. The index is never strongly consistent, and other sweeps run.
	AlreadyEnded int
	// Failed counts the holds that should have been ended and could not be, and Parked those
	// that were put aside for that.
	Failed int
	Parked int
	// Truncated says that the sweep stopped for lack of time with work left, and
	// RemainingMin how many entries it had read and left behind.
	Truncated    bool
	RemainingMin int
	// Helpers is how many other workers it has called.
	Helpers int
	// LeftToOthers is how many shards with something due it has left to workers that have
	// leased them.
	LeftToOthers int
}

// Run sweeps once, and calls helpers when there is more to do than one worker can. It
// returns an error when a shard could not be read to its end, after it has done what it
// could with the others; the Report is right in any case. A hold that fails is counted,
// and is no error: the next sweep meets it again. It may be called again at any time, also
// while another call runs; the request is the name under which it takes leases.
func (s *Sweep) Run(ctx context.Context, request ledger.RequestID) (Report, error) {
	report, _, err := s.run(ctx, request)
	return report, err
}

// run is Run, and gives the delays of the holds that it ended too.
func (s *Sweep) run(ctx context.Context, request ledger.RequestID) (Report, []time.Duration, error) {
	r := s.begin(ctx, request)
	r.mayCall, r.mayWait = s.ports.Helpers != nil, true
	err := r.sweep(ctx)
	return r.report, r.delays, err
}

// Help is Run for a worker that was called by another: it calls nobody, and does not wait
// for what others have leased.
func (s *Sweep) Help(ctx context.Context, request ledger.RequestID) (Report, error) {
	r := s.begin(ctx, request)
	r.helps = true
	err := r.sweep(ctx)
	return r.report, err
}

// begin fixes the one time of a run, and when it stops.
func (s *Sweep) begin(ctx context.Context, request ledger.RequestID) *run {
	clock := s.ports.Clock
	return &run{
		Sweep: s, now: system.Millisecond(clock), stopAt: stopAt(ctx, clock), late: lateAfter(ctx, clock),
		request: request, pace: newPace(s.settings.ParallelMin, s.settings.ParallelMax),
		leases: shardLeases{leases: s.ports.Leases, clock: clock, logger: s.ports.Logger, worker: lease.Worker(request)},
	}
}

// stopAt is when a run that begins now begins nothing more.
func stopAt(ctx context.Context, clock system.Clock) time.Time {
	return system.StopAt(ctx, clock, SweepForMax, MarginBeforeDeadline)
}

// lateAfter reports, whenever it is asked, whether a run that begins now must stop.
func lateAfter(ctx context.Context, clock system.Clock) func() bool {
	at := stopAt(ctx, clock)
	return func() bool { return system.Late(ctx, clock, at) }
}

// run is one sweep under way.
type run struct {
	*Sweep
	now     time.Time
	stopAt  time.Time
	late    func() bool // nothing new may be begun
	request ledger.RequestID
	mayCall bool // helpers
	mayWait bool // for the leases of others
	helps   bool

	pace     pace
	leases   shardLeases
	read     [ledger.DueShards][]readPage
	report   Report
	delays   []time.Duration // of the holds that were ended
	failures []error
}

// sweep looks at all shards, takes those that it can, a share at a time, and works until
// nothing is left that it may do.
func (r *run) sweep(ctx context.Context) error {
	queue, first, open := r.look(ctx, due.AllShards())
	r.measureLag(ctx, queue, first)
	r.note(queue)
	workers := r.workers(ctx, open)
	for len(open) > 0 && !r.late() {
		share := (len(open) + workers - 1) / workers
		taken := r.leases.take(ctx, open, share)
		if len(taken) > 0 {
			r.work(ctx, taken)
			r.leases.giveBack(ctx, taken)
			open = without(open, taken, r.leases.lost)
		} else if !r.wait(ctx, open) {
			break
		}
		if !r.late() {
			// What was read of the others is old by now.
			queue, _, open = r.look(ctx, open)
			r.note(queue)
		}
	}
	r.finish(open)
	return errors.Join(r.failures...)
}

// without are the shards that were not taken, and those that were lost again.
func without(shards, taken []int, lost [ledger.DueShards]bool) []int {
	return slices.DeleteFunc(slices.Clone(shards), func(shard int) bool {
		return slices.Contains(taken, shard) && !lost[shard]
	})
}

// note keeps what a queue says of shards that it could not read.
func (r *run) note(queue *due.Queue[entry]) {
	if err := queue.Err(); err != nil {
		r.failures = append(r.failures, err)
	}
	r.report.Truncated = r.report.Truncated || queue.Cut()
}

// workers is how many workers share the open shards. With more to do than one of them does
// in one round at its best, others are called, once in a run. Who can't call does it alone,
// and is then the better for taking all shards at once: the oldest comes first.
func (r *run) workers(ctx context.Context, open []int) int {
	entries, more := r.kept(open)
	round := r.settings.ParallelMax * holdsForEach
	wanted := min((entries+round-1)/round, WorkersMax, len(open))
	if more {
		wanted = min(WorkersMax, len(open))
	}
	switch {
	case wanted <= 1:
		return 1
	case r.helps:
		return wanted
	case !r.mayCall || r.late():
		return 1
	}
	call, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	if err := r.ports.Helpers.Call(call, wanted-1); err != nil {
		r.ports.Logger.WarnContext(ctx, "no helpers could be called; the sweep works alone", slog.Any("error", err))
		return 1
	}
	r.report.Helpers = wanted - 1
	return wanted
}

// work ends what is due in the taken shards, round after round, the oldest first.
func (r *run) work(ctx context.Context, taken []int) {
	queue := r.queue(taken, r.takeOut)
	var left []entry
	for {
		r.leases.renew(ctx, taken)
		left = r.fill(ctx, queue, left)
		if len(left) == 0 {
			break
		}
		if r.late() {
			r.report.Truncated = true
			break
		}
		left = r.round(ctx, left)
	}
	r.report.RemainingMin += len(left) + queue.Waiting()
	r.note(queue)
}

// fill adds to what is left of the last round until there is a batch. The entries of lost
// shards are left to whoever has taken them.
func (r *run) fill(ctx context.Context, queue *due.Queue[entry], left []entry) []entry {
	lost := func(e entry) bool { return r.leases.lost[e.shard] }
	batch := slices.DeleteFunc(left, lost)
	for len(batch) < r.pace.batch() {
		next, found := queue.Next(ctx)
		if !found {
			break
		}
		if !lost(next) {
			batch = append(batch, next)
		}
	}
	return batch
}

// attempt is one try to end a hold. Without an outcome it was not begun.
type attempt struct {
	Ending
	took time.Duration
}

// round ends the holds of the batch, several at once, and returns those that it had no
// time to begin with.
func (r *run) round(ctx context.Context, batch []entry) []entry {
	clock := r.ports.Clock
	over := clock.Now().Add(RoundFor)
	r.readAhead(ctx, batch)
	attempts := make([]attempt, len(batch))
	r.ports.Parallel.Do(len(batch), r.pace.parallel, func(i int) {
		// The first is always begun, so that every round does something.
		if begun := clock.Now(); i == 0 || !r.late() && begun.Before(over) {
			attempts[i].Ending = r.ports.Ender.End(ctx, batch[i].DueHold, r.request)
			attempts[i].took = clock.Now().Sub(begun)
		}
	})
	var left []entry
	var writes []time.Duration
	strained := false
	for i, a := range attempts {
		strained = strained || a.Strained
		switch a.Outcome {
		case OutcomeReleased:
			r.report.Released++
			writes = append(writes, a.took)
			r.delays = append(r.delays, a.Delay)
		case OutcomeEnded:
			r.report.AlreadyEnded++
		case OutcomeFailed:
			r.report.Failed++
		case OutcomeParked:
			r.report.Parked++
		default:
			left = append(left, batch[i])
		}
	}
	r.pace = r.pace.after(writes, strained)
	return left
}

// readAhead reads the holds of a batch together.
func (r *run) readAhead(ctx context.Context, batch []entry) {
	if r.ports.Ahead == nil || len(batch) < 2 {
		return
	}
	ids := make([]ledger.HoldID, len(batch))
	for i, e := range batch {
		ids[i] = e.ID
	}
	if err := r.ports.Ahead.Read(ctx, ids); err != nil {
		r.ports.Logger.WarnContext(ctx, "the holds of a round could not be read together; each is read by itself", slog.Any("error", err))
	}
}

// wait waits until the first of the shards that others have is free, once in a run, and
// reports whether it is worth looking again. So a worker that died costs no more than its
// lease.
func (r *run) wait(ctx context.Context, open []int) bool {
	until, found := r.leases.othersUntil(open)
	pause := min(until.Sub(r.ports.Clock.Now()), LeaseFor)
	if !found || !r.mayWait || !r.ports.Clock.Now().Add(pause).Before(r.stopAt) {
		return false
	}
	r.mayWait = false
	return r.ports.Clock.Sleep(ctx, pause) == nil
}

// finish completes the report, when these shards are still open.
func (r *run) finish(open []int) {
	r.report.ReleaseDelayP95 = percentile95(r.delays)
	for _, shard := range open {
		if r.leases.others[shard].After(r.ports.Clock.Now()) && !r.leases.broken {
			r.report.LeftToOthers++
			continue
		}
		entries, _ := r.kept([]int{shard})
		r.report.Truncated = true
		r.report.RemainingMin += entries
	}
}

// guarded turns a panic about one hold into its failure: it would come again in every
// sweep at the same place, and keep all holds behind it from ending. What was panicked with
// may hold anything, so only its type and the place are told.
func guarded[T any](step func() (T, error)) (result T, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic of type %T\n%s", cause, debug.Stack())
		}
	}()
	return step()
}
