package ledger_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// F1 and E4: two requests that mean the same are the same.
func TestNormalizeQuotes(t *testing.T) {
	got, err := ledger.NormalizeQuotes([]ledger.Quote{{"B", 1, 300}, {"A", 97, 500}, {"B", 2, 300}, {"A", 11, 500}})
	want := []ledger.Quote{{"A", 108, 500}, {"B", 3, 300}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, error %v, want %v", got, err, want)
	}
}

func quotes(n int) []ledger.Quote {
	out := make([]ledger.Quote, n)
	for i := range out {
		out[i] = ledger.Quote{Slot: ledger.SlotID(fmt.Sprintf("slot-%03d", i)), Quantity: 1, UnitAmount: 1}
	}
	return out
}

// L6 and F5: nothing out of bounds becomes a hold, and nothing overflows.
func TestNormalizeQuotesBounds(t *testing.T) {
	tests := []struct {
		name   string
		quotes []ledger.Quote
		valid  bool
	}{
		{"one unit", []ledger.Quote{{"A", 1, 0}}, true},
		{"the largest line", []ledger.Quote{{"A", ledger.QuantityPerLineMax, ledger.AmountMinorMax}}, true},
		{"the largest sum", []ledger.Quote{{"A", ledger.QuantityPerLineMax - 1, 1}, {"A", 1, 1}}, true},
		{"the most lines", quotes(ledger.LinesMax), true},
		{"the most lines, each twice", append(quotes(ledger.LinesMax), quotes(ledger.LinesMax)...), true},
		{"no line", nil, false},
		{"one line too many", quotes(ledger.LinesMax + 1), false},
		{"no unit", []ledger.Quote{{"A", 0, 1}}, false},
		{"a negative quantity", []ledger.Quote{{"A", -1, 1}}, false},
		{"a negative quantity beside a positive one", []ledger.Quote{{"A", 5, 1}, {"A", -4, 1}}, false},
		{"a quantity too large", []ledger.Quote{{"A", ledger.QuantityPerLineMax + 1, 1}}, false},
		{"a sum too large", []ledger.Quote{{"A", ledger.QuantityPerLineMax, 1}, {"A", 1, 1}}, false},
		{"a quantity that would overflow", []ledger.Quote{{"A", math.MaxInt64, 1}, {"A", math.MaxInt64, 1}}, false},
		{"a negative amount", []ledger.Quote{{"A", 1, -1}}, false},
		{"an amount too large", []ledger.Quote{{"A", 1, ledger.AmountMinorMax + 1}}, false},
		{"two prices of one slot", []ledger.Quote{{"A", 1, 1}, {"A", 1, 2}}, false},
		{"a slot id with a slash", []ledger.Quote{{"A/1", 1, 1}}, false},
		{"no slot id", []ledger.Quote{{"", 1, 1}}, false},
	}
	for _, test := range tests {
		got, err := ledger.NormalizeQuotes(test.quotes)
		if test.valid != (err == nil) {
			t.Errorf("%s: error %v", test.name, err)
		}
		if !test.valid && (ledger.CodeOf(err) != ledger.CodeInvalid || got != nil) {
			t.Errorf("%s: got %v with code %s", test.name, got, ledger.CodeOf(err))
		}
	}
}

