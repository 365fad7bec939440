package commands_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
)

func catalogue(key string) commands.Request {
	r := request(key)
	r.Actor, r.Owner = "catalog:shop", "shop"
	return r
}

func pointer[T any](v T) *T { return &v }

func TestPutIsRepeatable(t *testing.T) {
	b := newBench(t)
	b.slots = []ledger.SlotID{"S"}
	for i, want := range []string{
		"S v1 {Available:5 Held:0 Confirmed:0 Capacity:5} true",
		"S v1 {Available:5 Held:0 Confirmed:0 Capacity:5} false",
	} {
		answer, err := b.commands.PutSlot(t.Context(), catalogue(""), "S", definition(5, 2), renderSlot)
		if err != nil || string(answer.Response.Body) != want {
			t.Errorf("put %d: %s, %v; want %s", i, answer.Response.Body, err, want)
		}
	}
	if b.store.commits != 1 {
		t.Errorf("%d commits, want 1: the second PUT changes nothing", b.store.commits)
	}
	b.balanced()
}

// Two services define one slot at once: one creates it, the other meets it.
func TestPutMeetsAnotherPut(t *testing.T) {
	b := newBench(t)
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try == 1 {
			b.define("S", definition(7, 1))
		}
		return nil
	}
	answer, err := b.commands.PutSlot(t.Context(), catalogue(""), "S", definition(5, 1), renderSlot)
	if err != nil || string(answer.Response.Body) != "S v2 {Available:5 Held:0 Confirmed:0 Capacity:5} false" {
		t.Errorf("%s, %v", answer.Response.Body, err)
	}
	b.balanced()
}

// A PUT reads the slot and then its stock, and another change may come between the two:
// then the old definition and the new capacity are together what the PUT says, though the
// slot has never been so. It must not answer that there is nothing to do.
func TestPutMeetsAChangeBetweenItsReads(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(5, 1))
	b.store.betweenSlotAndStock = func() {
		dearer := definition(7, 1)
		dearer.Terms.Price.AmountMinor = 2000
		b.define("S", dearer)
	}
	answer, err := b.commands.PutSlot(t.Context(), catalogue(""), "S", definition(7, 1), renderSlot)
	if err != nil || string(answer.Response.Body) != "S v3 {Available:7 Held:0 Confirmed:0 Capacity:7} false" {
		t.Errorf("%s, %v", answer.Response.Body, err)
	}
	slots, err := b.store.Store.Slots(t.Context(), []ledger.SlotID{"S"})
	if err != nil || len(slots) != 1 || slots[0].Terms.Price.AmountMinor != 1000 {
		t.Errorf("the slot is %+v, %v; want the price of the PUT", slots, err)
	}
	b.balanced()
}

// wantSpread requires the shards of a slot to have the same available, give or take so much.
func (b *bench) wantSpread(id ledger.SlotID, most ledger.Units) {
	b.t.Helper()
	slots, err := b.store.Store.Slots(b.t.Context(), []ledger.SlotID{id})
	if err != nil || len(slots) != 1 {
		b.t.Fatalf("slot %s: %v, %v", id, slots, err)
	}
	stock, err := b.store.Store.StockAtOneMoment(b.t.Context(), slots[0])
	if err != nil {
		b.t.Fatal(err)
	}
	byAvailable := func(x, y ledger.Stock) int { return cmp.Compare(x.Counters.Available, y.Counters.Available) }
	least, fullest := slices.MinFunc(stock, byAvailable), slices.MaxFunc(stock, byAvailable)
	if fullest.Counters.Available-least.Counters.Available > most {
		b.t.Errorf("slot %s has between %d and %d available in a shard", id, least.Counters.Available, fullest.Counters.Available)
	}
}

// Case A2: what capacity grows by goes where least is left, so that no shard stays empty
// while holds go on.
func TestCaseA2_GrowthSpreads(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(40, 4))
	for range 10 {
		b.takeFrom("S", 2)
	}
	for range 10 {
		b.patch("S", ledger.SlotPatch{CapacityDelta: pointer(ledger.Units(1))})
	}
	b.wantSpread("S", 0)
	b.patch("S", ledger.SlotPatch{CapacityDelta: pointer(ledger.Units(3))})
	b.wantSpread("S", 1)
	b.wantCounters("S", 43, 10, 0)
	b.balanced()
}

// Case A2: capacity changes beside holds all take effect, and none overwrites another.
func TestCaseA2_DeltasBesideHolds(t *testing.T) {
	for _, shards := range []int{1, 5} {
		t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
			b := newBench(t)
			b.define("S", definition(50, shards))
			var done sync.WaitGroup
			for i := range 50 {
				done.Go(func() {
					patch := ledger.SlotPatch{CapacityDelta: pointer(ledger.Units(1))}
					if _, err := b.commands.PatchSlot(t.Context(), catalogue(fmt.Sprint(i)), "S", patch, renderSlot); err != nil {
						t.Errorf("patch %d: %v", i, err)
					}
				})
				done.Go(func() {
					if _, err := b.create(b.commands, request(fmt.Sprint(i)), quote("S", 1)); err != nil {
						t.Errorf("hold %d: %v", i, err)
					}
				})
			}
			done.Wait()
			b.wantCounters("S", 50, 50, 0)
			b.balanced()
		})
	}
}

