package ledger_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// mustNewSlot builds an open slot at 500 USD.
func mustNewSlot(t testing.TB, id ledger.SlotID, capacity ledger.Units, shards int) (ledger.Slot, ledger.Change) {
	t.Helper()
	change, err := ledger.NewSlot(id, definitionOf(capacity, shards), originOf("slot "+string(id)), noon)
	if err != nil {
		t.Fatalf("new slot: %v", err)
	}
	return change.Slots[0].Next, change
}

func definitionOf(capacity ledger.Units, shards int) ledger.SlotDefinition {
	return ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "hamlet", Capacity: capacity, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: shards},
	}
}

func originOf(seed string) ledger.Origin {
	return ledger.Origin{Actor: "U-1", Command: ledger.CommandCreateHold, RequestID: "request", EventID: ledger.NewEventID(random(seed))}
}

// mustNewHold builds a hold of two units on the two shards of slot A, one on slot B.
func mustNewHold(t testing.TB) ledger.Change {
	t.Helper()
	a, _ := mustNewSlot(t, "A", 10, 2)
	b, _ := mustNewSlot(t, "B", 10, 1)
	change, err := ledger.NewHold(ledger.HoldPlan{
		ID: holdID("H"), Owner: "U-1",
		Quotes: []ledger.Quote{{Slot: "A", Quantity: 2, UnitAmount: 500}, {Slot: "B", Quantity: 1, UnitAmount: 500}},
		Slots:  map[ledger.SlotID]ledger.Slot{"A": a, "B": b},
		Allocations: map[ledger.SlotID][]ledger.Allocation{
			"A": {{Shard: 0, Quantity: 1}, {Shard: 1, Quantity: 1}}, "B": {{Shard: 0, Quantity: 1}},
		},
	}, originOf("hold"), noon)
	if err != nil {
		t.Fatalf("new hold: %v", err)
	}
	return change
}

