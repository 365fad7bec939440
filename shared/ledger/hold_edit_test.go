package ledger_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// baseOf is a hold of two units on each slot, at 500, made at noon for ten minutes of at
// most an hour.
func baseOf(t testing.TB, slots ...ledger.Slot) ledger.Hold {
	t.Helper()
	return mustHold(t, planOf(2, slots...)).Holds[0].Next
}

// editOf is the edit to these quotes, with units of each slot from its first shard.
func editOf(quotes []ledger.Quote, more ledger.Units, slots ...ledger.Slot) ledger.HoldEdit {
	edit := ledger.HoldEdit{Quotes: quotes, Slots: make(map[ledger.SlotID]ledger.Slot), Allocations: make(map[ledger.SlotID][]ledger.Allocation)}
	for _, slot := range slots {
		edit.Slots[slot.ID] = slot
		edit.Allocations[slot.ID] = []ledger.Allocation{{Shard: 0, Quantity: more}}
	}
	return edit
}

func quote(slot ledger.SlotID, units ledger.Units) ledger.Quote {
	return ledger.Quote{Slot: slot, Quantity: units, UnitAmount: 500}
}

func TestEditHoldRefuses(t *testing.T) {
	a, b := limited(t, "A", unlimited), limited(t, "B", unlimited)
	paid := baseOf(t, a)
	paid.Reservation = theReservation
	archived := baseOf(t, a)
	archived.Status, archived.ArchivedIn = ledger.StatusConfirmed, "batch"
	ended := baseOf(t, a)
	ended.Status = ledger.StatusCanceled
	few := limited(t, "B", func(p *ledger.Policy) { p.QuantityPerHoldMax = 1 })
	early := limited(t, "B", func(p *ledger.Policy) { p.SaleFrom = noon.Add(time.Hour) })
	late := limited(t, "B", func(p *ledger.Policy) { p.SaleUntil = noon })
	scarce := limited(t, "B", func(p *ledger.Policy) { p.QuantityPerOwnerMax = 1 })
	badGrant := limited(t, "B", func(p *ledger.Policy) { p.GrantTo = "a/b" })
	euro := limited(t, "B", unlimited)
	euro.Terms.Price.Currency = "EUR"
	shortest := limited(t, "A", func(p *ledger.Policy) { p.HoldForMax = p.HoldFor })
	keepA, addB := quote("A", 2), quote("B", 2)
	tests := []struct {
		name string
		hold ledger.Hold
		edit ledger.HoldEdit
		at   time.Duration // after noon
		want ledger.Code
	}{
		{"archived", archived, ledger.HoldEdit{ExtendFor: time.Minute}, 0, ledger.CodeHoldArchived},
		{"ended", ended, ledger.HoldEdit{ExtendFor: time.Minute}, 0, ledger.CodeHoldNotActive},
		{"just in time", baseOf(t, a), ledger.HoldEdit{ExtendFor: time.Minute}, 10*time.Minute - time.Millisecond, ""},
		{"over", baseOf(t, a), ledger.HoldEdit{ExtendFor: time.Minute}, 10 * time.Minute, ledger.CodeHoldNotActive},
		{"being paid", paid, ledger.HoldEdit{ExtendFor: time.Minute}, 0, ledger.CodePaymentInProgress},
		{"no line", baseOf(t, a), ledger.HoldEdit{Quotes: []ledger.Quote{}}, 0, ledger.CodeInvalid},
		{"a slot that is not there", baseOf(t, a), editOf([]ledger.Quote{keepA, addB}, 2), 0, ledger.CodeSlotNotFound},
		{"a slot that is kept need not be there", baseOf(t, a), editOf([]ledger.Quote{quote("A", 1)}, 0), 0, ""},
		{"more than a hold may have", baseOf(t, a), editOf([]ledger.Quote{keepA, addB}, 2, few), 0, ledger.CodeQuantityOverLimit},
		{"before the sale", baseOf(t, a), editOf([]ledger.Quote{keepA, addB}, 2, early), 0, ledger.CodeSaleNotOpen},
		{"after the sale", baseOf(t, a), editOf([]ledger.Quote{keepA, addB}, 2, late), 0, ledger.CodeSaleOver},
		{"more than the owner may have", baseOf(t, a), editOf([]ledger.Quote{keepA, addB}, 2, scarce), 0, ledger.CodeLimitReached},
		{"a grant that makes no slot", baseOf(t, a), editOf([]ledger.Quote{keepA, addB}, 2, badGrant), 0, ledger.CodeInvalid},
		{"another currency", baseOf(t, a), editOf([]ledger.Quote{keepA, addB}, 2, euro), 0, ledger.CodeInvalid},
		{"what is kept, at another price", baseOf(t, a, b), editOf([]ledger.Quote{{Slot: "A", Quantity: 2, UnitAmount: 400}, addB}, 0), 0, ledger.CodePriceChanged},
		{"what shrinks, at another price", baseOf(t, a), editOf([]ledger.Quote{{Slot: "A", Quantity: 1, UnitAmount: 400}}, 0), 0, ledger.CodePriceChanged},
		{"an extension of less than a second", baseOf(t, a), ledger.HoldEdit{ExtendFor: time.Second - 1}, 0, ledger.CodeInvalid},
		{"a negative extension", baseOf(t, a), ledger.HoldEdit{ExtendFor: -time.Minute}, 0, ledger.CodeInvalid},
		{"more time than is promised at once", baseOf(t, a), ledger.HoldEdit{ExtendFor: 10*time.Minute + 1}, 0, ledger.CodeInvalid},
		{"beyond the longest life", baseOf(t, shortest), ledger.HoldEdit{ExtendFor: time.Minute}, time.Minute, ledger.CodeHoldAtMaximum},
	}
	for _, test := range tests {
		change, err := ledger.EditHold(test.hold, test.edit, originOf("edit"), noon.Add(test.at))
		if ledger.CodeOf(err) != test.want || err != nil && !change.Empty() {
			t.Errorf("%s: %d actions, error %v, want %q", test.name, change.Actions(), err, test.want)
		}
	}
}

