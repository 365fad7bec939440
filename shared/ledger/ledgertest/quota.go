package ledgertest

import (
	"context"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// quotaTidier is a store that can take counts of zero out of what is counted of an owner.
// It is a capability: a store without it keeps them.
type quotaTidier interface {
	TidyQuota(ctx context.Context, owner ledger.OwnerID, keys []ledger.QuotaKey) error
}

var quotaRules = []rule{
	{"IsMadeWhenItIsFirstNeeded", quotaIsMadeWhenNeeded},
	{"EachLimitRefusesAlone", eachLimitRefusesAlone},
	{"LastUnitOfALimitIsAllowed", lastUnitOfALimitIsAllowed},
	{"EndingGivesBack", endingGivesBackToTheQuota},
	{"ReturnGivesBack", returnGivesBackToTheQuota},
	{"LoweredLimitStrandsNothing", loweredLimitStrandsNothing},
	{"NewLimitCountsFromNowOn", newLimitCountsFromNowOn},
	{"OwnersAreApart", ownersAreApart},
	{"RefusalElsewhereCountsNothing", refusalElsewhereCountsNothing},
	{"RepeatedChangeCountsOnce", repeatedChangeCountsOnce},
	{"ExpiredHoldsAreCounted", expiredHoldsAreCounted},
	{"BoundaryMillisecondOfTheCooldown", cooldownIsInTheWrite},
	{"SaleForgetsExpiries", saleForgetsExpiries},
	{"OperatorForgetsExpiries", operatorForgetsExpiries},
	{"RequirementAloneCountsNothing", requirementAloneCountsNothing},
	{"TidyingTakesOnlyZeros", tidyingTakesOnlyZeros},
	{"GivenUpCallerTidiesNothing", givenUpCallerTidiesNothing},
	{"Race_LastOfALimit", raceForTheLastOfALimit},
}

// limited is a slot definition with limits.
func limited(capacity ledger.Units, limit func(p *ledger.Policy)) ledger.SlotDefinition {
	d := definition(capacity, 1)
	limit(&d.Policy)
	return d
}

func (f *fixture) quota(owner ledger.OwnerID) ledger.Quota {
	f.Helper()
	quota, err := f.store.Quota(f.ctx, owner)
	f.read(err)
	return quota
}

// refusedQuota is the leg of a quota that refused a change as it is stored.
func (f *fixture) refusedQuota(owner ledger.OwnerID) ledger.RefusedLeg {
	f.Helper()
	quota := f.quota(owner)
	return ledger.RefusedLeg{Kind: ledger.LegQuota, Quota: &quota}
}

// counts requires the owner to have exactly these counts beside those of zero.
func (f *fixture) counts(owner ledger.OwnerID, want map[ledger.QuotaKey]ledger.Units) {
	f.Helper()
	got := make(map[ledger.QuotaKey]ledger.Units)
	for key, units := range f.quota(owner).Counts {
		if units != 0 {
			got[key] = units
		}
	}
	f.equal(fmt.Sprintf("counts of %s", owner), got, want)
}

// allLimits limits an owner in every count.
func allLimits(units ledger.Units) func(p *ledger.Policy) {
	return func(p *ledger.Policy) {
		p.QuantityPerOwnerMax, p.QuantityPerOwnerOfResourceMax, p.HoldsPerOwnerMax = units, units, units
	}
}

var (
	slotA    = ledger.SlotQuota("A")
	slotB    = ledger.SlotQuota("B")
	resource = ledger.ResourceQuota("flight", "OZ-102")
)

func quotaIsMadeWhenNeeded(f *fixture) {
	f.equal("quota of an owner of whom nothing is counted", f.quota(theOwner), ledger.Quota{Owner: theOwner})
	slot := f.slot("A", limited(9, allLimits(5)))
	f.held(one(f.slot("free", definition(9, 1)), 1))
	f.equal("quota after a hold without limits", f.quota(theOwner), ledger.Quota{Owner: theOwner})
	hold := f.held(one(slot, 2))
	f.equal("counts written down in the hold", f.storedHold(hold.ID).CountsIn, []ledger.QuotaKey{ledger.QuotaHolds})
	f.equal("counts written down in the line", f.storedHold(hold.ID).Lines[0].CountsIn, []ledger.QuotaKey{resource, slotA})
	f.equal("quota", f.quota(theOwner), ledger.Quota{
		Owner: theOwner, Counts: map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 1, slotA: 2, resource: 2},
	})
	f.quota(theOwner).Counts[slotA] = 99 // a reader can't change what is stored
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 1, slotA: 2, resource: 2})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

