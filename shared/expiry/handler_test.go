package expiry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"holdfast/shared/expiry"
	"holdfast/shared/ledger"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
)

// reported is the numbers of one line, by their names.
func reported(tb testing.TB, out *bytes.Buffer) map[string]any {
	tb.Helper()
	if n := strings.Count(out.String(), "\n"); n != 1 {
		tb.Fatalf("%d lines of metrics, want one: %s", n, out.String())
	}
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		tb.Fatal(err)
	}
	for name := range line {
		if _, metric := telemetry.MetricNamed(telemetry.MetricName(name)); !metric && name != "request_id" {
			delete(line, name)
		}
	}
	return line
}

func (w *world) handler(store expiry.Store, metrics *bytes.Buffer, logs *bytes.Buffer) *expiry.Handler {
	source := telemetry.Source{Stage: "dev", Function: "expiry"}
	if store == nil {
		store = w.store
	}
	logger := telemetry.NewLogger(logs, source)
	sweep, err := expiry.NewSweep(store, w.commands, w.clock, logger, 100)
	if err != nil {
		w.tb.Fatal(err)
	}
	return expiry.NewHandler(sweep, telemetry.NewEmitter(metrics, w.clock, source), systemtest.NewRandom(2), logger)
}

// Whatever a tick says, the sweep runs, and reports all its numbers also when it had
// nothing to do.
func TestEveryTickIsReported(t *testing.T) {
	for _, tick := range []string{`{}`, `null`, `"<aws.scheduler.scheduled-time>"`, `{"time":17,"detail":[]}`} {
		w := newWorld(t, 10)
		var metrics, logs bytes.Buffer
		if err := w.handler(nil, &metrics, &logs).Handle(context.Background(), json.RawMessage(tick)); err != nil {
			t.Fatalf("%s: %v", tick, err)
		}
		got := reported(t, &metrics)
		delete(got, "request_id")
		want := map[string]any{
			"expiry_lag_seconds_max": 0.0, "expiry_heartbeat": 1.0, "expiry_released": 0.0, "expiry_already_ended": 0.0,
			"expiry_failed": 0.0, "expiry_truncated": 0.0, "expiry_remaining_min": 0.0,
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: reported %v, want %v", tick, got, want)
		}
	}
}

func TestATickReleasesAndReportsUnderOneRequestID(t *testing.T) {
	w := newWorld(t, 10)
	w.holds(3, 0)
	w.clock.Set(start.Add(holdFor + 90*time.Second))
	ctx := lambdacontext.NewContext(context.Background(), &lambdacontext.LambdaContext{AwsRequestID: "8f507cfc-example"})
	var metrics, logs bytes.Buffer
	if err := w.handler(nil, &metrics, &logs).Handle(ctx, json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	got := reported(t, &metrics)
	if got["expiry_released"] != 3.0 || got["expiry_lag_seconds_max"] != 90.0 || got["request_id"] != "8f507cfc-example" {
		t.Errorf("reported %v", got)
	}
	events, err := w.store.HoldEvents(context.Background(), w.ids[0])
	if err != nil {
		t.Fatal(err)
	}
	last := events[len(events)-1]
	if last.Type != ledger.EventHoldExpired || last.Origin.RequestID != "8f507cfc-example" || last.Origin.Actor != ledger.ActorSystem {
		t.Errorf("the event tells of %+v", last.Origin)
	}
	if !strings.Contains(logs.String(), `"request_id":"8f507cfc-example"`) {
		t.Errorf("the log line has no request id: %s", logs.String())
	}
	w.mustBeExpired()
}

// A sweep that could not see all of the index has no heartbeat and no lag, so that both
// alarms go off, and its error makes Lambda run it again.
func TestAHalfBlindSweepHasNoHeartbeat(t *testing.T) {
	w := newWorld(t, 10)
	unreadable := errors.New("throttled")
	store := storeFunc{w.store, func(shard int, _ time.Time, _ ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
		if shard == ledger.DueShards-1 {
			return nil, "", unreadable
		}
		return nil, "", nil
	}}
	var metrics, logs bytes.Buffer
	if err := w.handler(store, &metrics, &logs).Handle(context.Background(), json.RawMessage(`{}`)); !errors.Is(err, unreadable) {
		t.Errorf("err = %v", err)
	}
	got := reported(t, &metrics)
	if _, known := got["expiry_lag_seconds_max"]; known || got["expiry_heartbeat"] != 0.0 {
		t.Errorf("reported %v", slices.Sorted(maps.Keys(got)))
	}
}

type brokenMetrics struct{}

func (brokenMetrics) Emit(telemetry.Properties, ...telemetry.Measurement) error {
	return errors.New("broken pipe")
}

// A report that is lost is an error, because silence must not pass for health.
func TestALostReportIsAnError(t *testing.T) {
	w := newWorld(t, 1)
	handler := expiry.NewHandler(w.sweep(nil, nil, 100), brokenMetrics{}, systemtest.NewRandom(1), slog.New(slog.DiscardHandler))
	if err := handler.Handle(context.Background(), json.RawMessage(`{}`)); err == nil {
		t.Error("the report is lost and nobody is told")
	}
}
