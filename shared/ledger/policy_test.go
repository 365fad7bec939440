package ledger_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/ledger"
)

// partCase is one part of a policy, as the tests know it: how a patch names it, how it is
// read, and how a value is drawn.
type partCase struct {
	part  ledger.PolicyParts
	name  string
	patch func(t *rapid.T, p *ledger.PolicyPatch)
	value func(p ledger.Policy) any
}

func drawn[T any](t *rapid.T, name string, values ...T) *T {
	value := rapid.SampledFrom(values).Draw(t, name)
	return &value
}

// partCases lists all parts. The values are few and close together, so that layers often
// contradict each other.
func partCases() []partCase {
	seconds := func(t *rapid.T, name string, values ...int) *time.Duration {
		d := time.Duration(*drawn(t, name, values...)) * time.Second
		return &d
	}
	hours := func(t *rapid.T, name string) *time.Time {
		at := noon.Add(time.Duration(*drawn(t, name, 1, 2, 3, 4)) * time.Hour)
		if rapid.Bool().Draw(t, name+" is no bound") {
			at = time.Time{}
		}
		return &at
	}
	units := func(t *rapid.T, name string) *ledger.Units { return drawn[ledger.Units](t, name, 0, 1, 2) }
	return []partCase{
		{ledger.PartHold, "hold_seconds", func(t *rapid.T, p *ledger.PolicyPatch) { p.HoldFor = seconds(t, "hold", 60, 600, 7200) }, func(p ledger.Policy) any { return p.HoldFor }},
		{ledger.PartGrace, "grace_seconds", func(t *rapid.T, p *ledger.PolicyPatch) { p.GraceFor = seconds(t, "grace", 0, 30) }, func(p ledger.Policy) any { return p.GraceFor }},
		{ledger.PartHoldMax, "hold_max_seconds", func(t *rapid.T, p *ledger.PolicyPatch) { p.HoldForMax = seconds(t, "hold max", 60, 600, 7200) }, func(p ledger.Policy) any { return p.HoldForMax }},
		{ledger.PartQuantityPerHold, "quantity_max_per_hold", func(t *rapid.T, p *ledger.PolicyPatch) {
			p.QuantityPerHoldMax = drawn[ledger.Units](t, "per hold", 1, 2)
		}, func(p ledger.Policy) any { return p.QuantityPerHoldMax }},
		{ledger.PartOnDecline, "on_decline", func(t *rapid.T, p *ledger.PolicyPatch) {
			p.OnDecline = drawn(t, "decline", ledger.OnDeclineKeep, ledger.OnDeclineRelease)
		}, func(p ledger.Policy) any { return p.Payment.OnDecline }},
		{ledger.PartLatePayment, "late_payment", func(t *rapid.T, p *ledger.PolicyPatch) {
			p.LatePayment = drawn(t, "late", ledger.LatePaymentRefund, ledger.LatePaymentReview)
		}, func(p ledger.Policy) any { return p.Payment.LatePayment }},
		{ledger.PartLateByProvider, "late_payment_by_provider", func(t *rapid.T, p *ledger.PolicyPatch) { p.LateByProvider = drawn(t, "by provider", true, false) }, func(p ledger.Policy) any { return p.Payment.LateByProvider }},
		{ledger.PartUnknown, "unknown_max_seconds", func(t *rapid.T, p *ledger.PolicyPatch) { p.UnknownFor = seconds(t, "unknown", 0, 5) }, func(p ledger.Policy) any { return p.Payment.UnknownFor }},
		{ledger.PartDelivery, "delivery", func(t *rapid.T, p *ledger.PolicyPatch) {
			p.Delivery = drawn(t, "delivery", ledger.DeliveryEvent, ledger.DeliveryNone)
		}, func(p ledger.Policy) any { return p.Payment.Delivery }},
		{ledger.PartCancel, "cancel_until_seconds", func(t *rapid.T, p *ledger.PolicyPatch) { p.CancelFor = seconds(t, "cancel", 0, 5) }, func(p ledger.Policy) any { return p.CancelFor }},
		{ledger.PartRestock, "restock", func(t *rapid.T, p *ledger.PolicyPatch) { p.NoRestock = drawn(t, "no restock", true, false) }, func(p ledger.Policy) any { return p.NoRestock }},
		{ledger.PartGrantTo, "grant_to_slot_id", func(t *rapid.T, p *ledger.PolicyPatch) { p.GrantTo = drawn(t, "grant", "wallet", "") }, func(p ledger.Policy) any { return p.GrantTo }},
		{ledger.PartQuantityPerOwner, "quantity_max_per_owner", func(t *rapid.T, p *ledger.PolicyPatch) { p.QuantityPerOwnerMax = units(t, "per owner") }, func(p ledger.Policy) any { return p.QuantityPerOwnerMax }},
		{ledger.PartQuantityPerOwnerOfResource, "quantity_max_per_owner_of_resource", func(t *rapid.T, p *ledger.PolicyPatch) {
			p.QuantityPerOwnerOfResourceMax = units(t, "of resource")
		}, func(p ledger.Policy) any { return p.QuantityPerOwnerOfResourceMax }},
		{ledger.PartHoldsPerOwner, "holds_max_per_owner", func(t *rapid.T, p *ledger.PolicyPatch) { p.HoldsPerOwnerMax = units(t, "holds") }, func(p ledger.Policy) any { return p.HoldsPerOwnerMax }},
		{ledger.PartExpiries, "expiries_max", func(t *rapid.T, p *ledger.PolicyPatch) { p.ExpiriesMax = units(t, "expiries") }, func(p ledger.Policy) any { return p.ExpiriesMax }},
		{ledger.PartCooldown, "cooldown_seconds", func(t *rapid.T, p *ledger.PolicyPatch) { p.CooldownFor = seconds(t, "cooldown", 0, 5, 6) }, func(p ledger.Policy) any { return p.CooldownFor }},
		{ledger.PartHoldsPerSignal, "holds_max_per_signal", func(t *rapid.T, p *ledger.PolicyPatch) { p.HoldsPerSignalMax = units(t, "per signal") }, func(p ledger.Policy) any { return p.HoldsPerSignalMax }},
		{ledger.PartSaleFrom, "sale_from", func(t *rapid.T, p *ledger.PolicyPatch) { p.SaleFrom = hours(t, "from") }, func(p ledger.Policy) any { return p.SaleFrom }},
		{ledger.PartSaleUntil, "sale_until", func(t *rapid.T, p *ledger.PolicyPatch) { p.SaleUntil = hours(t, "until") }, func(p ledger.Policy) any { return p.SaleUntil }},
		{ledger.PartSaleEnds, "sale_ends_seconds_before_start", func(t *rapid.T, p *ledger.PolicyPatch) { p.SaleEndsFor = seconds(t, "ends", 0, 5) }, func(p ledger.Policy) any { return [2]any{p.SaleEnds, p.SaleEndsFor} }},
		{ledger.PartSaleTimeZone, "sale_time_zone", func(t *rapid.T, p *ledger.PolicyPatch) { p.SaleTimeZone = drawn(t, "zone", "Asia/Seoul", "") }, func(p ledger.Policy) any { return p.SaleTimeZone }},
		{ledger.PartScarce, "scarce", func(t *rapid.T, p *ledger.PolicyPatch) { p.Scarce = drawn(t, "scarce", true, false) }, func(p ledger.Policy) any { return p.Scarce }},
	}
}

