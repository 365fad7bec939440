package ledger_test

import (
	"testing"

	"holdfast/shared/ledger"
)

// Nobody is forgotten to whom something is owed, or who still holds something.
func TestWhoHasSomethingUnderWayIsNotForgotten(t *testing.T) {
	for status, keeps := range map[ledger.ReservationStatus]bool{
		ledger.ReservationRefundRequired: true, ledger.ReservationReview: true, ledger.ReservationCompensating: true,
		ledger.ReservationCaptured: true, ledger.ReservationCompleted: false, ledger.ReservationRefunded: false,
	} {
		r := ledger.Reservation{ID: "rsv_1", Version: 3, Status: status}
		if why := r.KeepsFromForgetting(); (why != "") != keeps {
			t.Errorf("%s: %q", status, why)
		}
	}
	for status, keeps := range map[ledger.Status]bool{ledger.StatusHeld: true, ledger.StatusExpired: false, ledger.StatusConfirmed: false} {
		if why := (ledger.Hold{ID: "hold_1", Status: status}).KeepsFromForgetting(); (why != "") != keeps {
			t.Errorf("%s: %q", status, why)
		}
	}
}
