package commandstest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

const (
	// processes is how many sets of commands there are, each with caches of its own.
	processes = 2
	// ownersMax bounds the owners who ask at the same time.
	ownersMax = 4
	// unitAmount is the price of everything.
	unitAmount = 1000
	// shardsMax bounds the shards of a slot.
	shardsMax = 16
	// ownerLimit is how much one owner may have of a slot that has a limit.
	ownerLimit = 4
)

var opening = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

// TB is the part of testing.TB that a market needs. A property test's own type has it too.
type TB interface {
	ledgertest.TB
	Log(args ...any)
}

// Run says on what a market is held.
type Run struct {
	// Draw decides all that is left to chance: a number from least to most, both included.
	Draw  func(name string, least, most int) int
	Store ledger.Store
	// Random draws ids. Runs on one table need different ones.
	Random system.Random
	// Prefix begins the names of slots and owners.
	Prefix string
	// Turns is how many calls of the store are made before the market closes.
	Turns int
}

// market is one run.
type market struct {
	TB
	run      Run
	books    *books
	clock    *systemtest.Clock
	commands [processes]*commands.Commands
	slots    []ledger.SlotID
	limited  map[ledger.SlotID]bool
	owners   []ledger.OwnerID
	// under way is the request of each stall; nil for one that has none. The owners have the
	// first ones, then come the operator and the sweep.
	underWay []*errand
	log      []string
	tally    Tally
}

// Tally counts what was asked and answered, as "create" for a success or
// "create limit_reached" for a refusal, and beside that "split" for holds that took one slot
// from several shards, "wide" for holds of ledger.LinesMax slots, and "again" for requests
// that tried to write more than once.
type Tally map[string]int

// Check holds a market and looks at the promises after every write: that counters are never
// negative and add up (P1), that they are what the holds take (P2), that a hold ends once
// (P3), and for every request that is refused as "insufficient", that so little was there at
// some moment between the question and the answer (P10), and as "limit reached", that the
// owner had so much. Every request must end inside its deadline. When the market has closed,
// a newcomer must get all that is left. What happened is added to the tally, by which a test
// knows that it has seen something.
func Check(t TB, run Run, tally Tally) {
	m := &market{
		TB: t, run: run, tally: tally, books: newBooks(run.Store), clock: systemtest.NewClock(opening), limited: make(map[ledger.SlotID]bool),
	}
	for i := range m.commands {
		m.commands[i] = commands.New(m.books, m.clock, run.Random)
	}
	defer m.close()
	m.open()
	for range run.Turns {
		m.turn()
	}
	for i := range m.underWay {
		for m.underWay[i] != nil {
			m.resume(i)
		}
	}
	m.sellTheRest()
	ledgertest.CheckBooks(t, run.Store, m.slots, m.books.order)
	split, wide := m.books.shapes()
	m.tally["split"] += split
	m.tally["wide"] += wide
}

// close lets no goroutine be left over, also when the run has failed.
func (m *market) close() {
	for _, e := range m.underWay {
		if e != nil {
			e.callOff()
		}
	}
}

func (m *market) draw(name string, least, most int) int { return m.run.Draw(name, least, most) }

// oneOf draws one of the values.
func oneOf[T any](m *market, name string, values []T) T {
	return values[m.draw(name, 0, len(values)-1)]
}

// fail ends the run, with all that was asked and answered.
func (m *market) fail(format string, args ...any) {
	for _, line := range m.log {
		m.Log(line)
	}
	m.Fatalf(format, args...)
}

