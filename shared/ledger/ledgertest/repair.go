package ledgertest

import (
	"time"

	"holdfast/shared/ledger"
)

var repairRules = []rule{
	{"SetsCountersAndTerms", repairSetsCountersAndTerms},
	{"StockIsUnderItsVersion", stockRepairIsUnderTheVersion},
	{"SlotIsUnderItsVersion", stockRepairIsUnderTheSlotsVersion},
	{"SeveralItemsInOneStep", repairOfSeveralItems},
	{"KeepsTheArchivedCounters", repairKeepsArchivedCounters},
	{"RepeatedAfterALostAnswer", repeatedRepairIsRecognised},
	{"HoldIsListedAsItIs", repairedHoldIsListed},
	{"ParkedHoldIsDueAgain", repairedHoldIsNotParked},
	{"EndedHoldStaysEnded", repairedEndedHold},
	{"HoldIsUnderItsVersion", holdRepairIsUnderTheVersion},
	{"ArchivedHoldIsLeftAlone", archivedHoldIsNotRepaired},
	{"ReservationIsListedAsItIs", repairedReservationIsListed},
	{"QuotaIsSetUnderWhatWasFound", quotaIsRepaired},
	{"AbsentCountIsZero", absentCountIsZero},
	{"QuotaGoesWithItsCase", quotaRepairGoesWithItsCase},
}

// repair is the origin of what the audit does.
func (f *fixture) repair() ledger.Origin {
	origin := f.origin(ledger.CommandRepair)
	origin.Actor, origin.Why = ledger.ActorAudit, "the holds say otherwise"
	return origin
}

// repairedStock builds the change that gives these stock items, as they are stored, other
// counters and the slot's terms.
func (f *fixture) repairedStock(slot ledger.Slot, counters map[ledger.Shard]ledger.Counters) ledger.Change {
	f.Helper()
	var repairs []ledger.StockRepair
	for _, s := range f.stock(slot) {
		if want, wrong := counters[s.Shard]; wrong {
			repairs = append(repairs, ledger.StockRepair{Slot: slot.ID, Shard: s.Shard, Replaces: s.Version, Counters: want, Terms: slot.Terms})
		}
	}
	return ledger.RepairStock(slot, repairs, f.repair(), f.now)
}

// broken makes the counters of the first shard wrong, and nothing else: it is the only step
// that can.
func (f *fixture) broken(slot ledger.Slot, counters ledger.Counters) ledger.Slot {
	f.Helper()
	f.commit(f.repairedStock(slot, map[ledger.Shard]ledger.Counters{0: counters}))
	return f.storedSlot(slot.ID)
}

func repairSetsCountersAndTerms(f *fixture) {
	slot := f.slot("A", definition(10, 1))
	hold := f.held(one(slot, 3))
	broken := f.broken(slot, ledger.Counters{Available: 5, Held: 4, Confirmed: 1, Capacity: 10})
	before := f.stock(broken)[0]
	f.now = f.now.Add(time.Minute)
	change := f.repairedStock(broken, map[ledger.Shard]ledger.Counters{0: {Available: 7, Held: 3, Capacity: 10}})
	f.commit(change)
	after := before
	after.Counters, after.Version = ledger.Counters{Available: 7, Held: 3, Capacity: 10}, before.Version+1
	f.equal("stock", f.stock(broken), []ledger.Stock{after})
	want := broken
	want.Version, want.UpdatedAt = broken.Version+1, f.now
	f.equal("slot", f.storedSlot("A"), want)
	events, err := f.store.SlotEvents(f.ctx, "A")
	f.read(err)
	last := events[len(events)-1]
	f.equal("event", last.Type, ledger.EventAuditRepaired)
	f.equal("origin", last.Origin, change.Events[0].Origin)
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
	f.commit(f.cancel(hold))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})

	wrong := f.storedSlot("A")
	right := wrong.Terms
	for _, terms := range []ledger.Terms{
		{Price: ledger.Money{AmountMinor: 9, Currency: "JPY"}, Shards: 1, Retired: 2}, {Open: true, Price: right.Price, Shards: 1}, right,
	} {
		wrong = f.storedSlot("A")
		wrong.Terms = terms
		repair := f.repairedStock(f.storedSlot("A"), map[ledger.Shard]ledger.Counters{0: {Available: 10, Capacity: 10}})
		repair.StockRepairs[0].Terms = terms
		f.commit(repair)
		read := f.storedSlot("A")
		f.equal("terms", f.stock(read)[0].Terms, terms)
	}
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// stockRepairIsUnderTheVersion: what was added up before a step is not written after it.
func stockRepairIsUnderTheVersion(f *fixture) {
	slot := f.slot("A", definition(10, 2))
	hold := f.held(one(slot, 3))
	stale := f.repairedStock(slot, map[ledger.Shard]ledger.Counters{0: {Available: 2, Held: 3, Capacity: 5}, 1: {Available: 5, Capacity: 5}})
	f.commit(f.cancel(hold))
	f.refuse(stale, f.refusedStock(slot, 0))
	missing := ledger.RepairStock(slot, []ledger.StockRepair{{Slot: "A", Shard: 7, Replaces: 1, Terms: slot.Terms}}, f.repair(), f.now)
	f.refuse(missing, ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "A", Shard: 7})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// stockRepairIsUnderTheSlotsVersion: two who found the same thing put it right once.
