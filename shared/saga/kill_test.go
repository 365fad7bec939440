package saga_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
	"holdfast/shared/system/systemtest"
)

// errKilled is what a process that is killed panics with.
var errKilled = errors.New("killed on purpose")

// killable is a history whose process dies once, at the boundary of that number: before
// or after a call of the provider or a write of the store, in Start or in Drive.
type killable struct {
	*history
	at     int // 0 for never
	seen   int
	inside bool
	gone   bool // the buyer does not come back after a Start that died
	born   uint64
}

// killScenario is a course of events with the one end that it must have.
type killScenario struct {
	name string
	setting
	play func(*killable)
	// status, reason and the bank's sums, so that the course without a kill is right.
	status             ledger.ReservationStatus
	reason             ledger.Reason
	captured, refunded int64
}

func killScenarios() []killScenario {
	plain := setting{
		onDecline: ledger.OnDeclineRelease, latePayment: ledger.LatePaymentReacquire,
		delivery: ledger.DeliveryNone, capacity: 2, shards: 1,
	}
	with := func(change func(*setting)) setting {
		s := plain
		change(&s)
		return s
	}
	lies := with(func(s *setting) { s.script.VoidLies = true })
	return []killScenario{
		{"pay", plain, (*killable).playSale, ledger.ReservationCompleted, "", 3000, 0},
		{"grant", with(func(s *setting) { s.grants = true }), (*killable).playSale, ledger.ReservationCompleted, "", 3000, 0},
		{"decline, release", plain, func(k *killable) {
			k.start("first")
			k.buyerActs(1, k.bank.Decline)
			k.hearAll()
		}, ledger.ReservationCanceled, ledger.ReasonDeclined, 0, 0},
		{"decline, keep, second attempt", with(func(s *setting) { s.onDecline = ledger.OnDeclineKeep }), func(k *killable) {
			k.start("first")
			k.buyerActs(1, k.bank.Decline)
			k.hearAll()
			k.start("second")
			k.buyerActs(2, k.bank.Pay)
			k.hearAll()
		}, ledger.ReservationCompleted, "", 3000, 0},
		{"late, the hold still has its units", plain, func(k *killable) {
			k.start("first")
			k.buyerActs(1, k.bank.Pay)
			k.reach(k.storedHold(k.held).ReleaseAt)
			k.hearAll()
		}, ledger.ReservationCompleted, "", 3000, 0},
		{"late, the units are free", lies, func(k *killable) {
			k.playExpiry()
			k.buyerActs(1, k.lateSuccessOf(false))
			k.hearAll()
		}, ledger.ReservationCompleted, "", 3000, 0},
		{"late, sold out", lies, func(k *killable) {
			k.playExpiry()
			k.rival(seat, 2)
			k.buyerActs(1, k.lateSuccessOf(true))
			k.hearAll()
		}, ledger.ReservationRefunded, ledger.ReasonSoldOut, 3000, 3000},
		{"owner cancels before the sale", plain, func(k *killable) {
			k.start("first")
			k.buyerActs(1, k.bank.Pay)
			k.cancel(commands.CancelByOwner)
			k.hearAll()
		}, ledger.ReservationCanceled, ledger.ReasonOwnerCanceled, 0, 0},
		{"owner cancels after the sale", plain, func(k *killable) {
			k.playSale()
			k.cancel(commands.CancelByOwner)
			k.run(nil)
		}, ledger.ReservationRefunded, ledger.ReasonOwnerCanceled, 3000, 3000},
		{"a part is returned", plain, func(k *killable) {
			k.playSale()
			k.cancel(commands.CancelByOwner, ledger.ReturnLine{Slot: seat, Quantity: 1})
			k.run(nil)
		}, ledger.ReservationCompleted, "", 3000, 1000},
		{"surplus of an older attempt", with(func(s *setting) { s.onDecline, s.script.VoidLies = ledger.OnDeclineKeep, true }), func(k *killable) {
			k.start("first")
			k.start("second")
			k.buyerActs(2, k.bank.Pay)
			k.hearAll()
			k.buyerActs(1, k.lateSuccessOf(true))
			k.hearAll()
		}, ledger.ReservationCompleted, "", 6000, 3000},
		{"delivery failed", with(func(s *setting) { s.delivery = ledger.DeliveryEvent }), func(k *killable) {
			k.playSale()
			k.courier(false)
			k.run(nil)
		}, ledger.ReservationRefunded, ledger.ReasonDeliveryFailed, 3000, 3000},
	}
}