// An edit is written only on the hold that was read, while its owner sees it alive, and while
// nobody pays for it.
func TestEditHoldCarriesItsConditions(t *testing.T) {
	a, b := limited(t, "A", unlimited), limited(t, "B", unlimited)
	b.Terms = ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 700, Currency: "USD"}, Shards: 3, Retired: 2}
	hold := baseOf(t, a)
	edit := editOf([]ledger.Quote{quote("A", 1), quote("B", 1)}, 1, b)
	change, err := ledger.EditHold(hold, edit, originOf("edit"), noon.Add(time.Minute))
	if err != nil || change.Validate() != nil {
		t.Fatalf("edit: %v, %v", err, change.Validate())
	}
	w := change.Holds[0]
	if w.Replaces != 1 || w.Status() != ledger.StatusHeld || w.When != ledger.BeforeExpiry || !w.NoOpenAttempt || w.Of == nil || *w.Of != "" {
		t.Errorf("the hold is written under %+v", w)
	}
	sale := &ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 3, Retired: 2}
	want := []ledger.StockWrite{
		{Slot: "A", Shard: 0, Delta: ledger.Counters{Available: 1, Held: -1}},
		{Slot: "B", Shard: 0, Delta: ledger.Counters{Available: -1, Held: 1}, Sale: sale},
	}
	if !reflect.DeepEqual(change.Stock, want) {
		t.Errorf("the stock is written as %+v, want %+v", change.Stock, want)
	}
	if e := change.Events[0]; e.Type != ledger.EventHoldChanged || e.Hold.Status != ledger.StatusHeld || e.Version != 2 {
		t.Errorf("it is told as %+v", e)
	}
}

