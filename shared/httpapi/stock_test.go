package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// Case A1: more units were sold than existed when many buyers came at once.
func TestCaseA1_LastUnits(t *testing.T) {
	for _, shards := range []int{1, 4} {
		t.Run(fmt.Sprintf("10 units on %d shards, 200 buyers", shards), func(t *testing.T) {
			f := newFixture(t)
			f.define("seat", 10, fmt.Sprintf(`"shards":%d`, shards))
			race(f, "seat", 200, 10)
			f.counters("seat", 0, 10, 0, 10)
			f.balanced()
		})
	}
	t.Run("1 unit, 50 buyers, 200 rounds", func(t *testing.T) {
		f := newFixture(t)
		for round := range 200 {
			slot := fmt.Sprintf("seat-%d", round)
			f.define(slot, 1)
			race(f, slot, 50, 1)
		}
		f.balanced()
	})
}

// race lets buyers ask for one unit each at once, while a reader watches the numbers
// without a pause until the last of them is answered.
func race(f *fixture, slot string, buyers, units int) {
	f.t.Helper()
	var made, short, other, answered atomic.Int64
	atOnce(buyers+1, func(i int) {
		if i == buyers {
			for first := true; first || answered.Load() < int64(buyers); first = false {
				if a := f.get("/v1/slots/"+slot, "", catalog()); a.status != http.StatusOK || strings.Contains(a.body, ":-") {
					f.t.Errorf("a reader saw %d %s", a.status, a.body)
				}
			}
			return
		}
		defer answered.Add(1)
		a := f.create(owner(fmt.Sprintf("U-%d", i)), line(slot, 1), f.key())
		switch {
		case a.status == http.StatusCreated:
			made.Add(1)
		case a.status == http.StatusConflict && a.text("code") == "insufficient_stock":
			short.Add(1)
		default:
			other.Add(1)
			f.t.Errorf("status %d: %s", a.status, a.body)
		}
	})
	if made.Load() != int64(units) || short.Load() != int64(buyers-units) || other.Load() != 0 {
		f.t.Errorf("%d made, %d short, %d other; want %d, %d, 0", made.Load(), short.Load(), other.Load(), units, buyers-units)
	}
}

// Case A2: units that were checked early were gone when the order was booked.
func TestCaseA2_CapacityBelowHeld(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	hold := f.mustHold(owner("U"), "seat", 3)
	patch := func(body string) answer {
		return f.do(call{method: http.MethodPatch, path: "/v1/slots/seat", body: body, claims: catalog(), headers: f.key()})
	}
	refused := patch(`{"capacity":2}`)
	refused.wantProblem(http.StatusConflict, "capacity_in_use")
	if got := refused.members("slots", "slot_id"); !slices.Equal(got, []string{"seat"}) {
		t.Errorf("the problem names %v", got)
	}
	f.post("/v1/holds/"+hold+"/confirm", "", service(), f.key()).want(http.StatusOK)
	f.counters("seat", 2, 0, 3, 5)
	f.balanced()
}

// Case A2, second part: operators and buyers change one slot at once, and nobody loses.
func TestCaseA2_CapacityDeltasBesideHolds(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 50)
	atOnce(100, func(i int) {
		var a answer
		want := http.StatusOK
		if i%2 == 0 {
			a = f.do(call{method: http.MethodPatch, path: "/v1/slots/seat", body: `{"capacity_delta":1}`, claims: catalog(), headers: f.key()})
		} else {
			want = http.StatusCreated
			a = f.create(owner(fmt.Sprintf("U-%d", i)), line("seat", 1), f.key())
		}
		if a.status != want {
			t.Errorf("status %d, want %d: %s", a.status, want, a.body)
		}
	})
	f.counters("seat", 50, 50, 0, 100)
	f.balanced()
}

// Case A6: the lock was different for each user, so it protected nothing.
func TestCaseA6_TwoUsersOneUnit(t *testing.T) {
	f := newFixture(t)
	for round := range 500 {
		slot := fmt.Sprintf("seat-%d", round)
		f.define(slot, 1)
		race(f, slot, 2, 1)
	}
	f.balanced()
}

