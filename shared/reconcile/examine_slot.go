package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// ClockSkewMax is by how much the clocks of those who write may differ from the audit's.
const ClockSkewMax = time.Minute

// farFuture is after every time at which a hold is due.
var farFuture = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// places are, for each slot that is looked at, the holds and reservations that the tally knows
// to add to its stock, or to be about to.
type places struct {
	holds        map[ledger.SlotID]map[ledger.HoldID]bool
	reservations map[ledger.SlotID]map[ledger.ReservationID]bool
	shards       map[ledger.SlotID]map[ledger.Shard]bool
}

// newPlaces finds them for the slots among the suspects, in one pass over the tally: rows keep
// the id of their subject for this.
func newPlaces(t *Tally, suspects []*suspect) places {
	p := places{map[ledger.SlotID]map[ledger.HoldID]bool{}, map[ledger.SlotID]map[ledger.ReservationID]bool{}, map[ledger.SlotID]map[ledger.Shard]bool{}}
	for _, s := range suspects {
		if s.of.slot != "" {
			p.holds[s.of.slot], p.reservations[s.of.slot] = map[ledger.HoldID]bool{}, map[ledger.ReservationID]bool{}
			p.shards[s.of.slot] = map[ledger.Shard]bool{}
		}
	}
	for _, row := range t.rows.Holds {
		p.addHold(row)
	}
	for _, row := range t.rows.Reservations {
		for _, c := range row.Granted {
			p.addReservation(c.Slot, row.ID)
		}
		for slot := range row.Grants {
			p.addReservation(slot, row.ID)
		}
	}
	for _, told := range t.rows.Histories {
		for _, c := range told.Moved {
			p.addReservation(c.Slot, told.Reservation)
			// A hold of which only events are left is not known as a row.
			if of := p.holds[c.Slot]; of != nil && told.Hold != "" {
				of[told.Hold] = true
			}
		}
	}
	for _, row := range t.rows.Stock {
		if of := p.shards[row.Slot]; of != nil {
			of[row.Shard] = true
		}
	}
	return p
}

func (p places) addHold(row *holdRow) {
	for _, c := range slices.Concat(row.Shares, row.Carry, row.Denied, row.Touches) {
		if of := p.holds[c.Slot]; of != nil {
			of[row.ID] = true
		}
	}
	for _, slot := range row.GrantsTo {
		p.addReservation(slot, row.Reservation)
	}
}

func (p places) addReservation(slot ledger.SlotID, id ledger.ReservationID) {
	if of := p.reservations[slot]; of != nil && id != "" {
		of[id] = true
	}
}

// slotState is a slot and its stock items, as they were read.
type slotState struct {
	records ledger.Records
	slot    ledger.Version
	stock   map[item]ledger.Version
}

// lookAtSlots looks at slots, and returns those that are to be looked at again.
//
// Between two reads of a stock item that give the same version, nothing has changed what adds
// to it: each step that does is one transaction with the item. So whoever adds to it may be
// read one after the other in between. Who that can be are the holds that the tally knows to
// be of the slot, and those that it can't know: the HELD ones, as they may be new or edited,
// and those that have ended since the audit began. Their lists are read in between, too. In
// the first look they are not, as most suspects are known by it to be right, at a tenth of the
// price: it clears, and proves nothing.
func (x *examination) lookAtSlots(ctx context.Context, suspects []*suspect, look int) ([]*suspect, error) {
	if len(suspects) == 0 {
		return nil, nil
	}
	if look == 1 {
		if err := x.refresh(ctx, false); err != nil {
			return nil, err
		}
	}
	before := make([]slotState, len(suspects))
	if look > 1 {
		for i, s := range suspects {
			var err error
			if before[i], err = x.readSlot(ctx, s.of.slot); err != nil {
				return nil, err
			}
		}
		if err := x.refresh(ctx, true); err != nil {
			return nil, err
		}
	}
	var left []*suspect
	for i, s := range suspects {
		if look == 1 {
			var err error
			if before[i], err = x.readSlot(ctx, s.of.slot); err != nil {
				return nil, err
			}
		}
		stable, found, err := x.lookAtSlot(ctx, s.of.slot, before[i])
		if err != nil {
			return nil, err
		}
		switch {
		case look == 1 && len(found) > 0:
			stable = false // whoever explains it may not be known yet
		case look > 1 && !stable:
			if stable, err = x.rightAtOnce(ctx, s.of.slot); err != nil {
				return nil, err
			}
			found = nil
		}
		if x.decide(s, stable, found) {
			left = append(left, s)
		}
	}
	return left, nil
}

