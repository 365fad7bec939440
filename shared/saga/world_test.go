package saga_test

import (
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
)

// tenOClock is when every history of these tests begins.
var tenOClock = time.Date(2026, time.March, 1, 10, 0, 0, 0, time.UTC)

// world is one ledger with one payment provider, and everybody who works on them.
type world struct {
	t        testing.TB
	clock    *systemtest.Clock
	store    saga.Store
	bank     *paymenttest.Bank
	provider *paymenttest.Provider
	commands *commands.Commands
	payments *commands.Payments
	driver   *saga.Driver
	metrics  *counted
	dwells   telemetry.Spread
	slots    []ledger.SlotID
	holds    []ledger.HoldID
}

// counted keeps what was measured. Drivers at once may count with it.
type counted struct {
	mutex sync.Mutex
	of    map[telemetry.MetricName]int
}

// Emit counts.
func (c *counted) Emit(_ telemetry.Properties, measurements ...telemetry.Measurement) error {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for _, m := range measurements {
		c.of[m.Metric] += int(m.Value)
	}
	return nil
}

func newWorld(t testing.TB) *world { return newWorldOn(t, memory.New()) }

func newWorldOn(t testing.TB, store saga.Store) *world {
	t.Helper()
	clock := systemtest.NewClock(tenOClock)
	bank := paymenttest.NewBank(clock.Now)
	w := &world{
		t: t, clock: clock, store: store, bank: bank, provider: paymenttest.NewProvider(bank),
		metrics: &counted{of: map[telemetry.MetricName]int{}},
	}
	w.commands = commands.New(store, clock, systemtest.NewRandom(1))
	w.payments = commands.NewPayments(w.commands, w.provider)
	w.driver = w.driverOf(w.provider)
	return w
}

// driverOf is the world's driver, with another provider.
func (w *world) driverOf(provider payment.Provider) *saga.Driver {
	return saga.NewDriver(saga.Ports{
		Store: w.store, Provider: provider, Clock: w.clock, Random: systemtest.NewRandom(2),
		Metrics: w.metrics, Dwells: &w.dwells, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// slot defines a slot whose policy the caller may change.
func (w *world) slot(id ledger.SlotID, capacity ledger.Units, change func(*ledger.SlotDefinition)) {
	w.t.Helper()
	d := ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "hamlet", Capacity: capacity, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "USD"}, Shards: 1},
	}
	if change != nil {
		change(&d)
	}
	_, err := w.commands.PutSlot(w.t.Context(), commands.Request{Actor: "catalog"}, id, d,
		func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
			return ledger.Response{}, nil
		})
	w.must(err)
	w.slots = append(w.slots, id)
}

// hold makes a hold of the lines, each at the slot's own price.
func (w *world) hold(owner ledger.OwnerID, lines ...ledger.Quote) ledger.HoldID {
	w.t.Helper()
	var made ledger.HoldID
	_, err := w.commands.CreateHold(w.t.Context(), commands.Request{Actor: "owner", Owner: owner}, commands.HoldWish{Quotes: lines},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			made = h.ID
			return ledger.Response{Status: 201}, nil
		})
	w.must(err)
	w.holds = append(w.holds, made)
	return made
}

func renderNothing(ledger.Reservation, ledger.Hold, time.Time) (ledger.Response, error) {
	return ledger.Response{Status: 202}, nil
}

// start opens a payment attempt of the hold, and gives its reservation and secret.
func (w *world) start(owner ledger.OwnerID, hold ledger.HoldID, key ledger.IdempotencyKey) (ledger.ReservationID, payment.Secret) {
	w.t.Helper()
	_, secret, err := w.payments.Start(w.t.Context(), commands.Request{Actor: "owner", Owner: owner, Key: key, Fingerprint: "start"}, hold, renderNothing)
	w.must(err)
	return w.storedHold(hold).Reservation, secret
}

func (w *world) drive(id ledger.ReservationID, notice *payment.Notice) {
	w.t.Helper()
	w.must(w.driver.Drive(w.t.Context(), id, notice, "request"))
}