// A process may be killed at each boundary. Another one that goes on comes to the same
// end: the same status and reason, the same stock, the same money, in as many captures
// and refunds (promises P5 and P8).
func TestP8_AKillAtAnyBoundaryChangesNothing(t *testing.T) {
	boundaries := 0
	for _, s := range killScenarios() {
		t.Run(s.name, func(t *testing.T) {
			whole := s.run(t, 0, false)
			r := whole.current()
			books := whole.bank.Book(whole.id, "USD")
			if r.Status != s.status || r.Reason != s.reason || books.CapturedMinor != s.captured || books.RefundedMinor != s.refunded {
				whole.fail("without a kill it ends %s %q with %+v", r.Status, r.Reason, books)
			}
			for at := 1; at <= whole.seen; at++ {
				boundaries++
				if after := s.run(t, at, false); after.end() != whole.end() {
					after.fail("killed at boundary %d of %d it ends as\n%s\nand without as\n%s", at, whole.seen, after.end(), whole.end())
				}
				s.run(t, at, true) // audited by itself: a buyer who is gone may not have begun
			}
		})
	}
	t.Logf("killed at %d boundaries", boundaries)
}

// run plays the scenario, killed at that boundary, and lets it come to its end.
func (s killScenario) run(t *testing.T, at int, gone bool) *killable {
	t.Helper()
	dice := rand.New(rand.NewPCG(1, 1))
	k := &killable{history: newHistory(t, memory.New(), s.setting, dice), at: at, gone: gone, born: 2}
	k.note("%s, killed at boundary %d, the buyer is gone: %t", s.name, at, gone)
	captured := k.provider.After
	k.provider.Before = func(context.Context, paymenttest.Call) error { return k.boundary() }
	k.provider.After = func(ctx context.Context, c paymenttest.Call) error {
		return errors.Join(captured(ctx, c), k.boundary())
	}
	k.hooks.before = func(ledger.Change) error { return k.boundary() }
	k.hooks.after = k.hooks.before
	k.wrap = func(run func() error) error {
		var err error
		if k.dies(func() { err = run() }) {
			return run()
		}
		return err
	}
	s.play(k)
	k.listen()
	for range 2 { // what the end of one drive has told is heard, too
		k.untilNothingIsDue()
		k.hearAll()
	}
	k.untilNothingIsDue()
	if k.seen < at {
		k.fail("there are only %d boundaries", k.seen)
	}
	k.checkEnd()
	return k
}

// boundary is a place where the process may die.
func (k *killable) boundary() error {
	if k.inside {
		if k.seen++; k.seen == k.at {
			panic(errKilled)
		}
	}
	return nil
}