func stockRepairIsUnderTheSlotsVersion(f *fixture) {
	slot := f.slot("A", definition(10, 1))
	first := f.repairedStock(slot, map[ledger.Shard]ledger.Counters{0: {Available: 9, Held: 1, Capacity: 10}})
	second := f.repairedStock(slot, map[ledger.Shard]ledger.Counters{0: {Available: 8, Held: 2, Capacity: 10}})
	f.commit(first)
	stored := f.storedSlot("A")
	f.refuse(second, f.refusedStock(slot, 0), ledger.RefusedLeg{Kind: ledger.LegSlot, StoredSlot: &stored},
		ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[0]})
	again := second
	again.StockRepairs = []ledger.StockRepair{second.StockRepairs[0]}
	again.StockRepairs[0].Replaces++
	f.refuse(again, ledger.RefusedLeg{Kind: ledger.LegSlot, StoredSlot: &stored}, ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[0]})
}

func repairOfSeveralItems(f *fixture) {
	slot := f.slot("A", definition(30, 3))
	want := []ledger.Counters{{Available: 9, Held: 1, Capacity: 10}, {Available: 10, Capacity: 10}, {Available: 7, Confirmed: 4, Capacity: 11}}
	f.commit(f.repairedStock(slot, map[ledger.Shard]ledger.Counters{0: want[0], 2: want[2]}))
	f.counters(f.storedSlot("A"), want...)
}

func repairKeepsArchivedCounters(f *fixture) {
	f.now = distant
	slot := f.slot("A", definition(5, 1))
	hold := f.confirmed(one(slot, 2))
	f.commit(f.marking(hold.ID))
	broken := f.broken(slot, ledger.Counters{Available: 2, Confirmed: 3, Capacity: 5})
	f.commit(f.repairedStock(broken, map[ledger.Shard]ledger.Counters{0: {Available: 3, Confirmed: 2, Capacity: 5}}))
	f.archivedCounters(f.storedSlot("A"), ledger.Counters{Available: -2, Confirmed: 2})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// repeatedRepairIsRecognised: the second try finds its own event, and takes nothing twice.
func repeatedRepairIsRecognised(f *fixture) {
	slot := f.slot("A", definition(10, 1))
	hold := f.held(one(slot, 3))
	change := f.repairedStock(slot, map[ledger.Shard]ledger.Counters{0: {Available: 7, Held: 3, Capacity: 10}})
	for range 2 {
		f.commit(change)
	}
	f.commit(f.cancel(hold))
	f.commit(change)
	f.counters(f.storedSlot("A"), ledger.Counters{Available: 10, Capacity: 10})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// repairedHoldIsListed: a repair changes nothing of the hold but its version.
func repairedHoldIsListed(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold, reservation := f.paying(one(slot, 1))
	f.now = f.now.Add(time.Second)
	change := ledger.RepairHold(hold, f.repair(), f.now)
	f.commit(change)
	want := hold
	want.Version++
	f.equal("hold", f.storedHold(hold.ID), want)
	dueAt, _ := hold.DueAt()
	f.equal("entry", f.entry(hold), ledger.DueHold{ID: hold.ID, DueAt: dueAt})
	f.commit(f.sold(want, f.authorized(reservation)))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID}, reservation.ID)
}

func repairedHoldIsNotParked(f *fixture) {
	store := f.parks()
	hold := f.held(one(f.slot("A", definition(4, 1)), 1))
	f.parked(store, f.entry(hold), 3, hold.ReleaseAt.Add(time.Minute))
	f.commit(ledger.RepairHold(hold, f.repair(), f.now))
	f.equal("entry", f.entry(hold), ledger.DueHold{ID: hold.ID, DueAt: hold.ReleaseAt})
	f.equal("parked holds", f.parkedShard(store, hold.ID), []ledger.DueHold{})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

func repairedEndedHold(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold := f.confirmed(one(slot, 1))
	f.commit(ledger.RepairHold(hold, f.repair(), f.now))
	want := hold
	want.Version++
	f.equal("hold", f.storedHold(hold.ID), want)
	if _, listed := f.dueAt(hold.ID); listed {
		f.Errorf("a hold that was sold is among those that are due")
	}
	f.commit(f.returned(want))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

func holdRepairIsUnderTheVersion(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold := f.held(one(slot, 1))
	stale := ledger.RepairHold(hold, f.repair(), f.now)
	cancel := f.cancel(hold)
	f.commit(cancel)
	f.refuse(stale, f.refusedHold(hold.ID), ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &cancel.Events[0]})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

func archivedHoldIsNotRepaired(f *fixture) {
	f.now = distant
	hold := f.confirmed(one(f.slot("A", definition(4, 1)), 1))
	f.commit(f.marking(hold.ID))
	f.refuse(ledger.RepairHold(hold, f.repair(), f.now), f.refusedHold(hold.ID))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

func repairedReservationIsListed(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold, reservation := f.paying(one(slot, 1))
	f.now = f.now.Add(time.Minute)
	change := ledger.RepairReservation(reservation, f.repair(), f.now)
	f.commit(change)
	lookAt, listed := f.lookAt(reservation.ID)
	f.equal("is listed", listed, true)
	f.equal("is looked at", lookAt, f.now)
	f.refuse(ledger.RepairReservation(reservation, f.repair(), f.now), f.refusedReservation(reservation.ID),
		ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &change.Events[0]})
	f.commit(f.sold(hold, f.authorized(f.storedReservation(reservation.ID))))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID}, reservation.ID)
}

