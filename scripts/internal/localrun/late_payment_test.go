package localrun_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/topology"
)

// lateHold is the policy of a hold that is over after a second, also while it is paid.
func lateHold(latePayment string) string {
	return fmt.Sprintf(`,"policy":{"hold_seconds":1,"grace_seconds":0,"late_payment":%q}`, latePayment)
}

// expirePaying lets a hold with an open payment end: the provider says that the payment is
// cancelled, and will take the money all the same.
func (b purchase) expirePaying() {
	b.w.t.Helper()
	b.w.bank.SetScript(b.reservation, 1, paymenttest.Script{VoidLies: true})
	b.w.until("the hold is over", func() bool { return b.w.hold(b.hold).text("status") != "HELD" })
	b.w.until("the hold has ended", func() bool {
		b.w.tick()
		return b.read().text("status") == string(ledger.ReservationCanceled)
	})
	if got := b.w.hold(b.hold).text("status"); got != "EXPIRED" {
		b.w.t.Fatalf("the hold is %s, want EXPIRED", got)
	}
}

// moneyComes makes the payment that was said to be cancelled succeed, and returns the news.
func (b purchase) moneyComes() stripetest.Webhook {
	b.w.t.Helper()
	if _, err := b.w.bank.LateSuccess(b.secret, true); err != nil {
		b.w.t.Fatal(err)
	}
	return b.told(paymenttest.EventSucceeded)
}

// lateMoney is a purchase whose money comes when its hold has ended.
func (p *payingWorld) lateMoney(slot string) purchase {
	p.t.Helper()
	late := p.purchase(slot, 1)
	late.expirePaying()
	p.deliver(late.moneyComes(), http.StatusOK)
	return late
}

// Case D1 through the HTTP API: money arrived after the unit had been sold to someone else,
// and its news comes twice. A hold that has EXPIRED stays so.
func TestCaseD1_LateMoneyOverHTTP(t *testing.T) {
	tests := []struct {
		policy   string
		capacity int
		ends     ledger.ReservationStatus
		refunded int64
		want     counters
	}{
		{"refund", 1, ledger.ReservationRefunded, unitAmount, counters{Confirmed: 1, Capacity: 1}},
		{"reacquire", 1, ledger.ReservationRefunded, unitAmount, counters{Confirmed: 1, Capacity: 1}},
		{"refund", 2, ledger.ReservationRefunded, unitAmount, counters{Available: 1, Confirmed: 1, Capacity: 2}},
		{"reacquire", 2, ledger.ReservationCompleted, 0, counters{Confirmed: 2, Capacity: 2}},
	}
	p := newPayingWorld(t)
	late := make([]purchase, len(tests))
	for i, test := range tests {
		late[i] = p.purchase(p.slot(test.capacity, lateHold(test.policy)), 1)
	}
	for i, test := range tests {
		a := late[i]
		a.expirePaying()
		p.confirm(p.mustHold(p.owner(), a.slot, 1)).want(http.StatusOK)
		news := a.moneyComes()
		p.deliver(news, http.StatusOK)
		p.deliver(news, http.StatusOK)
		ended := a.until(test.ends)
		p.deliver(news, http.StatusOK)
		p.rest()
		a.wantMoney(unitAmount, test.refunded)
		p.wantCounters(a.slot, test.want)
		if got := p.hold(a.hold).text("status"); got != "EXPIRED" {
			t.Errorf("%s: the hold is %s", test.policy, got)
		}
		if test.refunded > 0 {
			a.wantOneRefund()
			continue
		}
		again := ended.text("sold_hold_id")
		if again == a.hold || p.hold(again).text("status") != "CONFIRMED" {
			t.Errorf("what was sold is hold %s: %s", again, p.hold(again).Body)
		}
	}
}

// wantOneRefund checks that every refund that was asked for has the same key, and that the
// reservation went through COMPENSATING before it.
func (b purchase) wantOneRefund() {
	b.w.t.Helper()
	var keys []payment.Key
	for _, request := range b.w.provider.Requests() {
		if request.Method == paymenttest.MethodRefund && strings.HasPrefix(string(request.Key), string(b.reservation)) {
			keys = append(keys, request.Key)
		}
	}
	if len(keys) == 0 || len(slices.Compact(keys)) != 1 {
		b.w.t.Errorf("refunds were asked for under the keys %v", keys)
	}
	if steps := b.steps(); steps[ledger.EventReservationCompensating] == 0 {
		b.w.t.Errorf("it did not go through COMPENSATING: %v", steps)
	}
}