func eachLimitRefusesAlone(f *fixture) {
	limits := map[ledger.OwnerID]func(p *ledger.Policy){
		"slot":     func(p *ledger.Policy) { allLimits(9)(p); p.QuantityPerOwnerMax = 3 },
		"resource": func(p *ledger.Policy) { allLimits(9)(p); p.QuantityPerOwnerOfResourceMax = 3 },
		"holds":    func(p *ledger.Policy) { allLimits(9)(p); p.HoldsPerOwnerMax = 1 },
	}
	for owner, limit := range limits {
		slot := f.slot(ledger.SlotID(owner), limited(9, limit))
		first := f.hold(owner, one(slot, 2))
		f.commit(first)
		f.refuse(f.hold(owner, one(slot, 2)), f.refusedQuota(owner))
		f.counters(slot, ledger.Counters{Available: 7, Held: 2, Capacity: 9})
		CheckBooks(f.T, f.store, []ledger.SlotID{slot.ID}, []ledger.HoldID{first.Holds[0].Next.ID})
	}
}

func lastUnitOfALimitIsAllowed(f *fixture) {
	a := f.slot("A", limited(9, func(p *ledger.Policy) { p.QuantityPerOwnerMax, p.QuantityPerOwnerOfResourceMax = 2, 5 }))
	b := f.slot("B", limited(9, func(p *ledger.Policy) { p.QuantityPerOwnerOfResourceMax = 5 }))
	ids := []ledger.HoldID{f.held(one(a, 1)).ID, f.held(one(a, 1), one(b, 3)).ID}
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{slotA: 2, resource: 5})
	f.refuse(f.hold(theOwner, one(b, 1)), f.refusedQuota(theOwner))
	f.refuse(f.hold(theOwner, one(a, 1)), f.refusedQuota(theOwner))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A", "B"}, ids)
}

func endingGivesBackToTheQuota(f *fixture) {
	for _, end := range f.endings() {
		f.now = noon
		id := ledger.SlotID(end.status)
		d := limited(4, allLimits(1))
		d.ResourceID = ledger.ResourceID(id)
		slot := f.slot(id, d)
		owner := ledger.OwnerID(end.status)
		create := f.hold(owner, one(slot, 1))
		f.commit(create)
		f.commit(end.build(create.Holds[0].Next))
		want := map[ledger.QuotaKey]ledger.Units{}
		if end.status == ledger.StatusConfirmed {
			want = map[ledger.QuotaKey]ledger.Units{ledger.SlotQuota(id): 1, ledger.ResourceQuota("flight", d.ResourceID): 1}
			f.refuse(f.hold(owner, one(slot, 1)), f.refusedQuota(owner))
		}
		f.counts(owner, want)
		ids := []ledger.HoldID{create.Holds[0].Next.ID}
		if end.status != ledger.StatusConfirmed {
			again := f.hold(owner, one(slot, 1))
			f.commit(again)
			ids = append(ids, again.Holds[0].Next.ID)
		}
		CheckBooks(f.T, f.store, []ledger.SlotID{id}, ids)
	}
}

func returnGivesBackToTheQuota(f *fixture) {
	slot := f.slot("A", limited(9, allLimits(3)))
	hold := f.confirmed(one(slot, 3))
	f.commit(f.returned(hold, ledger.ReturnLine{Slot: "A", Quantity: 2, Restock: ledger.RestockNever}))
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{slotA: 1, resource: 1})
	f.commit(f.returned(f.storedHold(hold.ID)))
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{})
	again := f.held(one(slot, 3))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID, again.ID})
}

// loweredLimitStrandsNothing: what falls is never refused, and what was counted under an
// old policy is taken back, also where nothing is counted any more.
func loweredLimitStrandsNothing(f *fixture) {
	slot := f.slot("A", limited(9, allLimits(5)))
	first, second, third := f.held(one(slot, 1)), f.held(one(slot, 2)), f.held(one(slot, 1))
	f.commit(f.edit(slot, func(d *ledger.SlotDefinition) { allLimits(1)(&d.Policy) }))
	slot = f.storedSlot("A")
	f.refuse(f.hold(theOwner, one(slot, 1)), f.refusedQuota(theOwner))
	f.commit(f.cancel(first))
	f.commit(f.confirm(second, ""))
	f.commit(f.edit(slot, func(d *ledger.SlotDefinition) { allLimits(0)(&d.Policy) }))
	free := f.held(one(f.storedSlot("A"), 2))
	f.commit(f.cancel(third))
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{slotA: 2, resource: 2})
	f.commit(f.returned(f.storedHold(second.ID)))
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{first.ID, second.ID, third.ID, free.ID})
}

func newLimitCountsFromNowOn(f *fixture) {
	slot := f.slot("A", definition(9, 1))
	old := f.held(one(slot, 5))
	f.commit(f.edit(slot, func(d *ledger.SlotDefinition) { allLimits(1)(&d.Policy) }))
	counted := f.held(one(f.storedSlot("A"), 1))
	f.commit(f.cancel(old))
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 1, slotA: 1, resource: 1})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{old.ID, counted.ID})
}

