package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/outbox/outboxtest"
)

func reservationID(n int) ledger.ReservationID {
	return ledger.ReservationID(fmt.Sprintf("rsv_%026d", n))
}

// reserved is the event that made a version of a reservation.
func reserved(n, version int, t ledger.EventType, status ledger.ReservationStatus) ledger.Event {
	return ledger.Event{
		ID: ledger.EventID(fmt.Sprintf("event_rsv%d_%d", n, version)), Type: t, Version: ledger.Version(version), OccurredAt: start,
		Reservation: &ledger.Reservation{ID: reservationID(n), Hold: "hold_1", Status: status, Version: ledger.Version(version)},
	}
}

// paidHold is an event of a hold that has a reservation.
func paidHold(hold string, version, n int, t ledger.EventType) ledger.Event {
	e := event(hold, version)
	e.Type, e.Hold.Reservation = t, reservationID(n)
	return e
}

func woken(ns ...int) []string {
	var out []string
	for _, n := range ns {
		out = append(out, string(reservationID(n)))
	}
	return out
}

// Each event says whether the saga must look, and at what.
func TestWhatWakesTheSaga(t *testing.T) {
	reservation := func(status ledger.ReservationStatus, change func(*ledger.Reservation)) ledger.Event {
		e := reserved(1, 2, ledger.EventReservationPaymentNoticed, status)
		if change != nil {
			change(e.Reservation)
		}
		return e
	}
	owes := func(r *ledger.Reservation) {
		r.Refunds = []ledger.Refund{{Number: 1, AmountMinor: 5, State: ledger.RefundOwed}}
	}
	gave := func(r *ledger.Reservation) {
		r.Refunds = []ledger.Refund{{Number: 1, AmountMinor: 5, State: ledger.RefundDone}}
	}
	for name, test := range map[string]struct {
		event ledger.Event
		wakes bool
	}{
		"pending":                          {reservation(ledger.ReservationPaymentPending, nil), true},
		"authorized":                       {reservation(ledger.ReservationAuthorized, nil), true},
		"confirmed":                        {reservation(ledger.ReservationConfirmed, nil), true},
		"captured":                         {reservation(ledger.ReservationCaptured, nil), true},
		"compensating":                     {reservation(ledger.ReservationCompensating, nil), true},
		"refund required":                  {reservation(ledger.ReservationRefundRequired, nil), true},
		"review":                           {reservation(ledger.ReservationReview, nil), true},
		"completed":                        {reservation(ledger.ReservationCompleted, nil), false},
		"completed, a refund owed":         {reservation(ledger.ReservationCompleted, owes), true},
		"completed, a refund given":        {reservation(ledger.ReservationCompleted, gave), false},
		"canceled":                         {reservation(ledger.ReservationCanceled, nil), false},
		"canceled, looked at later":        {reservation(ledger.ReservationCanceled, func(r *ledger.Reservation) { r.LookAt = start.Add(time.Minute) }), false},
		"canceled, to be looked at now":    {reservation(ledger.ReservationCanceled, func(r *ledger.Reservation) { r.LookAt = start }), true},
		"refunded":                         {reservation(ledger.ReservationRefunded, gave), false},
		"refunded, more owed":              {reservation(ledger.ReservationRefunded, owes), true},
		"a hold without payment":           {event("hold_1", 1), false},
		"a slot":                           {sized("seat", "x", 1), false},
		"a paid hold that was started":     {paidHold("hold_1", 2, 1, ledger.EventHoldPaymentStarted), false},
		"a paid hold whose attempt closed": {paidHold("hold_1", 3, 1, ledger.EventHoldPaymentClosed), true},
		"a paid hold that was canceled":    {paidHold("hold_1", 3, 1, ledger.EventHoldCanceled), true},
		"a paid hold that expired":         {paidHold("hold_1", 3, 1, ledger.EventHoldExpired), true},
		"a hold born of a late payment":    {paidHold("hold_2", 1, 1, ledger.EventHoldReacquired), true},
	} {
		w := newWorld(t)
		if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(test.event)); failed != nil {
			t.Errorf("%s: handed back %v", name, failed)
		}
		var want []string
		if test.wakes {
			want = woken(1)
		}
		if got := w.queue.Woken(); !slices.Equal(got, want) || len(w.marker.marked) != 1 {
			t.Errorf("%s: woken %v, want %v; marked %v", name, got, want, w.marker.marked)
		}
	}
}

