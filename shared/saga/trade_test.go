package saga_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
)

const (
	sellersSwords ledger.SlotID = "balance:seller:sword"
	buyersSwords  ledger.SlotID = "balance:buyer:sword"
)

// market is a seller's balance of five swords, and the buyer's, which is empty. What is
// sold of the one is granted to the other, because the catalogue says so.
func market(t *testing.T) *world {
	w := newWorld(t)
	balance := func(d *ledger.SlotDefinition) {
		d.ResourceType, d.ResourceID, d.Terms.Price.AmountMinor = "item", "sword", 250
		d.Policy.GrantTo = "balance:{owner}:sword"
	}
	w.slot(sellersSwords, 5, balance)
	w.slot(buyersSwords, 0, balance)
	return w
}

func swords(of ledger.SlotID, quantity ledger.Units) ledger.Quote {
	return ledger.Quote{Slot: of, Quantity: quantity, UnitAmount: 250}
}

// A trade of game items grants once, however often each message comes, and a cancellation
// takes the grant back, once as well.
func TestTradeGrantsOnce(t *testing.T) {
	w := market(t)
	hold := w.hold("buyer", swords(sellersSwords, 3))
	w.wantCounters(sellersSwords, "2/3/0/5")
	id, secret := w.start("buyer", hold, "key")
	w.pay(secret)
	for range 3 { // what the first round's steps make the provider tell comes in the next
		told := w.notices()
		for range 3 {
			w.deliver(id, told...)
			w.drive(id, nil)
		}
	}
	w.minutes(30)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantCounters(sellersSwords, "2/0/3/5")
	w.wantCounters(buyersSwords, "3/0/0/3")
	w.wantMoney(id, "USD", 750, 0)
	w.checkBooks()

	w.must(w.cancel(id))
	w.must(w.cancel(id))
	w.drive(id, nil)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled)
	w.wantCounters(sellersSwords, "5/0/0/5")
	w.wantCounters(buyersSwords, "0/0/0/0")
	w.wantMoney(id, "USD", 750, 750)
	if grants := w.reservation(id).Grants; len(grants) != 0 {
		t.Errorf("the grants %+v are left", grants)
	}
	w.checkBooks()
}

// A part of a trade takes back a part of its grant.
func TestTradeIsTakenBackInParts(t *testing.T) {
	w := market(t)
	hold, id := w.buy("buyer", swords(sellersSwords, 3))
	w.must(w.cancel(id, ledger.ReturnLine{Slot: sellersSwords, Quantity: 1}))
	w.drive(id, nil)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantHold(hold, ledger.StatusConfirmed)
	w.wantCounters(sellersSwords, "3/0/2/5")
	w.wantCounters(buyersSwords, "2/0/0/2")
	w.wantMoney(id, "USD", 750, 250)
	w.checkBooks()
}

// What was granted and then sold on, or is only promised to somebody, is not there to be
// taken back: the cancellation changes nothing. When it is there again, it goes through.
func TestTradeOfUsedItemsStands(t *testing.T) {
	w := market(t)
	_, id := w.buy("buyer", swords(sellersSwords, 3))
	onward := w.hold("third", swords(buyersSwords, 1))
	before := w.reservation(id)
	w.wantCode(w.cancel(id), ledger.CodeAlreadyUsed)
	if after := w.reservation(id); after.Version != before.Version {
		t.Errorf("a refused cancellation made %+v of %+v", after, before)
	}
	w.wantCounters(sellersSwords, "2/0/3/5")
	w.wantCounters(buyersSwords, "2/1/0/3")
	w.must(w.cancel(id, ledger.ReturnLine{Slot: sellersSwords, Quantity: 2}))
	w.drive(id, nil)
	w.wantMoney(id, "USD", 750, 500)
	w.wantCode(w.cancel(id), ledger.CodeAlreadyUsed)

	w.must(w.cancelHold("third", onward))
	w.must(w.cancel(id))
	w.drive(id, nil)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled)
	w.wantCounters(buyersSwords, "0/0/0/0")
	w.wantMoney(id, "USD", 750, 750)
	w.checkBooks()
}

// A grant to a balance that nobody has defined can't be made: a person decides, and the
// money is not lost from sight.
func TestTradeWithoutABalanceGoesToReview(t *testing.T) {
	w := market(t)
	hold := w.hold("stranger", swords(sellersSwords, 1))
	id, secret := w.start("stranger", hold, "key")
	w.pay(secret)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationReview, ledger.ReasonDeliveryFailed)
	w.wantMoney(id, "USD", 250, 0)
	w.wantHold(hold, ledger.StatusConfirmed)
	w.checkBooks()
}

// free is a slot that costs nothing, such as points that a buyer spends.
func free(d *ledger.SlotDefinition) { d.Terms.Price.AmountMinor = 0 }

