package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast/shared/lease"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

const (
	// SubjectsPerBatchMax bounds a batch, so that its plan is a small item: 200 subjects are
	// below 20 KB, and an item may have 400 KB.
	SubjectsPerBatchMax = 200
	// PurgeAfter is how long what is archived stays in the table. A mistake is noticed in
	// that time, and a reader of yesterday's hold still finds it.
	PurgeAfter = 7 * 24 * time.Hour
	// PutOffFor is when a record is looked at again that is old enough and still in use.
	PutOffFor = 24 * time.Hour
	// StepFor bounds one read or write of the table, the retries of the store and all events
	// of one subject included.
	StepFor = 10 * time.Second
	// MarginBeforeDeadline is the part of a run's time in which nothing new is begun: a step
	// and an object end in it, and the report is written. A run that Lambda ends all the same
	// costs time only.
	MarginBeforeDeadline = 30 * time.Second
	// RunForMax bounds a run whose caller sets no deadline.
	RunForMax = 13 * time.Minute
	// LeaseFor is how long a shard belongs to a worker that says nothing more. It is renewed
	// when half of it is over.
	LeaseFor = time.Minute
	// FailureLinesMax bounds the log lines about single records in one run.
	FailureLinesMax = 20
)

// leaseShards is where the leases of the reservations' shards begin: the two kinds are
// archived independently.
const leaseShards = ledger.DueShards

// errTakenOver is the error of a worker whose shard another one has.
var errTakenOver = errors.New("another worker has taken the shard over")

// Ports are what a Worker works with.
type Ports struct {
	Store  Store
	Bucket *Bucket
	Clock  system.Clock
	Random system.Random
	Logger *slog.Logger
}

// Retention is how long records stay in the table before they are archived.
type Retention struct {
	Holds, Reservations time.Duration
}

func (r Retention) of(kind ledger.ArchiveKind) time.Duration {
	if kind == ledger.ArchiveHolds {
		return r.Holds
	}
	return r.Reservations
}

// Worker archives what is old enough, shard after shard. Any number of them may run, and
// each may die anywhere.
type Worker struct {
	store     Store
	bucket    *Bucket
	clock     system.Clock
	random    system.Random
	logger    *slog.Logger
	retention Retention
	// batchSubjects and batchBytes bound a batch.
	batchSubjects, batchBytes int
}

// NewWorker returns a Worker. It returns an error unless both retentions are positive:
// zero would archive what has just ended.
func NewWorker(ports Ports, retention Retention) (*Worker, error) {
	if retention.Holds <= 0 || retention.Reservations <= 0 {
		return nil, fmt.Errorf("archive: retentions of %s and %s; want more than nothing", retention.Holds, retention.Reservations)
	}
	return &Worker{
		store: ports.Store, bucket: ports.Bucket, clock: ports.Clock, random: ports.Random,
		logger: ports.Logger, retention: retention,
		batchSubjects: SubjectsPerBatchMax, batchBytes: batchBytesMax,
	}, nil
}

// Report is what a run did.
type Report struct {
	// Archived counts the holds and reservations whose batch is complete.
	Archived int
	// PutOff counts those that are old enough and are looked at again later.
	PutOff int
	// Failed counts the shards that were left with an error.
	Failed int
	// TakenElsewhere counts the shards that another worker had.
	TakenElsewhere int
	// Truncated says that the run stopped for lack of time with work left.
	Truncated bool
}

// Run archives once, all shards of both kinds in an order of chance, so that none is
// always the last. It returns an error when a shard was left with one, after it has done
// what it could with the others; the Report is right in any case. It may be called again
// at any time, also while another call runs.
func (w *Worker) Run(ctx context.Context, worker lease.Worker) (Report, error) {
	run := run{Worker: w, worker: worker, stopAt: system.StopAt(ctx, w.clock, RunForMax, MarginBeforeDeadline)}
	var failures []error
	for _, place := range w.places() {
		if run.late(ctx) {
			run.report.Truncated = true
			break
		}
		err := run.work(ctx, place)
		if errors.Is(err, errTakenOver) {
			run.report.TakenElsewhere++
			continue
		}
		if err != nil {
			run.report.Failed++
			failures = append(failures, fmt.Errorf("archive %s shard %d: %w", place.kind, place.shard, err))
		}
	}
	return run.report, errors.Join(failures...)
}

// place is one shard of one kind.
type place struct {
	kind  ledger.ArchiveKind
	shard int
}

func (p place) leaseShard() int {
	if p.kind == ledger.ArchiveHolds {
		return p.shard
	}
	return leaseShards + p.shard
}

// places are all shards of both kinds, shuffled.
func (w *Worker) places() []place {
	var out []place
	for shard := range ledger.DueShards {
		out = append(out, place{ledger.ArchiveHolds, shard}, place{ledger.ArchiveReservations, shard})
	}
	for i := len(out) - 1; i > 0; i-- {
		j := w.random.Below(int64(i + 1))
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// run is one run under way.
type run struct {
	*Worker
	worker lease.Worker
	stopAt time.Time
	report Report
	lines  int // log lines about single records
}

func (r *run) late(ctx context.Context) bool {
	return system.Late(ctx, r.clock, r.stopAt)
}

// work archives batch after batch of one shard, until nothing is old enough.
func (r *run) work(ctx context.Context, at place) (err error) {
	s := &shardRun{run: r, place: at}
	if idle, err := s.idle(ctx); err != nil || idle {
		return err
	}
	if err := s.takeLease(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.returnLease(ctx)) }()
	for !r.late(ctx) {
		more, err := s.batch(ctx)
		if err != nil || !more {
			return err
		}
	}
	r.report.Truncated = true
	return nil
}

// shardRun is the work on one shard under a lease.
type shardRun struct {
	*run
	place
	lease lease.Lease
}

func (s *shardRun) takeLease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	now := system.Millisecond(s.clock)
	taken, ours, err := s.store.TakeLease(ctx, lease.KindArchive, s.leaseShard(), s.worker, now, now.Add(LeaseFor))
	if err != nil {
		return fmt.Errorf("take the lease: %w", err)
	}
	if !ours {
		return errTakenOver
	}
	s.lease = taken
	return nil
}

// returnLease is for the next worker, also when the time of this one is over. The lease of
// one that dies ends by itself.
func (s *shardRun) returnLease(ctx context.Context) error {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	if err := s.store.ReturnLease(ctx, s.lease, system.Millisecond(s.clock)); err != nil {
		return fmt.Errorf("return the lease: %w", err)
	}
	return nil
}

// keep makes sure that the shard is still this worker's. What is written is fenced by its
// own conditions: this saves the work of two that archive the same.
func (s *shardRun) keep(ctx context.Context) error {
	now := system.Millisecond(s.clock)
	if s.lease.Until.Sub(now) > LeaseFor/2 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, StepFor)
	defer cancel()
	renewed, ours, err := s.store.RenewLease(ctx, s.lease, now.Add(LeaseFor))
	if err != nil {
		return fmt.Errorf("renew the lease: %w", err)
	}
	if !ours {
		return errTakenOver
	}
	s.lease = renewed
	return nil
}

// tellOf logs one record that stays in the table.
func (r *run) tellOf(ctx context.Context, message string, subject ledger.ArchiveSubject, cause error) {
	if r.lines++; r.lines <= FailureLinesMax {
		key := telemetry.KeyHoldID
		if subject.Reservation != "" {
			key = telemetry.KeyReservationID
		}
		r.logger.ErrorContext(ctx, message, slog.String(key, idOf(subject)), slog.Any("error", cause))
	}
}
