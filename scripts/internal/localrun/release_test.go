package localrun_test

import (
	"net/http"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

const shortHold = `,"policy":{"hold_seconds":1}`

// Case B5: a hold lasted up to twice its promised time. With the sweep off, a confirm after
// the release time is refused and nobody else gets the unit; one sweep gives it back.
func TestCaseB5_OverBeforeTheSweep(t *testing.T) {
	w := newWorld(t)
	w.withoutDueQueue()
	slot := w.slot(1, shortHold)
	hold := w.mustHold(w.owner(), slot, 1)
	w.untilOver(hold)
	w.wantCounters(slot, counters{Held: 1, Capacity: 1})
	w.confirm(hold).wantProblem(http.StatusConflict, "hold_not_active")
	w.ask(w.owner(), slot, 1).wantProblem(http.StatusConflict, "insufficient_stock")
	w.sweep()
	w.wantCounters(slot, counters{Available: 1, Capacity: 1})
	w.confirm(hold).wantProblem(http.StatusConflict, "hold_not_active")
	w.confirm(w.mustHold(w.owner(), slot, 1)).want(http.StatusOK)
	w.wantCounters(slot, counters{Confirmed: 1, Capacity: 1})
}

// Case C3 through the HTTP API and the real expiry function: a cancel and two sweeps hit
// each hold at the same moment.
func TestCaseC3_CancelMeetsSweeps(t *testing.T) {
	const holds, sweeps = 30, 2
	w := newWorld(t)
	w.withoutDueQueue()
	owner := w.owner()
	slots, ids := make([]string, holds), make([]string, holds)
	for i := range holds {
		slots[i] = w.slot(10, shortHold)
		ids[i] = w.mustHold(owner, slots[i], 3)
	}
	w.untilOver(ids[holds-1])
	cancels := make([]answer, holds)
	atOnce(holds+sweeps, func(i int) {
		if i >= holds {
			w.sweep()
			return
		}
		cancels[i] = w.post(owner, "/v1/holds/"+ids[i]+"/cancel", newName("key"), "{}")
	})
	for i, cancel := range cancels {
		want := "CANCELED"
		if cancel.Status != http.StatusOK {
			cancel.wantProblem(http.StatusConflict, "hold_not_active")
			want = "EXPIRED"
		}
		if got := w.hold(ids[i]).text("status"); got != want {
			t.Errorf("the cancel was answered with %d, and the hold is %s", cancel.Status, got)
		}
		w.wantCounters(slots[i], counters{Available: 10, Capacity: 10})
	}
}

// Case C3 on the real engine, 300 times: a cancel just before the release time, by its own
// clock, and two releases after it, by theirs, at the same moment.
func TestCaseC3_StockReturnsOnce(t *testing.T) {
	const rounds = 300
	w := newWorld(t)
	slot := ledger.SlotID(w.slot(10, ""))
	store := dynamo.NewStore(w.system.Database(), w.system.Table, system.RealClock{}, system.RealRandom{})
	now := time.Now().UTC().Truncate(time.Millisecond)
	early := commands.New(store, systemtest.NewClock(now), system.RealRandom{})
	// An hour is more than the early clock gains by the pauses that it takes after lost races.
	late := commands.New(store, systemtest.NewClock(now.Add(ledger.HoldForDefault+time.Hour)), system.RealRandom{})
	render := func(hold ledger.Hold, _ time.Time) (ledger.Response, error) {
		return ledger.Response{Status: http.StatusOK, Body: []byte(hold.ID)}, nil
	}
	request := commands.Request{Actor: "test", Owner: "C3"}
	for round := range rounds {
		made, err := early.CreateHold(t.Context(), request, commands.HoldWish{Quotes: []ledger.Quote{{Slot: slot, Quantity: 3, UnitAmount: unitAmount}}}, render)
		if err != nil {
			t.Fatal(err)
		}
		hold := ledger.HoldID(made.Response.Body)
		var released [3]bool
		atOnce(len(released), func(i int) {
			var err error
			if i > 0 {
				if released[i], err = late.ExpireHold(t.Context(), hold, "sweep"); err != nil {
					t.Errorf("expire: %v", err)
				}
				return
			}
			_, err = early.CancelHold(t.Context(), request, hold, render)
			if err != nil && ledger.CodeOf(err) != ledger.CodeHoldNotActive {
				t.Errorf("cancel: %v", err)
			}
			released[i] = err == nil
		})
		winners := 0
		for _, won := range released {
			if won {
				winners++
			}
		}
		events, err := store.HoldEvents(t.Context(), hold)
		if err != nil || winners != 1 || len(events) != 2 {
			t.Fatalf("round %d: %d releases, %d events, %v; want one release and the two events of its life", round, winners, len(events), err)
		}
	}
	w.wantCounters(string(slot), counters{Available: 10, Capacity: 10})
}
