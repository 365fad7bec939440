package ledgertest

import (
	"context"
	"maps"
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
// holds that ever took from these slots, and reservations all that ever granted to them;
// one that was never made may be among them.
//
// It recounts each shard in two independent ways, from the lines of the holds and from
// the movements of the events, and compares both with the counters (promises P1 and
// P2). It also requires exactly one event for each version of each hold, reservation,
// slot, and policy of the slots' resources, that the last event tells the thing as it is,
// and that a hold which has ended moved its stock once (promises P3 and P7). What archived
// ones moved, net, must be the archived counters of the stock. A reservation must have what
// it says it has: its grants, and the hold that was sold to it (promise P8). What is counted
// of an owner must be what the holds say, so holds must have every counted hold of an owner
// of whom it has one.
func CheckBooks(t TB, store ledger.Store, slots []ledger.SlotID, holds []ledger.HoldID, reservations ...ledger.ReservationID) {
	t.Helper()
	fromHolds, fromEvents := make(map[item]counted), make(map[item]counted)
	archived := make(map[item]counted)
	reacquired := make(map[ledger.HoldID]bool)
	var found []ledger.Hold
	for _, id := range holds {
		if hold, exists := auditedHold(t, store, id); exists {
			found = append(found, hold)
			reacquired[hold.Reacquires] = true
		}
	}
	for _, hold := range found {
		auditHold(t, store, hold, reacquired[hold.ID], fromHolds, fromEvents, archived)
	}
	for _, id := range reservations {
		auditReservation(t, store, id, fromEvents, archived)
	}
	scopes := make(map[ledger.PolicyScope]bool)
	for _, id := range slots {
		slot := auditSlot(t, store, id, fromEvents)
		for _, scope := range ledger.Scopes(slot.ResourceType, slot.ResourceID) {
			scopes[scope] = true
		}
	}
	auditPolicies(t, store, slices.Collect(maps.Keys(scopes)))
	auditQuotas(t, store, found)
	for _, id := range slots {
		auditStock(t, store, id, fromHolds, fromEvents, archived)
	}
}

func auditSlot(t TB, store ledger.Store, id ledger.SlotID, fromEvents map[item]counted) ledger.Slot {
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
	if slot.Oversold > 0 && slot.Terms.Open {
		t.Errorf("books: slot %s is open, and oversold by %d", id, slot.Oversold)
	}
	return slot
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

func auditStock(t TB, store ledger.Store, id ledger.SlotID, fromHolds, fromEvents, archived map[item]counted) {
	t.Helper()
	slot := auditedSlot(t, store, id)
	stock, err := store.StockAtOneMoment(t.Context(), slot)
	if err != nil {
		t.Fatalf("books: stock of slot %s: %v", id, err)
	}
	if len(stock) != slot.Terms.StockItems() {
		t.Errorf("books: slot %s has %d stock items, want %d", id, len(stock), slot.Terms.StockItems())
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
		a := s.Archived
		if got := (counted{a.Available, a.Held, a.Confirmed}); got != archived[key] || a.Available+a.Held+a.Confirmed != a.Capacity {
			t.Errorf("books: shard %d of slot %s has archived %+v, but the archived events add up to %+v", s.Shard, id, a, archived[key])
		}
		if s.Terms != slot.Terms {
			t.Errorf("books: shard %d of slot %s is sold under %+v, but the slot says %+v", s.Shard, id, s.Terms, slot.Terms)
		}
	}
}
