package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/objects"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

const (
	// TaskFor bounds a task whose caller sets no deadline.
	TaskFor = 13 * time.Minute
	// MarginBeforeTaskDeadline is the part of a task's time in which it stops reading, so that
	// what it has done can still be told. What it saw of a segment is lost then, and is not
	// much more than what nobody has the time to read.
	MarginBeforeTaskDeadline = 20 * time.Second
)

// Tasks sends parts of audits to whoever does them. A TaskQueue is one.
type Tasks interface {
	Send(ctx context.Context, tasks []Task) error
}

// Examination decides which suspects are findings. An Examiner is one.
type Examination interface {
	Examine(ctx context.Context, tally *Tally) (Report, error)
}

// Repairs deals with findings. A Repairer is one.
type Repairs interface {
	Run(ctx context.Context, findings []Finding, apply bool) (RepairReport, error)
}

// FanoutPorts are what a Fanout works with. All of them must be set.
type FanoutPorts struct {
	Segments Segments
	Shelf    *Shelf
	Tasks    Tasks
	Examine  Examination
	// Repair returns what repairs in the name of one request.
	Repair  func(ledger.RequestID) Repairs
	Metrics Metrics
	Clock   system.Clock
	Logger  *slog.Logger
}

// FanoutSettings are those of the stage.
type FanoutSettings struct {
	// Every is from the beginning of one audit to that of the next, and how long one may take.
	Every  time.Duration
	Repair topology.AuditRepair
	// Segments is in how many parts the table is read; 0 means FanoutSegments.
	Segments int
}

// Fanout runs audits that are larger than one process: ticks begin them, and each part is
// done by whoever gets its message. Any of them may die anywhere, and come twice.
type Fanout struct {
	ports    FanoutPorts
	settings FanoutSettings
}

// NewFanout returns a Fanout. It returns an error for settings with which no audit ends.
func NewFanout(ports FanoutPorts, settings FanoutSettings) (*Fanout, error) {
	if settings.Segments == 0 {
		settings.Segments = FanoutSegments
	}
	if settings.Every <= 0 || settings.Segments < 1 {
		return nil, fmt.Errorf("reconcile: an audit every %s in %d segments", settings.Every, settings.Segments)
	}
	return &Fanout{ports, settings}, nil
}

// Tick begins the audit of this interval, unless it has begun, and sends what is missing of
// it; and so it does for the audit before, whose time may not be over. So a message that was
// lost, or whose worker died, costs the time until the next tick.
func (f *Fanout) Tick(ctx context.Context) error {
	now := f.ports.Clock.Now()
	return errors.Join(f.look(ctx, RunAt(now.Add(-f.settings.Every), f.settings.Every), false), f.look(ctx, RunAt(now, f.settings.Every), true))
}

// look looks after one audit, and begins it if it has not begun and may.
func (f *Fanout) look(ctx context.Context, run RunID, mayBegin bool) error {
	p, err := f.ports.Shelf.progress(ctx, run)
	if err != nil {
		return fmt.Errorf("audit %s: %w", run, err)
	}
	if p.abandoned || !p.begun && !mayBegin {
		return nil
	}
	if ended, err := f.ports.Shelf.settled(ctx, run); ended || err != nil {
		return err
	}
	var b beginning
	if p.begun {
		b, err = f.ports.Shelf.beginning(ctx, run)
	} else {
		b, err = f.ports.Shelf.begin(ctx, beginning{run, f.settings.Segments, system.Millisecond(f.ports.Clock)})
	}
	if err != nil {
		return fmt.Errorf("audit %s: %w", run, err)
	}
	if f.over(b.BegunAt) {
		return f.abandon(ctx, b, p)
	}
	return f.send(ctx, b, p)
}

// over says that an audit that was begun then has had its time. A later one says more.
func (f *Fanout) over(begunAt time.Time) bool {
	return !f.ports.Clock.Now().Before(begunAt.Add(f.settings.Every))
}

// send sends what is missing of an audit: segments, or, with all of them there, the merge.
func (f *Fanout) send(ctx context.Context, b beginning, p progress) error {
	tasks := []Task{b.merge()}
	if missing := p.missing(b); len(missing) > 0 {
		tasks = tasks[:0]
		for _, segment := range missing {
			tasks = append(tasks, b.tally(segment))
		}
	}
	f.ports.Logger.InfoContext(ctx, "parts of an audit are sent", keyRun(b.Run), slog.Int("tasks", len(tasks)), slog.String("first", string(tasks[0].Do)))
	return f.ports.Tasks.Send(ctx, tasks)
}

// abandon tells of an audit that will not end. It is told before it is written down that it
// was: who dies in between tells it twice.
func (f *Fanout) abandon(ctx context.Context, b beginning, p progress) error {
	f.ports.Logger.ErrorContext(ctx, "an audit has not ended in its time and is given up; the next one reads everything anew",
		keyRun(b.Run), slog.Time("begun_at", b.BegunAt), slog.Int("segments", b.Segments), slog.Int("segments_missing", len(p.missing(b))))
	err := f.ports.Metrics.Emit(telemetry.Properties{propertyRun: string(b.Run)}, telemetry.Count(telemetry.MetricAuditAbandoned, 1))
	return errors.Join(err, f.ports.Shelf.abandon(ctx, b))
}

