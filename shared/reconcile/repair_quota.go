package reconcile

import (
	"context"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// RepairApart is how far apart a repair of a count and the finding of a later fault must be,
// by the clock. It is longer than a look takes, in which the one may have come, and than two
// clocks differ. A fault that comes sooner waits for the next audit.
const RepairApart = time.Minute

// repairQuota puts one count of an owner right. As with stock, it is the difference that
// stays true while the owner comes and goes; that nobody has taken it off since the finding
// is told by the case, under whose version this is written.
func (r *repairRun) repairQuota(ctx context.Context, job repairJob) error {
	f := r.finding(job).Action.Finding
	return r.decideAnew(ctx, job, RepairDone, func(now time.Time) (repairStep, error) {
		stored, err := r.storedCase(ctx, f)
		if err != nil {
			return repairStep{}, err
		}
		if stored.Decision == ledger.DecisionRepaired && !stored.DecidedAt.Before(f.Proof.At.Add(-RepairApart)) {
			r.say(job, RepairSkipped, "it was repaired since, at "+stored.DecidedAt.Format(time.RFC3339))
			return repairStep{}, nil
		}
		found, err := r.Store.Quota(ctx, f.Owner)
		if err != nil {
			return repairStep{}, err
		}
		was := found.Counts[f.Count]
		want := was + f.Proof.Want - f.Proof.Was
		if want < 0 {
			return repairStep{}, r.ask(ctx, job, "the count is too low by now to take off what was too much")
		}
		change := ledger.RepairQuota(found, map[ledger.QuotaKey]ledger.Units{f.Count: want}, stored, CaseOf(f, now), r.origin(f, ledger.CommandRepair), now)
		if change.Empty() {
			r.say(job, RepairSkipped, "the count is right")
		}
		return repairStep{job, change, fmt.Sprintf("%s: %d instead of %d", f.Count, want, was)}, nil
	})
}