// Case B12: going back in the checkout showed buyers their own units as sold out. The
// foreign buyer learns of no hold.
func TestCaseB12_OwnUnitsAreTaken(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 1)
	hold := f.mustHold(owner("U"), "seat", 1)
	for _, name := range []string{"U", "V"} {
		a := f.create(owner(name), line("seat", 1), f.key())
		a.wantProblem(http.StatusConflict, "insufficient_stock")
		if name == "V" && strings.Contains(a.body, hold) {
			t.Errorf("V learns of the hold of U: %s", a.body)
		}
	}
	f.counters("seat", 0, 1, 0, 1)
	f.balanced()
}

// Case F1: repeating an item on two lines took more units than there were.
func TestCaseF1_RepeatedLines(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 108)
	twice := func(a, b int) string {
		return fmt.Sprintf(`{"lines":[{"slot_id":"seat","quantity":%d,"unit_amount":1000},{"slot_id":"seat","quantity":%d,"unit_amount":1000}]}`, a, b)
	}
	a := f.create(owner("U"), twice(97, 23), f.key())
	a.wantProblem(http.StatusConflict, "insufficient_stock")
	if got := a.members("slots", "slot_id"); !slices.Equal(got, []string{"seat"}) {
		t.Errorf("short slots are %v, want the slot once", got)
	}
	if got := a.members("slots", "requested"); !slices.Equal(got, []string{"120"}) {
		t.Errorf("requested is %v, want the sum", got)
	}
	f.counters("seat", 108, 0, 0, 108)
	f.create(owner("U"), twice(97, 11), f.key()).want(http.StatusCreated)
	f.counters("seat", 0, 108, 0, 108)
	f.balanced()
}

// Case F3: a refused basket still took some of its items.
func TestCaseF3_AllOrNothing(t *testing.T) {
	f := newFixture(t)
	f.define("A", 10)
	f.define("B", 1)
	body := `{"lines":[{"slot_id":"A","quantity":2,"unit_amount":1000},{"slot_id":"B","quantity":5,"unit_amount":1000}]}`
	a := f.create(owner("U"), body, f.key())
	a.wantProblem(http.StatusConflict, "insufficient_stock")
	if got := a.members("slots", "slot_id"); !slices.Equal(got, []string{"B"}) {
		t.Errorf("short slots are %v, want only B", got)
	}
	f.counters("A", 10, 0, 0, 10)
	f.counters("B", 1, 0, 0, 1)
	if list := f.get("/v1/holds", "", owner("U")); len(list.members("holds", "hold_id")) != 0 {
		t.Errorf("the owner has holds: %s", list.body)
	}
	for _, slot := range []ledger.SlotID{"A", "B"} {
		events, err := f.store.SlotEvents(t.Context(), slot)
		if err != nil || len(events) != 1 {
			t.Errorf("slot %s has %d events, %v; want only its creation", slot, len(events), err)
		}
	}
	f.balanced()
}

