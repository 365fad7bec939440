package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// expire ends a hold by the command of the sweep, which decides by the hold as it is then.
func (r *repairRun) expire(ctx context.Context, job repairJob) error {
	id := ledger.HoldID(job.of)
	hold, err := r.Store.Hold(ctx, id)
	if ledger.CodeOf(err) == ledger.CodeHoldNotFound {
		r.say(job, RepairSkipped, "there is no such hold any more")
		return nil
	}
	if err != nil {
		return err
	}
	dueAt, held := hold.DueAt()
	now := system.Millisecond(r.Clock)
	switch {
	case !held:
		r.say(job, RepairSkipped, fmt.Sprintf("it is %s by now", hold.Status))
		return nil
	case now.Before(dueAt):
		r.say(job, RepairSkipped, "it is not due before "+dueAt.Format(time.RFC3339))
		return nil
	}
	note := fmt.Sprintf("ended at version %d, %s after it was due", hold.Version, now.Sub(dueAt).Round(time.Second))
	if !r.apply {
		r.written++
		r.say(job, RepairPlanned, note)
		return nil
	}
	released, err := r.Expire.ExpireHold(ctx, id, r.RequestID)
	switch code := ledger.CodeOf(err); {
	case err == nil && released:
		r.written++
		r.say(job, RepairDone, note)
	case err == nil:
		r.say(job, RepairSkipped, "it has ended in between")
	case code == ledger.CodeHoldNotDue, code == ledger.CodePaymentInProgress:
		r.say(job, RepairSkipped, "it is not due: "+err.Error())
	case code == ledger.CodeInternal, code == ledger.CodeBusy:
		// The sweep has tried for long, and was refused, too. A run that fails with it each time
		// keeps every audit from its end.
		return r.ask(ctx, job, "the command that ends it is refused, as the stock or the reservation does not have what it has")
	default:
		return err
	}
	return nil
}

// repairHold writes the hold anew. Where it has taken a step since the finding, the step has
// done that.
func (r *repairRun) repairHold(ctx context.Context, job repairJob) error {
	f := r.finding(job).Action.Finding
	hold, err := r.Store.Hold(ctx, f.Hold)
	if ledger.CodeOf(err) == ledger.CodeHoldNotFound {
		r.say(job, RepairSkipped, "there is no such hold any more")
		return nil
	}
	if err != nil {
		return err
	}
	if reason := steppedSince(f, hold.Version, hold.ArchivedIn); reason != "" {
		r.say(job, RepairSkipped, reason)
		return nil
	}
	change := ledger.RepairHold(hold, r.origin(f, ledger.CommandRepair), system.Millisecond(r.Clock))
	return r.rewrite(ctx, job, change, hold.Version)
}

// repairReservation writes the reservation anew, as repairHold does.
func (r *repairRun) repairReservation(ctx context.Context, job repairJob) error {
	f := r.finding(job).Action.Finding
	reservation, err := r.Store.Reservation(ctx, f.Reservation)
	if ledger.CodeOf(err) == ledger.CodeReservationNotFound {
		r.say(job, RepairSkipped, "there is no such reservation any more")
		return nil
	}
	if err != nil {
		return err
	}
	if reason := steppedSince(f, reservation.Version, reservation.ArchivedIn); reason != "" {
		r.say(job, RepairSkipped, reason)
		return nil
	}
	change := ledger.RepairReservation(reservation, r.origin(f, ledger.CommandRepair), system.Millisecond(r.Clock))
	return r.rewrite(ctx, job, change, reservation.Version)
}

// steppedSince says why an item is not written anew, "" if it is.
func steppedSince(f Finding, version ledger.Version, archived ledger.BatchID) string {
	switch {
	case version != f.Proof.Version:
		return fmt.Sprintf("it has taken a step since, which has written it anew: it was at version %d, and is at %d", f.Proof.Version, version)
	case archived != "":
		return "it lies in the archive, where a time to live is right"
	}
	return ""
}

// rewrite writes an item anew, unless a step comes in between, which does that as well.
func (r *repairRun) rewrite(ctx context.Context, job repairJob, change ledger.Change, version ledger.Version) error {
	written, err := r.write(ctx, job, change, RepairDone, fmt.Sprintf("written anew, from version %d to %d", version, version+1))
	if err == nil && !written {
		r.say(job, RepairSkipped, "a step came in between, which has written it anew")
	}
	return err
}

// redrive publishes what is unpublished, once for all findings.
func (r *repairRun) redrive(ctx context.Context, job repairJob) error {
	if r.Redrive == nil {
		r.say(job, RepairSkipped, "the reconciler redrives every few minutes; this run publishes nothing")
		return nil
	}
	r.written++
	if !r.apply {
		r.say(job, RepairPlanned, "unpublished events are published, the oldest first")
		return nil
	}
	report, err := r.Redrive.Run(ctx, RedriveAge, RedriveFor)
	note := fmt.Sprintf("%d events were published, %d set aside, %d failed", report.Republished, report.Quarantined, report.Failed)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", note, err)
	case report.Failed > 0 || report.Futile || report.Truncated:
		return errors.New(note)
	case report.Republished+report.Quarantined == 0:
		r.say(job, RepairSkipped, "nothing is unpublished any more")
		return nil
	}
	r.say(job, RepairDone, note)
	return nil
}
