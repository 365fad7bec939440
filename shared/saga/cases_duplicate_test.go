package saga_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
)

// pausing is a store that steps aside before one commit, as a process does that is
// paused there.
type pausing struct {
	saga.Store
	before func(ledger.Change)
}

func (s *pausing) Commit(ctx context.Context, c ledger.Change) error {
	if s.before != nil {
		s.before(c)
	}
	return s.Store.Commit(ctx, c)
}

// Case D4: a stale write must not undo a payment that was booked. One driver is paused
// right before its confirming write, another one does all of it, and the first resumes.
func TestCaseD4_AStaleConfirmFails(t *testing.T) {
	store := &pausing{Store: memory.New()}
	w := newWorldOn(t, store)
	w.slot("A", 1, nil)
	hold := w.hold("U-1", one("A"))
	id, secret := w.start("U-1", hold, "key")
	w.pay(secret)
	told := of(paymenttest.EventAuthorized, w.notices())
	paused := 0
	store.before = func(c ledger.Change) {
		if len(c.Holds) == 0 || c.Holds[0].Next.Status != ledger.StatusConfirmed || paused > 0 {
			return
		}
		paused++
		w.deliver(id, told...)
		w.wantReservation(id, ledger.ReservationCompleted, "")
	}
	w.drive(id, nil)
	if paused != 1 {
		t.Fatalf("paused %d times", paused)
	}
	before := w.reservation(id)
	w.clock.Advance(time.Hour)
	w.sweep()
	if after := w.reservation(id); after.Version != before.Version {
		t.Errorf("the sweep changed %+v to %+v", before, after)
	}
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantHold(hold, ledger.StatusConfirmed)
	w.wantCounters("A", "0/0/1/1")
	events, err := store.HoldEvents(t.Context(), hold)
	w.must(err)
	confirmed := slices.DeleteFunc(events, func(e ledger.Event) bool { return e.Type != ledger.EventHoldConfirmed })
	if len(confirmed) != 1 || w.bank.Book(id, "USD").Captures != 1 {
		t.Errorf("%d confirms, %d captures", len(confirmed), w.bank.Book(id, "USD").Captures)
	}
	w.checkBooks()
}

// keptHold makes a hold whose policy keeps it after a decline, with one unit in all, and
// starts its first attempt.
func keptHold(t *testing.T) (*world, ledger.HoldID, ledger.ReservationID, payment.Secret) {
	w := newWorld(t)
	w.slot("A", 1, slotWith(func(p *ledger.Policy) {
		fifteenMinutes(p)
		p.GraceFor, p.Payment.OnDecline = 2*time.Minute, ledger.OnDeclineKeep
	}))
	hold := w.hold("U-1", one("A"))
	id, secret := w.start("U-1", hold, "first")
	return w, hold, id, secret
}

// Case D5: a late event of an unused payment attempt must not fail a paid order.
func TestCaseD5_LateEventsOfAnUnusedAttempt(t *testing.T) {
	w, hold, id, secret := keptHold(t)
	_, err := w.bank.Decline(secret.Reveal())
	w.must(err)
	failed := of(paymenttest.EventDeclined, w.notices())
	_, secret = w.start("U-1", hold, "second")
	expired := of(paymenttest.EventCanceled, w.notices())
	w.pay(secret)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	counters := w.counters("A")

	w.clock.Advance(24 * time.Hour)
	if len(expired) != 1 || len(failed) != 1 {
		t.Fatalf("attempt 1 has the notices %v and %v", expired, failed)
	}
	w.deliver(id, append(expired, failed...)...)
	w.sweep()
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantHold(hold, ledger.StatusConfirmed)
	w.wantMoney(id, "USD", 1000, 0)
	if got := w.counters("A"); got != counters {
		t.Errorf("the counters moved from %+v to %+v", counters, got)
	}
	w.checkBooks()
}

