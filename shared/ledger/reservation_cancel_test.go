package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// bought is a hold that was sold, and its reservation in that status: the money is
// captured from CAPTURED on, and granted what its lines grant.
func bought(t testing.TB, status ledger.ReservationStatus) (ledger.Hold, ledger.Reservation) {
	t.Helper()
	hold, r := started(t)
	hold = mustStep(t)(ledger.ConfirmPaid(hold, originOf("sale"), noon))
	r.Status, r.SoldHold, r.LookAt = status, hold.ID, time.Time{}
	r.Attempts[0].State = ledger.AttemptAuthorized
	if status != ledger.ReservationConfirmed {
		r.Attempts[0].State, r.Attempts[0].CapturedMinor = ledger.AttemptCaptured, r.Amount.AmountMinor
	}
	return hold, r
}

var byOwner = ledger.Cancellation{Reason: ledger.ReasonOwnerCanceled}

// Before the sale no unit is released yet: first every attempt must be voided.
func TestCancelBeforeTheSale(t *testing.T) {
	for _, status := range []ledger.ReservationStatus{ledger.ReservationPaymentPending, ledger.ReservationAuthorized, ledger.ReservationReview} {
		hold, r := started(t)
		r.Status = status
		change, err := ledger.CancelReservation(r, hold, byOwner, originOf("cancel"), noon)
		_, next := mustReserve(t)(change, err)
		if next.Status != ledger.ReservationCompensating || next.Reason != ledger.ReasonOwnerCanceled || !next.Attempts[0].Unwanted || next.LookAt != noon {
			t.Errorf("from %s it becomes %+v", status, next)
		}
		if len(change.Holds) != 0 || len(change.Stock) != 0 || r.Attempts[0].Unwanted {
			t.Errorf("from %s the cancel writes %+v", status, change)
		}
		part := ledger.Cancellation{Reason: ledger.ReasonOwnerCanceled, Lines: []ledger.ReturnLine{{Slot: "A", Quantity: 1}}}
		change, err = ledger.CancelReservation(r, hold, part, originOf("part"), noon)
		refusedWith(t, "a part", change, err, ledger.CodeInvalid)
	}
}

// P8: the units come back and the refund is owed in one change.
func TestP8_CancelAfterTheSale(t *testing.T) {
	for _, status := range []ledger.ReservationStatus{ledger.ReservationConfirmed, ledger.ReservationCaptured, ledger.ReservationCompleted} {
		hold, r := bought(t, status)
		change, err := ledger.CancelReservation(r, hold, byOwner, originOf("cancel"), noon)
		back, next := mustReserve(t)(change, err)
		if back.Status != ledger.StatusReturned || next.Status != ledger.ReservationCompensating || !next.Attempts[0].Unwanted || next.LookAt != noon {
			t.Errorf("from %s the hold is %s, the reservation %+v", status, back.Status, next)
		}
		if want := r.Attempts[0].CapturedMinor; next.OwedMinor() != want {
			t.Errorf("from %s it owes %d, want %d", status, next.OwedMinor(), want)
		}
		wantMovements(t, change, ledger.BucketConfirmed, ledger.BucketAvailable, 3)
		if again, err := ledger.CancelReservation(next, back, byOwner, originOf("again"), noon); err != nil || !again.Empty() {
			t.Errorf("the second time writes %+v, error %v", again, err)
		}
		other := ledger.Cancellation{Reason: ledger.ReasonOperatorCanceled}
		again, err := ledger.CancelReservation(next, back, other, originOf("again"), noon)
		refusedWith(t, "for another reason", again, err, ledger.CodeReservationNotActive)
	}
}

