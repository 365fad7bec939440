package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/due"
	"holdfast/shared/ledger"
)

// retried is a parked hold that the operator has put back.
type retried struct {
	Hold ledger.HoldID `json:"hold_id"`
	// WasToBeTriedAt is when the sweep would have tried it; zero for a hold that was named
	// and is not parked.
	WasToBeTriedAt time.Time `json:"was_to_be_tried_at,omitzero"`
	// Back says that it is among the due holds again. Otherwise it has ended, or was put back
	// before.
	Back bool `json:"back"`
}

// retry puts parked holds back among those that are due, so that the next sweep tries
// them: all of them, or the named ones. It may be repeated.
func retry(ctx context.Context, o *operator, arguments []string) error {
	for _, id := range arguments {
		if !ledger.ValidHoldID(id) {
			return fmt.Errorf("%q is not the id of a hold", id)
		}
	}
	all := []retried{}
	failure := eachEntry(ctx, due.AllShards(), o.store.Parked, func(entry ledger.DueHold) error {
		if len(arguments) > 0 && !slices.Contains(arguments, string(entry.ID)) {
			return nil
		}
		back, err := o.store.Unpark(ctx, entry)
		if err == nil {
			all = append(all, retried{entry.ID, entry.TryAt, back})
		}
		return err
	})
	for _, id := range arguments {
		if failure == nil && !slices.ContainsFunc(all, func(r retried) bool { return string(r.Hold) == id }) {
			all = append(all, retried{Hold: ledger.HoldID(id)})
		}
	}
	printed := o.table(all, "HOLD\tWAS TO BE TRIED AT\tBACK", func(print func(...any)) {
		for _, r := range all {
			at := "-"
			if !r.WasToBeTriedAt.IsZero() {
				at = r.WasToBeTriedAt.UTC().Format(time.RFC3339)
			}
			print(r.Hold, at, r.Back)
		}
	})
	return errors.Join(failure, printed)
}
