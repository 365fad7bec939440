package saga_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/system/systemtest"
)

const (
	// interleavings and interleavingsOnTable are how many courses of events are tried on
	// the store in memory and on the DynamoDB engine.
	interleavings        = 2400
	interleavingsOnTable = 100
	// interleavingStepsMax bounds the steps of one course before it is left to settle.
	interleavingStepsMax = 28
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// Whatever happens around a payment, in whatever order, the stock, the money and the
// events tell one story in the end (promises P1 to P3, P8 and P9). The number in the
// name of a part is its seed: -run 'TestP8_.*/^17$' plays it again.
func TestP8_InterleavingsEndWithBalancedBooks(t *testing.T) {
	met := map[ledger.ReservationStatus]int{}
	for seed := range uint64(interleavings) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			h := newHistory(t, memory.New(), anySetting(dice), dice)
			interleave(h)
			met[h.current().Status]++
		})
	}
	t.Logf("ends: %v", met)
}

// The same on the real conditions of the table.
func TestP8_InterleavingsOnTheTableEndWithBalancedBooks(t *testing.T) {
	client, _ := dynamotest.NewTable(t)
	for seed := range uint64(interleavingsOnTable) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 2))
			_, table := dynamotest.NewTable(t)
			store := dynamo.NewStore(client, table, systemtest.NewClock(tenOClock), systemtest.NewRandom(seed))
			interleave(newHistory(t, store, anySetting(dice), dice))
		})
	}
}

func anySetting(dice *rand.Rand) setting {
	s := setting{
		onDecline:   pick(dice, ledger.OnDeclineRelease, ledger.OnDeclineKeep),
		latePayment: pick(dice, ledger.LatePaymentReacquire, ledger.LatePaymentReacquire, ledger.LatePaymentRefund, ledger.LatePaymentReview),
		delivery:    pick(dice, ledger.DeliveryNone, ledger.DeliveryNone, ledger.DeliveryEvent),
		capacity:    pick[ledger.Units](dice, 2, 4), shards: pick(dice, 1, 1, 2),
		lateByProvider: dice.IntN(2) == 0, grants: dice.IntN(3) == 0,
	}
	s.script = pick(dice, paymenttest.Script{}, paymenttest.Script{}, paymenttest.Script{},
		paymenttest.Script{VoidLies: true}, paymenttest.Script{VoidLies: true}, paymenttest.Script{AmountMinor: 2999},
		paymenttest.Script{Currency: "JPY"}, paymenttest.Script{CreateRefused: true}, paymenttest.Script{CaptureRefused: true},
		paymenttest.Script{RefundRefused: true}, paymenttest.Script{AuthorizationLasts: 3 * time.Minute},
		paymenttest.Script{AmountMinor: 3001, VoidLies: true}, paymenttest.Script{RefundRefused: true, VoidLies: true})
	return s
}

func pick[T any](dice *rand.Rand, from ...T) T { return from[dice.IntN(len(from))] }

// interleave lets a course of events happen, audits each step, and lets it settle.
func interleave(h *history) {
	h.startAttempt(false)
	for range 6 + h.dice.IntN(interleavingStepsMax-5) {
		s := h.anyStep()
		h.note("%s", s.name)
		s.do(h)
		h.hooks.before, h.hooks.after, h.faults.commitLost = nil, nil, false
		h.listen()
		h.checkStep()
	}
	h.finish()
}

// step is one thing that may happen.
type step struct {
	name   string
	weight int
	do     func(*history)
}

func (h *history) anyStep() step {
	all, total := steps(), 0
	for _, s := range all {
		total += s.weight
	}
	n := h.dice.IntN(total)
	for _, s := range all {
		if n -= s.weight; n < 0 {
			return s
		}
	}
	panic("unreachable: the weights add up to the total")
}

