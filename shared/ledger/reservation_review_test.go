package ledger_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// inReview is a reservation whose payment came late and waits for a person; captured says
// that its money was taken.
func inReview(t testing.TB, captured bool) (ledger.Hold, ledger.Reservation) {
	t.Helper()
	hold, r := started(t)
	r.Status, r.Reason, r.LookAt = ledger.ReservationReview, ledger.ReasonLate, time.Time{}
	r.Attempts[0].State, r.Attempts[0].Payment = ledger.AttemptAuthorized, "pi-1"
	if captured {
		r.Attempts[0].State, r.Attempts[0].CapturedMinor = ledger.AttemptCaptured, r.Amount.AmountMinor
	}
	return hold, r
}

// undeliverable is a sale that was paid and could not be delivered.
func undeliverable(t testing.TB) (ledger.Hold, ledger.Reservation) {
	t.Helper()
	hold, r := bought(t, ledger.ReservationCaptured)
	r.Status, r.Reason = ledger.ReservationReview, ledger.ReasonDeliveryFailed
	return hold, r
}

// refundRequired owes two refunds, of which the provider has refused one.
func refundRequired(t testing.TB) (ledger.Hold, ledger.Reservation) {
	t.Helper()
	hold, r := inReview(t, true)
	r.Status = ledger.ReservationRefundRequired
	r.Attempts[0].Unwanted = true
	r.Owe(1, 100, ledger.ReasonLate, noon)
	r.Owe(1, 200, ledger.ReasonLate, noon)
	r.Refunds[0].State, r.Refunds[0].EndedAt = ledger.RefundFailed, noon
	return hold, r
}

func resolve(r ledger.Reservation, h ledger.Hold, d ledger.ReviewDecision) (ledger.Change, error) {
	origin := originOf("decide")
	origin.Actor, origin.Why = "operator:olga", "because"
	return ledger.ResolveReservation(r, h, d, nil, origin, noon.Add(time.Hour))
}

// A payment that is there, wanted and whole counts; the reservation remembers that, and the
// event who has said it and why. A sale that was not delivered is delivered again.
func TestApprove(t *testing.T) {
	now := noon.Add(time.Hour)
	for _, captured := range []bool{false, true} {
		hold, r := inReview(t, captured)
		change, err := resolve(r, hold, ledger.DecisionApprove)
		_, next := mustReserve(t)(change, err)
		if next.Status != ledger.ReservationAuthorized || next.Reason != "" || next.ApprovedAt != now || next.LookAt != now || next.Attempts[0].Unwanted {
			t.Errorf("captured %t: it becomes %+v", captured, next)
		}
		if e := change.Events[0]; e.Type != ledger.EventReservationAuthorized || e.Origin.Actor != "operator:olga" || e.Origin.Why != "because" {
			t.Errorf("the event is %s by %+v", e.Type, e.Origin)
		}
	}
	hold, r := undeliverable(t)
	_, next := mustReserve(t)(resolve(r, hold, ledger.DecisionApprove))
	if next.Status != ledger.ReservationCaptured || next.Reason != "" || next.LookAt != now || next.SoldHold != hold.ID {
		t.Errorf("a sale that was not delivered becomes %+v", next)
	}
}

// What can't be decided so is refused, and the refusal says what can.
func TestDecisionsThatAreNotPossible(t *testing.T) {
	held, late := inReview(t, false)
	sold, undelivered := undeliverable(t)
	with := func(r ledger.Reservation, change func(*ledger.Reservation)) ledger.Reservation {
		r = r.Clone()
		change(&r)
		return r
	}
	_, taken := inReview(t, true)
	for _, test := range []struct {
		name string
		r    ledger.Reservation
		h    ledger.Hold
		d    ledger.ReviewDecision
		code ledger.Code
		says string
	}{
		{"money that is not wanted", with(late, func(r *ledger.Reservation) { r.Attempts[0].Unwanted = true }), held, ledger.DecisionApprove, ledger.CodeDecisionNotPossible, "decide refund or void"},
		{"less money than was asked for", with(taken, func(r *ledger.Reservation) { r.Attempts[0].CapturedMinor-- }), held, ledger.DecisionApprove, ledger.CodeDecisionNotPossible, "decide refund"},
		{"money that is partly given back", with(taken, func(r *ledger.Reservation) { r.Owe(1, 1, ledger.ReasonLate, noon) }), held, ledger.DecisionApprove, ledger.CodeDecisionNotPossible, "decide refund"},
		{"no money", with(late, func(r *ledger.Reservation) { r.Attempts[0].State = ledger.AttemptVoided }), held, ledger.DecisionApprove, ledger.CodeDecisionNotPossible, "decide void"},
		{"no payment", with(late, func(r *ledger.Reservation) { r.Attempts = nil }), held, ledger.DecisionApprove, ledger.CodeDecisionNotPossible, "decide refund"},
		{"a sale without its money", with(undelivered, func(r *ledger.Reservation) {
			r.Attempts[0].State, r.Attempts[0].CapturedMinor = ledger.AttemptAuthorized, 0
		}), sold, ledger.DecisionApprove, ledger.CodeDecisionNotPossible, "CONFIRMED already"},
		{"a void of money that was taken", taken, held, ledger.DecisionVoid, ledger.CodeDecisionNotPossible, "decide refund"},
		{"a retry in REVIEW", late, held, ledger.DecisionRetry, ledger.CodeInvalid, "REVIEW"},
		{"an approval in REFUND_REQUIRED", with(taken, func(r *ledger.Reservation) { r.Status = ledger.ReservationRefundRequired }), held, ledger.DecisionApprove, ledger.CodeInvalid, "REFUND_REQUIRED"},
		{"one that does not wait", with(late, func(r *ledger.Reservation) { r.Status = ledger.ReservationCompleted }), held, ledger.DecisionRefund, ledger.CodeReservationNotActive, "COMPLETED"},
		{"one in the archive", with(late, func(r *ledger.Reservation) { r.ArchivedIn = "batch" }), held, ledger.DecisionRefund, ledger.CodeReservationArchived, "archive"},
	} {
		change, err := resolve(test.r, test.h, test.d)
		refusedWith(t, test.name, change, err, test.code)
		if err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: told %q, want it to say %q", test.name, err, test.says)
		}
	}
}