// drawValidLayer draws a layer as the catalogue may say it.
func drawValidLayer(t *rapid.T, cases []partCase) ledger.PolicyLayer {
	patch := ledger.PolicyPatch{}
	for _, c := range cases {
		if rapid.Bool().Draw(t, "says "+c.name) {
			c.patch(t, &patch)
		}
	}
	layer := patch.Apply(ledger.InheritAll())
	if layer.Validate() != nil {
		t.Skip("nobody may say that")
	}
	return layer
}

// The whole policy of a slot takes each part from the nearest layer that says it, and from
// the default where none does. Only parts that contradict each other give way, the one of
// the farther layer, and what comes out is a policy that a slot could say all by itself.
func TestPolicyTakesEachPartFromTheNearestLayer(t *testing.T) {
	cases := partCases()
	rapid.Check(t, func(t *rapid.T) {
		slot := ledger.Slot{ID: "S", ResourceType: "show", ResourceID: "hamlet"}
		scopes := ledger.Scopes("show", "hamlet")
		layers := []ledger.PolicyLayer{drawValidLayer(t, cases), drawValidLayer(t, cases), drawValidLayer(t, cases)}
		policies := []ledger.ScopePolicy{
			{Scope: ledger.PolicyScope{ResourceType: "show", ResourceID: "other"}, Layer: layers[2]},
			{Scope: scopes[1], Layer: layers[1]}, {Scope: scopes[0], Layer: layers[0]},
		}
		slot.Policy, slot.Inherits = layers[2].Policy, layers[2].Inherits
		whole := slot.Resolve(policies)
		nearest, place := ledger.DefaultPolicy(), make(map[ledger.PolicyParts]int)
		want := make(map[ledger.PolicyParts]any)
		for _, c := range cases {
			want[c.part] = c.value(nearest)
			for i, layer := range layers {
				if layer.Inherits&c.part == 0 {
					want[c.part], place[c.part] = c.value(layer.Policy), i+1
				}
			}
		}
		settle(want, place)
		for _, c := range cases {
			if got := c.value(whole.Policy); got != want[c.part] {
				t.Errorf("%s is %v, want %v of layer %d", c.name, got, want[c.part], place[c.part])
			}
		}
		if whole.Inherits != 0 {
			t.Errorf("the whole policy inherits %v", whole.Inherits.Names())
		}
		if err := (ledger.PolicyLayer{Policy: whole.Policy}).Validate(); err != nil {
			t.Errorf("no slot could say the whole policy by itself: %v", err)
		}
	})
}

