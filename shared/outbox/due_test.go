package outbox_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/outbox/outboxtest"
)

func holdID(n int) string { return fmt.Sprintf("hold_%026d", n) }

// waiting is the event that made a version of a hold which is to be released at a time.
func waiting(n, version int, releaseAt time.Time) ledger.Event {
	e := event(holdID(n), version)
	e.Hold.Status, e.Hold.ReleaseAt = ledger.StatusHeld, releaseAt
	return e
}

func dueBody(n int, at time.Time) string {
	return fmt.Sprintf(`{"hold_id":"%s","due_at_ms":%d}`, holdID(n), at.UnixMilli())
}

// A hold that waits is looked at when it is due: later while a payment attempt is open,
// not at all once it has ended, and not by a message if the sweep has been there long ago.
func TestAWaitingHoldGetsADueMessage(t *testing.T) {
	in := func(d time.Duration) ledger.Event { return waiting(1, 1, start.Add(d)) }
	ended, paying := in(time.Minute), in(time.Minute)
	ended.Hold.Status = ledger.StatusCanceled
	paying.Hold.AttemptOpen, paying.Hold.Terms.UnknownFor = 1, 10*time.Minute
	for name, test := range map[string]struct {
		event ledger.Event
		dueIn time.Duration
		delay int // in seconds; -1 for no message
	}{
		"in a minute":           {in(time.Minute), time.Minute, 60},
		"in a part of a second": {in(1001 * time.Millisecond), 1001 * time.Millisecond, 2},
		"in fifteen minutes":    {in(900 * time.Second), 900 * time.Second, 900},
		"in an hour":            {in(time.Hour), time.Hour, 900},
		"now":                   {in(0), 0, 0},
		"just over":             {in(-outbox.DueOverdueMax), -outbox.DueOverdueMax, 0},
		"long over":             {in(-outbox.DueOverdueMax - time.Millisecond), 0, -1},
		"while it is paid":      {paying, 11 * time.Minute, 660},
		"ended":                 {ended, 0, -1},
		"a slot":                {sized("seat", "x", 1), 0, -1},
	} {
		w := newWorld(t)
		if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(test.event)); failed != nil {
			t.Errorf("%s: handed back %v", name, failed)
		}
		var want []outboxtest.Message
		if test.delay >= 0 {
			want = []outboxtest.Message{{QueueURL: dueURL, Body: dueBody(1, start.Add(test.dueIn)), DelaySeconds: test.delay}}
		}
		if got := w.queue.Messages(); !slices.Equal(got, want) || len(w.marker.marked) != 1 {
			t.Errorf("%s: messages %v, want %v; marked %v", name, got, want, w.marker.marked)
		}
		if got := w.reported()["due_unsent"]; got != 0 {
			t.Errorf("%s: %v due messages unsent", name, got)
		}
	}
}

// One message for a hold and a time is enough in a batch; another time is another message.
// A reservation's wake-up goes to its own queue.
func TestOneDueMessageForAHoldAndATime(t *testing.T) {
	w := newWorld(t)
	later := start.Add(time.Hour)
	paid := waiting(1, 4, later)
	paid.Hold.Reservation = reservationID(1)
	list := []ledger.Event{waiting(1, 1, start.Add(time.Minute)), waiting(1, 2, start.Add(time.Minute)), waiting(1, 3, later), waiting(2, 1, later), paid}
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(list...)); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	var bodies []string
	for _, m := range w.queue.Due() {
		if bodies = append(bodies, m.Body); m.QueueURL != dueURL {
			t.Errorf("%s went to %s", m.Body, m.QueueURL)
		}
	}
	if want := []string{dueBody(1, start.Add(time.Minute)), dueBody(1, later), dueBody(2, later)}; !slices.Equal(bodies, want) {
		t.Errorf("due messages %v, want %v", bodies, want)
	}
	if !slices.Equal(w.queue.Woken(), woken(1)) || !slices.Equal(w.delivered(), ids(list)) {
		t.Errorf("woken %v, published %v", w.queue.Woken(), w.delivered())
	}
}