// Refund and void take the reservation back and keep the reason why it was in review; a sale
// gives its units back in the same change.
func TestRefundAndVoidInReview(t *testing.T) {
	held, late := inReview(t, false)
	for _, d := range []ledger.ReviewDecision{ledger.DecisionRefund, ledger.DecisionVoid} {
		change, err := resolve(late, held, d)
		_, next := mustReserve(t)(change, err)
		if next.Status != ledger.ReservationCompensating || next.Reason != ledger.ReasonLate || !next.Attempts[0].Unwanted || len(change.Stock) > 0 {
			t.Errorf("%s makes %+v", d, next)
		}
	}
	sold, undelivered := undeliverable(t)
	back, next := mustReserve(t)(resolve(undelivered, sold, ledger.DecisionRefund))
	if back.Status != ledger.StatusReturned || next.Status != ledger.ReservationCompensating || next.OwedMinor() != undelivered.Amount.AmountMinor {
		t.Errorf("the hold is %s, the reservation %+v", back.Status, next)
	}
}

// The provider is asked again for what it refused, as another act; what it was not asked for
// yet is left as it is.
func TestRetryRefunds(t *testing.T) {
	hold, r := refundRequired(t)
	_, next := mustReserve(t)(resolve(r, hold, ledger.DecisionRetry))
	if next.Status != ledger.ReservationCompensating || next.LookAt != noon.Add(time.Hour) {
		t.Errorf("it becomes %+v", next)
	}
	failed, owed := next.Refunds[0], next.Refunds[1]
	if failed.State != ledger.RefundOwed || failed.Again != 1 || !failed.EndedAt.IsZero() || owed != r.Refunds[1] {
		t.Errorf("the refunds are %+v", next.Refunds)
	}
	next.Status, next.Refunds[0].State = ledger.ReservationRefundRequired, ledger.RefundFailed
	if _, next = mustReserve(t)(resolve(next, hold, ledger.DecisionRetry)); next.Refunds[0].Again != 2 {
		t.Errorf("the second time it is asked for again %d times", next.Refunds[0].Again)
	}
	if r.Refunds[0].State != ledger.RefundFailed {
		t.Error("the reservation that was decided on has changed")
	}
}

// On a person's word everything that was taken has been given back: also what no refund said
// yet. It is no money of the provider's, and what was not taken can't be any more.
func TestRefundedByHand(t *testing.T) {
	hold, r := refundRequired(t)
	r.Attempts = append(r.Attempts, ledger.Attempt{Number: 2, Payment: "pi-2", State: ledger.AttemptOpen})
	change, err := resolve(r, hold, ledger.DecisionRefund)
	_, next := mustReserve(t)(change, err)
	if next.Status != ledger.ReservationCompensating || next.OwedMinor() != 0 || change.Events[0].Type != ledger.EventReservationRefundEnded {
		t.Errorf("it becomes %+v", next)
	}
	if given := next.RefundedMinor(1, ledger.RefundDone); given != r.Attempts[0].CapturedMinor || next.ProviderRefundedMinor(1) != 0 {
		t.Errorf("%d of %d are given back, %d of it by the provider", given, r.Attempts[0].CapturedMinor, next.ProviderRefundedMinor(1))
	}
	for _, refund := range next.Refunds {
		if !refund.ByHand || refund.EndedAt != noon.Add(time.Hour) {
			t.Errorf("refund %+v", refund)
		}
	}
	if a := next.Attempts[1]; a.State != ledger.AttemptVoided || !a.Unwanted {
		t.Errorf("the payment that was not taken is %+v", a)
	}
	next.Refunds[0].State = ledger.RefundOwed
	if err := ledger.ReservationStep(r, next, ledger.EventReservationRefundEnded, nil, originOf("bad"), noon).Validate(); err == nil {
		t.Error("a refund by hand that is still owed is written")
	}
}
