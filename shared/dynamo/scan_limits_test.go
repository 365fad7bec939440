package dynamo_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// scanned reads the whole table.
func scanned(t *testing.T, scan *dynamo.Scan) ledger.Records {
	t.Helper()
	var all ledger.Records
	err := scan.ScanRecords(t.Context(), func(r ledger.Records) error {
		all.Holds, all.Events = append(all.Holds, r.Holds...), append(all.Events, r.Events...)
		all.Policies, all.Quotas = append(all.Policies, r.Policies...), append(all.Quotas, r.Quotas...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A scan reads what is said for a resource type, and what is counted of an owner, as they
// are; the counters of signals are nobody's business. An edit that moves the end of a hold,
// to an earlier time and to a later one, moves its entry in the due index with it: an entry
// that stood still would not count as one.
func TestScanReadsLimitsAndTellsWhetherAnEditedHoldIsDue(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	store, scan := dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{}), dynamo.NewScan(client, table)
	now := time.Date(2026, 9, 1, 0, 0, 0, 123_000_000, time.UTC)
	drawn := byte(0)
	commit := func(c ledger.Change, err error) ledger.Change {
		t.Helper()
		if err == nil {
			err = store.Commit(t.Context(), c)
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	origin := func() ledger.Origin {
		drawn++
		return ledger.Origin{EventID: ledger.NewEventID([16]byte{drawn})}
	}
	layer := ledger.InheritAll()
	layer.Inherits &^= ledger.PartQuantityPerOwner | ledger.PartHoldsPerSignal
	layer.Policy.QuantityPerOwnerMax, layer.Policy.HoldsPerSignalMax = 9, 9
	said := commit(ledger.SetPolicy(ledger.PolicyScope{ResourceType: "show"}, ledger.ScopePolicy{}, layer, origin(), now)).Policies[0].Next
	slots := map[ledger.SlotID]ledger.Slot{}
	for id, holdFor := range map[ledger.SlotID]time.Duration{"long": 10 * time.Minute, "short": 2 * time.Minute} {
		own := ledger.InheritAll()
		own.Inherits &^= ledger.PartHold
		own.Policy.HoldFor = holdFor
		made := commit(ledger.NewSlot(id, ledger.SlotDefinition{
			ResourceType: "show", ResourceID: "R-1", Policy: own.Policy, Inherits: own.Inherits, Capacity: 9,
			Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 1},
		}, origin(), now))
		slots[id] = made.Slots[0].Next.Resolve([]ledger.ScopePolicy{said})
	}
	of := func(id ledger.SlotID) ([]ledger.Quote, map[ledger.SlotID][]ledger.Allocation) {
		return []ledger.Quote{{Slot: id, Quantity: 3, UnitAmount: 500}}, map[ledger.SlotID][]ledger.Allocation{id: {{Quantity: 3}}}
	}
	plan := ledger.HoldPlan{ID: ledger.NewHoldID([16]byte{9}), Owner: "U-1", Slots: slots, Signals: []ledger.Signal{saleDevice}}
	plan.Quotes, plan.Allocations = of("long")
	hold := commit(ledger.NewHold(plan, origin(), now)).Holds[0].Next
	isDue := func(after time.Duration) {
		t.Helper()
		records, dueAt := scanned(t, scan), now.Add(after)
		if len(records.Holds) != 1 || !records.Holds[0].Due || !records.Holds[0].Hold.ReleaseAt.Equal(dueAt) {
			t.Fatalf("the scan has %+v; want the hold due after %s", records.Holds, after)
		}
		for at, want := range map[time.Time]int{dueAt.Add(-time.Millisecond): 0, dueAt: 1} {
			listed, _, err := store.Due(t.Context(), ledger.DueShard(hold.ID), at, ledger.Page{Limit: 10})
			if err != nil || len(listed) != want || want == 1 && !listed[0].DueAt.Equal(dueAt) {
				t.Errorf("%s after the start the index lists %+v, %v", at.Sub(now), listed, err)
			}
		}
	}
	isDue(10 * time.Minute)
	edit := ledger.HoldEdit{Slots: slots}
	edit.Quotes, edit.Allocations = of("short")
	hold = commit(ledger.EditHold(hold, edit, origin(), now.Add(time.Minute))).Holds[0].Next
	isDue(3 * time.Minute)
	hold = commit(ledger.EditHold(hold, ledger.HoldEdit{ExtendFor: 2 * time.Minute}, origin(), now.Add(2*time.Minute))).Holds[0].Next
	isDue(4 * time.Minute)

	records := scanned(t, scan)
	if len(records.Policies) != 1 || !reflect.DeepEqual(records.Policies[0], said) {
		t.Errorf("the scan has the policies %+v, want %+v", records.Policies, said)
	}
	quota := ledger.Quota{Owner: "U-1", Counts: map[ledger.QuotaKey]ledger.Units{"slot/short": 3, "slot/long": 0}}
	if len(records.Quotas) != 1 || !reflect.DeepEqual(records.Quotas[0], quota) {
		t.Errorf("the scan has the quotas %+v, want %+v", records.Quotas, quota)
	}
	if !slices.ContainsFunc(records.Events, func(e ledger.Event) bool { return e.Policy != nil && e.Policy.Scope == said.Scope }) || len(records.Events) != 6 {
		t.Errorf("the scan has %d events", len(records.Events))
	}
}
