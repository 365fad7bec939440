package ledgertest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// offsets are creation times in milliseconds after noon. Text without trailing zeros, or
// numbers as text, would be out of order; two are of the same moment, and the order of
// due times differs from the order of creation.
var offsets = []int{7, 0, 777, 77, 10_000, 877, 877}

func listsReservationsOfOwner(f *fixture) {
	slot := f.slot("A", definition(100, 1))
	var want []ledger.Reservation
	var holds []ledger.Hold
	for _, offset := range offsets {
		f.now = noon.Add(time.Duration(offset) * time.Millisecond)
		hold, reservation := f.paying(one(slot, 1))
		holds, want = append(holds, hold), append(want, reservation)
		other := f.hold(theOwner+"x", one(slot, 1))
		f.commit(other)
		f.commit(f.started(other.Holds[0].Next))
	}
	want[6] = f.authorized(want[6])
	for _, limit := range walkLimits {
		got := walk(f, limit, func(page ledger.Page) ([]ledger.Reservation, ledger.Cursor, error) {
			return f.store.ReservationsOfOwner(f.ctx, theOwner, page)
		})
		if !slices.IsSortedFunc(got, func(a, b ledger.Reservation) int { return b.CreatedAt.Compare(a.CreatedAt) }) {
			f.Errorf("limit %d: the newest reservation is not always first: %s", limit, text(got))
		}
		byID := func(a, b ledger.Reservation) int { return cmp.Compare(a.ID, b.ID) }
		f.equal(fmt.Sprintf("reservations in pages of %d", limit), slices.SortedFunc(slices.Values(got), byID), slices.SortedFunc(slices.Values(want), byID))

		ofHolds := walk(f, limit, func(page ledger.Page) ([]ledger.Hold, ledger.Cursor, error) {
			return f.store.HoldsOfOwner(f.ctx, theOwner, page)
		})
		holdsByID := func(a, b ledger.Hold) int { return cmp.Compare(a.ID, b.ID) }
		f.equal(fmt.Sprintf("holds in pages of %d, beside reservations", limit), slices.SortedFunc(slices.Values(ofHolds), holdsByID), slices.SortedFunc(slices.Values(holds), holdsByID))
	}
	none, next, err := f.store.ReservationsOfOwner(f.ctx, "nobody", ledger.Page{Limit: 1})
	f.read(err)
	f.equal("reservations of nobody", none, []ledger.Reservation{})
	f.equal("cursor after the reservations of nobody", next, ledger.Cursor(""))
	f.cursorsAreApart()
}

// cursorsAreApart takes the cursor of one list to the other one. Stores may refuse it, or
// go on as with a place in their own list; what they must not do is show the other kind
// or fail.
func (f *fixture) cursorsAreApart() {
	f.Helper()
	_, ofHolds, err := f.store.HoldsOfOwner(f.ctx, theOwner, ledger.Page{Limit: 1})
	f.read(err)
	_, ofReservations, err := f.store.ReservationsOfOwner(f.ctx, theOwner, ledger.Page{Limit: 1})
	f.read(err)
	if _, _, err := f.store.HoldsOfOwner(f.ctx, theOwner, ledger.Page{Limit: 1, After: ofReservations}); err != nil {
		f.equal("code for the cursor of the other list", ledger.CodeOf(err), ledger.CodeInvalid)
	}
	if _, _, err := f.store.ReservationsOfOwner(f.ctx, theOwner, ledger.Page{Limit: 1, After: ofHolds}); err != nil {
		f.equal("code for the cursor of the other list", ledger.CodeOf(err), ledger.CodeInvalid)
	}
}

// reservationOfDueShard commits a reservation that is looked at at that time and waits in
// this partition of the due index.
func (f *fixture) reservationOfDueShard(shard int, lookAt time.Time) ledger.Reservation {
	f.Helper()
	const triesMax = 100 * ledger.DueShards
	for range triesMax {
		id := f.reservationID()
		if ledger.ReservationDueShard(id) != shard {
			continue
		}
		next := ledger.Reservation{ID: id, Owner: theOwner, Hold: f.holdID(), Status: ledger.ReservationPaymentPending, LookAt: lookAt}
		change := f.step(ledger.Reservation{}, next, ledger.EventReservationPaymentStarted, f.origin(ledger.CommandStartPayment))
		f.commit(change)
		return change.Reservations[0].Next
	}
	f.Fatalf("no reservation id of due shard %d in %d tries", shard, triesMax)
	return ledger.Reservation{}
}

func listsDueReservations(f *fixture) {
	const shard = 5
	var want []ledger.DueReservation
	for _, offset := range offsets {
		r := f.reservationOfDueShard(shard, noon.Add(time.Duration(offset)*time.Millisecond))
		want = append(want, ledger.DueReservation{ID: r.ID, DueAt: r.LookAt})
	}
	slices.SortFunc(want, func(a, b ledger.DueReservation) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.ID, b.ID))
	})
	f.reservationOfDueShard(shard, time.Time{})
	f.reservationOfDueShard(shard+1, noon)
	f.commit(f.holdOfDueShard(shard, f.slot("A", definition(4, 1))))

	list := func(now time.Time) func(ledger.Page) ([]ledger.DueReservation, ledger.Cursor, error) {
		return func(page ledger.Page) ([]ledger.DueReservation, ledger.Cursor, error) {
			return f.store.DueReservations(f.ctx, shard, now, page)
		}
	}
	last := want[len(want)-1].DueAt
	for _, limit := range walkLimits {
		f.equal(fmt.Sprintf("due reservations in pages of %d", limit), walk(f, limit, list(last)), want)
		f.equal("due reservations long after", walk(f, limit, list(never)), want)
	}
	f.equal("due reservations before the last is due", walk(f, 2, list(last.Add(-time.Millisecond))), want[:6])
	f.equal("due reservations when the first is due", walk(f, 2, list(want[0].DueAt)), want[:1])
	f.equal("due reservations before the first is due", walk(f, 2, list(want[0].DueAt.Add(-time.Millisecond))), []ledger.DueReservation{})
	holds, _, err := f.store.Due(f.ctx, shard, never, ledger.Page{Limit: ledger.PageItemsMax})
	f.read(err)
	f.equal("number of due holds beside them", len(holds), 1)

	for _, due := range want[:2] {
		stored := f.storedReservation(due.ID)
		next := stored
		next.LookAt = time.Time{}
		f.commit(f.step(stored, next, ledger.EventReservationPaymentNoticed, f.origin(ledger.CommandDriveReservation)))
	}
	f.equal("due reservations after two have no next look", walk(f, 2, list(last)), want[2:])
}
