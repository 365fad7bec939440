package ledgertest

import (
	"time"

	"holdfast/shared/ledger"
)

var holdPaymentRules = []rule{
	{"PaidLifeIsStoredExactly", paidLifeIsStoredExactly},
	{"TermsAreStoredExactly", termsAreStoredExactly},
	{"BoundaryMillisecondOfExpiry", expiryTimeIsInTheWrite},
	{"P4_BoundaryMillisecondOfPaidRelease", paidReleaseTimeIsInTheWrite},
	{"BoundaryMillisecondOfUnknown", unknownTimeIsInTheWrite},
	{"OpenAttemptIsInTheWrite", openAttemptIsInTheWrite},
	{"OwnReservationIsInTheWrite", ownReservationIsInTheWrite},
	{"P3_LeftStatusIsInTheWrite", leftStatusIsInTheWrite},
	{"OpenSlotIsInTheWrite", openSlotIsInTheWrite},
	{"P3_ReacquiredWhileHeld", reacquiredWhileHeld},
	{"P3_ReacquiredAfterItsEnd", reacquiredAfterItsEnd},
}

// refusedHold is the leg of a hold that refused a change as it is stored.
func (f *fixture) refusedHold(id ledger.HoldID) ledger.RefusedLeg {
	f.Helper()
	hold := f.storedHold(id)
	return ledger.RefusedLeg{Kind: ledger.LegHold, Hold: &hold}
}

func paidLifeIsStoredExactly(f *fixture) {
	slot := f.slot("A", definition(10, 2))
	hold := f.held(take{slot, []ledger.Allocation{{Shard: 0, Quantity: 3}, {Shard: 1, Quantity: 2}}})
	id, reservation := hold.ID, f.reservationID()
	var changes []ledger.Change
	commit := func(change ledger.Change) ledger.Hold {
		f.Helper()
		f.now = f.now.Add(time.Second)
		f.commit(change)
		changes = append(changes, change)
		f.equal("hold", f.storedHold(id), change.Holds[0].Next)
		due, waits := change.Holds[0].Next.DueAt()
		if !waits {
			due = time.Time{}
		}
		at, listed := f.dueAt(id)
		f.equal("is in the due index", listed, waits)
		f.equal("due time", at, due)
		return f.storedHold(id)
	}
	attempt := func(n ledger.AttemptNumber) ledger.Change {
		return f.built(ledger.StartAttempt(hold, reservation, n, f.origin(ledger.CommandStartPayment), f.now))
	}
	hold = commit(attempt(1))
	f.equal("release time", hold.ReleaseAt, hold.ExpiresAt.Add(hold.GraceFor))
	hold = commit(f.closed(hold))
	hold = commit(attempt(2))
	f.equal("open attempt", hold.AttemptOpen, ledger.AttemptNumber(2))
	hold = commit(f.built(ledger.ConfirmPaid(hold, f.origin(ledger.CommandDriveReservation), f.now)))
	f.counters(slot, ledger.Counters{Available: 2, Confirmed: 3, Capacity: 5}, ledger.Counters{Available: 3, Confirmed: 2, Capacity: 5})
	hold = commit(f.returned(hold, ledger.ReturnLine{Slot: "A", Quantity: 4}))
	f.equal("status", hold.Status, ledger.StatusConfirmed)
	f.equal("returned", hold.Lines[0].Returned, []ledger.Allocation{{Shard: 0, Quantity: 3}, {Shard: 1, Quantity: 1}})
	f.counters(slot, ledger.Counters{Available: 5, Capacity: 5}, ledger.Counters{Available: 4, Confirmed: 1, Capacity: 5})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{id})
	hold = commit(f.returned(hold))
	f.equal("status", hold.Status, ledger.StatusReturned)
	f.counters(slot, ledger.Counters{Available: 5, Capacity: 5}, ledger.Counters{Available: 5, Capacity: 5})

	var want []ledger.Event
	for _, change := range changes {
		want = append(want, change.Events...)
	}
	events, err := f.store.HoldEvents(f.ctx, id)
	f.read(err)
	f.equal("events after the first", events[1:], want)
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{id})
}

