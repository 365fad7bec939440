package commands

import (
	"context"
	"time"

	"holdfast/shared/ledger"
)

// EndCooldown lets an owner in again whose holds expired too often, with a case that says who
// did so and why. It returns what was counted of the owner before. It may be repeated: an
// owner of whom nothing is counted is left alone, and no case is written.
//
// Errors: CodeInvalid without a why, and those of the store.
func (c *Commands) EndCooldown(ctx context.Context, r Request, owner ledger.OwnerID) (ledger.Quota, error) {
	var found ledger.Quota
	_, err := c.carryOut(ctx, job{
		command: ledger.CommandEndCooldown, request: r,
		decide: func(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
			var err error
			if found, err = c.store.Quota(ctx, owner); err != nil {
				return decision{}, err
			}
			subject := ledger.ReviewIDOf(ledger.ReviewFinding, ledger.CooldownSubject(owner))
			records, err := c.store.Reviews(ctx, []ledger.ReviewID{subject})
			if err != nil {
				return decision{}, err
			}
			var stored ledger.Review
			if len(records) > 0 {
				stored = records[0]
			}
			change, err := ledger.EndCooldown(found, stored, origin, now)
			return decision{change: change}, err
		},
	})
	return found, err
}