func TestCancelAPartOfASale(t *testing.T) {
	part := ledger.Cancellation{Reason: ledger.ReasonOwnerCanceled, Lines: []ledger.ReturnLine{{Slot: "A", Quantity: 1}}}
	hold, r := bought(t, ledger.ReservationConfirmed)
	change, err := ledger.CancelReservation(r, hold, part, originOf("part"), noon)
	refusedWith(t, "while it is captured", change, err, ledger.CodePaymentInProgress)

	hold, r = bought(t, ledger.ReservationCompleted)
	left, next := mustReserve(t)(ledger.CancelReservation(r, hold, part, originOf("part"), noon))
	if left.Status != ledger.StatusConfirmed || next.Status != ledger.ReservationCompleted || next.OwedMinor() != 500 || next.Attempts[0].Unwanted || next.LookAt != noon {
		t.Errorf("the hold is %s, the reservation %+v", left.Status, next)
	}
	if refund := next.Refunds[0]; refund.Reason != ledger.ReasonReturned || refund.State != ledger.RefundOwed {
		t.Errorf("the refund is %+v", refund)
	}
	// The rest of it owes what was not owed yet, to the last unit of money.
	_, whole := mustReserve(t)(ledger.CancelReservation(next, left, byOwner, originOf("rest"), noon))
	if whole.Status != ledger.ReservationCompensating || whole.OwedMinor() != 1500 || len(whole.Refunds) != 2 {
		t.Errorf("after the rest it is %+v", whole)
	}
	over := ledger.Cancellation{Reason: ledger.ReasonOwnerCanceled, Lines: []ledger.ReturnLine{{Slot: "A", Quantity: 2}}}
	change, err = ledger.CancelReservation(next, left, over, originOf("over"), noon)
	refusedWith(t, "more than is left", change, err, ledger.CodeReturnOverSale)
}

// However often parts were given back, the whole can be, with every other attempt refunded
// too: the record that bounds the refunds must never keep a buyer's money.
func TestCancelInTooManyParts(t *testing.T) {
	part := ledger.Cancellation{Reason: ledger.ReasonOwnerCanceled, Lines: []ledger.ReturnLine{{Slot: "A", Quantity: 1}}}
	hold, r := bought(t, ledger.ReservationCompleted)
	paid := r.Attempts[0]
	r.Attempts = nil
	for n := range ledger.AttemptNumber(ledger.AttemptsMax - 1) {
		r.Attempts = append(r.Attempts, ledger.Attempt{Number: n + 1, State: ledger.AttemptCaptured, Unwanted: true, CapturedMinor: 1})
		r.Owe(n+1, 1, ledger.ReasonSurplus, noon)
	}
	paid.Number = ledger.AttemptsMax
	r.Attempts = append(r.Attempts, paid)
	for range ledger.PartsMax - 1 {
		r.Owe(paid.Number, 1, ledger.ReasonReturned, noon)
	}
	hold, r = mustReserve(t)(ledger.CancelReservation(r, hold, part, originOf("the last part"), noon))
	change, err := ledger.CancelReservation(r, hold, part, originOf("one part too many"), noon)
	refusedWith(t, "one part too many", change, err, ledger.CodeInvalid)
	_, whole := mustReserve(t)(ledger.CancelReservation(r, hold, byOwner, originOf("rest"), noon))
	if owed := whole.RefundedMinor(paid.Number, ledger.RefundOwed); owed != paid.CapturedMinor || len(whole.Refunds) != ledger.RefundsMax {
		t.Errorf("of %d taken %d are owed back, in %d refunds", paid.CapturedMinor, owed, len(whole.Refunds))
	}
}

// The policy's time binds the owner alone.
func TestCancelInTime(t *testing.T) {
	hold, r := bought(t, ledger.ReservationCompleted)
	until := noon.Add(time.Hour)
	hold.Lines[0].CancelUntil = until
	for reason, code := range map[ledger.Reason]ledger.Code{
		ledger.ReasonOwnerCanceled: ledger.CodeTooLateToCancel, ledger.ReasonOperatorCanceled: "", ledger.ReasonDeliveryFailed: "",
	} {
		wish := ledger.Cancellation{Reason: reason}
		mustReserve(t)(ledger.CancelReservation(r, hold, wish, originOf("in time"), until.Add(-time.Millisecond)))
		change, err := ledger.CancelReservation(r, hold, wish, originOf("late"), until)
		if code != "" {
			refusedWith(t, string(reason), change, err, code)
		} else {
			mustReserve(t)(change, err)
		}
	}
	other := ledger.Cancellation{Reason: ledger.ReasonOwnerCanceled, Lines: []ledger.ReturnLine{{Slot: "B", Quantity: 1}}}
	mustReserve(t)(ledger.CancelReservation(r, hold, other, originOf("other line"), until))
}