// Case A2: units that an operator saw free are held a moment later. The stale write
// fails, and the new numbers decide.
func TestCaseA2_ShrinkLosesToAHold(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(5, 1))
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try == 1 {
			b.mustHold("S", 3)
		}
		return nil
	}
	_, err := b.commands.PatchSlot(t.Context(), catalogue("K"), "S", ledger.SlotPatch{Capacity: pointer(ledger.Units(2))}, renderSlot)
	b.wantCode(err, ledger.CodeCapacityInUse)
	b.wantCounters("S", 2, 3, 0)
	b.balanced()
}

func TestPatchRefusals(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(5, 1))
	for _, c := range []struct {
		id    ledger.SlotID
		patch ledger.SlotPatch
		code  ledger.Code
	}{
		{"none", ledger.SlotPatch{Open: pointer(false)}, ledger.CodeSlotNotFound},
		{"S", ledger.SlotPatch{Capacity: pointer(ledger.Units(1)), CapacityDelta: pointer(ledger.Units(1))}, ledger.CodeInvalid},
		{"S", ledger.SlotPatch{CapacityDelta: pointer(ledger.Units(-6))}, ledger.CodeCapacityInUse},
		{"S", ledger.SlotPatch{UnitAmount: pointer(int64(-1))}, ledger.CodeInvalid},
	} {
		_, err := b.commands.PatchSlot(t.Context(), catalogue("K"), c.id, c.patch, renderSlot)
		b.wantCode(err, c.code)
	}
	other := definition(5, 1)
	other.ResourceID = "KE0902"
	_, err := b.commands.PutSlot(t.Context(), catalogue(""), "S", other, renderSlot)
	b.wantCode(err, ledger.CodeSlotFixed)
	b.wantCounters("S", 5, 0, 0)
}

// A patch that changes nothing still owns its key, and is answered the same again.
func TestEmptyPatchOwnsItsKey(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(5, 1))
	patch := ledger.SlotPatch{Open: pointer(true)}
	first, err := b.commands.PatchSlot(t.Context(), catalogue("K"), "S", patch, renderSlot)
	if err != nil || !strings.Contains(string(first.Response.Body), "S v1 ") {
		t.Fatalf("%s, %v", first.Response.Body, err)
	}
	b.define("S", definition(6, 1))
	again, err := b.commands.PatchSlot(t.Context(), catalogue("K"), "S", patch, renderSlot)
	if err != nil || !again.Replayed || string(again.Response.Body) != string(first.Response.Body) {
		t.Errorf("%+v, %v", again, err)
	}
	b.balanced()
}

// The process that changes a slot does not go on using the old definition.
func TestAnEditForgetsTheCachedDefinition(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(50, 1))
	if _, err := b.create(b.commands, request("warm"), quote("S", 1)); err != nil {
		t.Fatal(err)
	}
	patch := ledger.SlotPatch{Policy: ledger.PolicyPatch{HoldFor: pointer(time.Minute)}}
	if _, err := b.commands.PatchSlot(t.Context(), catalogue("K"), "S", patch, renderSlot); err != nil {
		t.Fatal(err)
	}
	if _, err := b.create(b.commands, request("next"), quote("S", 1)); err != nil {
		t.Fatal(err)
	}
	hold, err := b.store.Hold(t.Context(), b.holds[len(b.holds)-1])
	if err != nil || hold.ReleaseAt.Sub(hold.CreatedAt) != time.Minute {
		t.Errorf("the hold lives %s, %v", hold.ReleaseAt.Sub(hold.CreatedAt), err)
	}
	b.balanced()
}

// A slot and its stock are read one after the other. What the two never were together must
// not refuse anybody: here the slot is still marked as oversold, and its stock is that of the
// time when there are units again.
func TestARefusedEditIsOfOneMoment(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(3, 1))
	b.mustHold("S", 2)
	patch := func(c *commands.Commands, p ledger.SlotPatch) error {
		_, err := c.PatchSlot(t.Context(), commands.Request{Actor: "catalog"}, "S", p, renderSlot)
		return err
	}
	none, six, threeFewer := ledger.Units(0), ledger.Units(6), ledger.Units(-3)
	if err := patch(b.others, ledger.SlotPatch{Capacity: &none, AcceptOversold: true}); err != nil {
		t.Fatal(err)
	}
	b.store.betweenSlotAndStock = func() {
		if err := patch(b.others, ledger.SlotPatch{Capacity: &six}); err != nil {
			t.Error(err)
		}
	}
	if err := patch(b.commands, ledger.SlotPatch{CapacityDelta: &threeFewer}); err != nil {
		t.Errorf("three fewer than six, of which two are promised: %v", err)
	}
}
