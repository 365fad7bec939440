package commands_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
)

func (b *bench) edit(r commands.Request, id ledger.HoldID, quotes []ledger.Quote) (commands.Answer, error) {
	return b.commands.EditHold(b.t.Context(), r, id, commands.EditWish{Quotes: quotes}, b.render)
}

// lines are the slots and quantities of a hold.
func lines(h ledger.Hold) string {
	var out []string
	for _, l := range h.Lines {
		out = append(out, fmt.Sprintf("%s×%d", l.Slot, l.Quantity))
	}
	return fmt.Sprint(out)
}

// One edit resizes, drops and takes slots and moves the time, in one write.
func TestAnEditIsOneWrite(t *testing.T) {
	b := newBench(t)
	for _, id := range []ledger.SlotID{"A", "B", "C", "D"} {
		b.define(id, definition(5, 2))
	}
	if _, err := b.create(b.commands, request("K"), slices.Concat(quote("A", 1), quote("B", 4), quote("C", 2))); err != nil {
		t.Fatal(err)
	}
	hold := b.last()
	b.clock.Advance(time.Minute)
	b.store.calls()
	wish := commands.EditWish{Quotes: slices.Concat(quote("A", 2), quote("B", 1), quote("D", 1)), ExtendFor: ledger.HoldForDefault}
	if _, err := b.commands.EditHold(t.Context(), request("E"), hold.ID, wish, b.render); err != nil {
		t.Fatal(err)
	}
	if calls := b.store.calls(); calls != [5]int{1, 0, 0, 1, 0} {
		t.Errorf("%v commits, hints, proofs, definitions and keys", calls)
	}
	edited := b.hold(hold.ID)
	if lines(edited) != "[A×2 B×1 D×1]" || edited.ExpiresAt.Sub(hold.ExpiresAt) != time.Minute {
		t.Errorf("the hold has %s until %s", lines(edited), edited.ExpiresAt)
	}
	b.wantCounters("A", 3, 2, 0)
	b.wantCounters("B", 4, 1, 0)
	b.wantCounters("C", 5, 0, 0)
	b.wantCounters("D", 4, 1, 0)
	again, err := b.commands.EditHold(t.Context(), request("E"), hold.ID, wish, b.render)
	if err != nil || !again.Replayed {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	b.balanced()
}

// What an edit wants more is found on whatever shard has it, and split as the last resort;
// what can't be found leaves the hold as it was.
func TestAnEditFindsItsUnits(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(16, 8))
	b.define("T", definition(3, 1))
	if _, err := b.create(b.commands, request("K"), slices.Concat(quote("S", 2), quote("T", 1))); err != nil {
		t.Fatal(err)
	}
	id := b.last().ID
	for quantity := ledger.Units(3); quantity <= 16; quantity += 5 {
		if _, err := b.edit(request(""), id, slices.Concat(quote("S", quantity), quote("T", 1))); err != nil {
			t.Fatalf("to %d: %v", quantity, err)
		}
		b.wantCounters("S", 16-quantity, quantity, 0)
	}
	_, err := b.edit(request("E"), id, slices.Concat(quote("S", 17), quote("T", 2)))
	e := b.refusal(err, ledger.CodeInsufficientStock)
	if !slices.Equal(e.Shortages, []ledger.Shortage{{Slot: "S", Requested: 17}}) {
		t.Errorf("shortages %+v", e.Shortages)
	}
	b.wantCounters("T", 2, 1, 0)
	b.store.calls()
	_, err = b.edit(request("F"), id, slices.Concat(quote("S", 17), quote("T", 1)))
	b.wantCode(err, ledger.CodeInsufficientStock)
	if calls := b.store.calls(); calls != [5]int{0, 1, 0, 0, 1} {
		t.Errorf("a loser: %v commits, hints, proofs, definitions and keys", calls)
	}
	b.balanced()
}