func TestChangeValidateAcceptsWhatTheBuildersBuild(t *testing.T) {
	slot, newSlot := mustNewSlot(t, "A", 10, 3)
	hold := mustNewHold(t).Holds[0].Next
	confirm, err := ledger.Confirm(hold, "pay", originOf("confirm"), noon)
	if err != nil {
		t.Fatal(err)
	}
	edit, err := ledger.EditSlot(slot, newSlot.NewStock, definitionOf(7, 3), originOf("edit"), noon)
	if err != nil {
		t.Fatal(err)
	}
	opened := ledger.NewReview(ledger.ReviewFinding, "hold_missing/A", noon)
	repairedQuota := ledger.RepairQuota(ledger.Quota{Owner: "U-1", Counts: map[ledger.QuotaKey]ledger.Units{"holds": 3}},
		map[ledger.QuotaKey]ledger.Units{"holds": 2, "slot/A": 1}, ledger.Review{}, opened, originOf("quota"), noon)
	reviewed, repaired := mustNewHold(t), ledger.Change{}
	reviewOf(func(*ledger.Change) {})(&reviewed)
	repairOf(func(*ledger.Change) {})(&repaired)
	record := ledger.Change{At: noon, Idempotency: &ledger.IdempotencyRecord{ID: "id"}}
	for name, change := range map[string]ledger.Change{
		"new slot": newSlot, "new hold": mustNewHold(t), "confirm": confirm, "edit": edit, "record alone": record,
		"a case": reviewed, "repaired stock": repaired, "repaired quota": repairedQuota, "repaired hold": ledger.RepairHold(hold, originOf("repaired"), noon),
	} {
		if err := change.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// aSignal counts one more hold of a device.
var aSignal = ledger.SignalWrite{Signal: ledger.Signal{Kind: ledger.SignalDevice, Hash: hashOf('a')}, Window: noon, Max: 1}

func signalsOf(writes ...ledger.SignalWrite) func(*ledger.Change) {
	return func(c *ledger.Change) { c.Signals = writes }
}

func quotaOf(deltas ...ledger.QuotaDelta) func(*ledger.Change) {
	return func(c *ledger.Change) { c.Quotas = []ledger.QuotaWrite{{Owner: "U-1", Deltas: deltas}} }
}

func unitsOf(units ledger.Units) *ledger.Units { return &units }

// reviewOf is a fault in a hold that is made together with the opening of a case.
func reviewOf(fault func(*ledger.Change)) func(*ledger.Change) {
	return func(c *ledger.Change) {
		opened := ledger.NewReview(ledger.ReviewFinding, "hold_missing/A", noon)
		*c = ledger.Together(*c, ledger.OpenReview(ledger.Review{}, opened, originOf("case"), noon))
		fault(c)
	}
}

// repairOf is a fault in the repair of a slot's stock.
func repairOf(fault func(*ledger.Change)) func(*ledger.Change) {
	return func(c *ledger.Change) {
		*c = ledger.RepairStock(ledger.Slot{ID: "A", Version: 3}, []ledger.StockRepair{{
			Slot: "A", Replaces: 7, Counters: ledger.Counters{Available: 10, Capacity: 10}, Terms: ledger.Terms{Shards: 1},
		}}, originOf("repair"), noon)
		fault(c)
	}
}

// Each refusal of Validate is shown once, by one fault in a change that is else right.
func TestChangeValidateRefuses(t *testing.T) {
	tests := []struct {
		name  string
		want  string
		fault func(*ledger.Change)
	}{
		{"nothing", "writes nothing", func(c *ledger.Change) { *c = ledger.Change{At: noon} }},
		{"too many actions", "101 actions", func(c *ledger.Change) {
			c.Uniqueness = make([]ledger.Uniqueness, ledger.ActionsMax+1-c.Actions())
		}},
		{"no time", "whole milliseconds", func(c *ledger.Change) { c.At = time.Time{} }},
		{"a time too fine", "whole milliseconds", func(c *ledger.Change) { c.At = noon.Add(time.Microsecond) }},
		{"one hold twice", "two actions on hold/", func(c *ledger.Change) { c.Holds = append(c.Holds, c.Holds[0]) }},
		{"one slot twice", "two actions on slot/", func(c *ledger.Change) {
			c.Slots = []ledger.SlotWrite{{Next: ledger.Slot{ID: "A"}}, {Next: ledger.Slot{ID: "A"}}}
		}},
		{"one stock item twice", "two actions on stock/A/0", func(c *ledger.Change) { c.Stock = append(c.Stock, c.Stock[0]) }},
		{"new stock that is also written", "two actions on stock/A/0", func(c *ledger.Change) {
			c.NewStock = []ledger.Stock{{Slot: "A", Shard: 0}}
		}},
		{"one event id twice", "two actions on event/", func(c *ledger.Change) { c.Events = append(c.Events, c.Events[0]) }},
		{"one claim twice", "two actions on payment_reference/pay", func(c *ledger.Change) {
			claim := ledger.Uniqueness{Kind: ledger.UniquePaymentReference, Value: "pay"}
			c.Uniqueness = []ledger.Uniqueness{claim, claim}
		}},
		{"stock that loses more than is told", "moves by", func(c *ledger.Change) { c.Stock[0].Delta.Available-- }},
		{"stock that is created from nothing", "moves by", func(c *ledger.Change) { c.Stock[0].Delta.Capacity = 1 }},
		{"stock that nothing tells of", "moves by", func(c *ledger.Change) { c.Events[0].Movements = c.Events[0].Movements[1:] }},
		{"stock that is told but not written", "not written", func(c *ledger.Change) { c.Stock = c.Stock[1:] }},
		{"a movement of nothing", "moves nothing", func(c *ledger.Change) { c.Events[0].Movements[0].Quantity = 0 }},
		{"a negative movement", "moves nothing", func(c *ledger.Change) { c.Events[0].Movements[0].Quantity = -1 }},
		{"a movement to where it was", "moves nothing", func(c *ledger.Change) { c.Events[0].Movements[0].To = ledger.BucketAvailable }},
		{"new stock that breaks P1", "new stock of C", func(c *ledger.Change) {
			c.NewStock = []ledger.Stock{{Slot: "C", Counters: ledger.Counters{Available: 1}}}
		}},
		{"new stock that nothing tells of", "moves by", func(c *ledger.Change) {
			c.NewStock = []ledger.Stock{{Slot: "C", Counters: ledger.Counters{Available: 1, Capacity: 1}}}
		}},
		{"an event without id", "is not of one hold, reservation, slot, policy or case", func(c *ledger.Change) { c.Events[0].ID = "" }},
		{"an event without version", "is not of one hold, reservation, slot, policy or case", func(c *ledger.Change) { c.Events[0].Version = 0 }},
		{"an event of nothing", "is not of one hold, reservation, slot, policy or case", func(c *ledger.Change) { c.Events[0].Hold = nil }},
		{"an event of a hold and a slot", "is not of one hold, reservation, slot, policy or case", func(c *ledger.Change) { c.Events[0].Slot = &ledger.Slot{ID: "A"} }},
		{"an event of a hold and a policy", "is not of one hold, reservation, slot, policy or case", func(c *ledger.Change) { c.Events[0].Policy = &ledger.ScopePolicy{} }},
		{"two events of one version", "two events of hold/", func(c *ledger.Change) {
			second := c.Events[0]
			second.ID, second.Movements = "another", nil
			c.Events = append(c.Events, second)
		}},
		{"a line that takes less than it says", "promises 3 units of slot A but takes 2", func(c *ledger.Change) { c.Holds[0].Next.Lines[0].Quantity = 3 }},
		{"a hold without its event", "without its event", func(c *ledger.Change) { c.Events, c.Stock = nil, nil }},
		{"a hold whose event is of another version", "without its event", func(c *ledger.Change) { c.Events[0].Version = 2 }},
		{"a hold that skips a version", "without its event", func(c *ledger.Change) {
			c.Holds[0].Next.Version, c.Events[0].Version = 2, 2
		}},
		{"a slot without its event", "without its event", func(c *ledger.Change) {
			c.Slots = []ledger.SlotWrite{{Next: ledger.Slot{ID: "A", Version: 1}}}
		}},
		{"a hold of no line", "promises nothing", func(c *ledger.Change) { c.Holds[0].Next.Lines = nil }},
		{"a policy without its event", "without its event", func(c *ledger.Change) {
			c.Policies = []ledger.PolicyWrite{{Next: ledger.ScopePolicy{Scope: ledger.PolicyScope{ResourceType: "show"}, Version: 1}}}
		}},
		{"one policy twice", "two actions on policy/show/", func(c *ledger.Change) {
			c.Policies = make([]ledger.PolicyWrite, 2)
			for i := range c.Policies {
				c.Policies[i].Next.Scope.ResourceType = "show"
			}
		}},
		{"one owner's quota twice", "two actions on quota/U-1", func(c *ledger.Change) {
			c.Quotas = []ledger.QuotaWrite{{Owner: "U-1", Forget: true}, {Owner: "U-1", Expired: true}}
		}},
		{"a quota that counts nothing", "counts nothing, or of nobody", func(c *ledger.Change) { c.Quotas = []ledger.QuotaWrite{{Owner: "U-1"}} }},
		{"a quota of nobody", "counts nothing, or of nobody", func(c *ledger.Change) { c.Quotas = []ledger.QuotaWrite{{Forget: true}} }},
		{"a count without a name", "not in order", quotaOf(ledger.QuotaDelta{Units: 1})},
		{"counts out of order", "not in order", quotaOf(ledger.QuotaDelta{Key: "b", Units: 1}, ledger.QuotaDelta{Key: "a", Units: 1})},
		{"one count twice", "not in order", quotaOf(ledger.QuotaDelta{Key: "a", Units: 1}, ledger.QuotaDelta{Key: "a", Units: 1})},
		{"a count that neither changes nor is limited", "never be written", quotaOf(ledger.QuotaDelta{Key: "a"})},
		{"a negative limit", "never be written", quotaOf(ledger.QuotaDelta{Key: "a", Units: 1, Max: -1})},
		{"more than a limit allows", "never be written", quotaOf(ledger.QuotaDelta{Key: "a", Units: 3, Max: 2})},
		{"one signal twice", "two actions on signal/device/" + hashOf('a'), signalsOf(aSignal, aSignal)},
		{"a signal of no kind", "counts no signal", signalsOf(ledger.SignalWrite{Signal: ledger.Signal{Hash: hashOf('a')}, Window: noon, Max: 1})},
		{"a signal that is no hash", "counts no signal", signalsOf(ledger.SignalWrite{Signal: ledger.Signal{Kind: ledger.SignalDevice, Hash: "a phone"}, Window: noon, Max: 1})},
		{"a signal without a limit", "counts no signal", signalsOf(ledger.SignalWrite{Signal: aSignal.Signal, Window: noon})},
		{"a signal of no window", "counts no signal", signalsOf(ledger.SignalWrite{Signal: aSignal.Signal, Max: 1})},
		{"a window that begins in between", "counts no signal", signalsOf(ledger.SignalWrite{Signal: aSignal.Signal, Window: noon.Add(time.Minute), Max: 1})},
		{"an event of a hold and a case", "is not of one hold, reservation, slot, policy or case", func(c *ledger.Change) { c.Events[0].Review = &ledger.Review{} }},
		{"a case without its event", "without its event", func(c *ledger.Change) {
			c.Reviews = []ledger.ReviewWrite{{Next: ledger.Review{ID: "review", Version: 1}}}
		}},
		{"a case that skips a version", "without its event", reviewOf(func(c *ledger.Change) {
			c.Reviews[0].Next.Version, c.Events[1].Version = 2, 2
		})},
		{"an event without its case", "an event without what it is of", reviewOf(func(c *ledger.Change) { c.Reviews = nil })},
		{"one case twice", "two actions on review/", reviewOf(func(c *ledger.Change) { c.Reviews = append(c.Reviews, c.Reviews[0]) })},
		{"stock that is repaired to numbers that break P1", "repaired stock of A", repairOf(func(c *ledger.Change) { c.StockRepairs[0].Counters.Available++ })},
		{"stock that is repaired below zero", "repaired stock of A", repairOf(func(c *ledger.Change) {
			c.StockRepairs[0].Counters = ledger.Counters{Available: 11, Held: -1, Capacity: 10}
		})},
		{"a repair of stock that is not there", "does not exist", repairOf(func(c *ledger.Change) { c.StockRepairs[0].Replaces = 0 })},
		{"a repair that is told as something else", "repaired without its event", repairOf(func(c *ledger.Change) { c.Events[0].Type = ledger.EventSlotChanged })},
		{"a repair that is told of another slot", "repaired without its event", repairOf(func(c *ledger.Change) { c.StockRepairs[0].Slot = "B" })},
		{"a repair that moves", "not written", repairOf(func(c *ledger.Change) {
			c.Events[0].Movements = []ledger.Movement{{Slot: "A", From: ledger.BucketHeld, To: ledger.BucketAvailable, Quantity: 1}}
		})},
		{"stock that is repaired and written", "two actions on stock/A/0", repairOf(func(c *ledger.Change) { c.Stock = []ledger.StockWrite{{Slot: "A"}} })},
		{"one repair twice", "two actions on stock/A/0", repairOf(func(c *ledger.Change) { c.StockRepairs = append(c.StockRepairs, c.StockRepairs[0]) })},
		{"a count that is repaired by nothing", "never be written", quotaOf(ledger.QuotaDelta{Key: "a", Was: unitsOf(1)})},
		{"a count that is repaired under a limit", "can't be repaired", quotaOf(ledger.QuotaDelta{Key: "a", Units: 1, Max: 5, Was: unitsOf(1)})},
		{"a count that is required under a limit", "can't be repaired", quotaOf(ledger.QuotaDelta{Key: "a", Max: 5, Was: unitsOf(1)})},
		{"a count that is repaired below zero", "can't be repaired", quotaOf(ledger.QuotaDelta{Key: "a", Units: -2, Was: unitsOf(1)})},
		{"an event without its hold", "an event without what it is of", func(c *ledger.Change) { c.Holds = nil }},
	}
	for _, test := range tests {
		change := mustNewHold(t)
		test.fault(&change)
		err := change.Validate()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error is %v, want it to say %q", test.name, err, test.want)
		}
	}
}

func TestChangeActionsCountsEveryItem(t *testing.T) {
	change := mustNewHold(t)
	const holdEventAndThreeStockItems = 5
	if got := change.Actions(); got != holdEventAndThreeStockItems {
		t.Errorf("a hold on three stock items has %d actions", got)
	}
	change.Idempotency = &ledger.IdempotencyRecord{}
	change.Uniqueness = make([]ledger.Uniqueness, 2)
	change.Slots = make([]ledger.SlotWrite, 3)
	change.NewStock = make([]ledger.Stock, 4)
	change.Policies = make([]ledger.PolicyWrite, 5)
	change.Quotas = make([]ledger.QuotaWrite, 6)
	change.Signals = make([]ledger.SignalWrite, 7)
	change.StockRepairs = make([]ledger.StockRepair, 8)
	change.Reviews = make([]ledger.ReviewWrite, 9)
	if got := change.Actions(); got != holdEventAndThreeStockItems+1+2+3+4+5+6+7+8+9 {
		t.Errorf("with 1 record, 2 claims, 3 slots, 4 new stock items, 5 policies, 6 quotas, 7 signals, 8 repairs and 9 cases it has %d actions", got)
	}
	if change.Empty() || !(ledger.Change{At: noon}).Empty() {
		t.Error("Empty does not say whether anything is written")
	}
}
