package saga_test

import (
	"context"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
)

// purged is a store in which one hold has been archived and its time to live is over.
type purged struct {
	saga.Store
	gone ledger.HoldID
}

func (p *purged) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	if id == p.gone {
		return ledger.Hold{}, ledger.HoldNotFound()
	}
	return p.Store.Hold(ctx, id)
}

// purge archives the hold, and lets it leave the table.
func (w *world) purge(store *purged, id ledger.HoldID) {
	w.t.Helper()
	h := w.storedHold(id)
	r := w.reservation(h.Reservation)
	events, err := store.HoldEvents(w.t.Context(), id)
	w.must(err)
	now := w.clock.Now()
	change, err := ledger.ArchiveHold(h, &r, events, "batch", now.Add(time.Hour).Truncate(time.Second), now)
	w.must(err)
	w.must(store.Commit(w.t.Context(), change))
	store.gone = id
}

// Case M3: records of money stay longer than holds. Money that comes when the hold has left
// the table goes back, as nothing says any more what it could buy.
func TestCaseM3_LateMoneyGoesBackWhenItsHoldHasLeftTheTable(t *testing.T) {
	store := &purged{Store: memory.New()}
	w := newWorldOn(t, store)
	w.slot("A", 1, nil)
	w.bank.SetDefaultScript(paymenttest.Script{VoidLies: true})
	hold := w.hold("U", one("A"))
	id, secret := w.start("U", hold, "key")
	w.minutes(60)
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonExpired)
	w.notices()
	w.purge(store, hold)
	_, err := w.bank.LateSuccess(secret.Reveal(), true)
	w.must(err)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonLate)
	w.wantMoney(id, "USD", 1000, 1000)
	w.wantCounters("A", "1/0/0/1")
	if r := w.reservation(id); r.HoldsArchived != 1 {
		t.Errorf("%d holds of it are noted as archived", r.HoldsArchived)
	}
}

// A sale whose hold has left the table can still be looked at, and not be taken back.
func TestASaleWhoseHoldHasLeftTheTableStands(t *testing.T) {
	store := &purged{Store: memory.New()}
	w := newWorldOn(t, store)
	w.slot("A", 1, nil)
	hold, id := w.buy("U", one("A"))
	w.purge(store, hold)
	w.drive(id, nil)
	_, err := w.commands.CancelReservation(t.Context(), commands.Request{Actor: "owner", Owner: "U"}, id, nil, commands.CancelByOwner, renderNothing)
	w.wantCode(err, ledger.CodeHoldArchived)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantMoney(id, "USD", 1000, 0)
	w.wantCounters("A", "0/0/1/1")
}

// A hold that is not there and not noted as archived is lost, and nobody decides without it.
func TestALostHoldIsNoGoneHold(t *testing.T) {
	store := &purged{Store: memory.New()}
	w := newWorldOn(t, store)
	w.slot("A", 1, nil)
	hold, id := w.buy("U", one("A"))
	store.gone = hold
	w.wantCode(w.driver.Drive(t.Context(), id, nil, "request"), ledger.CodeHoldNotFound)
}

// What comes for a reservation that lies in the archive is refused at once, and ends as a
// dead letter, where a person finds it. To look at it changes nothing and is no failure.
func TestAnArchivedReservationIsForAPerson(t *testing.T) {
	store := &purged{Store: memory.New()}
	w := newWorldOn(t, store)
	w.slot("A", 1, nil)
	w.bank.SetDefaultScript(paymenttest.Script{VoidLies: true})
	hold := w.hold("U", one("A"))
	id, secret := w.start("U", hold, "key")
	w.minutes(60)
	w.notices()
	w.purge(store, hold)
	events, err := store.ReservationEvents(t.Context(), id)
	w.must(err)
	now := w.clock.Now()
	change, err := ledger.ArchiveReservation(w.reservation(id), events, "batch", now.Add(time.Hour).Truncate(time.Second), now)
	w.must(err)
	w.must(store.Commit(t.Context(), change))
	w.drive(id, nil)
	_, err = w.bank.LateSuccess(secret.Reveal(), true)
	w.must(err)
	before := len(w.provider.Calls())
	for _, n := range w.notices() {
		w.wantCode(w.driver.Drive(t.Context(), id, n, "request"), ledger.CodeReservationArchived)
	}
	if asked := len(w.provider.Calls()) - before; asked < 1 || asked > 2 {
		t.Errorf("the provider was asked %d times", asked)
	}
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonExpired)
}