// A due queue that is down costs a moment of the run, and no event: all are published and
// marked, and the messages that did not go out are counted.
func TestADueQueueThatIsDownFailsNothing(t *testing.T) {
	w := newWorld(t)
	w.queue.DownAt(dueURL, true)
	calls := 0
	w.queue.BeforeCall(func() { calls++ })
	var list []ledger.Event
	for n := range 35 {
		list = append(list, waiting(n, 1, start.Add(time.Minute)))
	}
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(list...)); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	if got := w.reported(); got["due_unsent"] != 35 || got["published"] != 35 || got["failed"] != 0 || !slices.Equal(w.marker.marked, ids(list)) {
		t.Errorf("reported %v, marked %v", got, w.marker.marked)
	}
	if calls != outbox.DueTriesMax {
		t.Errorf("%d calls to a queue that is down, want %d", calls, outbox.DueTriesMax)
	}
	if logs := w.logs.String(); strings.Count(logs, "the due queue did not take") != 1 {
		t.Errorf("log: %s", logs)
	}
}

// Each message counts: one that is refused is tried once more, alone, and given up; the
// next call is sent all the same.
func TestARefusedDueMessageIsCounted(t *testing.T) {
	w := newWorld(t)
	w.queue.Refuse(func(body string) string {
		if strings.Contains(body, holdID(3)) {
			return outboxtest.CodeThrottled
		}
		return ""
	})
	var list []ledger.Event
	for n := range 12 {
		list = append(list, waiting(n, 1, start.Add(time.Minute)))
	}
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(list...)); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	if got := w.reported(); got["due_unsent"] != 1 || got["published"] != 12 || len(w.queue.Due()) != 11 || w.queue.Calls() != 3 {
		t.Errorf("reported %v, %d messages in %d calls", got, len(w.queue.Due()), w.queue.Calls())
	}
}

// A due queue that is slow, and takes everything, still leaves the bus its time.
func TestTheDueQueueMayNotEatTheTimeOfTheBus(t *testing.T) {
	w := newWorld(t)
	w.queue.BeforeCall(func() { w.clock.Advance(outbox.DueFor) })
	var list []ledger.Event
	for n := range 100 {
		list = append(list, waiting(n, 1, start.Add(time.Minute)))
	}
	ctx := endsAt{context.Background(), start.Add(30 * time.Second)}
	if failed := mustHandle(ctx, t, w.relay(w.ports()), w.batch(list...)); failed != nil {
		t.Errorf("handed back %v", failed)
	}
	calls := int(outbox.DueSpentMax / outbox.DueFor)
	if got := w.reported(); got["published"] != 100 || int(got["due_unsent"]) != 100-10*calls || w.clock.Now().Sub(start) != outbox.DueSpentMax {
		t.Errorf("reported %v after %s", got, w.clock.Now().Sub(start))
	}
}

// A hold that no message can name is published all the same, and counted.
func TestAHoldThatNoMessageCanNameIsPublished(t *testing.T) {
	w := newWorld(t)
	e := event("hold_1", 1)
	e.Hold.Status, e.Hold.ReleaseAt = ledger.StatusHeld, start.Add(time.Minute)
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(e)); failed != nil || w.queue.Calls() != 0 {
		t.Errorf("handed back %v after %d calls", failed, w.queue.Calls())
	}
	if got := w.reported(); got["published"] != 1 || got["due_unsent"] != 1 || got["set_aside"] != 0 {
		t.Errorf("reported %v", got)
	}
}

// A record whose saga could not be woken comes again, and its due message with it.
func TestNoDueMessageForARecordThatComesAgain(t *testing.T) {
	w := newWorld(t)
	w.queue.DownAt(sagaURL, true)
	e := waiting(1, 2, start.Add(time.Minute))
	e.Hold.Reservation = reservationID(1)
	batch := w.batch(e)
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), batch); !slices.Equal(failed, []string{"101"}) || len(w.queue.Due()) != 0 {
		t.Errorf("handed back %v with the messages %v", failed, w.queue.Due())
	}
	w.queue.DownAt(sagaURL, false)
	if failed := mustHandle(context.Background(), t, w.relay(w.ports()), batch); failed != nil || len(w.queue.Due()) != 1 {
		t.Errorf("handed back %v with the messages %v", failed, w.queue.Due())
	}
}
