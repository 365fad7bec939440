package ledger_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
)

// world is a desk with one slot S of a capacity, and the audit at its end.
type world struct {
	*testing.T
	*desk
	holds []ledger.HoldID
}

func newWorld(t *testing.T, capacity ledger.Units, shards int) *world {
	t.Helper()
	w := &world{T: t, desk: newDesk(memory.New())}
	w.edit(func(d *ledger.SlotDefinition) { d.Capacity, d.Terms.Shards = capacity, shards })
	t.Cleanup(func() {
		w.Helper()
		ledgertest.CheckBooks(uncancelled{t}, w.store, []ledger.SlotID{"S"}, w.holds)
	})
	return w
}

// uncancelled lets an audit run in a cleanup, where a test's own context has ended.
type uncancelled struct{ *testing.T }

func (uncancelled) Context() context.Context { return context.Background() }

func (w *world) edit(alter func(*ledger.SlotDefinition)) {
	w.Helper()
	if err := w.putSlot("S", alter); err != nil {
		w.Fatalf("put slot: %v", err)
	}
}

func (w *world) create(name string, units ledger.Units) (ledger.HoldID, error) {
	id := holdID(name)
	w.holds = append(w.holds, id)
	_, err := w.createHold(id, request{owner: "U-1"}, []ledger.Quote{{Slot: "S", Quantity: units, UnitAmount: 500}})
	return id, err
}

func (w *world) mustCreate(name string, units ledger.Units) ledger.Hold {
	w.Helper()
	id, err := w.create(name, units)
	if err != nil {
		w.Fatalf("hold %s: %v", name, err)
	}
	return w.hold(id)
}

func (w *world) hold(id ledger.HoldID) ledger.Hold {
	w.Helper()
	hold, err := w.store.Hold(w.Context(), id)
	if err != nil {
		w.Fatalf("hold %s: %v", id, err)
	}
	return hold
}

func (w *world) stock() []ledger.Stock {
	w.Helper()
	slots, err := w.store.Slots(w.Context(), []ledger.SlotID{"S"})
	if err != nil {
		w.Fatal(err)
	}
	stock, err := w.store.StockAtOneMoment(w.Context(), slots[0])
	if err != nil {
		w.Fatal(err)
	}
	return stock
}

// counters requires the sums over the slot's shards.
func (w *world) counters(available, held, confirmed ledger.Units) {
	w.Helper()
	var sum ledger.Counters
	for _, s := range w.stock() {
		sum = sum.Plus(s.Counters)
	}
	want := ledger.Counters{Available: available, Held: held, Confirmed: confirmed, Capacity: available + held + confirmed}
	if sum != want {
		w.Fatalf("counters are %+v, want %+v", sum, want)
	}
}

// answered requires that err has the code, or is nil for "".
func (w *world) answered(err error, want ledger.Code) {
	w.Helper()
	if got := ledger.CodeOf(err); got != want {
		w.Fatalf("answer is %v, want code %q", err, want)
	}
}

func TestP1_CountersStayWithinCapacity(t *testing.T) {
	// P1: available, held and confirmed are never negative, and their sum is capacity.
	w := newWorld(t, 5, 2)
	for i, units := range []ledger.Units{2, 2, 2, 1, 1} {
		_, err := w.create(string(rune('a'+i)), units)
		wantCode := ledger.Code("")
		if i == 2 || i == 4 {
			wantCode = ledger.CodeInsufficientStock
		}
		w.answered(err, wantCode)
		for _, s := range w.stock() {
			if err := s.Counters.Check(); err != nil {
				t.Fatalf("after hold %d: shard %d: %v", i, s.Shard, err)
			}
		}
	}
	w.counters(0, 5, 0)
	w.answered(w.putSlot("S", func(d *ledger.SlotDefinition) { d.Capacity = 4 }), ledger.CodeCapacityInUse)
	w.counters(0, 5, 0)
}

