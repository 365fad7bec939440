package saga_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
)

// permutationSignalsMax is the length of the orders that are tried: all pairs, and all
// triples, with each signal once, twice or three times.
const permutationSignalsMax = 3

// signal is something that reaches the saga, or that happens to what it works on.
type signal string

// The signals. Those of the first group only bring news, or make somebody look: they may
// change no end. The others are facts.
const (
	toldAuthorized     signal = "notice: authorized"
	toldCaptured       signal = "notice: captured"
	toldDeclined       signal = "notice: declined"
	toldCanceled       signal = "notice: cancelled"
	toldRequiresAction signal = "notice: requires action"
	toldRefunded       signal = "notice: refunded"
	ticked             signal = "tick"
	swept              signal = "sweep"

	holdCancelled        signal = "owner cancels the hold"
	reservationCancelled signal = "owner cancels the reservation"
	paid                 signal = "buyer pays"
	declined             signal = "buyer is declined"
	attempted            signal = "new attempt"
	timePassed           signal = "expiry time passes"
	outageBegan          signal = "outage begins"
	outageEnded          signal = "outage ends"
)

func newsSignals() []signal {
	return []signal{toldAuthorized, toldCaptured, toldDeclined, toldCanceled, toldRequiresAction, toldRefunded, ticked, swept}
}

func allSignals() []signal {
	return append(newsSignals(), holdCancelled, reservationCancelled, paid, declined, attempted, timePassed, outageBegan, outageEnded)
}

// orders are all sequences of 1 to permutationSignalsMax of the signals.
func orders(of []signal) [][]signal {
	all, last := [][]signal{}, [][]signal{{}}
	for range permutationSignalsMax {
		var longer [][]signal
		for _, order := range last {
			for _, s := range of {
				longer = append(longer, append(slices.Clone(order), s))
			}
		}
		all, last = append(all, longer...), longer
	}
	return all
}

// receive lets the signal happen.
func (h *history) receive(s signal) {
	h.t.Helper()
	h.note("%s", s)
	switch s {
	case ticked:
		h.run(nil)
	case swept:
		h.sweepDue()
	case holdCancelled:
		h.cancelHold()
	case reservationCancelled:
		h.cancel(commands.CancelByOwner)
	case paid:
		h.newest(h.bank.Pay)
	case declined:
		h.newest(h.bank.Decline)
	case attempted:
		h.startAttempt(false)
	case timePassed:
		h.reach(h.storedHold(h.held).ReleaseAt)
	case outageBegan:
		h.faults.outage = true
	case outageEnded:
		h.faults.outage = false
	default:
		notice := h.noticeOf(s)
		h.run(&notice)
	}
}

// newest lets the buyer do something with the newest payment. One that can't be paid any
// more refuses, as it does in life.
func (h *history) newest(act func(string) (paymenttest.Payment, error)) {
	if all := h.bank.Payments(); len(all) > 0 {
		if _, err := act(string(all[len(all)-1].ID)); err != nil {
			h.note("(refused)")
		}
	}
}

// noticeOf is a notice of that kind of the first payment, true or not: it may have been
// overtaken, or be about a state that has not lasted. The same kind is the same event.
func (h *history) noticeOf(s signal) payment.Notice {
	status := map[signal]payment.Status{
		toldAuthorized: payment.StatusAuthorized, toldCaptured: payment.StatusCaptured, toldDeclined: payment.StatusDeclined,
		toldCanceled: payment.StatusVoided, toldRequiresAction: payment.StatusRequiresAction, toldRefunded: payment.StatusCaptured,
	}[s]
	p := h.bank.Payments()[0]
	return payment.Notice{
		ID: ledger.ProviderEventID(strings.ReplaceAll(string(s), " ", "_")), Type: string(s), Payment: p.ID, Reservation: p.Reservation,
		Attempt: p.Attempt, OccurredAt: tenOClock, AmountMinor: 3000, Currency: "USD", Status: status,
	}
}

// outcome is what a reservation has come to, for its buyer, the stock and the bank.
func (h *history) outcome() string {
	r, book := h.current(), h.bank.Book(h.id, "USD")
	return fmt.Sprintf("%s %q, seats %+v, dinners %+v, captured %d in %d, refunded %d, reserved %d",
		r.Status, r.Reason, h.counters(seat), h.counters(dinner), book.CapturedMinor, book.Captures, book.RefundedMinor, book.AuthorizedMinor)
}

