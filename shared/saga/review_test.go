package saga_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/system"
)

// decide decides the case of the reservation as an operator does.
func (w *world) decide(id ledger.ReservationID, d ledger.ReviewDecision) error {
	w.t.Helper()
	request := commands.Request{Actor: "operator:olga", Owner: "olga", Why: "because"}
	_, err := commands.NewReviews(w.commands, nil).Decide(w.t.Context(), request, string(id), d,
		func(commands.Case, time.Time) (ledger.Response, error) { return ledger.Response{}, nil })
	return err
}

// lateInReview is a payment that came after its hold was over, under the policy to ask a
// person, so long after ten o'clock; the hold is over ten minutes after it.
func lateInReview(w *world, after time.Duration) (ledger.HoldID, ledger.ReservationID) {
	w.t.Helper()
	w.slot("A", 1, slotWith(func(p *ledger.Policy) { p.GraceFor, p.Payment.LatePayment = 0, ledger.LatePaymentReview }))
	hold := w.hold("U-1", one("A"))
	id, secret := w.start("U-1", hold, "key")
	w.at(9 * time.Minute)
	w.pay(secret)
	w.at(after)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationReview, ledger.ReasonLate)
	return hold, id
}

// A late payment that a person lets count buys the units: those that its hold still has, or
// free ones; and is not put before a person again. If the units are gone it is given back.
func TestAnApprovedLatePaymentIsBought(t *testing.T) {
	for _, test := range []struct {
		name     string
		wait     time.Duration
		other    bool
		status   ledger.ReservationStatus
		reason   ledger.Reason
		counters string
		captured int64
	}{
		{"still held", 0, false, ledger.ReservationCompleted, "", "0/0/1/1", 1000},
		{"released meanwhile", time.Hour, false, ledger.ReservationCompleted, "", "0/0/1/1", 1000},
		{"sold to somebody else", time.Hour, true, ledger.ReservationCanceled, ledger.ReasonSoldOut, "0/0/1/1", 0},
	} {
		w := newWorld(t)
		hold, id := lateInReview(w, 11*time.Minute)
		for waited := time.Duration(0); waited < test.wait; waited += time.Minute {
			w.minutes(1)
		}
		w.wantReservation(id, ledger.ReservationReview, ledger.ReasonLate)
		if test.other {
			w.buy("U-2", one("A"))
		}
		w.must(w.decide(id, ledger.DecisionApprove))
		w.drive(id, nil)
		w.settle(id)
		w.wantReservation(id, test.status, test.reason)
		w.wantReacquired(id, hold, !test.other)
		w.wantCounters("A", test.counters)
		w.wantMoney(id, "USD", test.captured, 0)
		for _, event := range w.events(id) {
			if event.Type == ledger.EventReservationReview && event.Version > w.approvedAt(id) {
				t.Errorf("%s: it is in review again at version %d", test.name, event.Version)
			}
		}
		w.checkBooks()
	}
}

func (w *world) events(id ledger.ReservationID) []ledger.Event {
	w.t.Helper()
	events, err := w.store.ReservationEvents(w.t.Context(), id)
	w.must(err)
	return events
}

// approvedAt is the version that a person's approval made, and the event tells who and why.
func (w *world) approvedAt(id ledger.ReservationID) ledger.Version {
	w.t.Helper()
	for _, event := range w.events(id) {
		if event.Origin.Command == ledger.CommandDecideReview {
			if event.Origin.Actor != "operator:olga" || event.Origin.Why != "because" {
				w.t.Errorf("the decision is by %+v", event.Origin)
			}
			return event.Version
		}
	}
	w.t.Fatal("no event is of a decision")
	return 0
}

// Money that has gone since it was there buys nothing, however long a person thought.
func TestApprovedMoneyIsLookedAtBeforeAnythingIsSold(t *testing.T) {
	w := newWorld(t)
	w.bank.SetDefaultScript(paymenttest.Script{AuthorizationLasts: time.Hour})
	hold, id := lateInReview(w, 11*time.Minute)
	w.at(3 * time.Hour)
	w.must(w.decide(id, ledger.DecisionApprove))
	w.drive(id, nil)
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonAuthorizationLost)
	w.wantReacquired(id, hold, false)
	w.wantMoney(id, "USD", 0, 0)
	w.wantCounters("A", "1/0/0/1")
	w.checkBooks()
}

// Refund and void end what is in review, and its money goes back.
func TestWhatIsInReviewIsRefundedOrVoided(t *testing.T) {
	for _, d := range []ledger.ReviewDecision{ledger.DecisionRefund, ledger.DecisionVoid} {
		w := newWorld(t)
		hold, id := lateInReview(w, 11*time.Minute)
		w.must(w.decide(id, d))
		w.drive(id, nil)
		w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonLate)
		w.wantHold(hold, ledger.StatusExpired)
		w.wantMoney(id, "USD", 0, 0)
		w.wantCounters("A", "1/0/0/1")
		w.checkBooks()
	}
}

// Case K3: money that is not what was asked for is never let count, by nobody.
func TestCaseK3_AMismatchIsNotApproved(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, nil)
	id, secret := w.start("U-1", w.hold("U-1", one("A")), "key")
	w.bank.SetScript(id, 1, paymenttest.Script{AmountMinor: 999})
	w.pay(secret)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationReview, ledger.ReasonMismatch)
	w.wantCode(w.decide(id, ledger.DecisionApprove), ledger.CodeDecisionNotPossible)
	w.must(w.decide(id, ledger.DecisionRefund))
	w.drive(id, nil)
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonMismatch)
	w.wantCounters("A", "1/0/0/1")
	w.wantMoney(id, "USD", 0, 0)
	w.checkBooks()
}