// A line that grows is quoted anew, all of it; one that stays or shrinks keeps its price and
// what was written down of it.
func TestEditHoldRepricesWhatGrows(t *testing.T) {
	slot := limited(t, "A", unlimited)
	hold := baseOf(t, slot)
	slot.Policy.NoRestock, slot.Policy.QuantityPerOwnerMax = true, 9
	slot.StartsAt = noon.Add(24 * time.Hour)
	grow := editOf([]ledger.Quote{{Slot: "A", Quantity: 3, UnitAmount: 700}}, 1, slot)
	change, err := ledger.EditHold(hold, grow, originOf("edit"), noon)
	if err != nil || change.Validate() != nil {
		t.Fatalf("grow: %v, %v", err, change.Validate())
	}
	line := change.Holds[0].Next.Lines[0]
	if line.Quantity != 3 || line.UnitPrice.AmountMinor != 700 || !line.NoRestock || line.OverAt != slot.StartsAt || len(line.Shards) != 1 || line.Shards[0].Quantity != 3 {
		t.Errorf("the line has become %+v", line)
	}
	// What was not counted so far is counted as a whole now, and so it falls later.
	if want := []ledger.QuotaDelta{{Key: "slot/A", Units: 3, Max: 9}}; !reflect.DeepEqual(change.Quotas[0].Deltas, want) {
		t.Errorf("it counts %+v, want %+v", change.Quotas[0].Deltas, want)
	}
	grown := change.Holds[0].Next
	shrink, err := ledger.EditHold(grown, editOf([]ledger.Quote{{Slot: "A", Quantity: 1, UnitAmount: 700}}, 0), originOf("edit"), noon)
	if err != nil || shrink.Holds[0].Next.Lines[0].UnitPrice.AmountMinor != 700 {
		t.Fatalf("shrink: %+v, error %v", shrink.Holds, err)
	}
	if want := []ledger.QuotaDelta{{Key: "slot/A", Units: -2}}; !reflect.DeepEqual(shrink.Quotas[0].Deltas, want) {
		t.Errorf("it counts %+v, want %+v", shrink.Quotas[0].Deltas, want)
	}
}

// What an edit gives back makes room for what it takes of the same count. The limits of what
// it takes hold for the whole count: nobody gets by an exchange what no new hold would give.
// What only gives back meets no limit.
func TestEditHoldCountsTheDifference(t *testing.T) {
	const resource ledger.QuotaKey = "resource/show/hamlet"
	perResource := func(p *ledger.Policy) { p.QuantityPerOwnerOfResourceMax, p.HoldsPerOwnerMax = 3, 1 }
	a, b := limited(t, "A", perResource), limited(t, "B", perResource)
	lower := limited(t, "B", func(p *ledger.Policy) { p.QuantityPerOwnerOfResourceMax = 1 })
	free := limited(t, "B", unlimited)
	hold := baseOf(t, a)
	tests := []struct {
		name   string
		quotes []ledger.Quote
		more   ledger.Slot
		want   []ledger.QuotaDelta
	}{
		{"two for two", []ledger.Quote{quote("B", 2)}, b, []ledger.QuotaDelta{{Key: ledger.QuotaHolds, Units: 0, Max: 1}, {Key: resource, Units: 0, Max: 3}}},
		{"three for two", []ledger.Quote{quote("B", 3)}, b, []ledger.QuotaDelta{{Key: ledger.QuotaHolds, Units: 0, Max: 1}, {Key: resource, Units: 1, Max: 3}}},
		{"one for two, under a lower limit", []ledger.Quote{quote("B", 1)}, lower, []ledger.QuotaDelta{{Key: resource, Units: -1, Max: 1}}},
		{"what is not limited for what is", []ledger.Quote{quote("B", 2)}, free, []ledger.QuotaDelta{{Key: resource, Units: -2}}},
		{"fewer", []ledger.Quote{quote("A", 1)}, a, []ledger.QuotaDelta{{Key: resource, Units: -1}}},
	}
	for _, test := range tests {
		edit := editOf(test.quotes, test.quotes[0].Quantity, test.more)
		change, err := ledger.EditHold(hold, edit, originOf("edit"), noon)
		if err != nil || change.Validate() != nil || len(change.Quotas) != 1 || !reflect.DeepEqual(change.Quotas[0].Deltas, test.want) {
			t.Errorf("%s counts %+v, errors %v, %v, want %+v", test.name, change.Quotas, err, change.Validate(), test.want)
		}
	}
}

