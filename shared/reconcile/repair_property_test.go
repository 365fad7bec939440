package reconcile_test

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/reconcile"
)

// holed is a store whose due index has lost some holds. Any step of a hold lists it again,
// as its keys are attributes of the item that the step writes.
type holed struct {
	*memory.Store
	lost map[ledger.HoldID]bool
}

func (h holed) Due(ctx context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
	due, next, err := h.Store.Due(ctx, shard, now, page)
	return slices.DeleteFunc(due, func(d ledger.DueHold) bool { return h.lost[d.ID] }), next, err
}

func (h holed) Commit(ctx context.Context, c ledger.Change) error {
	err := h.Store.Commit(ctx, c)
	for _, w := range c.Holds {
		if err == nil {
			delete(h.lost, w.Next.ID)
		}
	}
	return err
}

// findHoles are the HELD holds that no shard of the index lists.
func (b *bazaar) findHoles(store ledger.Store) []reconcile.Finding {
	b.Helper()
	listed := map[ledger.HoldID]bool{}
	for shard := range ledger.DueShards {
		due, next, err := store.Due(b.Context(), shard, b.now().Add(24*time.Hour), ledger.Page{Limit: ledger.PageItemsMax})
		if err != nil || next != "" {
			b.Fatalf("due holds of shard %d: next %q, %v", shard, next, err)
		}
		for _, d := range due {
			listed[d.ID] = true
		}
	}
	var found []reconcile.Finding
	for _, id := range b.holds {
		if hold, err := b.store.Hold(b.Context(), id); err == nil && hold.Status == ledger.StatusHeld && !listed[id] {
			found = append(found, b.holeFinding(id))
		}
	}
	return found
}

// trade lets a few things happen, as owners and the shop want them.
func (b *bazaar) trade(t *rapid.T, steps int) {
	b.Helper()
	for range steps {
		switch rapid.IntRange(0, 3).Draw(t, "step") {
		case 0, 1:
			owner := rapid.SampledFrom([]ledger.OwnerID{"U-1", "U-2", "U-3"}).Draw(t, "owner")
			_, _ = b.hold(owner, rapid.SampledFrom(b.slots).Draw(t, "slot"), ledger.Units(rapid.IntRange(1, 4).Draw(t, "units"))) // none is left: also well
		case 2:
			b.tryToEnd(t, true)
		case 3:
			b.tryToEnd(t, false)
		}
		b.clock.Advance(time.Second)
	}
}

// tryToEnd sells or cancels a hold. Damaged stock may refuse it.
func (b *bazaar) tryToEnd(t *rapid.T, sell bool) {
	b.Helper()
	if len(b.holds) == 0 {
		return
	}
	id := rapid.SampledFrom(b.holds).Draw(t, "hold")
	hold, err := b.store.Hold(b.Context(), id)
	b.check(err)
	if hold.Status != ledger.StatusHeld {
		return
	}
	for _, line := range hold.Lines {
		_, stock := b.storedSlot(line.Slot)
		for _, a := range line.Shards {
			if stock[a.Shard].Counters.Held < a.Quantity {
				return
			}
		}
	}
	b.end(id, sell)
}

// harm damages one thing, if it can be damaged so.
func (b *bazaar) harm(t *rapid.T, store holed) {
	b.Helper()
	units := func(name string) ledger.Units { return ledger.Units(rapid.IntRange(-3, 3).Draw(t, name)) }
	switch rapid.IntRange(0, 2).Draw(t, "harm") {
	case 0:
		id := rapid.SampledFrom(b.slots).Draw(t, "slot")
		_, stock := b.storedSlot(id)
		by := ledger.Counters{Available: units("available"), Held: units("held"), Confirmed: units("confirmed")}
		by.Capacity = by.Available + by.Held + by.Confirmed
		b.damageStock(id, ledger.Shard(rapid.IntRange(0, len(stock)-1).Draw(t, "shard")), by)
	case 1:
		owner := rapid.SampledFrom([]ledger.OwnerID{"U-1", "U-2", "U-3"}).Draw(t, "owner")
		b.damageQuota(owner, rapid.SampledFrom([]ledger.QuotaKey{ledger.QuotaHolds, ledger.SlotQuota("S-1"), ledger.SlotQuota("S-2")}).Draw(t, "count"), units("units"))
	case 2:
		if len(b.holds) > 0 {
			store.lost[rapid.SampledFrom(b.holds).Draw(t, "hold")] = true
		}
	}
}