func TestP1_WriteWithoutStockIsRefusedByTheStore(t *testing.T) {
	// P1: the condition is in the write. A caller that decided on stale stock is refused.
	w := newWorld(t, 1, 1)
	build := func(name string) ledger.Change {
		slots, err := w.slots([]ledger.Quote{{Slot: "S"}})
		if err != nil {
			t.Fatal(err)
		}
		w.holds = append(w.holds, holdID(name))
		change, err := ledger.NewHold(ledger.HoldPlan{
			ID: holdID(name), Owner: "U-1", Slots: slots, Quotes: []ledger.Quote{{Slot: "S", Quantity: 1, UnitAmount: 500}},
			Allocations: map[ledger.SlotID][]ledger.Allocation{"S": {{Shard: 0, Quantity: 1}}},
		}, w.origin(ledger.CommandCreateHold, "U-1"), w.now)
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
	first, second := build("first"), build("second")
	w.answered(w.store.Commit(t.Context(), first), "")
	var refused *ledger.Refused
	if err := w.store.Commit(t.Context(), second); !errors.As(err, &refused) || len(refused.LegsOf(ledger.LegStock)) != 1 {
		t.Fatalf("the second sale of the last unit gives %v", err)
	}
	w.counters(0, 1, 0)
}

func TestP2_CountersAreTheSumsOverHolds(t *testing.T) {
	// P2: held is the sum over HELD holds, confirmed the sum over CONFIRMED lines.
	w := newWorld(t, 20, 3)
	a, b, c := w.mustCreate("a", 7), w.mustCreate("b", 5), w.mustCreate("c", 4)
	w.counters(4, 16, 0)
	_, err := w.confirm(b.ID, "", request{})
	w.answered(err, "")
	w.counters(4, 11, 5)
	_, err = w.cancel(a.ID, request{})
	w.answered(err, "")
	w.counters(11, 4, 5)
	w.now = c.ReleaseAt
	w.counters(11, 4, 5) // over, but HELD until it is swept
	_, err = w.expire(c.ID)
	w.answered(err, "")
	w.counters(15, 0, 5)
}

func TestP3_HoldLeavesHeldOnce(t *testing.T) {
	// P3: a hold leaves HELD exactly once, and its stock moves exactly once, in every
	// order of two ends, whether decided anew or on a stale hold.
	ends := map[string]func(ledger.Hold, ledger.Origin, time.Time) (ledger.Change, error){
		"confirm": func(h ledger.Hold, o ledger.Origin, now time.Time) (ledger.Change, error) {
			return ledger.Confirm(h, "", o, now)
		},
		"cancel": ledger.Cancel,
		"expire": func(h ledger.Hold, o ledger.Origin, _ time.Time) (ledger.Change, error) {
			return ledger.Expire(h, o, h.ReleaseAt)
		},
	}
	for firstName, first := range ends {
		for secondName, second := range ends {
			t.Run(firstName+" then "+secondName, func(t *testing.T) {
				w := newWorld(t, 10, 1)
				w.mustCreate("other", 5)
				hold := w.mustCreate("h", 3)
				change, err := first(hold, w.origin("first", "U-1"), w.now)
				w.answered(err, "")
				stale, err := second(hold, w.origin("second", "U-1"), w.now)
				w.answered(err, "")
				w.answered(w.store.Commit(t.Context(), change), "")
				after := w.stock()

				var refused *ledger.Refused
				if err := w.store.Commit(t.Context(), stale); !errors.As(err, &refused) || len(refused.LegsOf(ledger.LegHold)) != 1 {
					t.Fatalf("a stale %s gives %v", secondName, err)
				}
				again, err := second(w.hold(hold.ID), w.origin("third", "U-1"), w.now)
				if !again.Empty() {
					t.Fatalf("%s of an ended hold has %d actions, error %v", secondName, again.Actions(), err)
				}
				if !reflect.DeepEqual(w.stock(), after) {
					t.Fatalf("the stock moved twice: %+v, then %+v", after, w.stock())
				}
			})
		}
	}
}

func TestP4_NoConfirmFromReleaseTimeOn(t *testing.T) {
	// P4: after release_at no confirm succeeds, swept or not; before it nobody else gets
	// the stock (B5).
	w := newWorld(t, 1, 1)
	hold := w.mustCreate("h", 1)
	for _, offset := range []time.Duration{-time.Millisecond, 0, time.Millisecond, time.Hour} {
		w.now = hold.ReleaseAt.Add(offset)
		_, err := w.create("other", 1)
		w.answered(err, ledger.CodeInsufficientStock)
		if offset < 0 {
			continue
		}
		_, err = w.confirm(hold.ID, "", request{})
		w.answered(err, ledger.CodeHoldNotActive)
	}
	w.counters(0, 1, 0)
	w.now = hold.ReleaseAt.Add(-time.Millisecond)
	_, err := w.expire(hold.ID)
	w.answered(err, ledger.CodeHoldNotDue)
	_, err = w.confirm(hold.ID, "", request{})
	w.answered(err, "")
	w.counters(0, 0, 1)
}

func TestP4_ConditionOnTimeIsInTheWrite(t *testing.T) {
	// P4: a confirm that was decided in time but is written at release_at is refused,
	// because the condition travels with the write (J4).
	w := newWorld(t, 1, 1)
	hold := w.mustCreate("h", 1)
	change, err := ledger.Confirm(hold, "", w.origin(ledger.CommandConfirmHold, "shop"), hold.ReleaseAt.Add(-time.Millisecond))
	w.answered(err, "")
	if got := change.Holds[0].When; got != ledger.BeforeRelease {
		t.Fatalf("the confirm requires %v", got)
	}
	change.At = hold.ReleaseAt
	var refused *ledger.Refused
	if err := w.store.Commit(t.Context(), change); !errors.As(err, &refused) {
		t.Fatalf("a confirm written at release_at gives %v", err)
	}
	w.counters(0, 1, 0)
}

func TestP5_TransitionIsOneChange(t *testing.T) {
	// P5: a transition, its stock, its event and its idempotency record commit together
	// or not at all.
	w := newWorld(t, 4, 1)
	id := holdID("h")
	w.holds = append(w.holds, id)
	key := request{owner: "U-1", key: "K", body: "5 units"}
	_, err := w.createHold(id, key, []ledger.Quote{{Slot: "S", Quantity: 5, UnitAmount: 500}})
	w.answered(err, ledger.CodeInsufficientStock)
	w.counters(4, 0, 0)
	_, err = w.store.Hold(t.Context(), id)
	w.answered(err, ledger.CodeHoldNotFound)
	if events, err := w.store.HoldEvents(t.Context(), id); err != nil || len(events) != 0 {
		t.Fatalf("a refused hold has %d events, error %v", len(events), err)
	}
	record := ledger.NewIdempotencyID("U-1", ledger.CommandCreateHold, "K")
	if _, found, err := w.store.IdempotencyRecord(t.Context(), record); err != nil || found {
		t.Fatalf("a refused hold has a record: %t, error %v", found, err)
	}

	_, err = w.createHold(id, key, []ledger.Quote{{Slot: "S", Quantity: 4, UnitAmount: 500}})
	w.answered(err, "")
	w.counters(0, 4, 0)
	if events, err := w.store.HoldEvents(t.Context(), id); err != nil || len(events) != 1 || events[0].ID != w.last.Events[0].ID {
		t.Fatalf("a hold has %d events, error %v", len(events), err)
	}
	if _, found, err := w.store.IdempotencyRecord(t.Context(), record); err != nil || !found {
		t.Fatalf("a hold has its record: %t, error %v", found, err)
	}
}

func TestP6_OneKeyOneEffectOneAnswer(t *testing.T) {
	// P6: the same key with the same request has one effect and one answer; with another
	// request it is an error; another owner's key is another key.
	w := newWorld(t, 10, 1)
	create := func(name string, owner ledger.OwnerID, body string) (string, error) {
		w.holds = append(w.holds, holdID(name))
		return w.createHold(holdID(name), request{owner: owner, key: "K", body: body}, []ledger.Quote{{Slot: "S", Quantity: 1, UnitAmount: 500}})
	}
	first, err := create("first", "U-1", "one")
	w.answered(err, "")
	again, err := create("second", "U-1", "one")
	w.answered(err, "")
	if again != first {
		t.Fatalf("the same request is answered %q and then %q", first, again)
	}
	_, err = create("third", "U-1", "two")
	w.answered(err, ledger.CodeKeyReused)
	other, err := create("fourth", "U-2", "one")
	w.answered(err, "")
	if other == first {
		t.Fatalf("another owner got the answer %q", other)
	}
	w.counters(8, 2, 0)

	w.now = w.now.Add(ledger.IdempotencyRetainFor - time.Millisecond)
	again, err = create("fifth", "U-1", "one")
	w.answered(err, "")
	if again != first {
		t.Fatalf("just before its end the record answers %q", again)
	}
	w.now = w.now.Add(time.Millisecond)
	again, err = create("sixth", "U-1", "one")
	w.answered(err, "")
	if again == first {
		t.Fatal("from its end on the record still answers")
	}
	w.counters(7, 3, 0)
}

func TestP10_SoldOutOnlyWhenAllShardsAre(t *testing.T) {
	// P10: "sold out" is said only when it is true at one consistent moment, over all
	// shards together.
	w := newWorld(t, 12, 4)
	for i := range 6 {
		w.mustCreate(string(rune('a'+i)), 2) // the last ones fit nowhere whole
	}
	w.counters(0, 12, 0)
	_, err := w.create("more", 1)
	w.answered(err, ledger.CodeInsufficientStock)
	var e *ledger.Error
	if !errors.As(err, &e) || !reflect.DeepEqual(e.Shortages, []ledger.Shortage{{Slot: "S", Requested: 1}}) {
		t.Fatalf("the refusal is %+v", err)
	}
	_, err = w.cancel(holdID("c"), request{})
	w.answered(err, "")
	w.mustCreate("again", 2)
	w.counters(0, 12, 0)
}