// lookAtSlot compares the slot's stock with whoever adds to it, since it was read.
func (x *examination) lookAtSlot(ctx context.Context, id ledger.SlotID, before slotState) (bool, []Finding, error) {
	t := x.tally()
	if err := x.gather(ctx, t, id); err != nil {
		return false, nil, err
	}
	after, err := x.readSlot(ctx, id)
	if err != nil {
		return false, nil, err
	}
	t.add(after.records)
	stable := before.slot == after.slot
	found := slices.DeleteFunc(t.Suspects(), func(f Finding) bool {
		if f.Slot != id || f.Hold != "" || f.Kind == FindingTimeToLive {
			return true
		}
		key := item{f.Slot, f.Shard}
		return before.stock[key] != after.stock[key]
	})
	for key, version := range after.stock {
		stable = stable && before.stock[key] == version
	}
	// One shard may be in peace while others are not.
	return before.slot == after.slot && (stable || len(found) > 0), found, nil
}

// rightAtOnce reports whether a busy slot is right, in the short while that it takes to read
// whoever is known to add to it. It may not say that it is wrong.
func (x *examination) rightAtOnce(ctx context.Context, id ledger.SlotID) (bool, error) {
	before, err := x.readSlot(ctx, id)
	if err != nil {
		return false, err
	}
	stable, found, err := x.lookAtSlot(ctx, id, before)
	return stable && len(found) == 0, err
}

// readSlot reads a slot and its stock items.
func (x *examination) readSlot(ctx context.Context, id ledger.SlotID) (slotState, error) {
	state := slotState{stock: map[item]ledger.Version{}}
	var err error
	if state.records, err = x.Store.Records(ctx, ledger.RecordsOf{Slot: id}); err != nil {
		return state, err
	}
	shards := map[ledger.Shard]bool{}
	for shard := range x.places.shards[id] {
		shards[shard] = true
	}
	for _, s := range state.records.Slots {
		state.slot = s.Version
		for shard := range stockItems(s.Terms) {
			shards[ledger.Shard(shard)] = true
		}
	}
	for shard := range shards {
		r, err := x.Store.Records(ctx, ledger.RecordsOf{Slot: id, Shard: shard, OfStock: true})
		if err != nil {
			return state, err
		}
		for _, s := range r.Stock {
			state.stock[item{id, shard}] = s.Version
		}
		state.records.Stock = append(state.records.Stock, r.Stock...)
	}
	return state, nil
}

// gather takes into t whatever adds to the stock of the slot.
func (x *examination) gather(ctx context.Context, t *Tally, slot ledger.SlotID) error {
	ids := make([]ledger.HoldID, 0, len(x.places.holds[slot]))
	for id := range x.places.holds[slot] {
		ids = append(ids, id)
	}
	for chunk := range slices.Chunk(ids, ledger.PageItemsMax) {
		holds, err := x.Store.Holds(ctx, chunk)
		if err != nil {
			return err
		}
		for _, h := range holds {
			row, err := x.row(ctx, h)
			if err != nil {
				return err
			}
			t.rows.Holds[h.ID] = row
			for _, to := range row.GrantsTo {
				x.places.addReservation(to, row.Reservation)
			}
		}
		if err := x.gatherLost(ctx, t, chunk, holds); err != nil {
			return err
		}
	}
	for id := range x.places.reservations[slot] {
		r, err := x.Store.Records(ctx, ledger.RecordsOf{Reservation: id})
		if err != nil {
			return err
		}
		t.add(r)
	}
	return nil
}

