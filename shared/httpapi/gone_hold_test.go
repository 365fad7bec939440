package httpapi_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// purged is a store in which one hold has been archived and its time to live is over.
type purged struct {
	ledger.Store
	gone ledger.HoldID
}

func (p *purged) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	if id == p.gone {
		return ledger.Hold{}, ledger.HoldNotFound()
	}
	return p.Store.Hold(ctx, id)
}

// purge archives the hold of the reservation, and lets it leave the table.
func (f *fixture) purge(store *purged, id string) {
	f.t.Helper()
	r, h := f.paid(id)
	events, err := store.HoldEvents(f.t.Context(), h.ID)
	if err != nil {
		f.t.Fatal(err)
	}
	now := f.clock.Now()
	change, err := ledger.ArchiveHold(h, &r, events, "batch", now.Add(time.Hour).Truncate(time.Second), now)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := store.Commit(f.t.Context(), change); err != nil {
		f.t.Fatal(err)
	}
	store.gone = h.ID
}

// Case M3: a reservation is kept for longer than its hold. Its owner goes on reading it,
// alone and among others, and is told why it can't be taken back any more.
func TestCaseM3_AReservationIsReadWhenItsHoldHasLeftTheTable(t *testing.T) {
	store := &purged{Store: memory.New()}
	f := newFixtureOn(t, store)
	f.define("seat", 2)
	id := f.mustSell(owner("U"), "seat", 1)
	f.step(id, ledger.EventReservationCompleted, func(r *ledger.Reservation) {
		r.Status, r.LookAt = ledger.ReservationCompleted, time.Time{}
	})
	other := f.mustPay(owner("U"), f.mustHold(owner("U"), "seat", 1))
	f.purge(store, id)
	f.get("/v1/reservations/"+id, "", owner("U")).tells("COMPLETED", "confirmed", "captured")
	list := f.get("/v1/reservations", "", owner("U"))
	list.want(http.StatusOK)
	if ids := list.members("reservations", "reservation_id"); len(ids) != 2 {
		t.Errorf("the list has %v, want %s and %s", ids, id, other)
	}
	f.cancel(id, "{}", owner("U"), f.key()).wantProblem(http.StatusConflict, "hold_archived")
	f.counters("seat", 0, 1, 1, 2)
}
