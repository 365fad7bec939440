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

	quota        func(*ledger.Quota)
	policy       func(*ledger.ScopePolicy)
	policyEvents func([]ledger.Event) []ledger.Event

	reservation       func(*ledger.Reservation)
	reservationEvents func([]ledger.Event) []ledger.Event
}

func (l lying) Quota(ctx context.Context, owner ledger.OwnerID) (ledger.Quota, error) {
	quota, err := l.Store.Quota(ctx, owner)
	if l.quota != nil && err == nil {
		l.quota(&quota)
	}
	return quota, err
}

func (l lying) Policies(ctx context.Context, scopes []ledger.PolicyScope) ([]ledger.ScopePolicy, error) {
	policies, err := l.Store.Policies(ctx, scopes)
	if l.policy != nil && err == nil {
		l.policy(&policies[0])
	}
	return policies, err
}

func (l lying) PolicyEvents(ctx context.Context, scope ledger.PolicyScope) ([]ledger.Event, error) {
	events, err := l.Store.PolicyEvents(ctx, scope)
	if l.policyEvents != nil {
		events = l.policyEvents(events)
	}
	return events, err
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

// mustSell stores a slot of which a hold was edited and sold in part, and another one
// expired, under limits and with a policy of its resource. It returns their ids.
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
	must(ledger.SetPolicy(ledger.PolicyScope{ResourceType: "show"}, ledger.ScopePolicy{}, ledger.InheritAll(), origin(), now))
	policy := ledger.DefaultPolicy()
	policy.QuantityPerOwnerMax, policy.HoldsPerOwnerMax, policy.ExpiriesMax, policy.CooldownFor = 4, 2, 3, time.Minute
	slot := must(ledger.NewSlot("S", ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "hamlet", Capacity: 5, Policy: policy,
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 1},
	}, origin(), now)).Slots[0].Next
	slots := map[ledger.SlotID]ledger.Slot{"S": slot}
	one := map[ledger.SlotID][]ledger.Allocation{"S": {{Shard: 0, Quantity: 1}}}
	create := func(id byte) ledger.Hold {
		return must(ledger.NewHold(ledger.HoldPlan{
			ID: ledger.NewHoldID([16]byte{id}), Owner: "U-1", Slots: slots, Allocations: one,
			Quotes: []ledger.Quote{{Slot: "S", Quantity: 1, UnitAmount: 500}},
		}, origin(), now)).Holds[0].Next
	}
	hold, over := create(1), create(2)
	hold = must(ledger.EditHold(hold, ledger.HoldEdit{
		Quotes: []ledger.Quote{{Slot: "S", Quantity: 3, UnitAmount: 500}}, Slots: slots,
		Allocations: map[ledger.SlotID][]ledger.Allocation{"S": {{Shard: 0, Quantity: 2}}},
	}, origin(), now)).Holds[0].Next
	must(ledger.ConfirmPart(hold, []ledger.ReturnLine{{Slot: "S", Quantity: 2}}, "pay", origin(), now))
	must(ledger.Expire(over, origin(), over.ReleaseAt))
	return store, []ledger.SlotID{"S"}, []ledger.HoldID{hold.ID, over.ID}
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
		{"an edit that took more than it tells", lying{holdEvents: func(e []ledger.Event) []ledger.Event {
			if len(e) == 3 {
				e[1].Movements[0].Quantity++
			}
			return e
		}}, "moves 3 units, want 2"},
		{"an edit of what was sold", lying{holdEvents: func(e []ledger.Event) []ledger.Event {
			if len(e) == 3 {
				e[1], e[2] = e[2], e[1]
			}
			return e
		}}, "event hold.changed of hold"},
		{"a part sale of less than it tells", lying{holdEvents: func(e []ledger.Event) []ledger.Event {
			if len(e) == 3 {
				e[2].Movements = e[2].Movements[1:]
			}
			return e
		}}, "sells 0 units, want 2"},
		{"a part sale that loses the rest", lying{holdEvents: func(e []ledger.Event) []ledger.Event {
			if len(e) == 3 {
				e[2].Movements = e[2].Movements[:1]
			}
			return e
		}}, "moves 2 units, want 3"},
		{"a count of more than the holds have", lying{quota: func(q *ledger.Quota) { q.Counts[ledger.SlotQuota("S")]++ }}, "has 3 in count slot/S, but the holds add up to 2"},
		{"a count that was not taken back", lying{quota: func(q *ledger.Quota) { q.Counts[ledger.QuotaHolds] = 1 }}, "has 1 in count holds, but the holds add up to 0"},
		{"a count that is lost", lying{quota: func(q *ledger.Quota) { q.Counts = nil }}, "has 0 in count slot/S, but the holds add up to 2"},
		{"a count of what nobody has", lying{quota: func(q *ledger.Quota) { q.Counts["slot/T"] = -1 }}, "has -1 in count slot/T, but the holds add up to 0"},
		{"another's counts", lying{quota: func(q *ledger.Quota) { q.Owner = "U-2" }}, "is told to be of"},
		{"an expired hold too many", lying{quota: func(q *ledger.Quota) { q.Expired++ }}, "has 2 expired holds"},
		{"an expired hold that none is", lying{quota: func(q *ledger.Quota) { q.LastExpiredAt = q.LastExpiredAt.Add(time.Second) }}, "has 1 expired holds"},
		{"a policy without its event", lying{policyEvents: func([]ledger.Event) []ledger.Event { return nil }}, "the policy of show/ is at version 1 but has 0 events"},
		{"a policy that is not what its event tells", lying{policy: func(p *ledger.ScopePolicy) { p.Layer.Inherits = 0 }}, "the last event of the policy"},
		{"a slot that is sold while it is oversold", lying{slot: func(s *ledger.Slot) { s.Oversold = 1 }}, "is open, and oversold by 1"},
		{"a retired shard that is missing", lying{slot: func(s *ledger.Slot) { s.Terms.Retired = 1 }}, "has 1 stock items, want 2"},
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
