package commandstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
)

// shop draws what an owner asks for next.
func (m *market) shop(owner ledger.OwnerID) *errand {
	var held, sold []ledger.Hold
	for _, id := range m.books.order {
		switch h := m.books.holds[id]; {
		case h.Owner != owner:
		case h.Status == ledger.StatusHeld:
			held = append(held, h)
		case h.Status == ledger.StatusConfirmed:
			sold = append(sold, h)
		}
	}
	wish := oneOf(m, "wish", []string{"create", "create", "edit", "edit", "extend", "cancel", "confirm", "part", "return"})
	switch {
	case wish == "return" && len(sold) > 0:
		return m.giveBack(owner, oneOf(m, "sale", sold))
	case wish == "create" || wish == "return" || len(held) == 0:
		return m.create(owner)
	}
	hold := oneOf(m, "hold", held)
	switch wish {
	case "edit":
		return m.edit(owner, hold)
	case "extend":
		return m.extend(owner, hold)
	case "cancel":
		return m.cancel(owner, hold)
	default:
		return m.confirm(hold, wish == "part")
	}
}

// basket draws 1 to 50 lines.
func (m *market) basket() []ledger.Quote {
	first := m.draw("first", 0, len(m.slots)-1)
	count := m.draw("lines", 1, len(m.slots))
	if m.draw("all", 0, 3) == 0 {
		count = len(m.slots)
	}
	quantities := []int{1, 1, 1, 2, 3, 7}
	if count > 8 {
		quantities = []int{1} // more of each would hardly ever be there
	}
	var out []ledger.Quote
	for i := range count {
		out = append(out, ledger.Quote{
			Slot:     m.slots[(first+i)%len(m.slots)],
			Quantity: ledger.Units(oneOf(m, "quantity", quantities)), UnitAmount: unitAmount,
		})
	}
	return out
}

func (m *market) request(owner ledger.OwnerID) commands.Request {
	r := commands.Request{Actor: "owner", Owner: owner, RequestID: "request"}
	if m.draw("keyed", 0, 1) == 1 {
		r.Key = ledger.IdempotencyKey(fmt.Sprint("key", len(m.log), owner))
		r.Fingerprint = "same"
	}
	return r
}

func (m *market) create(owner ledger.OwnerID) *errand {
	by, r, quotes := m.process(), m.request(owner), m.basket()
	e := asked(func(ctx context.Context) error {
		_, err := by.CreateHold(ctx, r, commands.HoldWish{Quotes: quotes}, renderHold)
		return err
	}, nil, "create", "%s creates %v", owner, quotes)
	had := m.had(owner, quotes)
	e.judge = func(err error) error { return m.judgeTaking(e, had, quotes, ledger.Hold{}, err) }
	return e
}

func (m *market) edit(owner ledger.OwnerID, h ledger.Hold) *errand {
	by, r := m.process(), m.request(owner)
	wish := commands.EditWish{Quotes: m.basket()}
	if m.draw("extend", 0, 1) == 1 {
		wish.ExtendFor = h.HoldFor
	}
	e := asked(func(ctx context.Context) error {
		_, err := by.EditHold(ctx, r, h.ID, wish, renderHold)
		return err
	}, nil, "edit", "%s edits %s to %v", owner, h.ID, wish.Quotes)
	had := m.had(owner, wish.Quotes)
	also := []ledger.Code{ledger.CodeHoldNotActive, ledger.CodeHoldAtMaximum}
	if wish.ExtendFor > 0 {
		also = append(also, ledger.CodeInvalid) // what comes may be promised for less at a time
	}
	e.judge = func(err error) error {
		return m.judgeTaking(e, had, wish.Quotes, h, err, also...)
	}
	return e
}

// had is what the owner has of each slot before a request. Beside it only the sweep acts on
// the owner's holds, and takes away.
func (m *market) had(owner ledger.OwnerID, quotes []ledger.Quote) map[ledger.SlotID]ledger.Units {
	out := make(map[ledger.SlotID]ledger.Units, len(quotes))
	for _, q := range quotes {
		out[q.Slot] = m.books.unitsOf(owner, q.Slot)
	}
	return out
}

// judgeTaking looks at the answer to a request that takes units: for a new hold, or for h.
func (m *market) judgeTaking(e *errand, had map[ledger.SlotID]ledger.Units, quotes []ledger.Quote, h ledger.Hold, err error, also ...ledger.Code) error {
	more := func(id ledger.SlotID) ledger.Units { return comes(quotes, h, id) }
	var refusal *ledger.Error
	if !errors.As(err, &refusal) || ledger.CodeOf(err) != ledger.CodeInsufficientStock && ledger.CodeOf(err) != ledger.CodeLimitReached {
		// A basket that had to be split over too many stock items is told so, and one of a
		// slot that is oversold that it is closed.
		return only(append(also, ledger.CodeBusy, ledger.CodeSlotClosed)...)(err)
	}
	if len(refusal.Shortages)+len(refusal.Limits) == 0 {
		return fmt.Errorf("nothing is named: %w", err)
	}
	for _, s := range refusal.Shortages {
		if least := m.books.leastSince(s.Slot, e.from); least >= more(s.Slot) {
			return fmt.Errorf("P10: %d of slot %s were wanted and never were fewer than %d available", more(s.Slot), s.Slot, least)
		}
	}
	for _, l := range refusal.Limits {
		if id, ofSlot := l.Key.Slot(); !ofSlot || !m.limited[id] || had[id]+more(id) <= l.Max {
			return fmt.Errorf("limit %+v, but there were %d and %d came", l, had[id], more(id))
		}
	}
	return nil
}

