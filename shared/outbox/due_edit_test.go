package outbox_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// edited is a hold whose owner first exchanges its slot for one with a shorter life, which
// makes it end earlier, and then extends it, which makes it end later: its three events.
func edited(tb testing.TB) []ledger.Event {
	tb.Helper()
	slot := func(id ledger.SlotID, holdFor time.Duration) ledger.Slot {
		policy := ledger.DefaultPolicy()
		policy.HoldFor = holdFor
		return ledger.Slot{ID: id, ResourceType: "hall", ResourceID: "h", Policy: policy, Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "KRW"}, Shards: 1}}
	}
	slots := map[ledger.SlotID]ledger.Slot{"long": slot("long", 10*time.Minute), "short": slot("short", 2*time.Minute)}
	one := func(id ledger.SlotID) ([]ledger.Quote, map[ledger.SlotID][]ledger.Allocation) {
		return []ledger.Quote{{Slot: id, Quantity: 1, UnitAmount: 500}}, map[ledger.SlotID][]ledger.Allocation{id: {{Quantity: 1}}}
	}
	plan := ledger.HoldPlan{ID: ledger.HoldID(holdID(1)), Owner: "U-1", Slots: slots}
	plan.Quotes, plan.Allocations = one("long")
	edit := ledger.HoldEdit{Slots: slots}
	edit.Quotes, edit.Allocations = one("short")
	var out []ledger.Event
	add := func(c ledger.Change, err error) ledger.Hold {
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, c.Events...)
		return c.Holds[0].Next
	}
	hold := add(ledger.NewHold(plan, ledger.Origin{EventID: "event_1"}, start))
	hold = add(ledger.EditHold(hold, edit, ledger.Origin{EventID: "event_2"}, start.Add(time.Minute)))
	add(ledger.EditHold(hold, ledger.HoldEdit{ExtendFor: 2 * time.Minute}, ledger.Origin{EventID: "event_3"}, start.Add(2*time.Minute)))
	return out
}

// Case B8: an edit moves the end of a hold in both directions, and each time a message goes
// out for the new one.
func TestCaseB8_AnEditedHoldGetsAMessageOfItsNewTime(t *testing.T) {
	w := newWorld(t)
	list := edited(t)
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(list...)); failed != nil {
		t.Fatalf("handed back %v", failed)
	}
	want := []string{
		dueBody(1, start.Add(10*time.Minute)), dueBody(1, start.Add(3*time.Minute)), dueBody(1, start.Add(4*time.Minute)),
	}
	var bodies []string
	for _, m := range w.queue.Due() {
		bodies = append(bodies, m.Body)
	}
	if !slices.Equal(bodies, want) {
		t.Errorf("due messages %v, want %v", bodies, want)
	}
	if kinds := []ledger.EventType{list[0].Type, list[1].Type, list[2].Type}; !slices.Equal(kinds, []ledger.EventType{ledger.EventHoldCreated, ledger.EventHoldChanged, ledger.EventHoldChanged}) {
		t.Errorf("the events are %v", kinds)
	}
}

// Two versions of one policy never go out in one call, for one could arrive without the
// other; the policies of a resource type and of its resource are two subjects.
func TestThePolicyIsASubject(t *testing.T) {
	w := newWorld(t)
	policy := func(id ledger.EventID, resource ledger.ResourceID, version ledger.Version) ledger.Event {
		return ledger.Event{ID: id, Type: ledger.EventPolicyChanged, Version: version, OccurredAt: start, Policy: &ledger.ScopePolicy{
			Scope: ledger.PolicyScope{ResourceType: "train", ResourceID: resource}, Layer: ledger.InheritAll(), Version: version, CreatedAt: start, UpdatedAt: start,
		}}
	}
	list := []ledger.Event{policy("event_1", "", 1), policy("event_2", "KTX-101", 1), policy("event_3", "", 2)}
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(list...)); failed != nil {
		t.Fatalf("handed back %v", failed)
	}
	var calls [][]string
	for _, call := range w.bus.Calls() {
		var of []string
		for _, entry := range call {
			of = append(of, entry.Resources...)
		}
		calls = append(calls, of)
	}
	want := [][]string{{"policy/train/", "policy/train/KTX-101"}, {"policy/train/"}}
	if !slices.EqualFunc(calls, want, slices.Equal[[]string]) || !slices.Equal(w.delivered(), ids(list)) {
		t.Errorf("calls of %v, want %v", calls, want)
	}
}