// Do does one task. It may be done again at any time: whatever is there already is not made
// anew, and a task whose audit has ended, or has had its time, does nothing.
func (f *Fanout) Do(ctx context.Context, task Task, request ledger.RequestID) error {
	if err := task.valid(); err != nil {
		return err
	}
	if f.over(task.BegunAt) {
		f.ports.Logger.WarnContext(ctx, "a part of an audit came when its time was over", keyRun(task.Run), slog.String("task", task.String()))
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.timeLeft(ctx))
	defer cancel()
	do := f.merge
	if task.Do == TaskTally {
		do = f.tally
	}
	if err := do(ctx, task, request); err != nil {
		return fmt.Errorf("%s: %w", task, err)
	}
	return nil
}

// timeLeft is how long a task may take. The deadline of a process is one of the machine's
// clock, which this one must not be compared with in a test; so the clock of the ports says
// what is left of it.
func (f *Fanout) timeLeft(ctx context.Context) time.Duration {
	left := TaskFor
	if deadline, bounded := ctx.Deadline(); bounded {
		left = deadline.Sub(f.ports.Clock.Now()) - MarginBeforeTaskDeadline
	}
	return left
}

// tally reads a segment of the table and keeps what it saw. Who sees then that all are there
// sends the merge. S3 shows a write to every list that begins later, so whoever keeps the
// last one sees all; two may, and two merges do no harm.
func (f *Fanout) tally(ctx context.Context, task Task, _ ledger.RequestID) error {
	b := beginning{task.Run, task.Segments, task.BegunAt}
	p, err := f.ports.Shelf.progress(ctx, task.Run)
	if err != nil {
		return err
	}
	if !p.tallied[tallyName(task.Segment, task.Segments)] {
		tally, err := TallySegment(ctx, f.ports.Segments, task.Segment, task.Segments, task.BegunAt)
		if err != nil {
			return err
		}
		if err := f.ports.Shelf.putTally(ctx, task, tally); err != nil {
			return err
		}
		if p, err = f.ports.Shelf.progress(ctx, task.Run); err != nil {
			return err
		}
	}
	if len(p.missing(b)) > 0 {
		return nil
	}
	if ended, err := f.ports.Shelf.settled(ctx, task.Run); ended || err != nil {
		return err
	}
	return f.ports.Tasks.Send(ctx, []Task{b.merge()})
}

// merge puts the report on the shelf, unless it is there; deals with the findings; tells of
// them; and writes down last that the audit has ended. Who dies in between is followed by
// another who finds the report and goes on with it: the findings are the same, and what was
// dealt with is not dealt with twice. Only the telling may come twice.
func (f *Fanout) merge(ctx context.Context, task Task, request ledger.RequestID) error {
	ended, err := f.ports.Shelf.settled(ctx, task.Run)
	if ended || err != nil {
		return err
	}
	report, err := f.ports.Shelf.report(ctx, task.Run)
	if errors.Is(err, objects.ErrNotThere) {
		report, err = f.examine(ctx, task)
	}
	if err != nil {
		return err
	}
	settlement, err := f.deal(ctx, report, request)
	if err := errors.Join(err, f.tell(ctx, report, settlement)); err != nil {
		return err
	}
	return f.ports.Shelf.settle(ctx, settlement)
}

// examine makes the report out of what was seen of the segments. Each is merged before the
// next one is read, so that only what is left over is in memory.
func (f *Fanout) examine(ctx context.Context, task Task) (AuditReport, error) {
	merged := NewTally(task.BegunAt)
	for segment := range task.Segments {
		tally, err := f.ports.Shelf.tally(ctx, task.Run, segment, task.Segments)
		if err != nil {
			return AuditReport{}, err
		}
		merged.Merge(tally)
	}
	report, err := f.ports.Examine.Examine(ctx, merged)
	if err != nil {
		return AuditReport{}, err
	}
	return f.ports.Shelf.putReport(ctx, AuditReport{
		Run: task.Run, BegunAt: task.BegunAt, EndedAt: system.Millisecond(f.ports.Clock), Segments: task.Segments, Report: report,
	})
}

// deal opens cases for what a person must decide, and repairs what is certain if the stage
// says so. What is not published it leaves to the reconciler, which publishes it every few
// minutes, and needs rights for it that nobody else should have.
func (f *Fanout) deal(ctx context.Context, report AuditReport, request ledger.RequestID) (Settlement, error) {
	var chosen []Finding
	for _, finding := range report.Report.Findings {
		do := Plan(finding).Do
		if do == ActionReview || f.settings.Repair == topology.AuditRepairCertain && do != ActionRedrive {
			chosen = append(chosen, finding)
		}
	}
	settlement := Settlement{Run: report.Run, Setting: f.settings.Repair}
	var err error
	if len(chosen) > 0 {
		settlement.Repair, err = f.ports.Repair(request).Run(ctx, chosen, true)
	}
	settlement.SettledAt = system.Millisecond(f.ports.Clock)
	return settlement, err
}
