package saga_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/system"
)

// roundsOfC3 is how often the paths of case C3 meet, as the case says.
const roundsOfC3 = 300

// tryStart starts a payment that may be refused.
func (w *world) tryStart(owner ledger.OwnerID, hold ledger.HoldID, key ledger.IdempotencyKey) error {
	_, _, err := w.payments.Start(w.t.Context(), commands.Request{Actor: "owner", Owner: owner, Key: key, Fingerprint: "start"}, hold, renderNothing)
	return err
}

func (w *world) decline(secret payment.Secret) {
	w.t.Helper()
	_, err := w.bank.Decline(secret.Reveal())
	w.must(err)
}

// Case B6: a declined card keeps the units for another try, where the policy says so.
func TestCaseB6_AKeptHoldIsPaidBySecondAttempt(t *testing.T) {
	w, hold, id, secret := keptHold(t)
	w.at(3 * time.Minute)
	w.decline(secret)
	w.settle(id)
	for w.clock.Now().Before(tenOClock.Add(10 * time.Minute)) {
		w.minutes(1)
		w.wantHold(hold, ledger.StatusHeld)
		w.wantReservation(id, ledger.ReservationPaymentPending, "")
	}
	_, secret = w.start("U-1", hold, "second")
	w.pay(secret)
	w.settle(id)
	w.wantHold(hold, ledger.StatusConfirmed)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantCounters("A", "0/0/1/1")
	w.wantMoney(id, "USD", 1000, 0)
	w.checkBooks()
}

// Case B6: the same secret may be tried again as well, without a new attempt.
func TestCaseB6_ADeclinedPaymentIsPaidWithTheSameSecret(t *testing.T) {
	w, hold, id, secret := keptHold(t)
	w.decline(secret)
	w.settle(id)
	w.at(10 * time.Minute)
	w.pay(secret)
	w.settle(id)
	w.wantHold(hold, ledger.StatusConfirmed)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.checkBooks()
}

// Case B6: without a second attempt the hold is EXPIRED by minute 17, with one release.
func TestCaseB6_AKeptHoldEndsWithoutASecondAttempt(t *testing.T) {
	w, hold, id, secret := keptHold(t)
	w.at(3 * time.Minute)
	w.decline(secret)
	w.settle(id)
	w.minutes(13)
	w.wantHold(hold, ledger.StatusHeld)
	w.minutes(1)
	w.wantHold(hold, ledger.StatusExpired)
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonExpired)
	w.wantCounters("A", "1/0/0/1")
	if n := w.releases(hold); n != 1 {
		t.Errorf("%d releases", n)
	}
	w.checkBooks()
}

// Case B6: with the policy to release, the first decline frees the unit at once, and a
// second attempt is refused.
func TestCaseB6_ADeclineReleases(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, slotWith(fifteenMinutes))
	hold := w.hold("U-1", one("A"))
	id, secret := w.start("U-1", hold, "first")
	w.at(3 * time.Minute)
	w.decline(secret)
	w.settle(id)
	w.wantHold(hold, ledger.StatusCanceled)
	w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonDeclined)
	w.wantCounters("A", "1/0/0/1")
	w.wantCode(w.tryStart("U-1", hold, "second"), ledger.CodeHoldNotActive)
	if _, err := w.bank.Pay(secret.Reveal()); err == nil {
		t.Error("the buyer can still pay for what was released")
	}
	if n := w.releases(hold); n != 1 {
		t.Errorf("%d releases", n)
	}
	w.checkBooks()
}

// Case B11: a failed payment returns every unit of every item, on all shards.
func TestCaseB11_EveryUnitComesBack(t *testing.T) {
	for _, shards := range []int{1, 4} {
		w := newWorld(t)
		spread := func(d *ledger.SlotDefinition) { d.Terms.Shards = shards; fifteenMinutes(&d.Policy) }
		w.slot("A", 10, spread)
		w.slot("B", 10, spread)
		hold := w.hold("U-1", ledger.Quote{Slot: "A", Quantity: 4, UnitAmount: 1000}, ledger.Quote{Slot: "B", Quantity: 2, UnitAmount: 1000})
		w.wantCounters("A", "6/4/0/10")
		w.wantCounters("B", "8/2/0/10")
		id, secret := w.start("U-1", hold, "key")
		w.clock.Set(w.storedHold(hold).ReleaseAt)
		w.decline(secret)
		w.settle(id)
		w.sweep()
		w.wantHold(hold, ledger.StatusExpired)
		w.wantReservation(id, ledger.ReservationCanceled, ledger.ReasonExpired)
		w.wantCounters("A", "10/0/0/10")
		w.wantCounters("B", "10/0/0/10")
		w.checkBooks()
	}
}

