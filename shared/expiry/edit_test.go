package expiry_test

import (
	"context"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const shortSlotID ledger.SlotID = "hall-1-rush"

// shortSlot is a slot of 5 units whose holds live for so long only.
func (f *function) shortSlot(holdFor time.Duration) {
	f.tb.Helper()
	policy := ledger.DefaultPolicy()
	policy.HoldFor = holdFor
	change, err := ledger.NewSlot(shortSlotID, ledger.SlotDefinition{
		ResourceType: "hall", ResourceID: "h", Policy: policy, Capacity: 5,
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 5000, Currency: "KRW"}, Shards: 1},
	}, ledger.Origin{EventID: "event_short_slot"}, system.Millisecond(f.clock))
	must(f.tb, err)
	must(f.tb, f.world.store.Commit(context.Background(), change))
}

// edit changes a hold as its owner asks, and sends the due message that the outbox sends
// for it.
func (f *function) edit(id ledger.HoldID, edit ledger.HoldEdit) {
	f.tb.Helper()
	slots, err := f.world.store.Slots(context.Background(), []ledger.SlotID{slotID, shortSlotID})
	must(f.tb, err)
	edit.Slots = make(map[ledger.SlotID]ledger.Slot, len(slots))
	for _, s := range slots {
		edit.Slots[s.ID] = s
	}
	change, err := ledger.EditHold(f.read(id), edit, ledger.Origin{EventID: ledger.EventID("event_edit_" + string(id))}, system.Millisecond(f.clock))
	must(f.tb, err)
	must(f.tb, f.world.store.Commit(context.Background(), change))
	f.send(id)
}

// exchange gives the hold's units for as many of the slot with the short life.
func (f *function) exchange(id ledger.HoldID, quantity ledger.Units) {
	f.tb.Helper()
	f.edit(id, ledger.HoldEdit{
		Quotes:      []ledger.Quote{{Slot: shortSlotID, Quantity: quantity, UnitAmount: 5000}},
		Allocations: map[ledger.SlotID][]ledger.Allocation{shortSlotID: {{Quantity: quantity}}},
	})
}

func (f *function) mustBe(id ledger.HoldID, want ledger.Status) {
	f.tb.Helper()
	if got := f.read(id).Status; got != want {
		f.tb.Fatalf("at %s the hold is %s, want %s", f.clock.Now().Sub(start), got, want)
	}
}

// Case B8: an exchange for slots with a shorter life ends a hold earlier than its first
// message says. The message of the exchange ends it at its time, or the sweep does if that
// message is lost; the first one, which is for a later time, is sent on until then, and finds
// nothing left to do.
func TestCaseB8_AnEditThatEndsAHoldEarlierIsSeen(t *testing.T) {
	for name, lost := range map[string]bool{"by its message": false, "by the sweep": true} {
		t.Run(name, func(t *testing.T) {
			f := newWorld(t, 10).function()
			f.shortSlot(2 * time.Minute)
			id := f.hold(3)
			first := f.dueMessage(id)
			f.clock.Set(start.Add(time.Minute))
			f.exchange(id, 3)
			due := start.Add(3 * time.Minute)
			if at := f.read(id).ReleaseAt; !at.Equal(due) {
				t.Fatalf("the hold is over after %s", at.Sub(start))
			}
			f.clock.Set(due.Add(-time.Second))
			mustReport(t, f.mustTick(), map[string]float64{"expiry_released": 0})
			f.mustBe(id, ledger.StatusHeld)
			f.clock.Set(due)
			ready := f.queue.take()
			if lost {
				ready = nil
			}
			if failed := f.batch(append(ready, first)...); failed != nil {
				t.Errorf("handed back %v", failed)
			}
			mustReport(t, f.reported(), map[string]float64{"due_released": float64(len(ready)), "due_forwarded": 1, "due_failed": 0})
			if lost {
				mustReport(t, f.mustTick(), map[string]float64{"expiry_released": 1, "expiry_lag_seconds_max": 0})
			}
			f.mustBe(id, ledger.StatusExpired)
			f.clock.Set(start.Add(holdFor))
			if failed := f.batch(f.queue.take()...); failed != nil {
				t.Errorf("handed back %v", failed)
			}
			mustReport(t, f.reported(), map[string]float64{"due_released": 0, "due_ended": 1, "due_failed": 0})
			if got := f.counters(); got != (ledger.Counters{Available: 10, Capacity: 10}) {
				t.Errorf("the slot that was given back has %+v", got)
			}
		})
	}
}

