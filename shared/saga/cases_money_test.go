package saga_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
	"holdfast/shared/telemetry"
)

// priced gives a slot's price.
func priced(amountMinor int64, currency ledger.Currency) func(*ledger.SlotDefinition) {
	return func(d *ledger.SlotDefinition) {
		d.Terms.Price = ledger.Money{AmountMinor: amountMinor, Currency: currency}
	}
}

// Case K1: currencies without two decimals are charged as quoted. What the bank is asked
// for is compared with literals, and not with anything that our code has computed.
func TestCaseK1_CurrenciesWithoutTwoDecimals(t *testing.T) {
	tests := []struct {
		quote    string // as a person writes it
		currency ledger.Currency
		unit     int64
		quantity ledger.Units
		asked    int64
	}{
		{"JPY 500", "JPY", 500, 1, 500},
		{"KRW 1000", "KRW", 1000, 1, 1000},
		{"USD 5.00", "USD", 500, 1, 500},
		{"KWD 1.234", "KWD", 1234, 1, 1234},
		{"3 of JPY 500", "JPY", 500, 3, 1500},
		{"2 of KRW 50000", "KRW", 50000, 2, 100000},
		{"3 of KWD 1.234", "KWD", 1234, 3, 3702},
	}
	for _, test := range tests {
		w := newWorld(t)
		w.slot("A", 5, priced(test.unit, test.currency))
		_, id := w.buy("U-1", ledger.Quote{Slot: "A", Quantity: test.quantity, UnitAmount: test.unit})
		p := w.bank.Payments()[0]
		if p.Asked.AmountMinor != test.asked || p.Asked.Currency != test.currency || p.CapturedMinor != test.asked {
			t.Errorf("%s: the bank was asked for %+v and took %d", test.quote, p.Asked, p.CapturedMinor)
		}
		w.must(w.cancel(id))
		w.settle(id)
		w.drive(id, nil)
		w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled)
		w.wantMoney(id, test.currency, test.asked, test.asked)
		w.checkBooks()
	}
}

// Case K3: what was paid is compared with the quote. Anything else goes to a person with an
// alarm, is never captured, and the hold is released at its time like any other.
func TestCaseK3_PaidAmountDiffersFromTheQuote(t *testing.T) {
	tests := []struct {
		name   string
		script paymenttest.Script
	}{
		{"999 USD", paymenttest.Script{AmountMinor: 999}},
		{"1001 USD", paymenttest.Script{AmountMinor: 1001}},
		{"1000 JPY", paymenttest.Script{Currency: "JPY"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.slot("A", 1, nil)
			hold := w.hold("U-1", one("A"))
			id, secret := w.start("U-1", hold, "key")
			w.bank.SetScript(id, 1, test.script)
			w.pay(secret)
			w.settle(id)
			w.mismatchEnds(hold, id)
		})
	}
}

// Case K3: a signed event that tells of other money is not ignored, even where the look-up
// shows what was asked for.
func TestCaseK3_OnlyTheEventTellsOfOtherMoney(t *testing.T) {
	tests := []struct {
		amountMinor int64
		currency    ledger.Currency
	}{{999, "USD"}, {1001, "USD"}, {1000, "JPY"}}
	for _, test := range tests {
		for _, answerLost := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d %s/the creation's answer lost %t", test.amountMinor, test.currency, answerLost), func(t *testing.T) {
				w := newWorld(t)
				w.slot("A", 1, nil)
				hold := w.hold("U-1", one("A"))
				if answerLost {
					w.provider.After = func(context.Context, paymenttest.Call) error { return errNoAnswer }
				}
				id, _ := w.start("U-1", hold, "key")
				w.provider.After = nil
				w.pay(w.bank.Payments()[0].Secret)
				authorized := of(paymenttest.EventAuthorized, w.notices())[0]
				authorized.AmountMinor, authorized.Currency = test.amountMinor, test.currency
				w.drive(id, authorized)
				w.mismatchEnds(hold, id)
			})
		}
	}
}

func (w *world) mismatchEnds(hold ledger.HoldID, id ledger.ReservationID) {
	w.t.Helper()
	w.wantReservation(id, ledger.ReservationReview, ledger.ReasonMismatch)
	if n := w.metrics.of[telemetry.MetricReservationsReview]; n != 1 {
		w.t.Errorf("the alarm's metric counts %d", n)
	}
	if c, v := w.calls(paymenttest.MethodCapture), w.calls(paymenttest.MethodVoid); c != 0 || v != 1 {
		w.t.Errorf("%d captures, %d voids", c, v)
	}
	for _, b := range w.bank.Books() {
		if b.AuthorizedMinor != 0 || b.CapturedMinor != 0 {
			w.t.Errorf("the bank still has %+v", b)
		}
	}
	w.wantHold(hold, ledger.StatusHeld)
	w.clock.Set(w.storedHold(hold).ReleaseAt.Add(-time.Millisecond))
	w.sweep()
	w.wantHold(hold, ledger.StatusHeld)
	w.clock.Set(w.storedHold(hold).ReleaseAt)
	w.sweep()
	w.wantHold(hold, ledger.StatusExpired)
	w.wantReservation(id, ledger.ReservationReview, ledger.ReasonMismatch)
	w.wantCounters("A", "1/0/0/1")
	w.checkBooks()
}