// permute plays one order after the scenario's own beginning.
func permute(t *testing.T, s setting, begin func(*history), order []signal) *history {
	t.Helper()
	dice := rand.New(rand.NewPCG(1, 1))
	h := newHistory(t, memory.New(), s, dice)
	h.startAttempt(false)
	begin(h)
	for _, s := range order {
		h.receive(s)
		h.checkStep()
	}
	h.faults = faults{}
	h.notices() // whatever else the provider told is lost
	h.untilNothingIsDue()
	h.checkEnd()
	return h
}

func permutationSetting(decline ledger.OnDecline, late ledger.LatePayment) setting {
	return setting{onDecline: decline, latePayment: late, delivery: ledger.DeliveryNone, capacity: 2, shards: 1}
}

// Signals in any order, once or more often, lead to one of the few ends that are right for
// them (cases C1, D5, D6, D8 and D13).
func TestP8_SignalsInAnyOrderEndInOneOfFewWays(t *testing.T) {
	played, met := 0, map[string]int{}
	for _, s := range []setting{
		permutationSetting(ledger.OnDeclineRelease, ledger.LatePaymentReacquire),
		permutationSetting(ledger.OnDeclineKeep, ledger.LatePaymentRefund),
	} {
		for _, order := range orders(allSignals()) {
			h := permute(t, s, func(*history) {}, order)
			r := h.current()
			end := fmt.Sprintf("%s %s", r.Status, r.Reason)
			if right := rightEnds(s, order); !slices.Contains(right, end) {
				h.fail("it ends %s, and should be one of %q", end, right)
			}
			played++
			met[end]++
		}
	}
	t.Logf("%d orders, ends: %v", played, met)
}

// rightEnds are the ends that a buyer may expect of what has happened.
func rightEnds(s setting, order []signal) []string {
	happened := func(x signal) bool { return slices.Contains(order, x) }
	const (
		bought, late, over = "COMPLETED ", "CANCELED late", "CANCELED expired"
		refused            = "CANCELED declined"
		owner, refunded    = "CANCELED owner_canceled", "REFUNDED owner_canceled"
	)
	var ends []string
	if happened(declined) && s.onDecline == ledger.OnDeclineRelease {
		ends = append(ends, refused)
	}
	if happened(timePassed) {
		ends = append(ends, over)
	}
	switch {
	case happened(reservationCancelled):
		ends = append(ends, owner)
		if happened(paid) {
			ends = append(ends, refunded)
		}
	case happened(paid):
		ends = append(ends, bought)
	default:
		ends = append(ends, over)
	}
	if happened(paid) && happened(timePassed) && s.latePayment == ledger.LatePaymentRefund {
		ends = append(ends, late)
	}
	return ends
}

// facts is what has happened when the news of it arrives.
type facts struct {
	name string
	setting
	begin func(*history)
	end   string // status and reason
}

func allFacts() []facts {
	plain := permutationSetting(ledger.OnDeclineRelease, ledger.LatePaymentReacquire)
	kept := permutationSetting(ledger.OnDeclineKeep, ledger.LatePaymentReacquire)
	lies := plain
	lies.script.VoidLies = true
	after := func(all ...signal) func(*history) {
		return func(h *history) {
			for _, s := range all {
				h.receive(s)
			}
		}
	}
	late := func(captured bool) func(*history) {
		return func(h *history) {
			h.receive(timePassed)
			h.receive(ticked)
			h.newest(func(id string) (paymenttest.Payment, error) { return h.bank.LateSuccess(id, captured) })
		}
	}
	return []facts{
		{"nothing", plain, after(), "CANCELED expired"},
		{"paid", plain, after(paid), "COMPLETED "},
		{"paid, and everything is done", plain, after(paid, ticked), "COMPLETED "},
		{"declined", plain, after(declined), "CANCELED declined"},
		{"declined, and then paid", plain, after(declined, paid), "COMPLETED "},
		{"declined, kept, and then nothing", kept, after(declined), "CANCELED expired"},
		{"the second attempt is paid", kept, after(declined, attempted, paid), "COMPLETED "},
		{"paid, and the hold is over", plain, after(paid, timePassed), "COMPLETED "},
		{"paid, and the hold is over: refund", permutationSetting(ledger.OnDeclineRelease, ledger.LatePaymentRefund), after(paid, timePassed), "CANCELED late"},
		{"paid, and the hold is over: review", permutationSetting(ledger.OnDeclineRelease, ledger.LatePaymentReview), after(paid, timePassed), "REVIEW late"},
		{"over, and not paid", plain, after(timePassed), "CANCELED expired"},
		{"cancelled by its owner", plain, after(reservationCancelled), "CANCELED owner_canceled"},
		{"paid, and cancelled by its owner", plain, after(paid, reservationCancelled), "CANCELED owner_canceled"},
		{"sold, and cancelled by its owner", plain, after(paid, ticked, reservationCancelled), "REFUNDED owner_canceled"},
		{"authorized after it was voided", lies, late(false), "COMPLETED "},
		{"captured after it was voided", lies, late(true), "COMPLETED "},
		{"captured after it was voided, sold out", lies, func(h *history) {
			late(true)(h)
			h.rival(seat, 2)
		}, "REFUNDED sold_out"},
		{"a seat is returned", plain, func(h *history) {
			after(paid, ticked)(h)
			h.cancel(commands.CancelByOwner, ledger.ReturnLine{Slot: seat, Quantity: 1})
		}, "COMPLETED "},
		{"two minutes of outage", plain, func(h *history) {
			after(paid, outageBegan, ticked)(h)
			h.clock.Advance(2 * time.Minute)
			after(outageEnded)(h)
		}, "COMPLETED "},
	}
}

