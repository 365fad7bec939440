package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const (
	// RepairsMax bounds what one run writes: repairs and cases together. So many things that
	// are wrong at once have one cause, which a person must find before more is written.
	RepairsMax = 200
	// RepairTriesMax is how often one repair is decided anew because a step came in between.
	// Each try reads a moment at which nothing was under way, so a busy slot needs a few.
	RepairTriesMax = 8
	// RepairFor bounds one repair with all of its tries.
	RepairFor = 20 * time.Second
)

// Expirer ends holds that are over. commands.Commands is one.
type Expirer interface {
	// ExpireHold ends the hold if it is over, and reports whether this call has done it.
	ExpireHold(ctx context.Context, id ledger.HoldID, requestID ledger.RequestID) (bool, error)
}

// Repairer does what Plan says about findings. Whatever it writes goes through the ledger's
// one write path, under the versions that it has read a moment before, and has an event that
// names who did it. It may run twice at once, and again after a crash: each repair is either
// done or not, and never done twice.
type Repairer struct {
	Store  ledger.Store
	Expire Expirer
	// Redrive is nil where another function redrives by itself: then what is unpublished is left
	// to that one.
	Redrive Redriver
	Clock   system.Clock
	Random  system.Random
	// Actor is who repairs: ledger.ActorAudit, or the operator who has said so.
	Actor ledger.Actor
	// RequestID is that of the run, as in its logs.
	RequestID ledger.RequestID
}

// Run deals with the findings. Without apply it reads everything and writes nothing, and
// says what it would write. The error joins those of what failed; the report is right in any
// case.
func (r *Repairer) Run(ctx context.Context, findings []Finding, apply bool) (RepairReport, error) {
	run := &repairRun{Repairer: r, apply: apply, results: make([]RepairResult, len(findings))}
	var jobs []repairJob
	for i, f := range findings {
		run.results[i] = RepairResult{Action: Plan(f), Outcome: RepairLeft, Note: fmt.Sprintf("one run does %d things at most; run again", RepairsMax)}
		jobs = addJob(jobs, run.results[i].Action, i)
	}
	// A hold that is over is ended before its keys are looked at, because its end writes them
	// anew; and stock is right before a hold gives back to it.
	slices.SortStableFunc(jobs, func(a, b repairJob) int { return slices.Index(repairOrder, a.do) - slices.Index(repairOrder, b.do) })
	var failures []error
	for _, job := range jobs {
		if run.written >= RepairsMax {
			break
		}
		if err := ctx.Err(); err != nil {
			run.say(job, RepairLeft, "no time was left; run again")
			continue
		}
		if err := run.do(ctx, job); err != nil {
			run.say(job, RepairFailed, err.Error())
			failures = append(failures, fmt.Errorf("%s of %s: %w", job.do, job.of, err))
			continue
		}
		if err := run.closeCases(ctx, job); err != nil {
			failures = append(failures, fmt.Errorf("the cases of %s, which is repaired: %w", job.of, err))
		}
	}
	return RepairReport{Applied: apply, Results: run.results}, errors.Join(failures...)
}

// repairOrder is in which order the kinds of actions are done.
var repairOrder = []ActionKind{
	ActionRepairStock, ActionExpire, ActionRepairHold, ActionRepairReservation, ActionRepairQuota, ActionRedrive, ActionReview, ActionNone,
}

// repairJob is what is done at once: the findings of one slot, hold or reservation, for which
// one write is enough.
type repairJob struct {
	do ActionKind
	of string
	at []int // the places of the findings
}

// addJob adds an action to the job that it belongs to.
func addJob(jobs []repairJob, action Action, at int) []repairJob {
	of := caseSubject(action.Finding)
	switch f := action.Finding; action.Do {
	case ActionRepairStock:
		of = string(f.Slot)
	case ActionExpire, ActionRepairHold:
		of = string(f.Hold)
	case ActionRepairReservation:
		of = string(f.Reservation)
	case ActionRedrive:
		of = "what is unpublished"
	case ActionRepairQuota, ActionReview, ActionNone:
	}
	for i, job := range jobs {
		if job.do == action.Do && job.of == of {
			jobs[i].at = append(jobs[i].at, at)
			return jobs
		}
	}
	return append(jobs, repairJob{action.Do, of, []int{at}})
}

// repairRun is one run under way.
type repairRun struct {
	*Repairer
	apply   bool
	results []RepairResult
	written int // changes, or such that would be written
}

// do does one job. An error says that it could not be done, for now.
func (r *repairRun) do(ctx context.Context, job repairJob) error {
	if job.do == ActionRedrive {
		return r.redrive(ctx, job) // which bounds itself, by RedriveFor
	}
	ctx, cancel := context.WithTimeout(ctx, RepairFor)
	defer cancel()
	switch job.do {
	case ActionRepairStock:
		return r.repairStock(ctx, job)
	case ActionExpire:
		return r.expire(ctx, job)
	case ActionRepairHold:
		return r.repairHold(ctx, job)
	case ActionRepairReservation:
		return r.repairReservation(ctx, job)
	case ActionRepairQuota:
		return r.repairQuota(ctx, job)
	case ActionReview:
		return r.ask(ctx, job, "")
	case ActionRedrive, ActionNone:
		r.say(job, RepairSkipped, r.finding(job).Action.Why)
	}
	return nil
}

// finding is the first finding of the job.
func (r *repairRun) finding(job repairJob) RepairResult { return r.results[job.at[0]] }

// say writes down what became of the findings of the job.
func (r *repairRun) say(job repairJob, outcome RepairOutcome, note string) {
	for _, at := range job.at {
		r.results[at].Outcome, r.results[at].Note = outcome, note
	}
}

// origin is where a change about the finding comes from.
func (r *repairRun) origin(f Finding, command ledger.Command) ledger.Origin {
	return ledger.Origin{
		Actor: r.Actor, Command: command, RequestID: r.RequestID, EventID: ledger.NewEventID(r.Random.Bits128()),
		Why: ledger.Shorten(f.String(), ledger.WhyCharactersMax),
	}
}

// write commits the change of the job, unless the run is a dry one. It reports false when a
// step came in between, so that the change has to be decided anew.
func (r *repairRun) write(ctx context.Context, job repairJob, change ledger.Change, outcome RepairOutcome, note string) (bool, error) {
	if !r.apply {
		r.written++
		r.say(job, RepairPlanned, note)
		return true, nil
	}
	err := r.Store.Commit(ctx, change)
	if refused := (*ledger.Refused)(nil); errors.As(err, &refused) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.written++
	r.say(job, outcome, note)
	return true, nil
}

// repairStep is one write that has been decided: the findings that it is about, and what it
// does in words. An empty change means that who decided has said what became of them.
type repairStep struct {
	job    repairJob
	change ledger.Change
	note   string
}

// decideAnew decides and writes until no step comes in between.
func (r *repairRun) decideAnew(ctx context.Context, job repairJob, outcome RepairOutcome, decide func(now time.Time) (repairStep, error)) error {
	for range RepairTriesMax {
		step, err := decide(system.Millisecond(r.Clock))
		if err != nil || step.change.Empty() {
			return err
		}
		if done, err := r.write(ctx, step.job, step.change, outcome, step.note); done || err != nil {
			return err
		}
	}
	r.say(job, RepairSkipped, fmt.Sprintf("a step came in between, %d times; run again", RepairTriesMax))
	return nil
}
