package explain_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/explain"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/saga"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
)

const (
	seat ledger.SlotID  = "seat"
	anna ledger.OwnerID = "U-17"
)

var (
	tenOClock   = time.Date(2026, time.March, 1, 10, 0, 0, 0, time.UTC)
	errNoAnswer = errors.New("the provider does not answer")
)

// world is a ledger in memory with a payment provider, and who works on them.
type world struct {
	t        *testing.T
	clock    *systemtest.Clock
	store    *memory.Store
	bank     *paymenttest.Bank
	provider *paymenttest.Provider
	shop     *commands.Commands
	payments *commands.Payments
	driver   *saga.Driver
}

type unmeasured struct{}

// Emit does nothing.
func (unmeasured) Emit(telemetry.Properties, ...telemetry.Measurement) error { return nil }

// newWorld has one slot with five units on so many shards, whose holds are kept for five
// minutes while their payment is unknown.
func newWorld(t *testing.T, shards int) *world {
	clock := systemtest.NewClock(tenOClock)
	bank := paymenttest.NewBank(clock.Now)
	w := &world{t: t, clock: clock, store: memory.New(), bank: bank, provider: paymenttest.NewProvider(bank)}
	w.shop = commands.New(w.store, clock, systemtest.NewRandom(1))
	w.payments = commands.NewPayments(w.shop, w.provider)
	w.driver = saga.NewDriver(saga.Ports{
		Store: w.store, Provider: w.provider, Clock: clock, Random: systemtest.NewRandom(2),
		Metrics: unmeasured{}, Dwells: &telemetry.Spread{}, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	policy := ledger.DefaultPolicy()
	policy.GraceFor, policy.Payment.UnknownFor = 0, 5*time.Minute
	_, err := w.shop.PutSlot(t.Context(), commands.Request{Actor: "catalog:kim"}, seat, ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "hamlet", Capacity: 5, Policy: policy,
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "USD"}, Shards: shards},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	w.check(err)
	return w
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) asks() commands.Request {
	return commands.Request{Actor: ledger.Actor("owner:" + anna), Owner: anna, RequestID: "request_test"}
}

func quotes(quantity ledger.Units) []ledger.Quote {
	return []ledger.Quote{{Slot: seat, Quantity: quantity, UnitAmount: 1000}}
}

func (w *world) hold(quantity ledger.Units) ledger.HoldID {
	w.t.Helper()
	var made ledger.HoldID
	_, err := w.shop.CreateHold(w.t.Context(), w.asks(), commands.HoldWish{Quotes: quotes(quantity)}, func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
		made = h.ID
		return ledger.Response{}, nil
	})
	w.check(err)
	return made
}

