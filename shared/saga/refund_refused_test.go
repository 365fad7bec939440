package saga_test

import (
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
)

// Money of an attempt that was closed long ago comes to a reservation that has ended, and
// the provider will not give it back: the reservation must not look ended.
func TestRefusedRefundOpensACanceledReservation(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, func(d *ledger.SlotDefinition) { d.Policy.Payment.OnDecline = ledger.OnDeclineKeep })
	w.bank.SetDefaultScript(paymenttest.Script{VoidLies: true, RefundRefused: true})
	hold := w.hold("U-1", one("A"))
	id, first := w.start("U-1", hold, "first")
	w.drive(id, nil)
	w.start("U-1", hold, "second")
	w.drive(id, nil)
	_, err := w.commands.CancelReservation(t.Context(), commands.Request{Actor: "owner", Owner: "U-1"}, id, nil, commands.CancelByOwner, renderNothing)
	w.must(err)
	w.drive(id, nil)
	if r := w.reservation(id); r.Status != ledger.ReservationCanceled || len(r.Attempts) != 2 {
		t.Fatalf("the reservation is %+v", r)
	}
	w.notices()
	w.clock.Advance(time.Minute)
	if _, err := w.bank.LateSuccess(first.Reveal(), true); err != nil {
		t.Fatal(err)
	}
	for _, n := range w.notices() {
		w.drive(id, n)
	}
	if r := w.reservation(id); r.Status != ledger.ReservationRefundRequired || r.OwedMinor() != 1000 {
		t.Errorf("the reservation is %s and owes %d", r.Status, r.OwedMinor())
	}
}