func ownersAreApart(f *fixture) {
	slot := f.slot("A", limited(9, allLimits(1)))
	var ids []ledger.HoldID
	for _, owner := range []ledger.OwnerID{"a", "a#QUOTA", "A", theOwner} {
		change := f.hold(owner, one(slot, 1))
		f.commit(change)
		f.refuse(f.hold(owner, one(slot, 1)), f.refusedQuota(owner))
		ids = append(ids, change.Holds[0].Next.ID)
	}
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, ids)
}

func refusalElsewhereCountsNothing(f *fixture) {
	slot := f.slot("A", limited(1, allLimits(5)))
	stock := f.stock(slot)[0]
	f.refuse(f.hold(theOwner, one(slot, 2)), ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "A", Stock: &stock})
	f.equal("quota", f.quota(theOwner), ledger.Quota{Owner: theOwner})
	hold := f.held(one(slot, 1))
	stock = f.stock(slot)[0]
	f.refuse(f.hold(theOwner, one(slot, 5)), f.refusedQuota(theOwner),
		ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "A", Stock: &stock})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// repeatedChangeCountsOnce: the second try finds its own event, also where the quota would
// refuse it by then.
func repeatedChangeCountsOnce(f *fixture) {
	slot := f.slot("A", limited(9, allLimits(1)))
	create := f.hold(theOwner, one(slot, 1))
	f.commit(create)
	f.commit(create)
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 1, slotA: 1, resource: 1})
	cancel := f.cancel(create.Holds[0].Next)
	f.commit(cancel)
	f.commit(cancel)
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{create.Holds[0].Next.ID})
}

// patient lets an owner let two holds expire before a cool-down of a minute.
func patient(p *ledger.Policy) { p.ExpiriesMax, p.CooldownFor = 2, time.Minute }

// letExpire makes a hold and lets it expire.
func (f *fixture) letExpire(slot ledger.Slot) ledger.Hold {
	f.Helper()
	hold := f.held(one(slot, 1))
	f.now = hold.ReleaseAt.Add(time.Second)
	f.commit(f.expire(hold))
	return hold
}

func expiredHoldsAreCounted(f *fixture) {
	slot := f.slot("A", limited(9, patient))
	var ids []ledger.HoldID
	for n := range ledger.Units(2) {
		ids = append(ids, f.letExpire(slot).ID)
		f.equal("quota", f.quota(theOwner), ledger.Quota{Owner: theOwner, Expired: n + 1, LastExpiredAt: f.now})
	}
	f.refuse(f.hold(theOwner, one(slot, 1)), f.refusedQuota(theOwner))
	other := f.hold("another", one(slot, 1))
	f.commit(other)
	canceled := f.hold("another", one(slot, 1))
	f.commit(canceled)
	f.commit(f.cancel(canceled.Holds[0].Next))
	f.equal("expired holds of who cancels", f.quota("another").Expired, ledger.Units(0))
	free := f.held(one(f.slot("B", definition(4, 1)), 1)) // a slot without a cool-down is sold all the same
	CheckBooks(f.T, f.store, []ledger.SlotID{"A", "B"}, append(ids, other.Holds[0].Next.ID, canceled.Holds[0].Next.ID, free.ID))
}

// cooled builds a hold that requires the cool-down to have passed.
func (f *fixture) cooled(slot ledger.Slot) ledger.Change {
	f.Helper()
	return f.built(ledger.NewHold(ledger.HoldPlan{
		ID: f.holdID(), Owner: theOwner, CooledDown: true,
		Quotes:      []ledger.Quote{{Slot: slot.ID, Quantity: 1, UnitAmount: slot.Terms.Price.AmountMinor}},
		Slots:       map[ledger.SlotID]ledger.Slot{slot.ID: slot},
		Allocations: map[ledger.SlotID][]ledger.Allocation{slot.ID: {{Shard: 0, Quantity: 1}}},
	}, f.origin(ledger.CommandCreateHold), f.now))
}

func cooldownIsInTheWrite(f *fixture) {
	slot := f.slot("A", limited(9, patient))
	ids := []ledger.HoldID{f.letExpire(slot).ID, f.letExpire(slot).ID}
	last := f.now
	f.now = last.Add(time.Minute - time.Millisecond)
	f.refuse(f.cooled(slot), f.refusedQuota(theOwner))
	f.now = last.Add(time.Minute)
	cooled := f.cooled(slot)
	f.commit(cooled)
	f.equal("quota", f.quota(theOwner), ledger.Quota{Owner: theOwner, LastExpiredAt: last})
	again := f.held(one(slot, 1))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, append(ids, cooled.Holds[0].Next.ID, again.ID))

	f.now = f.now.Add(time.Hour)
	fresh := f.cooled(slot) // of an owner of whom nothing is known
	fresh.Quotas[0].Owner = "new"
	fresh.Holds[0].Next.Owner, fresh.Events[0].Hold.Owner = "new", "new"
	f.commit(fresh)
}

