package commands

import (
	"context"
	"errors"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// lostAnswerTriesMax bounds how often a Change is written again whose answer was lost.
// The store has tried it several times by then.
const lostAnswerTriesMax = 3

// PutSlots carries out at most SlotRowsMax rows, each of another slot, and each on its own:
// a row that is refused, or meets another caller, does not keep the others back. The
// outcomes are in the order of the rows.
//
// The batch may be repeated. A put that is repeated finds its slot as it wants it. A patch
// that was carried out under its key has its first outcome again.
//
// An error of the call says that no row was carried out: CodeInvalid for rows that are no
// batch, and those of the store. A row has the errors of PutSlot or PatchSlot. Rows that
// are not done when ctx ends are CodeUnavailable, and may have to be sent again.
func (c *Commands) PutSlots(ctx context.Context, r Request, rows []SlotRow) ([]SlotOutcome, error) {
	if err := checkSlotRows(r, rows); err != nil {
		return nil, err
	}
	b := &slotBatch{commands: c, request: r, rows: rows, outcomes: make([]SlotOutcome, len(rows))}
	waiting := make([]int, len(rows))
	for i := range rows {
		b.outcomes[i].ID, waiting[i] = rows[i].ID, i
	}
	for attempt := range TriesMax {
		err := c.pause(ctx, attempt)
		if err != nil {
			err = unavailable(err)
		}
		var found foundSlots
		if err == nil {
			found, err = b.find(ctx, waiting)
		}
		if err != nil && attempt == 0 {
			return nil, err
		}
		if err != nil {
			b.refuse(waiting, err)
			return b.outcomes, nil
		}
		if waiting = b.round(ctx, waiting, found); len(waiting) == 0 {
			return b.outcomes, nil
		}
		c.counter.DecidedAnew()
	}
	b.refuse(waiting, &ledger.Error{Code: ledger.CodeBusy, Message: "too many others change the same slot; send the row again"})
	return b.outcomes, nil
}

// slotBatch is one batch being carried out. Rows are named by their position in it.
type slotBatch struct {
	commands *Commands
	request  Request
	rows     []SlotRow
	outcomes []SlotOutcome
}

// foundSlots are the slots of a batch that exist, with their stock.
type foundSlots map[ledger.SlotID]foundSlot

type foundSlot struct {
	slot  ledger.Slot
	stock []ledger.Stock
}

// find reads the slots of these rows. A slot's stock is of one moment, and may be newer
// than the slot, as that of slotWithStock.
func (b *slotBatch) find(ctx context.Context, rows []int) (foundSlots, error) {
	slots, err := b.commands.store.Slots(ctx, b.ids(rows))
	if err != nil {
		return nil, err
	}
	found := make(foundSlots, len(slots))
	var whole []ledger.Slot // slots of one stock item, which is of one moment however it is read
	for _, slot := range slots {
		if slot.Terms.StockItems() == 1 {
			whole = append(whole, slot)
			found[slot.ID] = foundSlot{slot: slot}
			continue
		}
		stock, err := b.commands.store.StockAtOneMoment(ctx, slot)
		if err != nil {
			return nil, err
		}
		found[slot.ID] = foundSlot{slot, stock}
	}
	if len(whole) == 0 {
		return found, nil
	}
	stock, err := b.commands.store.Stock(ctx, whole)
	if err != nil {
		return nil, err
	}
	for _, s := range stock {
		of := found[s.Slot]
		of.stock = append(of.stock, s)
		found[s.Slot] = of
	}
	return found, nil
}

func (b *slotBatch) ids(rows []int) []ledger.SlotID {
	ids := make([]ledger.SlotID, len(rows))
	for i, row := range rows {
		ids[i] = b.rows[row].ID
	}
	return ids
}

// round carries out these rows as far as it can, and returns those to decide anew.
func (b *slotBatch) round(ctx context.Context, rows []int, found foundSlots) []int {
	var missing, same []int
	for _, i := range rows {
		row := b.rows[i]
		of, exists := found[row.ID]
		switch {
		case !exists && row.Put != nil:
			missing = append(missing, i)
		case !exists:
			b.refuse([]int{i}, ledger.SlotNotFound(row.ID))
		case row.Put != nil && says(of, *row.Put):
			same = append(same, i)
		default:
			b.edit(ctx, i, of)
		}
	}
	return append(b.confirmSame(ctx, same, found), b.create(ctx, missing)...)
}

// says reports whether the slot is as d wants it.
func says(of foundSlot, d ledger.SlotDefinition) bool {
	change, err := ledger.EditSlot(of.slot, of.stock, d, ledger.Origin{}, of.slot.UpdatedAt)
	return err == nil && change.Empty()
}

// confirmSame tells of rows whose slots say the same already, and returns those whose slots
// have changed since they were read: their stock may be of a later moment.
func (b *slotBatch) confirmSame(ctx context.Context, rows []int, found foundSlots) []int {
	if len(rows) == 0 {
		return nil
	}
	slots, err := b.commands.store.Slots(ctx, b.ids(rows))
	if err != nil {
		b.refuse(rows, err)
		return nil
	}
	version := make(map[ledger.SlotID]ledger.Version, len(slots))
	for _, slot := range slots {
		version[slot.ID] = slot.Version
	}
	var anew []int
	for _, i := range rows {
		if id := b.rows[i].ID; version[id] != found[id].slot.Version {
			anew = append(anew, i)
			continue
		}
		b.outcomes[i].Did = SlotUnchanged
	}
	return anew
}

// create makes new slots, as many in one Change as it can have, and returns the rows of
// Changes that were refused: one of their slots exists meanwhile.
func (b *slotBatch) create(ctx context.Context, rows []int) []int {
	c := b.commands
	now := system.Millisecond(c.clock)
	// The ids of the events are new in each round. A slot that an earlier round has written
	// under them would otherwise pass for all of another Change.
	origin := ledger.Origin{
		Actor: b.request.Actor, Command: ledger.CommandPutSlot, RequestID: b.request.RequestID,
		EventID: ledger.NewEventID(c.random.Bits128()),
	}
	var anew, group []int
	var together ledger.Change
	for _, i := range rows {
		change, err := ledger.NewSlot(b.rows[i].ID, *b.rows[i].Put, origin.Beside("slot/"+string(b.rows[i].ID)), now)
		if err != nil {
			b.refuse([]int{i}, err)
			continue
		}
		if together.Actions()+change.Actions() > ledger.ActionsMax {
			anew = append(anew, b.commitNew(ctx, group, together)...)
			group, together = nil, ledger.Change{}
		}
		if len(group) > 0 {
			change = ledger.Together(together, change)
		}
		group, together = append(group, i), change
	}
	if len(group) > 0 {
		anew = append(anew, b.commitNew(ctx, group, together)...)
	}
	return anew
}

// commitNew writes the Change that makes the slots of these rows. It returns the rows if it
// was refused.
func (b *slotBatch) commitNew(ctx context.Context, rows []int, change ledger.Change) []int {
	err := b.commit(ctx, change)
	if r := (*ledger.Refused)(nil); errors.As(err, &r) {
		return rows
	}
	if err != nil {
		b.refuse(rows, err)
		return nil
	}
	for _, i := range rows {
		b.outcomes[i].Did = SlotCreated
	}
	return nil
}

// commit writes the Change, and writes the same again where the answer was lost: its own
// events tell whether it was applied.
func (b *slotBatch) commit(ctx context.Context, change ledger.Change) error {
	c := b.commands
	if ctx.Err() != nil {
		return unavailable(ctx.Err())
	}
	err := c.store.Commit(ctx, change)
	for try := 1; try < lostAnswerTriesMax && ledger.CodeOf(err) == ledger.CodeOutcomeUnknown; try++ {
		if c.pause(ctx, try) != nil {
			return err
		}
		err = c.store.Commit(ctx, change)
	}
	return err
}

func (b *slotBatch) refuse(rows []int, err error) {
	for _, i := range rows {
		b.outcomes[i].Did, b.outcomes[i].Err = SlotRefused, err
	}
}

// edit changes the slot of one row. What was found decides at first, and what is read
// again where that has been overtaken.
func (b *slotBatch) edit(ctx context.Context, i int, of foundSlot) {
	if ctx.Err() != nil {
		b.refuse([]int{i}, unavailable(ctx.Err()))
		return
	}
	answer, err := b.commands.carryOut(ctx, b.editJob(b.rows[i], of))
	if err != nil {
		b.refuse([]int{i}, err)
		return
	}
	b.outcomes[i].Did = SlotDid(answer.Response.Body)
}

func (b *slotBatch) editJob(row SlotRow, of foundSlot) job {
	j := job{command: ledger.CommandPutSlot, request: b.request}
	j.request.Key, j.request.Fingerprint = "", "" // a put is repeatable by nature
	if row.Patch != nil {
		j.command, j.request.Key, j.request.Fingerprint = ledger.CommandPatchSlot, row.keyIn(b.request), row.Fingerprint
	}
	asked := false
	j.decide = func(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
		first := !asked
		asked = true
		if !first {
			var err error
			if of, err = b.commands.foundSlot(ctx, row.ID); err != nil {
				return decision{}, err
			}
		}
		d, err := b.decideRow(ctx, row, of, origin, now)
		if err != nil && first {
			// What was found is of some time ago, since rows are carried out one after the
			// other. That is good enough for a Change, which has conditions, and not for a
			// refusal.
			return decision{}, errTwoMoments
		}
		return d, err
	}
	return j
}

// foundSlot reads a slot of the batch again.
func (c *Commands) foundSlot(ctx context.Context, id ledger.SlotID) (foundSlot, error) {
	slot, stock, found, err := c.slotWithStock(ctx, id)
	if err == nil && !found {
		err = ledger.SlotNotFound(id)
	}
	return foundSlot{slot, stock}, err
}

// decideRow decides a row whose slot was found so. Its response is what the row did.
func (b *slotBatch) decideRow(ctx context.Context, row SlotRow, of foundSlot, origin ledger.Origin, now time.Time) (decision, error) {
	d, err := row.definition(of)
	if err != nil {
		return decision{}, err
	}
	change, err := b.commands.editOf(ctx, of.slot, of.stock, d, origin, now)
	did := SlotChanged
	if change.Empty() {
		did = SlotUnchanged
	}
	return decision{change: change, response: ledger.Response{Status: slotRowStatus, Body: []byte(did)}}, err
}