// settle lets the farther one of two parts that contradict each other give way.
func settle(want map[ledger.PolicyParts]any, place map[ledger.PolicyParts]int) {
	if want[ledger.PartHold].(time.Duration) > want[ledger.PartHoldMax].(time.Duration) {
		if place[ledger.PartHold] > place[ledger.PartHoldMax] {
			want[ledger.PartHoldMax] = want[ledger.PartHold]
		} else {
			want[ledger.PartHold] = want[ledger.PartHoldMax]
		}
	}
	from, until := want[ledger.PartSaleFrom].(time.Time), want[ledger.PartSaleUntil].(time.Time)
	if !from.IsZero() && !until.IsZero() && !from.Before(until) {
		if place[ledger.PartSaleFrom] > place[ledger.PartSaleUntil] {
			want[ledger.PartSaleUntil] = time.Time{}
		} else {
			want[ledger.PartSaleFrom] = time.Time{}
		}
	}
	if want[ledger.PartCooldown].(time.Duration) == 0 {
		want[ledger.PartExpiries] = ledger.Units(0)
	}
}

// A patch of a part makes that part, and no other one, the layer's own; to inherit it again
// takes back all that the patch did.
func TestPolicyPatchNamesEachPartAlone(t *testing.T) {
	cases := partCases()
	names := make([]string, 0, len(cases))
	all := ledger.PolicyParts(0)
	for _, c := range cases {
		names, all = append(names, c.name), all|c.part
	}
	if got := ledger.AllPolicyParts.Names(); !slices.Equal(got, names) || all != ledger.AllPolicyParts {
		t.Fatalf("the parts are %v, want %v", got, names)
	}
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SampledFrom(cases).Draw(t, "part")
		patch := ledger.PolicyPatch{}
		c.patch(t, &patch)
		layer := patch.Apply(ledger.InheritAll())
		if layer.Inherits != ledger.AllPolicyParts&^c.part {
			t.Errorf("a patch of %s leaves %v", c.name, layer.Inherits.Names())
		}
		for _, other := range cases {
			if other.part != c.part && other.value(layer.Policy) != other.value(ledger.DefaultPolicy()) {
				t.Errorf("a patch of %s changes %s", c.name, other.name)
			}
		}
		parts, err := ledger.PolicyPartsNamed([]string{c.name})
		if err != nil || parts != c.part {
			t.Errorf("%s names the parts %v, error %v", c.name, parts.Names(), err)
		}
		back := ledger.PolicyPatch{Inherit: c.part}.Apply(layer)
		if back.Inherits != ledger.AllPolicyParts || !back.Policy.Equal(ledger.DefaultPolicy()) {
			t.Errorf("with %s inherited again the layer is %+v", c.name, back)
		}
	})
	if _, err := ledger.PolicyPartsNamed([]string{"hold_seconds", "colour"}); ledger.CodeOf(err) != ledger.CodeInvalid || !strings.Contains(err.Error(), `"colour"`) {
		t.Errorf("a part that no policy has: %v", err)
	}
}