// oversold reports whether units were sold of the stock item that there never were: then no
// numbers are right, and a person has to decide.
func (b *bazaar) oversold(f reconcile.Finding) bool {
	b.Helper()
	if f.Kind != reconcile.FindingStockMismatch {
		return false
	}
	_, stock := b.storedSlot(f.Slot)
	e := f.Proof.Excess
	return stock[f.Shard].Counters.Plus(ledger.Counters{Available: -e.Available, Held: -e.Held, Confirmed: -e.Confirmed, Capacity: -e.Capacity}).Check() != nil
}

// audited requires the audit to find exactly what is found here in the simplest way, with the
// same proof. In memory it can't see the index.
func (b *bazaar) audited() {
	b.Helper()
	type proof struct {
		slot    ledger.SlotID
		shard   ledger.Shard
		owner   ledger.OwnerID
		count   ledger.QuotaKey
		version ledger.Version
		excess  ledger.Counters
		by      ledger.Units
		certain bool
	}
	proofs := func(findings []reconcile.Finding) map[proof]bool {
		all := map[proof]bool{}
		for _, f := range findings {
			all[proof{f.Slot, f.Shard, f.Owner, f.Count, f.Proof.Version, f.Proof.Excess, f.Proof.Was - f.Proof.Want, f.Proof.Certain}] = true
		}
		return all
	}
	if got, want := proofs(b.audit()), proofs(b.find()); !maps.Equal(got, want) {
		b.Errorf("the audit finds %+v, want %+v", got, want)
	}
}

// Whatever is damaged of counters, counts and the index of a sound ledger is put right by
// Plan and the Repairer, with trade going on between the finding and the repair, and a second
// run has nothing to write.
func TestRandomDamageIsPutRight(t *testing.T) {
	repairs, oversold := map[reconcile.ActionKind]int{}, 0
	rapid.Check(t, func(t *rapid.T) {
		b := newBazaar(t, rapid.Uint64().Draw(t, "seed"))
		store := holed{b.store, map[ledger.HoldID]bool{}}
		b.commands = commands.New(store, b.clock, b.random)
		b.slot("S-1", 40, rapid.IntRange(1, 3).Draw(t, "shards"), time.Hour)
		b.slot("S-2", 6, 1, time.Hour)
		b.trade(t, rapid.IntRange(0, 12).Draw(t, "steps before"))
		for range rapid.IntRange(1, 4).Draw(t, "harms") {
			b.harm(t, store)
		}
		b.audited()
		findings := append(b.find(), b.findHoles(store)...)
		b.trade(t, rapid.IntRange(0, 6).Draw(t, "steps between"))
		report, err := b.repairer(store).Run(b.Context(), findings, true)
		b.check(err)
		for _, result := range report.Results {
			over := result.Action.Do == reconcile.ActionRepairHold && result.Outcome == skipped // it went on by itself
			sold := result.Outcome == queued && b.oversold(result.Action.Finding)
			if result.Outcome != done && !over && !sold {
				t.Errorf("not repaired: %+v", result)
			}
			repairs[result.Action.Do]++
		}
		beyond := 0
		for _, left := range append(b.find(), b.findHoles(store)...) {
			if beyond++; !b.oversold(left) {
				t.Errorf("after the repair: %+v", left)
			}
		}
		if oversold += beyond; beyond > 0 {
			return // its books can't balance before a person has decided
		}
		b.balanced()
		b.audited()
		second, err := b.repairer(guarded{store, func(ledger.Change) error { return errDown }}).Run(b.Context(), findings, true)
		b.check(err)
		if second.Written() > 0 {
			t.Errorf("the second run repairs: %+v", second)
		}
		b.trade(t, 3)
		b.balanced()
	})
	for _, kind := range []reconcile.ActionKind{reconcile.ActionRepairStock, reconcile.ActionRepairQuota, reconcile.ActionRepairHold} {
		if repairs[kind] == 0 {
			t.Errorf("no run had a %s", kind)
		}
	}
	t.Logf("repairs %v, and %d stock items were oversold in between", repairs, oversold)
}
