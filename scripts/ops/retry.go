package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/due"
	"holdfast/shared/ledger"
)

// retried is a parked hold that the operator has put back.
type retried struct {
	Hold ledger.HoldID `json:"hold_id"`
	// WasToBeTriedAt is when the sweep would have tried it.
	WasToBeTriedAt time.Time `json:"was_to_be_tried_at"`
	// Back says that it is among the due holds again; it may have ended in between.
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
	var all []retried
	for _, shard := range due.AllShards() {
		page := ledger.Page{Limit: ledger.PageItemsMax}
		for {
			entries, next, err := o.store.Parked(ctx, shard, page)
			if err != nil {
				return err
			}
			for _, entry := range entries {
				if len(arguments) > 0 && !slices.Contains(arguments, string(entry.ID)) {
					continue
				}
				back, err := o.store.Unpark(ctx, entry)
				if err != nil {
					return err
				}
				all = append(all, retried{entry.ID, entry.TryAt, back})
			}
			if next == "" {
				break
			}
			page.After = next
		}
	}
	if len(all) < len(arguments) {
		fmt.Fprintf(o.out, "%d of %d holds are not parked: they have ended, or were put back already\n", len(arguments)-len(all), len(arguments))
	}
	return o.table(all, "HOLD\tWAS TO BE TRIED AT\tBACK", func(print func(...any)) {
		for _, r := range all {
			print(r.Hold, r.WasToBeTriedAt.UTC().Format(time.RFC3339), r.Back)
		}
	})
}