// repairedQuota builds the change that sets these counts of the owner, as they were found.
func (f *fixture) repairedQuota(found ledger.Quota, want map[ledger.QuotaKey]ledger.Units) ledger.Change {
	f.Helper()
	finding := ledger.NewReview(ledger.ReviewFinding, "quota_mismatch/"+string(found.Owner), f.now)
	finding.Finding = "quota_mismatch"
	stored := ledger.Review{}
	if known := f.reviews(finding.ID); len(known) > 0 {
		stored = known[0]
	}
	return ledger.RepairQuota(found, want, stored, finding, f.repair(), f.now)
}

func quotaIsRepaired(f *fixture) {
	slot := f.slot("A", limited(9, allLimits(5)))
	hold := f.held(one(slot, 2))
	f.commit(f.repairedQuota(f.quota(theOwner), map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 4, slotA: 1})) // breaks them
	broken := f.quota(theOwner)
	right := map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 1, slotA: 2}
	repair := f.repairedQuota(broken, right)
	second := f.repairedQuota(broken, right)
	for range 2 { // it may be repeated after a lost answer
		f.commit(repair)
	}
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 1, slotA: 2, resource: 2})
	id := repair.Reviews[0].Next.ID
	f.refuse(second, f.refusedQuota(theOwner), f.refusedReview(id), f.refusedReviewEvent(repair))
	f.reviewEvents(id, ledger.EventAuditRepaired, ledger.EventAuditRepaired)
	f.equal("decision", f.reviews(id)[0].Decision, ledger.DecisionRepaired)
	f.equal("what waits", f.waiting(5), []ledger.InReview{})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// absentCountIsZero: of an owner who was never counted, of a count that is not there, and of
// one that is zero.
func absentCountIsZero(f *fixture) {
	none := ledger.Quota{Owner: theOwner}
	f.commit(f.repairedQuota(none, map[ledger.QuotaKey]ledger.Units{slotA: 2}))
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{slotA: 2})
	f.commit(f.repairedQuota(none, map[ledger.QuotaKey]ledger.Units{slotB: 1}))
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{slotA: 2, slotB: 1})
	f.refuse(f.repairedQuota(none, map[ledger.QuotaKey]ledger.Units{slotA: 5}), f.refusedQuota(theOwner))
	f.refuse(f.repairedQuota(ledger.Quota{Owner: theOwner, Counts: map[ledger.QuotaKey]ledger.Units{slotA: 3}},
		map[ledger.QuotaKey]ledger.Units{slotA: 1}), f.refusedQuota(theOwner))
	f.commit(f.repairedQuota(f.quota(theOwner), map[ledger.QuotaKey]ledger.Units{slotA: 0}))
	f.commit(f.repairedQuota(none, map[ledger.QuotaKey]ledger.Units{slotA: 7}))
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{slotA: 7, slotB: 1})
	absent := ledger.Quota{Owner: theOwner, Counts: map[ledger.QuotaKey]ledger.Units{resource: 1}}
	f.refuse(f.repairedQuota(absent, map[ledger.QuotaKey]ledger.Units{resource: 0}), f.refusedQuota(theOwner))
}

// quotaRepairGoesWithItsCase: who has seen an older case changes no count.
func quotaRepairGoesWithItsCase(f *fixture) {
	none := ledger.Quota{Owner: theOwner}
	stale := f.repairedQuota(none, map[ledger.QuotaKey]ledger.Units{slotA: 2})
	finding := ledger.NewReview(ledger.ReviewFinding, "quota_mismatch/"+string(theOwner), f.now)
	opened := ledger.OpenReview(ledger.Review{}, finding, f.origin(ledger.CommandOpenReview), f.now)
	f.commit(opened)
	f.refuse(stale, f.refusedReview(finding.ID), f.refusedReviewEvent(opened))
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{})
	f.commit(f.repairedQuota(none, map[ledger.QuotaKey]ledger.Units{slotA: 2}))
	f.reviewEvents(finding.ID, ledger.EventReviewOpened, ledger.EventAuditRepaired)
}
