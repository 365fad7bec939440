package localrun_test

import (
	"net/http"
	"slices"
	"testing"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/ledger"
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
	w.untilPublished()
	_, repeats := w.system.Events()
	if got, want := w.eventsOf(hold), []ledger.EventType{ledger.EventHoldCreated}; !slices.Equal(got, want) || repeats != repeatsBefore {
		t.Errorf("events %v and %d repeats, want %v and %d", got, repeats, want, repeatsBefore)
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
