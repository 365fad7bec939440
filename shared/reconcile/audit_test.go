package reconcile_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/reconcile"
)

var start = time.Date(2026, 9, 1, 10, 0, 0, 0, time.UTC)

// pages is a source of prepared records, each on a page of its own.
type pages []ledger.Records

func (p pages) ScanRecords(_ context.Context, visit func(ledger.Records) error) error {
	for _, page := range p {
		if err := visit(page); err != nil {
			return err
		}
	}
	return nil
}

// sound is a ledger with one slot of 10 units on two shards, one HELD hold of 2 and one
// that was confirmed.
func sound(t *testing.T) ledger.Records {
	t.Helper()
	terms := ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 2}
	made, err := ledger.NewSlot("S-1", ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "R-1", Capacity: 10, Terms: terms, Policy: ledger.DefaultPolicy(),
	}, ledger.Origin{EventID: "event_1"}, start)
	if err != nil {
		t.Fatal(err)
	}
	slot := made.Slots[0].Next
	hold := func(id ledger.HoldID, event ledger.EventID, shard ledger.Shard) ledger.Change {
		change, err := ledger.NewHold(ledger.HoldPlan{
			ID: id, Owner: "U-1", Quotes: []ledger.Quote{{Slot: slot.ID, Quantity: 2, UnitAmount: 500}},
			Slots:       map[ledger.SlotID]ledger.Slot{slot.ID: slot},
			Allocations: map[ledger.SlotID][]ledger.Allocation{slot.ID: {{Shard: shard, Quantity: 2}}},
		}, ledger.Origin{EventID: event}, start)
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
	held, sold := hold("hold_a", "event_2", 0), hold("hold_b", "event_3", 1)
	confirmed, err := ledger.Confirm(sold.Holds[0].Next, "", ledger.Origin{EventID: "event_4"}, start)
	if err != nil {
		t.Fatal(err)
	}
	return ledger.Records{
		Slots: []ledger.Slot{slot},
		Stock: []ledger.Stock{
			{Slot: "S-1", Shard: 0, Terms: terms, Counters: ledger.Counters{Available: 3, Held: 2, Capacity: 5}},
			{Slot: "S-1", Shard: 1, Terms: terms, Counters: ledger.Counters{Available: 3, Confirmed: 2, Capacity: 5}},
		},
		Holds:  []ledger.StoredHold{{Hold: held.Holds[0].Next, Due: true}, {Hold: confirmed.Holds[0].Next, Archivable: true}},
		Events: slices.Concat(made.Events, held.Events, sold.Events, confirmed.Events),
	}
}

func TestSoundBooksHaveNoViolation(t *testing.T) {
	all := sound(t)
	report, err := reconcile.AuditAtRest(context.Background(), pages{{Events: all.Events}, {Holds: all.Holds}, {Slots: all.Slots, Stock: all.Stock}}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Slots != 1 || report.Holds != 2 || report.Events != 4 || len(report.Findings) > 0 {
		t.Errorf("report %+v; want 1 slot, 2 holds, 4 events and no violation", report)
	}
}

// Every way to break the books is found, under the promise that it breaks.
func TestBrokenBooksAreFound(t *testing.T) {
	for _, broken := range []struct {
		name    string
		promise string
		how     func(*ledger.Records)
	}{
		{"negative counter", "P1", func(r *ledger.Records) { r.Stock[0].Counters.Available = -1 }},
		{"sum is not capacity", "P1", func(r *ledger.Records) { r.Stock[0].Counters.Capacity++ }},
		{"missing shard", "P1", func(r *ledger.Records) { r.Stock = r.Stock[:1] }},
		{"missing shard that holds took from", "P2", func(r *ledger.Records) { r.Stock = r.Stock[:1] }},
		{"stale price on a shard", "P1", func(r *ledger.Records) { r.Stock[1].Terms.Price.AmountMinor = 1 }},
		{"stock without a slot", "P1", func(r *ledger.Records) { r.Slots = nil }},
		{"held without a hold", "P2", func(r *ledger.Records) { r.Holds = r.Holds[1:] }},
		{"confirmed without a hold", "P2", func(r *ledger.Records) { r.Holds = r.Holds[:1] }},
		{"units given back twice", "P3", func(r *ledger.Records) {
			r.Stock[0].Counters.Available += 2
			r.Stock[0].Counters.Capacity += 2
		}},
		{"expired hold whose stock is still held", "P3", func(r *ledger.Records) { r.Holds[0].Hold.Status = ledger.StatusExpired }},
		{"line that is not its shards", "P2", func(r *ledger.Records) { r.Holds[0].Hold.Lines[0].Quantity = 3 }},
		{"transition without its event", "P5", func(r *ledger.Records) { r.Events = r.Events[:3] }},
		{"two events of one version", "P5", func(r *ledger.Records) { r.Events = append(r.Events, r.Events[3]) }},
		{"slot without its event", "P5", func(r *ledger.Records) { r.Events = r.Events[1:] }},
		{"event of a version that never was", "P5", func(r *ledger.Records) { r.Events[3].Version = 9 }},
		{"HELD and not in the due index", "P9", func(r *ledger.Records) { r.Holds[0].Due = false }},
		{"ended and still in the due index", "P9", func(r *ledger.Records) { r.Holds[1].Due = true }},
		{"ended and not in the archive's list", "P9", func(r *ledger.Records) { r.Holds[1].Archivable = false }},
		{"HELD and in the archive's list", "P9", func(r *ledger.Records) { r.Holds[0].Archivable = true }},
	} {
		t.Run(broken.name, func(t *testing.T) {
			records := sound(t)
			broken.how(&records)
			report, err := reconcile.AuditAtRest(context.Background(), pages{records}, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(report.Findings, func(v reconcile.Finding) bool { return v.Promise == broken.promise }) {
				t.Errorf("violations %v; want one of %s", report.Findings, broken.promise)
			}
		})
	}
}
