package ledger_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// Each bound of a definition is shown from both sides.
func TestSlotDefinitionValidate(t *testing.T) {
	attributes := func(n int) map[string]string {
		out := make(map[string]string, n)
		for i := range n {
			out[fmt.Sprint(i)] = ""
		}
		return out
	}
	long := strings.Repeat("x", ledger.AttributeCharactersMax)
	tests := []struct {
		name  string
		alter func(*ledger.SlotDefinition)
		valid bool
	}{
		{"as it is", func(*ledger.SlotDefinition) {}, true},
		{"no resource type", func(d *ledger.SlotDefinition) { d.ResourceType = "" }, false},
		{"a resource id with a slash", func(d *ledger.SlotDefinition) { d.ResourceID = "a/b" }, false},
		{"no capacity", func(d *ledger.SlotDefinition) { d.Capacity = 0 }, true},
		{"the largest capacity", func(d *ledger.SlotDefinition) { d.Capacity = ledger.CapacityMax }, true},
		{"a negative capacity", func(d *ledger.SlotDefinition) { d.Capacity = -1 }, false},
		{"a capacity too large", func(d *ledger.SlotDefinition) { d.Capacity = ledger.CapacityMax + 1 }, false},
		{"a price of nothing", func(d *ledger.SlotDefinition) { d.Terms.Price.AmountMinor = 0 }, true},
		{"a negative price", func(d *ledger.SlotDefinition) { d.Terms.Price.AmountMinor = -1 }, false},
		{"no currency", func(d *ledger.SlotDefinition) { d.Terms.Price.Currency = "" }, false},
		{"no shard", func(d *ledger.SlotDefinition) { d.Terms.Shards = 0 }, false},
		{"the most shards", func(d *ledger.SlotDefinition) { d.Terms.Shards = ledger.ShardsMax }, true},
		{"too many shards", func(d *ledger.SlotDefinition) { d.Terms.Shards = ledger.ShardsMax + 1 }, false},
		{"a start", func(d *ledger.SlotDefinition) { d.StartsAt = noon }, true},
		{"an end at the start", func(d *ledger.SlotDefinition) { d.StartsAt, d.EndsAt = noon, noon }, true},
		{"an end before the start", func(d *ledger.SlotDefinition) { d.StartsAt, d.EndsAt = noon, noon.Add(-time.Millisecond) }, false},
		{"an end without a start", func(d *ledger.SlotDefinition) { d.EndsAt = noon }, false},
		{"a start finer than a millisecond", func(d *ledger.SlotDefinition) { d.StartsAt = noon.Add(time.Nanosecond) }, false},
		{"an end finer than a millisecond", func(d *ledger.SlotDefinition) { d.StartsAt, d.EndsAt = noon, noon.Add(time.Microsecond) }, false},
		{"the most attributes", func(d *ledger.SlotDefinition) { d.Attributes = attributes(ledger.AttributesMax) }, true},
		{"too many attributes", func(d *ledger.SlotDefinition) { d.Attributes = attributes(ledger.AttributesMax + 1) }, false},
		{"the longest attribute", func(d *ledger.SlotDefinition) { d.Attributes = map[string]string{long: long} }, true},
		{"an attribute without a name", func(d *ledger.SlotDefinition) { d.Attributes = map[string]string{"": "x"} }, false},
		{"an attribute's name too long", func(d *ledger.SlotDefinition) { d.Attributes = map[string]string{long + "x": ""} }, false},
		{"an attribute's value too long", func(d *ledger.SlotDefinition) { d.Attributes = map[string]string{"x": long + "x"} }, false},
		{"the shortest life", func(d *ledger.SlotDefinition) { d.Policy.HoldFor = time.Second }, true},
		{"a life too short", func(d *ledger.SlotDefinition) { d.Policy.HoldFor = time.Second - 1 }, false},
		{"the longest life", func(d *ledger.SlotDefinition) {
			d.Policy.HoldFor, d.Policy.HoldForMax = ledger.HoldForLimit, ledger.HoldForLimit
		}, true},
		{"a life too long", func(d *ledger.SlotDefinition) {
			d.Policy.HoldFor, d.Policy.HoldForMax = ledger.HoldForLimit+1, ledger.HoldForLimit+1
		}, false},
		{"a longest life below the life", func(d *ledger.SlotDefinition) { d.Policy.HoldForMax = d.Policy.HoldFor - 1 }, false},
		{"a longest life too long", func(d *ledger.SlotDefinition) { d.Policy.HoldForMax = ledger.HoldForLimit + 1 }, false},
		{"no grace", func(d *ledger.SlotDefinition) { d.Policy.GraceFor = 0 }, true},
		{"a negative grace", func(d *ledger.SlotDefinition) { d.Policy.GraceFor = -1 }, false},
		{"a grace too long", func(d *ledger.SlotDefinition) { d.Policy.GraceFor = ledger.HoldForLimit + 1 }, false},
		{"one unit a hold", func(d *ledger.SlotDefinition) { d.Policy.QuantityPerHoldMax = 1 }, true},
		{"no unit a hold", func(d *ledger.SlotDefinition) { d.Policy.QuantityPerHoldMax = 0 }, false},
		{"too many units a hold", func(d *ledger.SlotDefinition) { d.Policy.QuantityPerHoldMax = ledger.QuantityPerLineMax + 1 }, false},
	}
	for _, test := range tests {
		d := definitionOf(10, 2)
		test.alter(&d)
		err := d.Validate()
		if test.valid != (err == nil) || (!test.valid && ledger.CodeOf(err) != ledger.CodeInvalid) {
			t.Errorf("%s: error %v", test.name, err)
		}
		if change, err := ledger.NewSlot("A", d, originOf("new"), noon); test.valid != (err == nil) || test.valid == change.Empty() {
			t.Errorf("%s: a new slot has %d actions, error %v", test.name, change.Actions(), err)
		}
	}
}

