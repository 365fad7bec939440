package commands_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/system/systemtest"
)

var noon = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

// hooks is a store in memory that lets a test step between a command and its commit, as
// another caller would, and that counts what is asked of it.
type hooks struct {
	ledger.Store
	mutex sync.Mutex
	// beforeCommit runs before each commit, with the number of the try from 1. An error
	// is given in place of the commit's answer.
	beforeCommit func(try int, c ledger.Change) error
	// afterCommit may replace the answer of a commit that was applied.
	afterCommit func(try int) error
	// stock may replace the hint that is read without one moment.
	stock func([]ledger.Stock) []ledger.Stock
	// betweenSlotAndStock runs once, before the first read of stock at one moment.
	betweenSlotAndStock func()
	commits             int
	proofs              int
	hints               int // reads of stock that are not of one moment
	reads               int // slot definitions
	keys                int // looks at what a key was used for
}

// calls is how often each method was called since the last time this was asked, as
// commits, hints, proofs, definitions and keys.
func (h *hooks) calls() [5]int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	out := [5]int{h.commits, h.hints, h.proofs, h.reads, h.keys}
	h.commits, h.hints, h.proofs, h.reads, h.keys = 0, 0, 0, 0, 0
	return out
}

func (h *hooks) IdempotencyRecord(ctx context.Context, id ledger.IdempotencyID) (ledger.IdempotencyRecord, bool, error) {
	h.mutex.Lock()
	h.keys++
	h.mutex.Unlock()
	return h.Store.IdempotencyRecord(ctx, id)
}

func (h *hooks) Commit(ctx context.Context, c ledger.Change) error {
	h.mutex.Lock()
	h.commits++
	try := h.commits
	h.mutex.Unlock()
	if h.beforeCommit != nil {
		if err := h.beforeCommit(try, c); err != nil {
			return err
		}
	}
	err := h.Store.Commit(ctx, c)
	if err == nil && h.afterCommit != nil {
		return h.afterCommit(try)
	}
	return err
}

func (h *hooks) Slots(ctx context.Context, ids []ledger.SlotID) ([]ledger.Slot, error) {
	h.mutex.Lock()
	h.reads++
	h.mutex.Unlock()
	return h.Store.Slots(ctx, ids)
}

func (h *hooks) Stock(ctx context.Context, slots []ledger.Slot) ([]ledger.Stock, error) {
	h.mutex.Lock()
	h.hints++
	h.mutex.Unlock()
	stock, err := h.Store.Stock(ctx, slots)
	if h.stock != nil {
		stock = h.stock(stock)
	}
	return stock, err
}

func (h *hooks) StockAtOneMoment(ctx context.Context, slot ledger.Slot) ([]ledger.Stock, error) {
	h.mutex.Lock()
	h.proofs++
	between := h.betweenSlotAndStock
	h.betweenSlotAndStock = nil
	h.mutex.Unlock()
	if between != nil {
		between()
	}
	return h.Store.StockAtOneMoment(ctx, slot)
}

// bench is a set of commands on a hooked store, and a second one that stands for other
// processes: it has a cache of its own and writes past the hooks.
type bench struct {
	t        testing.TB
	clock    *systemtest.Clock
	store    *hooks
	commands *commands.Commands
	others   *commands.Commands
	slots    []ledger.SlotID
	mutex    sync.Mutex
	holds    []ledger.HoldID
}

func newBench(t testing.TB) *bench {
	t.Helper()
	inner := memory.New()
	b := &bench{t: t, clock: systemtest.NewClock(noon), store: &hooks{Store: inner}}
	b.commands = commands.New(b.store, b.clock, systemtest.NewRandom(1))
	b.others = commands.New(inner, b.clock, systemtest.NewRandom(2))
	return b
}

func definition(capacity ledger.Units, shards int) ledger.SlotDefinition {
	return ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: "KE0901", Capacity: capacity, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: shards},
	}
}

// define makes or redefines a slot as another process would.
func (b *bench) define(id ledger.SlotID, d ledger.SlotDefinition) {
	b.t.Helper()
	if _, err := b.others.PutSlot(b.t.Context(), commands.Request{Actor: "catalog"}, id, d, renderSlot); err != nil {
		b.t.Fatal(err)
	}
	if !slices.Contains(b.slots, id) {
		b.slots = append(b.slots, id)
	}
}

func renderSlot(slot ledger.Slot, _ ledger.Policy, c ledger.Counters, created bool) (ledger.Response, error) {
	return ledger.Response{Status: 200, Body: fmt.Appendf(nil, "%s v%d %+v %t", slot.ID, slot.Version, c, created)}, nil
}