func TestNewHoldLivesAsLongAsItsShortestPolicy(t *testing.T) {
	plan := ledger.HoldPlan{
		ID: holdID("H"), Owner: "U-1",
		Quotes: []ledger.Quote{{"A", 1, 500}, {"B", 1, 500}},
		Slots:  make(map[ledger.SlotID]ledger.Slot),
		Allocations: map[ledger.SlotID][]ledger.Allocation{
			"A": {{Shard: 0, Quantity: 1}}, "B": {{Shard: 0, Quantity: 1}},
		},
	}
	a, _ := mustNewSlot(t, "A", 1, 1)
	a.Policy.HoldFor, a.Policy.GraceFor = 5*time.Minute, time.Minute
	b, _ := mustNewSlot(t, "B", 1, 1)
	b.Policy.HoldFor, b.Policy.GraceFor = 3*time.Minute, 90*time.Second
	plan.Slots["A"], plan.Slots["B"] = a, b
	change, err := ledger.NewHold(plan, originOf("hold"), noon)
	if err != nil {
		t.Fatal(err)
	}
	hold := change.Holds[0].Next
	want := ledger.Hold{
		ID: holdID("H"), Owner: "U-1", Status: ledger.StatusHeld, Version: 1, CreatedAt: noon,
		ExpiresAt: noon.Add(3 * time.Minute), ReleaseAt: noon.Add(3 * time.Minute), HoldFor: 3 * time.Minute, HoldForMax: time.Hour, GraceFor: time.Minute,
		Terms: ledger.DefaultPaymentTerms(),
		Lines: []ledger.Line{
			{Slot: "A", Quantity: 1, UnitPrice: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: []ledger.Allocation{{Shard: 0, Quantity: 1}}},
			{Slot: "B", Quantity: 1, UnitPrice: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: []ledger.Allocation{{Shard: 0, Quantity: 1}}},
		},
	}
	if !reflect.DeepEqual(hold, want) {
		t.Errorf("got %+v\nwant %+v", hold, want)
	}
	terms := ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 1}
	for _, write := range change.Stock {
		if write.Sale == nil || *write.Sale != terms || write.SetTerms != nil {
			t.Errorf("the write on %s is not a sale under the quoted terms: %+v", write.Slot, write)
		}
	}
}

func TestNewHoldRefuses(t *testing.T) {
	dollars, _ := mustNewSlot(t, "A", 1, 1)
	yen := dollars
	yen.ID, yen.Terms.Price.Currency = "B", "JPY"
	few := dollars
	few.Policy.QuantityPerHoldMax = 2
	tests := []struct {
		name   string
		quotes []ledger.Quote
		slots  map[ledger.SlotID]ledger.Slot
		code   ledger.Code
	}{
		{"an unknown slot", []ledger.Quote{{"A", 1, 500}}, nil, ledger.CodeSlotNotFound},
		{"more than the policy allows", []ledger.Quote{{"A", 3, 500}}, map[ledger.SlotID]ledger.Slot{"A": few}, ledger.CodeQuantityOverLimit},
		{"two currencies", []ledger.Quote{{"A", 1, 500}, {"B", 1, 500}}, map[ledger.SlotID]ledger.Slot{"A": dollars, "B": yen}, ledger.CodeInvalid},
	}
	for _, test := range tests {
		change, err := ledger.NewHold(ledger.HoldPlan{ID: holdID("H"), Quotes: test.quotes, Slots: test.slots}, originOf("h"), noon)
		if ledger.CodeOf(err) != test.code || !change.Empty() {
			t.Errorf("%s: %d actions, error %v, want code %s", test.name, change.Actions(), err, test.code)
		}
	}
}

func TestNewHoldBoundsItsStockActions(t *testing.T) {
	slot, _ := mustNewSlot(t, "A", 1_000, ledger.ShardsMax)
	other := slot
	other.ID = "B"
	plan := ledger.HoldPlan{
		ID: holdID("H"), Slots: map[ledger.SlotID]ledger.Slot{"A": slot, "B": other},
		Quotes:      []ledger.Quote{{"A", ledger.ShardsMax, 500}, {"B", 16, 500}},
		Allocations: make(map[ledger.SlotID][]ledger.Allocation),
	}
	for shard := range ledger.Shard(ledger.ShardsMax) {
		plan.Allocations["A"] = append(plan.Allocations["A"], ledger.Allocation{Shard: shard, Quantity: 1})
	}
	for shard := range ledger.Shard(ledger.StockActionsMax - ledger.ShardsMax) {
		plan.Allocations["B"] = append(plan.Allocations["B"], ledger.Allocation{Shard: shard, Quantity: 1})
	}
	change, err := ledger.NewHold(plan, originOf("h"), noon)
	if err != nil || len(change.Stock) != ledger.StockActionsMax {
		t.Errorf("%d stock actions, error %v", len(change.Stock), err)
	}
	plan.Allocations["B"] = append(plan.Allocations["B"], ledger.Allocation{Shard: 60, Quantity: 1})
	if change, err = ledger.NewHold(plan, originOf("h"), noon); ledger.CodeOf(err) != ledger.CodeQuantityOverLimit || !change.Empty() {
		t.Errorf("one more: %d stock actions, error %v", len(change.Stock), err)
	}
}