// An edit of a slot that was short writes at once to the shard to which a unit came back.
func TestAnEditTakesAUnitThatCameBack(t *testing.T) {
	for shard := range 4 {
		b := soldOut(t, 4)
		at := func(shard ledger.Shard) ledger.HoldID {
			return b.holds[slices.IndexFunc(b.holds, func(id ledger.HoldID) bool { return b.hold(id).Lines[0].Shards[0].Shard == shard })]
		}
		grows := at(ledger.Shard((shard + 1) % 4))
		b.cancel(at(ledger.Shard(shard)))
		if _, err := b.edit(request("E"), grows, quote("S", 2)); err != nil {
			t.Fatalf("shard %d: %v", shard, err)
		}
		if calls := b.store.calls(); calls[0] != 1 || calls[1] != 1 || calls[2] != 0 {
			t.Errorf("shard %d: %v commits, hints, proofs, definitions and keys", shard, calls)
		}
		b.wantCounters("S", 0, 4, 0)
		b.balanced()
	}
}

// P11: nobody learns by an edit or an extension whether a hold of another owner exists.
func TestP11_AForeignHoldIsNotEdited(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(5, 1))
	hold := b.mustHold("S", 1)
	stranger := by("V", "K")
	unknown := ledger.NewHoldID([16]byte{})
	_, foreign := b.edit(stranger, hold.ID, quote("S", 2))
	_, missing := b.edit(stranger, unknown, quote("S", 2))
	b.wantCode(foreign, ledger.CodeHoldNotFound)
	if foreign.Error() != missing.Error() {
		t.Errorf("edit: %v and %v can be told apart", foreign, missing)
	}
	_, foreign = b.commands.ExtendHold(t.Context(), stranger, hold.ID, 0, b.render)
	_, missing = b.commands.ExtendHold(t.Context(), stranger, unknown, 0, b.render)
	b.wantCode(foreign, ledger.CodeHoldNotFound)
	if foreign.Error() != missing.Error() {
		t.Errorf("extend: %v and %v can be told apart", foreign, missing)
	}
	b.wantCounters("S", 4, 1, 0)
}

// An edit that lost to another one is decided again by the hold as it is now: what it wants
// more is counted from there, and so are the limits of its owner.
func TestAnEditThatLostIsDecidedAgain(t *testing.T) {
	b := newBench(t)
	d := definition(9, 3)
	d.Policy.QuantityPerOwnerMax = 6
	b.define("S", d)
	b.define("T", definition(9, 3))
	hold := b.mustHold("S", 1)
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try == 1 {
			wish := commands.EditWish{Quotes: slices.Concat(quote("S", 5), quote("T", 4))}
			if _, err := b.others.EditHold(t.Context(), request(""), hold.ID, wish, b.render); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	// As first decided it would take five more, which the limit forbids beside the other's.
	if _, err := b.edit(request("K"), hold.ID, quote("S", 6)); err != nil {
		t.Fatal(err)
	}
	b.wantCounters("S", 3, 6, 0)
	b.wantCounters("T", 9, 0, 0)
	b.wantQuota("U", map[ledger.QuotaKey]ledger.Units{"slot/S": 6})
	_, err := b.edit(request("L"), hold.ID, quote("S", 7))
	if e := b.refusal(err, ledger.CodeLimitReached); !slices.Equal(e.Limits, []ledger.Limit{{Key: "slot/S", Max: 6}}) {
		t.Errorf("limits %+v", e.Limits)
	}
	b.balanced()
}

// An edit that lost to the end of the hold is refused by it.
func TestAnEditMeetsTheEnd(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(9, 3))
	hold := b.mustHold("S", 1)
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try == 1 {
			b.cancel(hold.ID)
		}
		return nil
	}
	_, err := b.edit(request("K"), hold.ID, quote("S", 6))
	b.wantCode(err, ledger.CodeHoldNotActive)
	b.wantCounters("S", 9, 0, 0)
	b.balanced()
}

