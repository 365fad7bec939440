package expiry_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/expiry"
	"holdfast/shared/lease/leasetest"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/system/systemtest"
)

const (
	slotID  ledger.SlotID = "hall-1"
	holdFor               = 15 * time.Minute
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// world is a ledger with one slot, and a clock that the test moves.
type world struct {
	tb       testing.TB
	store    *memory.Store
	clock    *systemtest.Clock
	commands *commands.Commands
	leases   *leasetest.Memory
	failed   *messages
	ids      []ledger.HoldID
}

func newWorld(tb testing.TB, capacity ledger.Units) *world {
	tb.Helper()
	return newWorldOf(tb, capacity, holdFor)
}

// newWorldOf is a world whose holds last for so long.
func newWorldOf(tb testing.TB, capacity ledger.Units, lasts time.Duration) *world {
	tb.Helper()
	w := &world{tb: tb, store: memory.New(), clock: systemtest.NewClock(start), leases: leasetest.NewMemory(), failed: &messages{}}
	w.commands = commands.New(w.store, w.clock, systemtest.NewRandom(1))
	policy := ledger.DefaultPolicy()
	policy.HoldFor = lasts
	_, err := w.commands.PutSlot(context.Background(), commands.Request{Actor: "catalog:test", RequestID: "request_put"}, slotID,
		ledger.SlotDefinition{
			ResourceType: "hall", ResourceID: "h", Policy: policy, Capacity: capacity,
			Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 5000, Currency: "KRW"}, Shards: 1},
		},
		func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
			return ledger.Response{Status: 201}, nil
		})
	if err != nil {
		tb.Fatalf("put slot: %v", err)
	}
	return w
}

// hold makes one hold of so many units now.
func (w *world) hold(quantity ledger.Units) ledger.HoldID {
	w.tb.Helper()
	var id ledger.HoldID
	_, err := w.commands.CreateHold(context.Background(), commands.Request{Actor: "owner:U-1", Owner: "U-1", RequestID: "request_hold"},
		commands.HoldWish{Quotes: []ledger.Quote{{Slot: slotID, Quantity: quantity, UnitAmount: 5000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			id = h.ID
			return ledger.Response{Status: 201}, nil
		})
	if err != nil {
		w.tb.Fatalf("hold: %v", err)
	}
	w.ids = append(w.ids, id)
	return id
}

// holds makes n holds of one unit, gap apart.
func (w *world) holds(n int, gap time.Duration) {
	w.tb.Helper()
	for i := range n {
		if i > 0 {
			w.clock.Advance(gap)
		}
		w.hold(1)
	}
}

func (w *world) read(id ledger.HoldID) ledger.Hold {
	w.tb.Helper()
	hold, err := w.store.Hold(context.Background(), id)
	if err != nil {
		w.tb.Fatalf("hold %s: %v", id, err)
	}
	return hold
}

func (w *world) counters() ledger.Counters {
	w.tb.Helper()
	stock, err := w.store.Stock(context.Background(), []ledger.Slot{{ID: slotID, Terms: ledger.Terms{Shards: 1}}})
	if err != nil || len(stock) != 1 {
		w.tb.Fatalf("stock: %v, %v", stock, err)
	}
	return stock[0].Counters
}

// mustBeExpired requires that every hold has ended by expiry, once, and that the slot's
// units are all back.
func (w *world) mustBeExpired() {
	w.tb.Helper()
	for _, id := range w.ids {
		// Version 1 is the creation, so version 2 is the one and only end.
		if got := w.read(id); got.Status != ledger.StatusExpired || got.Version != 2 {
			w.tb.Errorf("hold %s is %s at version %d", id, got.Status, got.Version)
		}
	}
	c := w.counters()
	if c.Held != 0 || c.Confirmed != 0 || c.Available != c.Capacity {
		w.tb.Errorf("the units are not back: %+v", c)
	}
}

// endings counts the events that end a hold.
func (w *world) endings(id ledger.HoldID) int {
	w.tb.Helper()
	events, err := w.store.HoldEvents(context.Background(), id)
	if err != nil {
		w.tb.Fatal(err)
	}
	n := 0
	for _, e := range events {
		if e.Type != ledger.EventHoldCreated {
			n++
		}
	}
	return n
}

// sweep is a Sweep of the world that works alone. A nil store or releaser is the world's
// own.
func (w *world) sweep(store expiry.Store, releaser expiry.Releaser, pageItems int) *expiry.Sweep {
	w.tb.Helper()
	return w.sweepWith(expiry.SweepPorts{Store: store, Ender: w.ender(releaser)}, expiry.SweepSettings{PageItems: pageItems})
}

// sweepWith is a Sweep whose missing ports are the world's, and whose missing settings
// are the usual ones.
func (w *world) sweepWith(ports expiry.SweepPorts, settings expiry.SweepSettings) *expiry.Sweep {
	w.tb.Helper()
	if ports.Store == nil {
		ports.Store = w.store
	}
	if ports.Ender == nil {
		ports.Ender = w.ender(nil)
	}
	if ports.Leases == nil {
		ports.Leases = w.leases
	}
	if ports.Clock == nil {
		ports.Clock = w.clock
	}
	if ports.Parallel == nil {
		ports.Parallel = systemtest.OneByOne{}
	}
	if ports.Logger == nil {
		ports.Logger = slog.New(slog.DiscardHandler)
	}
	if settings.PageItems == 0 {
		settings.PageItems = 100
	}
	if settings.ParallelMax == 0 {
		settings.ParallelMax = expiry.ParallelMaxDefault
	}
	s, err := expiry.NewSweep(ports, settings)
	if err != nil {
		w.tb.Fatal(err)
	}
	return s
}

// ender is an Ender of the world. A nil releaser is the world's own.
func (w *world) ender(releaser expiry.Releaser) *expiry.Ender {
	w.tb.Helper()
	if releaser == nil {
		releaser = w.commands
	}
	e, err := expiry.NewEnder(expiry.EnderPorts{
		Releaser: releaser, Parking: w.store, Failed: w.failed, Clock: w.clock, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.tb.Fatal(err)
	}
	return e
}

// messages is a queue that keeps what is sent.
type messages struct {
	mutex sync.Mutex
	sent  []string
}

func (m *messages) Send(_ context.Context, body string, _ time.Duration) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.sent = append(m.sent, body)
	return nil
}

func mustRun(tb testing.TB, s *expiry.Sweep) expiry.Report {
	tb.Helper()
	report, err := s.Run(context.Background(), "request_sweep")
	if err != nil {
		tb.Fatalf("sweep: %v", err)
	}
	return report
}

// releaserFunc is a releaser that does what the test says, and remembers whom it was
// asked for.
type releaserFunc struct {
	mutex sync.Mutex
	asked []ledger.HoldID
	do    func(ctx context.Context, id ledger.HoldID) (bool, error)
}

func (r *releaserFunc) ExpireHold(ctx context.Context, id ledger.HoldID, _ ledger.RequestID) (bool, error) {
	r.mutex.Lock()
	r.asked = append(r.asked, id)
	r.mutex.Unlock()
	return r.do(ctx, id)
}

// storeFunc is the world's store, with a due index of the test's making.
type storeFunc struct {
	*memory.Store
	due func(shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error)
}

func (s storeFunc) Due(_ context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
	return s.due(shard, now, page)
}

// endsAt is a context that says when it ends by the test's clock. It never ends by
// itself.
type endsAt struct {
	context.Context
	at time.Time
}

func (c endsAt) Deadline() (time.Time, bool) { return c.at, true }
