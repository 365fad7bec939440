package ledgertest

import (
	"slices"
	"time"

	"holdfast/shared/ledger"
)

var archiveRules = []rule{
	{"HoldIsMarkedOnce", holdIsMarkedOnce},
	{"ArchivedHoldNeverChanges", archivedHoldNeverChanges},
	{"StaleMarkIsRefused", staleMarkIsRefused},
	{"CanceledHoldCountsNothing", canceledHoldCountsNothing},
	{"MovedUnitsAreCountedNet", movedUnitsAreCountedNet},
	{"EditedHoldIsCountedNet", editedHoldIsCountedNet},
	{"ReacquiredPairIsCountedApart", reacquiredPairIsCountedApart},
	{"M3_HoldOfARestlessReservationStays", holdOfARestlessReservationStays},
	{"ReservationIsMarkedAfterItsHold", reservationIsMarkedAfterItsHold},
	{"StepOnAnOldCountIsRefused", stepOnAnOldCountIsRefused},
	{"LargestHoldIsMarked", largestHoldIsMarked},
}

// distant is when the rules of the archive begin: no machine's clock has come so far that
// what they mark is over.
var distant = time.Date(2090, time.January, 1, 0, 0, 0, 7_000_000, time.UTC)

const theBatch = ledger.BatchID("batch_1")

func (f *fixture) purgeAt() time.Time { return f.now.Add(30 * 24 * time.Hour).Truncate(time.Second) }

// marking builds the change that marks the stored hold as archived, with its reservation.
func (f *fixture) marking(id ledger.HoldID) ledger.Change {
	f.Helper()
	hold := f.storedHold(id)
	events, err := f.store.HoldEvents(f.ctx, id)
	f.read(err)
	var of *ledger.Reservation
	if hold.Reservation != "" {
		reservation := f.storedReservation(hold.Reservation)
		of = &reservation
	}
	return f.built(ledger.ArchiveHold(hold, of, events, theBatch, f.purgeAt(), f.now))
}

func (f *fixture) markingReservation(id ledger.ReservationID) ledger.Change {
	f.Helper()
	events, err := f.store.ReservationEvents(f.ctx, id)
	f.read(err)
	return f.built(ledger.ArchiveReservation(f.storedReservation(id), events, theBatch, f.purgeAt(), f.now))
}

// confirmed commits a hold that was sold without a payment.
func (f *fixture) confirmed(takes ...take) ledger.Hold {
	f.Helper()
	change := f.confirm(f.held(takes...), "")
	f.commit(change)
	return change.Holds[0].Next
}

// atRest commits a reservation whose hold was given up and that has nothing left to do.
func (f *fixture) atRest(takes ...take) (ledger.Hold, ledger.Reservation) {
	f.Helper()
	hold, reservation := f.paying(takes...)
	release := f.built(ledger.ReleaseUnpaid(hold, f.origin(ledger.CommandDriveReservation), f.now))
	next := reservation.Clone()
	next.Status, next.Reason, next.LookAt = ledger.ReservationCanceled, ledger.ReasonDeclined, time.Time{}
	next.Attempts[0].State = ledger.AttemptVoided
	step := f.step(reservation, next, ledger.EventReservationCanceled, f.origin(ledger.CommandDriveReservation))
	f.commit(ledger.Together(release, step))
	return release.Holds[0].Next, step.Reservations[0].Next
}

func (f *fixture) archivedCounters(slot ledger.Slot, want ...ledger.Counters) {
	f.Helper()
	var got []ledger.Counters
	for _, s := range f.stock(slot) {
		got = append(got, s.Archived)
	}
	f.equal("archived counters of "+string(slot.ID), got, want)
}