// Case B12, first part: the units that a buyer holds are sold out for the buyer as well,
// with a payment open or not, and asking again changes nothing.
func TestCaseB12_OwnUnitsAreNotSoldAgain(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, slotWith(fifteenMinutes))
	hold := w.hold("U", one("A"))
	w.start("U", hold, "key")
	w.at(5 * time.Minute)
	for _, owner := range []ledger.OwnerID{"U", "V"} {
		_, err := w.commands.CreateHold(t.Context(), commands.Request{Actor: "owner", Owner: owner, Key: "new", Fingerprint: "new"}, commands.HoldWish{Quotes: []ledger.Quote{one("A")}},
			renderNoHold)
		w.wantCode(err, ledger.CodeInsufficientStock)
	}
	w.wantCounters("A", "0/1/0/1")
	w.checkBooks()
}

// Case C1: a refund followed by a cancel must not give the stock back twice.
func TestCaseC1_AReturnedHoldIsNotReleasedAgain(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 100, nil)
	hold, id := w.buy("U-1", one("A"))
	w.wantCounters("A", "99/0/1/100")
	w.must(w.cancel(id))
	w.wantCode(w.cancelHold("U-1", hold), ledger.CodeHoldNotActive)
	w.settle(id)
	w.drive(id, nil)
	w.wantHold(hold, ledger.StatusReturned)
	w.wantReservation(id, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled)
	w.wantCounters("A", "100/0/0/100")
	w.wantMoney(id, "USD", 1000, 1000)
	w.checkBooks()
}

// Case C1: all 24 orders of cancel, expiry, refund and payment-failed, each sent twice to a
// fresh HELD hold of 1, end at 100/0/0/100 with one release. An attempt is open, or the
// provider has voided it so that a cancel can win.
func TestCaseC1_AllOrdersOfReleasingSignals(t *testing.T) {
	for _, closed := range []bool{false, true} {
		for _, order := range permutations(4) {
			t.Run(fmt.Sprintf("attempt closed %t/%v", closed, order), func(t *testing.T) {
				w := newWorld(t)
				w.slot("A", 100, slotWith(func(p *ledger.Policy) {
					fifteenMinutes(p)
					p.Payment.OnDecline = ledger.OnDeclineKeep
				}))
				hold := w.hold("U-1", one("A"))
				id, secret := w.start("U-1", hold, "key")
				w.decline(secret)
				failed := of(paymenttest.EventDeclined, w.notices())[0]
				if closed {
					_, err := w.bank.Void("by hand", w.bank.Payments()[0].ID)
					w.must(err)
					w.settle(id)
				}
				signals := []func(){
					func() { w.cancelDuring(hold) },
					func() { w.clock.Set(w.storedHold(hold).ReleaseAt); w.sweep() },
					func() { w.drive(id, refundNotice(id, w.bank.Payments()[0].ID)) },
					func() { w.drive(id, failed) },
				}
				for _, signal := range order {
					signals[signal]()
					signals[signal]()
				}
				w.settle(id)
				w.sweep()
				if n := w.releases(hold); n != 1 {
					t.Errorf("%d releases", n)
				}
				if r := w.reservation(id); r.Status != ledger.ReservationCanceled {
					t.Errorf("the reservation is %s", r.Status)
				}
				w.wantCounters("A", "100/0/0/100")
				w.wantMoney(id, "USD", 0, 0)
				w.checkBooks()
			})
		}
	}
}

// cancelDuring cancels the hold and requires the answer to be the one for how it stood.
func (w *world) cancelDuring(hold ledger.HoldID) {
	w.t.Helper()
	before := w.storedHold(hold)
	err := w.cancelHold("U-1", hold)
	switch {
	case before.Status != ledger.StatusHeld:
		w.wantCode(err, ledger.CodeHoldNotActive)
	case before.AttemptOpen != 0:
		w.wantCode(err, ledger.CodePaymentInProgress)
	default:
		w.must(err)
		w.wantHold(hold, ledger.StatusCanceled)
	}
}