// Case B8: an extension ends a hold later than its first message says. That message comes too
// early now: it ends nothing and is done with. That of the extension is kept back as long as
// a queue can, sent on, and ends the hold at its time; if it is lost, the sweep does.
func TestCaseB8_AnEditThatEndsAHoldLaterIsSeen(t *testing.T) {
	for name, lost := range map[string]bool{"by its message": false, "by the sweep": true} {
		t.Run(name, func(t *testing.T) {
			f := newWorldOf(t, 10, 40*time.Minute).function()
			id := f.hold(3)
			f.send(id)
			f.run(start.Add(30 * time.Minute))
			f.edit(id, ledger.HoldEdit{ExtendFor: 40 * time.Minute})
			due := start.Add(ledger.HoldForMaxDefault)
			if at := f.read(id).ReleaseAt; !at.Equal(due) {
				t.Fatalf("the hold is over after %s", at.Sub(start))
			}
			f.reported()
			f.run(start.Add(40 * time.Minute))
			mustReport(t, f.reported(), map[string]float64{"due_released": 0, "due_ended": 1, "due_failed": 0})
			mustReport(t, f.mustTick(), map[string]float64{"expiry_released": 0, "expiry_parked": 0, "expiry_lag_seconds_max": 0})
			f.mustBe(id, ledger.StatusHeld)
			if lost {
				f.queue.kept = nil
				f.clock.Set(due)
				mustReport(t, f.mustTick(), map[string]float64{"expiry_released": 1, "expiry_lag_seconds_max": 0})
			} else {
				f.run(due)
				mustReport(t, f.reported(), map[string]float64{"due_released": 1, "due_forwarded": 1, "due_failed": 0})
			}
			if hold := f.read(id); hold.Status != ledger.StatusExpired || !hold.EndedAt.Equal(due) {
				t.Errorf("the hold is %s, ended after %s", hold.Status, hold.EndedAt.Sub(start))
			}
			if got := f.counters(); got != (ledger.Counters{Available: 10, Capacity: 10}) {
				t.Errorf("the units are not back: %+v", got)
			}
		})
	}
}

// Case B11: a hold that grew, gave some back and grew again gives back exactly what it has
// at its end, to where it took it from.
func TestCaseB11_AnEditedHoldGivesAllUnitsBack(t *testing.T) {
	f := newWorld(t, 10).function()
	f.shortSlot(2 * time.Minute)
	id := f.hold(4)
	f.edit(id, ledger.HoldEdit{
		Quotes:      []ledger.Quote{{Slot: slotID, Quantity: 7, UnitAmount: 5000}, {Slot: shortSlotID, Quantity: 2, UnitAmount: 5000}},
		Allocations: map[ledger.SlotID][]ledger.Allocation{slotID: {{Quantity: 3}}, shortSlotID: {{Quantity: 2}}},
	})
	if got := f.counters(); got != (ledger.Counters{Available: 3, Held: 7, Capacity: 10}) {
		t.Fatalf("after the edit the slot has %+v", got)
	}
	f.clock.Set(f.read(id).ReleaseAt)
	mustReport(t, f.mustTick(), map[string]float64{"expiry_released": 1})
	f.mustBe(id, ledger.StatusExpired)
	stock, err := f.world.store.Stock(t.Context(), []ledger.Slot{{ID: shortSlotID, Terms: ledger.Terms{Shards: 1}}})
	must(t, err)
	if got := f.counters(); got != (ledger.Counters{Available: 10, Capacity: 10}) || stock[0].Counters != (ledger.Counters{Available: 5, Capacity: 5}) {
		t.Errorf("the slots have %+v and %+v", got, stock[0].Counters)
	}
}