func holdIsMarkedOnce(f *fixture) {
	f.now = distant
	slot := f.slot("A", definition(5, 1))
	hold := f.confirmed(one(slot, 2))
	mark := f.marking(hold.ID)
	for range 2 { // it may be repeated after a lost answer
		f.commit(mark)
	}
	marked := hold
	marked.ArchivedIn = theBatch
	f.equal("hold", f.storedHold(hold.ID), marked)
	f.counters(slot, ledger.Counters{Available: 3, Confirmed: 2, Capacity: 5})
	f.archivedCounters(slot, ledger.Counters{Available: -2, Confirmed: 2})
	events, err := f.store.HoldEvents(f.ctx, hold.ID)
	f.read(err)
	f.equal("number of events", len(events), 2)

	other := mark
	other.Archives = slices.Clone(mark.Archives)
	other.Archives[0].Batch = "batch_2"
	f.refuse(other, f.refusedHold(hold.ID))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// archivedHoldNeverChanges: what was decided before the mark does not go through after it.
func archivedHoldNeverChanges(f *fixture) {
	f.now = distant
	slot := f.slot("A", definition(5, 1))
	hold := f.confirmed(one(slot, 2))
	returned := f.returned(hold)
	f.commit(f.marking(hold.ID))
	f.refuse(returned, f.refusedHold(hold.ID))
	_, err := ledger.Return(f.storedHold(hold.ID), nil, f.origin(ledger.CommandCancelReservation), f.now)
	f.equal("code of a return", ledger.CodeOf(err), ledger.CodeHoldArchived)
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

func staleMarkIsRefused(f *fixture) {
	f.now = distant
	slot := f.slot("A", definition(5, 1))
	hold := f.confirmed(one(slot, 2))
	stale := f.marking(hold.ID)
	f.commit(f.returned(hold, ledger.ReturnLine{Slot: "A", Quantity: 1}))
	f.refuse(stale, f.refusedHold(hold.ID))
	missing := stale
	missing.Archives = []ledger.ArchiveMark{{Hold: f.holdID(), Version: 1, Batch: theBatch, PurgeAt: f.purgeAt()}}
	f.refuse(missing, ledger.RefusedLeg{Kind: ledger.LegHold})
	f.commit(f.marking(hold.ID))
	f.archivedCounters(slot, ledger.Counters{Available: -1, Confirmed: 1})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

func canceledHoldCountsNothing(f *fixture) {
	f.now = distant
	slot := f.slot("A", definition(5, 1))
	hold := f.held(one(slot, 2))
	f.commit(f.cancel(hold))
	mark := f.marking(hold.ID)
	f.equal("stock writes", len(mark.Stock), 0)
	f.commit(mark)
	f.archivedCounters(slot, ledger.Counters{})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// movedUnitsAreCountedNet: two holds of one stock item add up, and units that came back
// to nowhere leave its capacity.
func movedUnitsAreCountedNet(f *fixture) {
	f.now = distant
	d := definition(10, 2)
	d.Policy.NoRestock = true
	slot := f.slot("A", d)
	first := f.confirmed(take{slot, []ledger.Allocation{{Shard: 0, Quantity: 3}, {Shard: 1, Quantity: 2}}})
	second := f.confirmed(one(slot, 1))
	f.commit(f.returned(first, ledger.ReturnLine{Slot: "A", Quantity: 4}))
	f.commit(f.marking(first.ID))
	f.commit(f.marking(second.ID))
	f.archivedCounters(slot,
		ledger.Counters{Available: -4, Confirmed: 1, Capacity: -3},
		ledger.Counters{Available: -2, Confirmed: 1, Capacity: -1})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{first.ID, second.ID})
}

// editedHoldIsCountedNet: what an edit took and gave back is told by events of the hold too.
// What its owner has bought counts on while the hold lies in the archive.
func editedHoldIsCountedNet(f *fixture) {
	f.now = distant
	a, b := f.slot("A", limited(5, allLimits(9))), f.slot("B", limited(5, allLimits(9)))
	hold := f.held(one(a, 2))
	f.commit(f.relined(hold, []ledger.Quote{quoted(a, 1), quoted(b, 3)}, one(b, 3)))
	f.commit(f.built(ledger.ConfirmPart(f.storedHold(hold.ID), []ledger.ReturnLine{{Slot: "B", Quantity: 2}}, "",
		f.origin(ledger.CommandConfirmHold), f.now)))
	f.commit(f.marking(hold.ID))
	f.archivedCounters(a, ledger.Counters{})
	f.archivedCounters(b, ledger.Counters{Available: -2, Confirmed: 2})
	f.counts(theOwner, map[ledger.QuotaKey]ledger.Units{slotB: 2, resource: 2})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A", "B"}, []ledger.HoldID{hold.ID})
}

// reacquiredPairIsCountedApart: one of the two has events that take units into held, the
// other one those that take them out.
func reacquiredPairIsCountedApart(f *fixture) {
	f.now = distant
	slot := f.slot("A", definition(5, 1))
	hold, reservation := f.paying(one(slot, 2))
	f.now = hold.ReleaseAt
	change := f.reacquired(hold, nil)
	born := change.Holds[1].Next
	if born.Reacquires == "" {
		born = change.Holds[0].Next
	}
	next := reservation.Clone()
	next.Status, next.SoldHold, next.LookAt = ledger.ReservationAuthorized, born.ID, time.Time{}
	f.commit(ledger.Together(change, f.step(reservation, next, ledger.EventReservationAuthorized, f.origin(ledger.CommandDriveReservation))))
	for _, status := range []ledger.ReservationStatus{ledger.ReservationConfirmed, ledger.ReservationCaptured, ledger.ReservationCompleted} {
		reservation = f.storedReservation(reservation.ID)
		next = reservation.Clone()
		next.Status = status
		f.commit(f.step(reservation, next, ledger.EventReservationConfirmed, f.origin(ledger.CommandDriveReservation)))
	}
	all := []ledger.HoldID{hold.ID, born.ID}
	f.commit(f.marking(hold.ID))
	f.archivedCounters(slot, ledger.Counters{Available: -2, Held: 2})
	f.equal("archived holds", f.storedReservation(reservation.ID).HoldsArchived, 1)
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, all, reservation.ID)
	_, err := ledger.ArchiveReservation(f.storedReservation(reservation.ID), nil, theBatch, f.purgeAt(), f.now)
	f.equal("code while a hold is left", ledger.CodeOf(err), ledger.CodeNotArchivable)
	f.commit(f.marking(born.ID))
	f.archivedCounters(slot, ledger.Counters{Available: -2, Confirmed: 2})
	f.commit(f.markingReservation(reservation.ID))
	f.equal("archived in", f.storedReservation(reservation.ID).ArchivedIn, theBatch)
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, all, reservation.ID)
}

// holdOfARestlessReservationStays: a mark that was decided while the reservation was at
// rest is refused when it is not any more, by its own step or by being listed for a look.
func holdOfARestlessReservationStays(f *fixture) {
	f.now = distant
	slot := f.slot("A", definition(5, 1))
	hold, reservation := f.atRest(one(slot, 2))
	mark := f.marking(hold.ID)
	if store, capable := f.store.(postponer); capable {
		f.read(store.Postpone(f.ctx, reservation.ID, reservation.Version, f.now.Add(time.Minute), 0))
		f.refuse(mark, f.refusedReservation(reservation.ID))
		f.read(store.Postpone(f.ctx, reservation.ID, reservation.Version, time.Time{}, 0))
	}
	next := reservation.Clone()
	next.Status, next.LookAt = ledger.ReservationAuthorized, f.now
	f.commit(f.step(reservation, next, ledger.EventReservationAuthorized, f.origin(ledger.CommandDriveReservation)))
	f.refuse(mark, f.refusedReservation(reservation.ID))
	f.equal("archived in", f.storedHold(hold.ID).ArchivedIn, ledger.BatchID(""))
	restless := f.storedReservation(reservation.ID)
	_, err := ledger.ArchiveHold(f.storedHold(hold.ID), &restless, nil, theBatch, f.purgeAt(), f.now)
	f.equal("code", ledger.CodeOf(err), ledger.CodeNotArchivable)
}

func reservationIsMarkedAfterItsHold(f *fixture) {
	f.now = distant
	slot := f.slot("A", definition(5, 1))
	hold, reservation := f.atRest(one(slot, 2))
	_, err := ledger.ArchiveReservation(reservation, nil, theBatch, f.purgeAt(), f.now)
	f.equal("code before its hold", ledger.CodeOf(err), ledger.CodeNotArchivable)
	f.commit(f.marking(hold.ID))
	noted := reservation
	noted.HoldsArchived = 1
	f.equal("reservation", f.storedReservation(reservation.ID), noted)
	mark := f.markingReservation(reservation.ID)
	next := noted.Clone()
	next.Status, next.LookAt = ledger.ReservationAuthorized, f.now
	step := f.step(noted, next, ledger.EventReservationAuthorized, f.origin(ledger.CommandDriveReservation))
	for range 2 { // it may be repeated after a lost answer
		f.commit(mark)
	}
	noted.ArchivedIn = theBatch
	f.equal("reservation", f.storedReservation(reservation.ID), noted)
	f.refuse(step, f.refusedReservation(reservation.ID))
	if store, capable := f.store.(postponer); capable {
		f.read(store.Postpone(f.ctx, reservation.ID, reservation.Version, f.now, 1))
		f.equal("reservation after being postponed", f.storedReservation(reservation.ID), noted)
	}
	if _, listed := f.lookAt(reservation.ID); listed {
		f.Errorf("an archived reservation is in the due index")
	}
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID}, reservation.ID)
}

