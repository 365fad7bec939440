package commands

import (
	"cmp"
	"context"
	"time"

	"holdfast/shared/ledger"
)

// RenderSlot turns the slot as it is stored, the whole policy that it has with what its
// resource says, and the sum of its stock into the answer that is given and kept. created
// says that the slot did not exist before.
type RenderSlot func(slot ledger.Slot, whole ledger.Policy, counters ledger.Counters, created bool) (ledger.Response, error)

// PutSlot makes the slot what d says, whether it exists or not. It is repeatable by
// nature: a second PUT of the same definition writes nothing.
//
// Errors: CodeInvalid, CodeSlotFixed, CodeCapacityInUse, and those of the store.
func (c *Commands) PutSlot(ctx context.Context, r Request, id ledger.SlotID, d ledger.SlotDefinition, render RenderSlot) (Answer, error) {
	return c.carryOut(ctx, job{
		command: ledger.CommandPutSlot, request: r,
		decide: func(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
			slot, stock, found, err := c.slotWithStock(ctx, id)
			if err != nil {
				return decision{}, err
			}
			if !found {
				change, err := ledger.NewSlot(id, d, origin, now)
				if err != nil {
					return decision{}, err
				}
				return c.decidedSlot(ctx, change, change.Slots[0].Next, sum(change.NewStock), true, render)
			}
			return c.editSlot(ctx, slot, stock, d, origin, now, render)
		},
	})
}

// PatchSlot changes the named parts of a slot that exists.
//
// Errors: CodeSlotNotFound, CodeInvalid, CodeCapacityInUse, CodeKeyReused, and those of
// the store.
func (c *Commands) PatchSlot(ctx context.Context, r Request, id ledger.SlotID, patch ledger.SlotPatch, render RenderSlot) (Answer, error) {
	return c.carryOut(ctx, job{
		command: ledger.CommandPatchSlot, request: r,
		decide: func(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
			slot, stock, found, err := c.slotWithStock(ctx, id)
			if err != nil {
				return decision{}, err
			}
			if !found {
				return decision{}, ledger.SlotNotFound(id)
			}
			d, err := patch.Apply(slot.Definition(sum(stock).Capacity))
			if err != nil {
				return decision{}, cmp.Or(c.stillAt(ctx, slot), err)
			}
			return c.editSlot(ctx, slot, stock, d, origin, now, render)
		},
	})
}

func (c *Commands) editSlot(ctx context.Context, slot ledger.Slot, stock []ledger.Stock, d ledger.SlotDefinition, origin ledger.Origin, now time.Time, render RenderSlot) (decision, error) {
	change, err := c.editOf(ctx, slot, stock, d, origin, now)
	if err != nil {
		return decision{}, err
	}
	counters := sum(stock)
	counters = counters.Plus(sum(change.NewStock))
	for _, w := range change.Stock {
		counters = counters.Plus(w.Delta)
	}
	for _, w := range change.Slots {
		slot = w.Next
	}
	return c.decidedSlot(ctx, change, slot, counters, false, render)
}

// editOf is what makes the slot d, or empty if it is so already. Nothing but a write finds out
// that the stock is newer than the slot, so what writes nothing is looked at again: neither a
// refusal nor "it is so already" may be of two moments.
func (c *Commands) editOf(ctx context.Context, slot ledger.Slot, stock []ledger.Stock, d ledger.SlotDefinition, origin ledger.Origin, now time.Time) (ledger.Change, error) {
	change, err := ledger.EditSlot(slot, stock, d, origin, now)
	if change.Empty() {
		err = cmp.Or(c.stillAt(ctx, slot), err)
	}
	c.slots.forget(slot.ID)
	return change, err
}

// decidedSlot is the decision for change, which makes the slot what is given.
func (c *Commands) decidedSlot(ctx context.Context, change ledger.Change, slot ledger.Slot, counters ledger.Counters, created bool, render RenderSlot) (decision, error) {
	whole, err := c.Resolved(ctx, []ledger.Slot{slot})
	if err != nil {
		return decision{}, err
	}
	response, err := render(slot, whole[0].Policy, counters, created)
	return decision{change: change, response: response}, err
}

// stillAt returns errTwoMoments if the slot has changed since it was read. An edit that
// writes nothing has no condition that would find that out.
func (c *Commands) stillAt(ctx context.Context, slot ledger.Slot) error {
	slots, err := c.store.Slots(ctx, []ledger.SlotID{slot.ID})
	if err == nil && (len(slots) != 1 || slots[0].Version != slot.Version) {
		err = errTwoMoments
	}
	return err
}

// slotWithStock reads a slot and its stock. The stock may be newer than the slot: the
// slot's version is a condition of what is written on it, and so is the stock itself.
func (c *Commands) slotWithStock(ctx context.Context, id ledger.SlotID) (ledger.Slot, []ledger.Stock, bool, error) {
	slots, err := c.store.Slots(ctx, []ledger.SlotID{id})
	if err != nil || len(slots) == 0 {
		return ledger.Slot{}, nil, false, err
	}
	stock, err := c.store.StockAtOneMoment(ctx, slots[0])
	return slots[0], stock, err == nil, err
}

func sum(stock []ledger.Stock) ledger.Counters {
	var total ledger.Counters
	for _, s := range stock {
		total = total.Plus(s.Counters)
	}
	return total
}