// A layer between must not leave a mark on a part that it does not say.
func TestPolicyOfTheMiddleLeavesNoMark(t *testing.T) {
	hour, minute, halfHour := time.Hour, time.Minute, 30*time.Minute
	slot := ledger.Slot{ID: "S", ResourceType: "show", ResourceID: "hamlet"}
	own := ledger.PolicyPatch{HoldForMax: &hour}.Apply(ledger.InheritAll())
	slot.Policy, slot.Inherits = own.Policy, own.Inherits
	whole := slot.Resolve([]ledger.ScopePolicy{
		{Scope: ledger.PolicyScope{ResourceType: "show"}, Layer: ledger.PolicyPatch{HoldFor: &halfHour}.Apply(ledger.InheritAll())},
		{Scope: ledger.PolicyScope{ResourceType: "show", ResourceID: "hamlet"}, Layer: ledger.PolicyPatch{HoldForMax: &minute}.Apply(ledger.InheritAll())},
	})
	if whole.Policy.HoldFor != halfHour || whole.Policy.HoldForMax != hour {
		t.Errorf("the life is %v of at most %v, want the type's 30m and the slot's hour", whole.Policy.HoldFor, whole.Policy.HoldForMax)
	}
}

// Each bound of the limits and of the sale is shown from both sides.
func TestPolicyLayerValidate(t *testing.T) {
	tests := []struct {
		name  string
		alter func(*ledger.PolicyLayer)
		says  string // what the refusal names; "" for no refusal
	}{
		{"as it is", func(*ledger.PolicyLayer) {}, ""},
		{"nothing said", func(l *ledger.PolicyLayer) { *l = ledger.InheritAll() }, ""},
		{"a part that no policy has", func(l *ledger.PolicyLayer) { l.Inherits = ledger.AllPolicyParts + 1 }, "no policy has"},
		{"what is inherited is not looked at", func(l *ledger.PolicyLayer) { l.Policy.HoldFor, l.Inherits = -1, ledger.PartHold }, ""},
		{"the largest limit", func(l *ledger.PolicyLayer) { l.Policy.QuantityPerOwnerMax = ledger.OwnerLimitMax }, ""},
		{"a limit too large", func(l *ledger.PolicyLayer) { l.Policy.QuantityPerOwnerMax = ledger.OwnerLimitMax + 1 }, "quantity_max_per_owner must"},
		{"a negative limit of a resource", func(l *ledger.PolicyLayer) { l.Policy.QuantityPerOwnerOfResourceMax = -1 }, "quantity_max_per_owner_of_resource must"},
		{"a negative limit of holds", func(l *ledger.PolicyLayer) { l.Policy.HoldsPerOwnerMax = -1 }, "holds_max_per_owner must"},
		{"a negative limit of a signal", func(l *ledger.PolicyLayer) { l.Policy.HoldsPerSignalMax = -1 }, "holds_max_per_signal must"},
		{"a negative limit of expired holds", func(l *ledger.PolicyLayer) { l.Policy.ExpiriesMax = -1 }, "expiries_max must"},
		{"expired holds with a cool-down", func(l *ledger.PolicyLayer) { l.Policy.ExpiriesMax, l.Policy.CooldownFor = 1, time.Second }, ""},
		{"expired holds without a cool-down", func(l *ledger.PolicyLayer) { l.Policy.ExpiriesMax = 1 }, "cooldown_seconds of 1"},
		{"expired holds with a cool-down of another layer", func(l *ledger.PolicyLayer) {
			l.Policy.ExpiriesMax, l.Inherits = 1, ledger.PartCooldown
		}, "beside it"},
		{"a cool-down alone", func(l *ledger.PolicyLayer) { l.Policy.CooldownFor = ledger.HoldForLimit }, ""},
		{"a cool-down too long", func(l *ledger.PolicyLayer) { l.Policy.CooldownFor = ledger.HoldForLimit + 1 }, "cooldown_seconds must"},
		{"a negative cool-down", func(l *ledger.PolicyLayer) { l.Policy.CooldownFor = -1 }, "cooldown_seconds must"},
		{"a sale of a moment", func(l *ledger.PolicyLayer) { l.Policy.SaleFrom, l.Policy.SaleUntil = noon, noon.Add(time.Millisecond) }, ""},
		{"a sale that ends when it begins", func(l *ledger.PolicyLayer) { l.Policy.SaleFrom, l.Policy.SaleUntil = noon, noon }, "later than sale_from"},
		{"a beginning finer than a millisecond", func(l *ledger.PolicyLayer) { l.Policy.SaleFrom = noon.Add(1) }, "whole milliseconds"},
		{"an end finer than a millisecond", func(l *ledger.PolicyLayer) { l.Policy.SaleUntil = noon.Add(1) }, "whole milliseconds"},
		{"a sale that ends at the start", func(l *ledger.PolicyLayer) { l.Policy.SaleEnds = true }, ""},
		{"a sale that ends after the start", func(l *ledger.PolicyLayer) { l.Policy.SaleEnds, l.Policy.SaleEndsFor = true, -1 }, "sale_ends_seconds_before_start must"},
		{"a sale that ends too early", func(l *ledger.PolicyLayer) { l.Policy.SaleEnds, l.Policy.SaleEndsFor = true, ledger.CancelForLimit+1 }, "sale_ends_seconds_before_start must"},
		{"the longest time zone", func(l *ledger.PolicyLayer) { l.Policy.SaleTimeZone = strings.Repeat("x", ledger.TimeZoneCharactersMax) }, ""},
		{"a time zone too long", func(l *ledger.PolicyLayer) {
			l.Policy.SaleTimeZone = strings.Repeat("x", ledger.TimeZoneCharactersMax+1)
		}, "sale_time_zone must"},
		{"a life alone moves the longest life", func(l *ledger.PolicyLayer) { l.Policy.HoldFor, l.Inherits = 2*time.Hour, ledger.PartHoldMax }, ""},
		{"a longest life alone moves the life", func(l *ledger.PolicyLayer) { l.Policy.HoldForMax, l.Inherits = time.Minute, ledger.PartHold }, ""},
		{"a longest life too short", func(l *ledger.PolicyLayer) { l.Policy.HoldForMax, l.Inherits = 0, ledger.PartHold }, "hold_max_seconds must"},
	}
	for _, test := range tests {
		layer := ledger.PolicyLayer{Policy: ledger.DefaultPolicy()}
		test.alter(&layer)
		err := layer.Validate()
		if test.says == "" && err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if test.says != "" && (ledger.CodeOf(err) != ledger.CodeInvalid || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: error is %v, want it to say %q", test.name, err, test.says)
		}
	}
}