func TestNewSlotSpreadsItsCapacity(t *testing.T) {
	_, change := mustNewSlot(t, "A", 5, 3)
	var got []ledger.Units
	for i, s := range change.NewStock {
		got = append(got, s.Counters.Available)
		if s.Shard != ledger.Shard(i) || s.Counters.Check() != nil || s.Version != 1 || s.Terms.Shards != 3 {
			t.Errorf("stock item %d is %+v", i, s)
		}
	}
	if want := []ledger.Units{2, 2, 1}; !reflect.DeepEqual(got, want) {
		t.Errorf("5 units over 3 shards are %v, want %v", got, want)
	}
	_, change = mustNewSlot(t, "A", 1, 3)
	if n := len(change.Events[0].Movements); n != 1 {
		t.Errorf("one unit is told by %d movements", n)
	}
	if _, err := ledger.NewSlot("a/b", definitionOf(1, 1), originOf("new"), noon); ledger.CodeOf(err) != ledger.CodeInvalid {
		t.Errorf("a slot id with a slash: %v", err)
	}
}

func TestEditSlotKeepsWhatIsFixed(t *testing.T) {
	slot, created := mustNewSlot(t, "A", 10, 2)
	for name, alter := range map[string]func(*ledger.SlotDefinition){
		"resource type": func(d *ledger.SlotDefinition) { d.ResourceType = "other" },
		"resource id":   func(d *ledger.SlotDefinition) { d.ResourceID = "other" },
	} {
		d := definitionOf(10, 2)
		alter(&d)
		change, err := ledger.EditSlot(slot, created.NewStock, d, originOf("edit"), noon)
		if ledger.CodeOf(err) != ledger.CodeSlotFixed || !change.Empty() {
			t.Errorf("%s: %d actions, error %v", name, change.Actions(), err)
		}
	}
	d := definitionOf(-1, 2)
	if _, err := ledger.EditSlot(slot, created.NewStock, d, originOf("edit"), noon); ledger.CodeOf(err) != ledger.CodeInvalid {
		t.Errorf("a negative capacity: %v", err)
	}
}

// A repeated PUT writes nothing, and each single difference is a change.
func TestEditSlotWritesOnlyDifferences(t *testing.T) {
	slot, created := mustNewSlot(t, "A", 10, 2)
	same, err := ledger.EditSlot(slot, created.NewStock, slot.Definition(10), originOf("edit"), noon.Add(time.Hour))
	if err != nil || !same.Empty() {
		t.Errorf("an edit to the same has %d actions, error %v", same.Actions(), err)
	}
	tests := []struct {
		name         string
		alter        func(*ledger.SlotDefinition)
		stockWrites  int
		priceVersion ledger.Version
	}{
		{"start", func(d *ledger.SlotDefinition) { d.StartsAt = noon }, 0, 1},
		{"start and end", func(d *ledger.SlotDefinition) { d.StartsAt, d.EndsAt = noon, noon }, 0, 1},
		{"attributes", func(d *ledger.SlotDefinition) { d.Attributes = map[string]string{"row": "1"} }, 0, 1},
		{"policy", func(d *ledger.SlotDefinition) { d.Policy.HoldFor = time.Minute }, 0, 1},
		{"amount", func(d *ledger.SlotDefinition) { d.Terms.Price.AmountMinor++ }, 2, 2},
		{"currency", func(d *ledger.SlotDefinition) { d.Terms.Price.Currency = "EUR" }, 2, 2},
		{"closing", func(d *ledger.SlotDefinition) { d.Terms.Open = false }, 2, 1},
		{"growth by one", func(d *ledger.SlotDefinition) { d.Capacity++ }, 1, 1},
		{"growth", func(d *ledger.SlotDefinition) { d.Capacity += 2 }, 2, 1},
		{"loss", func(d *ledger.SlotDefinition) { d.Capacity = 0 }, 2, 1},
		{"closing and loss", func(d *ledger.SlotDefinition) { d.Terms.Open, d.Capacity = false, 8 }, 2, 1},
	}
	for _, test := range tests {
		d := slot.Definition(10)
		test.alter(&d)
		change, err := ledger.EditSlot(slot, created.NewStock, d, originOf("edit"), noon.Add(time.Hour))
		if err != nil || len(change.Slots) != 1 {
			t.Errorf("%s: %d actions, error %v", test.name, change.Actions(), err)
			continue
		}
		if err := change.Validate(); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		next := change.Slots[0].Next
		if next.Version != 2 || change.Slots[0].Replaces != 1 || next.UpdatedAt != noon.Add(time.Hour) || next.CreatedAt != noon {
			t.Errorf("%s: the slot becomes %+v", test.name, next)
		}
		if next.PriceVersion != test.priceVersion || len(change.Stock) != test.stockWrites {
			t.Errorf("%s: price version %d and %d stock writes, want %d and %d", test.name,
				next.PriceVersion, len(change.Stock), test.priceVersion, test.stockWrites)
		}
		if got := next.Definition(d.Capacity); !reflect.DeepEqual(got, d) {
			t.Errorf("%s: the definition becomes %+v, want %+v", test.name, got, d)
		}
	}
}