// What is kept keeps its price, and what comes is sold at today's.
func TestAnEditQuotesWhatItTakes(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(9, 3))
	hold := b.mustHold("S", 3)
	b.patch("S", ledger.SlotPatch{UnitAmount: pointer(int64(1500))})
	if _, err := b.edit(request(""), hold.ID, quote("S", 2)); err != nil {
		t.Errorf("fewer at the old price: %v", err)
	}
	_, err := b.edit(request(""), hold.ID, quote("S", 4))
	if e := b.refusal(err, ledger.CodePriceChanged); len(e.Prices) != 1 || e.Prices[0].Price.AmountMinor != 1500 {
		t.Errorf("prices %+v", e.Prices)
	}
	if _, err := b.edit(request(""), hold.ID, []ledger.Quote{{Slot: "S", Quantity: 4, UnitAmount: 1500}}); err != nil {
		t.Errorf("more at today's price: %v", err)
	}
	b.wantCounters("S", 5, 4, 0)
	b.balanced()
}

// An extension without a length goes as far as the policy does at a time, and no hold lives
// longer than its longest life.
func TestAnExtensionEndsAtTheLongestLife(t *testing.T) {
	b := newBench(t)
	d := definition(9, 1)
	d.Policy.HoldFor, d.Policy.HoldForMax = 10*time.Minute, 25*time.Minute
	b.define("S", d)
	hold := b.mustHold("S", 1)
	extend := func(length time.Duration) error {
		_, err := b.commands.ExtendHold(t.Context(), request(""), hold.ID, length, b.render)
		return err
	}
	for _, c := range []struct {
		after, length, lives time.Duration
		code                 ledger.Code
	}{
		{4 * time.Minute, 0, 14 * time.Minute, ""},
		{4 * time.Minute, 7 * time.Minute, 15 * time.Minute, ""},
		{time.Minute, 11 * time.Minute, 15 * time.Minute, ledger.CodeInvalid},
		{4 * time.Minute, 0, 23 * time.Minute, ""},
		{9 * time.Minute, 0, 25 * time.Minute, ""},
		{time.Minute, 0, 25 * time.Minute, ledger.CodeHoldAtMaximum},
		{2 * time.Minute, 0, 25 * time.Minute, ledger.CodeHoldNotActive},
	} {
		b.clock.Advance(c.after)
		b.wantCode(extend(c.length), c.code)
		if lives := b.hold(hold.ID).ExpiresAt.Sub(hold.CreatedAt); lives != c.lives {
			t.Fatalf("after %s more the hold lives %s, want %s", c.after, lives, c.lives)
		}
	}
	b.balanced()
}

// Case B11: a hold that was edited over several shards gives every unit back when it expires.
func TestCaseB11_AnEditedHoldGivesAllBack(t *testing.T) {
	b := newBench(t)
	b.define("A", definition(10, 4))
	b.define("B", definition(10, 1))
	hold := b.mustHold("A", 4)
	for _, quotes := range [][]ledger.Quote{quote("A", 9), slices.Concat(quote("A", 5), quote("B", 2)), slices.Concat(quote("A", 4), quote("B", 7))} {
		if _, err := b.edit(request(""), hold.ID, quotes); err != nil {
			t.Fatal(err)
		}
	}
	b.clock.Set(b.hold(hold.ID).ReleaseAt)
	if released, err := b.commands.ExpireHold(t.Context(), hold.ID, "sweep"); !released || err != nil {
		t.Fatalf("released %t, %v", released, err)
	}
	b.wantCounters("A", 10, 0, 0)
	b.wantCounters("B", 10, 0, 0)
	b.balanced()
}