func TestSetPolicy(t *testing.T) {
	scope := ledger.PolicyScope{ResourceType: "show", ResourceID: "hamlet"}
	minute := time.Minute
	layer := ledger.PolicyPatch{HoldFor: &minute}.Apply(ledger.InheritAll())
	first, err := ledger.SetPolicy(scope, ledger.ScopePolicy{}, layer, originOf("first"), noon)
	if err != nil || first.Validate() != nil {
		t.Fatalf("the first policy: %v, %v", err, first.Validate())
	}
	stored := first.Policies[0].Next
	if stored.Version != 1 || stored.CreatedAt != noon || first.Policies[0].Replaces != 0 || first.Events[0].Subject() != "policy/show/hamlet" || first.Events[0].Type != ledger.EventPolicyChanged {
		t.Errorf("the first policy is %+v, told by %+v", first.Policies[0], first.Events[0])
	}
	later := noon.Add(time.Hour)
	leftOver := layer
	leftOver.Policy.GraceFor = time.Hour // inherited, so it means nothing
	for name, same := range map[string]ledger.PolicyLayer{"the same": layer, "the same with something left over": leftOver} {
		if again, err := ledger.SetPolicy(scope, stored, same, originOf("again"), later); err != nil || !again.Empty() {
			t.Errorf("%s has %d actions, error %v", name, again.Actions(), err)
		}
	}
	second, err := ledger.SetPolicy(scope, stored, ledger.InheritAll(), originOf("second"), later)
	if err != nil || second.Validate() != nil {
		t.Fatalf("the second policy: %v, %v", err, second.Validate())
	}
	if next := second.Policies[0].Next; next.Version != 2 || next.CreatedAt != noon || next.UpdatedAt != later || second.Policies[0].Replaces != 1 {
		t.Errorf("the second policy is %+v", second.Policies[0])
	}
	wide, err := ledger.SetPolicy(ledger.PolicyScope{ResourceType: "show"}, ledger.ScopePolicy{}, leftOver, originOf("wide"), noon)
	if err != nil || wide.Policies[0].Next.Layer != layer {
		t.Errorf("what is left over is kept: %+v, error %v", wide.Policies, err)
	}
	bad := layer
	bad.Policy.HoldFor = 0
	for name, try := range map[string]struct {
		scope ledger.PolicyScope
		layer ledger.PolicyLayer
	}{
		"no type": {ledger.PolicyScope{ResourceID: "hamlet"}, layer}, "a type with a slash": {ledger.PolicyScope{ResourceType: "a/b"}, layer},
		"a resource with a slash": {ledger.PolicyScope{ResourceType: "show", ResourceID: "a/b"}, layer}, "a life of nothing": {scope, bad},
	} {
		if change, err := ledger.SetPolicy(try.scope, ledger.ScopePolicy{}, try.layer, originOf("bad"), noon); ledger.CodeOf(err) != ledger.CodeInvalid || !change.Empty() {
			t.Errorf("%s: %d actions, error %v", name, change.Actions(), err)
		}
	}
}

