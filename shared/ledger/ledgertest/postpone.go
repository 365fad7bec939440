package ledgertest

import (
	"context"
	"time"

	"holdfast/shared/ledger"
)

// postponer is a store that keeps when a reservation is looked at again, beside the
// steps. It is a capability: a store without it leaves each reservation where its last
// step has put it.
type postponer interface {
	Postpone(ctx context.Context, id ledger.ReservationID, version ledger.Version, lookAt time.Time, tries int) error
}

var postponeRules = []rule{
	{"MovesTheNextLook", postponeMovesTheNextLook},
	{"ZeroTakesItOutOfTheDueIndex", postponeToNever},
	{"LeavesAnotherVersionAlone", postponeLeavesAnotherVersionAlone},
	{"LeavesAStepsWriteAllowed", postponeLeavesAStepAllowed},
	{"GivenUpCallerPostponesNothing", givenUpCallerPostponesNothing},
}

// postpones is the store as a postponer. The test of a store that is none is skipped, and
// says why.
func (f *fixture) postpones() postponer {
	f.Helper()
	store, capable := f.store.(postponer)
	if !capable {
		f.Skip("this store has no Postpone: a reservation is looked at when its last step said")
	}
	return store
}

func postponeMovesTheNextLook(f *fixture) {
	store := f.postpones()
	slot := f.slot("A", definition(4, 1))
	hold, reservation := f.paying(one(slot, 1))
	for tries, later := range []time.Duration{time.Minute, time.Millisecond, time.Hour} {
		want := reservation
		want.LookAt, want.Tries = f.now.Add(later), tries+1
		for range 2 { // it may be repeated
			f.read(store.Postpone(f.ctx, want.ID, want.Version, want.LookAt, want.Tries))
		}
		f.equal("reservation", f.storedReservation(want.ID), want)
		at, listed := f.lookAt(want.ID)
		f.equal("is in the due index", listed, true)
		f.equal("time of the next look", at, want.LookAt)
	}
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID}, reservation.ID)
}

func postponeToNever(f *fixture) {
	store := f.postpones()
	_, reservation := f.paying(one(f.slot("A", definition(4, 1)), 1))
	f.read(store.Postpone(f.ctx, reservation.ID, reservation.Version, time.Time{}, 0))
	f.equal("next look", f.storedReservation(reservation.ID).LookAt, time.Time{})
	if _, listed := f.lookAt(reservation.ID); listed {
		f.Errorf("a reservation that is never looked at is in the due index")
	}
	f.read(store.Postpone(f.ctx, reservation.ID, reservation.Version, reservation.LookAt, 0))
	f.equal("reservation, put back", f.storedReservation(reservation.ID), reservation)
	at, _ := f.lookAt(reservation.ID)
	f.equal("time of the next look, put back", at, reservation.LookAt)
}

func postponeLeavesAnotherVersionAlone(f *fixture) {
	store := f.postpones()
	_, reservation := f.paying(one(f.slot("A", definition(4, 1)), 1))
	wentOn := f.authorized(reservation)
	for _, version := range []ledger.Version{reservation.Version, wentOn.Version + 1} {
		f.read(store.Postpone(f.ctx, reservation.ID, version, f.now.Add(time.Hour), 9))
		f.equal("reservation", f.storedReservation(reservation.ID), wentOn)
		at, _ := f.lookAt(reservation.ID)
		f.equal("time of the next look", at, wentOn.LookAt)
	}
	unknown := f.reservationID()
	f.read(store.Postpone(f.ctx, unknown, 1, f.now, 1))
	_, err := f.store.Reservation(f.ctx, unknown)
	f.equal("code for a reservation that was only postponed", ledger.CodeOf(err), ledger.CodeReservationNotFound)
}

// postponeLeavesAStepAllowed: a step that was decided on before is still right, and says
// anew when to look.
func postponeLeavesAStepAllowed(f *fixture) {
	store := f.postpones()
	_, reservation := f.paying(one(f.slot("A", definition(4, 1)), 1))
	f.read(store.Postpone(f.ctx, reservation.ID, reservation.Version, f.now.Add(time.Hour), 3))
	next := f.authorized(reservation)
	f.equal("reservation", f.storedReservation(next.ID), next)
	f.equal("tries", f.storedReservation(next.ID).Tries, 0)
	at, _ := f.lookAt(next.ID)
	f.equal("time of the next look", at, next.LookAt)
}

func givenUpCallerPostponesNothing(f *fixture) {
	store := f.postpones()
	_, reservation := f.paying(one(f.slot("A", definition(4, 1)), 1))
	ctx, giveUp := context.WithCancel(f.ctx)
	giveUp()
	err := store.Postpone(ctx, reservation.ID, reservation.Version, f.now.Add(time.Hour), 1)
	f.equal("code", ledger.CodeOf(err), ledger.CodeUnavailable)
	f.equal("reservation", f.storedReservation(reservation.ID), reservation)
}
