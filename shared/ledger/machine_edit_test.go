package ledger_test

import (
	"context"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/ledger"
)

// scopes are the scopes of the machine's slots: A and B are of one resource, C of another.
var scopes = []ledger.PolicyScope{
	{ResourceType: "show"}, {ResourceType: "show", ResourceID: "hamlet"}, {ResourceType: "show", ResourceID: "macbeth"},
}

func resourceOf(id ledger.SlotID) ledger.ResourceID {
	if id == "C" {
		return "macbeth"
	}
	return "hamlet"
}

// drawLayer draws what one place says of a policy, and the same for the model.
func drawLayer(t *rapid.T) (ledger.PolicyLayer, modelPolicy) {
	layer, says := ledger.InheritAll(), modelPolicy{}
	draw := func(name string, values []int64, set func(p *ledger.PolicyPatch, value int64)) {
		if !rapid.Bool().Draw(t, "says "+name) {
			return
		}
		says[name] = rapid.SampledFrom(values).Draw(t, name)
		patch := ledger.PolicyPatch{}
		set(&patch, says[name])
		layer = patch.Apply(layer)
	}
	milliseconds := func(value int64) *time.Duration { d := time.Duration(value) * time.Millisecond; return &d }
	units := func(value int64) *ledger.Units { u := ledger.Units(value); return &u }
	draw(saysLife, []int64{60_000, 10_000, 2_000}, func(p *ledger.PolicyPatch, v int64) { p.HoldFor = milliseconds(v) })
	draw(saysPerSlot, []int64{6, 0, 3}, func(p *ledger.PolicyPatch, v int64) { p.QuantityPerOwnerMax = units(v) })
	draw(saysPerOwner, []int64{8, 0, 4}, func(p *ledger.PolicyPatch, v int64) { p.QuantityPerOwnerOfResourceMax = units(v) })
	draw(saysHolds, []int64{3, 0, 1}, func(p *ledger.PolicyPatch, v int64) { p.HoldsPerOwnerMax = units(v) })
	draw(saysExpiries, []int64{1, 2}, func(p *ledger.PolicyPatch, v int64) {
		p.ExpiriesMax, p.CooldownFor = units(v), milliseconds(20_000*v)
		says[saysCooldownMs] = 20_000 * v
	})
	return layer, says
}

// operate is a step of the catalogue or of an operator.
func (m *machine) operate(t *rapid.T) {
	switch rapid.SampledFrom([]string{"put", "put", "put", "policy", "policy", "forgive"}).Draw(t, "operate") {
	case "put":
		m.put(t, rapid.SampledFrom([]ledger.SlotID{"A", "B", "C"}).Draw(t, "slot"))
	case "policy":
		m.setPolicy(t)
	default:
		m.forgive(t)
	}
}

// setPolicy says something for all slots of a scope. It reaches new holds only.
func (m *machine) setPolicy(t *rapid.T) {
	scope := rapid.SampledFrom(scopes).Draw(t, "scope")
	layer, says := drawLayer(t)
	before := m.dump(t)
	m.answered(t, "setPolicy", m.desk.setPolicy(scope, layer), "", before)
	place := "show"
	if scope.ResourceID != "" {
		place = "show/" + string(scope.ResourceID)
	}
	m.model.says[place] = says
}

// forgive is the operator's unblock.
func (m *machine) forgive(t *rapid.T) {
	owner := ownerIDs.Draw(t, "owner")
	fatal(t, m.store.Commit(context.Background(), ledger.ForgetExpiries(owner, m.now)))
	m.model.owners[string(owner)].expired = 0
}

