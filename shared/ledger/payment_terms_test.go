package ledger_test

import (
	"reflect"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// A hold of several slots gets of each part of their terms the strictest, in whatever
// order the slots come.
func TestHoldGetsTheStrictestTerms(t *testing.T) {
	kind := ledger.Policy{
		GraceFor: 2 * time.Minute,
		Payment: ledger.PaymentTerms{
			OnDecline: ledger.OnDeclineKeep, LatePayment: ledger.LatePaymentReacquire, LateByProvider: true,
			UnknownFor: 15 * time.Minute, Delivery: ledger.DeliveryNone,
		},
	}
	for name, test := range map[string]struct {
		alter func(*ledger.Policy)
		want  func(*ledger.Policy)
	}{
		"grace":     {func(p *ledger.Policy) { p.GraceFor = time.Minute }, nil},
		"decline":   {func(p *ledger.Policy) { p.Payment.OnDecline = ledger.OnDeclineRelease }, nil},
		"review":    {func(p *ledger.Policy) { p.Payment.LatePayment = ledger.LatePaymentReview }, nil},
		"refund":    {func(p *ledger.Policy) { p.Payment.LatePayment = ledger.LatePaymentRefund }, nil},
		"provider":  {func(p *ledger.Policy) { p.Payment.LateByProvider = false }, nil},
		"unknown":   {func(p *ledger.Policy) { p.Payment.UnknownFor = 0 }, nil},
		"delivery":  {func(p *ledger.Policy) { p.Payment.Delivery = ledger.DeliveryEvent }, nil},
		"not laxer": {func(p *ledger.Policy) { p.GraceFor, p.Payment.UnknownFor = time.Hour, time.Hour }, func(*ledger.Policy) {}},
	} {
		strict, want := kind, kind
		test.alter(&strict)
		if test.want == nil {
			test.want = test.alter
		}
		test.want(&want)
		for _, policies := range [][]ledger.Policy{{kind, strict}, {strict, kind}, {kind, strict, kind}} {
			hold := holdOf(t, policies)
			if hold.GraceFor != want.GraceFor || hold.Terms != want.Payment {
				t.Errorf("%s: got %v, %+v\nwant %v, %+v", name, hold.GraceFor, hold.Terms, want.GraceFor, want.Payment)
			}
		}
	}
	review, refund := kind, kind
	review.Payment.LatePayment, refund.Payment.LatePayment = ledger.LatePaymentReview, ledger.LatePaymentRefund
	for _, policies := range [][]ledger.Policy{{review, refund}, {refund, review}} {
		if got := holdOf(t, policies).Terms.LatePayment; got != ledger.LatePaymentRefund {
			t.Errorf("of review and refund the hold gets %s", got)
		}
	}
}

// holdOf builds a hold of one slot for each policy.
func holdOf(t *testing.T, policies []ledger.Policy) ledger.Hold {
	t.Helper()
	plan := ledger.HoldPlan{ID: holdID("H"), Owner: "U-1", Slots: make(map[ledger.SlotID]ledger.Slot), Allocations: make(map[ledger.SlotID][]ledger.Allocation)}
	for i, policy := range policies {
		id := ledger.SlotID("ABC"[i : i+1])
		slot, _ := mustNewSlot(t, id, 1, 1)
		slot.Policy.GraceFor, slot.Policy.Payment = policy.GraceFor, policy.Payment
		plan.Slots[id] = slot
		plan.Quotes = append(plan.Quotes, ledger.Quote{Slot: id, Quantity: 1, UnitAmount: 500})
		plan.Allocations[id] = []ledger.Allocation{{Quantity: 1}}
	}
	change, err := ledger.NewHold(plan, originOf("hold"), noon)
	if err != nil {
		t.Fatal(err)
	}
	return change.Holds[0].Next
}

func TestPaymentTermsBounds(t *testing.T) {
	for name, test := range map[string]struct {
		alter func(*ledger.Policy)
		valid bool
	}{
		"the default": {func(*ledger.Policy) {}, true},
		"each other way": {func(p *ledger.Policy) {
			p.Payment = ledger.PaymentTerms{OnDecline: "keep", LatePayment: "review", Delivery: "event"}
		}, true},
		"the last other way":       {func(p *ledger.Policy) { p.Payment.LatePayment = "refund" }, true},
		"unknown on_decline":       {func(p *ledger.Policy) { p.Payment.OnDecline = "" }, false},
		"unknown late_payment":     {func(p *ledger.Policy) { p.Payment.LatePayment = "" }, false},
		"unknown delivery":         {func(p *ledger.Policy) { p.Payment.Delivery = "" }, false},
		"negative unknown time":    {func(p *ledger.Policy) { p.Payment.UnknownFor = -1 }, false},
		"longest unknown time":     {func(p *ledger.Policy) { p.Payment.UnknownFor = ledger.HoldForLimit }, true},
		"longer unknown time":      {func(p *ledger.Policy) { p.Payment.UnknownFor = ledger.HoldForLimit + 1 }, false},
		"negative time to cancel":  {func(p *ledger.Policy) { p.CancelFor = -1 }, false},
		"longest time to cancel":   {func(p *ledger.Policy) { p.CancelFor = ledger.CancelForLimit }, true},
		"longer time to cancel":    {func(p *ledger.Policy) { p.CancelFor = ledger.CancelForLimit + 1 }, false},
		"a grant to the owner":     {func(p *ledger.Policy) { p.GrantTo = "points-{owner}" }, true},
		"a grant to a bad slot id": {func(p *ledger.Policy) { p.GrantTo = "points {owner}" }, false},
	} {
		definition := definitionOf(1, 1)
		test.alter(&definition.Policy)
		err := definition.Validate()
		if test.valid != (err == nil) || (err != nil && ledger.CodeOf(err) != ledger.CodeInvalid) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A line keeps what its slot said when it was held: until when it can be given back,
// whether it is sold again, and what it grants to whom.
func TestLineKeepsWhatItsSlotSaid(t *testing.T) {
	slot, _ := mustNewSlot(t, "A", 1, 1)
	slot.StartsAt = noon.Add(48 * time.Hour)
	slot.Policy.CancelFor, slot.Policy.NoRestock, slot.Policy.GrantTo = time.Hour, true, "points-{owner}:{owner}"
	plan := ledger.HoldPlan{
		ID: holdID("H"), Owner: "U-1", Slots: map[ledger.SlotID]ledger.Slot{"A": slot},
		Quotes:      []ledger.Quote{{Slot: "A", Quantity: 1, UnitAmount: 500}},
		Allocations: map[ledger.SlotID][]ledger.Allocation{"A": {{Quantity: 1}}},
	}
	lineOf := func() ledger.Line {
		t.Helper()
		change, err := ledger.NewHold(plan, originOf("hold"), noon)
		if err != nil {
			t.Fatal(err)
		}
		return change.Holds[0].Next.Lines[0]
	}
	want := ledger.Line{
		Slot: "A", Quantity: 1, UnitPrice: slot.Terms.Price, Shards: []ledger.Allocation{{Quantity: 1}},
		CancelUntil: noon.Add(47 * time.Hour), OverAt: noon.Add(48 * time.Hour), NoRestock: true, GrantTo: "points-U-1:U-1",
	}
	if got := lineOf(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	slot.StartsAt = time.Time{}
	plan.Slots["A"] = slot
	if until := lineOf().CancelUntil; !until.IsZero() {
		t.Errorf("a slot without a start can be given back until %v", until)
	}
	plan.Owner = "auth0|with a space"
	change, err := ledger.NewHold(plan, originOf("hold"), noon)
	refusedWith(t, "an owner who makes no slot id", change, err, ledger.CodeInvalid)
}