// Slots that come make a hold shorter and stricter; slots that go make it no longer.
func TestEditHoldTightensAndNeverLoosens(t *testing.T) {
	kind, strict := limited(t, "A", unlimited), limited(t, "B", func(p *ledger.Policy) {
		p.HoldFor, p.HoldForMax, p.GraceFor = 2*time.Minute, 3*time.Minute, time.Second
		p.HoldsPerOwnerMax, p.ExpiriesMax, p.CooldownFor, p.Scarce = 5, 3, time.Minute, true
		p.Payment.LatePayment = ledger.LatePaymentRefund
	})
	hold := baseOf(t, kind)
	at := noon.Add(5 * time.Minute)
	change, err := ledger.EditHold(hold, editOf([]ledger.Quote{quote("A", 2), quote("B", 1)}, 1, strict), originOf("edit"), at)
	if err != nil || change.Validate() != nil {
		t.Fatalf("edit: %v, %v", err, change.Validate())
	}
	next := change.Holds[0].Next
	if until := at.Add(2 * time.Minute); next.ExpiresAt != until || next.ReleaseAt != until || next.HoldFor != 2*time.Minute || next.HoldForMax != 3*time.Minute {
		t.Errorf("the hold ends at %v and %v, and is promised for %v of %v", next.ExpiresAt, next.ReleaseAt, next.HoldFor, next.HoldForMax)
	}
	if next.GraceFor != time.Second || next.Terms.LatePayment != ledger.LatePaymentRefund || !next.Scarce || !next.CountsExpiry || !reflect.DeepEqual(next.CountsIn, []ledger.QuotaKey{"holds"}) {
		t.Errorf("the hold has become %+v", next)
	}
	// It has outlived the longest life of the slot that came, so that nothing extends it.
	if _, err := ledger.EditHold(next, ledger.HoldEdit{ExtendFor: time.Minute}, originOf("more"), at); ledger.CodeOf(err) != ledger.CodeHoldAtMaximum {
		t.Errorf("an extension beyond the longest life of what came: %v", err)
	}
	without, err := ledger.EditHold(next, editOf([]ledger.Quote{quote("A", 2)}, 0), originOf("without"), at)
	if err != nil {
		t.Fatal(err)
	}
	if again := without.Holds[0].Next; again.ExpiresAt != next.ExpiresAt || again.HoldFor != next.HoldFor || again.GraceFor != next.GraceFor {
		t.Errorf("without the strict slot the hold is %+v", again)
	}
	kinder := limited(t, "C", func(p *ledger.Policy) { p.HoldFor, p.HoldForMax, p.GraceFor = time.Hour, 2*time.Hour, time.Hour })
	exchanged, err := ledger.EditHold(next, editOf([]ledger.Quote{quote("C", 1)}, 1, kinder), originOf("exchanged"), at)
	if got := exchanged.Holds[0].Next; err != nil || !got.CountsExpiry || !got.Scarce || !reflect.DeepEqual(got.CountsIn, next.CountsIn) {
		t.Errorf("what the hold was counted as is lost by an exchange: %+v, error %v", got, err)
	}
	longer, err := ledger.EditHold(hold, editOf([]ledger.Quote{quote("C", 1)}, 1, kinder), originOf("longer"), at)
	if got := longer.Holds[0].Next; err != nil || got.ExpiresAt != hold.ExpiresAt || got.HoldForMax != hold.HoldForMax || got.GraceFor != hold.GraceFor {
		t.Errorf("with a kinder slot the hold is %+v, error %v", got, err)
	}
}

// An extension moves the end, as far as the longest life goes, and never back.
func TestEditHoldExtends(t *testing.T) {
	slot := limited(t, "A", func(p *ledger.Policy) { p.HoldForMax = 15 * time.Minute })
	hold := baseOf(t, slot)
	for _, test := range []struct {
		at, extend, want time.Duration // after noon
	}{
		{5 * time.Minute, 10 * time.Minute, 15 * time.Minute},
		{5 * time.Minute, 6 * time.Minute, 11 * time.Minute},
		{8 * time.Minute, 10 * time.Minute, 15 * time.Minute}, // cut at the longest life
		{5 * time.Minute, 5 * time.Minute, 0},                 // it ends then already
		{5 * time.Minute, time.Second, 0},
	} {
		change, err := ledger.EditHold(hold, ledger.HoldEdit{ExtendFor: test.extend}, originOf("extend"), noon.Add(test.at))
		switch {
		case err != nil:
			t.Errorf("%+v: %v", test, err)
		case test.want == 0 && !change.Empty():
			t.Errorf("%+v: an extension that changes nothing has %d actions", test, change.Actions())
		case test.want > 0:
			next := change.Holds[0].Next
			if next.ExpiresAt != noon.Add(test.want) || next.ReleaseAt != next.ExpiresAt || len(change.Stock) != 0 || len(change.Quotas) != 0 || change.Validate() != nil {
				t.Errorf("%+v: the hold ends at %v, %+v", test, next.ExpiresAt, change)
			}
		}
	}
}