// A hold can be made from the first millisecond of the sale to the last.
func TestOnSale(t *testing.T) {
	starts := noon.Add(10 * time.Hour)
	tests := []struct {
		name   string
		policy ledger.Policy
		timed  bool
		at     time.Time
		want   ledger.Code
	}{
		{"no window", ledger.Policy{}, true, starts.Add(time.Hour), ""},
		{"before the beginning", ledger.Policy{SaleFrom: noon}, false, noon.Add(-1), ledger.CodeSaleNotOpen},
		{"at the beginning", ledger.Policy{SaleFrom: noon}, false, noon, ""},
		{"just before the end", ledger.Policy{SaleUntil: noon}, false, noon.Add(-1), ""},
		{"at the end", ledger.Policy{SaleUntil: noon}, false, noon, ledger.CodeSaleOver},
		{"an hour before the start, just in time", ledger.Policy{SaleEnds: true, SaleEndsFor: time.Hour}, true, starts.Add(-time.Hour - 1), ""},
		{"an hour before the start", ledger.Policy{SaleEnds: true, SaleEndsFor: time.Hour}, true, starts.Add(-time.Hour), ledger.CodeSaleOver},
		{"at the start itself", ledger.Policy{SaleEnds: true}, true, starts, ledger.CodeSaleOver},
		{"the end before the start means nothing where it is not set", ledger.Policy{SaleEndsFor: time.Hour}, true, starts, ""},
		{"nor without a start", ledger.Policy{SaleEnds: true, SaleEndsFor: time.Hour}, false, starts, ""},
		{"the earlier end counts, that of the window", ledger.Policy{SaleUntil: noon, SaleEnds: true}, true, noon, ledger.CodeSaleOver},
		{"the earlier end counts, that of the start", ledger.Policy{SaleUntil: starts.Add(time.Hour), SaleEnds: true}, true, starts, ledger.CodeSaleOver},
		{"over is over, although the sale would begin later", ledger.Policy{SaleFrom: starts.Add(2 * time.Hour), SaleEnds: true}, true, starts.Add(time.Hour), ledger.CodeSaleOver},
	}
	for _, test := range tests {
		slot := ledger.Slot{ID: "S", Policy: test.policy}
		if test.timed {
			slot.StartsAt = starts
		}
		err := slot.OnSale(test.at)
		if ledger.CodeOf(err) != test.want {
			t.Errorf("%s: answer is %v, want %q", test.name, err, test.want)
		}
	}
	var early *ledger.Error
	err := ledger.Slot{ID: "S", Policy: ledger.Policy{SaleFrom: noon}}.OnSale(noon.Add(-time.Minute))
	if !asError(err, &early) || early.RetryAfter != time.Minute || !early.OpensAt.Equal(noon) || !slices.Equal(early.Slots, []ledger.SlotID{"S"}) {
		t.Errorf("who is a minute early is told %+v", early)
	}
}