// Case F5: a large basket went over the limit of one transaction.
func TestCaseF5_LargeBaskets(t *testing.T) {
	f := newFixture(t)
	for i := range 101 {
		f.define(fmt.Sprintf("slot-%d", i), 10)
	}
	basket := func(n int) string {
		lines := make([]string, n)
		for i := range lines {
			lines[i] = fmt.Sprintf(`{"slot_id":"slot-%d","quantity":1,"unit_amount":1000}`, i)
		}
		return `{"lines":[` + strings.Join(lines, ",") + `]}`
	}
	for _, n := range []int{51, 97, 100, 101} {
		f.create(owner("U"), basket(n), f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	f.counters("slot-0", 10, 0, 0, 10)
	made := make(map[string]string)
	for _, end := range []string{"confirm", "cancel", "expire"} {
		a := f.create(owner("U"), basket(50), f.key())
		a.want(http.StatusCreated)
		made[end] = a.text("hold_id")
	}
	f.create(owner("U"), basket(49), f.key()).want(http.StatusCreated)
	f.post("/v1/holds/"+made["confirm"]+"/confirm", "{}", service(), f.key()).want(http.StatusOK)
	f.post("/v1/holds/"+made["cancel"]+"/cancel", "{}", owner("U"), f.key()).want(http.StatusOK)
	f.clock.Advance(ledger.HoldForDefault)
	if released, err := f.sweeper.ExpireHold(t.Context(), ledger.HoldID(made["expire"]), "sweep"); !released || err != nil {
		t.Errorf("expire: %t, %v", released, err)
	}
	f.counters("slot-0", 8, 1, 1, 10)
	f.balanced()
}

// Case F5, with stock in shards: a line may take from every shard of its slot, and a hold
// of 50 lines still fits into one transaction, up to 80 stock items. More are refused
// before any write, although there are units enough.
func TestCaseF5_LargeBasketsOfShardedSlots(t *testing.T) {
	const lines = ledger.LinesMax
	f := newFixture(t)
	for i := range lines {
		f.define(fmt.Sprintf("slot-%d", i), 6, `"shards":2`) // three units in each
	}
	// The first split lines want more than a shard has.
	basket := func(split int) string {
		all := make([]string, lines)
		for i := range all {
			quantity := 1
			if i < split {
				quantity = 4
			}
			all[i] = fmt.Sprintf(`{"slot_id":"slot-%d","quantity":%d,"unit_amount":1000}`, i, quantity)
		}
		return `{"lines":[` + strings.Join(all, ",") + `]}`
	}
	f.create(owner("U"), basket(ledger.StockActionsMax-lines+1), f.key()).wantProblem(http.StatusConflict, "quantity_over_limit")
	f.counters("slot-0", 6, 0, 0, 6)
	for _, split := range []int{0, ledger.StockActionsMax - lines} {
		end := func(name string) {
			t.Helper()
			a := f.create(owner("U"), basket(split), f.key())
			a.want(http.StatusCreated)
			hold := a.text("hold_id")
			switch name {
			case "cancel":
				f.post("/v1/holds/"+hold+"/cancel", "{}", owner("U"), f.key()).want(http.StatusOK)
			case "expire":
				f.clock.Advance(ledger.HoldForDefault)
				if released, err := f.sweeper.ExpireHold(t.Context(), ledger.HoldID(hold), "sweep"); !released || err != nil {
					t.Errorf("expire: %t, %v", released, err)
				}
			case "confirm":
				f.post("/v1/holds/"+hold+"/confirm", "{}", service(), f.key()).want(http.StatusOK)
			}
		}
		for _, name := range []string{"cancel", "expire", "confirm"} {
			end(name)
		}
	}
	f.counters("slot-0", 1, 0, 5, 6)
	f.counters("slot-49", 4, 0, 2, 6)
	f.balanced()
}

// Case L6: asking for a negative quantity created stock.
func TestCaseL6_OddQuantities(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 998)
	odd := []string{"-1", "0", "1.5", `"1"`, "1e9", "9223372036854775808", "null", "1e400", "1.0", "1e0", "true", "[1]", "10001"}
	for _, quantity := range odd {
		a := f.create(owner("U"), `{"lines":[{"slot_id":"seat","quantity":`+quantity+`,"unit_amount":1000}]}`, f.key())
		a.wantProblem(http.StatusBadRequest, "invalid_request")
		if got := a.members("errors", "name"); !slices.Equal(got, []string{"/lines/0/quantity"}) {
			t.Errorf("quantity %s: the errors point at %v: %s", quantity, got, a.body)
		}
		short := f.create(owner("U"), `{"slot_ids":["seat"],"quoted_price":1000,"quantity":`+quantity+`}`, f.key())
		short.wantProblem(http.StatusBadRequest, "invalid_request")
	}
	for _, amount := range []string{"-1", "0.5", `"1000"`, "1000000000001", "9223372036854775808", "null"} {
		a := f.create(owner("U"), `{"lines":[{"slot_id":"seat","quantity":1,"unit_amount":`+amount+`}]}`, f.key())
		a.wantProblem(http.StatusBadRequest, "invalid_request")
	}
	f.counters("seat", 998, 0, 0, 998)
	f.balanced()
}

// Case K1: amounts are in the minor unit, whatever decimals the currency has.
func TestCaseK1_MinorUnits(t *testing.T) {
	f := newFixture(t)
	for currency, amount := range map[string]int{"JPY": 500, "KRW": 1000, "USD": 500, "KWD": 1234} {
		body := fmt.Sprintf(`{"resource_type":"r","resource_id":"r","capacity":5,"unit_amount":%d,"currency":%q,"open":true}`, amount, currency)
		f.do(call{method: http.MethodPut, path: "/v1/slots/" + currency, claims: catalog(), body: body}).want(http.StatusCreated)
		a := f.create(owner("U"), fmt.Sprintf(`{"slot_ids":[%q],"quantity":1,"quoted_price":%d}`, currency, amount), f.key())
		a.want(http.StatusCreated)
		if got, want := fmt.Sprint(a.json()["total"]), fmt.Sprintf("map[amount:%d currency:%s]", amount, currency); got != want {
			t.Errorf("total is %s, want %s", got, want)
		}
		f.slots = append(f.slots, ledger.SlotID(currency))
	}
	f.balanced()
}

// Case K3: the client could choose the currency, and the paid amount was not checked.
func TestCaseK3_TheSlotNamesTheCurrency(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	body := `{"lines":[{"slot_id":"seat","quantity":1,"unit_amount":1000,"currency":"JPY"}]}`
	f.create(owner("U"), body, f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	a := f.create(owner("U"), line("seat", 2), map[string]string{"idempotency-key": "k", "cookie": "currency=JPY"})
	a.want(http.StatusCreated)
	if got := fmt.Sprint(a.json()["total"]); got != "map[amount:2000 currency:KRW]" {
		t.Errorf("total is %s", got)
	}
	wrong := f.create(owner("U"), strings.ReplaceAll(line("seat", 1), "1000", "999"), f.key())
	wrong.wantProblem(http.StatusConflict, "price_changed")
	if got := wrong.members("prices", "unit_amount"); !slices.Equal(got, []string{"1000"}) {
		t.Errorf("the new price is %v: %s", got, wrong.body)
	}
	f.counters("seat", 3, 2, 0, 5)
	f.balanced()
}

// When a slot is sold out nearly every caller is refused. They share one look-up of
// alternatives a second.
func TestAlternativesAreLookedUpOnceASecond(t *testing.T) {
	store := &countedSearches{Store: memory.New()}
	f := newFixtureOn(t, store)
	f.define("full", 0)
	f.define("other", 5)
	for _, step := range []struct {
		at       time.Duration
		searches int
	}{{0, 1}, {0, 1}, {999 * time.Millisecond, 1}, {time.Second, 2}, {time.Second, 2}} {
		f.clock.Set(noon.Add(step.at))
		a := f.create(owner("U"), line("full", 1), f.key())
		a.wantProblem(http.StatusConflict, "insufficient_stock")
		if got := a.members("alternatives", "slot_id"); !slices.Equal(got, []string{"other"}) {
			t.Errorf("alternatives %v", got)
		}
		if store.searches != step.searches {
			t.Errorf("after %s: %d searches, want %d", step.at, store.searches, step.searches)
		}
	}
}

// countedSearches counts how often a resource's slots are listed.
type countedSearches struct {
	*memory.Store
	searches int
}

func (s *countedSearches) SlotsOfResource(ctx context.Context, t ledger.ResourceType, id ledger.ResourceID, from, to time.Time, page ledger.Page) ([]ledger.Slot, ledger.Cursor, error) {
	s.searches++
	return s.Store.SlotsOfResource(ctx, t, id, from, to, page)
}

// An insufficient answer proposes open slots of the same resource that have enough, and
// none that was asked for or is too small.
func TestAlternativesAreOfTheSameResource(t *testing.T) {
	f := newFixture(t)
	start := func(day int) string { return fmt.Sprintf(`"starts_at":"2026-12-%02dT09:00:00Z"`, day) }
	f.define("full", 1, start(10))
	f.define("asked-too", 9, start(10))
	f.define("near", 9, start(11))
	f.define("far", 9, start(20))
	f.define("small", 1, start(10))
	f.define("closed", 9, start(10), `"open":false`)
	f.define("long-ago", 9, start(1))
	f.define("elsewhere", 9, start(10), `"resource_id":"KE0902"`)
	f.define("dollars", 9, start(10), `"currency":"USD"`)
	body := `{"lines":[{"slot_id":"full","quantity":2,"unit_amount":1000},{"slot_id":"asked-too","quantity":1,"unit_amount":1000}]}`
	a := f.create(owner("U"), body, f.key())
	a.wantProblem(http.StatusConflict, "insufficient_stock")
	if got := a.members("alternatives", "slot_id"); !slices.Equal(got, []string{"near", "far"}) {
		t.Errorf("alternatives are %v, want near, far: %s", got, a.body)
	}
	if got := a.members("alternatives", "remaining_hint"); !slices.Equal(got, []string{"5", "5"}) {
		t.Errorf("hints are %v, want coarse ones", got)
	}
}