// Case K5: a price change during payment. The quote is what is charged, and a new hold has
// the new price.
func TestCaseK5_APriceChangeDuringPayment(t *testing.T) {
	for _, pays := range []bool{true, false} {
		w := newWorld(t)
		w.slot("A", 1, nil)
		hold := w.hold("U-1", one("A"))
		id, secret := w.start("U-1", hold, "key")
		w.slot("A", 1, priced(1500, "USD"))
		w.slots = w.slots[:1]
		if pays {
			w.pay(secret)
			w.settle(id)
			w.wantReservation(id, ledger.ReservationCompleted, "")
			w.wantMoney(id, "USD", 1000, 0)
			w.checkBooks()
			continue
		}
		w.minutes(13)
		w.wantHold(hold, ledger.StatusExpired)
		_, err := w.commands.CreateHold(t.Context(), commands.Request{Actor: "owner", Owner: "U-1"}, commands.HoldWish{Quotes: []ledger.Quote{one("A")}}, renderNoHold)
		w.wantCode(err, ledger.CodePriceChanged)
		second := w.hold("U-1", ledger.Quote{Slot: "A", Quantity: 1, UnitAmount: 1500})
		prices := []int64{w.storedHold(hold).Total().AmountMinor, w.storedHold(second).Total().AmountMinor}
		if !slices.Equal(prices, []int64{1000, 1500}) {
			t.Errorf("the holds cost %v", prices)
		}
		events, err := w.store.SlotEvents(t.Context(), "A")
		w.must(err)
		if first, last := events[0].Slot.Terms.Price.AmountMinor, events[len(events)-1].Slot.Terms.Price.AmountMinor; first != 1000 || last != 1500 {
			t.Errorf("the ledger tells of the prices %d and %d", first, last)
		}
		w.checkBooks()
	}
}

// A refund that the provider refuses needs a person, with an alarm; once the person has
// given the money by hand, the next look ends it.
func TestRefundRefusedNeedsAPerson(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, nil)
	_, id := w.buy("U-1", one("A"))
	w.bank.SetDefaultScript(paymenttest.Script{RefundRefused: true})
	w.must(w.cancel(id))
	w.drive(id, nil)
	w.wantReservation(id, ledger.ReservationRefundRequired, ledger.ReasonOwnerCanceled)
	if n := w.metrics.of[telemetry.MetricReservationsRefundRequired]; n != 1 {
		t.Errorf("the alarm's metric counts %d", n)
	}
	w.minutes(90)
	w.wantReservation(id, ledger.ReservationRefundRequired, ledger.ReasonOwnerCanceled)
	w.wantMoney(id, "USD", 1000, 0)
	w.wantCounters("A", "1/0/0/1")

	w.refundByHand(id, 1000)
	w.minutes(int(saga.LookSeldom/time.Minute) + 1)
	w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled)
	w.wantMoney(id, "USD", 1000, 1000)
	if n := w.metrics.of[telemetry.MetricReservationsRefundRequired]; n != 1 {
		t.Errorf("the alarm's metric counts %d", n)
	}
	w.checkBooks()
}

// refundByHand is a person with the provider's own console. Its notice is lost.
func (w *world) refundByHand(id ledger.ReservationID, amountMinor int64) {
	w.t.Helper()
	w.bank.SetDefaultScript(paymenttest.Script{})
	current, _ := w.reservation(id).Current()
	_, err := w.bank.Refund(payment.Key(fmt.Sprintf("by hand %d", amountMinor)), current.Payment, amountMinor)
	w.must(err)
	w.notices()
}