// A hold that costs nothing needs no provider: not to be bought, and not to be taken back.
func TestPointsNeedNoProvider(t *testing.T) {
	w := newWorld(t)
	w.slot("points:U-1", 100, free)
	hold := w.hold("U-1", ledger.Quote{Slot: "points:U-1", Quantity: 30})
	id, secret := w.start("U-1", hold, "key")
	if !secret.Empty() {
		t.Error("a payment of nothing has a secret")
	}
	w.drive(id, nil)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantHold(hold, ledger.StatusConfirmed)
	w.wantCounters("points:U-1", "70/0/30/100")
	w.must(w.cancel(id, ledger.ReturnLine{Slot: "points:U-1", Quantity: 10}))
	w.wantCounters("points:U-1", "80/0/20/100")
	w.must(w.cancel(id))
	w.drive(id, nil)
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonOwnerCanceled)
	w.wantHold(hold, ledger.StatusReturned)
	w.wantCounters("points:U-1", "100/0/0/100")
	if calls := w.provider.Calls(); len(calls) != 0 {
		t.Errorf("the provider was called: %+v", calls)
	}
	w.checkBooks()
}

// A hold that costs nothing and that its owner gives up before the saga has sold it stays
// given up.
func TestPointsThatAreGivenUpAreNotSold(t *testing.T) {
	w := newWorld(t)
	w.slot("points:U-1", 100, free)
	hold := w.hold("U-1", ledger.Quote{Slot: "points:U-1", Quantity: 30})
	id, _ := w.start("U-1", hold, "key")
	w.must(w.cancelHold("U-1", hold))
	w.minutes(1)
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonHoldCanceled)
	w.wantReacquired(id, hold, false)
	w.wantCounters("points:U-1", "100/0/0/100")
	w.checkBooks()
}

// A basket of a seat and points is paid at the seat's price and taken back as a whole.
func TestBasketOfSeatAndPoints(t *testing.T) {
	w := newWorld(t)
	w.slot("seat", 1, nil)
	w.slot("points:U-1", 100, free)
	_, id := w.buy("U-1", one("seat"), ledger.Quote{Slot: "points:U-1", Quantity: 30})
	w.wantMoney(id, "USD", 1000, 0)
	w.wantCounters("seat", "0/0/1/1")
	w.wantCounters("points:U-1", "70/0/30/100")
	w.must(w.cancel(id))
	w.drive(id, nil)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled)
	w.wantMoney(id, "USD", 1000, 1000)
	w.wantCounters("seat", "1/0/0/1")
	w.wantCounters("points:U-1", "100/0/0/100")
	w.checkBooks()
}

// A basket of slots with different policies lives by the strictest part of each.
func TestMixedBasketLivesByTheStrictestPolicy(t *testing.T) {
	w := newWorld(t)
	w.slot("patient", 1, slotWith(func(p *ledger.Policy) {
		p.HoldFor, p.HoldForMax, p.GraceFor = time.Hour, time.Hour, 5*time.Minute
		p.Payment = ledger.PaymentTerms{
			OnDecline: ledger.OnDeclineKeep, LatePayment: ledger.LatePaymentReacquire, LateByProvider: true,
			UnknownFor: time.Hour, Delivery: ledger.DeliveryEvent,
		}
	}))
	w.slot("strict", 1, slotWith(func(p *ledger.Policy) {
		p.HoldFor, p.GraceFor = 5*time.Minute, 0
		p.Payment = ledger.PaymentTerms{
			OnDecline: ledger.OnDeclineRelease, LatePayment: ledger.LatePaymentRefund,
			UnknownFor: time.Minute, Delivery: ledger.DeliveryNone,
		}
	}))
	orders := [][]ledger.Quote{{one("patient"), one("strict")}, {one("strict"), one("patient")}}
	for _, lines := range orders {
		hold := w.hold("U-1", lines...)
		id, secret := w.start("U-1", hold, ledger.IdempotencyKey("declined-"+string(hold)))
		if h := w.storedHold(hold); !h.ReleaseAt.Equal(h.CreatedAt.Add(5 * time.Minute)) {
			t.Errorf("the hold lives until %s", h.ReleaseAt)
		}
		w.decline(secret)
		w.settle(id)
		w.wantHold(hold, ledger.StatusCanceled) // released by the strict slot's policy

		late := w.hold("U-1", slices.Clone(lines)...)
		id, secret = w.start("U-1", late, ledger.IdempotencyKey("late-"+string(late)))
		w.pay(secret)
		w.clock.Set(w.storedHold(late).ReleaseAt)
		w.settle(id)
		w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonLate)

		unknown := w.hold("U-1", slices.Clone(lines)...)
		id, _ = w.start("U-1", unknown, ledger.IdempotencyKey("unknown-"+string(unknown)))
		w.provider.Before = func(_ context.Context, _ paymenttest.Call) error { return errNoAnswer }
		w.clock.Set(w.storedHold(unknown).ReleaseAt.Add(time.Minute - time.Second))
		_, err := w.commands.ExpireHold(t.Context(), unknown, "sweep")
		w.wantCode(err, ledger.CodeHoldNotDue)
		w.clock.Set(w.storedHold(unknown).ReleaseAt.Add(time.Minute))
		w.sweep()
		w.wantHold(unknown, ledger.StatusExpired)
		w.provider.Before = nil
		w.minutes(2)
		w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonPaymentUnknown)
		w.notices()
	}
	sold := w.hold("U-1", one("patient"), one("strict"))
	id, secret := w.start("U-1", sold, "sold")
	w.pay(secret)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationCaptured, "") // one slot is delivered by others
	w.checkBooks()
}