func (w *world) storedHold(id ledger.HoldID) ledger.Hold {
	w.t.Helper()
	h, err := w.store.Hold(w.t.Context(), id)
	w.must(err)
	return h
}

func (w *world) reservation(id ledger.ReservationID) ledger.Reservation {
	w.t.Helper()
	r, err := w.store.Reservation(w.t.Context(), id)
	w.must(err)
	return r
}

// counters are the slot's numbers over all shards.
func (w *world) counters(id ledger.SlotID) ledger.Counters {
	w.t.Helper()
	slots, err := w.store.Slots(w.t.Context(), []ledger.SlotID{id})
	w.must(err)
	stock, err := w.store.Stock(w.t.Context(), slots)
	w.must(err)
	var sum ledger.Counters
	for _, s := range stock {
		sum = sum.Plus(s.Counters)
	}
	return sum
}

// notices are what the provider has told since the last call, in order.
func (w *world) notices() []*payment.Notice {
	var out []*payment.Notice
	for _, e := range w.bank.TakeEvents() {
		n := e.Notice()
		out = append(out, &n)
	}
	return out
}

// sweep ends what is over, and looks at every reservation whose time has come.
func (w *world) sweep() {
	w.t.Helper()
	now := w.clock.Now()
	for shard := range ledger.DueShards {
		holds, _, err := w.store.Due(w.t.Context(), shard, now, ledger.Page{Limit: ledger.PageItemsMax})
		w.must(err)
		for _, h := range holds {
			if _, err := w.commands.ExpireHold(w.t.Context(), h.ID, "sweep"); err != nil && ledger.CodeOf(err) != ledger.CodeHoldNotDue {
				w.t.Fatal(err)
			}
		}
		reservations, _, err := w.store.DueReservations(w.t.Context(), shard, now, ledger.Page{Limit: ledger.PageItemsMax})
		w.must(err)
		for _, r := range reservations {
			w.drive(r.ID, nil)
		}
	}
}

func one(slot ledger.SlotID) ledger.Quote {
	return ledger.Quote{Slot: slot, Quantity: 1, UnitAmount: 1000}
}

// checkBooks audits all slots and holds, with the holds that late payments made, and the
// reservations of all of them.
func (w *world) checkBooks() {
	w.t.Helper()
	holds := append([]ledger.HoldID{}, w.holds...)
	var reservations []ledger.ReservationID
	for _, id := range w.holds {
		h := w.storedHold(id)
		holds = append(holds, ledger.ReacquiredID(h))
		if h.Reservation != "" {
			reservations = append(reservations, h.Reservation)
		}
	}
	ledgertest.CheckBooks(w.t, w.store, w.slots, holds, reservations...)
}

func TestPaidHoldIsConfirmedCapturedAndCompleted(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, nil)
	hold := w.hold("U-1", one("A"))
	id, secret := w.start("U-1", hold, "key")
	if _, err := w.bank.Pay(secret.Reveal()); err != nil {
		t.Fatal(err)
	}
	for _, n := range w.notices() {
		w.drive(id, n)
	}
	if r := w.reservation(id); r.Status != ledger.ReservationCompleted || w.storedHold(hold).Status != ledger.StatusConfirmed {
		t.Errorf("the reservation is %+v, the hold %s", r, w.storedHold(hold).Status)
	}
	if b := w.bank.Book(id, "USD"); b.CapturedMinor != 1000 || b.Captures != 1 {
		t.Errorf("the bank's book is %+v", b)
	}
	w.checkBooks()
}

func TestUnpaidHoldIsVoidedAndThenReleased(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, nil)
	hold := w.hold("U-1", one("A"))
	id, _ := w.start("U-1", hold, "key")
	for range 14 {
		w.clock.Advance(time.Minute)
		w.sweep()
	}
	if r := w.reservation(id); r.Status != ledger.ReservationCanceled || r.Reason != ledger.ReasonExpired || w.storedHold(hold).Status != ledger.StatusExpired {
		t.Errorf("the reservation is %+v, the hold %s", r, w.storedHold(hold).Status)
	}
	if got := w.bank.Payments()[0].Status; got != payment.StatusVoided {
		t.Errorf("the payment is %s", got)
	}
	w.checkBooks()
}
