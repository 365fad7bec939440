package saga_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"holdfast/shared/ledger"
	"holdfast/shared/saga"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
)

func (w *workshop) handler(store saga.DueStore, metrics saga.Metrics) *saga.Handler {
	if metrics == nil {
		metrics = telemetry.NewEmitter(&w.metrics, w.clock, w.source())
	}
	return saga.NewHandler(w.worker(), w.tick(store), &w.dwells, metrics, systemtest.NewRandom(1), telemetry.NewLogger(&w.logs, w.source()))
}

// Whatever a tick says, the saga looks, and reports all its numbers also when there was
// nothing to do.
func TestEveryTickOfTheSagaIsReported(t *testing.T) {
	for _, tick := range []string{`{}`, `null`, `"<aws.scheduler.scheduled-time>"`, `{"time":17,"records":[]}`, `[]`, ``} {
		w := newWorkshop(t)
		answer, err := w.handler(newDueList(t), nil).Handle(t.Context(), json.RawMessage(tick))
		want := map[string]float64{"lag_seconds_max": 0, "heartbeat": 1, "driven": 0, "failed": 0, "truncated": 0, "remaining_min": 0}
		if got := w.reported(); err != nil || answer != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v, reported %v", tick, answer, err, got)
		}
	}
}

// A batch and a tick are told apart, and both work under Lambda's request id.
func TestTheSampleEventsAreHandled(t *testing.T) {
	ctx := lambdacontext.NewContext(t.Context(), &lambdacontext.LambdaContext{AwsRequestID: "8f507cfc-example"})
	w, list := newWorkshop(t), newDueList(t)
	list.add(1, time.Minute)
	for file, want := range map[string]string{"saga.json": `{"batchItemFailures":[]}`, "saga_tick.json": `null`} {
		event, err := os.ReadFile("../../events/lambda/" + file)
		if err != nil {
			t.Fatal(err)
		}
		w.driven = nil
		answer, err := w.handler(list, nil).Handle(ctx, event)
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(answer)
		if err != nil || string(body) != want || w.request != "8f507cfc-example" || len(w.driven) == 0 {
			t.Errorf("%s: answered %s, %v after driving %v for %s", file, body, err, w.driven, w.request)
		}
	}
	if !strings.Contains(w.logs.String(), `"request_id":"8f507cfc-example"`) {
		t.Errorf("log %s", w.logs.String())
	}
}

// Failures of a batch are named as Lambda wants them.
func TestFailuresAreNamed(t *testing.T) {
	w := newWorkshop(t)
	answer, err := w.handler(newDueList(t), nil).Handle(t.Context(), json.RawMessage(`{"Records":[{"messageId":"m1","body":"broken"}]}`))
	body, _ := json.Marshal(answer)
	if err != nil || string(body) != `{"batchItemFailures":[{"itemIdentifier":"m1"}]}` {
		t.Errorf("%s, %v", body, err)
	}
	for _, bad := range []string{`{"Records":17}`, `{"Records":["marker"]}`, `{"Records":[{"body":"x"}]}`} {
		if answer, err := w.handler(newDueList(t), nil).Handle(t.Context(), json.RawMessage(bad)); err == nil || answer != nil || strings.Contains(err.Error(), "marker") {
			t.Errorf("%s: %v, %v", bad, answer, err)
		}
	}
	if len(w.driven) > 0 {
		t.Errorf("driven %v", w.driven)
	}
}

// A tick that could not see all of the index has no heartbeat and no lag, so that both
// alarms go off, and its error makes Lambda run it again. So does a lost report.
func TestAHalfBlindTickHasNoHeartbeat(t *testing.T) {
	w, list := newWorkshop(t), newDueList(t)
	down := errors.New("throttled")
	list.broken = map[int]error{ledger.DueShards - 1: down}
	if _, err := w.handler(list, nil).Handle(t.Context(), json.RawMessage(`{}`)); !errors.Is(err, down) {
		t.Errorf("err = %v", err)
	}
	got := w.reported()
	if _, known := got["lag_seconds_max"]; known || got["heartbeat"] != 0 {
		t.Errorf("reported %v", slices.Sorted(maps.Keys(got)))
	}
	if _, err := w.handler(newDueList(t), brokenMetrics{}).Handle(t.Context(), json.RawMessage(`{}`)); err == nil {
		t.Error("the report is lost and nobody is told")
	}
}
