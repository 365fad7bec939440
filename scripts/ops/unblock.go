package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// unblocked is an owner whose cool-down the operator has ended.
type unblocked struct {
	Owner ledger.OwnerID `json:"owner"`
	// Expired is how many holds had expired, one after the other, and LastExpiredAt when the
	// last of them did; zero for an owner of whom none is counted.
	Expired       ledger.Units `json:"expired"`
	LastExpiredAt time.Time    `json:"last_expired_at,omitzero"`
	// Case is the record of who did so and why; "" for an owner of whom none is counted.
	Case ledger.ReviewID `json:"review_id,omitempty"`
}

// unblock forgets the expired holds of the named owners, so that a cool-down that they are in
// ends at once. Whether they are in one is their slots' policies' to say and not looked at. It
// may be repeated.
func unblock(ctx context.Context, o *operator, owners []string) error {
	if len(owners) == 0 {
		return errors.New("unblock: say the OWNER")
	}
	request, err := o.request("unblock")
	if err != nil {
		return err
	}
	all := []unblocked{}
	failure := func() error {
		for _, name := range owners {
			quota, err := o.commands().EndCooldown(ctx, request, ledger.OwnerID(name))
			if err != nil {
				return fmt.Errorf("unblock %s: %w", name, err)
			}
			one := unblocked{Owner: quota.Owner, Expired: quota.Expired}
			if quota.Expired > 0 {
				one.LastExpiredAt = quota.LastExpiredAt
				one.Case = ledger.ReviewIDOf(ledger.ReviewFinding, ledger.CooldownSubject(quota.Owner))
			}
			all = append(all, one)
		}
		return nil
	}()
	printed := o.table(all, "OWNER\tEXPIRED HOLDS FORGOTTEN\tLAST EXPIRED AT\tCASE", func(print func(...any)) {
		for _, one := range all {
			at, of := "-", ledger.ReviewID("-")
			if !one.LastExpiredAt.IsZero() {
				at, of = one.LastExpiredAt.UTC().Format(time.RFC3339), one.Case
			}
			print(one.Owner, one.Expired, at, of)
		}
	})
	return errors.Join(failure, printed)
}
