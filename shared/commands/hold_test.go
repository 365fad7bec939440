package commands_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/expiry/expirytest"
	"holdfast/shared/lease/leasetest"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// A create reads nothing before its transaction once the definition is cached, and reads
// it again after the cache's time.
func TestACreateReadsNothingFirst(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(10, 1))
	for i, want := range []int{1, 1, 1, 2} {
		if _, err := b.create(b.commands, request(fmt.Sprint(i)), quote("S", 1)); err != nil {
			t.Fatal(err)
		}
		if b.store.reads != want {
			t.Errorf("create %d: %d reads of the definition, want %d", i, b.store.reads, want)
		}
		b.clock.Advance(2 * time.Second)
	}
	if b.store.commits != 4 || b.store.proofs != 0 {
		t.Errorf("%d commits and %d proofs for 4 creates", b.store.commits, b.store.proofs)
	}
	b.wantCounters("S", 6, 4, 0)
	b.balanced()
}

// What the cache still says decides nothing: price, open and the rest are conditions of
// the write.
func TestAStaleDefinitionDecidesNothing(t *testing.T) {
	stale := func(t *testing.T, change func(*ledger.SlotDefinition), quotes []ledger.Quote) (*bench, error) {
		t.Helper()
		b := newBench(t)
		b.define("S", definition(10, 1))
		if _, err := b.create(b.commands, request("warm"), quote("S", 1)); err != nil {
			t.Fatal(err)
		}
		d := definition(10, 1)
		change(&d)
		b.define("S", d)
		_, err := b.create(b.commands, request("K"), quotes)
		b.balanced()
		return b, err
	}
	t.Run("closed", func(t *testing.T) {
		b, err := stale(t, func(d *ledger.SlotDefinition) { d.Terms.Open = false }, quote("S", 1))
		b.wantCode(err, ledger.CodeSlotClosed)
		b.wantCounters("S", 9, 1, 0)
	})
	t.Run("price", func(t *testing.T) {
		b, err := stale(t, func(d *ledger.SlotDefinition) { d.Terms.Price.AmountMinor = 1500 }, quote("S", 1))
		b.wantCode(err, ledger.CodePriceChanged)
		var e *ledger.Error
		if !errors.As(err, &e) || !slices.Equal(e.Prices, []ledger.SlotPrice{{Slot: "S", Price: ledger.Money{AmountMinor: 1500, Currency: "KRW"}}}) {
			t.Errorf("the new price is not told: %+v", e)
		}
	})
	t.Run("the new price is taken", func(t *testing.T) {
		b, err := stale(t, func(d *ledger.SlotDefinition) { d.Terms.Price.AmountMinor = 1500 },
			[]ledger.Quote{{Slot: "S", Quantity: 1, UnitAmount: 1500}})
		if err != nil {
			t.Fatal(err)
		}
		b.wantCounters("S", 8, 2, 0)
	})
	t.Run("currency", func(t *testing.T) {
		// The currency is the slot's own, so the same amount is quoted in the new one.
		b, err := stale(t, func(d *ledger.SlotDefinition) { d.Terms.Price.Currency = "JPY" }, quote("S", 1))
		if err != nil {
			t.Fatal(err)
		}
		b.wantCounters("S", 8, 2, 0)
		hold, err := b.store.Hold(t.Context(), b.holds[len(b.holds)-1])
		if err != nil || hold.Total() != (ledger.Money{AmountMinor: 1000, Currency: "JPY"}) {
			t.Errorf("total %v, %v", hold.Total(), err)
		}
	})
}

// A stock item that names another number of shards than the caller assumed makes the
// caller read the definition again, as after a reshard.
func TestAWrongNumberOfShardsStartsAgain(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(10, 2))
	var tries []int
	b.store.beforeCommit = func(try int, c ledger.Change) error {
		for _, w := range c.Stock {
			tries = append(tries, w.Sale.Shards)
		}
		if try > 1 {
			return nil
		}
		// The item as it would be after a reshard to three.
		stock := ledger.Stock{Slot: "S", Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: 3}}
		return &ledger.Refused{Legs: []ledger.RefusedLeg{{Kind: ledger.LegStock, Slot: "S", Shard: c.Stock[0].Shard, Stock: &stock}}}
	}
	if _, err := b.create(b.commands, request("K"), quote("S", 1)); err != nil {
		t.Fatal(err)
	}
	if b.store.reads != 2 || len(tries) != 2 {
		t.Errorf("the definition was read %d times over %d tries, want 2 and 2", b.store.reads, len(tries))
	}
	b.balanced()
}

