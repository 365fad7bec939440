package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// caseSubject is what the case of a finding is about. The kind is a part of it, so that two
// things that are wrong about one hold are two cases, and none overwrites the other.
func caseSubject(f Finding) string { return string(f.Kind) + "/" + f.Subject }

// CaseOf is the case of a finding, as it is opened at now.
func CaseOf(f Finding, now time.Time) ledger.Review {
	c := ledger.NewReview(ledger.ReviewFinding, caseSubject(f), now)
	c.Finding, c.Evidence = string(f.Kind), lasting(f)
	if f.Cause != "" {
		c.Evidence += " (" + f.Cause + ")"
	}
	c.Evidence = ledger.Shorten(c.Evidence, ledger.EvidenceCharactersMax)
	return c
}

// lasting is the evidence of a finding in words that stay the same while the thing is busy.
// The numbers of a slot on sale are others at each audit; by how much they are wrong is not.
func lasting(f Finding) string {
	switch {
	case f.Proof.Excess != (ledger.Counters{}):
		return "the counters are above all that adds to them by " + inWords(f.Proof.Excess)
	case f.Proof.Was != f.Proof.Want:
		return fmt.Sprintf("the count is above what the owner's holds have by %d", f.Proof.Was-f.Proof.Want)
	}
	return f.Evidence
}

// storedCase is the record of the case of a finding, zero for none.
func (r *repairRun) storedCase(ctx context.Context, f Finding) (ledger.Review, error) {
	stored, err := r.Store.Reviews(ctx, []ledger.ReviewID{ledger.ReviewIDOf(ledger.ReviewFinding, caseSubject(f))})
	if err != nil || len(stored) == 0 {
		return ledger.Review{}, err
	}
	return stored[0], nil
}

// ask opens the case of the job's finding for a person. doubt is why nothing was repaired, ""
// where Plan has said so.
func (r *repairRun) ask(ctx context.Context, job repairJob, doubt string) error {
	f := r.finding(job).Action.Finding
	if doubt != "" {
		f.Cause = doubt
	}
	return r.decideAnew(ctx, job, RepairQueued, func(now time.Time) (repairStep, error) {
		stored, err := r.storedCase(ctx, f)
		if err != nil {
			return repairStep{}, err
		}
		opened := CaseOf(f, now)
		change := ledger.OpenReview(stored, opened, r.origin(f, ledger.CommandOpenReview), now)
		if change.Empty() {
			r.say(job, RepairKnown, "the case "+string(opened.ID)+" says so already")
		}
		return repairStep{job, change, "the case " + string(opened.ID)}, nil
	})
}

// closeCases decides the cases that an earlier run has opened about what is repaired now:
// nobody has to look at them any more. Whoever has taken one keeps it. The cases of counts are
// closed by their repair.
func (r *repairRun) closeCases(ctx context.Context, job repairJob) error {
	var failures []error
	for _, at := range job.at {
		if f := r.results[at].Action.Finding; r.results[at].Outcome == RepairDone && job.do != ActionRepairQuota {
			failures = append(failures, r.closeCase(ctx, f))
		}
	}
	return errors.Join(failures...)
}

func (r *repairRun) closeCase(ctx context.Context, f Finding) error {
	stored, err := r.storedCase(ctx, f)
	if err != nil || stored.Version == 0 || stored.Status == ledger.ReviewDecided {
		return err
	}
	origin := r.origin(f, ledger.CommandDecideReview)
	change, err := ledger.DecideReview(stored, ledger.DecisionRepaired, origin, system.Millisecond(r.Clock))
	if ledger.CodeOf(err) == ledger.CodeReviewClaimed {
		return nil
	}
	if err != nil {
		return err
	}
	err = r.Store.Commit(ctx, change)
	if refused := (*ledger.Refused)(nil); errors.As(err, &refused) {
		return nil // a person has taken or decided it in this moment
	}
	return err
}