// put defines a slot or edits it: its units, its shards, its terms and what it says of its
// policy.
func (m *machine) put(t *rapid.T, id ledger.SlotID) {
	layer, says := drawLayer(t)
	shards, defined := m.shards[id]
	if !defined || rapid.Bool().Draw(t, "reshard") {
		shards = rapid.IntRange(1, 4).Draw(t, "shards")
	}
	put := modelPut{
		resource: string(resourceOf(id)), own: says,
		units: 16 - rapid.Int64Range(0, 16).Draw(t, "fewer units"), price: amounts.Draw(t, "price"),
		most: rapid.SampledFrom([]int64{3, 10_000, 10_000}).Draw(t, "most"),
		kept: defined && rapid.Bool().Draw(t, "kept"), accept: rapid.Bool().Draw(t, "accept"),
		open: !rarely(t, "closed"), lost: rapid.Bool().Draw(t, "lost"),
		longest: rapid.SampledFrom([]int64{60_000, 90_000}).Draw(t, "longest"),
	}
	before := m.dump(t)
	err := m.putSlot(id, func(d *ledger.SlotDefinition) {
		d.ResourceID, d.Policy, d.Inherits = resourceOf(id), layer.Policy, layer.Inherits
		if !put.kept {
			d.Capacity, d.KeepCapacity = ledger.Units(put.units), false
		}
		d.AcceptOversold = put.accept
		d.Terms.Open, d.Terms.Price, d.Terms.Shards = put.open, ledger.Money{AmountMinor: put.price, Currency: "USD"}, shards
		most, longest, lost := ledger.Units(put.most), time.Duration(put.longest)*time.Millisecond, put.lost
		whole := ledger.PolicyPatch{QuantityPerHoldMax: &most, HoldForMax: &longest, NoRestock: &lost}.Apply(ledger.PolicyLayer{Policy: d.Policy, Inherits: d.Inherits})
		d.Policy, d.Inherits = whole.Policy, whole.Inherits
	})
	m.answered(t, "put", err, m.model.edit(string(id), put), before)
	if err == nil {
		m.shards[id] = shards
	}
}

// editOne gives a hold other lines: often what it has with one line changed.
func (m *machine) editOne(t *rapid.T) {
	h := m.oneThatIs(t, "HELD")
	quotes := drawQuotes(t)
	if rapid.Bool().Draw(t, "from what it has") {
		quotes = nil
		for _, slot := range []string{"A", "B", "C"} {
			if line := h.lines[slot]; line != nil && !rarely(t, "without it") {
				units := line.units + rapid.SampledFrom([]int64{0, 0, 1, -1}).Draw(t, "more")
				quotes = append(quotes, ledger.Quote{Slot: ledger.SlotID(slot), Quantity: ledger.Units(units), UnitAmount: line.price})
			}
		}
		if len(quotes) == 0 || rapid.Bool().Draw(t, "one more") {
			quotes = append(quotes, ledger.Quote{Slot: slotIDs.Draw(t, "slot"), Quantity: 1, UnitAmount: 500})
		}
	}
	extend := rapid.SampledFrom([]int64{0, 0, 0, 1_000}).Draw(t, "extend_ms")
	m.edited(t, "edit", h, quotes, extend)
}

// extendOne lets a hold live longer, or tries to.
func (m *machine) extendOne(t *rapid.T) {
	h := m.oneThatIs(t, "HELD")
	m.edited(t, "extend", h, nil, rapid.SampledFrom([]int64{h.life, h.life, h.life + 1_000, 1_000}).Draw(t, "extend_ms"))
}

func (m *machine) edited(t *rapid.T, what string, h *modelHold, quotes []ledger.Quote, extend int64) {
	t.Helper()
	before := m.dump(t)
	var lines []modelLine
	if quotes != nil {
		lines = modelLines(quotes)
	}
	err := m.editHold(ledger.HoldID(h.id), quotes, time.Duration(extend)*time.Millisecond)
	code, short := m.model.change(h.id, lines, extend)
	m.answered(t, what, err, code, before)
	wantShort(t, err, short)
}