// An edit of nothing writes nothing, and an edit whose units come from nowhere is a fault and
// not an edit of nothing.
func TestEditHoldOfNothing(t *testing.T) {
	slot := limited(t, "A", unlimited)
	hold := baseOf(t, slot)
	for name, edit := range map[string]ledger.HoldEdit{"nothing named": {}, "the same lines": editOf([]ledger.Quote{quote("A", 2)}, 0)} {
		if change, err := ledger.EditHold(hold, edit, originOf("edit"), noon); err != nil || !change.Empty() {
			t.Errorf("%s: %d actions, error %v", name, change.Actions(), err)
		}
	}
	forgotten := editOf([]ledger.Quote{quote("A", 3)}, 1, slot)
	forgotten.Allocations = nil
	change, err := ledger.EditHold(hold, forgotten, originOf("edit"), noon)
	if err != nil || change.Empty() || change.Validate() == nil {
		t.Errorf("growth without an allocation: %d actions, errors %v, %v", change.Actions(), err, change.Validate())
	}
}

// Units come from new shards and go back from the last ones, and each shard is named once.
func TestEditHoldMovesUnitsOfShards(t *testing.T) {
	slot, _ := mustNewSlot(t, "A", 100, 3)
	plan := planOf(3, slot)
	plan.Allocations["A"] = []ledger.Allocation{{Shard: 0, Quantity: 1}, {Shard: 2, Quantity: 2}}
	hold := mustHold(t, plan).Holds[0].Next
	grow := editOf([]ledger.Quote{quote("A", 6)}, 0, slot)
	grow.Allocations["A"] = []ledger.Allocation{{Shard: 1, Quantity: 1}, {Shard: 2, Quantity: 2}}
	change, err := ledger.EditHold(hold, grow, originOf("grow"), noon)
	if err != nil || change.Validate() != nil {
		t.Fatalf("grow: %v, %v", err, change.Validate())
	}
	grown := change.Holds[0].Next
	if want := []ledger.Allocation{{Shard: 0, Quantity: 1}, {Shard: 1, Quantity: 1}, {Shard: 2, Quantity: 4}}; !reflect.DeepEqual(grown.Lines[0].Shards, want) {
		t.Errorf("grown it takes from %+v, want %+v", grown.Lines[0].Shards, want)
	}
	change, err = ledger.EditHold(grown, editOf([]ledger.Quote{quote("A", 1)}, 0), originOf("shrink"), noon)
	if err != nil || change.Validate() != nil {
		t.Fatalf("shrink: %v, %v", err, change.Validate())
	}
	if want := []ledger.Allocation{{Shard: 0, Quantity: 1}}; !reflect.DeepEqual(change.Holds[0].Next.Lines[0].Shards, want) {
		t.Errorf("shrunk it takes from %+v", change.Holds[0].Next.Lines[0].Shards)
	}
	if want := []ledger.Movement{{Slot: "A", Shard: 1, From: "held", To: "available", Quantity: 1}, {Slot: "A", Shard: 2, From: "held", To: "available", Quantity: 4}}; !reflect.DeepEqual(change.Events[0].Movements, want) {
		t.Errorf("shrunk it tells %+v", change.Events[0].Movements)
	}
	if !reflect.DeepEqual(grown.Lines[0].Shards[2], ledger.Allocation{Shard: 2, Quantity: 4}) {
		t.Error("the hold that was passed has changed")
	}
}

