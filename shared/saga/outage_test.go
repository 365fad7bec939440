package saga_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
	"holdfast/shared/system/systemtest"
)

const (
	outageReservations = 200 // of case M7
	outageFor          = 2 * time.Hour
	// settledWithin is how soon after the provider is back all is as if it had never gone.
	settledWithin = 5 * time.Minute
)

// outage is many reservations whose provider goes away. Each third buyer has paid just
// before, each third was declined, and each third does nothing.
type outage struct {
	*world
	away bool
	ids  []ledger.ReservationID
}

// sideBySide is the clock of drivers that work at the same time: the pauses of one are not
// added to those of another.
type sideBySide struct{ *systemtest.Clock }

// Sleep takes no time of the others.
func (sideBySide) Sleep(ctx context.Context, _ time.Duration) error { return ctx.Err() }

func newOutage(t *testing.T, holdFor time.Duration) *outage {
	t.Helper()
	o := &outage{world: newWorldOn(t, memory.New())}
	o.driver = saga.NewDriver(saga.Ports{
		Store: o.store, Provider: o.provider, Clock: sideBySide{o.clock}, Random: systemtest.NewRandom(2),
		Metrics: o.metrics, Dwells: &o.dwells, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	o.slot("A", outageReservations, func(d *ledger.SlotDefinition) {
		d.Policy.HoldFor, d.Policy.HoldForMax = holdFor, 4*time.Hour
	})
	o.provider.Before = func(context.Context, paymenttest.Call) error {
		if o.away {
			return errRequestLost
		}
		return nil
	}
	for i := range outageReservations {
		owner := ledger.OwnerID(fmt.Sprintf("U-%d", i))
		id, secret := o.start(owner, o.hold(owner, one("A")), "key")
		o.ids = append(o.ids, id)
		switch i % 3 {
		case 0:
			_, err := o.bank.Pay(secret.Reveal())
			o.must(err)
		case 1:
			_, err := o.bank.Decline(secret.Reveal())
			o.must(err)
		}
	}
	o.away = true
	for _, n := range o.notices() { // the news comes while nobody can be asked
		o.drive(n.Reservation, n)
	}
	return o
}

// each gives every reservation with its hold and its payment to check.
func (o *outage) each(check func(i int, r ledger.Reservation, h ledger.Hold, p paymenttest.Payment)) {
	o.t.Helper()
	payments := map[ledger.ReservationID]paymenttest.Payment{}
	for _, p := range o.bank.Payments() {
		payments[p.Reservation] = p
	}
	for i, id := range o.ids {
		check(i, o.reservation(id), o.storedHold(o.holds[i]), payments[id])
	}
}

// end is what the buyer of that number ends with, if the hold is still good when the
// provider is back.
func outageEnd(i int) (ledger.ReservationStatus, ledger.Status, payment.Status) {
	switch i % 3 {
	case 0:
		return ledger.ReservationCompleted, ledger.StatusConfirmed, payment.StatusCaptured
	case 1:
		return ledger.ReservationCanceled, ledger.StatusCanceled, payment.StatusVoided
	default:
		return ledger.ReservationPaymentPending, ledger.StatusHeld, payment.StatusPending
	}
}

// Case M7: during a provider outage all open payments landed with the operators.
func TestCaseM7_TicksAndSweepsDecideNothingDuringAnOutage(t *testing.T) {
	o := newOutage(t, 3*time.Hour)
	for passed := time.Minute; passed <= outageFor; passed += time.Minute {
		o.clock.Advance(time.Minute)
		o.sweep()
		o.each(func(i int, r ledger.Reservation, h ledger.Hold, _ paymenttest.Payment) {
			if r.Status != ledger.ReservationPaymentPending || h.Status != ledger.StatusHeld || r.Tries != 0 || len(r.Refunds) > 0 {
				t.Fatalf("after %s reservation %d is %s with %d tries, its hold %s", passed, i, r.Status, r.Tries, h.Status)
			}
		})
	}
	o.away = false
	for passed := time.Minute; passed <= settledWithin; passed += time.Minute {
		o.clock.Advance(time.Minute)
		o.sweep()
	}
	o.each(func(i int, r ledger.Reservation, h ledger.Hold, p paymenttest.Payment) {
		if status, held, paid := outageEnd(i); r.Status != status || h.Status != held || p.Status != paid {
			t.Errorf("reservation %d is %s, its hold %s, its payment %s; want %s, %s, %s", i, r.Status, h.Status, p.Status, status, held, paid)
		}
	})
	o.auditAll()
}

// A hold that is over during the outage is kept for unknown_max and no longer. Then it is
// released with the compensation recorded, and the provider is asked until it answers
// (case M3).
func TestCaseM3_AHoldThatEndsDuringAnOutageIsReleasedAndItsMoneyOwed(t *testing.T) {
	o := newOutage(t, 10*time.Minute)
	release := o.storedHold(o.holds[0]).ReleaseAt
	for passed := time.Minute; passed <= outageFor; passed += time.Minute {
		o.clock.Advance(time.Minute)
		o.sweep()
		o.each(func(i int, r ledger.Reservation, h ledger.Hold, _ paymenttest.Payment) {
			status, held := ledger.ReservationPaymentPending, ledger.StatusHeld
			if !h.ReleaseAt.Add(ledger.UnknownForDefault).After(o.clock.Now()) {
				status, held = ledger.ReservationCompensating, ledger.StatusExpired
			}
			if r.Status != status || h.Status != held || r.Status == ledger.ReservationCompensating && r.LookAt.IsZero() {
				t.Fatalf("after %s reservation %d is %s, its hold %s, looked at %s; want %s, %s", passed, i, r.Status, h.Status, r.LookAt, status, held)
			}
		})
	}
	if c := o.counters("A"); c.Available != outageReservations || c.Held != 0 {
		t.Errorf("when all holds are over, at %s, the slot has %+v", release, c)
	}
	o.away = false
	for passed := time.Minute; passed <= settledWithin; passed += time.Minute {
		o.clock.Advance(time.Minute)
		o.sweep()
	}
	o.each(func(i int, r ledger.Reservation, h ledger.Hold, p paymenttest.Payment) {
		status, paid := ledger.ReservationCanceled, payment.StatusVoided
		if i%3 == 0 { // the units are free, so the money that was there buys them
			status, paid = ledger.ReservationCompleted, payment.StatusCaptured
		}
		if r.Status != status || h.Status != ledger.StatusExpired || p.Status != paid {
			t.Errorf("reservation %d is %s, its hold %s, its payment %s; want %s and %s", i, r.Status, h.Status, p.Status, status, paid)
		}
	})
	o.auditAll()
}

// One "not found" does not make a payment failed, and a few in a row do not either (case
// M7). A look that is refused says as little, and must not be repeated without a pause.
func TestCaseM7_NotFoundFailsNoPayment(t *testing.T) {
	for _, kind := range []payment.ErrorKind{payment.KindNotFound, payment.KindRefused} {
		for _, answers := range []int{1, 10} { // repeated within one drive, and over several
			t.Run(fmt.Sprintf("%s/%d", kind, answers), func(t *testing.T) { looksTellNothing(t, kind, answers) })
		}
	}
}

// looksTellNothing lets that many looks at a paid payment be answered by an error of the kind.
func looksTellNothing(t *testing.T, kind payment.ErrorKind, answers int) {
	w := newWorld(t)
	w.slot("A", 1, nil)
	hold := w.hold("U-1", one("A"))
	id, secret := w.start("U-1", hold, "key")
	w.pay(secret)
	left := answers
	w.provider.Before = func(_ context.Context, c paymenttest.Call) error {
		if c.Method == paymenttest.MethodLookUp && left > 0 {
			left--
			return &payment.Error{Kind: kind, Cause: errAnswerLost}
		}
		return nil
	}
	w.drive(id, nil)
	if looks := answers - left; looks > 1+saga.RetriesMax {
		t.Errorf("one drive has looked %d times in vain", looks)
	}
	if r := w.reservation(id); left > 0 && (r.Status != ledger.ReservationPaymentPending || r.Tries != 1) {
		t.Errorf("after some of %d answers it is %s with %d tries", answers, r.Status, r.Tries)
	}
	for range 5 {
		w.clock.Advance(time.Minute)
		w.sweep()
	}
	if r := w.reservation(id); r.Status != ledger.ReservationCompleted || left != 0 {
		t.Errorf("after %d answers it is %+v", answers-left, r)
	}
	w.checkBooks()
}

// auditAll audits the books of all reservations and the bank's own.
func (o *outage) auditAll() {
	o.t.Helper()
	var holds []ledger.HoldID
	var kept, sold int64
	for _, id := range o.holds {
		holds = append(holds, id, ledger.ReacquiredID(o.storedHold(id)))
	}
	for _, b := range o.bank.Books() {
		kept += b.CapturedMinor - b.RefundedMinor
	}
	for _, id := range o.ids {
		if o.reservation(id).Status == ledger.ReservationCompleted {
			sold += 1000
		}
	}
	if kept != sold {
		o.t.Errorf("P8: the bank keeps %d, and %d is sold", kept, sold)
	}
	ledgertest.CheckBooks(o.t, o.store, o.slots, holds, o.ids...)
}
