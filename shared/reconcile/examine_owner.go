package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"holdfast/shared/ledger"
)

// ownerState is what is counted of an owner, and the owner's holds, as they were read.
type ownerState struct {
	quota    ledger.Quota
	versions map[ledger.HoldID]string
	tally    *Tally
}

// lookAtOwner reads what is counted of an owner and the owner's holds, twice. If all are alike
// in both reads, then they were like that together in between.
func (x *examination) lookAtOwner(ctx context.Context, owner ledger.OwnerID) (bool, []Finding, error) {
	state, stable, err := x.readOwnerTwice(ctx, owner)
	if err != nil {
		return false, nil, err
	}
	found := slices.DeleteFunc(state.tally.Suspects(), func(f Finding) bool { return f.Owner != owner })
	return stable, found, nil
}

// lookAtCount looks at one count over all owners of whom it is more than their holds have.
func (x *examination) lookAtCount(ctx context.Context, key ledger.QuotaKey) (bool, []Finding, error) {
	counted := map[ledger.OwnerID]ledger.Units{}
	for _, row := range x.t.rows.Holds {
		counted[row.Owner] += row.Counts[key]
	}
	var above ledger.Units
	for _, q := range x.t.rows.Quotas {
		if q.Counts[key] <= counted[q.Owner] {
			continue
		}
		state, stable, err := x.readOwnerTwice(ctx, q.Owner)
		if err != nil || !stable {
			return false, nil, err
		}
		above += state.quota.Counts[key]
		for _, row := range state.tally.rows.Holds {
			above -= row.Counts[key]
		}
	}
	if above <= x.gone[key] {
		return true, nil, nil
	}
	return true, []Finding{countAbove(key, above, x.gone[key])}, nil
}

func (x *examination) readOwnerTwice(ctx context.Context, owner ledger.OwnerID) (ownerState, bool, error) {
	first, err := x.readOwner(ctx, owner)
	if err != nil {
		return first, false, err
	}
	second, err := x.readOwner(ctx, owner)
	return second, maps.Equal(first.versions, second.versions) && maps.Equal(first.quota.Counts, second.quota.Counts), err
}

// readOwner reads the owner's counts, and the holds that the tally knows of, and those that it
// can't know: the newest.
func (x *examination) readOwner(ctx context.Context, owner ledger.OwnerID) (ownerState, error) {
	state := ownerState{versions: map[ledger.HoldID]string{}, tally: x.tally()}
	holds := map[ledger.HoldID]*holdRow{}
	var known []ledger.HoldID
	for id, row := range x.t.rows.Holds {
		if row.Owner == owner {
			known = append(known, id)
			if row.Archived { // it may have left the table, and counts on until the audit is over
				holds[id] = row
			}
		}
	}
	add := func(read []ledger.Hold) {
		for _, h := range read {
			state.versions[h.ID] = fmt.Sprintf("%d %s", h.Version, h.ArchivedIn)
			holds[h.ID] = newHoldRow(h)
		}
	}
	err := eachPage(func(page ledger.Page) (ledger.Cursor, error) {
		newest, next, err := x.Store.HoldsOfOwner(ctx, owner, page)
		add(newest)
		if n := len(newest); n > 0 && newest[n-1].CreatedAt.Before(x.t.rows.At.Add(-ClockSkewMax)) {
			next = ""
		}
		return next, err
	})
	if err != nil {
		return state, err
	}
	for chunk := range slices.Chunk(known, ledger.PageItemsMax) {
		read, err := x.Store.Holds(ctx, chunk)
		if err != nil {
			return state, err
		}
		add(read)
	}
	if state.quota, err = x.Store.Quota(ctx, owner); err != nil {
		return state, err
	}
	state.tally.rows.Holds = holds
	state.tally.rows.Quotas = []ledger.Quota{state.quota}
	return state, nil
}