// StockActionsMax bounds what an edit moves, what the hold has then, and what its end moves
// with the grants that go back.
func TestEditHoldStaysWithinATransaction(t *testing.T) {
	wide := func(id ledger.SlotID, items int, grants bool) (ledger.Slot, []ledger.Allocation) {
		slot, _ := mustNewSlot(t, id, 1000, ledger.ShardsMax)
		if grants {
			slot.Policy.GrantTo = "wallet:" + string(id)
		}
		var from []ledger.Allocation
		for shard := range items {
			from = append(from, ledger.Allocation{Shard: ledger.Shard(shard), Quantity: 1})
		}
		return slot, from
	}
	a, fromA := wide("A", 40, false)
	plan := planOf(40, a)
	plan.Allocations["A"] = fromA
	hold := mustHold(t, plan).Holds[0].Next
	tests := []struct {
		name    string
		keep    ledger.Units
		items   int
		grants  bool
		want    ledger.Code
		actions int // without the idempotency record
	}{
		{"as many as fit", 40, 40, false, "", 42},
		{"one too many in the end", 40, 41, false, ledger.CodeQuantityOverLimit, 0},
		{"given back and taken", 0, 40, false, "", 82},
		{"one too many that move", 0, 41, false, ledger.CodeInvalid, 0},
		{"as many as fit with a grant", 40, 39, true, "", 41},
		{"one too many with a grant", 40, 40, true, ledger.CodeInvalid, 0},
	}
	for _, test := range tests {
		b, fromB := wide("B", test.items, test.grants)
		var quotes []ledger.Quote
		if test.keep > 0 {
			quotes = append(quotes, quote("A", test.keep))
		}
		edit := editOf(append(quotes, quote("B", ledger.Units(test.items))), 0, b)
		edit.Allocations["B"] = fromB
		change, err := ledger.EditHold(hold, edit, originOf("edit"), noon)
		if ledger.CodeOf(err) != test.want {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if err == nil && (change.Validate() != nil || change.Actions() != test.actions) {
			t.Errorf("%s: %d actions, error %v", test.name, change.Actions(), change.Validate())
		}
	}
}

// P3: an edit and every other step of one hold exclude each other, whichever comes first.
func TestP3_StaleEditIsRefused(t *testing.T) {
	edit := func(h ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
		return ledger.EditHold(h, ledger.HoldEdit{Quotes: []ledger.Quote{quote("S", 1)}}, o, now)
	}
	for name, other := range map[string]func(ledger.Hold, ledger.Origin, time.Time) (ledger.Change, error){
		"edit": edit, "cancel": ledger.Cancel,
		"confirm": func(h ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
			return ledger.Confirm(h, "", o, now)
		},
		"confirm part": func(h ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
			return ledger.ConfirmPart(h, []ledger.ReturnLine{{Slot: "S", Quantity: 2}}, "", o, now)
		},
		"start a payment": func(h ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
			return ledger.StartAttempt(h, theReservation, 1, o, now)
		},
	} {
		for _, editFirst := range []bool{true, false} {
			t.Run(fmt.Sprint(name, editFirst), func(t *testing.T) {
				w := newWorld(t, 10, 1)
				hold := w.mustCreate("h", 3)
				steps := []func(ledger.Hold, ledger.Origin, time.Time) (ledger.Change, error){other, edit}
				if editFirst {
					steps[0], steps[1] = edit, other
				}
				first, err := steps[0](hold, w.origin("first", "U-1"), w.now)
				w.answered(err, "")
				second, err := steps[1](hold, w.origin("second", "U-1"), w.now)
				w.answered(err, "")
				w.answered(w.store.Commit(t.Context(), first), "")
				after := w.stock()
				var refused *ledger.Refused
				if err := w.store.Commit(t.Context(), second); !errors.As(err, &refused) || len(refused.LegsOf(ledger.LegHold)) != 1 {
					t.Fatalf("the stale step gives %v", err)
				}
				if !reflect.DeepEqual(w.stock(), after) {
					t.Fatalf("the stock moved twice: %+v, then %+v", after, w.stock())
				}
			})
		}
	}
}

// P4: an edit that was decided in time and is written when the hold is over is refused.
func TestP4_EditIsRefusedFromExpiryOn(t *testing.T) {
	w := &world{T: t, desk: newDesk(memory.New())}
	w.edit(func(d *ledger.SlotDefinition) { d.Capacity = 5 })
	hold := w.mustCreate("h", 2)
	change, err := ledger.EditHold(hold, ledger.HoldEdit{ExtendFor: time.Minute}, w.origin(ledger.CommandExtendHold, "U-1"), hold.ExpiresAt.Add(-time.Millisecond))
	w.answered(err, "")
	change.At = hold.ExpiresAt
	var refused *ledger.Refused
	if err := w.store.Commit(t.Context(), change); !errors.As(err, &refused) {
		t.Fatalf("an extension written at the end gives %v", err)
	}
}
