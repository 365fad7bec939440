package saga_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/saga"
	"holdfast/shared/telemetry"
)

// dwelled are the times in each status that were told since the last call, in seconds.
func (w *world) dwelled() map[telemetry.MetricName]string {
	out := map[telemetry.MetricName]string{}
	for _, line := range w.dwells.Take() {
		for _, m := range line {
			out[m.Metric] += fmt.Sprint(m.Values)
		}
	}
	return out
}

// Each status is told of when it is left. One that is not left is told of with each look,
// once it takes longer than anything that goes well.
func TestTheTimeInEachStatusIsTold(t *testing.T) {
	w := newWorld(t)
	w.slot("A", 1, slotWith(func(p *ledger.Policy) { p.HoldFor, p.HoldForMax = time.Hour, time.Hour }))
	hold := w.hold("A", one("A"))
	id, secret := w.start("A", hold, "key")
	w.at(saga.DwellTold)
	w.drive(id, nil)
	if got := w.dwelled(); len(got) != 0 {
		t.Errorf("told %v before it takes long", got)
	}
	w.at(saga.DwellTold + time.Minute)
	w.drive(id, nil)
	w.at(saga.DwellTold + 2*time.Minute)
	w.pay(secret)
	w.deliver(id, w.notices()...)
	w.settle(id)
	w.wantReservation(id, ledger.ReservationCompleted, "")
	if n := w.metrics.of[telemetry.MetricConfirmsLate]; n != 0 {
		t.Errorf("a sale in time is counted %d times as late", n)
	}
	got, want := w.dwelled(), map[telemetry.MetricName]string{
		telemetry.MetricSagaDwellPaymentPendingSeconds: "[960 1020]",
		telemetry.MetricSagaDwellAuthorizedSeconds:     "[0]",
		telemetry.MetricSagaDwellConfirmedSeconds:      "[0]",
		telemetry.MetricSagaDwellCapturedSeconds:       "[0]",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("told %v, want %v", got, want)
	}
}

// What the driver has gathered is reported after each run, of either kind, and once.
func TestTheTimesAreReportedAfterEachRun(t *testing.T) {
	for event, want := range map[string]float64{`{}`: 7, `{"Records":[{"messageId":"m1","body":"broken"}]}`: 7} {
		w := newWorkshop(t)
		handler := w.handler(newDueList(t), nil)
		telemetry.AddDwell(&w.dwells, ledger.ReservationCaptured, 7*time.Second)
		for range 2 {
			if _, err := handler.Handle(t.Context(), json.RawMessage(event)); err != nil {
				t.Fatal(err)
			}
		}
		if got := w.reported()["dwell_captured_seconds"]; got != want {
			t.Errorf("%s: reported %v, want %v", event, got, want)
		}
	}
	w := newWorkshop(t)
	telemetry.AddDwell(&w.dwells, ledger.ReservationCaptured, time.Second)
	if _, err := w.handler(newDueList(t), brokenMetrics{}).Handle(t.Context(), json.RawMessage(`{"Records":[{"messageId":"m1","body":"broken"}]}`)); err != nil {
		t.Errorf("a batch fails for its report: %v", err)
	}
	if !strings.Contains(w.logs.String(), "could not be reported") {
		t.Errorf("the log is %s", w.logs.String())
	}
}

// How long a backlog took is told by the tick that finds it gone.
func TestTheEndOfABacklogIsReported(t *testing.T) {
	w, list := newWorkshop(t), newDueList(t)
	handler := w.handler(list, nil)
	tick := func() map[string]float64 {
		t.Helper()
		if _, err := handler.Handle(t.Context(), json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
		return w.reported()
	}
	list.add(1, 10*time.Minute)
	if _, told := tick()["recovery_seconds"]; told {
		t.Error("a backlog that is there is told as over")
	}
	delete(list.listed, numbered(1))
	list.add(2, 30*time.Second)
	if _, told := tick()["recovery_seconds"]; told {
		t.Error("what is left of a backlog is told as its end")
	}
	delete(list.listed, numbered(2))
	w.clock.Advance(time.Minute)
	if got := tick()["recovery_seconds"]; got != (11 * time.Minute).Seconds() {
		t.Errorf("the backlog took %v seconds, want 11 minutes", got)
	}
	if got, told := tick()["recovery_seconds"]; told {
		t.Errorf("told again: %v", got)
	}
}