// A refund may fail after the provider had taken it on: the money is owed again, with an
// alarm, until a person has given it. The news is a notice, or the last look at what has
// ended.
func TestRefundThatFailsLaterIsOwedAgain(t *testing.T) {
	for _, told := range []bool{true, false} {
		w := newWorld(t)
		w.slot("A", 1, nil)
		_, id := w.buy("U-1", one("A"))
		w.must(w.cancel(id))
		w.drive(id, nil)
		w.settle(id)
		w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled)
		_, err := w.bank.FailRefund(w.bank.Payments()[0].Refunds[0].ID)
		w.must(err)
		if told {
			w.settle(id)
		} else {
			w.notices()
			w.minutes(int(saga.LastLookAfter / time.Minute))
		}
		w.wantReservation(id, ledger.ReservationRefundRequired, ledger.ReasonOwnerCanceled)
		w.wantMoney(id, "USD", 1000, 0)
		if n := w.metrics.of[telemetry.MetricReservationsRefundRequired]; n != 1 {
			t.Errorf("told %t: the alarm's metric counts %d", told, n)
		}
		if owed := w.reservation(id).OwedMinor(); owed != 1000 {
			t.Errorf("told %t: %d is owed", told, owed)
		}
		w.refundByHand(id, 1000)
		w.minutes(int(saga.LookSeldom/time.Minute) + 1)
		w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled)
		w.wantMoney(id, "USD", 1000, 1000)
		w.checkBooks()
	}
}

// stay is a reservation of three nights at different prices.
func stay(t *testing.T, change func(*ledger.SlotDefinition)) (*world, ledger.HoldID, ledger.ReservationID) {
	w := newWorld(t)
	var lines []ledger.Quote
	for night, price := range []int64{80_00, 90_00, 120_00} {
		slot := ledger.SlotID(fmt.Sprintf("night-%d", night+1))
		w.slot(slot, 2, func(d *ledger.SlotDefinition) {
			d.Terms.Price.AmountMinor = price
			if change != nil {
				change(d)
			}
		})
		lines = append(lines, ledger.Quote{Slot: slot, Quantity: 1, UnitAmount: price})
	}
	hold, id := w.buy("U-1", lines...)
	w.wantMoney(id, "USD", 290_00, 0)
	return w, hold, id
}

func night(n int) ledger.ReturnLine {
	return ledger.ReturnLine{Slot: ledger.SlotID(fmt.Sprintf("night-%d", n)), Quantity: 1}
}

// P8: a stay over three nights is returned night by night and then as a whole. Each refund
// is of the night's own price, and together they are what was taken.
func TestP8_AStayIsReturnedInParts(t *testing.T) {
	w, hold, id := stay(t, nil)
	steps := []struct {
		lines    []ledger.ReturnLine
		status   ledger.ReservationStatus
		reason   ledger.Reason
		refunded int64
	}{
		{[]ledger.ReturnLine{night(2)}, ledger.ReservationCompleted, "", 90_00},
		{[]ledger.ReturnLine{night(1)}, ledger.ReservationCompleted, "", 170_00},
		{nil, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled, 290_00},
	}
	for _, step := range steps {
		w.must(w.cancel(id, step.lines...))
		w.drive(id, nil)
		w.settle(id)
		w.wantReservation(id, step.status, step.reason)
		w.wantMoney(id, "USD", 290_00, step.refunded)
		w.checkBooks()
	}
	w.wantHold(hold, ledger.StatusReturned)
	for n := 1; n <= 3; n++ {
		w.wantCounters(night(n).Slot, "2/0/0/2")
	}
	amounts := []int64{}
	for _, r := range w.bank.Payments()[0].Refunds {
		amounts = append(amounts, r.AmountMinor)
	}
	if !slices.Equal(amounts, []int64{90_00, 80_00, 120_00}) {
		t.Errorf("the bank gave back %v", amounts)
	}
	w.wantCode(w.cancel(id, night(3)), ledger.CodeReservationNotActive)
}

// P8: two nights that are returned before anything of it is refunded are two refunds, each
// under its own key.
func TestP8_TwoReturnsBeforeTheFirstRefund(t *testing.T) {
	w, _, id := stay(t, nil)
	w.must(w.cancel(id, night(2)))
	w.must(w.cancel(id, night(1)))
	w.wantCode(w.cancel(id, night(1)), ledger.CodeReturnOverSale)
	w.drive(id, nil)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantMoney(id, "USD", 290_00, 170_00)
	if n := len(w.bank.Payments()[0].Refunds); n != 2 {
		t.Errorf("the bank made %d refunds", n)
	}
	w.checkBooks()
}

// A part that the provider refuses to refund needs a person with an alarm, and holds up
// neither the sale nor what is owed besides.
func TestRefundOfAPartIsRefused(t *testing.T) {
	w, _, id := stay(t, nil)
	w.bank.SetDefaultScript(paymenttest.Script{RefundRefused: true})
	w.must(w.cancel(id, night(1)))
	w.drive(id, nil)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	if n := w.metrics.of[telemetry.MetricReservationsRefundRequired]; n != 1 {
		t.Errorf("the alarm's metric counts %d", n)
	}
	w.bank.SetDefaultScript(paymenttest.Script{})
	w.must(w.cancel(id))
	w.drive(id, nil)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationRefundRequired, ledger.ReasonOwnerCanceled)
	w.wantMoney(id, "USD", 290_00, 210_00)
	w.refundByHand(id, 80_00)
	w.minutes(int(saga.LookSeldom/time.Minute) + 1)
	w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled)
	w.wantMoney(id, "USD", 290_00, 290_00)
	w.checkBooks()
}