func TestConfirmBoundsThePaymentReference(t *testing.T) {
	hold := mustNewHold(t).Holds[0].Next
	longest := ledger.PaymentReference(strings.Repeat("p", ledger.PaymentReferenceCharactersMax))
	if _, err := ledger.Confirm(hold, longest, originOf("c"), noon); err != nil {
		t.Errorf("the longest reference: %v", err)
	}
	if _, err := ledger.Confirm(hold, longest+"p", originOf("c"), noon); ledger.CodeOf(err) != ledger.CodeInvalid {
		t.Errorf("a longer reference: %v", err)
	}
}

func TestHoldStatusAndDueTime(t *testing.T) {
	hold := ledger.Hold{Status: ledger.StatusHeld, ReleaseAt: noon}
	for offset, want := range map[time.Duration]ledger.Status{
		-time.Millisecond: ledger.StatusHeld, 0: ledger.StatusExpired, time.Millisecond: ledger.StatusExpired,
	} {
		if got := hold.StatusAt(noon.Add(offset)); got != want {
			t.Errorf("%v after its release time the hold is %s, want %s", offset, got, want)
		}
	}
	if due, waits := hold.DueAt(); !waits || due != noon {
		t.Errorf("a HELD hold is due at %v, %t", due, waits)
	}
	for _, status := range []ledger.Status{ledger.StatusConfirmed, ledger.StatusCanceled, ledger.StatusExpired} {
		hold.Status = status
		if got := hold.StatusAt(noon.Add(time.Hour)); got != status {
			t.Errorf("a hold that is %s reads as %s", status, got)
		}
		if _, waits := hold.DueAt(); waits {
			t.Errorf("a hold that is %s waits in the due index", status)
		}
	}
}

func TestEndedHoldKeepsWhatItWas(t *testing.T) {
	hold := mustNewHold(t).Holds[0].Next
	later := hold.ReleaseAt.Add(-time.Second)
	ends := map[ledger.Status]func() (ledger.Change, error){
		ledger.StatusConfirmed: func() (ledger.Change, error) { return ledger.Confirm(hold, "pay", originOf("end"), later) },
		ledger.StatusCanceled:  func() (ledger.Change, error) { return ledger.Cancel(hold, originOf("end"), later) },
		ledger.StatusExpired: func() (ledger.Change, error) {
			return ledger.Expire(hold, originOf("end"), hold.ReleaseAt.Add(time.Second))
		},
	}
	for status, end := range ends {
		change, err := end()
		if err != nil {
			t.Fatalf("%s: %v", status, err)
		}
		want := hold
		want.Status, want.Version, want.EndedAt = status, 2, change.At
		if status == ledger.StatusConfirmed {
			want.PaymentReference = "pay"
		}
		if got := change.Holds[0]; !reflect.DeepEqual(got.Next, want) || got.Replaces != 1 {
			t.Errorf("%s: version %d becomes %+v\nwant %+v", status, got.Replaces, got.Next, want)
		}
		if event := change.Events[0]; !reflect.DeepEqual(*event.Hold, want) || event.OccurredAt != change.At || event.Origin != originOf("end") {
			t.Errorf("%s: the event tells %+v", status, event)
		}
		for _, write := range change.Stock {
			if write.Sale != nil || write.SetTerms != nil {
				t.Errorf("%s: the write on %s looks at the terms of a sale", status, write.Slot)
			}
		}
	}
}
