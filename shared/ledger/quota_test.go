package ledger_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

func asError(err error, target **ledger.Error) bool { return errors.As(err, target) }

// limited is a slot of the resource show/hamlet with a policy, of 100 units on one shard.
func limited(t testing.TB, id ledger.SlotID, alter func(*ledger.Policy)) ledger.Slot {
	t.Helper()
	slot, _ := mustNewSlot(t, id, 100, 1)
	alter(&slot.Policy)
	return slot
}

func unlimited(*ledger.Policy) {}

// planOf is a hold of one unit of each slot, at 500.
func planOf(units ledger.Units, slots ...ledger.Slot) ledger.HoldPlan {
	plan := ledger.HoldPlan{
		ID: holdID("H"), Owner: "U-1", Slots: make(map[ledger.SlotID]ledger.Slot), Allocations: make(map[ledger.SlotID][]ledger.Allocation),
	}
	for _, slot := range slots {
		plan.Slots[slot.ID] = slot
		plan.Quotes = append(plan.Quotes, ledger.Quote{Slot: slot.ID, Quantity: units, UnitAmount: 500})
		plan.Allocations[slot.ID] = []ledger.Allocation{{Shard: 0, Quantity: units}}
	}
	return plan
}

func mustHold(t testing.TB, plan ledger.HoldPlan) ledger.Change {
	t.Helper()
	change, err := ledger.NewHold(plan, originOf("hold"), noon)
	if err == nil {
		err = change.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	return change
}

// A hold is counted as what the policies of its slots limit, and as nothing else.
func TestNewHoldCountsWhatIsLimited(t *testing.T) {
	perSlot := limited(t, "A", func(p *ledger.Policy) { p.QuantityPerOwnerMax = 5 })
	perResource := limited(t, "B", func(p *ledger.Policy) { p.QuantityPerOwnerOfResourceMax = 9 })
	stricter := limited(t, "C", func(p *ledger.Policy) { p.QuantityPerOwnerOfResourceMax, p.HoldsPerOwnerMax = 7, 3 })
	free := limited(t, "D", unlimited)
	const resource ledger.QuotaKey = "resource/show/hamlet"
	tests := []struct {
		name  string
		slots []ledger.Slot
		want  []ledger.QuotaDelta
	}{
		{"no limit", []ledger.Slot{free}, nil},
		{"of a slot", []ledger.Slot{perSlot, free}, []ledger.QuotaDelta{{Key: "slot/A", Units: 2, Max: 5}}},
		{"of a resource, by the slots with the limit only", []ledger.Slot{perResource, free}, []ledger.QuotaDelta{{Key: resource, Units: 2, Max: 9}}},
		{"of two limits the stricter", []ledger.Slot{perResource, stricter}, []ledger.QuotaDelta{{Key: "holds", Units: 1, Max: 3}, {Key: resource, Units: 4, Max: 7}}},
		{"all", []ledger.Slot{perSlot, perResource, stricter, free}, []ledger.QuotaDelta{
			{Key: "holds", Units: 1, Max: 3}, {Key: resource, Units: 4, Max: 7}, {Key: "slot/A", Units: 2, Max: 5},
		}},
	}
	for _, test := range tests {
		change := mustHold(t, planOf(2, test.slots...))
		var got []ledger.QuotaDelta
		if len(change.Quotas) > 0 {
			got = change.Quotas[0].Deltas
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: counts %+v, want %+v", test.name, got, test.want)
		}
		if test.want == nil && len(change.Quotas) != 0 {
			t.Errorf("%s: a hold without limits writes %+v", test.name, change.Quotas)
		}
	}
}

// What an owner could never have is refused before anything is written.
func TestNewHoldBeyondALimitByItself(t *testing.T) {
	a := limited(t, "A", func(p *ledger.Policy) { p.QuantityPerOwnerMax = 3 })
	b := limited(t, "B", func(p *ledger.Policy) { p.QuantityPerOwnerOfResourceMax = 3 })
	if change := mustHold(t, planOf(3, a, b)); len(change.Quotas) != 1 {
		t.Errorf("at the limits: %+v", change.Quotas)
	}
	change, err := ledger.NewHold(planOf(4, a, b), originOf("hold"), noon)
	var e *ledger.Error
	want := []ledger.Limit{{Key: "resource/show/hamlet", Max: 3}, {Key: "slot/A", Max: 3}}
	if !asError(err, &e) || e.Code != ledger.CodeLimitReached || !reflect.DeepEqual(e.Limits, want) || !change.Empty() {
		t.Errorf("beyond the limits: %d actions, error %+v", change.Actions(), e)
	}
}

// Every end of a hold takes back what was charged, whatever the policies say by then, and a
// sale keeps the units counted until they are given back.
func TestQuotaFallsByWhatWasCharged(t *testing.T) {
	slot := limited(t, "A", func(p *ledger.Policy) { p.QuantityPerOwnerMax, p.HoldsPerOwnerMax = 5, 2 })
	hold := mustHold(t, planOf(3, slot)).Holds[0].Next
	holds, units := ledger.QuotaDelta{Key: "holds", Units: -1}, ledger.QuotaDelta{Key: "slot/A", Units: -3}
	build := func(c ledger.Change, err error) ledger.Change {
		t.Helper()
		if err == nil {
			err = c.Validate()
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	want := func(name string, c ledger.Change, deltas ...ledger.QuotaDelta) {
		t.Helper()
		if len(c.Quotas) != 1 || !reflect.DeepEqual(c.Quotas[0].Deltas, deltas) {
			t.Errorf("%s changes %+v, want %+v", name, c.Quotas, deltas)
		}
	}
	want("a cancel", build(ledger.Cancel(hold, originOf("end"), noon)), holds, units)
	want("an expiry", build(ledger.Expire(hold, originOf("end"), hold.ReleaseAt)), holds, units)
	confirmed := build(ledger.Confirm(hold, "", originOf("end"), noon))
	want("a confirm", confirmed, holds)
	part := build(ledger.ConfirmPart(hold, []ledger.ReturnLine{{Slot: "A", Quantity: 1}}, "", originOf("end"), noon))
	want("a part confirm", part, holds, ledger.QuotaDelta{Key: "slot/A", Units: -2})
	back := build(ledger.ReturnUnpaid(confirmed.Holds[0].Next, []ledger.ReturnLine{{Slot: "A", Quantity: 2}}, originOf("back"), noon))
	want("a part return", back, ledger.QuotaDelta{Key: "slot/A", Units: -2})
	want("the rest", build(ledger.ReturnUnpaid(back.Holds[0].Next, nil, originOf("back"), noon)), ledger.QuotaDelta{Key: "slot/A", Units: -1})

	over := build(ledger.Reacquire(hold, nil, originOf("late"), hold.ReleaseAt))
	want("a late payment of a hold that was not swept", over, holds)
	canceled := build(ledger.Cancel(hold, originOf("end"), noon)).Holds[0].Next
	late := build(ledger.Reacquire(canceled, map[ledger.SlotID][]ledger.Allocation{"A": {{Shard: 0, Quantity: 3}}}, originOf("late"), noon))
	// It has no limit: the money is there, and the limit was kept when the hold was made.
	want("a late payment of a hold that has ended", late, ledger.QuotaDelta{Key: "slot/A", Units: 3})
}

// A hold counts as expired only where a policy said so, and only if nobody tried to pay.
// Who buys begins anew.
func TestCooldown(t *testing.T) {
	patient := limited(t, "A", func(p *ledger.Policy) { p.ExpiriesMax, p.CooldownFor = 5, time.Minute })
	strict := limited(t, "B", func(p *ledger.Policy) { p.ExpiriesMax, p.CooldownFor = 2, time.Second })
	free := limited(t, "C", unlimited)
	plan := planOf(1, patient, strict)
	first := mustHold(t, plan)
	if want := []ledger.QuotaWrite{{Owner: "U-1", ExpiredBelow: 2}}; !reflect.DeepEqual(first.Quotas, want) {
		t.Errorf("a hold requires %+v, want %+v", first.Quotas, want)
	}
	plan.CooledDown = true
	after := mustHold(t, plan)
	if want := []ledger.QuotaWrite{{Owner: "U-1", LastExpiredBy: noon.Add(-time.Minute), Forget: true}}; !reflect.DeepEqual(after.Quotas, want) {
		t.Errorf("after the cool-down a hold requires %+v, want %+v", after.Quotas, want)
	}
	plan = planOf(1, free)
	plan.CooledDown = true
	if c := mustHold(t, plan); len(c.Quotas) != 0 {
		t.Errorf("a hold without such a policy requires %+v", c.Quotas)
	}

	hold := first.Holds[0].Next
	expired, err := ledger.Expire(hold, originOf("end"), hold.ReleaseAt)
	if want := []ledger.QuotaWrite{{Owner: "U-1", Expired: true}}; err != nil || !reflect.DeepEqual(expired.Quotas, want) {
		t.Errorf("an expiry counts %+v, error %v", expired.Quotas, err)
	}
	tried := hold
	tried.Reservation = theReservation
	expired, err = ledger.Expire(tried, originOf("end"), hold.ReleaseAt)
	if err != nil || len(expired.Quotas) != 0 {
		t.Errorf("an expiry after a try to pay counts %+v, error %v", expired.Quotas, err)
	}
	for name, build := range map[string]func() (ledger.Change, error){
		"a confirm":      func() (ledger.Change, error) { return ledger.Confirm(hold, "", originOf("end"), noon) },
		"a paid confirm": func() (ledger.Change, error) { return ledger.ConfirmPaid(tried, originOf("end"), noon) },
		"a part confirm": func() (ledger.Change, error) {
			return ledger.ConfirmPart(hold, []ledger.ReturnLine{{Slot: "A", Quantity: 1}}, "", originOf("end"), noon)
		},
		"a late payment": func() (ledger.Change, error) { return ledger.Reacquire(tried, nil, originOf("end"), hold.ReleaseAt) },
	} {
		sold, err := build()
		if want := []ledger.QuotaWrite{{Owner: "U-1", Forget: true}}; err != nil || !reflect.DeepEqual(sold.Quotas, want) {
			t.Errorf("%s changes %+v, error %v", name, sold.Quotas, err)
		}
	}
	unblock := ledger.ForgetExpiries("U-1", noon)
	if err := unblock.Validate(); err != nil || !reflect.DeepEqual(unblock.Quotas, []ledger.QuotaWrite{{Owner: "U-1", Forget: true}}) {
		t.Errorf("an operator's unblock is %+v, error %v", unblock, err)
	}
}

// A signal is counted in its hour, only where a policy limits it, by the strictest one.
func TestSignalsAreCountedByTheHour(t *testing.T) {
	signals := []ledger.Signal{{Kind: ledger.SignalDevice, Hash: hashOf('a')}, {Kind: ledger.SignalPaymentMeans, Hash: hashOf('b')}}
	plan := planOf(1, limited(t, "A", func(p *ledger.Policy) { p.HoldsPerSignalMax = 9 }), limited(t, "B", func(p *ledger.Policy) { p.HoldsPerSignalMax = 4 }))
	plan.Signals = signals
	change, err := ledger.NewHold(plan, originOf("hold"), noon.Add(time.Hour-time.Millisecond))
	want := []ledger.SignalWrite{{Signal: signals[0], Window: noon, Max: 4}, {Signal: signals[1], Window: noon, Max: 4}}
	if err != nil || !reflect.DeepEqual(change.Signals, want) || change.Validate() != nil {
		t.Errorf("the signals count as %+v, errors %v, %v", change.Signals, err, change.Validate())
	}
	plan = planOf(1, limited(t, "A", unlimited))
	plan.Signals = signals
	if c := mustHold(t, plan); len(c.Signals) != 0 {
		t.Errorf("without a limit the signals count as %+v", c.Signals)
	}
}

func hashOf(letter byte) string {
	out := make([]byte, ledger.SignalHashCharacters)
	for i := range out {
		out[i] = letter
	}
	return string(out)
}

// Two steps of one owner in one Change write its quota once: what one gives back makes room
// for what the other takes, the stricter limit holds, and what is left of nothing is left
// out.
func TestTogetherAddsUpQuotas(t *testing.T) {
	of := func(owner ledger.OwnerID, deltas ...ledger.QuotaDelta) ledger.QuotaWrite {
		return ledger.QuotaWrite{Owner: owner, Deltas: deltas}
	}
	delta := func(key ledger.QuotaKey, units, most ledger.Units) ledger.QuotaDelta {
		return ledger.QuotaDelta{Key: key, Units: units, Max: most}
	}
	early, late := noon, noon.Add(time.Hour)
	tests := []struct {
		name       string
		a, b, want []ledger.QuotaWrite
	}{
		{"nothing", nil, nil, nil},
		{"of one", []ledger.QuotaWrite{of("U", delta("a", 1, 2))}, nil, []ledger.QuotaWrite{of("U", delta("a", 1, 2))}},
		{"of two owners", []ledger.QuotaWrite{of("U", delta("a", 1, 2))}, []ledger.QuotaWrite{of("V", delta("a", 1, 3))},
			[]ledger.QuotaWrite{of("U", delta("a", 1, 2)), of("V", delta("a", 1, 3))}},
		{"what cancels out", []ledger.QuotaWrite{of("U", delta("a", 1, 0))}, []ledger.QuotaWrite{of("U", delta("a", -1, 0))}, nil},
		{"in order", []ledger.QuotaWrite{of("U", delta("b", 1, 0))}, []ledger.QuotaWrite{of("U", delta("a", -1, 0))},
			[]ledger.QuotaWrite{of("U", delta("a", -1, 0), delta("b", 1, 0))}},
		{"the stricter limit", []ledger.QuotaWrite{of("U", delta("a", 1, 5))}, []ledger.QuotaWrite{of("U", delta("a", 1, 3))},
			[]ledger.QuotaWrite{of("U", delta("a", 2, 3))}},
		{"the limit of what is taken, although more is given back", []ledger.QuotaWrite{of("U", delta("a", -3, 0))}, []ledger.QuotaWrite{of("U", delta("a", 1, 2))},
			[]ledger.QuotaWrite{of("U", delta("a", -2, 2))}},
		{"conditions", []ledger.QuotaWrite{{Owner: "U", ExpiredBelow: 3, LastExpiredBy: late}}, []ledger.QuotaWrite{{Owner: "U", ExpiredBelow: 2, LastExpiredBy: early, Forget: true}},
			[]ledger.QuotaWrite{{Owner: "U", ExpiredBelow: 2, LastExpiredBy: early, Forget: true}}},
		{"a condition of one", []ledger.QuotaWrite{{Owner: "U", Expired: true}}, []ledger.QuotaWrite{{Owner: "U", ExpiredBelow: 2, LastExpiredBy: early}},
			[]ledger.QuotaWrite{{Owner: "U", Expired: true, ExpiredBelow: 2, LastExpiredBy: early}}},
	}
	for _, test := range tests {
		got := ledger.Together(ledger.Change{Quotas: test.a}, ledger.Change{Quotas: test.b}).Quotas
		for i := range got {
			if len(got[i].Deltas) == 0 {
				got[i].Deltas = nil
			}
		}
		if len(got) != len(test.want) || len(got) > 0 && !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: together they write %+v, want %+v", test.name, got, test.want)
		}
	}
}

// Together leaves nothing of either out.
func TestTogetherKeepsAll(t *testing.T) {
	sale, terms := ledger.Terms{Shards: 1}, ledger.Terms{Shards: 2}
	a := ledger.Change{At: noon, Stock: []ledger.StockWrite{{Slot: "S", Delta: ledger.Counters{Held: 1}}}}
	b := ledger.Change{
		At: noon, Holds: make([]ledger.HoldWrite, 1), Reservations: make([]ledger.ReservationWrite, 1), Slots: make([]ledger.SlotWrite, 1),
		Policies: make([]ledger.PolicyWrite, 1), NewStock: make([]ledger.Stock, 1), Quotas: []ledger.QuotaWrite{{Owner: "U", Forget: true}},
		Signals: make([]ledger.SignalWrite, 1), Events: make([]ledger.Event, 1), Uniqueness: make([]ledger.Uniqueness, 1),
		Archives: make([]ledger.ArchiveMark, 1), AtRest: make([]ledger.Reservation, 1),
		Idempotency: &ledger.IdempotencyRecord{}, Lease: &ledger.LeaseHeld{},
		Stock: []ledger.StockWrite{
			{Slot: "R"}, {Slot: "S", Delta: ledger.Counters{Held: 1}, Sale: &sale, Open: true, SetTerms: &terms, Archived: ledger.Counters{Held: 2}},
		},
	}
	want := b
	want.Stock = []ledger.StockWrite{b.Stock[0], {Slot: "S", Delta: ledger.Counters{Held: 2}, Sale: &sale, Open: true, SetTerms: &terms, Archived: ledger.Counters{Held: 2}}}
	if got := ledger.Together(a, b); !reflect.DeepEqual(got, want) {
		t.Errorf("a and b are %+v", got)
	}
	if got := ledger.Together(b, a); !reflect.DeepEqual(got, want) {
		t.Errorf("b and a are %+v", got)
	}
	if a.Stock[0].Sale != nil || a.Stock[0].Delta.Held != 1 {
		t.Errorf("a has become %+v", a.Stock)
	}
}

func TestQuotaKeyTellsItsSlot(t *testing.T) {
	for key, want := range map[ledger.QuotaKey]ledger.SlotID{ledger.SlotQuota("A"): "A", ledger.QuotaHolds: "", ledger.ResourceQuota("slot", "A"): ""} {
		slot, found := key.Slot()
		if found != (want != "") || found && slot != want {
			t.Errorf("%s is of slot %q: %t", key, slot, found)
		}
	}
}
