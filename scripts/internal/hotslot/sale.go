package hotslot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/shared/dynamo"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const (
	// quantityMax is the most that one buyer asks for, and unitAmount the price.
	quantityMax = 4
	unitAmount  = 17_900
	// extraRequests is how many more requests a worker may make than there are units,
	// before the sale counts as one that never ends.
	extraRequests = 100
)

// Plan says what is sold, and to how many at once.
type Plan struct {
	Slot   ledger.SlotID // one that does not exist yet
	Units  ledger.Units
	Shards int
	// Workers is how many containers answer requests at the same time.
	Workers int
	// LosersPerWorker is how many buyers each worker refuses after everything is sold, and
	// after one that is counted apart.
	LosersPerWorker int
	// Confirm confirms each hold as soon as it is made.
	Confirm bool
	// Seed decides who asks for how much.
	Seed uint64
}

// Ports are the table and the machine. The client may be one that throttles.
type Ports struct {
	Client dynamo.Client
	Table  string
	Clock  system.Clock
	Random system.Random
}

// Run sells the slot and returns what it came to. An error means that the sale could not be
// carried out: an answer that no buyer should get, or a table that gives none.
func Run(ctx context.Context, plan Plan, ports Ports) (Outcome, error) {
	store := dynamo.NewStore(ports.Client, ports.Table, ports.Clock, ports.Random)
	slot, err := define(ctx, plan, ports, store)
	if err != nil {
		return Outcome{}, err
	}
	s := &sale{plan: plan, clock: ports.Clock, random: ports.Random, book: newBook(plan.Units)}
	s.outcome.Units, s.outcome.Shards = plan.Units, plan.Shards
	workers, err := s.hire(ports)
	if err != nil {
		return Outcome{}, err
	}
	started := ports.Clock.Now()
	if err := each(ctx, workers, (*worker).sell); err != nil {
		return Outcome{}, err
	}
	s.outcome.Took = s.lastAccepted.Sub(started)
	judged := s.book.judge()
	s.outcome.RefusedRight, s.outcome.RefusedWrong = judged.right, judged.wrong
	s.outcome.sold = s.book.soldUnits()
	if err := each(ctx, workers, (*worker).lose); err != nil {
		return Outcome{}, err
	}
	s.outcome.Stock, err = store.StockAtOneMoment(ctx, slot)
	return s.outcome, err
}

// define makes the slot.
func define(ctx context.Context, plan Plan, ports Ports, store *dynamo.Store) (ledger.Slot, error) {
	definition := ledger.SlotDefinition{
		ResourceType: "drop", ResourceID: ledger.ResourceID(plan.Slot), Capacity: plan.Units,
		Terms:  ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: unitAmount, Currency: "USD"}, Shards: plan.Shards},
		Policy: ledger.DefaultPolicy(),
	}
	origin := ledger.Origin{
		Actor: "catalog:hotslot", Command: ledger.CommandPutSlot, RequestID: "hotslot", EventID: ledger.NewEventID(ports.Random.Bits128()),
	}
	change, err := ledger.NewSlot(plan.Slot, definition, origin, system.Millisecond(ports.Clock))
	if err != nil {
		return ledger.Slot{}, err
	}
	if err := store.Commit(ctx, change); err != nil {
		return ledger.Slot{}, fmt.Errorf("define the slot: %w", err)
	}
	return change.Slots[0].Next, nil
}

// sale is what is known of a sale while it runs.
type sale struct {
	plan   Plan
	clock  system.Clock
	random system.Random
	book   *book

	mutex        sync.Mutex
	outcome      Outcome
	lastAccepted time.Time
}

// hire makes the workers, each with a handler of its own.
func (s *sale) hire(ports Ports) ([]*worker, error) {
	contract, err := httpapi.LoadContract()
	if err != nil {
		return nil, err
	}
	counted := &counter{Client: ports.Client, book: s.book}
	workers := make([]*worker, s.plan.Workers)
	for i := range workers {
		api, err := newAPI(counted, ports, contract)
		if err != nil {
			return nil, err
		}
		// The quantities of a worker are the same for the same seed.
		dice := rand.New(rand.NewPCG(s.plan.Seed, uint64(i))) //nolint:gosec // repeatable on purpose
		workers[i] = &worker{sale: s, number: i, api: api, dice: dice}
	}
	return workers, nil
}

// each lets all workers work at the same time, and returns the first error.
func each(ctx context.Context, workers []*worker, work func(*worker, context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, w := range workers {
		group.Go(func() error { return work(w, ctx) })
	}
	return group.Wait()
}

// worker is one container.
type worker struct {
	sale   *sale
	number int
	api    *httpapi.API
	dice   *rand.Rand
	buyers int
}

// sell serves buyers until one of a single unit is told that nothing is left.
func (w *worker) sell(ctx context.Context) error {
	requestsMax := int(w.sale.plan.Units) + extraRequests
	for range requestsMax {
		quantity := 1 + ledger.Units(w.dice.IntN(quantityMax))
		bought, err := w.serve(ctx, quantity)
		if err != nil {
			return err
		}
		if !bought && quantity == 1 {
			return nil
		}
		if sold := w.sale.book.soldUnits(); sold > w.sale.plan.Units {
			return fmt.Errorf("%d units are sold of %d", sold, w.sale.plan.Units)
		}
	}
	return fmt.Errorf("after %d requests of one worker there is still something left of %d units", requestsMax, w.sale.plan.Units)
}

// serve lets one buyer ask, and enters what came of it.
func (w *worker) serve(ctx context.Context, quantity ledger.Units) (bought bool, err error) {
	got, err := w.ask(ctx, quantity)
	if err != nil {
		return false, err
	}
	s := w.sale
	if !got.accepted {
		s.book.refuse(quantity)
	}
	s.mutex.Lock()
	s.outcome.TurnedAway += got.turnedAway
	if !got.accepted {
		s.outcome.Refused++
		s.mutex.Unlock()
		return false, nil
	}
	s.outcome.Accepted++
	s.outcome.AcceptedUnits += quantity
	s.outcome.SoldCalls.add(got.calls)
	if got.calls.StockReads+got.calls.Proofs > 0 {
		s.outcome.Probed++
	}
	if got.calls.StockItems > 1 {
		s.outcome.Split++
	}
	if now := s.clock.Now(); now.After(s.lastAccepted) {
		s.lastAccepted = now
	}
	s.mutex.Unlock()
	if !s.plan.Confirm {
		return true, nil
	}
	if err := w.confirm(ctx, got.hold); err != nil {
		return true, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.outcome.Confirmed += quantity
	return true, nil
}

// lose serves buyers who come when everything is sold. The first one of a worker is counted
// apart: while the other workers sold the rest, this one may have been at rest for longer
// than it remembers that nothing is left.
func (w *worker) lose(ctx context.Context) error {
	for i := range 1 + w.sale.plan.LosersPerWorker {
		got, err := w.ask(ctx, 1+ledger.Units(w.dice.IntN(quantityMax)))
		if err != nil {
			return err
		}
		if got.accepted {
			return fmt.Errorf("a buyer got units after all %d were sold", w.sale.plan.Units)
		}
		s := w.sale
		s.mutex.Lock()
		if i == 0 {
			s.outcome.FirstLosers++
			s.outcome.FirstLoserCalls.add(got.calls)
		} else {
			s.outcome.Losers++
			s.outcome.LoserCalls.add(got.calls)
		}
		s.mutex.Unlock()
	}
	return nil
}
