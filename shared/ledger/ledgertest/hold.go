package ledgertest

import (
	"time"

	"holdfast/shared/ledger"
)

var holdRules = []rule{
	{"IsStoredExactly", holdIsStoredExactly},
	{"UnknownIsNotFound", unknownHoldIsNotFound},
	{"ConfirmCancelExpire", holdEndsInEachWay},
	{"CreatedTwice", holdCreatedTwice},
	{"MissingIsRefused", missingHoldIsRefused},
	{"StaleVersionIsRefused", staleHoldIsRefused},
	{"EndedIsRefused", endedHoldIsRefused},
	{"P4_BoundaryMillisecondOfRelease", releaseTimeIsInTheWrite},
}

func holdIsStoredExactly(f *fixture) {
	a := f.slot("A", definition(10, 2))
	b := f.slot("B", definition(10, 1))
	change := f.hold(theOwner,
		take{a, []ledger.Allocation{{Shard: 0, Quantity: 3}, {Shard: 1, Quantity: 2}}}, one(b, 4))
	f.commit(change)

	want := change.Holds[0].Next
	f.equal("hold", f.storedHold(want.ID), want)
	events, err := f.store.HoldEvents(f.ctx, want.ID)
	f.read(err)
	f.equal("events", events, change.Events)
	f.counters(a, ledger.Counters{Available: 2, Held: 3, Capacity: 5}, ledger.Counters{Available: 3, Held: 2, Capacity: 5})
	f.counters(b, ledger.Counters{Available: 6, Held: 4, Capacity: 10})
	for _, s := range f.stock(a) {
		f.equal("stock version after its second write", s.Version, ledger.Version(2))
	}
	CheckBooks(f.T, f.store, []ledger.SlotID{"A", "B"}, []ledger.HoldID{want.ID})
}

func unknownHoldIsNotFound(f *fixture) {
	_, err := f.store.Hold(f.ctx, f.holdID())
	f.equal("code", ledger.CodeOf(err), ledger.CodeHoldNotFound)
	events, err := f.store.HoldEvents(f.ctx, f.holdID())
	f.read(err)
	f.equal("number of events", len(events), 0)
}

// endings are the three ways in which a hold ends, with the counters that one held unit
// out of four leaves behind.
func (f *fixture) endings() []ending {
	back := ledger.Counters{Available: 4, Capacity: 4}
	sold := ledger.Counters{Available: 3, Confirmed: 1, Capacity: 4}
	return []ending{
		{ledger.StatusConfirmed, func(h ledger.Hold) ledger.Change { return f.confirm(h, "") }, sold},
		{ledger.StatusCanceled, f.cancel, back},
		{ledger.StatusExpired, func(h ledger.Hold) ledger.Change {
			f.now = h.ReleaseAt
			return f.expire(h)
		}, back},
	}
}

type ending struct {
	status ledger.Status
	build  func(ledger.Hold) ledger.Change
	after  ledger.Counters
}

func holdEndsInEachWay(f *fixture) {
	for _, end := range f.endings() {
		slot := f.slot(ledger.SlotID(end.status), definition(4, 1))
		created := f.hold(theOwner, one(slot, 1))
		f.commit(created)
		ended := end.build(created.Holds[0].Next)
		f.commit(ended)

		hold := f.storedHold(created.Holds[0].Next.ID)
		f.equal("hold", hold, ended.Holds[0].Next)
		f.equal("status", hold.Status, end.status)
		f.counters(slot, end.after)
		events, err := f.store.HoldEvents(f.ctx, hold.ID)
		f.read(err)
		f.equal("events", events, append(created.Events, ended.Events...))
		due, _, err := f.store.Due(f.ctx, ledger.DueShard(hold.ID), never, ledger.Page{Limit: ledger.PageItemsMax})
		f.read(err)
		f.equal("number of due holds, after the only one ended", len(due), 0)
		CheckBooks(f.T, f.store, []ledger.SlotID{slot.ID}, []ledger.HoldID{hold.ID})
	}
}

func holdCreatedTwice(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	first := f.hold(theOwner, one(slot, 1))
	f.commit(first)
	second := f.hold("another owner", one(slot, 1))
	second.Holds[0].Next.ID = first.Holds[0].Next.ID
	second.Events[0].Hold.ID = first.Holds[0].Next.ID
	f.refuse(second,
		ledger.RefusedLeg{Kind: ledger.LegHold, Hold: &first.Holds[0].Next},
		ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[0]})
}

func missingHoldIsRefused(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	f.held(one(slot, 1))
	never := f.hold(theOwner, one(slot, 1)).Holds[0].Next
	f.refuse(f.cancel(never), ledger.RefusedLeg{Kind: ledger.LegHold})
}

func staleHoldIsRefused(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold := f.held(one(slot, 1))
	stale := f.cancel(hold)
	stale.Holds[0].Replaces, stale.Holds[0].Next.Version = 2, 3
	stale.Events[0].Version, stale.Events[0].Hold.Version = 3, 3
	f.refuse(stale, ledger.RefusedLeg{Kind: ledger.LegHold, Hold: &hold})
}

// endedHoldIsRefused is P3: each ending, tried on a hold that ended in each way. The
// second try names the right version, so that only the status can refuse it.
func endedHoldIsRefused(f *fixture) {
	for _, first := range f.endings() {
		for _, second := range f.endings() {
			f.now = noon
			slot := f.slot(ledger.SlotID(first.status+"-"+second.status), definition(4, 1))
			hold := f.held(one(slot, 2))
			other := f.held(one(slot, 1))
			f.commit(first.build(hold))
			ended := f.storedHold(hold.ID)

			pretended := ended
			pretended.Status = ledger.StatusHeld
			if second.status == ledger.StatusConfirmed {
				f.now = noon
			}
			again := second.build(pretended)
			want := []ledger.RefusedLeg{{Kind: ledger.LegHold, Hold: &ended}}
			if stock := f.stock(slot)[0]; stock.Counters.Held < 2 {
				want = append(want, ledger.RefusedLeg{Kind: ledger.LegStock, Slot: slot.ID, Stock: &stock})
			}
			f.refuse(again, want...)
			CheckBooks(f.T, f.store, []ledger.SlotID{slot.ID}, []ledger.HoldID{hold.ID, other.ID})
		}
	}
}

// releaseTimeIsInTheWrite is P4: the pure functions were asked at another time, and the
// write alone must still refuse.
func releaseTimeIsInTheWrite(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold := f.held(one(slot, 1))
	confirm := f.confirm(hold, "")
	confirm.At = hold.ReleaseAt
	f.refuse(confirm, ledger.RefusedLeg{Kind: ledger.LegHold, Hold: &hold})
	confirm.At = hold.ReleaseAt.Add(time.Hour)
	f.refuse(confirm, ledger.RefusedLeg{Kind: ledger.LegHold, Hold: &hold})

	f.now = hold.ReleaseAt
	expire := f.expire(hold)
	expire.At = hold.ReleaseAt.Add(-time.Millisecond)
	f.refuse(expire, ledger.RefusedLeg{Kind: ledger.LegHold, Hold: &hold})
	expire.At = hold.ReleaseAt
	f.commit(expire)

	last := f.held(one(slot, 1))
	confirm = f.confirm(last, "")
	confirm.At = last.ReleaseAt.Add(-time.Millisecond)
	f.commit(confirm)

	f.now = noon
	over := f.held(one(slot, 1))
	f.now = over.ReleaseAt.Add(time.Minute)
	f.commit(f.cancel(over))
	f.counters(slot, ledger.Counters{Available: 3, Confirmed: 1, Capacity: 4})
}
