package ledgertest

import (
	"context"
	"slices"

	"holdfast/shared/ledger"
)

// item is one stock item.
type item struct {
	slot  ledger.SlotID
	shard ledger.Shard
}

// counted is what an audit adds up for one stock item.
type counted struct{ available, held, confirmed ledger.Units }

// TB is the part of testing.TB that an audit needs. A property test's own type has it
// too.
type TB interface {
	Helper()
	Context() context.Context
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// CheckBooks audits the slots and reports every difference to t. holds must be all the
// holds that ever took from these slots; a hold that was never made may be among them.
//
// It recounts each shard in two independent ways, from the lines of the holds and from
// the movements of the events, and compares both with the counters (promises P1 and
// P2). It also requires exactly one event for each version of each hold and slot, that
// the last event tells the thing as it is, and that a hold which has ended moved its
// stock once (promises P3 and P7).
func CheckBooks(t TB, store ledger.Store, slots []ledger.SlotID, holds []ledger.HoldID) {
	t.Helper()
	fromHolds, fromEvents := make(map[item]counted), make(map[item]counted)
	for _, id := range holds {
		auditHold(t, store, id, fromHolds, fromEvents)
	}
	for _, id := range slots {
		auditSlot(t, store, id, fromEvents)
	}
	for _, id := range slots {
		auditStock(t, store, id, fromHolds, fromEvents)
	}
}

func auditHold(t TB, store ledger.Store, id ledger.HoldID, fromHolds, fromEvents map[item]counted) {
	t.Helper()
	events, err := store.HoldEvents(t.Context(), id)
	if err != nil {
		t.Fatalf("books: events of hold %s: %v", id, err)
	}
	hold, err := store.Hold(t.Context(), id)
	if ledger.CodeOf(err) == ledger.CodeHoldNotFound {
		if len(events) > 0 {
			t.Errorf("books: hold %s does not exist but has %d events", id, len(events))
		}
		return
	}
	if err != nil {
		t.Fatalf("books: hold %s: %v", id, err)
	}
	auditVersions(t, "hold "+string(id), events, hold.Version)
	if last := len(events) - 1; last >= 0 && !same(events[last].Hold, &hold) {
		t.Errorf("books: the last event of hold %s tells\n%s\nbut it is\n%s", id, text(events[last].Hold), text(hold))
	}
	types := []ledger.EventType{ledger.EventHoldCreated}
	switch hold.Status {
	case ledger.StatusHeld:
	case ledger.StatusConfirmed:
		types = append(types, ledger.EventHoldConfirmed)
	case ledger.StatusCanceled:
		types = append(types, ledger.EventHoldCanceled)
	case ledger.StatusExpired:
		types = append(types, ledger.EventHoldExpired)
	}
	told := make([]ledger.EventType, len(events))
	for i, event := range events {
		told[i] = event.Type
		addMovements(fromEvents, event)
	}
	if !slices.Equal(told, types) {
		t.Errorf("books: hold %s is %s after the events %v, want %v", id, hold.Status, told, types)
	}
	for _, line := range hold.Lines {
		var sum ledger.Units
		for _, a := range line.Shards {
			sum += a.Quantity
			key := item{line.Slot, a.Shard}
			count := fromHolds[key]
			switch hold.Status {
			case ledger.StatusHeld:
				count.held += a.Quantity
			case ledger.StatusConfirmed:
				count.confirmed += a.Quantity
			case ledger.StatusCanceled, ledger.StatusExpired:
			}
			fromHolds[key] = count
		}
		if sum != line.Quantity {
			t.Errorf("books: hold %s takes %d units of slot %s from its shards, but its line says %d", id, sum, line.Slot, line.Quantity)
		}
	}
}

func auditSlot(t TB, store ledger.Store, id ledger.SlotID, fromEvents map[item]counted) {
	t.Helper()
	events, err := store.SlotEvents(t.Context(), id)
	if err != nil {
		t.Fatalf("books: events of slot %s: %v", id, err)
	}
	slot := auditedSlot(t, store, id)
	auditVersions(t, "slot "+string(id), events, slot.Version)
	if last := len(events) - 1; last >= 0 && !same(events[last].Slot, &slot) {
		t.Errorf("books: the last event of slot %s tells\n%s\nbut it is\n%s", id, text(events[last].Slot), text(slot))
	}
	for _, event := range events {
		addMovements(fromEvents, event)
	}
}

func auditedSlot(t TB, store ledger.Store, id ledger.SlotID) ledger.Slot {
	t.Helper()
	slots, err := store.Slots(t.Context(), []ledger.SlotID{id})
	if err != nil || len(slots) != 1 {
		t.Fatalf("books: slot %s: found %d, error %v", id, len(slots), err)
	}
	return slots[0]
}

func auditVersions(t TB, what string, events []ledger.Event, last ledger.Version) {
	t.Helper()
	seen := make(map[ledger.EventID]bool, len(events))
	for i, event := range events {
		if event.Version != ledger.Version(i+1) {
			t.Errorf("books: event number %d of %s has version %d", i+1, what, event.Version)
		}
		if seen[event.ID] {
			t.Errorf("books: %s has two events of id %s", what, event.ID)
		}
		seen[event.ID] = true
	}
	if ledger.Version(len(events)) != last {
		t.Errorf("books: %s is at version %d but has %d events", what, last, len(events))
	}
}

func addMovements(counts map[item]counted, event ledger.Event) {
	for _, m := range event.Movements {
		key := item{m.Slot, m.Shard}
		count := counts[key]
		count.move(m.From, -m.Quantity)
		count.move(m.To, m.Quantity)
		counts[key] = count
	}
}

func (c *counted) move(bucket ledger.Bucket, units ledger.Units) {
	switch bucket {
	case ledger.BucketAvailable:
		c.available += units
	case ledger.BucketHeld:
		c.held += units
	case ledger.BucketConfirmed:
		c.confirmed += units
	case ledger.BucketOutside:
	}
}

func auditStock(t TB, store ledger.Store, id ledger.SlotID, fromHolds, fromEvents map[item]counted) {
	t.Helper()
	slot := auditedSlot(t, store, id)
	stock, err := store.StockAtOneMoment(t.Context(), slot)
	if err != nil {
		t.Fatalf("books: stock of slot %s: %v", id, err)
	}
	if len(stock) != slot.Terms.Shards {
		t.Errorf("books: slot %s has %d stock items, want %d", id, len(stock), slot.Terms.Shards)
	}
	for _, s := range stock {
		key := item{s.Slot, s.Shard}
		c := s.Counters
		if c.Available < 0 || c.Held < 0 || c.Confirmed < 0 || c.Available+c.Held+c.Confirmed != c.Capacity {
			t.Errorf("books: P1: shard %d of slot %s has %+v", s.Shard, id, c)
		}
		if holds := fromHolds[key]; c.Held != holds.held || c.Confirmed != holds.confirmed {
			t.Errorf("books: P2: shard %d of slot %s has %+v, but its holds add up to %+v", s.Shard, id, c, holds)
		}
		if got := (counted{c.Available, c.Held, c.Confirmed}); got != fromEvents[key] {
			t.Errorf("books: shard %d of slot %s has %+v, but its events add up to %+v", s.Shard, id, got, fromEvents[key])
		}
		if s.Terms != slot.Terms {
			t.Errorf("books: shard %d of slot %s is sold under %+v, but the slot says %+v", s.Shard, id, s.Terms, slot.Terms)
		}
	}
}