// refusedRefund is a cancelled sale whose money the provider will not give back.
func refusedRefund(w *world) ledger.ReservationID {
	w.t.Helper()
	w.slot("A", 1, nil)
	_, id := w.buy("U-1", one("A"))
	w.bank.SetScript(id, 1, paymenttest.Script{RefundRefused: true})
	w.must(w.cancel(id))
	w.drive(id, nil)
	w.wantReservation(id, ledger.ReservationRefundRequired, ledger.ReasonOwnerCanceled)
	return id
}

// The provider repeats its refusal under the same key. A person's retry is another act, and
// what it refuses again is a case again.
func TestARefundIsAskedForAgain(t *testing.T) {
	w := newWorld(t)
	id := refusedRefund(w)
	w.must(w.decide(id, ledger.DecisionRetry))
	w.drive(id, nil)
	w.wantReservation(id, ledger.ReservationRefundRequired, ledger.ReasonOwnerCanceled)
	w.bank.SetScript(id, 1, paymenttest.Script{})
	w.must(w.decide(id, ledger.DecisionRetry))
	w.drive(id, nil)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled)
	w.wantMoney(id, "USD", 1000, 1000)
	if refunds := w.bank.Payments()[0].Refunds; len(refunds) != 1 || refunds[0].Key != payment.RefundAgainKey(id, 1, 1, 2) {
		t.Errorf("the bank made %+v", refunds)
	}
	w.checkBooks()
}

// What was given back on another way is not asked for, and the provider, which does not know
// of it, does not open the reservation again by that.
func TestARefundByHandEndsTheReservation(t *testing.T) {
	w := newWorld(t)
	id := refusedRefund(w)
	w.must(w.decide(id, ledger.DecisionRefund))
	before := w.calls(paymenttest.MethodRefund)
	w.drive(id, nil)
	w.minutes(40)
	w.drive(id, nil)
	w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled)
	if r := w.reservation(id); r.OwedMinor() != 0 || !r.LookAt.IsZero() {
		t.Errorf("it owes %d and is looked at at %s", r.OwedMinor(), r.LookAt)
	}
	if got := w.calls(paymenttest.MethodRefund); got != before {
		t.Errorf("the provider was asked for %d refunds more", got-before)
	}
	w.checkBooks()
}

// A payment that the provider does not know, and of which a person says that no money is in
// it, is not asked about for ever. If it is known one day, with money, that is given back.
func TestAnUnknownPaymentIsEndedByHand(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, slotWith(func(p *ledger.Policy) { p.GraceFor = 0 }))
	id, secret := w.start("U-1", w.hold("U-1", one("A")), "key")
	w.provider.Before = func(context.Context, paymenttest.Call) error {
		return &payment.Error{Kind: payment.KindNotFound, Code: paymenttest.CodeMissing}
	}
	w.minutes(90)
	w.wantReservation(id, ledger.ReservationRefundRequired, ledger.ReasonPaymentUnknown)
	w.wantCounters("A", "1/0/0/1")
	w.must(w.decide(id, ledger.DecisionRefund))
	w.minutes(60)
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonPaymentUnknown)
	if r := w.reservation(id); !r.LookAt.IsZero() {
		t.Errorf("it is looked at at %s after %d tries", r.LookAt, r.Tries)
	}
	w.provider.Before = nil
	w.pay(secret)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonPaymentUnknown)
	w.wantMoney(id, "USD", 0, 0)
	w.checkBooks()
}

// A sale that can't be delivered, because the slot that it credits is not there, is delivered
// when the slot is made and a person lets it go on.
func TestASaleIsDeliveredAgain(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, slotWith(func(p *ledger.Policy) { p.GrantTo = "points-{owner}" }))
	id, secret := w.start("U-1", w.hold("U-1", one("A")), "key")
	w.pay(secret)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationReview, ledger.ReasonDeliveryFailed)
	w.slot("points-U-1", 0, nil)
	w.must(w.decide(id, ledger.DecisionApprove))
	w.drive(id, nil)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantCounters("points-U-1", "1/0/0/1")
	w.checkBooks()
}

// Two operators and the saga at once: one decision counts, the other is refused, and the books
// balance whoever was first.
func TestTwoOperatorsAndTheSaga(t *testing.T) {
	const rounds, onTheEngine = 50, 3
	for round := range rounds {
		w := newWorld(t)
		if round < onTheEngine {
			client, table := dynamotest.NewTable(t)
			w = newWorldOn(t, dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{}))
		}
		_, id := lateInReview(w, 11*time.Minute)
		var wait sync.WaitGroup
		errs := make([]error, 2)
		for i, d := range []ledger.ReviewDecision{ledger.DecisionApprove, ledger.DecisionRefund} {
			wait.Go(func() { errs[i] = w.decide(id, d) })
		}
		wait.Go(func() { w.drive(id, nil) })
		wait.Wait()
		w.drive(id, nil)
		w.settle(id)
		won, lost := errs[0], errs[1]
		want := ledger.ReservationCompleted
		if won != nil {
			won, lost, want = lost, won, ledger.ReservationCanceled
		}
		if won != nil || ledger.CodeOf(lost) != ledger.CodeReviewDecided {
			t.Fatalf("round %d: %v and %v", round, errs[0], errs[1])
		}
		if got := w.reservation(id); got.Status != want {
			t.Errorf("round %d: it is %+v, went %v, want %s", round, got, w.path(id), want)
		}
		w.checkBooks()
	}
}