// render says the hold's id, status and the moment.
func (b *bench) render(h ledger.Hold, now time.Time) (ledger.Response, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if !slices.Contains(b.holds, h.ID) {
		b.holds = append(b.holds, h.ID)
	}
	return ledger.Response{Status: 201, Body: fmt.Appendf(nil, "%s %s %s", h.ID, h.Status, now.Format("15:04:05.000"))}, nil
}

func request(key string) commands.Request {
	return commands.Request{Actor: "owner:U", RequestID: "request", Owner: "U", Key: ledger.IdempotencyKey(key), Fingerprint: "same"}
}

func quote(id ledger.SlotID, quantity ledger.Units) []ledger.Quote {
	return []ledger.Quote{{Slot: id, Quantity: quantity, UnitAmount: 1000}}
}

func (b *bench) create(by *commands.Commands, r commands.Request, quotes []ledger.Quote) (commands.Answer, error) {
	return by.CreateHold(b.t.Context(), r, commands.HoldWish{Quotes: quotes}, b.render)
}

// mustHold makes a hold as another process would, and returns it.
func (b *bench) mustHold(id ledger.SlotID, quantity ledger.Units) ledger.Hold {
	b.t.Helper()
	var made ledger.Hold
	_, err := b.others.CreateHold(b.t.Context(), request(""), commands.HoldWish{Quotes: quote(id, quantity)}, func(h ledger.Hold, now time.Time) (ledger.Response, error) {
		made = h
		return b.render(h, now)
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

// takeFrom makes a hold of one unit of that shard, as another process would.
func (b *bench) takeFrom(id ledger.SlotID, shard ledger.Shard) ledger.Hold {
	b.t.Helper()
	for range 200 {
		hold := b.mustHold(id, 1)
		if hold.Lines[0].Shards[0].Shard == shard {
			return hold
		}
		b.cancel(hold.ID)
	}
	b.t.Fatalf("no hold took from shard %d of %s", shard, id)
	return ledger.Hold{}
}

// cancel gives a hold back as another process would.
func (b *bench) cancel(id ledger.HoldID) {
	b.t.Helper()
	if _, err := b.others.CancelHold(b.t.Context(), request(""), id, b.render); err != nil {
		b.t.Fatal(err)
	}
}

// patch changes a slot as another process would.
func (b *bench) patch(id ledger.SlotID, patch ledger.SlotPatch) {
	b.t.Helper()
	if _, err := b.others.PatchSlot(b.t.Context(), commands.Request{Actor: "catalog"}, id, patch, renderSlot); err != nil {
		b.t.Fatal(err)
	}
}

// hold reads a hold as it is stored.
func (b *bench) hold(id ledger.HoldID) ledger.Hold {
	b.t.Helper()
	hold, err := b.store.Hold(b.t.Context(), id)
	if err != nil {
		b.t.Fatal(err)
	}
	return hold
}

// last is the hold that was made last.
func (b *bench) last() ledger.Hold {
	b.t.Helper()
	return b.hold(b.holds[len(b.holds)-1])
}

// refusal is err as the ledger's error of that code.
func (b *bench) refusal(err error, code ledger.Code) *ledger.Error {
	b.t.Helper()
	b.wantCode(err, code)
	var e *ledger.Error
	if !errors.As(err, &e) {
		b.t.Fatalf("%v is not an answer of the ledger", err)
	}
	return e
}

func (b *bench) wantCode(err error, code ledger.Code) {
	b.t.Helper()
	if got := ledger.CodeOf(err); got != code {
		b.t.Fatalf("error %v has code %q, want %q", err, got, code)
	}
}

// wantCounters checks the sum over a slot's shards.
func (b *bench) wantCounters(id ledger.SlotID, available, held, confirmed ledger.Units) {
	b.t.Helper()
	slots, err := b.store.Store.Slots(b.t.Context(), []ledger.SlotID{id})
	if err != nil || len(slots) != 1 {
		b.t.Fatalf("slot %s: %v, %v", id, slots, err)
	}
	stock, err := b.store.Store.Stock(b.t.Context(), slots)
	if err != nil {
		b.t.Fatal(err)
	}
	var got ledger.Counters
	for _, s := range stock {
		got = got.Plus(s.Counters)
	}
	if want := (ledger.Counters{Available: available, Held: held, Confirmed: confirmed, Capacity: available + held + confirmed}); got != want {
		b.t.Errorf("slot %s is at %+v, want %+v", id, got, want)
	}
}

func (b *bench) balanced() {
	b.t.Helper()
	ledgertest.CheckBooks(b.t, b.store.Store, b.slots, b.holds)
}