func TestUnknownSlotAndLimits(t *testing.T) {
	b := newBench(t)
	d := definition(10, 1)
	d.Policy.QuantityPerHoldMax = 2
	b.define("S", d)
	for _, c := range []struct {
		quotes []ledger.Quote
		code   ledger.Code
	}{
		{quote("none", 1), ledger.CodeSlotNotFound},
		{append(quote("S", 1), quote("none", 1)...), ledger.CodeSlotNotFound},
		{quote("S", 3), ledger.CodeQuantityOverLimit},
		{append(quote("S", 1), quote("S", 2)...), ledger.CodeQuantityOverLimit},
		{nil, ledger.CodeInvalid},
		{quote("S", 0), ledger.CodeInvalid},
	} {
		_, err := b.create(b.commands, request("K"), c.quotes)
		b.wantCode(err, c.code)
	}
	b.wantCounters("S", 10, 0, 0)
}

// P10: the shard that a hold picks may be empty while units remain elsewhere. Every unit
// of a slot can be sold, over any number of shards, and "insufficient" is said only then.
func TestP10_SoldOutOnlyWhenItIs(t *testing.T) {
	for _, shards := range []int{1, 2, 7, 64} {
		t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
			b := newBench(t)
			const units = 70
			b.define("S", definition(units, shards))
			for i := range units / 2 {
				if _, err := b.create(b.commands, request(fmt.Sprint("one", i)), quote("S", 1)); err != nil {
					t.Fatalf("unit %d: %v", i, err)
				}
			}
			// The rest in one hold, split over whatever shards are left.
			if _, err := b.create(b.commands, request("rest"), quote("S", units/2)); err != nil {
				t.Fatal(err)
			}
			_, err := b.create(b.commands, request("more"), quote("S", 1))
			b.wantCode(err, ledger.CodeInsufficientStock)
			b.wantCounters("S", 0, units, 0)
			b.balanced()
		})
	}
}

