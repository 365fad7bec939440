package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"holdfast/shared/ledger"
)

// Case D1, as a buyer sees it: money that came late buys the units after all. The old hold
// never comes back; the new one names it, and tells of the units from then on.
func TestCaseD1_LateMoneyBuysANewHold(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 2)
	old := f.mustHold(owner("U"), "seat", 1)
	id := f.mustPay(owner("U"), old)
	f.clock.Set(noon.Add(ledger.HoldForDefault + ledger.GraceForDefault))
	f.authorize(id)
	read := func() answer { return f.get("/v1/reservations/"+id, "", owner("U")) }
	read().tells("AUTHORIZED", "checking", "authorized")
	_, h := f.paid(id)
	born, err := ledger.Reacquire(h, nil, f.origin(), f.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	f.step(id, ledger.EventReservationConfirmed, func(r *ledger.Reservation) {
		r.Status, r.Reason, r.SoldHold = ledger.ReservationConfirmed, ledger.ReasonLate, ledger.ReacquiredID(h)
	}, born)
	f.holds = append(f.holds, ledger.ReacquiredID(h))
	sold := read()
	sold.tells("CONFIRMED", "confirmed", "authorized")
	if sold.text("hold_id") != old || sold.text("sold_hold_id") != string(ledger.ReacquiredID(h)) ||
		!strings.HasPrefix(sold.text("message"), "The payment was received after the reservation was over. The units are yours.") {
		t.Errorf("told %s", sold.body)
	}
	if got := f.get("/v1/holds/"+sold.text("sold_hold_id"), "", owner("U")); got.text("status") != "CONFIRMED" || got.text("reacquires") != old {
		t.Errorf("the new hold is %s", got.body)
	}
	if got := f.get("/v1/holds/"+old, "", owner("U")); got.text("status") != "EXPIRED" || strings.Contains(got.body, "reacquires") {
		t.Errorf("the old hold is %s", got.body)
	}
	f.counters("seat", 1, 0, 1, 2)
	f.balanced()
}

// Case D1: money arrived after the unit had been sold to someone else. The buyer is told
// that the refund is on its way, and afterwards that it is given.
func TestCaseD1_LateMoneyFindsNothingLeft(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 1)
	hold := f.mustHold(owner("A"), "seat", 1)
	id := f.mustPay(owner("A"), hold)
	f.clock.Set(noon.Add(ledger.HoldForDefault + ledger.GraceForDefault))
	_, h := f.paid(id)
	released, err := ledger.ReleaseUnpaid(h, f.origin(), f.clock.Now())
	if err != nil {
		t.Fatal(err)
	}
	f.step(id, ledger.EventReservationCompensating, func(r *ledger.Reservation) {
		r.Status, r.Reason = ledger.ReservationCompensating, ledger.ReasonExpired
		r.Attempts[0].Unwanted = true
	}, released)
	read := func() answer { return f.get("/v1/reservations/"+id, "", owner("A")) }
	read().tells("COMPENSATING", "released", "checking")
	f.mustSell(owner("B"), "seat", 1)
	f.step(id, ledger.EventReservationRefundOwed, func(r *ledger.Reservation) {
		r.Reason = ledger.ReasonSoldOut
		r.Attempts[0].State, r.Attempts[0].CapturedMinor = ledger.AttemptCaptured, 1000
		r.Owe(1, 1000, ledger.ReasonSoldOut, f.clock.Now())
	})
	owed := read()
	owed.tells("COMPENSATING", "released", "refund_on_its_way")
	const want = "The payment was received after the reservation was over and the units were gone. A refund is on its way."
	if owed.text("message") != want || owed.number("owed_amount") != 1000 {
		t.Errorf("told %s", owed.body)
	}
	f.step(id, ledger.EventReservationRefunded, func(r *ledger.Reservation) {
		r.Status, r.Refunds[0].State, r.Refunds[0].EndedAt = ledger.ReservationRefunded, ledger.RefundDone, f.clock.Now()
	})
	given := read()
	given.tells("REFUNDED", "released", "refunded")
	if given.number("refunded_amount") != 1000 || given.number("owed_amount") != 0 {
		t.Errorf("told %s", given.body)
	}
	f.pay(owner("A"), hold, f.key()).wantProblem(http.StatusConflict, "hold_not_active")
	f.counters("seat", 0, 0, 1, 1)
	f.balanced()
}