func TestEditSlotRefusesACapacityInUse(t *testing.T) {
	slot, _ := mustNewSlot(t, "A", 10, 2)
	stock := []ledger.Stock{
		{Slot: "A", Shard: 0, Counters: ledger.Counters{Available: 1, Held: 4, Capacity: 5}},
		{Slot: "A", Shard: 1, Counters: ledger.Counters{Available: 2, Confirmed: 3, Capacity: 5}},
	}
	change, err := ledger.EditSlot(slot, stock, definitionOf(7, 2), originOf("edit"), noon)
	if err != nil || len(change.Stock) != 2 {
		t.Errorf("down to what is in use: %d stock writes, error %v", len(change.Stock), err)
	}
	change, err = ledger.EditSlot(slot, stock, definitionOf(6, 2), originOf("edit"), noon)
	if ledger.CodeOf(err) != ledger.CodeCapacityInUse || !change.Empty() {
		t.Errorf("below what is in use: %d actions, error %v", change.Actions(), err)
	}
}

func TestSlotPatch(t *testing.T) {
	name := func(units ledger.Units) *ledger.Units { return &units }
	later, currency, amount, open := noon.Add(time.Hour), ledger.Currency("EUR"), int64(7), false
	minute, yes, grantTo := time.Minute, true, "wallet:{owner}"
	keep, refund, byEvent := ledger.OnDeclineKeep, ledger.LatePaymentRefund, ledger.DeliveryEvent
	base := definitionOf(10, 2)
	base.Attributes = map[string]string{"row": "1"}

	got, err := (ledger.SlotPatch{}).Apply(base)
	if err != nil || !reflect.DeepEqual(got, base) {
		t.Errorf("a patch of nothing gives %+v, error %v", got, err)
	}
	got, err = ledger.SlotPatch{
		StartsAt: &noon, EndsAt: &later, Attributes: map[string]string{}, UnitAmount: &amount, Currency: &currency, Open: &open,
		Policy: ledger.PolicyPatch{
			HoldFor: &minute, GraceFor: &minute, HoldForMax: &minute, QuantityPerHoldMax: name(3),
			OnDecline: &keep, LatePayment: &refund, LateByProvider: &yes, UnknownFor: &minute,
			Delivery: &byEvent, CancelFor: &minute, NoRestock: &yes, GrantTo: &grantTo,
		},
		Capacity: name(20),
	}.Apply(base)
	want := ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "hamlet", StartsAt: noon, EndsAt: later, Attributes: map[string]string{}, Capacity: 20,
		Terms: ledger.Terms{Open: false, Price: ledger.Money{AmountMinor: 7, Currency: "EUR"}, Shards: 2},
		Policy: ledger.Policy{
			HoldFor: minute, GraceFor: minute, HoldForMax: minute, QuantityPerHoldMax: 3,
			Payment: ledger.PaymentTerms{
				OnDecline: keep, LatePayment: refund, LateByProvider: true, UnknownFor: minute, Delivery: byEvent,
			},
			CancelFor: minute, NoRestock: true, GrantTo: grantTo,
		},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("a patch of everything gives %+v, error %v", got, err)
	}

	tests := []struct {
		patch ledger.SlotPatch
		want  ledger.Units
		code  ledger.Code
	}{
		{ledger.SlotPatch{CapacityDelta: name(5)}, 15, ""},
		{ledger.SlotPatch{CapacityDelta: name(-10)}, 0, ""},
		{ledger.SlotPatch{CapacityDelta: name(-11)}, 0, ledger.CodeCapacityInUse},
		{ledger.SlotPatch{CapacityDelta: name(ledger.CapacityMax + 1)}, 0, ledger.CodeInvalid},
		{ledger.SlotPatch{CapacityDelta: name(-ledger.CapacityMax - 1)}, 0, ledger.CodeInvalid},
		{ledger.SlotPatch{CapacityDelta: name(1), Capacity: name(1)}, 0, ledger.CodeInvalid},
	}
	for _, test := range tests {
		got, err := test.patch.Apply(base)
		if ledger.CodeOf(err) != test.code || (err == nil && got.Capacity != test.want) {
			t.Errorf("%+v gives capacity %d, error %v", test.patch, got.Capacity, err)
		}
	}
}