// dies runs a process, and reports whether it was killed. Then there is a fresh one.
func (k *killable) dies(process func()) (killed bool) {
	k.inside = true
	defer func() {
		k.inside = false
		reason := recover()
		if reason == nil {
			return
		}
		if err, failed := reason.(error); !failed || !errors.Is(err, errKilled) {
			panic(reason)
		}
		killed = true
		k.born++
		k.driver = saga.NewDriver(saga.Ports{
			Store: k.store, Provider: k.provider, Clock: k.clock, Random: systemtest.NewRandom(k.born),
			Metrics: k.metrics, Dwells: &k.dwells, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		k.commands = commands.New(k.store, k.clock, systemtest.NewRandom(k.born+1000))
		k.payments = commands.NewPayments(k.commands, k.provider)
	}()
	process()
	return false
}

// start is the buyer's request. If its process dies, the buyer's device repeats it once
// the claim has run out, and the saga has gone on meanwhile.
func (k *killable) start(key ledger.IdempotencyKey) {
	k.t.Helper()
	try := func() error {
		_, secret, err := k.payments.Start(k.t.Context(), commands.Request{Actor: "owner", Owner: "U-1", Key: key, Fingerprint: "start"}, k.held, renderNothing)
		if err == nil && secret.Empty() {
			k.fail("the buyer got no secret")
		}
		return err
	}
	killed := k.dies(func() { k.must(try()) })
	k.id = k.storedHold(k.held).Reservation
	if !killed {
		return
	}
	k.clock.Advance(commands.ClaimFor + time.Second)
	k.sweepDue()
	if !k.gone {
		k.must(try())
		k.id = k.storedHold(k.held).Reservation
	}
}

// buyerActs does something with the payment of an attempt, which may be missing only when
// the buyer is gone.
func (k *killable) buyerActs(n ledger.AttemptNumber, act func(string) (paymenttest.Payment, error)) {
	k.t.Helper()
	for _, p := range k.bank.Payments() {
		if p.Attempt == n {
			_, err := act(string(p.ID))
			if err != nil && !k.gone {
				k.fail("the buyer's payment: %v", err)
			}
			return
		}
	}
	if !k.gone {
		k.fail("attempt %d has no payment", n)
	}
}

func (k *killable) lateSuccessOf(captured bool) func(string) (paymenttest.Payment, error) {
	return func(id string) (paymenttest.Payment, error) { return k.bank.LateSuccess(id, captured) }
}

// hearAll delivers all notices in their order, and those that come of it.
func (k *killable) hearAll() {
	for k.listen(); len(k.told) > 0; k.listen() {
		k.hear(0, false)
	}
}

// playSale is a buyer who pays in time.
func (k *killable) playSale() {
	k.start("first")
	k.buyerActs(1, k.bank.Pay)
	k.hearAll()
}

// playExpiry is a hold that is over before its buyer has paid.
func (k *killable) playExpiry() {
	k.start("first")
	k.reach(k.storedHold(k.held).ReleaseAt)
	k.sweepDue()
}

// end tells how the history has ended, without times and numbers of versions.
func (k *killable) end() string {
	var b strings.Builder
	r := k.current()
	fmt.Fprintf(&b, "%s %q, hold %s", r.Status, r.Reason, k.storedHold(k.held).Status)
	if r.SoldHold != "" {
		fmt.Fprintf(&b, ", sold %s", k.storedHold(r.SoldHold).Status)
	}
	for _, a := range r.Attempts {
		fmt.Fprintf(&b, ", attempt %s unwanted %t captured %d", a.State, a.Unwanted, a.CapturedMinor)
	}
	for _, f := range r.Refunds {
		fmt.Fprintf(&b, ", refund of attempt %d: %d %q %s", f.Attempt, f.AmountMinor, f.Reason, f.State)
	}
	for _, slot := range k.slots {
		fmt.Fprintf(&b, ", %s %+v", slot, k.counters(slot))
	}
	for _, p := range k.bank.Payments() {
		fmt.Fprintf(&b, ", payment %d %s captured %d in %d, refunded %d in %d", p.Attempt, p.Status, p.CapturedMinor, p.Captures, p.RefundedMinor, len(p.Refunds))
	}
	return b.String()
}

// A buyer's device that repeats its request must not void the attempt that this request
// has begun, although a new request would (promise P6).
func TestP6_ARepeatedStartLeavesItsOwnAttemptOpen(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, func(d *ledger.SlotDefinition) { d.Policy.Payment.OnDecline = ledger.OnDeclineKeep })
	hold := w.hold("U-1", one("A"))
	id, first := w.start("U-1", hold, "key")
	if _, again := w.start("U-1", hold, "key"); again.Reveal() != first.Reveal() {
		t.Error("the repeated request gives another secret")
	}
	if _, err := w.bank.Pay(first.Reveal()); err != nil {
		t.Fatalf("the buyer's first payment: %v", err)
	}
	w.drive(id, nil)
	if r := w.reservation(id); r.Status != ledger.ReservationCompleted || len(r.Attempts) != 1 {
		t.Errorf("the reservation is %+v", r)
	}
	w.checkBooks()
}