// P10: with many callers and many shards, exactly as many holds are made as there are
// units, and nobody is told "insufficient" while units remain: the refusals begin only
// after the last unit was taken.
func TestP10_UnderContention(t *testing.T) {
	b := newBench(t)
	const units, callers = 60, 120
	b.define("S", definition(units, 8))
	var made, short atomic.Int64
	var done sync.WaitGroup
	for i := range callers {
		done.Go(func() {
			_, err := b.create(b.commands, request(fmt.Sprint(i)), quote("S", 1))
			switch ledger.CodeOf(err) {
			case "":
				made.Add(1)
			case ledger.CodeInsufficientStock:
				short.Add(1)
			default:
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	done.Wait()
	if made.Load() != units || short.Load() != callers-units {
		t.Errorf("%d made and %d short, want %d and %d", made.Load(), short.Load(), units, callers-units)
	}
	b.wantCounters("S", 0, units, 0)
	b.balanced()
}

// P10: shards that are read one after the other may look empty together although they
// never were at one moment. Only the read of one moment is believed.
func TestP10_AHintIsNoProof(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(4, 4))
	b.store.stock = func(stock []ledger.Stock) []ledger.Stock {
		for i := range stock {
			stock[i].Counters.Available = 0
		}
		return stock
	}
	if _, err := b.create(b.commands, request("K"), quote("S", 3)); err != nil {
		t.Fatalf("a torn hint was believed: %v", err)
	}
	if b.store.proofs != 1 {
		t.Errorf("%d proofs, want 1", b.store.proofs)
	}
	b.wantCounters("S", 1, 3, 0)
	b.balanced()
}

// G2, P10: a refusal beside a running transaction may be out of date. The slot is read
// again before anybody is told that it is short.
func TestG2_ContendedRefusalIsReadAgain(t *testing.T) {
	for available, code := range map[ledger.Units]ledger.Code{5: "", 0: ledger.CodeInsufficientStock} {
		b := newBench(t)
		b.define("S", definition(5, 1))
		if available == 0 {
			b.mustHold("S", 5)
		}
		b.store.beforeCommit = func(try int, _ ledger.Change) error {
			if try > 1 {
				return nil
			}
			stock := ledger.Stock{Slot: "S", Terms: definition(5, 1).Terms}
			return &ledger.Refused{Contended: true, Legs: []ledger.RefusedLeg{{Kind: ledger.LegStock, Slot: "S", Stock: &stock}}}
		}
		_, err := b.create(b.commands, request("K"), quote("S", 1))
		b.wantCode(err, code)
		b.balanced()
	}
}

// Every short line is named, each once, and those that are not short are not.
func TestEveryShortLineIsNamed(t *testing.T) {
	b := newBench(t)
	b.define("A", definition(1, 1))
	b.define("B", definition(9, 3))
	b.define("C", definition(2, 2))
	quotes := slices.Concat(quote("A", 5), quote("B", 9), quote("C", 3))
	_, err := b.create(b.commands, request("K"), quotes)
	b.wantCode(err, ledger.CodeInsufficientStock)
	var e *ledger.Error
	errors.As(err, &e)
	slices.SortFunc(e.Shortages, func(x, y ledger.Shortage) int { return len(x.Slot) - len(y.Slot) })
	if !slices.Equal(e.Shortages, []ledger.Shortage{{Slot: "A", Requested: 5}, {Slot: "C", Requested: 3}}) {
		t.Errorf("shortages %+v", e.Shortages)
	}
	b.wantCounters("B", 9, 0, 0)
	b.balanced()
}

// A store that refuses for ever ends as busy, after a bounded number of tries, each after
// a pause that stays bounded too.
func TestBusyAfterTriesMax(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(10, 2))
	b.store.beforeCommit = func(int, ledger.Change) error {
		return &ledger.Refused{Contended: true}
	}
	_, err := b.create(b.commands, request("K"), quote("S", 1))
	b.wantCode(err, ledger.CodeBusy)
	if b.store.commits != commands.TriesMax {
		t.Errorf("%d tries, want %d", b.store.commits, commands.TriesMax)
	}
	sleeps := b.clock.Sleeps()
	if len(sleeps) != commands.TriesMax-1 {
		t.Errorf("%d pauses for %d tries", len(sleeps), b.store.commits)
	}
	if longest := slices.Max(sleeps); longest > 50*time.Millisecond {
		t.Errorf("the longest pause is %s", longest)
	}
	b.wantCounters("S", 10, 0, 0)
}

// D4: a confirm read a HELD hold and is paused before its write; another confirm of the
// same payment wins. The stale write fails, the hold is read again, and the answer is the
// confirmed hold.
func TestCaseD4_LostRaceIsDecidedAgain(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(3, 1))
	hold := b.mustHold("S", 1)
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try == 1 {
			if _, err := b.others.ConfirmHold(t.Context(), request(""), hold.ID, "pay", nil, b.render); err != nil {
				t.Error(err)
			}
		}
		return nil
	}
	answer, err := b.commands.ConfirmHold(t.Context(), request("K"), hold.ID, "pay", nil, b.render)
	if err != nil || answer.Replayed {
		t.Fatalf("%+v, %v", answer, err)
	}
	b.wantCounters("S", 2, 0, 1)
	events, err := b.store.HoldEvents(t.Context(), hold.ID)
	if err != nil || len(events) != 2 {
		t.Errorf("%d events, %v; want creation and one confirm", len(events), err)
	}
	before, err := b.store.Hold(t.Context(), hold.ID)
	if err != nil || before.Status != ledger.StatusConfirmed {
		t.Fatalf("the hold is %+v, %v", before, err)
	}
	b.clock.Advance(time.Hour)
	sweep := expirytest.MustSweep(t, expirytest.Parts{
		Store: b.store.Store, Parking: memory.New(), Leases: leasetest.NewMemory(), Releaser: b.others, Clock: b.clock,
	}, ledger.PageItemsMax)
	report, err := sweep.Run(t.Context(), "sweep")
	if err != nil || report.Released+report.AlreadyEnded+report.Failed != 0 || report.Lag != 0 {
		t.Errorf("the sweep reports %+v, %v; want nothing to do", report, err)
	}
	// Nor does an entry that the index still has, which an index may for a while.
	if released, err := b.others.ExpireHold(t.Context(), hold.ID, "sweep"); released || err != nil {
		t.Errorf("released %t, %v", released, err)
	}
	after, err := b.store.Hold(t.Context(), hold.ID)
	if err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("an hour later the hold is %+v, %v; want %+v", after, err, before)
	}
	if events, err := b.store.HoldEvents(t.Context(), hold.ID); err != nil || len(events) != 2 {
		t.Errorf("an hour later %d events, %v; want creation and one confirm", len(events), err)
	}
	b.wantCounters("S", 2, 0, 1)
	b.balanced()
}