// The news of the same facts, in any order, once, twice, false or never, leads to exactly
// one end.
func TestP8_NewsInAnyOrderEndsInExactlyOneWay(t *testing.T) {
	played := 0
	for _, f := range allFacts() {
		t.Run(f.name, func(t *testing.T) {
			silent := permute(t, f.setting, f.begin, nil)
			want := silent.outcome()
			if !strings.HasPrefix(want, strings.Replace(f.end, " ", ` "`, 1)+`"`) {
				silent.fail("without any news it ends %s, want %s", want, f.end)
			}
			for _, order := range orders(newsSignals()) {
				if h := permute(t, f.setting, f.begin, order); h.outcome() != want {
					h.fail("it ends\n%s\nand without any news\n%s", h.outcome(), want)
				}
				played++
			}
		})
	}
	t.Logf("%d orders of news", played)
}

// What the provider did is found out without any news of it. Each of these needs its own
// look: at a refused capture, at an older attempt, at a payment whose creation has had no
// answer.
func TestP8_LostNewsIsFoundOut(t *testing.T) {
	kept := permutationSetting(ledger.OnDeclineKeep, ledger.LatePaymentReacquire)
	kept.script.VoidLies = true
	plain := permutationSetting(ledger.OnDeclineRelease, ledger.LatePaymentReacquire)
	for _, f := range []facts{
		{"the authorization of what is sold has lapsed", plain, func(h *history) {
			lose := h.provider.Before
			h.provider.Before = func(_ context.Context, c paymenttest.Call) error {
				if c.Method == paymenttest.MethodCapture {
					return errRequestLost
				}
				return nil
			}
			h.receive(paid)
			h.receive(ticked)
			h.newest(h.bank.Lapse)
			h.provider.Before = lose
		}, "CANCELED authorization_lost"},
		{"an older attempt has taken money", kept, func(h *history) {
			h.receive(attempted)
			h.receive(paid)
			h.receive(ticked)
			if _, err := h.bank.LateSuccess(string(h.bank.Payments()[0].ID), true); err != nil {
				h.fail("the late success: %v", err)
			}
		}, "COMPLETED "},
	} {
		t.Run(f.name, func(t *testing.T) {
			h := permute(t, f.setting, f.begin, nil) // it audits the money
			if r := h.current(); fmt.Sprintf("%s %s", r.Status, r.Reason) != f.end {
				h.fail("it ends %s %s, want %s", r.Status, r.Reason, f.end)
			}
		})
	}
}

// A creation that is repeated under its key tells how the payment was at first. Money that
// has come since must not be voided as if it had not (case D9).
func TestP8_ARepeatedCreationIsNotTakenForHowThePaymentIs(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 1))
	h := newHistory(t, memory.New(), permutationSetting(ledger.OnDeclineRelease, ledger.LatePaymentReacquire), dice)
	h.faults.answerLost = 1
	h.startAttempt(false)
	h.receive(paid)
	h.receive(timePassed)
	h.untilNothingIsDue()
	if r := h.current(); r.Status != ledger.ReservationCompleted {
		h.fail("it ends %s %s", r.Status, r.Reason)
	}
	h.checkEnd()
}
