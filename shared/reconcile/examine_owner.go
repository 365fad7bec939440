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
	// lost says that there are events of a hold of the owner, and the hold is not there: what it
	// counts for is in doubt.
	lost bool
}

// lookAtOwner reads what is counted of an owner and the owner's holds, twice. If all are alike
// in both reads, then they were like that together in between.
func (x *examination) lookAtOwner(ctx context.Context, owner ledger.OwnerID) (bool, []Finding, error) {
	state, stable, err := x.readOwnerTwice(ctx, owner)
	if err != nil {
		return false, nil, err
	}
	findings := func() []Finding {
		found := slices.DeleteFunc(state.tally.Suspects(), func(f Finding) bool { return f.Owner != owner })
		for i := range found {
			found[i].Proof.Certain = found[i].Proof.Certain && !state.lost
		}
		return found
	}
	for _, f := range findings() {
		if f.Proof.Was > f.Proof.Want {
			if err := x.learnGone(ctx, f.Count); err != nil {
				return false, nil, err
			}
		}
	}
	return stable, findings(), nil
}

// learnGone reads anew, once, what is archived of the slots under a key. A mark of the archive
// that came after a stock item was read, and before its hold, is in what the tally knows of the
// hold alone, so that too little seems to have left the table.
func (x *examination) learnGone(ctx context.Context, key ledger.QuotaKey) error {
	if x.learned[key] {
		return nil
	}
	archived := map[ledger.SlotID]ledger.Units{}
	for _, row := range x.t.rows.Stock {
		of, known := x.resources[row.Slot]
		if key != keyOfSlot(row.Slot) && (!known || key != keyOfResource(of)) {
			continue
		}
		r, err := x.Store.Records(ctx, ledger.RecordsOf{Slot: row.Slot, Shard: row.Shard, OfStock: true})
		if err != nil {
			return err
		}
		for _, s := range r.Stock {
			archived[row.Slot] += s.Archived.Confirmed
		}
	}
	var gone ledger.Units
	for slot, units := range archived {
		gone += max(0, units-x.t.rows.ArchivedSales[slot])
	}
	x.gone[key] = max(x.gone[key], gone)
	x.learned[key] = true
	return nil
}

// lookAtCount looks at one count over all owners of whom it is more than their holds have.
func (x *examination) lookAtCount(ctx context.Context, key ledger.QuotaKey) (bool, []Finding, error) {
	if err := x.learnGone(ctx, key); err != nil {
		return false, nil, err
	}
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
	var told []ledger.HoldID
	for _, history := range x.t.rows.Histories {
		if history.Owner == owner && history.Hold != "" {
			told = append(told, history.Hold)
		}
	}
	known = append(known, told...)
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
	slices.Sort(known)
	for chunk := range slices.Chunk(slices.Compact(known), ledger.PageItemsMax) {
		read, err := x.Store.Holds(ctx, chunk)
		if err != nil {
			return state, err
		}
		add(read)
	}
	if state.quota, err = x.Store.Quota(ctx, owner); err != nil {
		return state, err
	}
	state.lost = slices.ContainsFunc(told, func(id ledger.HoldID) bool { return holds[id] == nil })
	state.tally.rows.Holds = holds
	state.tally.rows.Quotas = []ledger.Quota{state.quota}
	return state, nil
}