func termsAreStoredExactly(f *fixture) {
	d := definition(4, 1)
	d.StartsAt = noon.Add(48 * time.Hour)
	d.Policy.CancelFor, d.Policy.NoRestock, d.Policy.GrantTo = 24*time.Hour, true, "wallet-{owner}"
	d.Policy.Payment = ledger.PaymentTerms{
		OnDecline: ledger.OnDeclineKeep, LatePayment: ledger.LatePaymentReview, LateByProvider: true,
		UnknownFor: 7*time.Minute + 7*time.Millisecond, Delivery: ledger.DeliveryEvent,
	}
	slot := f.slot("A", d)
	f.equal("slot", f.storedSlot("A"), slot)
	f.equal("policy", f.storedSlot("A").Policy, d.Policy)
	change := f.hold("U-1", one(slot, 2))
	f.commit(change)
	hold := f.storedHold(change.Holds[0].Next.ID)
	f.equal("hold", hold, change.Holds[0].Next)
	f.equal("terms", hold.Terms, d.Policy.Payment)
	line := hold.Lines[0]
	f.equal("last time to give back", line.CancelUntil, d.StartsAt.Add(-24*time.Hour))
	f.equal("no restock", line.NoRestock, true)
	f.equal("grant", line.GrantTo, ledger.SlotID("wallet-U-1"))
	f.commit(f.confirm(hold, ""))
	f.commit(f.returned(f.storedHold(hold.ID)))
	f.counters(slot, ledger.Counters{Available: 2, Capacity: 2})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// expiryTimeIsInTheWrite: the user sees the hold alive until expires_at. Its release time
// is later, so it can't be that which refuses.
func expiryTimeIsInTheWrite(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold, reservation := f.paying(one(slot, 1))
	f.commit(f.closed(hold))
	hold = f.storedHold(hold.ID)
	again := f.built(ledger.StartAttempt(hold, reservation.ID, 2, f.origin(ledger.CommandStartPayment), f.now))
	again.At = hold.ExpiresAt
	f.refuse(again, f.refusedHold(hold.ID))
	again.At = hold.ExpiresAt.Add(-time.Millisecond)
	f.commit(again)
}

func paidReleaseTimeIsInTheWrite(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold, _ := f.paying(one(slot, 1))
	sale := f.built(ledger.ConfirmPaid(hold, f.origin(ledger.CommandDriveReservation), f.now))
	sale.At = hold.ReleaseAt
	f.refuse(sale, f.refusedHold(hold.ID))
	f.now = hold.ReleaseAt
	release := f.built(ledger.ReleaseUnpaid(hold, f.origin(ledger.CommandDriveReservation), f.now))
	release.At = hold.ReleaseAt.Add(-time.Millisecond)
	f.refuse(release, f.refusedHold(hold.ID))
	sale.At = hold.ReleaseAt.Add(-time.Millisecond)
	f.commit(sale)
	f.counters(slot, ledger.Counters{Available: 3, Confirmed: 1, Capacity: 4})
}

func unknownTimeIsInTheWrite(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold, _ := f.paying(one(slot, 1))
	over := hold.ReleaseAt.Add(hold.Terms.UnknownFor)
	f.now = over
	expire := f.built(ledger.ExpireUnknown(hold, f.origin(ledger.CommandExpireHold), f.now))
	for _, early := range []time.Time{hold.ReleaseAt, over.Add(-time.Millisecond)} {
		expire.At = early
		f.refuse(expire, f.refusedHold(hold.ID))
	}
	expire.At = over
	f.commit(expire)
	f.counters(slot, ledger.Counters{Available: 4, Capacity: 4})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// openAttemptIsInTheWrite: each change was built for a hold without an open attempt, and
// names the right version, so that only the attempt can refuse it.
func openAttemptIsInTheWrite(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold, reservation := f.paying(one(slot, 1))
	pretended := hold
	pretended.AttemptOpen = 0
	start := f.built(ledger.StartAttempt(pretended, reservation.ID, 2, f.origin(ledger.CommandStartPayment), f.now))
	f.refuse(start, f.refusedHold(hold.ID))
	f.refuse(f.cancel(pretended), f.refusedHold(hold.ID))
	f.now = hold.ReleaseAt
	f.refuse(f.expire(pretended), f.refusedHold(hold.ID))
	f.commit(f.closed(hold))
	f.commit(f.expire(f.storedHold(hold.ID)))

	f.now = noon
	other, _ := f.paying(one(slot, 1))
	f.commit(f.closed(other))
	f.commit(f.cancel(f.storedHold(other.ID)))
	f.counters(slot, ledger.Counters{Available: 4, Capacity: 4})
}

// ownReservationIsInTheWrite: a hold is sold to its own reservation, or without one.
func ownReservationIsInTheWrite(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold, _ := f.paying(one(slot, 1))
	f.commit(f.closed(hold))
	hold = f.storedHold(hold.ID)
	pretended := hold
	pretended.Reservation = ""
	f.refuse(f.confirm(pretended, ""), f.refusedHold(hold.ID))
	sellTo := func(h ledger.Hold, id ledger.ReservationID) ledger.Change {
		h.Reservation = id
		return f.built(ledger.ConfirmPaid(h, f.origin(ledger.CommandDriveReservation), f.now))
	}
	f.refuse(sellTo(hold, f.reservationID()), f.refusedHold(hold.ID))
	f.refuse(sellTo(hold, ""), f.refusedHold(hold.ID))
	f.commit(sellTo(hold, hold.Reservation))

	free := f.held(one(slot, 1))
	f.refuse(sellTo(free, f.reservationID()), f.refusedHold(free.ID))
	f.commit(f.confirm(free, ""))
	f.counters(slot, ledger.Counters{Available: 2, Confirmed: 2, Capacity: 4})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID, free.ID})
}