func (w *world) resize(id ledger.HoldID, quantity ledger.Units) {
	w.t.Helper()
	_, err := w.shop.EditHold(w.t.Context(), w.asks(), id, commands.EditWish{Quotes: quotes(quantity)}, func(ledger.Hold, time.Time) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	w.check(err)
}

// minutes lets time pass, and everything that is due be done.
func (w *world) minutes(n int) {
	w.t.Helper()
	for range n {
		w.clock.Advance(time.Minute)
		for shard := range ledger.DueShards {
			page := ledger.Page{Limit: ledger.PageItemsMax}
			holds, _, err := w.store.Due(w.t.Context(), shard, w.clock.Now(), page)
			w.check(err)
			for _, h := range holds {
				if _, err := w.shop.ExpireHold(w.t.Context(), h.ID, "request_sweep"); ledger.CodeOf(err) != ledger.CodeHoldNotDue {
					w.check(err)
				}
			}
			reservations, _, err := w.store.DueReservations(w.t.Context(), shard, w.clock.Now(), page)
			w.check(err)
			for _, r := range reservations {
				w.check(w.driver.Drive(w.t.Context(), r.ID, nil, "request_tick"))
			}
		}
	}
}

func (w *world) stored(id ledger.HoldID) ledger.Hold {
	w.t.Helper()
	h, err := w.store.Hold(w.t.Context(), id)
	w.check(err)
	return h
}

// records are those of the holds and their reservations, and of the slot if it is named.
func (w *world) records(slot ledger.SlotID, holds ...ledger.HoldID) explain.Records {
	w.t.Helper()
	r := explain.Records{Slot: slot}
	take := func(events []ledger.Event, err error) {
		w.check(err)
		for _, e := range events {
			r.Events = append(r.Events, ledger.TracedEvent{Event: e, Publication: ledger.Publication{At: e.OccurredAt}})
		}
	}
	var err error
	r.Slots, err = w.store.Slots(w.t.Context(), []ledger.SlotID{seat})
	w.check(err)
	r.Stock, err = w.store.Stock(w.t.Context(), r.Slots)
	w.check(err)
	if slot != "" {
		take(w.store.SlotEvents(w.t.Context(), slot))
	} else {
		r.Slots, r.Stock, r.Hold = nil, nil, holds[0]
	}
	for _, id := range holds {
		h := w.stored(id)
		r.Holds = append(r.Holds, h)
		take(w.store.HoldEvents(w.t.Context(), id))
		if h.Reservation != "" && h.Reacquires == "" {
			reservation, err := w.store.Reservation(w.t.Context(), h.Reservation)
			w.check(err)
			r.Reservations = append(r.Reservations, reservation)
			take(w.store.ReservationEvents(w.t.Context(), h.Reservation))
		}
	}
	return r
}

// longStory leads a hold of two seats, then three, through a payment that nobody knows of
// until its units were given up, which buys them after all, and from which one is given back.
func (w *world) longStory() (was, sold ledger.HoldID) {
	w.t.Helper()
	was = w.hold(2)
	w.clock.Advance(time.Minute)
	w.resize(was, 3)
	w.clock.Advance(time.Minute)
	request := w.asks()
	request.Key, request.Fingerprint = "key", "fingerprint"
	_, secret, err := w.payments.Start(w.t.Context(), request, was, func(ledger.Reservation, ledger.Hold, time.Time) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	w.check(err)
	w.provider.Before = func(context.Context, paymenttest.Call) error { return errNoAnswer }
	w.minutes(20)
	if got := w.stored(was).Status; got != ledger.StatusExpired {
		w.t.Fatalf("after its payment was unknown for long the hold is %s", got)
	}
	_, err = w.bank.Pay(secret.Reveal())
	w.check(err)
	w.provider.Before = nil
	id := w.stored(was).Reservation
	w.minutes(30)
	sold = ledger.ReacquiredID(w.stored(was))
	_, err = w.shop.CancelReservation(w.t.Context(), w.asks(), id, []ledger.ReturnLine{{Slot: seat, Quantity: 1}}, commands.CancelByOwner, func(ledger.Reservation, ledger.Hold, time.Time) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	w.check(err)
	w.minutes(30)
	return was, sold
}

// The story of a hold that went through everything is told in order, with words and sums, and
// its sums are those of the stock.
func TestTheStoryOfALongHoldMatchesTheStock(t *testing.T) {
	for _, shards := range []int{1, 3} {
		w := newWorld(t, shards)
		was, sold := w.longStory()
		story := explain.Tell(w.records("", was, sold))
		checkOrder(t, story)
		told := []ledger.EventType{
			ledger.EventHoldCreated, ledger.EventHoldChanged, ledger.EventReservationPaymentStarted, ledger.EventHoldPaymentStarted,
			ledger.EventReservationCompensating, ledger.EventHoldExpired, ledger.EventReservationAuthorized, ledger.EventHoldReacquired,
			ledger.EventReservationCaptured, ledger.EventReservationCompleted, ledger.EventHoldReturned, ledger.EventReservationRefundEnded,
		}
		at := 0
		for _, step := range story.Steps {
			if at < len(told) && step.Type == told[at] {
				at++
			}
		}
		if at < len(told) {
			t.Errorf("%d shards: the story does not tell of %s after %v:\n%s", shards, told[at], told[:at], text(story))
		}
		for _, words := range []string{
			"owner U-17 holds 2 of seat at 1000 USD", "it holds 3 of seat at 1000 USD now, in place of 2 of seat",
			"(payment_unknown)", "its units are available again", "a late payment of hold " + string(was) + " was let count",
			"attempt 1 was captured: 3000 USD", "1 of seat were given back after the sale; the rest stays sold", "refund 1 of 1000 USD (minor units) was given back",
		} {
			if !strings.Contains(text(story), words) {
				t.Errorf("%d shards: the story does not say %q:\n%s", shards, words, text(story))
			}
		}
		if want := (explain.MoneySum{Currency: "USD", Captured: 3000, Refunded: 1000, Kept: 2000}); story.Money == nil || *story.Money != want {
			t.Errorf("%d shards: the money is %+v, want %+v", shards, story.Money, want)
		}
		var sum explain.Counters
		for _, s := range story.Stock {
			sum.Available, sum.Confirmed, sum.Held = sum.Available+s.Told.Available, sum.Confirmed+s.Told.Confirmed, sum.Held+s.Told.Held
		}
		if sum != (explain.Counters{Available: -2, Confirmed: 2}) {
			t.Errorf("%d shards: the story moved %s", shards, sum)
		}
		if !story.Matches || !strings.Contains(story.Verdict, "match the holds and the reservation") {
			t.Errorf("%d shards: %s", shards, story.Verdict)
		}

		slot := explain.Tell(w.records(seat, was, sold))
		checkOrder(t, slot)
		if !slot.Matches || len(slot.Stock) != shards {
			t.Errorf("%d shards: the story of the slot has %d stock items: %s", shards, len(slot.Stock), slot.Verdict)
		}
		if last := slot.Steps[0]; last.Type != ledger.EventSlotCreated || len(last.Moves) == 0 || last.Moves[0].From != ledger.BucketOutside {
			t.Errorf("%d shards: the story of the slot begins with %+v", shards, last)
		}
	}
}

// text is all that a story says.
func text(s explain.Story) string {
	var lines []string
	for _, step := range s.Steps {
		lines = append(lines, string(step.Type)+": "+step.What)
		for _, m := range step.Money {
			lines = append(lines, "  "+m.What)
		}
	}
	return strings.Join(append(lines, s.Verdict), "\n")
}

// checkOrder checks that no step is before one that it follows.
func checkOrder(t *testing.T, s explain.Story) {
	t.Helper()
	last := map[string]ledger.Version{}
	for i, step := range s.Steps {
		if step.Version != last[step.Subject]+1 {
			t.Errorf("version %d of %s follows version %d", step.Version, step.Subject, last[step.Subject])
		}
		last[step.Subject] = step.Version
		if i > 0 && step.At.Before(s.Steps[i-1].At) {
			t.Errorf("step %d is of %s, after one of %s", i, step.At, s.Steps[i-1].At)
		}
	}
}

// Each thing that does not add up is named, and what is as it should be is not.
func TestAStorySaysWhatDoesNotMatch(t *testing.T) {
	for name, test := range map[string]struct {
		slot  bool
		spoil func(r *explain.Records)
		want  string
	}{
		"a counter of the stock": {true, func(r *explain.Records) { r.Stock[0].Counters.Confirmed++ }, "the events of shard 0 add up to"},
		"a stock item":           {true, func(r *explain.Records) { r.Stock = nil }, "there is no such stock item"},
		"an event of the slot":   {true, func(r *explain.Records) { r.Events = dropType(r.Events, ledger.EventSlotCreated) }, "version 1 of slot/seat has 0 events"},
		"an event of the hold":   {false, func(r *explain.Records) { r.Events = dropType(r.Events, ledger.EventHoldChanged) }, "version 2 of hold/"},
		"the lines of the hold": {false, func(r *explain.Records) {
			r.Holds[1].Lines = slices.Clone(r.Holds[1].Lines)
			r.Holds[1].Lines[0].Shards = []ledger.Allocation{{Shard: 0, Quantity: 5}}
		}, "is CONFIRMED with 0 held and 4 sold units of slot seat, shard 0, and its events moved 0 held and 2 sold"},
		"a refund": {false, func(r *explain.Records) {
			r.Reservations[0] = r.Reservations[0].Clone()
			r.Reservations[0].Refunds[0].AmountMinor++
		}, "1001 refunded"},
		"the status of the reservation": {false, func(r *explain.Records) { r.Reservations[0].Status = ledger.ReservationReview }, "is REVIEW, and its last event left it COMPLETED"},
		"a grant":                       {false, func(r *explain.Records) { r.Reservations[0].Grants = []ledger.Grant{{Slot: "coins", Quantity: 3}} }, "differ by 3"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1)
			was, sold := w.longStory()
			slot := ledger.SlotID("")
			if test.slot {
				slot = seat
			}
			records := w.records(slot, was, sold)
			if sound := explain.Tell(records); !sound.Matches {
				t.Fatal(sound.Verdict)
			}
			test.spoil(&records)
			story := explain.Tell(records)
			if story.Matches || !strings.Contains(story.Verdict, "do not match") || !strings.Contains(story.Verdict, test.want) {
				t.Errorf("the verdict is %q, want %q in it", story.Verdict, test.want)
			}
			records.Moved = true
			if again := explain.Tell(records); !strings.Contains(again.Verdict, "run it again") {
				t.Errorf("of records that moved it says %q", again.Verdict)
			}
		})
	}
}

func dropType(events []ledger.TracedEvent, t ledger.EventType) []ledger.TracedEvent {
	return slices.DeleteFunc(slices.Clone(events), func(e ledger.TracedEvent) bool { return e.Type == t })
}

// What lies in the archive is counted by the stock's archived counters, whether its events can
// still be read or not.
func TestArchivedEventsAreCountedOnce(t *testing.T) {
	for _, readable := range []bool{true, false} {
		w := newWorld(t, 1)
		id := w.hold(2)
		_, err := w.shop.ConfirmHold(t.Context(), commands.Request{Actor: "service:shop"}, id, "", nil, func(ledger.Hold, time.Time) (ledger.Response, error) {
			return ledger.Response{}, nil
		})
		w.check(err)
		events, err := w.store.HoldEvents(t.Context(), id)
		w.check(err)
		change, err := ledger.ArchiveHold(w.stored(id), nil, events, "batch_test", w.clock.Now().Add(time.Hour).Truncate(time.Second), w.clock.Now())
		w.check(err)
		w.check(w.store.Commit(t.Context(), change))
		records := w.records(seat, id)
		want := 3
		if !readable {
			records = w.records(seat)
			want = 1
		}
		story := explain.Tell(records)
		if !story.Matches || len(story.Steps) != want || story.Archived != want-1 {
			t.Errorf("readable %t: %d steps, %d archived: %s", readable, len(story.Steps), story.Archived, story.Verdict)
		}
		if unseen := story.Stock[0].Unseen.Confirmed; (unseen == 2) == readable {
			t.Errorf("readable %t: %d sold units are of events that the story does not have", readable, unseen)
		}
	}
}

// An event that consumers have not been told of says so, and why.
func TestAStepSaysWhetherConsumersWereTold(t *testing.T) {
	w := newWorld(t, 1)
	records := w.records("", w.hold(1))
	for _, test := range []struct {
		publication ledger.Publication
		want        string
		waiting     int
		quarantined int
	}{
		{ledger.Publication{At: tenOClock}, "published 2026-03-01 10:00:00.000Z", 0, 0},
		{ledger.Publication{}, "waits to be published", 1, 0},
		{ledger.Publication{Quarantine: &ledger.Quarantine{Reason: "too large", At: tenOClock}}, "quarantined since 2026-03-01 10:00:00.000Z: too large", 0, 1},
	} {
		records.Events[0].Publication = test.publication
		story := explain.Tell(records)
		if story.Steps[0].Publication != test.want || story.Waiting != test.waiting || story.Quarantined != test.quarantined {
			t.Errorf("%+v, %d waiting, %d quarantined; want %q", story.Steps[0].Publication, story.Waiting, story.Quarantined, test.want)
		}
	}
}

// The clock of the machine that made a later version may have been behind.
func TestVersionsStandInTheirOrderWhateverTheClockSaid(t *testing.T) {
	w := newWorld(t, 1)
	id := w.hold(1)
	w.resize(id, 2)
	records := w.records("", id)
	for i := range records.Events {
		if records.Events[i].Version == 2 {
			records.Events[i].OccurredAt = tenOClock.Add(-time.Hour)
		}
	}
	slices.Reverse(records.Events)
	story := explain.Tell(records)
	if len(story.Steps) != 2 || story.Steps[0].Version != 1 || story.Steps[1].Version != 2 {
		t.Errorf("the steps are %+v", story.Steps)
	}
}
