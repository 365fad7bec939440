package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// unblocked is an owner whose cool-down the operator has ended.
type unblocked struct {
	Owner ledger.OwnerID `json:"owner"`
	// Expired is how many holds had expired, one after the other, and LastExpiredAt when the
	// last of them did; zero for an owner of whom none is counted.
	Expired       ledger.Units `json:"expired"`
	LastExpiredAt time.Time    `json:"last_expired_at,omitzero"`
}

// unblock forgets the expired holds of the named owners, so that a cool-down that they are in
// ends at once. Whether they are in one is their slots' policies' to say and not looked at. It
// may be repeated.
func unblock(ctx context.Context, o *operator, owners []string) error {
	if len(owners) == 0 {
		return errors.New("unblock: say the OWNER")
	}
	all := []unblocked{}
	failure := func() error {
		for _, name := range owners {
			quota, err := o.store.Quota(ctx, ledger.OwnerID(name))
			if err == nil && quota.Expired > 0 {
				err = o.store.Commit(ctx, ledger.ForgetExpiries(quota.Owner, system.Millisecond(o.clock)))
			}
			if err != nil {
				return fmt.Errorf("unblock %s: %w", name, err)
			}
			one := unblocked{Owner: quota.Owner, Expired: quota.Expired}
			if quota.Expired > 0 {
				one.LastExpiredAt = quota.LastExpiredAt
			}
			all = append(all, one)
		}
		return nil
	}()
	printed := o.table(all, "OWNER\tEXPIRED HOLDS FORGOTTEN\tLAST EXPIRED AT", func(print func(...any)) {
		for _, one := range all {
			at := "-"
			if !one.LastExpiredAt.IsZero() {
				at = one.LastExpiredAt.UTC().Format(time.RFC3339)
			}
			print(one.Owner, one.Expired, at)
		}
	})
	return errors.Join(failure, printed)
}