// refundNotice tells of a refund that nobody made.
func refundNotice(id ledger.ReservationID, p ledger.PaymentID) *payment.Notice {
	return &payment.Notice{
		ID: "evt_refund", Type: paymenttest.EventRefunded, Payment: p, Reservation: id, Attempt: 1,
		OccurredAt: tenOClock, AmountMinor: 1000, Currency: "USD", Status: payment.StatusCaptured,
	}
}

// Case C3: the cancel call, the payment-failed webhook and the sweep hit a hold of 3 at the
// instant at which it is over. Goroutines are real here: the order is the machine's.
func TestCaseC3_ReleasingPathsMeetInMemory(t *testing.T) {
	releasingPathsMeet(t, newWorldOn(t, memory.New()), roundsOfC3)
}

// Case C3 on the engine, whose conditions decide in production.
func TestCaseC3_ReleasingPathsMeetOnTheTable(t *testing.T) {
	t.Parallel()
	rounds := roundsOfC3
	if testing.Short() {
		rounds = 20
	}
	client, table := dynamotest.NewTable(t)
	// The store's own pauses must not move the clock of the world.
	releasingPathsMeet(t, newWorldOn(t, dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})), rounds)
}

func releasingPathsMeet(t *testing.T, w *world, rounds int) {
	canceled, refused := 0, map[ledger.Code]int{}
	for round := range rounds {
		slot := ledger.SlotID(fmt.Sprintf("A-%d", round))
		w.slot(slot, 10, slotWith(func(p *ledger.Policy) {
			fifteenMinutes(p)
			p.Payment.OnDecline = ledger.OnDeclineKeep
		}))
		hold := w.hold("U-1", ledger.Quote{Slot: slot, Quantity: 3, UnitAmount: 1000})
		id, secret := w.start("U-1", hold, ledger.IdempotencyKey(slot))
		w.decline(secret)
		failed := of(paymenttest.EventDeclined, w.notices())[0]
		if round%2 == 1 { // the provider has voided the attempt, and a cancel can win
			_, err := w.bank.Void(payment.Key(slot), w.reservation(id).Attempts[0].Payment)
			w.must(err)
			w.settle(id)
		}
		w.clock.Set(w.storedHold(hold).ReleaseAt)

		var cancelErr, webhookErr, sweepErr error
		paths := []func(){
			func() { cancelErr = w.cancelHold("U-1", hold) },
			func() { webhookErr = w.driver.Drive(t.Context(), id, failed, "webhook") },
			func() {
				if _, err := w.commands.ExpireHold(t.Context(), hold, "sweep"); err != nil && ledger.CodeOf(err) != ledger.CodeHoldNotDue {
					sweepErr = err
					return
				}
				sweepErr = w.driver.Drive(t.Context(), id, nil, "sweep")
			},
		}
		// The machine tends to run first what was started last, so each is it in turn.
		orders := permutations(len(paths))
		var done sync.WaitGroup
		for _, path := range orders[round/2%len(orders)] {
			done.Go(paths[path])
		}
		done.Wait()
		w.must(webhookErr)
		w.must(sweepErr)
		w.drive(id, nil) // what the outbox wakes, should the cancel have come last

		want := ledger.StatusExpired
		switch code := ledger.CodeOf(cancelErr); code {
		case "":
			canceled++
			want = ledger.StatusCanceled
		case ledger.CodeHoldNotActive, ledger.CodePaymentInProgress:
			refused[code]++
		default:
			t.Fatalf("round %d: the cancel answers %v", round, cancelErr)
		}
		w.wantHold(hold, want)
		if r := w.reservation(id); r.Status != ledger.ReservationCanceled {
			t.Errorf("round %d: the reservation is %+v", round, r)
		}
		if n := w.releases(hold); n != 1 {
			t.Errorf("round %d: %d releases", round, n)
		}
		w.wantCounters(slot, "10/0/0/10")
	}
	if rounds == roundsOfC3 && (canceled == 0 || refused[ledger.CodeHoldNotActive] == 0 || refused[ledger.CodePaymentInProgress] == 0) {
		t.Errorf("the paths never met in some way: the cancel won %d times and was refused %v", canceled, refused)
	}
	w.checkBooks()
}