// Case D6: a late failure of the first attempt must not disturb the second one, whether
// the first was declined or never begun.
func TestCaseD6_LateFailureOfTheFirstAttempt(t *testing.T) {
	t.Run("declined", func(t *testing.T) {
		w, hold, id, secret := keptHold(t)
		_, err := w.bank.Decline(secret.Reveal())
		w.must(err)
		failed := of(paymenttest.EventDeclined, w.notices())
		_, secret = w.start("U-1", hold, "second")
		w.secondAttemptIsUndisturbed(hold, id, secret, failed)
	})
	t.Run("refused at once", func(t *testing.T) {
		w := newWorld(t)
		w.slot("A", 1, slotWith(func(p *ledger.Policy) { p.Payment.OnDecline = ledger.OnDeclineKeep }))
		w.bank.SetDefaultScript(paymenttest.Script{CreateRefused: true})
		hold := w.hold("U-1", one("A"))
		id, secret := w.start("U-1", hold, "first")
		if !secret.Empty() {
			t.Error("a payment that was refused has a secret")
		}
		w.drive(id, nil)
		w.wantReservation(id, ledger.ReservationPaymentPending, "")
		w.bank.SetDefaultScript(paymenttest.Script{})
		_, secret = w.start("U-1", hold, "second")
		late := &payment.Notice{
			ID: "evt_late", Type: paymenttest.EventDeclined, Payment: "pi_never", Reservation: id, Attempt: 1,
			OccurredAt: w.clock.Now(), AmountMinor: 1000, Currency: "USD", Status: payment.StatusDeclined,
		}
		w.secondAttemptIsUndisturbed(hold, id, secret, []*payment.Notice{late})
	})
}

func (w *world) secondAttemptIsUndisturbed(hold ledger.HoldID, id ledger.ReservationID, secret payment.Secret, failed []*payment.Notice) {
	w.t.Helper()
	before := w.reservation(id)
	w.deliver(id, failed...)
	w.wantReservation(id, ledger.ReservationPaymentPending, "")
	after := w.reservation(id)
	if current, _ := after.Current(); current.Number != 2 || current.State != ledger.AttemptOpen || w.storedHold(hold).AttemptOpen != 2 {
		w.t.Errorf("the second attempt is %+v, the hold %+v", current, w.storedHold(hold))
	}
	if after.Version != before.Version+1 || w.steps(id)[ledger.EventReservationPaymentNoticed] == 0 {
		w.t.Errorf("the late failure made %d steps: %v", after.Version-before.Version, w.steps(id))
	}
	w.pay(secret)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantHold(hold, ledger.StatusConfirmed)
	if b := w.bank.Book(id, "USD"); b.Captures != 1 || b.CapturedMinor != 1000 {
		w.t.Errorf("the bank's book is %+v", b)
	}
	w.checkBooks()
}

// Case D8: an older event must not overwrite a newer one.
func TestCaseD8_AnOlderEventComesLater(t *testing.T) {
	notice := func(id ledger.ReservationID, p ledger.PaymentID, name string, status payment.Status, minute int) *payment.Notice {
		return &payment.Notice{
			ID: ledger.ProviderEventID("evt_" + name), Type: name, Payment: p, Reservation: id, Attempt: 1,
			OccurredAt: tenOClock.Add(time.Duration(minute) * time.Minute), AmountMinor: 1000, Currency: "USD", Status: status,
		}
	}
	orders := [][]string{
		{"captured", "pending", "captured", "authorized"},
		{"captured", "authorized_at_the_same_time"},
		{"authorized_at_the_same_time", "captured"},
	}
	for _, order := range orders {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			w := newWorld(t)
			w.slot("A", 1, nil)
			hold := w.hold("U-1", one("A"))
			id, secret := w.start("U-1", hold, "key")
			w.at(4 * time.Minute)
			w.pay(secret)
			w.notices()
			w.at(5 * time.Minute)
			// The capture was asked for and carried out, and then nothing more is heard.
			w.provider.Before = w.unreachableOnceConfirmed(id)
			w.provider.After = func(_ context.Context, c paymenttest.Call) error {
				if c.Method == paymenttest.MethodCapture {
					return errNoAnswer
				}
				return nil
			}
			w.drive(id, nil)
			w.wantReservation(id, ledger.ReservationConfirmed, "")
			w.provider.Before, w.provider.After = nil, nil

			p := w.bank.Payments()[0].ID
			all := map[string]*payment.Notice{
				"captured":                    notice(id, p, "captured", payment.StatusCaptured, 5),
				"pending":                     notice(id, p, "pending", payment.StatusPending, 2),
				"authorized":                  notice(id, p, "authorized", payment.StatusAuthorized, 4),
				"authorized_at_the_same_time": notice(id, p, "authorized_at_the_same_time", payment.StatusAuthorized, 5),
			}
			for _, name := range order {
				w.drive(id, all[name])
				w.wantReservation(id, ledger.ReservationCompleted, "")
			}
			w.wantPath(id, ledger.ReservationPaymentPending, ledger.ReservationAuthorized,
				ledger.ReservationConfirmed, ledger.ReservationCaptured, ledger.ReservationCompleted)
			w.wantHold(hold, ledger.StatusConfirmed)
			if b := w.bank.Book(id, "USD"); b.Captures != 1 || b.CapturedMinor != 1000 {
				t.Errorf("the bank's book is %+v", b)
			}
			w.checkBooks()
		})
	}
}