// leftStatusIsInTheWrite is P3 after the sale: only what is sold is given back, once.
// Another sold hold keeps the stock from refusing.
func leftStatusIsInTheWrite(f *fixture) {
	slot := f.slot("A", definition(9, 1))
	other := f.held(one(slot, 4))
	f.commit(f.confirm(other, ""))
	for _, end := range f.endings() {
		f.now = noon
		hold := f.held(one(slot, 1))
		if end.status != ledger.StatusConfirmed {
			f.commit(end.build(hold))
			pretended := f.storedHold(hold.ID)
			pretended.Status = ledger.StatusConfirmed
			f.refuse(f.returned(pretended), f.refusedHold(hold.ID))
			continue
		}
		pretended := hold
		pretended.Status = ledger.StatusConfirmed
		f.refuse(f.returned(pretended), f.refusedHold(hold.ID))
		f.commit(f.confirm(hold, ""))
		f.commit(f.returned(f.storedHold(hold.ID)))
		pretended = f.storedHold(hold.ID)
		pretended.Status, pretended.Lines[0].Returned = ledger.StatusConfirmed, nil
		f.refuse(f.returned(pretended), f.refusedHold(hold.ID))
	}
}

// openSlotIsInTheWrite: a late payment takes units of an open slot only, at whatever price
// it has by then.
func openSlotIsInTheWrite(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold, _ := f.paying(one(slot, 1))
	f.now = hold.ReleaseAt
	while := f.reacquired(hold, nil)
	f.commit(f.edit(slot, func(d *ledger.SlotDefinition) { d.Terms.Open = false }))
	stock := f.stock(slot)[0]
	leg := ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "A", Stock: &stock}
	f.refuse(while, leg)
	f.commit(f.built(ledger.ReleaseUnpaid(hold, f.origin(ledger.CommandDriveReservation), f.now)))
	after := f.reacquired(f.storedHold(hold.ID), map[ledger.SlotID][]ledger.Allocation{"A": {{Shard: 0, Quantity: 1}}})
	stock = f.stock(slot)[0]
	f.refuse(after, leg)
	f.commit(f.edit(f.storedSlot("A"), func(d *ledger.SlotDefinition) { d.Terms.Open, d.Terms.Price.AmountMinor = true, 900 }))
	f.commit(after)
	f.counters(slot, ledger.Counters{Available: 3, Confirmed: 1, Capacity: 4})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID, ledger.ReacquiredID(hold)})
}

func (f *fixture) reacquired(h ledger.Hold, allocations map[ledger.SlotID][]ledger.Allocation) ledger.Change {
	f.Helper()
	return f.built(ledger.Reacquire(h, allocations, f.origin(ledger.CommandDriveReservation), f.now))
}

func reacquiredWhileHeld(f *fixture) {
	slot := f.slot("A", definition(4, 2))
	hold, _ := f.paying(take{slot, []ledger.Allocation{{Shard: 0, Quantity: 2}, {Shard: 1, Quantity: 1}}})
	f.now = hold.ReleaseAt
	change := f.reacquired(hold, nil)
	expire := f.built(ledger.ReleaseUnpaid(hold, f.origin(ledger.CommandDriveReservation), f.now))
	early := change
	early.At = hold.ReleaseAt.Add(-time.Millisecond)
	f.refuse(early, f.refusedHold(hold.ID))
	f.commit(change)
	for _, write := range change.Holds {
		f.equal("hold", f.storedHold(write.Next.ID), write.Next)
	}
	f.counters(slot, ledger.Counters{Confirmed: 2, Capacity: 2}, ledger.Counters{Available: 1, Confirmed: 1, Capacity: 2})
	after := f.snapshot(change)
	f.commit(change)
	f.equal("everything that can be read, after the second try", f.snapshot(change), after)
	if err := f.store.Commit(f.ctx, expire); err == nil {
		f.Errorf("P3: the old hold gave its units back after they were sold")
	}
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID, ledger.ReacquiredID(hold)})
}

// reacquiredAfterItsEnd: two workers who meet the same late payment sell once.
func reacquiredAfterItsEnd(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold, _ := f.paying(one(slot, 2))
	f.now = hold.ReleaseAt
	f.commit(f.built(ledger.ReleaseUnpaid(hold, f.origin(ledger.CommandDriveReservation), f.now)))
	hold = f.storedHold(hold.ID)
	allocations := map[ledger.SlotID][]ledger.Allocation{"A": {{Shard: 0, Quantity: 2}}}
	first, second := f.reacquired(hold, allocations), f.reacquired(hold, allocations)
	f.commit(first)
	born := f.refusedHold(ledger.ReacquiredID(hold))
	f.equal("born hold", *born.Hold, first.Holds[0].Next)
	f.refuse(second, born, ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[0]})
	if _, listed := f.dueAt(born.Hold.ID); listed {
		f.Errorf("a hold that was born CONFIRMED is in the due index")
	}
	f.counters(slot, ledger.Counters{Available: 2, Confirmed: 2, Capacity: 4})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID, born.Hold.ID})
}
