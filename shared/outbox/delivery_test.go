package outbox_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/telemetry"
)

// What becomes of holds is counted where it goes by, once for each event that was marked.
func TestWhatBecomesOfHoldsIsCounted(t *testing.T) {
	w := newWorld(t)
	var list []ledger.Event
	for i, kind := range []ledger.EventType{
		ledger.EventHoldCreated, ledger.EventHoldCreated, ledger.EventHoldCreated, ledger.EventHoldChanged,
		ledger.EventHoldConfirmed, ledger.EventHoldReacquired, ledger.EventHoldCanceled, ledger.EventHoldExpired, ledger.EventHoldReturned,
	} {
		e := event("hold_"+string(rune('a'+i)), 2)
		e.Type = kind
		list = append(list, e)
	}
	unmarked := list[2].ID
	w.marker.fail = func(id ledger.EventID) error {
		if id == unmarked {
			return &ledger.Error{Code: ledger.CodeUnavailable, Message: "try again"}
		}
		return nil
	}
	mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(list...))
	got := w.reported()
	maps.DeleteFunc(got, func(name string, _ float64) bool { return !strings.HasPrefix(name, "holds_") })
	want := map[string]float64{"holds_created": 2, "holds_confirmed": 2, "holds_canceled": 1, "holds_expired": 1}
	if !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// How long a backlog took is told by the first batch that has none of it.
func TestTheEndOfABacklogIsReported(t *testing.T) {
	w := newWorld(t)
	relay := w.relay(w.ports())
	old, young := event("hold_old", 2), event("hold_young", 2)
	old.OccurredAt = start.Add(-10 * time.Minute)
	for i, step := range []struct {
		event ledger.Event
		at    time.Duration
		want  float64 // 0 for nothing
	}{{old, 0, 0}, {young, 30 * time.Second, 630}, {young, time.Minute - 2*time.Second, 0}} {
		w.clock.Set(start.Add(step.at))
		mustHandle(context.Background(), t, relay, w.batch(step.event))
		if got := w.reported()["recovery_seconds"]; got != step.want {
			t.Errorf("batch %d: recovered after %v seconds, want %v", i+1, got, step.want)
		}
	}
}

// The line of an event leads to what it is of.
func TestTheLineOfAnEventNamesWhatItIsOf(t *testing.T) {
	for name, test := range map[string]struct {
		of   func(*ledger.Event)
		want string
	}{
		"a hold": {func(e *ledger.Event) { e.Hold.Reservation = "rsv_1" }, `"hold_id":"hold_1","reservation_id":"rsv_1"`},
		"a reservation": {func(e *ledger.Event) {
			e.Hold, e.Reservation = nil, &ledger.Reservation{ID: "rsv_1", Hold: "hold_1", Attempts: []ledger.Attempt{{Number: 2}}}
		}, `"reservation_id":"rsv_1","hold_id":"hold_1","attempt":2`},
		"a slot": {func(e *ledger.Event) { e.Hold, e.Slot = nil, &ledger.Slot{ID: "seat"} }, `"slot_id":"seat"`},
		"a case": {func(e *ledger.Event) { e.Hold, e.Review = nil, &ledger.Review{ID: "review_1"} }, `"review_id":"review_1"`},
	} {
		w := newWorld(t)
		w.bytesMax = 1 // larger than the bus takes, whatever it is
		e := event("hold_1", 2)
		test.of(&e)
		mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(e))
		if log := w.logs.String(); !strings.Contains(log, `"event_id":"`+string(e.ID)+`",`+test.want) {
			t.Errorf("%s: the log is %s, want %s", name, log, test.want)
		}
	}
	if len(telemetry.AboutEvent(ledger.Event{})) > 0 {
		t.Error("an event that could not be read is told of")
	}
}