// unreachableOnceConfirmed is a provider that carries out one capture and is then away.
func (w *world) unreachableOnceConfirmed(id ledger.ReservationID) func(context.Context, paymenttest.Call) error {
	captured := false
	return func(_ context.Context, c paymenttest.Call) error {
		if captured {
			return errNoAnswer
		}
		captured = c.Method == paymenttest.MethodCapture && w.reservation(id).Status == ledger.ReservationConfirmed
		return nil
	}
}

// Case D9: the payment signal is faster than our own save. The buyer can't be that fast,
// but a payment that needs no buyer can.
func TestCaseD9_TheWebhookComesBeforeTheAnswer(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, nil)
	hold := w.hold("U-1", one("A"))
	w.provider.After = func(_ context.Context, c paymenttest.Call) error {
		w.provider.After = nil // the call of the webhook's drive is answered at once
		p := w.bank.Payments()[0]
		w.pay(p.Secret)
		authorized := of(paymenttest.EventAuthorized, w.notices())
		w.deliver(c.Creation.Reservation, authorized...)
		w.wantReservation(c.Creation.Reservation, ledger.ReservationCompleted, "")
		w.clock.Advance(3500 * time.Millisecond)
		return nil
	}
	id, secret := w.start("U-1", hold, "key")
	if secret.Empty() {
		t.Error("the payment call has no secret")
	}
	w.settle(id)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantHold(hold, ledger.StatusConfirmed)
	if b := w.bank.Book(id, "USD"); b.Payments != 1 || b.Captures != 1 || b.CapturedMinor != 1000 {
		t.Errorf("the bank's book is %+v", b)
	}
	w.wantOneStepEach(id)
	w.checkBooks()
}

// wantOneStepEach requires that everything that a payment needs happened once.
func (w *world) wantOneStepEach(id ledger.ReservationID) {
	w.t.Helper()
	steps := w.steps(id)
	for _, t := range []ledger.EventType{
		ledger.EventReservationPaymentStarted, ledger.EventReservationPaymentCreated, ledger.EventReservationAuthorized,
		ledger.EventReservationConfirmed, ledger.EventReservationCaptured, ledger.EventReservationCompleted,
	} {
		if steps[t] != 1 {
			w.t.Errorf("%s happened %d times", t, steps[t])
		}
	}
}

// Case D13: a repeated event is applied once: 5 times at once, 5 times in a row, once after
// 3 days, and under another event id.
func TestCaseD13_ARepeatedEventIsAppliedOnce(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, nil)
	hold := w.hold("U-1", one("A"))
	id, secret := w.start("U-1", hold, "key")
	w.pay(secret)
	authorized := of(paymenttest.EventAuthorized, w.notices())[0]
	var done sync.WaitGroup
	errs := make([]error, 5)
	for i := range errs {
		done.Go(func() { errs[i] = w.driver.Drive(t.Context(), id, authorized, "webhook") })
	}
	done.Wait()
	for _, err := range errs {
		w.must(err)
	}
	for range 5 {
		w.drive(id, authorized)
	}
	w.settle(id)
	version := w.reservation(id).Version
	w.clock.Advance(3 * 24 * time.Hour)
	w.drive(id, authorized)
	if now := w.reservation(id).Version; now != version {
		t.Errorf("the event made %d steps after 3 days", now-version)
	}
	other := *authorized
	other.ID = "evt_other"
	w.drive(id, &other)
	w.sweep()

	w.wantReservation(id, ledger.ReservationCompleted, "")
	w.wantHold(hold, ledger.StatusConfirmed)
	w.wantOneStepEach(id)
	w.wantMoney(id, "USD", 1000, 0)
	if b := w.bank.Book(id, "USD"); b.Captures != 1 {
		t.Errorf("the bank's book is %+v", b)
	}
	w.wantCounters("A", "0/0/1/1")
	w.checkBooks()
}