// gatherLost takes into t the events of those holds that are not there: what a lost hold has
// is in doubt, and nobody may take it for free. Of one that has left the table in order there
// are none.
func (x *examination) gatherLost(ctx context.Context, t *Tally, ids []ledger.HoldID, there []ledger.Hold) error {
	for _, id := range ids {
		if slices.ContainsFunc(there, func(h ledger.Hold) bool { return h.ID == id }) {
			continue
		}
		r, err := x.Store.Records(ctx, ledger.RecordsOf{Hold: id})
		if err != nil {
			return err
		}
		t.add(r)
	}
	return nil
}

// row is what is kept of a hold as it is now: a version never changes, so that a row that was
// compared with its events is as good as reading them again.
func (x *examination) row(ctx context.Context, h ledger.Hold) (*holdRow, error) {
	for _, known := range []*holdRow{x.recent[h.ID], x.t.rows.Holds[h.ID]} {
		if known != nil && known.Told && known.Version == h.Version && h.ArchivedIn == "" {
			return known, nil
		}
	}
	if h.ArchivedIn != "" {
		return newHoldRow(h), nil
	}
	r, err := x.Store.Records(ctx, ledger.RecordsOf{Hold: h.ID})
	if err != nil {
		return nil, err
	}
	t := x.tally()
	t.add(r)
	row := t.rows.Holds[h.ID]
	if row == nil { // it has ended, and adds to nothing
		row = &holdRow{ID: h.ID, Version: h.Version, Status: h.Status, Owner: h.Owner, Told: true}
	}
	x.recent[h.ID] = row
	x.places.addHold(row)
	return row, nil
}

// refresh reads the lists of HELD holds, and of those that have ended since the audit began,
// and then those holds that are not known. With edits, all HELD ones are read, since an edit
// may have brought any of them to another slot.
func (x *examination) refresh(ctx context.Context, edits bool) error {
	var ids []ledger.HoldID
	held := func(due []ledger.DueHold) {
		for _, d := range due {
			if edits || x.t.rows.Holds[d.ID] == nil && x.recent[d.ID] == nil {
				ids = append(ids, d.ID)
			}
		}
	}
	for shard := range ledger.DueShards {
		err := eachPage(func(page ledger.Page) (ledger.Cursor, error) {
			due, next, err := x.Store.Due(ctx, shard, farFuture, page)
			held(due)
			return next, err
		})
		if err != nil {
			return err
		}
		err = eachPage(func(page ledger.Page) (ledger.Cursor, error) {
			parked, next, err := x.Store.Parked(ctx, shard, page)
			held(parked)
			return next, err
		})
		if err != nil {
			return err
		}
		err = eachPage(func(page ledger.Page) (ledger.Cursor, error) {
			over, next, err := x.Store.EndedHolds(ctx, shard, x.t.rows.At.Add(-ClockSkewMax), page)
			for _, id := range over {
				// One that was HELD when it was read may have been brought to another slot since.
				known := x.t.rows.Holds[id]
				if (known == nil || known.Status == ledger.StatusHeld) && !x.seen[id] {
					x.seen[id] = true
					ids = append(ids, id)
				}
			}
			return next, err
		})
		if err != nil {
			return err
		}
	}
	return x.readRecent(ctx, ids)
}

// listPagesMax bounds the pages of one list: a hundred million holds in one shard.
const listPagesMax = 200_000

// eachPage reads a list to its end.
func eachPage(read func(page ledger.Page) (ledger.Cursor, error)) error {
	page := ledger.Page{Limit: ledger.PageItemsMax}
	for range listPagesMax {
		next, err := read(page)
		if err != nil {
			return err
		}
		if page.After = next; next == "" {
			return nil
		}
	}
	return fmt.Errorf("a list has more than %d pages", listPagesMax)
}

func (x *examination) readRecent(ctx context.Context, ids []ledger.HoldID) error {
	// A hold that is parked, or ends, between two of the lists is in both.
	slices.Sort(ids)
	ids = slices.Compact(ids)
	for chunk := range slices.Chunk(ids, ledger.PageItemsMax) {
		holds, err := x.Store.Holds(ctx, chunk)
		if err != nil {
			return err
		}
		for _, h := range holds {
			if _, err := x.row(ctx, h); err != nil {
				return err
			}
		}
	}
	return nil
}