// open defines slots and owners.
func (m *market) open() {
	count := oneOf(m, "slots", []int{1, 1, 2, 3, 8, ledger.LinesMax})
	least := oneOf(m, "least", []int{0, 0, 30}) // a scarce market, or a full one
	for i := range count {
		id := ledger.SlotID(fmt.Sprintf("%sS%02d", m.run.Prefix, i))
		policy := ledger.DefaultPolicy()
		policy.HoldFor = time.Duration(m.draw("minutes", 1, 5)) * time.Minute
		if m.limited[id] = m.draw("limited", 0, 3) == 0; m.limited[id] {
			policy.QuantityPerOwnerMax = ownerLimit
		}
		_, err := m.commands[0].PutSlot(m.Context(), commands.Request{Actor: "catalogue"}, id, ledger.SlotDefinition{
			ResourceType: "market", ResourceID: ledger.ResourceID(m.run.Prefix + "stand"), Policy: policy,
			Capacity: ledger.Units(m.draw("capacity", least, least+12)),
			Terms: ledger.Terms{
				Open: true, Price: ledger.Money{AmountMinor: unitAmount, Currency: "EUR"},
				Shards: m.draw("shards", 1, shardsMax),
			},
		}, renderSlot)
		if err != nil {
			m.fail("slot %s: %v", id, err)
		}
		m.slots = append(m.slots, id)
	}
	for i := range m.draw("owners", 2, ownersMax) {
		m.owners = append(m.owners, ledger.OwnerID(fmt.Sprintf("%sU%d", m.run.Prefix, i)))
	}
	m.underWay = make([]*errand, len(m.owners)+2)
}

// turn gives one of the stalls a turn: the next call of its request, or a new one.
func (m *market) turn() {
	i := m.draw("stall", 0, len(m.underWay)-1)
	if m.underWay[i] == nil {
		var e *errand
		switch i {
		case len(m.owners):
			e = m.operate()
		case len(m.owners) + 1:
			e = m.sweep()
		default:
			e = m.shop(m.owners[i])
		}
		if e == nil {
			return
		}
		e.from = m.books.written
		begin(m.Context(), e)
		m.underWay[i] = e
	}
	m.resume(i)
}

func (m *market) resume(i int) {
	e := m.underWay[i]
	e.resume()
	if m.books.broken != nil {
		m.fail("after %s: %v", e.name, m.books.broken)
	}
	if !e.ended {
		return
	}
	m.underWay[i] = nil
	m.log = append(m.log, fmt.Sprintf("%s from write %d to %d: %v", e.name, e.from, m.books.written, e.err))
	if errors.Is(e.err, errCalledOff) || e.ctx.Err() != nil {
		m.fail("%s did not end within %d calls of the store", e.name, callsMax)
	}
	e.cancel()
	m.tally[strings.TrimSpace(e.kind+" "+string(ledger.CodeOf(e.err)))]++
	if e.commits > 1 {
		m.tally["again"]++
	}
	if err := e.judge(e.err); err != nil {
		m.fail("%s: %v", e.name, err)
	}
}

// sellTheRest lets a newcomer buy all that is left of each slot, through processes that have
// learnt all kinds of things about it.
func (m *market) sellTheRest() {
	for i, id := range m.slots {
		left := m.books.leastSince(id, m.books.written)
		if m.limited[id] {
			left = min(left, ownerLimit)
		}
		if m.books.closed[id] || left == 0 {
			continue
		}
		newcomer := commands.Request{Actor: "owner", Owner: ledger.OwnerID(m.run.Prefix + "newcomer")}
		wish := commands.HoldWish{Quotes: []ledger.Quote{{Slot: id, Quantity: left, UnitAmount: unitAmount}}}
		if _, err := m.commands[i%processes].CreateHold(m.Context(), newcomer, wish, renderHold); err != nil {
			m.fail("%d of slot %s are left and nobody gets them: %v", left, id, err)
		}
		if m.books.broken != nil {
			m.fail("selling the rest: %v", m.books.broken)
		}
	}
}

func (m *market) process() *commands.Commands {
	return m.commands[m.draw("process", 0, processes-1)]
}

func renderSlot(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
	return ledger.Response{Status: 200}, nil
}

func renderHold(ledger.Hold, time.Time) (ledger.Response, error) {
	return ledger.Response{Status: 200}, nil
}

// only is a judge that allows success and these refusals.
func only(codes ...ledger.Code) func(error) error {
	return func(err error) error {
		if err == nil {
			return nil
		}
		for _, code := range codes {
			if ledger.CodeOf(err) == code {
				return nil
			}
		}
		return fmt.Errorf("is not an answer to that: %w", err)
	}
}

// asked is an errand of this kind and name.
func asked(run func(ctx context.Context) error, judge func(error) error, kind, format string, args ...any) *errand {
	return &errand{kind: kind, name: fmt.Sprintf(format, args...), run: run, judge: judge}
}