// One wake-up in a batch is enough for a reservation, and what must be published goes
// out in order all the same.
func TestAReservationIsWokenOnceInABatch(t *testing.T) {
	w := newWorld(t)
	var list []ledger.Event
	for n := range 12 {
		list = append(list, reserved(n, 1, ledger.EventReservationPaymentStarted, ledger.ReservationPaymentPending))
	}
	list = append(list,
		paidHold("hold_3", 2, 3, ledger.EventHoldConfirmed), reserved(3, 2, ledger.EventReservationConfirmed, ledger.ReservationConfirmed),
		reserved(3, 3, ledger.EventReservationCaptured, ledger.ReservationCaptured))
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(list...)); failed != nil {
		t.Fatalf("handed back %v", failed)
	}
	if got := w.queue.Woken(); !slices.Equal(got, woken(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)) || w.queue.Calls() != 2 {
		t.Errorf("woken %v in %d calls", got, w.queue.Calls())
	}
	if got := w.delivered(); !slices.Equal(got, ids(list)) || !slices.Equal(w.marker.marked, ids(list)) {
		t.Errorf("published %v", got)
	}
	// The next batch knows nothing of the last.
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(list[0])); failed != nil || w.queue.Calls() != 3 {
		t.Errorf("handed back %v after %d calls", failed, w.queue.Calls())
	}
}

// spying is the bus of the world, which first looks at what the queue has taken.
type spying struct {
	outbox.Publisher
	before func()
}

func (s spying) PutEvents(ctx context.Context, in *eventbridge.PutEventsInput, o ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error) {
	s.before()
	return s.Publisher.PutEvents(ctx, in, o...)
}

// The wake-up comes before the publication: were it the other way round, a relay that
// dies in between would leave a mark-less event and no wake-up, and a relay whose queue
// is down would publish for ever.
func TestTheWakeUpComesFirst(t *testing.T) {
	w := newWorld(t)
	ports := w.ports()
	ports.Publisher = spying{w.bus, func() {
		if len(w.queue.Woken()) != 1 {
			t.Error("it is published before the saga is woken")
		}
	}}
	mustHandle(context.Background(), t, w.relay(ports), w.batch(reserved(1, 1, ledger.EventReservationAuthorized, ledger.ReservationAuthorized)))
	if len(w.bus.Deliveries()) != 1 {
		t.Error("nothing was published")
	}
}

// A queue that is down fails the records that must wake, as a bus that is down would:
// neither published nor marked, and they come again. The others of the call go out.
func TestAQueueThatIsDownFailsItsRecords(t *testing.T) {
	w := newWorld(t)
	w.queue.Down(true)
	calls := 0
	w.queue.BeforeCall(func() { calls++ })
	list := []ledger.Event{event("hold_1", 1), reserved(1, 1, ledger.EventReservationAuthorized, ledger.ReservationAuthorized), event("hold_2", 1), event("hold_2", 2)}
	batch := w.batch(list...)
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), batch); !slices.Equal(failed, []string{"102"}) {
		t.Errorf("handed back %v, want 102", failed)
	}
	if want := []ledger.EventID{list[0].ID, list[2].ID}; !slices.Equal(w.delivered(), want) || !slices.Equal(w.marker.marked, want) {
		t.Errorf("published %v, marked %v", w.delivered(), w.marker.marked)
	}
	if got := w.reported(); got["failed"] != 1 || got["published"] != 2 || got["set_aside"] != 0 || calls != outbox.TriesMax || len(w.clock.Sleeps()) != outbox.TriesMax-1 {
		t.Errorf("reported %v after %d calls, pauses %v", got, calls, w.clock.Sleeps())
	}
	w.queue.Down(false)
	if givenUp := w.deliver(w.relay(w.ports()), batch, 1); givenUp != nil || !slices.Equal(w.queue.Woken(), woken(1)) || !slices.Contains(w.marker.marked, list[3].ID) {
		t.Errorf("after the outage: given up %v, woken %v, marked %v", givenUp, w.queue.Woken(), w.marker.marked)
	}
}

// Only the message that was refused is sent again; one that is refused for good is set
// aside, unpublished and unmarked, and holds nobody up.
func TestEachMessageOfACallCounts(t *testing.T) {
	w := newWorld(t)
	throttles := 2
	w.queue.Refuse(func(body string) string {
		switch {
		case strings.Contains(body, string(reservationID(1))) && throttles > 0:
			throttles--
			return outboxtest.CodeThrottled
		case strings.Contains(body, string(reservationID(2))):
			return outboxtest.CodeInvalidMessage
		}
		return ""
	})
	var list []ledger.Event
	for n := range 4 {
		list = append(list, reserved(n, 1, ledger.EventReservationAuthorized, ledger.ReservationAuthorized))
	}
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(list...)); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	want := []ledger.EventID{list[0].ID, list[1].ID, list[3].ID}
	if !slices.Equal(w.queue.Woken(), woken(0, 3, 1)) || w.queue.Calls() != 3 || !slices.Equal(w.delivered(), want) || !slices.Equal(w.marker.marked, want) {
		t.Errorf("woken %v in %d calls, published %v, marked %v", w.queue.Woken(), w.queue.Calls(), w.delivered(), w.marker.marked)
	}
	if got := w.reported(); got["set_aside"] != 1 || got["failed"] != 0 {
		t.Errorf("reported %v", got)
	}
}

