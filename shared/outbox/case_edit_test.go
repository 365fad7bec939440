package outbox_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// Case A4, for an edit: a hold that grows takes its unit in the write of the edit, while
// nobody reads the stream. The next owner is refused, and once the relay runs again exactly
// one event tells of the unit.
func TestCaseA4_AnEditTakesItsUnitsBeforeAnybodyIsTold(t *testing.T) {
	l := newLifeCycle(t)
	definition := ledger.SlotDefinition{
		ResourceType: "hall", ResourceID: "h", Policy: ledger.DefaultPolicy(), Capacity: 2,
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "KRW"}, Shards: 1},
	}
	_, err := l.commands.PutSlot(context.Background(), l.request("service:catalog"), "seat", definition, renderSlot)
	l.check(err)
	slots := l.resolved([]ledger.SlotID{"seat"}, nil)
	one := map[ledger.SlotID][]ledger.Allocation{"seat": {{Quantity: 1}}}
	seats := func(n ledger.Units) []ledger.Quote {
		return []ledger.Quote{{Slot: "seat", Quantity: n, UnitAmount: 500}}
	}
	made := l.decided("owner:U-17", ledger.CommandCreateHold, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		return ledger.NewHold(ledger.HoldPlan{ID: ledger.NewHoldID(l.random.Bits128()), Owner: "U-17", Quotes: seats(1), Slots: slots, Allocations: one}, o, now)
	})
	grown := l.decided("owner:U-17", ledger.CommandEditHold, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		return ledger.EditHold(made.Holds[0].Next, ledger.HoldEdit{Quotes: seats(2), Slots: slots, Allocations: one}, o, now)
	})
	other, err := ledger.NewHold(ledger.HoldPlan{ID: ledger.NewHoldID(l.random.Bits128()), Owner: "U-18", Quotes: seats(1), Slots: slots, Allocations: one},
		ledger.Origin{EventID: ledger.NewEventID(l.random.Bits128())}, made.At)
	l.check(err)
	refused := (*ledger.Refused)(nil)
	if err := l.store.Commit(t.Context(), other); !errors.As(err, &refused) || len(refused.LegsOf(ledger.LegStock)) != 1 {
		t.Errorf("the next owner is answered with %v", err)
	}
	stock, err := l.store.StockAtOneMoment(t.Context(), slots["seat"])
	l.check(err)
	if got := stock[0].Counters; got != (ledger.Counters{Held: 2, Capacity: 2}) {
		t.Errorf("while nobody reads the stream the slot has %+v", got)
	}

	w := newWorld(t)
	w.clock.Set(l.clock.Now())
	events, err := l.store.HoldEvents(t.Context(), grown.Holds[0].Next.ID)
	l.check(err)
	if failed := mustHandle(t.Context(), t, w.relay(w.ports()), w.batch(events...)); failed != nil {
		t.Fatalf("handed back %v", failed)
	}
	told := 0
	for _, d := range w.bus.Deliveries() {
		detail := mustRead(t, []byte(*d.Entry.Detail))
		if detail["type"] != string(ledger.EventHoldChanged) {
			continue
		}
		told++
		movements := detail["movements"].([]any)
		if m := movements[0].(map[string]any); len(movements) != 1 || m["from"] != "available" || m["to"] != "held" || m["slot_id"] != "seat" {
			t.Errorf("the event tells of %v", movements)
		}
	}
	if told != 1 || len(events) != 2 {
		t.Errorf("%d events of %d tell of the edit", told, len(events))
	}
}
