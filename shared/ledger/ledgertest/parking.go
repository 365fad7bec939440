package ledgertest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// parker is a store that keeps what is known of holds that could not be ended. It is a
// capability: a store without it lists every such hold where its last step has put it.
type parker interface {
	Failures(ctx context.Context, id ledger.HoldID) (ledger.EndFailures, error)
	CountFailure(ctx context.Context, entry ledger.DueHold, failures int) (bool, error)
	Park(ctx context.Context, entry ledger.DueHold, failures int, tryAt time.Time) (bool, error)
	Unpark(ctx context.Context, entry ledger.DueHold) (bool, error)
	Parked(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error)
}

var parkingRules = []rule{
	{"CountsFailuresOfADueHold", countsFailuresOfADueHold},
	{"ParkedHoldIsNotAmongTheDue", parkedHoldIsNotAmongTheDue},
	{"ParkedHoldIsParkedAgain", parkedHoldIsParkedAgain},
	{"UnparkedHoldIsDueAsBefore", unparkedHoldIsDueAsBefore},
	{"AnotherEntryChangesNothing", anotherEntryChangesNothing},
	{"EveryStepDropsTheParking", everyStepDropsTheParking},
	{"HoldThatHasEndedIsNotParked", holdThatHasEndedIsNotParked},
	{"ListsTheParkedInTheOrderOfTheirTries", listsTheParked},
	{"GivenUpCallerParksNothing", givenUpCallerParksNothing},
}

// parks is the store as a parker. The test of a store that is none is skipped, and says
// why.
func (f *fixture) parks() parker {
	f.Helper()
	store, capable := f.store.(parker)
	if !capable {
		f.Skip("this store parks nothing: a hold that can't be ended stays among those that are due")
	}
	return store
}

// entry is that of a hold which is not parked.
func (f *fixture) entry(h ledger.Hold) ledger.DueHold {
	f.Helper()
	dueAt, listed := f.dueAt(h.ID)
	f.equal("is among the due holds", listed, true)
	return ledger.DueHold{ID: h.ID, DueAt: dueAt}
}

// failures are those that the store knows of.
func (f *fixture) failures(store parker, id ledger.HoldID) ledger.EndFailures {
	f.Helper()
	known, err := store.Failures(f.ctx, id)
	f.read(err)
	return known
}

// parked parks the hold and returns its new entry.
func (f *fixture) parked(store parker, entry ledger.DueHold, failures int, tryAt time.Time) ledger.DueHold {
	f.Helper()
	done, err := store.Park(f.ctx, entry, failures, tryAt)
	f.read(err)
	f.equal("was parked", done, true)
	return ledger.DueHold{ID: entry.ID, TryAt: tryAt}
}

// parkedShard are all parked holds of the shard of a hold.
func (f *fixture) parkedShard(store parker, id ledger.HoldID) []ledger.DueHold {
	f.Helper()
	return walk(f, 1, func(page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
		return store.Parked(f.ctx, ledger.DueShard(id), page)
	})
}

func countsFailuresOfADueHold(f *fixture) {
	store := f.parks()
	hold := f.held(one(f.slot("A", definition(4, 1)), 1))
	f.equal("failures before the first", f.failures(store, hold.ID), ledger.EndFailures{})
	entry := f.entry(hold)
	for _, failures := range []int{1, 2, 2} { // it may be repeated
		done, err := store.CountFailure(f.ctx, entry, failures)
		f.read(err)
		f.equal("was counted", done, true)
		f.equal("failures", f.failures(store, hold.ID), ledger.EndFailures{Count: failures})
	}
	f.equal("entry after failures", f.entry(hold), entry)
	f.equal("hold after failures", f.storedHold(hold.ID), hold)
	f.equal("failures of a hold that is not there", f.failures(store, f.holdID()), ledger.EndFailures{})
}

func parkedHoldIsNotAmongTheDue(f *fixture) {
	store := f.parks()
	slot := f.slot("A", definition(4, 1))
	hold, other := f.held(one(slot, 1)), f.held(one(slot, 1))
	parked := f.parked(store, f.entry(hold), 3, hold.ReleaseAt.Add(time.Minute))
	if _, listed := f.dueAt(hold.ID); listed {
		f.Errorf("a parked hold is among those that are due")
	}
	f.equal("parked holds", f.parkedShard(store, hold.ID), []ledger.DueHold{parked})
	f.equal("failures", f.failures(store, hold.ID), ledger.EndFailures{Count: 3, DueAt: hold.ReleaseAt})
	f.equal("hold", f.storedHold(hold.ID), hold)
	f.equal("entry of another hold", f.entry(other), ledger.DueHold{ID: other.ID, DueAt: other.ReleaseAt})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID, other.ID})
}

