package commands_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// soldOut is a bench whose slot S has nothing left, as its commands have proven.
func soldOut(t *testing.T, shards int) *bench {
	t.Helper()
	b := newBench(t)
	b.define("S", definition(ledger.Units(shards), shards))
	for range shards {
		b.mustHold("S", 1)
	}
	_, err := b.create(b.commands, request("first"), quote("S", 1))
	b.wantCode(err, ledger.CodeInsufficientStock)
	b.store.calls()
	return b
}

// After the first proof, a loser costs one read of the stock and a look at what its key was
// used for, for as long as losers keep coming.
func TestALoserCostsOneRead(t *testing.T) {
	for _, shards := range []int{1, 4, 64} {
		t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
			b := soldOut(t, shards)
			for i := range 4 {
				b.clock.Advance(900 * time.Millisecond)
				_, err := b.create(b.commands, request(fmt.Sprint(i)), quote("S", 1))
				e := b.refusal(err, ledger.CodeInsufficientStock)
				if !slices.Equal(e.Shortages, []ledger.Shortage{{Slot: "S", Requested: 1}}) {
					t.Errorf("shortages %+v", e.Shortages)
				}
				if calls := b.store.calls(); calls != [5]int{0, 1, 0, 0, 1} {
					t.Errorf("loser %d: %v commits, hints, proofs, definitions and keys", i, calls)
				}
			}
			// Nobody came for a while, so the next one tries to write first.
			b.clock.Advance(2 * time.Second)
			_, err := b.create(b.commands, request("late"), quote("S", 1))
			b.wantCode(err, ledger.CodeInsufficientStock)
			if calls := b.store.calls(); calls[0] != 1 || calls[2] != 0 {
				t.Errorf("after a while: %v commits, hints, proofs, definitions and keys", calls)
			}
			b.balanced()
		})
	}
}

// All slots of a basket that were short are looked at in one read.
func TestALosersBasketCostsOneRead(t *testing.T) {
	b := newBench(t)
	var quotes []ledger.Quote
	for i := range 5 {
		id := ledger.SlotID(fmt.Sprint("S", i))
		b.define(id, definition(0, 3))
		quotes = append(quotes, quote(id, 1)...)
	}
	for i, want := range [][5]int{{1, 1, 5, 1, 1}, {0, 1, 0, 0, 1}} {
		_, err := b.create(b.commands, request(fmt.Sprint(i)), quotes)
		if e := b.refusal(err, ledger.CodeInsufficientStock); len(e.Shortages) != 5 {
			t.Errorf("shortages %+v", e.Shortages)
		}
		if calls := b.store.calls(); calls != want {
			t.Errorf("loser %d: %v commits, hints, proofs, definitions and keys, want %v", i, calls, want)
		}
	}
	b.balanced()
}

// A unit that comes back to any shard is sold to the next one who asks, who writes to that
// shard at once.
func TestAUnitThatComesBackIsSold(t *testing.T) {
	for shard := range 4 {
		b := soldOut(t, 4)
		held := b.holds[slices.IndexFunc(b.holds, func(id ledger.HoldID) bool {
			return b.hold(id).Lines[0].Shards[0].Shard == ledger.Shard(shard)
		})]
		b.cancel(held)
		if _, err := b.create(b.commands, request("K"), quote("S", 1)); err != nil {
			t.Fatalf("shard %d: %v", shard, err)
		}
		if calls := b.store.calls(); calls != [5]int{1, 1, 0, 0, 0} {
			t.Errorf("shard %d: %v commits, hints, proofs, definitions and keys", shard, calls)
		}
		b.wantCounters("S", 0, 4, 0)
		b.balanced()
	}
}

// Units that came and went make the shards others than those of the proof, so it says
// nothing any more: the shortage is proven anew, once.
func TestAnOldProofIsNotBelieved(t *testing.T) {
	b := soldOut(t, 4)
	b.cancel(b.holds[0])
	b.mustHold("S", 1)
	for i, want := range [][5]int{{0, 1, 1, 0, 1}, {0, 1, 0, 0, 1}} {
		_, err := b.create(b.commands, request(fmt.Sprint(i)), quote("S", 1))
		b.wantCode(err, ledger.CodeInsufficientStock)
		if calls := b.store.calls(); calls != want {
			t.Errorf("loser %d: %v commits, hints, proofs, definitions and keys, want %v", i, calls, want)
		}
	}
	b.balanced()
}