// What is returned of a slot that is not restocked is refunded and not sold again.
func TestReturnWithoutRestock(t *testing.T) {
	w, hold, id := stay(t, slotWith(func(p *ledger.Policy) { p.NoRestock = true }))
	w.must(w.cancel(id, night(3)))
	w.drive(id, nil)
	w.wantCounters("night-3", "1/0/0/1")
	w.wantCounters("night-1", "1/0/1/2")
	w.wantMoney(id, "USD", 290_00, 120_00)
	w.must(w.cancel(id))
	w.drive(id, nil)
	w.settle(id)
	w.wantHold(hold, ledger.StatusReturned)
	w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled)
	w.wantCounters("night-1", "1/0/0/1")
	w.wantMoney(id, "USD", 290_00, 290_00)
	w.checkBooks()
}

// A delivery that others make and that fails takes the sale back: units and money.
func TestFailedDeliveryTakesTheSaleBack(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, slotWith(func(p *ledger.Policy) { p.Payment.Delivery = ledger.DeliveryEvent }))
	hold := w.hold("U-1", one("A"))
	id, secret := w.start("U-1", hold, "key")
	w.pay(secret)
	w.settle(id)
	w.minutes(120)
	w.wantReservation(id, ledger.ReservationCaptured, "")
	for range 2 {
		_, err := w.commands.DeliverReservation(t.Context(), commands.Request{Actor: "shop"}, id, false, renderNothing)
		w.must(err)
		w.drive(id, nil)
		w.settle(id)
	}
	w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonDeliveryFailed)
	w.wantHold(hold, ledger.StatusReturned)
	w.wantCounters("A", "1/0/0/1")
	w.wantMoney(id, "USD", 1000, 1000)
	w.checkBooks()
}

// A capture that is refused takes the sale back, and the reserved money is let go.
func TestRefusedCaptureTakesTheSaleBack(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, nil)
	w.bank.SetDefaultScript(paymenttest.Script{CaptureRefused: true})
	hold := w.hold("U-1", one("A"))
	id, secret := w.start("U-1", hold, "key")
	w.pay(secret)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonAuthorizationLost)
	w.wantHold(hold, ledger.StatusReturned)
	w.wantCounters("A", "1/0/0/1")
	w.wantMoney(id, "USD", 0, 0)
	w.checkBooks()
}

// A refund that a person gives by hand is counted for the one that had failed, and not for
// another that is just owed and smaller.
func TestAHandMadeRefundIsOfWhatItWasGivenFor(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 3, nil)
	_, id := w.buy("U-1", ledger.Quote{Slot: "A", Quantity: 3, UnitAmount: 1000})
	w.bank.SetDefaultScript(paymenttest.Script{RefundRefused: true})
	w.must(w.cancel(id, ledger.ReturnLine{Slot: "A", Quantity: 2}))
	w.drive(id, nil)
	w.refundByHand(id, 2000)
	w.must(w.cancel(id))
	w.drive(id, nil)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled)
	w.wantMoney(id, "USD", 3000, 3000)
	for _, r := range w.reservation(id).Refunds {
		if r.State != ledger.RefundDone {
			t.Errorf("refund %+v", r)
		}
	}
	w.checkBooks()
}

// A provider that knows nothing of a payment which it had authorized: the sale waits for
// its money, one alarm calls a person, and the payment is asked about all the same.
func TestASaleWhosePaymentIsNotFoundCallsAPerson(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, nil)
	id, secret := w.start("U-1", w.hold("U-1", one("A")), "key")
	w.pay(secret)
	lost := false
	w.provider.Before = func(_ context.Context, c paymenttest.Call) error {
		if lost = lost || c.Method == paymenttest.MethodCapture; lost {
			return &payment.Error{Kind: payment.KindNotFound, Code: "resource_missing"}
		}
		return nil
	}
	w.drive(id, nil)
	w.minutes(3 * saga.TriesMax)
	w.wantReservation(id, ledger.ReservationConfirmed, "")
	if n := w.metrics.of[telemetry.MetricReservationsReview]; n != 1 {
		t.Errorf("the alarm's metric counts %d", n)
	}
	w.provider.Before = nil
	w.minutes(2)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantMoney(id, "USD", 1000, 0)
	w.checkBooks()
}