// Case C3 on the whole system: a cancel call, the payment-failed webhook and the sweep hit
// a hold at its end at the same moment.
func TestCaseC3_CancelMeetsWebhookAndSweep(t *testing.T) {
	const rounds, quantity, capacity = 20, 3, 10
	p := newPayingWorld(t)
	bought := make([]purchase, rounds)
	for i := range bought {
		bought[i] = p.purchase(p.slot(capacity, lateHold("refund")), quantity)
	}
	p.until("the last hold is over", func() bool { return p.hold(bought[rounds-1].hold).text("status") != "HELD" })
	met := 0
	for _, b := range bought {
		_, err := p.bank.Decline(b.secret)
		if refused := (*payment.Error)(nil); errors.As(err, &refused) && refused.Kind == payment.KindConflict {
			continue // on a slow machine the saga has voided it by now, and there is nothing to meet
		}
		if err != nil {
			t.Fatal(err)
		}
		met++
		news := b.told(paymenttest.EventDeclined)
		var cancel answer
		atOnce(3, func(i int) {
			switch i {
			case 0:
				cancel = p.post(b.owner, "/v1/holds/"+b.hold+"/cancel", newName("key"), "")
			case 1:
				p.deliver(news, http.StatusOK)
			case 2:
				p.sweep()
			}
		})
		b.until(ledger.ReservationCanceled)
		want := "EXPIRED"
		switch {
		case cancel.Status == http.StatusOK:
			want = "CANCELED"
		case cancel.ProblemCode() != "payment_in_progress":
			cancel.wantProblem(http.StatusConflict, "hold_not_active")
		}
		if got := p.hold(b.hold).text("status"); got != want {
			t.Errorf("the cancel was answered with %d, and the hold is %s", cancel.Status, got)
		}
		events, err := p.store.HoldEvents(t.Context(), ledger.HoldID(b.hold))
		if err != nil {
			t.Fatal(err)
		}
		releases := 0
		for _, e := range events {
			if e.Type == ledger.EventHoldCanceled || e.Type == ledger.EventHoldExpired {
				releases++
			}
		}
		if releases != 1 {
			t.Errorf("%d releases, want one", releases)
		}
		p.wantCounters(b.slot, counters{Available: capacity, Capacity: capacity})
		b.wantMoney(0, 0)
	}
	if met == 0 {
		t.Errorf("in none of %d rounds the three have met", rounds)
	}
}

// All messages are lost: no webhook is sent, and what the saga's queue had is gone. The
// tick alone brings a paid reservation to its end.
func TestTheTickAloneCompletes(t *testing.T) {
	p := newPayingWorld(t)
	p.loseMessages()
	b := p.purchase(p.slot(1, ""), 1)
	b.pay()
	p.untilPublished()
	if got := b.read().text("status"); got != string(ledger.ReservationPaymentPending) {
		t.Fatalf("it is %s without a message", got)
	}
	b.tickUntil(ledger.ReservationCompleted)
	b.wantOneSale()
	p.wantCounters(b.slot, counters{Confirmed: 1, Capacity: 1})
}

// loseMessages throws every webhook and every message to the saga away until the end of the
// test.
func (p *payingWorld) loseMessages() {
	p.t.Helper()
	p.rest()
	p.provider.SetWebhookFaults(stripetest.WebhookFaults{Never: true})
	if err := p.system.DisableQueue(topology.ResourceSagaQueue); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), comesWithin)
		defer cancel()
		lost, err := p.system.TakeMessages(ctx, topology.ResourceSagaQueue)
		if err != nil || len(lost) == 0 {
			p.t.Errorf("%d messages were lost, %v; want that some were", len(lost), err)
		}
		if err := p.system.EnableQueue(topology.ResourceSagaQueue); err != nil {
			p.t.Error(err)
		}
	})
}

// tickUntil starts the saga again and again, as its schedule does.
func (b purchase) tickUntil(status ledger.ReservationStatus) {
	b.w.t.Helper()
	b.w.until(fmt.Sprintf("ticks bring it to %s", status), func() bool {
		b.w.tick()
		return b.read().text("status") == string(status)
	})
}

// The provider is out from the first call on, and no message arrives either. Nothing is
// given up meanwhile; when the provider is back, the tick goes on.
func TestCaseM7_ProviderOutage(t *testing.T) {
	p := newPayingWorld(t)
	p.loseMessages()
	p.provider.AddFault(stripetest.Fault{Outcome: stripetest.ErrorInstead})
	slot, owner := p.slot(1, ""), p.owner()
	hold := p.mustHold(owner, slot, 1)
	begun := p.post(owner, "/v1/holds/"+hold+"/payment", newName("key"), "").want(http.StatusAccepted)
	b := purchase{w: p, owner: owner, slot: slot, hold: hold, reservation: ledger.ReservationID(begun.text("reservation_id"))}
	session := func() answer {
		return p.do(owner, localrun.Request{Method: http.MethodPost, Path: "/v1/reservations/" + string(b.reservation) + "/payment-session"})
	}
	p.tick()
	if got := session(); got.Status != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
		t.Errorf("the session is answered with %d and Retry-After %q: %s", got.Status, got.Header.Get("Retry-After"), got.Body)
	}
	if got := b.read().text("status"); got != string(ledger.ReservationPaymentPending) {
		t.Fatalf("it is %s while the provider is out", got)
	}
	p.wantCounters(slot, counters{Held: 1, Capacity: 1})
	p.provider.ClearFaults()
	b.secret = session().want(http.StatusOK).text("client_secret")
	b.pay()
	b.tickUntil(ledger.ReservationCompleted)
	b.wantOneSale()
}