// P10: a look at the stock of a slot that was short may be torn like every such read.
func TestP10_ALookIsNoProof(t *testing.T) {
	b := soldOut(t, 4)
	b.patch("S", ledger.SlotPatch{CapacityDelta: pointer(ledger.Units(2))})
	b.store.stock = func(stock []ledger.Stock) []ledger.Stock {
		for i := range stock {
			stock[i].Counters.Available = 0
		}
		return stock
	}
	if _, err := b.create(b.commands, request("K"), quote("S", 2)); err != nil {
		t.Fatalf("a torn look was believed: %v", err)
	}
	b.wantCounters("S", 0, 6, 0)
	b.balanced()
}

// Who wants less than the loser before may get it.
func TestASmallerQuantityIsLookedFor(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(4, 4))
	_, err := b.create(b.commands, request("much"), quote("S", 5))
	b.wantCode(err, ledger.CodeInsufficientStock)
	if _, err := b.create(b.commands, request("less"), quote("S", 3)); err != nil {
		t.Fatal(err)
	}
	b.wantCounters("S", 1, 3, 0)
	b.balanced()
}

// What else is wrong with a request is told as it would be of a slot that was never short.
func TestALoserIsToldTheFirstReason(t *testing.T) {
	for code, patch := range map[ledger.Code]ledger.SlotPatch{
		ledger.CodeSlotClosed:   {Open: pointer(false)},
		ledger.CodePriceChanged: {UnitAmount: pointer(int64(1500))},
	} {
		b := soldOut(t, 4)
		b.patch("S", patch)
		_, err := b.create(b.commands, request("K"), quote("S", 1))
		b.wantCode(err, code)
		if calls := b.store.calls(); calls[0] != 0 {
			t.Errorf("%s: %v commits, hints, proofs, definitions and keys", code, calls)
		}
	}
	b := newBench(t)
	d := definition(0, 4)
	d.Policy.SaleUntil = noon.Add(time.Second)
	b.define("S", d)
	_, err := b.create(b.commands, request("early"), quote("S", 1))
	b.wantCode(err, ledger.CodeInsufficientStock)
	b.clock.Advance(time.Second)
	_, err = b.create(b.commands, request("late"), quote("S", 1))
	b.wantCode(err, ledger.CodeSaleOver)
}

// Case E9 beside a hot slot: who took the last unit and asks again with the same key is
// given the first answer.
func TestCaseE9_ALoserWhoHadWonIsAnsweredAgain(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(1, 1))
	first, err := b.create(b.commands, request("K"), quote("S", 1))
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.create(b.commands, request("L"), quote("S", 1))
	b.wantCode(err, ledger.CodeInsufficientStock)
	again, err := b.create(b.commands, request("K"), quote("S", 1))
	if err != nil || !again.Replayed || string(again.Response.Body) != string(first.Response.Body) {
		t.Errorf("replay %+v, %v, want %s", again, err, first.Response.Body)
	}
	b.balanced()
}

// However many slots are short, no more of them are remembered than fit.
func TestTheStockCacheIsBounded(t *testing.T) {
	b := newBench(t)
	const fit = 1_000
	for i := range fit + 1 {
		id := ledger.SlotID(fmt.Sprint("S", i))
		b.define(id, definition(0, 1))
		_, err := b.create(b.commands, request(""), quote(id, 1))
		b.wantCode(err, ledger.CodeInsufficientStock)
	}
	b.store.calls()
	for id, want := range map[ledger.SlotID]int{"S0": 1, "S1000": 0} {
		_, err := b.create(b.commands, request(""), quote(id, 1))
		b.wantCode(err, ledger.CodeInsufficientStock)
		if calls := b.store.calls(); calls[0] != want {
			t.Errorf("slot %s: %d commits, want %d", id, calls[0], want)
		}
	}
}