// stepOnAnOldCountIsRefused: the note that a hold is archived makes no version, so a step
// that did not see it must not write over it.
func stepOnAnOldCountIsRefused(f *fixture) {
	f.now = distant
	slot := f.slot("A", definition(5, 1))
	hold, reservation := f.atRest(one(slot, 2))
	reopen := func(r ledger.Reservation) ledger.Change {
		next := r.Clone()
		next.Status, next.LookAt = ledger.ReservationAuthorized, f.now
		return f.step(r, next, ledger.EventReservationAuthorized, f.origin(ledger.CommandDriveReservation))
	}
	unseen := reopen(reservation)
	f.commit(f.marking(hold.ID))
	f.refuse(unseen, f.refusedReservation(reservation.ID))
	f.commit(reopen(f.storedReservation(reservation.ID)))
	f.equal("archived holds", f.storedReservation(reservation.ID).HoldsArchived, 1)
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID}, reservation.ID)
}

func largestHoldIsMarked(f *fixture) {
	f.now = distant
	takes, ids := f.largestTakes("archived")
	hold := f.confirmed(takes...)
	mark := f.marking(hold.ID)
	f.equal("number of stock actions", len(mark.Stock), ledger.StockActionsMax)
	f.commit(mark)
	CheckBooks(f.T, f.store, ids, []ledger.HoldID{hold.ID})
}