// comes is how many units of a slot the quotes want beyond what h has.
func comes(quotes []ledger.Quote, h ledger.Hold, id ledger.SlotID) ledger.Units {
	var units ledger.Units
	for _, q := range quotes {
		if q.Slot == id {
			units += q.Quantity
		}
	}
	for _, l := range h.Lines {
		if l.Slot == id {
			units -= l.Quantity
		}
	}
	return units
}

func (m *market) extend(owner ledger.OwnerID, h ledger.Hold) *errand {
	by, r := m.process(), m.request(owner)
	return asked(func(ctx context.Context) error {
		_, err := by.ExtendHold(ctx, r, h.ID, 0, renderHold)
		return err
	}, only(ledger.CodeHoldNotActive, ledger.CodeHoldAtMaximum), "extend", "%s extends %s", owner, h.ID)
}

func (m *market) cancel(owner ledger.OwnerID, h ledger.Hold) *errand {
	by, r := m.process(), m.request(owner)
	return asked(func(ctx context.Context) error {
		_, err := by.CancelHold(ctx, r, h.ID, renderHold)
		return err
	}, only(ledger.CodeHoldNotActive), "cancel", "%s cancels %s", owner, h.ID)
}

// confirm sells a hold, or a drawn part of it.
func (m *market) confirm(h ledger.Hold, part bool) *errand {
	var sold []ledger.ReturnLine
	kind := "confirm"
	if part {
		kind, sold = "confirm a part", m.part(h)
	}
	by, r := m.process(), m.request(h.Owner)
	return asked(func(ctx context.Context) error {
		_, err := by.ConfirmHold(ctx, r, h.ID, ledger.PaymentReference(h.ID), sold, renderHold)
		return err
	}, only(ledger.CodeHoldNotActive), kind, "the shop sells %v of %s", sold, h.ID)
}

// giveBack returns a sale, or a drawn part of it.
func (m *market) giveBack(owner ledger.OwnerID, h ledger.Hold) *errand {
	var back []ledger.ReturnLine
	if m.draw("whole", 0, 1) == 1 {
		back = m.part(h)
		for i := range back {
			back[i].Restock = oneOf(m, "restock", []ledger.Restock{ledger.RestockByPolicy, ledger.RestockNever})
		}
	}
	by, r := m.process(), m.request(owner)
	return asked(func(ctx context.Context) error {
		_, err := by.ReturnHold(ctx, r, h.ID, back, renderHold)
		return err
	}, only(), "return", "the shop takes back %v of %s", back, h.ID)
}

// part draws at least one line of what is left of the hold, with at least one unit.
func (m *market) part(h ledger.Hold) []ledger.ReturnLine {
	all := h.Unreturned()
	out := all[:m.draw("lines", 1, len(all))]
	for i := range out {
		out[i].Quantity = ledger.Units(m.draw("quantity", 1, int(out[i].Quantity)))
	}
	return out
}

// operate draws what the operator does: other shards, another capacity, also one that is less
// than was promised, which closes the slot until there is more.
func (m *market) operate() *errand {
	id := oneOf(m, "slot", m.slots)
	patch := ledger.SlotPatch{}
	switch oneOf(m, "change", []string{"shards", "shards", "shards", "more", "more", "more", "less", "oversold"}) {
	case "shards":
		shards := m.draw("shards", 1, shardsMax)
		patch.Shards = &shards
	case "more":
		if i := slices.IndexFunc(m.slots, func(id ledger.SlotID) bool { return m.books.closed[id] }); i >= 0 {
			id = m.slots[i]
		}
		units, open := ledger.Units(m.draw("units", 1, 40)), true
		patch.CapacityDelta, patch.Open = &units, &open
	case "less":
		units := -ledger.Units(m.draw("units", 1, 5))
		patch.CapacityDelta = &units
	case "oversold":
		units := ledger.Units(m.draw("units", 0, 5))
		patch.Capacity, patch.AcceptOversold = &units, true
	}
	by := m.process()
	return asked(func(ctx context.Context) error {
		_, err := by.PatchSlot(ctx, commands.Request{Actor: "operator"}, id, patch, renderSlot)
		return err
	}, only(ledger.CodeCapacityInUse, ledger.CodeSlotOversold), "patch", "the operator patches %s to %+v", id, patch)
}

// sweep lets some time pass and ends a hold that is over, if there is one.
func (m *market) sweep() *errand {
	m.clock.Advance(oneOf(m, "time", []time.Duration{0, 100 * time.Millisecond, time.Second, time.Minute}))
	for _, id := range m.books.order {
		h := m.books.holds[id]
		if h.Status != ledger.StatusHeld || m.clock.Now().Before(h.ReleaseAt) {
			continue
		}
		by := m.process()
		return asked(func(ctx context.Context) error {
			_, err := by.ExpireHold(ctx, id, "sweep")
			return err
		}, only(ledger.CodeHoldNotDue), "expire", "the sweep ends %s", id)
	}
	return nil
}