// drawParts draws parts of what a hold has, now and then ones that it has not.
func drawParts(t *rapid.T, h *modelHold) ([]ledger.ReturnLine, []modelBack) {
	var lines []ledger.ReturnLine
	var parts []modelBack
	for range rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(t, "parts") {
		slot := slotIDs.Draw(t, "slot")
		if has := slices.Sorted(maps.Keys(h.lines)); !rarely(t, "other") {
			slot = ledger.SlotID(rapid.SampledFrom(has).Draw(t, "line"))
		}
		units := rapid.SampledFrom([]int64{1, 1, 1, 1, 1, 2, 2, 3, 0}).Draw(t, "units")
		if line := h.lines[string(slot)]; line != nil && rapid.Bool().Draw(t, "all of it") {
			units = line.units
		}
		restock := rapid.SampledFrom([]string{"", "always", "never"}).Draw(t, "restock")
		how := map[string]ledger.Restock{"": ledger.RestockByPolicy, "always": ledger.RestockAlways, "never": ledger.RestockNever}[restock]
		lines = append(lines, ledger.ReturnLine{Slot: slot, Quantity: ledger.Units(units), Restock: how})
		parts = append(parts, modelBack{string(slot), units, restock})
	}
	return lines, parts
}

func (m *machine) confirmPartOf(t *rapid.T) {
	h := m.oneThatIs(t, "HELD")
	lines, parts := drawParts(t, h)
	reference := rapid.SampledFrom([]string{"", "", "pay-1", "pay-4", "pay-5"}).Draw(t, "reference")
	before := m.dump(t)
	err := m.confirmPart(ledger.HoldID(h.id), ledger.PaymentReference(reference), lines)
	m.answered(t, "confirmPart", err, m.model.confirmPart(h.id, reference, parts), before)
}

func (m *machine) returnOne(t *rapid.T) {
	h := m.oneThatIs(t, "CONFIRMED")
	lines, parts := drawParts(t, h)
	before := m.dump(t)
	err := m.giveBack(ledger.HoldID(h.id), lines)
	m.answered(t, "return", err, m.model.giveBack(h.id, parts), before)
}

// checkLines compares each line of each hold with the model's.
func (m *machine) checkLines(t *rapid.T, d dump) {
	t.Helper()
	for i, h := range m.model.holds {
		got := d.Holds[i]
		if len(got.Lines) != len(h.lines) || !slices.IsSortedFunc(got.Lines, func(a, b ledger.Line) int { return int(a.Slot[0]) - int(b.Slot[0]) }) {
			t.Fatalf("P2: hold %s has the lines %+v, the model has %d", h.id, got.Lines, len(h.lines))
		}
		for _, line := range got.Lines {
			want := h.lines[string(line.Slot)]
			if want == nil || int64(line.Quantity) != want.units || int64(line.ReturnedQuantity()) != want.back || line.UnitPrice.AmountMinor != want.price {
				t.Fatalf("P2: hold %s has the line %+v, the model has %+v", h.id, line, want)
			}
		}
		if got.HoldFor.Milliseconds() != h.life || got.HoldForMax.Milliseconds() != h.longest || int64(got.Version) != h.version {
			t.Fatalf("P4: hold %s is %+v, the model has %+v", h.id, got, *h)
		}
	}
}

// checkQuotas requires that what is counted of each owner is what the holds say.
func (m *machine) checkQuotas(t *rapid.T, d dump) {
	t.Helper()
	keys := []string{"holds", "slot/A", "slot/B", "slot/C", "resource/show/hamlet", "resource/show/macbeth"}
	for _, quota := range d.Quotas {
		for _, key := range keys {
			if got, want := int64(quota.Counts[ledger.QuotaKey(key)]), m.model.count(string(quota.Owner), key); got != want {
				t.Fatalf("owner %s is counted %d times in %s, the model counts %d", quota.Owner, got, key, want)
			}
		}
		for key := range quota.Counts {
			if !slices.Contains(keys, string(key)) {
				t.Fatalf("owner %s is counted in %s", quota.Owner, key)
			}
		}
		owner := m.model.owners[string(quota.Owner)]
		if int64(quota.Expired) != owner.expired || owner.expired > 0 && quota.LastExpiredAt.UnixMilli() != owner.lastExpired {
			t.Fatalf("of owner %s %d holds expired, the last one at %v; the model has %+v", quota.Owner, quota.Expired, quota.LastExpiredAt, *owner)
		}
	}
}