// steps are all that may happen, with how often.
func steps() []step {
	return []step{
		{"drive", 6, func(h *history) { h.run(nil) }},
		{"sweep", 6, func(h *history) { h.sweepDue() }},
		{"hear", 12, func(h *history) { h.hearAny(false) }},
		{"hear, to be told again", 5, func(h *history) { h.hearAny(true) }},
		{"second attempt", 5, func(h *history) { h.startAttempt(false) }},
		{"start again", 2, func(h *history) { h.startAttempt(true) }},
		{"pay", 9, func(h *history) { h.buyer((*paymenttest.Bank).Pay) }},
		{"decline", 5, func(h *history) { h.buyer((*paymenttest.Bank).Decline) }},
		{"require action", 2, func(h *history) { h.buyer((*paymenttest.Bank).RequireAction) }},
		{"complete action", 2, func(h *history) { h.buyer((*paymenttest.Bank).CompleteAction) }},
		{"authorization lapses", 1, func(h *history) { h.buyer((*paymenttest.Bank).Lapse) }},
		{"late authorization", 3, func(h *history) { h.lateSuccess(false) }},
		{"late capture", 3, func(h *history) { h.lateSuccess(true) }},
		{"refund fails", 1, func(h *history) { h.failRefund() }},
		{"cancel hold", 2, func(h *history) { h.cancelHold() }},
		{"owner cancels", 2, func(h *history) { h.cancel(commands.CancelByOwner) }},
		{"operator cancels", 1, func(h *history) { h.cancel(commands.CancelByOperator) }},
		{"owner returns a seat", 3, func(h *history) { h.cancel(commands.CancelByOwner, ledger.ReturnLine{Slot: seat, Quantity: 1}) }},
		{"owner returns the dinner", 2, func(h *history) {
			h.cancel(commands.CancelByOwner, ledger.ReturnLine{Slot: dinner, Quantity: 1})
		}},
		{"delivered", 3, func(h *history) { h.courier(true) }},
		{"delivery failed", 1, func(h *history) { h.courier(false) }},
		{"seconds pass", 4, func(h *history) { h.clock.Advance(time.Duration(1+h.dice.IntN(9000)) * time.Millisecond) }},
		{"minutes pass", 5, func(h *history) { h.clock.Advance(time.Duration(1+h.dice.IntN(6)) * time.Minute) }},
		{"release time comes", 2, func(h *history) { h.reach(h.storedHold(h.held).ReleaseAt) }},
		{"the millisecond before release", 2, func(h *history) { h.reach(h.storedHold(h.held).ReleaseAt.Add(-time.Millisecond)) }},
		{"unknown time is over", 1, func(h *history) { h.reach(h.storedHold(h.held).ReleaseAt.Add(ledger.UnknownForDefault)) }},
		{"rival takes seats", 4, func(h *history) { h.rival(seat, ledger.Units(1+h.dice.IntN(2))) }},
		{"rival uses credits", 1, func(h *history) {
			if h.grants {
				h.rival(credits, ledger.Units(1+h.dice.IntN(5)))
			}
		}},
		{"seats close", 1, func(h *history) { h.open(seat, false) }},
		{"seats open", 1, func(h *history) { h.open(seat, true) }},
		{"outage", 2, func(h *history) { h.faults.outage = true }},
		{"provider is back", 5, func(h *history) { h.faults = faults{} }},
		{"requests will be lost", 2, func(h *history) { h.faults.requestLost = 1 + h.dice.IntN(5) }},
		{"answers will be lost", 2, func(h *history) { h.faults.answerLost = 1 + h.dice.IntN(5) }},
		{"a write's answer is lost", 4, func(h *history) { h.loseCommit() }},
		{"somebody comes between", 9, func(h *history) { h.comeBetween() }},
	}
}

func (h *history) hearAny(again bool) {
	if len(h.told) > 0 {
		h.hear(h.dice.IntN(len(h.told)), again)
	}
}

// buyer lets the buyer do something with any payment. A payment that is not in a state
// for it refuses, and that is the end of it.
func (h *history) buyer(act func(*paymenttest.Bank, string) (paymenttest.Payment, error)) {
	if all := h.bank.Payments(); len(all) > 0 {
		if p, err := act(h.bank, string(pick(h.dice, all...).ID)); err == nil {
			h.note("payment %s %s", p.ID, p.Status)
		}
	}
}

func (h *history) lateSuccess(captured bool) {
	h.buyer(func(b *paymenttest.Bank, id string) (paymenttest.Payment, error) {
		p, err := b.LateSuccess(id, captured)
		h.lied = h.lied || err == nil
		h.tookByItself[p.ID] = h.tookByItself[p.ID] || captured && err == nil
		return p, err
	})
}

func (h *history) failRefund() {
	for _, p := range h.bank.Payments() {
		for _, r := range p.Refunds {
			if _, err := h.bank.FailRefund(r.ID); err == nil {
				h.refunds = true
				return
			}
		}
	}
}

// reach moves the clock to a time that is not over yet.
func (h *history) reach(at time.Time) {
	if at.After(h.clock.Now()) {
		h.clock.Set(at)
	}
}

// loseCommit drives, and the answer of one of the writes does not arrive.
func (h *history) loseCommit() {
	after := h.dice.IntN(4)
	h.hooks.after = func(ledger.Change) error {
		if after--; after == -1 {
			return &ledger.Error{Code: ledger.CodeOutcomeUnknown, Message: "lost on purpose"}
		}
		return nil
	}
	if h.dice.IntN(4) == 0 {
		h.startAttempt(false)
		return
	}
	h.run(nil)
}

// comeBetween drives, and between one of the decisions and its write somebody else does
// something: another driver, the sweep, the owner, the clock.
func (h *history) comeBetween() {
	before, other := h.dice.IntN(4), h.anyStep()
	h.note("(%s)", other.name)
	h.hooks.before = func(ledger.Change) error {
		if before--; before == -1 {
			hook := h.hooks.before
			h.hooks.before = nil
			other.do(h)
			h.hooks.before = hook
		}
		return nil
	}
	h.listen()
	if len(h.told) > 0 && h.dice.IntN(2) == 0 {
		h.hearAny(false)
		return
	}
	h.run(nil)
}