func saleForgetsExpiries(f *fixture) {
	slot := f.slot("A", limited(9, patient))
	first := f.held(one(slot, 1))
	ids := []ledger.HoldID{first.ID, f.letExpire(slot).ID}
	f.now = noon
	f.commit(f.confirm(first, ""))
	f.equal("expired holds", f.quota(theOwner).Expired, ledger.Units(0))
	ids = append(ids, f.letExpire(slot).ID)
	f.equal("expired holds", f.quota(theOwner).Expired, ledger.Units(1))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, ids)
}

func operatorForgetsExpiries(f *fixture) {
	slot := f.slot("A", limited(9, func(p *ledger.Policy) { patient(p); p.HoldsPerOwnerMax = 5 }))
	held := f.held(one(slot, 1))
	ids := []ledger.HoldID{held.ID, f.letExpire(slot).ID, f.letExpire(slot).ID}
	last := f.now
	for range 2 { // it may be repeated
		f.commit(ledger.ForgetExpiries(theOwner, f.now))
		f.equal("quota", f.quota(theOwner), ledger.Quota{
			Owner: theOwner, LastExpiredAt: last, Counts: f.quota(theOwner).Counts,
		})
	}
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 1})
	ids = append(ids, f.held(one(slot, 1)).ID)
	f.commit(ledger.ForgetExpiries("nobody", f.now))
	f.equal("quota of nobody", f.quota("nobody"), ledger.Quota{Owner: "nobody"})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, ids)
}

func requirementAloneCountsNothing(f *fixture) {
	slot := f.slot("A", limited(9, patient))
	hold := f.held(one(slot, 1))
	f.equal("quota", f.quota(theOwner), ledger.Quota{Owner: theOwner})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

func (f *fixture) tidier() quotaTidier {
	f.Helper()
	store, capable := f.store.(quotaTidier)
	if !capable {
		f.Skip("this store has no TidyQuota: counts of zero stay")
	}
	return store
}

func tidyingTakesOnlyZeros(f *fixture) {
	store := f.tidier()
	a, b := f.slot("A", limited(9, allLimits(9))), f.slot("B", limited(9, allLimits(9)))
	first, second := f.held(one(a, 1)), f.held(one(b, 2))
	f.commit(f.cancel(first))
	f.equal("counts", f.quota(theOwner).Counts, map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 1, slotA: 0, slotB: 2, resource: 2})
	for range 2 { // it may be repeated
		f.read(store.TidyQuota(f.ctx, theOwner, []ledger.QuotaKey{ledger.QuotaHolds, slotA, slotB, resource, "slot/never"}))
		f.equal("counts", f.quota(theOwner).Counts, map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 1, slotB: 2, resource: 2})
	}
	f.read(store.TidyQuota(f.ctx, "nobody", []ledger.QuotaKey{slotA}))
	f.equal("quota of nobody", f.quota("nobody"), ledger.Quota{Owner: "nobody"})
	f.read(store.TidyQuota(f.ctx, theOwner, nil))
	again := f.held(one(a, 3))
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 2, slotA: 3, slotB: 2, resource: 5})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A", "B"}, []ledger.HoldID{first.ID, second.ID, again.ID})
}

func givenUpCallerTidiesNothing(f *fixture) {
	store := f.tidier()
	slot := f.slot("A", limited(9, allLimits(9)))
	f.commit(f.cancel(f.held(one(slot, 1))))
	before := f.quota(theOwner)
	ctx, giveUp := context.WithCancel(f.ctx)
	giveUp()
	err := store.TidyQuota(ctx, theOwner, []ledger.QuotaKey{slotA})
	f.equal("code", ledger.CodeOf(err), ledger.CodeUnavailable)
	f.equal("quota", f.quota(theOwner), before)
}

// raceForTheLastOfALimit: one owner asks many times at once, and may have one.
func raceForTheLastOfALimit(f *fixture) {
	slot := f.slot("A", limited(raceRounds*raceCallers, func(p *ledger.Policy) { p.QuantityPerOwnerMax = 1 }))
	for round := range raceRounds {
		owner := ledger.OwnerID(fmt.Sprintf("owner-%d", round))
		changes := make([]ledger.Change, raceCallers)
		for i := range changes {
			changes[i] = f.hold(owner, one(slot, 1))
		}
		f.winner(f.race(changes), ledger.LegQuota)
		f.counts(owner, map[ledger.QuotaKey]ledger.Units{slotA: 1})
	}
	f.counters(slot, ledger.Counters{Available: raceRounds * (raceCallers - 1), Held: raceRounds, Capacity: raceRounds * raceCallers})
}
