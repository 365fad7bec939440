package httpapi_test

import (
	"net/http"

	"holdfast/shared/ledger"
)

// pay starts the payment of a hold.
func (f *fixture) pay(who map[string]any, hold string, headers map[string]string) answer {
	f.t.Helper()
	a := f.post("/v1/holds/"+hold+"/payment", "", who, headers)
	if a.status == http.StatusAccepted {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.reservations = append(f.reservations, ledger.ReservationID(a.text("reservation_id")))
	}
	return a
}

// mustPay starts the payment of a hold and returns its reservation's id.
func (f *fixture) mustPay(who map[string]any, hold string) string {
	f.t.Helper()
	a := f.pay(who, hold, f.key())
	a.want(http.StatusAccepted)
	return a.text("reservation_id")
}

// paid is a reservation with its hold, as they are stored.
func (f *fixture) paid(id string) (ledger.Reservation, ledger.Hold) {
	f.t.Helper()
	r, err := f.store.Reservation(f.t.Context(), ledger.ReservationID(id))
	if err != nil {
		f.t.Fatal(err)
	}
	h, err := f.store.Hold(f.t.Context(), r.Hold)
	if err != nil {
		f.t.Fatal(err)
	}
	return r, h
}

// step writes one step of the payment, as the saga would. beside is what else belongs into
// its Change.
func (f *fixture) step(id string, t ledger.EventType, alter func(*ledger.Reservation), beside ...ledger.Change) {
	f.t.Helper()
	r, _ := f.paid(id)
	next := r.Clone()
	alter(&next)
	change := ledger.ReservationStep(r, next, t, nil, f.origin(), f.clock.Now())
	for _, b := range beside {
		change = ledger.Together(b, change)
	}
	if err := f.store.Commit(f.t.Context(), change); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) origin() ledger.Origin {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.counter++
	return ledger.Origin{Actor: ledger.ActorSystem, Command: "drive-reservation", EventID: ledger.NewEventID([16]byte{
		byte(f.counter >> 16), byte(f.counter >> 8), byte(f.counter), 1,
	})}
}

// authorize lets the money of the current attempt be reserved.
func (f *fixture) authorize(id string) {
	f.t.Helper()
	f.step(id, ledger.EventReservationAuthorized, func(r *ledger.Reservation) {
		r.Status = ledger.ReservationAuthorized
		r.Attempts[len(r.Attempts)-1].State = ledger.AttemptAuthorized
	})
}

// confirm sells the hold of an authorized reservation.
func (f *fixture) confirm(id string) {
	f.t.Helper()
	_, h := f.paid(id)
	sold, err := ledger.ConfirmPaid(h, f.origin(), f.clock.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	f.step(id, ledger.EventReservationConfirmed, func(r *ledger.Reservation) {
		r.Status, r.SoldHold = ledger.ReservationConfirmed, h.ID
	}, sold)
}

// sell takes a started payment to CAPTURED.
func (f *fixture) sell(id string) {
	f.t.Helper()
	f.authorize(id)
	f.confirm(id)
	f.step(id, ledger.EventReservationCaptured, func(r *ledger.Reservation) {
		r.Status = ledger.ReservationCaptured
		current := &r.Attempts[len(r.Attempts)-1]
		current.State, current.CapturedMinor = ledger.AttemptCaptured, r.Amount.AmountMinor
	})
}

// complete ends a sale as delivered.
func (f *fixture) complete(id string) {
	f.t.Helper()
	f.step(id, ledger.EventReservationCompleted, func(r *ledger.Reservation) { r.Status = ledger.ReservationCompleted })
}