// As many granted units go as were returned of their line, and the rest stays.
func TestCancelTakesGrantsBack(t *testing.T) {
	hold, r := bought(t, ledger.ReservationCompleted)
	hold.Lines[0].GrantTo = "points"
	r.Grants = []ledger.Grant{{Slot: "points", Shard: 1, Quantity: 2}}
	part := ledger.Cancellation{Reason: ledger.ReasonOwnerCanceled, Lines: []ledger.ReturnLine{{Slot: "A", Quantity: 1}, {Slot: "B", Quantity: 1}}}
	change, err := ledger.CancelReservation(r, hold, part, originOf("part"), noon)
	left, next := mustReserve(t)(change, err)
	if len(next.Grants) != 1 || next.Grants[0].Quantity != 1 || r.Grants[0].Quantity != 2 {
		t.Errorf("the grants are %+v", next.Grants)
	}
	taken := ledger.StockWrite{Slot: "points", Shard: 1, Delta: ledger.Counters{Available: -1, Capacity: -1}}
	if last := change.Stock[len(change.Stock)-1]; last != taken {
		t.Errorf("got %+v, want %+v", last, taken)
	}
	if _, whole := mustReserve(t)(ledger.CancelReservation(next, left, byOwner, originOf("rest"), noon)); len(whole.Grants) != 0 {
		t.Errorf("after the rest the grants are %+v", whole.Grants)
	}
}

func TestDeliver(t *testing.T) {
	hold, r := bought(t, ledger.ReservationCaptured)
	change, err := ledger.Deliver(r, hold, true, originOf("delivered"), noon)
	refusedWith(t, "what nobody delivers", change, err, ledger.CodeReservationNotActive)
	hold.Terms.Delivery = ledger.DeliveryEvent
	_, next := mustReserve(t)(ledger.Deliver(r, hold, true, originOf("delivered"), noon))
	if next.DeliveredAt != noon || next.LookAt != noon || next.Status != ledger.ReservationCaptured {
		t.Errorf("delivered it is %+v", next)
	}
	if again, err := ledger.Deliver(next, hold, true, originOf("again"), noon); err != nil || !again.Empty() {
		t.Errorf("the second time writes %+v, error %v", again, err)
	}
	change, err = ledger.Deliver(next, hold, false, originOf("failed after all"), noon)
	refusedWith(t, "a failure of what was delivered", change, err, ledger.CodeReservationNotActive)

	hold.Lines[0].CancelUntil = noon.Add(-time.Hour)
	back, failed := mustReserve(t)(ledger.Deliver(r, hold, false, originOf("failed"), noon))
	if back.Status != ledger.StatusReturned || failed.Status != ledger.ReservationCompensating || failed.Reason != ledger.ReasonDeliveryFailed || failed.OwedMinor() != 1500 {
		t.Errorf("after a failed delivery the hold is %s, the reservation %+v", back.Status, failed)
	}
	if again, err := ledger.Deliver(failed, back, false, originOf("again"), noon); err != nil || !again.Empty() {
		t.Errorf("the second failure writes %+v, error %v", again, err)
	}
	_, pending := started(t)
	change, err = ledger.Deliver(pending, hold, true, originOf("early"), noon)
	refusedWith(t, "before it is paid", change, err, ledger.CodeReservationNotActive)
}