// killed ends a drive in the middle, as the end of its process does.
type killed struct{}

// mortal is a store and provider whose process dies at one of its calls.
type mortal struct {
	saga.Store
	calls, dieAt int
	after        bool
}

// reach is one side of a call.
func (m *mortal) reach(after bool) {
	if !after {
		m.calls++
	}
	if m.calls == m.dieAt && m.after == after {
		panic(killed{})
	}
}

func (m *mortal) Commit(ctx context.Context, c ledger.Change) error {
	m.reach(false)
	err := m.Store.Commit(ctx, c)
	m.reach(true)
	return err
}

func (m *mortal) Claimed(ctx context.Context, kind ledger.UniquenessKind, value string) (ledger.Uniqueness, bool, error) {
	m.reach(false)
	defer m.reach(true)
	return m.Store.Claimed(ctx, kind, value)
}

func (m *mortal) Postpone(ctx context.Context, id ledger.ReservationID, v ledger.Version, at time.Time, tries int) error {
	m.reach(false)
	err := m.Store.Postpone(ctx, id, v, at, tries)
	m.reach(true)
	return err
}

// dies drives and reports whether it was killed: then the webhook's queue got no answer.
func (w *world) dies(id ledger.ReservationID, n *payment.Notice) (dead bool) {
	w.t.Helper()
	defer func() {
		if died := recover(); died != nil {
			if _, wasKilled := died.(killed); !wasKilled {
				panic(died)
			}
			dead = true
		}
	}()
	w.drive(id, n)
	return false
}

// Case D14: a drive is killed before and after each of its calls, and the event is
// delivered again. No event is ever stored as done without its state change.
func TestCaseD14_KilledAtEachStep(t *testing.T) {
	for _, after := range []bool{false, true} {
		deaths := 0
		for dieAt := 1; ; dieAt++ {
			store := &mortal{Store: memory.New(), after: after}
			w := newWorldOn(t, store)
			w.slot("A", 1, nil)
			hold := w.hold("U-1", one("A"))
			// The answer to the creation is lost, so that the saga has all of it to do.
			w.provider.After = func(context.Context, paymenttest.Call) error { return errNoAnswer }
			id, _ := w.start("U-1", hold, "key")
			w.provider.After = nil
			w.pay(w.bank.Payments()[0].Secret)
			authorized := of(paymenttest.EventAuthorized, w.notices())[0]
			w.provider.Before = func(context.Context, paymenttest.Call) error { store.reach(false); return nil }
			w.provider.After = func(context.Context, paymenttest.Call) error { store.reach(true); return nil }
			store.calls, store.dieAt = 0, dieAt
			dead := w.dies(id, authorized)
			store.dieAt = 0
			_, stored, err := store.Claimed(t.Context(), ledger.UniqueProviderEvent, string(authorized.ID))
			w.must(err)
			if stored && w.reservation(id).Status == ledger.ReservationPaymentPending {
				t.Errorf("killed at call %d: the event is stored without its state change", dieAt)
			}
			w.drive(id, authorized)
			w.wantReservation(id, ledger.ReservationCompleted, "")
			w.wantOneStepEach(id)
			w.wantHold(hold, ledger.StatusConfirmed)
			w.wantMoney(id, "USD", 1000, 0)
			w.wantCounters("A", "0/0/1/1")
			w.checkBooks()
			if !dead {
				break
			}
			deaths++
		}
		const callsOfOneDrive = 10 // the reads of the event, create, look-up, capture, and the writes between
		if deaths < callsOfOneDrive {
			t.Errorf("killed at %d calls only", deaths)
		}
	}
}
