package ledger_test

import (
	"reflect"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// mustReserve gives the hold and the reservation that a checked change makes.
func mustReserve(t testing.TB) func(ledger.Change, error) (ledger.Hold, ledger.Reservation) {
	return func(c ledger.Change, err error) (ledger.Hold, ledger.Reservation) {
		t.Helper()
		if err == nil {
			err = c.Validate()
		}
		if err != nil {
			t.Fatal(err)
		}
		var hold ledger.Hold
		if len(c.Holds) > 0 {
			hold = c.Holds[0].Next
		}
		return hold, c.Reservations[0].Next
	}
}

// started is a hold with the first attempt of its reservation.
func started(t testing.TB) (ledger.Hold, ledger.Reservation) {
	t.Helper()
	return mustReserve(t)(ledger.StartReservation(theReservation, heldHold(t), originOf("start"), noon))
}

func TestStartReservation(t *testing.T) {
	change, err := ledger.StartReservation(theReservation, heldHold(t), originOf("start"), noon)
	hold, got := mustReserve(t)(change, err)
	want := ledger.Reservation{
		ID: theReservation, Owner: "U-1", Hold: hold.ID, Status: ledger.ReservationPaymentPending,
		Amount:   ledger.Money{AmountMinor: 1500, Currency: "USD"},
		Attempts: []ledger.Attempt{{Number: 1, State: ledger.AttemptOpen, OpenedAt: noon}}, LookAt: noon,
		CreatedAt: noon, UpdatedAt: noon, StatusSince: noon, Version: 1,
	}
	if !reflect.DeepEqual(got, want) || hold.AttemptOpen != 1 || hold.Reservation != theReservation {
		t.Errorf("got %+v of hold %+v\nwant %+v", got, hold, want)
	}
	if len(change.Uniqueness) != 1 || change.Uniqueness[0] != got.ClaimHold() {
		t.Errorf("the claims are %+v", change.Uniqueness)
	}
	again, err := ledger.StartReservation("rsv_another", hold, originOf("again"), noon)
	refusedWith(t, "a second reservation", again, err, ledger.CodePaymentInProgress)
	late, err := ledger.StartReservation(theReservation, heldHold(t), originOf("late"), hold.ExpiresAt)
	refusedWith(t, "when the hold expires", late, err, ledger.CodeHoldNotActive)
}

// A hold that costs nothing needs no attempt.
func TestStartReservationOfAFreeHold(t *testing.T) {
	free := heldHold(t)
	for i := range free.Lines {
		free.Lines[i].UnitPrice.AmountMinor = 0
	}
	hold, r := mustReserve(t)(ledger.StartReservation(theReservation, free, originOf("start"), noon))
	if r.Status != ledger.ReservationAuthorized || len(r.Attempts) != 0 || hold.AttemptOpen != 0 || hold.Reservation != theReservation {
		t.Errorf("the reservation is %+v of hold %+v", r, hold)
	}
}

func TestStartNextAttempt(t *testing.T) {
	hold, r := started(t)
	change, err := ledger.StartNextAttempt(r, hold, 0, originOf("next"), noon)
	refusedWith(t, "while the first may succeed", change, err, ledger.CodePaymentInProgress)

	later := noon.Add(time.Minute)
	change, err = ledger.StartNextAttempt(r, hold, 1, originOf("next"), later)
	second, next := mustReserve(t)(change, err)
	if change.Holds[0].NoOpenAttempt {
		t.Error("the write that closes an attempt and opens the next one would refuse itself")
	}
	want := []ledger.Attempt{{Number: 1, State: ledger.AttemptVoided, OpenedAt: noon}, {Number: 2, State: ledger.AttemptOpen, OpenedAt: later}}
	if !reflect.DeepEqual(next.Attempts, want) || second.AttemptOpen != 2 || second.ReleaseAt != hold.ReleaseAt || next.LookAt != later {
		t.Errorf("the next attempt makes %+v of hold %+v", next, second)
	}
	if r.Attempts[0].State != ledger.AttemptOpen {
		t.Error("the reservation that was given has changed")
	}

	closed, voided := hold, r.Clone()
	closed.AttemptOpen, voided.Attempts[0].State = 0, ledger.AttemptVoided
	if third, _ := mustReserve(t)(ledger.StartNextAttempt(voided, closed, 0, originOf("next"), later)); third.AttemptOpen != 2 {
		t.Errorf("after a closed attempt the hold waits for attempt %d", third.AttemptOpen)
	}
	change, err = ledger.StartNextAttempt(voided, closed, 0, originOf("next"), hold.ExpiresAt)
	refusedWith(t, "when the hold expires", change, err, ledger.CodeHoldNotActive)
	authorized := voided.Clone()
	authorized.Status = ledger.ReservationAuthorized
	change, err = ledger.StartNextAttempt(authorized, closed, 0, originOf("next"), noon)
	refusedWith(t, "after the money is there", change, err, ledger.CodeReservationNotActive)
	for n := len(voided.Attempts); n < ledger.AttemptsMax; n++ {
		voided.Attempts = append(voided.Attempts, ledger.Attempt{Number: ledger.AttemptNumber(n + 1), State: ledger.AttemptVoided})
	}
	change, err = ledger.StartNextAttempt(voided, closed, 0, originOf("next"), noon)
	refusedWith(t, "one attempt too many", change, err, ledger.CodeInvalid)
}

func TestPaymentCreatedIsRecordedOnce(t *testing.T) {
	_, r := started(t)
	change := ledger.PaymentCreated(r, 1, "pi_1", originOf("created"), noon)
	_, next := mustReserve(t)(change, nil)
	if next.Attempts[0].Payment != "pi_1" || r.Attempts[0].Payment != "" || change.Uniqueness[0] != r.ClaimPayment("pi_1") {
		t.Errorf("the reservation is %+v with the claims %+v", next, change.Uniqueness)
	}
	if again := ledger.PaymentCreated(next, 1, "pi_1", originOf("again"), noon); !again.Empty() {
		t.Errorf("the second record writes %+v", again)
	}
	if unknown := ledger.PaymentCreated(r, 2, "pi_1", originOf("unknown"), noon); !unknown.Empty() {
		t.Errorf("the payment of an attempt that was not made writes %+v", unknown)
	}
}

// GiveUp ends the hold and records what is owed in one change.
func TestP8_GiveUpRecordsTheCompensation(t *testing.T) {
	hold, r := started(t)
	over := hold.ReleaseAt.Add(hold.Terms.UnknownFor)
	change, err := ledger.GiveUp(hold, r, originOf("early"), over.Add(-time.Millisecond))
	refusedWith(t, "a millisecond early", change, err, ledger.CodeHoldNotDue)
	ended, next := mustReserve(t)(ledger.GiveUp(hold, r, originOf("give up"), over))
	if ended.Status != ledger.StatusExpired || next.Status != ledger.ReservationCompensating || next.Reason != ledger.ReasonPaymentUnknown || next.LookAt.IsZero() {
		t.Errorf("the hold is %s, the reservation %+v", ended.Status, next)
	}
	review := r.Clone()
	review.Status, review.Reason, review.LookAt = ledger.ReservationReview, ledger.ReasonMismatch, time.Time{}
	if _, next := mustReserve(t)(ledger.GiveUp(hold, review, originOf("give up"), over)); next.Status != ledger.ReservationReview || next.Reason != ledger.ReasonMismatch || next.LookAt != over {
		t.Errorf("a reservation that a person looks at becomes %+v", next)
	}
	if again, err := ledger.GiveUp(ended, next, originOf("again"), over); err != nil || !again.Empty() {
		t.Errorf("the second time writes %+v, error %v", again, err)
	}
}
