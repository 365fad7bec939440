package ledgertest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
)

// recorder is a test that only notes what an audit reports.
type recorder struct{ reports []string }

func (r *recorder) Helper()                  {}
func (r *recorder) Context() context.Context { return context.Background() }
func (r *recorder) Errorf(format string, args ...any) {
	r.reports = append(r.reports, fmt.Sprintf(format, args...))
}
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...) }

// lying is a store that tells one thing other than it is.
type lying struct {
	ledger.Store
	stock      func([]ledger.Stock)
	hold       func(*ledger.Hold)
	slot       func(*ledger.Slot)
	holdEvents func([]ledger.Event) []ledger.Event
	slotEvents func([]ledger.Event) []ledger.Event

	reservation       func(*ledger.Reservation)
	reservationEvents func([]ledger.Event) []ledger.Event
}

func (l lying) Reservation(ctx context.Context, id ledger.ReservationID) (ledger.Reservation, error) {
	reservation, err := l.Store.Reservation(ctx, id)
	if l.reservation != nil && err == nil {
		l.reservation(&reservation)
	}
	return reservation, err
}

func (l lying) ReservationEvents(ctx context.Context, id ledger.ReservationID) ([]ledger.Event, error) {
	events, err := l.Store.ReservationEvents(ctx, id)
	if l.reservationEvents != nil {
		events = l.reservationEvents(events)
	}
	return events, err
}

func (l lying) StockAtOneMoment(ctx context.Context, slot ledger.Slot) ([]ledger.Stock, error) {
	stock, err := l.Store.StockAtOneMoment(ctx, slot)
	if l.stock != nil {
		l.stock(stock)
	}
	return stock, err
}

func (l lying) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	hold, err := l.Store.Hold(ctx, id)
	if l.hold != nil && err == nil {
		l.hold(&hold)
	}
	return hold, err
}

func (l lying) Slots(ctx context.Context, ids []ledger.SlotID) ([]ledger.Slot, error) {
	slots, err := l.Store.Slots(ctx, ids)
	if l.slot != nil && err == nil {
		l.slot(&slots[0])
	}
	return slots, err
}

func (l lying) HoldEvents(ctx context.Context, id ledger.HoldID) ([]ledger.Event, error) {
	events, err := l.Store.HoldEvents(ctx, id)
	if l.holdEvents != nil {
		events = l.holdEvents(events)
	}
	return events, err
}

func (l lying) SlotEvents(ctx context.Context, id ledger.SlotID) ([]ledger.Event, error) {
	events, err := l.Store.SlotEvents(ctx, id)
	if l.slotEvents != nil {
		events = l.slotEvents(events)
	}
	return events, err
}

// mustSell stores a slot of which a hold has been confirmed, and returns both ids.
func mustSell(t *testing.T) (ledger.Store, []ledger.SlotID, []ledger.HoldID) {
	t.Helper()
	store, now := memory.New(), time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	drawn := byte(0)
	origin := func() ledger.Origin {
		drawn++
		return ledger.Origin{EventID: ledger.NewEventID([16]byte{drawn})}
	}
	must := func(change ledger.Change, err error) ledger.Change {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Commit(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		return change
	}
	slot := must(ledger.NewSlot("S", ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "hamlet", Capacity: 5, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 1},
	}, origin(), now)).Slots[0].Next
	hold := must(ledger.NewHold(ledger.HoldPlan{
		ID: ledger.NewHoldID([16]byte{1}), Owner: "U-1", Slots: map[ledger.SlotID]ledger.Slot{"S": slot},
		Quotes:      []ledger.Quote{{Slot: "S", Quantity: 2, UnitAmount: 500}},
		Allocations: map[ledger.SlotID][]ledger.Allocation{"S": {{Shard: 0, Quantity: 2}}},
	}, origin(), now)).Holds[0].Next
	must(ledger.Confirm(hold, "pay", origin(), now))
	return store, []ledger.SlotID{"S"}, []ledger.HoldID{hold.ID}
}

// TestCheckBooksFindsEachFault plants one fault at a time and requires the audit to name
// it, because an audit that cannot fail would make every other test silent.
func TestCheckBooksFindsEachFault(t *testing.T) {
	tests := []struct {
		name string
		lie  lying
		want string
	}{
		{"a negative counter", lying{stock: func(s []ledger.Stock) { s[0].Counters = ledger.Counters{Available: -1, Held: 6, Capacity: 5} }}, "P1:"},
		{"a sum that is not capacity", lying{stock: func(s []ledger.Stock) { s[0].Counters.Capacity++ }}, "P1:"},
		{"units held by no hold", lying{stock: func(s []ledger.Stock) { s[0].Counters.Held++; s[0].Counters.Available-- }}, "P2:"},
		{"units sold to no hold", lying{stock: func(s []ledger.Stock) { s[0].Counters.Confirmed++; s[0].Counters.Available-- }}, "P2:"},
		{"units from nowhere", lying{stock: func(s []ledger.Stock) { s[0].Counters.Available++; s[0].Counters.Capacity++ }}, "its events add up to"},
		{"stock sold under other terms", lying{stock: func(s []ledger.Stock) { s[0].Terms.Open = false }}, "is sold under"},
		{"a missing shard", lying{slot: func(s *ledger.Slot) { s.Terms.Shards = 2 }}, "has 1 stock items, want 2"},
		{"a slot that is not what its event tells", lying{slot: func(s *ledger.Slot) { s.PriceVersion++ }}, "the last event of slot"},
		{"a hold that went back", lying{hold: func(h *ledger.Hold) { h.Status = ledger.StatusHeld }}, "is HELD after the events"},
		{"a hold that is not what its event tells", lying{hold: func(h *ledger.Hold) { h.PaymentReference = "other" }}, "the last event of hold"},
		{"a line that took less", lying{hold: func(h *ledger.Hold) { h.Lines[0].Quantity++ }}, "but its line says 3"},
		{"a lost event", lying{holdEvents: func(e []ledger.Event) []ledger.Event { return e[:1] }}, "is at version 2 but has 1 events"},
		{"an event told twice", lying{holdEvents: func(e []ledger.Event) []ledger.Event { return append(e, e[1]) }}, "two events of id"},
		{"a version left out", lying{holdEvents: func(e []ledger.Event) []ledger.Event { e[1].Version = 3; return e }}, "has version 3"},
		{"a slot without its event", lying{slotEvents: func([]ledger.Event) []ledger.Event { return nil }}, "is at version 1 but has 0 events"},
		{"nothing", lying{}, ""},
	}
	for _, test := range tests {
		store, slots, holds := mustSell(t)
		test.lie.Store = store
		var audit recorder
		ledgertest.CheckBooks(&audit, test.lie, slots, holds)
		reports := strings.Join(audit.reports, "\n")
		switch {
		case test.want == "" && reports != "":
			t.Errorf("%s: the audit reports %s", test.name, reports)
		case !strings.Contains(reports, test.want):
			t.Errorf("%s: the audit does not say %q: %s", test.name, test.want, reports)
		}
	}
}

func TestCheckBooksMissesNoHold(t *testing.T) {
	store, slots, _ := mustSell(t)
	var audit recorder
	ledgertest.CheckBooks(&audit, store, slots, nil)
	if reports := strings.Join(audit.reports, "\n"); !strings.Contains(reports, "P2:") {
		t.Errorf("an audit that is not told of a hold reports %q", reports)
	}
}