// An answer that is lost, or names no message, proves nothing: it is sent again.
func TestADoubtfulAnswerOfTheQueueIsNoSuccess(t *testing.T) {
	e := reserved(1, 1, ledger.EventReservationAuthorized, ledger.ReservationAuthorized)
	w := newWorld(t)
	w.queue.LoseAnswers(1)
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(e)); failed != nil || !slices.Equal(w.queue.Woken(), woken(1, 1)) {
		t.Errorf("lost: handed back %v, woken %v", failed, w.queue.Woken())
	}
	w = newWorld(t)
	w.queue.Silent(true)
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(e)); !slices.Equal(failed, []string{"101"}) || len(w.marker.marked) > 0 || w.queue.Calls() != outbox.TriesMax {
		t.Errorf("silent: handed back %v, marked %v after %d calls", failed, w.marker.marked, w.queue.Calls())
	}
}

// A reservation whose id is none can't be woken, now or ever.
func TestAnEventOfANamelessReservationIsSetAside(t *testing.T) {
	w := newWorld(t)
	bad := reserved(1, 1, ledger.EventReservationAuthorized, ledger.ReservationAuthorized)
	bad.Reservation.ID = "rsv_nobody"
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(bad, event("hold_1", 1))); failed != nil || w.queue.Calls() != 0 {
		t.Errorf("handed back %v after %d calls", failed, w.queue.Calls())
	}
	if got := w.reported(); got["set_aside"] != 1 || got["published"] != 1 {
		t.Errorf("reported %v", got)
	}
}

// A queue that uses up the time leaves none for the bus: the rest comes again, and
// nothing is begun that Lambda would cut off.
func TestTheQueueMayNotEatTheTimeOfTheBus(t *testing.T) {
	w := newWorld(t)
	w.queue.BeforeCall(func() { w.clock.Advance(25 * time.Second) })
	ctx := endsAt{context.Background(), start.Add(30 * time.Second)}
	batch := w.batch(reserved(1, 1, ledger.EventReservationAuthorized, ledger.ReservationAuthorized))
	if failed := mustHandle(ctx, t, w.relay(w.ports()), batch); !slices.Equal(failed, []string{"101"}) || len(w.bus.Calls()) > 0 {
		t.Errorf("handed back %v after %d calls to the bus", failed, len(w.bus.Calls()))
	}
	if got := w.reported(); got["truncated"] != 1 || got["failed"] != 0 {
		t.Errorf("reported %v", got)
	}
}

// P7 with a queue that fails: every event of a reservation is published, in order, and
// after the last of them the saga has been woken.
func TestP7_ReservationsAreWokenAndPublishedInOrder(t *testing.T) {
	for seed := range 5 {
		w := newWorld(t)
		var list []ledger.Event
		for version := range 8 {
			for n := range 4 {
				list = append(list, reserved(n, version+1, ledger.EventReservationPaymentNoticed, ledger.ReservationPaymentPending))
			}
		}
		calls := seed
		w.queue.Refuse(func(string) string {
			if calls++; calls%3 == 0 {
				return outboxtest.CodeThrottled
			}
			return ""
		})
		w.marker.fail = func(ledger.EventID) error {
			if calls++; calls%7 == 0 {
				return errors.New("throttled")
			}
			return nil
		}
		if givenUp := w.deliver(w.relay(w.ports()), w.batch(list...), deliveriesMax); givenUp != nil {
			t.Errorf("seed %d: given up %v", seed, givenUp)
		}
		last := map[ledger.ReservationID]ledger.Version{}
		for _, id := range w.delivered() {
			e := w.images[string(id)]
			if e.Version > last[e.Reservation.ID]+1 {
				t.Errorf("seed %d: version %d of %s comes after %d", seed, e.Version, e.Reservation.ID, last[e.Reservation.ID])
			}
			last[e.Reservation.ID] = max(last[e.Reservation.ID], e.Version)
		}
		for _, e := range list {
			if !slices.Contains(w.marker.marked, e.ID) {
				t.Errorf("seed %d: %s is not marked", seed, e.ID)
			}
		}
		for n := range 4 {
			if !slices.Contains(w.queue.Woken(), string(reservationID(n))) {
				t.Errorf("seed %d: reservation %d was never woken", seed, n)
			}
		}
	}
}