// Case F5: the largest hold that credits other slots can still be cancelled after its
// sale, in one transaction; a larger one is refused when it is made.
func TestCaseF5_CancellationOfTheLargestGrantFits(t *testing.T) {
	const most = ledger.StockActionsMax / 2
	plan := func(lines int) ledger.HoldPlan {
		p := ledger.HoldPlan{
			ID: holdID("H"), Owner: "U-1", Slots: map[ledger.SlotID]ledger.Slot{}, Allocations: map[ledger.SlotID][]ledger.Allocation{},
		}
		for i := range lines {
			id := ledger.SlotID(fmt.Sprintf("S-%02d", i))
			d := definitionOf(1, 1)
			d.Policy.GrantTo = fmt.Sprintf("wallet:{owner}:%02d", i)
			change, err := ledger.NewSlot(id, d, ledger.Origin{EventID: "event"}, noon)
			if err != nil {
				t.Fatal(err)
			}
			p.Slots[id] = change.Slots[0].Next
			p.Quotes = append(p.Quotes, ledger.Quote{Slot: id, Quantity: 1, UnitAmount: d.Terms.Price.AmountMinor})
			p.Allocations[id] = []ledger.Allocation{{Shard: 0, Quantity: 1}}
		}
		return p
	}
	if _, err := ledger.NewHold(plan(most+1), ledger.Origin{EventID: "event"}, noon); ledger.CodeOf(err) != ledger.CodeInvalid {
		t.Errorf("a hold of %d slots that credit others: error %v", most+1, err)
	}
	change, err := ledger.NewHold(plan(most), ledger.Origin{EventID: "event"}, noon)
	if err != nil {
		t.Fatal(err)
	}
	sold := change.Holds[0].Next
	sold.Status, sold.Reservation = ledger.StatusConfirmed, "rsv"
	r := ledger.Reservation{
		ID: "rsv", Hold: sold.ID, SoldHold: sold.ID, Owner: "U-1", Status: ledger.ReservationCompleted, Version: 9, Amount: sold.Total(),
		Attempts: []ledger.Attempt{{Number: 1, State: ledger.AttemptCaptured, CapturedMinor: sold.Total().AmountMinor}},
	}
	for _, line := range sold.Lines {
		r.Grants = append(r.Grants, ledger.Grant{Slot: line.GrantTo, Quantity: line.Quantity})
	}
	canceled, err := ledger.CancelReservation(r, sold, ledger.Cancellation{Reason: ledger.ReasonOwnerCanceled}, ledger.Origin{EventID: "event"}, noon)
	canceled.Idempotency = &ledger.IdempotencyRecord{ID: "id"}
	if err != nil || canceled.Validate() != nil {
		t.Errorf("%d actions: %v, %v", canceled.Actions(), err, canceled.Validate())
	}
}

// A sale that a person must look at is taken back with its units, as any other is.
func TestCancellationOfASaleUnderReviewReturnsItsUnits(t *testing.T) {
	d := definitionOf(1, 1)
	slot, err := ledger.NewSlot("S", d, ledger.Origin{EventID: "event"}, noon)
	if err != nil {
		t.Fatal(err)
	}
	made, err := ledger.NewHold(ledger.HoldPlan{
		ID: holdID("H"), Owner: "U-1", Slots: map[ledger.SlotID]ledger.Slot{"S": slot.Slots[0].Next},
		Quotes:      []ledger.Quote{{Slot: "S", Quantity: 1, UnitAmount: d.Terms.Price.AmountMinor}},
		Allocations: map[ledger.SlotID][]ledger.Allocation{"S": {{Shard: 0, Quantity: 1}}},
	}, ledger.Origin{EventID: "event"}, noon)
	if err != nil {
		t.Fatal(err)
	}
	sold := made.Holds[0].Next
	sold.Status = ledger.StatusConfirmed
	r := ledger.Reservation{ID: "rsv", Hold: sold.ID, SoldHold: sold.ID, Owner: "U-1", Status: ledger.ReservationReview, Version: 5, Amount: sold.Total()}
	change, err := ledger.CancelReservation(r, sold, ledger.Cancellation{Reason: ledger.ReasonOperatorCanceled}, ledger.Origin{EventID: "event"}, noon)
	if err != nil || len(change.Holds) != 1 || change.Holds[0].Next.Status != ledger.StatusReturned {
		t.Errorf("the hold goes to %+v, error %v", change.Holds, err)
	}
}