// J4 in small: whoever loses the race at the release reads the other's outcome.
func TestConfirmAndExpireMeet(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(1, 1))
	hold := b.mustHold("S", 1)
	b.clock.Set(hold.ReleaseAt.Add(-time.Millisecond))
	b.store.beforeCommit = func(try int, _ ledger.Change) error {
		if try == 1 {
			b.clock.Set(hold.ReleaseAt)
			if released, err := b.others.ExpireHold(t.Context(), hold.ID, "sweep"); !released || err != nil {
				t.Errorf("expire: %t, %v", released, err)
			}
		}
		return nil
	}
	_, err := b.commands.ConfirmHold(t.Context(), request("K"), hold.ID, "", nil, b.render)
	b.wantCode(err, ledger.CodeHoldNotActive)
	b.wantCounters("S", 1, 0, 0)
	b.balanced()
}

func TestEndingsAreRefused(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(9, 1))
	hold, other := b.mustHold("S", 1), b.mustHold("S", 1)
	if _, err := b.commands.ConfirmHold(t.Context(), request("K"), hold.ID, "pay", nil, b.render); err != nil {
		t.Fatal(err)
	}
	_, err := b.commands.ConfirmHold(t.Context(), request("L"), other.ID, "pay", nil, b.render)
	b.wantCode(err, ledger.CodeReferenceUsed)
	_, err = b.commands.CancelHold(t.Context(), request("L"), hold.ID, b.render)
	b.wantCode(err, ledger.CodeHoldNotActive)
	stranger := request("L")
	stranger.Owner = "V"
	_, err = b.commands.CancelHold(t.Context(), stranger, other.ID, b.render)
	b.wantCode(err, ledger.CodeHoldNotFound)
	_, unknown := b.commands.CancelHold(t.Context(), stranger, ledger.NewHoldID([16]byte{}), b.render)
	b.wantCode(unknown, ledger.CodeHoldNotFound)
	released, err := b.commands.ExpireHold(t.Context(), other.ID, "sweep")
	b.wantCode(err, ledger.CodeHoldNotDue)
	if released {
		t.Error("a hold that is not due was released")
	}
	if released, err := b.commands.ExpireHold(t.Context(), hold.ID, "sweep"); released || err != nil {
		t.Errorf("a confirmed hold: released %t, %v", released, err)
	}
	b.wantCounters("S", 7, 1, 1)
	b.balanced()
}

// Case C3 without HTTP: releasers meet, and the stock returns once.
func TestCaseC3_StockReturnsOnce(t *testing.T) {
	b := newBench(t)
	b.define("S", definition(10, 2))
	for range 100 {
		hold := b.mustHold("S", 3)
		b.clock.Set(hold.ReleaseAt)
		var released atomic.Int64
		var done sync.WaitGroup
		for range 3 {
			done.Go(func() {
				won, err := b.commands.ExpireHold(t.Context(), hold.ID, "sweep")
				if err != nil {
					t.Error(err)
				}
				if won {
					released.Add(1)
				}
			})
		}
		done.Wait()
		if released.Load() != 1 {
			t.Fatalf("released %d times", released.Load())
		}
	}
	b.wantCounters("S", 10, 0, 0)
	b.balanced()
}