// Case F5: the largest basket with limits of all kinds is made, edited, sold in part and
// given back, each in one transaction.
func TestCaseF5_TheLargestBasketWithLimits(t *testing.T) {
	b := newBench(t)
	var all, half []ledger.Quote
	for i := range ledger.LinesMax {
		id := ledger.SlotID(fmt.Sprintf("S%02d", i))
		b.define(id, limited(func(p *ledger.Policy) {
			p.QuantityPerOwnerMax, p.QuantityPerOwnerOfResourceMax, p.HoldsPerOwnerMax, p.HoldsPerSignalMax = 9, 900, 9, 9
			coolsDown(p)
		}))
		all = append(all, quote(id, 2)...)
		if i%2 == 0 {
			half = append(half, quote(id, 1)...)
		}
	}
	wish := commands.HoldWish{Quotes: all, Signals: []ledger.Signal{
		{Kind: ledger.SignalDevice, Hash: strings.Repeat("d", ledger.SignalHashCharacters)},
		{Kind: ledger.SignalPaymentMeans, Hash: strings.Repeat("e", ledger.SignalHashCharacters)},
	}}
	if _, err := b.commands.CreateHold(t.Context(), request("K"), wish, b.render); err != nil {
		t.Fatal(err)
	}
	id := b.last().ID
	b.store.calls()
	if _, err := b.edit(request("E"), id, all[:49]); err != nil {
		t.Fatal(err)
	}
	if _, err := b.edit(request("F"), id, all); err != nil {
		t.Fatal(err)
	}
	var sold []ledger.ReturnLine
	for _, q := range half {
		sold = append(sold, ledger.ReturnLine{Slot: q.Slot, Quantity: q.Quantity})
	}
	if _, err := b.commands.ConfirmHold(t.Context(), request("C"), id, "pay", sold, b.render); err != nil {
		t.Fatal(err)
	}
	b.wantQuota("U", map[ledger.QuotaKey]ledger.Units{"slot/S00": 1, "slot/S01": 0, "resource/flight/KE0901": 25, "holds": 0})
	if _, err := b.commands.ReturnHold(t.Context(), request("R"), id, nil, b.render); err != nil {
		t.Fatal(err)
	}
	b.wantQuota("U", map[ledger.QuotaKey]ledger.Units{"slot/S00": 0, "resource/flight/KE0901": 0})
	if calls := b.store.calls(); calls[0] != 4 {
		t.Errorf("%d commits for two edits, a sale and a return", calls[0])
	}
	b.wantCounters("S00", 100, 0, 0)
	b.balanced()
}

// Who cools down exchanges no hold of other slots for one that the cool-down keeps from: it
// would be a new hold in all but name. A hold that has such a slot already can be edited.
func TestACoolDownKeepsFromExchanges(t *testing.T) {
	b := newBench(t)
	long := func(p *ledger.Policy) { p.HoldFor, p.HoldForMax = 3*time.Hour, 3*time.Hour }
	b.define("S", limited(coolsDown))
	b.define("strict", limited(func(p *ledger.Policy) { coolsDown(p); long(p) }))
	b.define("free", limited(long))
	kept, free := b.mustHold("strict", 1), b.mustHold("free", 1)
	b.letExpire()
	b.letExpire()
	if _, err := b.edit(request("more"), kept.ID, quote("strict", 2)); err != nil {
		t.Errorf("a hold that has such a slot already: %v", err)
	}
	exchange := func(key string) error {
		_, err := b.edit(request(key), free.ID, slices.Concat(quote("free", 1), quote("strict", 5)))
		return err
	}
	b.store.calls()
	if e := b.refusal(exchange("E"), ledger.CodeCoolingDown); e.RetryAfter != time.Hour {
		t.Errorf("retry after %s, want 1h", e.RetryAfter)
	}
	if calls := b.store.calls(); calls[0] != 1 {
		t.Errorf("%d commits for a refusal", calls[0])
	}
	b.wantCounters("strict", 98, 2, 0)
	if _, err := b.edit(request("F"), free.ID, quote("free", 2)); err != nil {
		t.Errorf("an edit of other slots: %v", err)
	}
	b.clock.Advance(time.Hour)
	if _, err := b.edit(request("G"), free.ID, slices.Concat(quote("free", 2), quote("strict", 5))); err != nil {
		t.Fatalf("after the cool-down: %v", err)
	}
	if quota, err := b.store.Quota(t.Context(), "U"); err != nil || quota.Expired != 0 {
		t.Errorf("%d expired holds are counted after the cool-down, %v", quota.Expired, err)
	}
	b.balanced()
}
