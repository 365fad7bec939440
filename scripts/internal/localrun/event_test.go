package localrun_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/ledger"
	"holdfast/shared/topology"
)

// eventsOf returns the types of the hold's events that came out of the bus, in the order of
// their versions.
func (w *world) eventsOf(hold string) []ledger.EventType {
	all, _ := w.system.Events()
	all = slices.DeleteFunc(all, func(e localrun.Event) bool { return string(e.Hold) != hold })
	slices.SortFunc(all, func(a, b localrun.Event) int { return int(a.Version - b.Version) })
	var types []ledger.EventType
	for _, e := range all {
		types = append(types, e.Type)
	}
	return types
}

// eventsOfSlot counts the slot's events that came out of the bus.
func (w *world) eventsOfSlot(slot string) int {
	all, _ := w.system.Events()
	return len(slices.DeleteFunc(all, func(e localrun.Event) bool { return string(e.Slot) != slot }))
}

// untilPassed makes an event and waits until it came out of the bus. Whatever was published
// before it has come out by then too.
func (w *world) untilPassed() {
	w.t.Helper()
	last := w.slot(1, "")
	w.until("the last event has arrived", func() bool { return w.eventsOfSlot(last) > 0 })
}

// Case A4: stock was taken by a background job after the order was saved. Here the stock is
// taken at once while nobody reads the stream, and the event is published once, later.
func TestCaseA4_StockDoesNotWaitForTheStream(t *testing.T) {
	w := newWorld(t)
	w.untilPublished()
	_, repeatsBefore := w.system.Events()
	w.system.DisableStream()
	slot := w.slot(1, "")
	hold := w.mustHold(w.owner(), slot, 1)
	w.ask(w.owner(), slot, 1).wantProblem(http.StatusConflict, "insufficient_stock")
	w.wantCounters(slot, counters{Held: 1, Capacity: 1})
	if unpublished, err := w.system.Unpublished(t.Context()); err != nil || unpublished != 2 {
		t.Errorf("%d unpublished events, %v; want the slot's and the hold's", unpublished, err)
	}
	if published := w.eventsOf(hold); published != nil {
		t.Errorf("published while nobody reads the stream: %v", published)
	}
	if err := w.system.EnableStream(); err != nil {
		t.Fatal(err)
	}
	w.until("the event has arrived", func() bool { return len(w.eventsOf(hold)) > 0 })
	w.untilPassed()
	_, repeats := w.system.Events()
	if got, want := w.eventsOf(hold), []ledger.EventType{ledger.EventHoldCreated}; !slices.Equal(got, want) || repeats != repeatsBefore {
		t.Errorf("events %v and %d repeats, want %v and %d", got, repeats, want, repeatsBefore)
	}
}

// Case I4: one event was handled twice under two envelope ids. The bus takes an event and its
// answer gets lost, so it is published again; a consumer counts it once, by its own id.
func TestCaseI4_PublishedTwiceCountsOnce(t *testing.T) {
	w := newWorld(t)
	w.untilPublished()
	_, before := w.system.Events()
	end := w.observer.inject(topology.FunctionOutbox, loseFirstAnswer(func(target string) bool { return target == "AWSEvents.PutEvents" }))
	defer end()
	slot := w.slot(1, "")
	w.until("the event has come again", func() bool {
		_, again := w.system.Events()
		return again > before
	})
	w.untilPassed()
	_, again := w.system.Events()
	if count := w.eventsOfSlot(slot); count != 1 || again != before+1 {
		t.Errorf("%d events, and %d came again; want one that came twice", count, again-before)
	}
}

// A consumer that runs for long forgets the oldest events and goes on.
func TestRememberedEventsAreBounded(t *testing.T) {
	log := localrun.NewEventLog(io.Discard)
	receive := func(n int) {
		t.Helper()
		body := fmt.Sprintf(`{"id":"envelope","detail":{"event_id":"event_%d","type":"hold.created","version":1,"hold":{"hold_id":"hold_1"}}}`, n)
		if err := log.Receive(t.Context(), body); err != nil {
			t.Fatal(err)
		}
	}
	for n := range localrun.EventsMax {
		receive(n)
	}
	receive(0) // is known
	receive(localrun.EventsMax)
	all, again := log.All()
	if len(all) != localrun.EventsMax || all[0].ID != "event_1" || again != 1 {
		t.Errorf("%d events, the first one %s, %d again", len(all), all[0].ID, again)
	}
}

// What is no event of the ledger is given back to the queue, whose dead letters show it.
func TestWrongMessagesAreRefused(t *testing.T) {
	log := localrun.NewEventLog(io.Discard)
	for _, body := range []string{``, `[]`, `{"id":"1","detail":"text"}`, `{"id":"1","detail":{}}`} {
		if err := log.Receive(t.Context(), body); err == nil {
			t.Errorf("%q is accepted", body)
		}
	}
}

// P7: every transition of a hold comes out of the bus, under its own version.
func TestP7_EveryTransitionArrives(t *testing.T) {
	w := newWorld(t)
	slot, owner := w.slot(3, shortHold), w.owner()
	confirmed, cancelled, expired := w.mustHold(owner, slot, 1), w.mustHold(owner, slot, 1), w.mustHold(owner, slot, 1)
	w.confirm(confirmed).want(http.StatusOK)
	w.post(owner, "/v1/holds/"+cancelled+"/cancel", newName("key"), "").want(http.StatusOK)
	w.untilOver(expired)
	w.sweep()
	for hold, last := range map[string]ledger.EventType{
		confirmed: ledger.EventHoldConfirmed, cancelled: ledger.EventHoldCanceled, expired: ledger.EventHoldExpired,
	} {
		want := []ledger.EventType{ledger.EventHoldCreated, last}
		w.until("the events have arrived", func() bool { return len(w.eventsOf(hold)) >= len(want) })
		if got := w.eventsOf(hold); !slices.Equal(got, want) {
			t.Errorf("events %v, want %v", got, want)
		}
	}
}