func parkedHoldIsParkedAgain(f *fixture) {
	store := f.parks()
	hold := f.held(one(f.slot("A", definition(4, 1)), 1))
	parked := f.parked(store, f.entry(hold), 3, hold.ReleaseAt.Add(time.Minute))
	parked = f.parked(store, parked, 4, hold.ReleaseAt.Add(3*time.Minute))
	f.equal("parked holds", f.parkedShard(store, hold.ID), []ledger.DueHold{parked})
	f.equal("failures", f.failures(store, hold.ID), ledger.EndFailures{Count: 4, DueAt: hold.ReleaseAt})
	done, err := store.CountFailure(f.ctx, parked, 5)
	f.read(err)
	f.equal("was counted", done, true)
	f.equal("failures, counted", f.failures(store, hold.ID), ledger.EndFailures{Count: 5, DueAt: hold.ReleaseAt})
	f.equal("parked holds, counted", f.parkedShard(store, hold.ID), []ledger.DueHold{parked})
}

func unparkedHoldIsDueAsBefore(f *fixture) {
	store := f.parks()
	hold := f.held(one(f.slot("A", definition(4, 1)), 1))
	entry := f.entry(hold)
	parked := f.parked(store, entry, 3, hold.ReleaseAt.Add(time.Minute))
	parked.DueAt = hold.ReleaseAt // what a caller has found out is no part of the lock
	for _, want := range []bool{true, false} {
		done, err := store.Unpark(f.ctx, parked)
		f.read(err)
		f.equal("was parked", done, want)
		f.equal("entry", f.entry(hold), entry)
		f.equal("failures", f.failures(store, hold.ID), ledger.EndFailures{})
		f.equal("parked holds", f.parkedShard(store, hold.ID), []ledger.DueHold{})
	}
	f.parked(store, entry, 3, hold.ReleaseAt.Add(time.Hour))
	f.equal("failures, parked anew", f.failures(store, hold.ID), ledger.EndFailures{Count: 3, DueAt: hold.ReleaseAt})
}

func anotherEntryChangesNothing(f *fixture) {
	store := f.parks()
	hold := f.held(one(f.slot("A", definition(4, 1)), 1))
	tryAt := hold.ReleaseAt.Add(time.Minute)
	untouched := func(entry ledger.DueHold) {
		f.Helper()
		counted, err := store.CountFailure(f.ctx, entry, 9)
		f.read(err)
		parked, err := store.Park(f.ctx, entry, 9, tryAt.Add(time.Hour))
		f.read(err)
		unparked, err := store.Unpark(f.ctx, entry)
		f.read(err)
		f.equal(fmt.Sprintf("was counted, parked, unparked as %+v", entry), []bool{counted, parked, unparked}, []bool{false, false, false})
	}
	for _, entry := range []ledger.DueHold{
		{ID: hold.ID, DueAt: hold.ReleaseAt.Add(time.Millisecond)},
		{ID: hold.ID, DueAt: hold.ReleaseAt, TryAt: hold.ReleaseAt}, // it is not parked
		{ID: f.holdID(), DueAt: hold.ReleaseAt},
	} {
		untouched(entry)
	}
	f.equal("entry", f.entry(hold), ledger.DueHold{ID: hold.ID, DueAt: hold.ReleaseAt})
	parked := f.parked(store, f.entry(hold), 3, tryAt)
	for _, entry := range []ledger.DueHold{
		{ID: hold.ID, DueAt: hold.ReleaseAt}, // another worker has parked it
		{ID: hold.ID, DueAt: tryAt},
		{ID: hold.ID, TryAt: tryAt.Add(time.Millisecond)},
	} {
		untouched(entry)
	}
	f.equal("parked holds", f.parkedShard(store, hold.ID), []ledger.DueHold{parked})
	f.equal("failures", f.failures(store, hold.ID), ledger.EndFailures{Count: 3, DueAt: hold.ReleaseAt})
	_, err := f.store.Hold(f.ctx, f.holdID())
	f.equal("code for a hold that was only parked", ledger.CodeOf(err), ledger.CodeHoldNotFound)
}

// everyStepDropsTheParking: a hold that went on can be ended as any other, at the due time
// of its new state.
func everyStepDropsTheParking(f *fixture) {
	store := f.parks()
	hold := f.held(one(f.slot("A", definition(4, 1)), 1))
	f.parked(store, f.entry(hold), 3, hold.ReleaseAt.Add(time.Minute))
	for _, step := range []func(ledger.Hold) ledger.Change{f.started, f.closed} {
		change := step(f.storedHold(hold.ID))
		f.commit(change)
		next := change.Holds[0].Next
		dueAt, _ := next.DueAt()
		f.equal("entry", f.entry(next), ledger.DueHold{ID: hold.ID, DueAt: dueAt})
		f.equal("failures", f.failures(store, hold.ID), ledger.EndFailures{})
		f.equal("parked holds", f.parkedShard(store, hold.ID), []ledger.DueHold{})
		f.parked(store, f.entry(next), 3, dueAt.Add(time.Minute))
		f.equal("failures, parked anew", f.failures(store, hold.ID), ledger.EndFailures{Count: 3, DueAt: dueAt})
	}
}

func holdThatHasEndedIsNotParked(f *fixture) {
	store := f.parks()
	slot := f.slot("A", definition(9, 1))
	var ids []ledger.HoldID
	for _, end := range f.endings() {
		hold := f.held(one(slot, 1))
		ids = append(ids, hold.ID)
		entry := f.entry(hold)
		parked := f.parked(store, entry, 3, hold.ReleaseAt.Add(time.Minute))
		f.commit(end.build(hold))
		ended := f.storedHold(hold.ID)
		f.equal("parked holds", f.parkedShard(store, hold.ID), []ledger.DueHold{})
		for _, late := range []ledger.DueHold{entry, parked} {
			counted, err := store.CountFailure(f.ctx, late, 9)
			f.read(err)
			again, err := store.Park(f.ctx, late, 9, hold.ReleaseAt.Add(time.Hour))
			f.read(err)
			f.equal("was counted, parked after its end", []bool{counted, again}, []bool{false, false})
		}
		f.equal("hold", f.storedHold(hold.ID), ended)
		f.equal("failures", f.failures(store, hold.ID), ledger.EndFailures{})
		f.now = noon
	}
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, ids)
}

func listsTheParked(f *fixture) {
	store := f.parks()
	slot := f.slot("A", definition(100, 1))
	const shard = 5
	var want []ledger.DueHold
	for _, minutes := range []int{4, 15, 1, 1, 0, 8, 2} {
		change := f.holdOfDueShard(shard, slot)
		f.commit(change)
		hold := change.Holds[0].Next
		want = append(want, f.parked(store, f.entry(hold), 3, hold.ReleaseAt.Add(time.Duration(minutes)*time.Minute)))
	}
	slices.SortFunc(want, func(a, b ledger.DueHold) int {
		return cmp.Or(a.TryAt.Compare(b.TryAt), cmp.Compare(a.ID, b.ID))
	})
	other := f.holdOfDueShard(shard+1, slot)
	f.commit(other)
	f.parked(store, f.entry(other.Holds[0].Next), 3, noon)
	for _, limit := range walkLimits {
		f.equal(fmt.Sprintf("parked holds in pages of %d", limit),
			walk(f, limit, func(page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
				return store.Parked(f.ctx, shard, page)
			}), want)
	}
	_, _, err := store.Parked(f.ctx, shard, ledger.Page{Limit: 1, After: "no list gave this!"})
	f.equal("code for a bad cursor", ledger.CodeOf(err), ledger.CodeInvalid)
}

func givenUpCallerParksNothing(f *fixture) {
	store := f.parks()
	hold := f.held(one(f.slot("A", definition(4, 1)), 1))
	entry := f.entry(hold)
	ctx, giveUp := context.WithCancel(f.ctx)
	giveUp()
	_, err := store.Park(ctx, entry, 3, hold.ReleaseAt.Add(time.Minute))
	f.equal("code of the parking", ledger.CodeOf(err), ledger.CodeUnavailable)
	_, err = store.CountFailure(ctx, entry, 1)
	f.equal("code of the count", ledger.CodeOf(err), ledger.CodeUnavailable)
	_, err = store.Failures(ctx, hold.ID)
	f.equal("code of the failures", ledger.CodeOf(err), ledger.CodeUnavailable)
	f.equal("entry", f.entry(hold), entry)
	f.equal("failures", f.failures(store, hold.ID), ledger.EndFailures{})
}
