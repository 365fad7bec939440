package expiry_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"holdfast/shared/expiry"
	"holdfast/shared/ledger"
	"holdfast/shared/telemetry"
)

// Whatever a tick says, the sweep runs, and reports all its numbers also when it had
// nothing to do. The delay of releases alone needs a release.
func TestEveryTickIsReported(t *testing.T) {
	for _, tick := range []string{`{}`, `null`, `"<aws.scheduler.scheduled-time>"`, `{"time":17,"detail":[]}`} {
		f := newWorld(t, 10).function()
		f.gauge.skew = -1500 * time.Millisecond
		if _, err := f.handler().Handle(context.Background(), json.RawMessage(tick)); err != nil {
			t.Fatalf("%s: %v", tick, err)
		}
		want := map[string]float64{
			"expiry_lag_seconds_max": 0, "expiry_heartbeat": 1, "expiry_released": 0, "expiry_already_ended": 0,
			"expiry_failed": 0, "expiry_truncated": 0, "expiry_remaining_min": 0, "expiry_ghosts": 0, "expiry_parked": 0,
			"expiry_workers": 0, "clock_skew_seconds_max": 1.5,
		}
		if got := f.reported(); !maps.Equal(got, want) {
			t.Errorf("%s: reported %v, want %v", tick, got, want)
		}
	}
}

func TestATickReleasesAndReportsUnderOneRequestID(t *testing.T) {
	f := newWorld(t, 10).function()
	f.holds(3, 0)
	f.clock.Set(start.Add(holdFor + 90*time.Second))
	ctx := lambdacontext.NewContext(context.Background(), &lambdacontext.LambdaContext{AwsRequestID: "8f507cfc-example"})
	if _, err := f.handler().Handle(ctx, json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(f.metrics.String(), `"request_id":"8f507cfc-example"`) || !strings.Contains(f.logs.String(), `"request_id":"8f507cfc-example"`) {
		t.Errorf("the report or the log line has no request id: %s\n%s", f.metrics.String(), f.logs.String())
	}
	mustReport(t, f.reported(), map[string]float64{
		"expiry_released": 3, "expiry_lag_seconds_max": 90, "expiry_release_delay_seconds_p95": 90, "expiry_ghosts": 0,
	})
	events, err := f.world.store.HoldEvents(context.Background(), f.ids[0])
	must(t, err)
	last := events[len(events)-1]
	if last.Type != ledger.EventHoldExpired || last.Origin.RequestID != "8f507cfc-example" || last.Origin.Actor != ledger.ActorSystem {
		t.Errorf("the event tells of %+v", last.Origin)
	}
	f.mustBeExpired()
}

// How the commands that end holds fare is told after the run, of either kind, and only where
// they met somebody.
func TestWhatTheCommandsMetIsReported(t *testing.T) {
	for _, event := range []string{`{}`, `{"Records":[]}`} {
		f := newWorld(t, 10).function()
		handler := f.handler()
		f.fared.DecidedAnew()
		f.fared.Left(ledger.ReservationPaymentPending, time.Hour)
		for i, want := range []map[string]float64{
			{"conflict_retries": 1, "saga_dwell_payment_pending_seconds": 3600},
			{},
		} {
			if _, err := handler.Handle(context.Background(), json.RawMessage(event)); err != nil {
				t.Fatal(err)
			}
			got := f.reported()
			maps.DeleteFunc(got, func(name string, _ float64) bool {
				return name != "conflict_retries" && !strings.HasPrefix(name, "saga_")
			})
			if !maps.Equal(got, want) {
				t.Errorf("%s: run %d reported %v, want %v", event, i+1, got, want)
			}
		}
	}
}

// How long a backlog took is told by the sweep that finds nothing overdue any more.
func TestTheEndOfABacklogIsReported(t *testing.T) {
	f := newWorld(t, 10).function()
	f.holds(1, 0)
	handler := f.handler()
	for _, step := range []struct {
		after time.Duration
		want  float64 // 0 for nothing
	}{{holdFor + 5*time.Minute, 0}, {holdFor + 6*time.Minute, 360}, {holdFor + 7*time.Minute, 0}} {
		f.clock.Set(start.Add(step.after))
		if _, err := handler.Handle(context.Background(), json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
		if got := f.reported()["expiry_recovery_seconds"]; got != step.want {
			t.Errorf("at %s: recovered after %v, want %v", step.after, got, step.want)
		}
	}
}

// A sweep that could not see all of the index has no heartbeat and no lag, so that both
// alarms go off, and its error makes Lambda run it again. So has one that could not see all
// of the parked holds.
func TestAHalfBlindSweepHasNoHeartbeat(t *testing.T) {
	unreadable := errors.New("throttled")
	for name, blind := range map[string]func(*function){
		"the due holds": func(f *function) {
			f.store = storeFunc{f.world.store, func(shard int, _ time.Time, _ ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
				if shard == ledger.DueShards-1 {
					return nil, "", unreadable
				}
				return nil, "", nil
			}}
		},
		"the parked holds": func(f *function) {
			f.parking = parkingFunc{Parking: f.world.store, parked: func(shard int) error {
				if shard == ledger.DueShards-1 {
					return unreadable
				}
				return nil
			}}
		},
	} {
		f := newWorld(t, 10).function()
		blind(f)
		got, err := f.tick()
		if !errors.Is(err, unreadable) {
			t.Errorf("%s: err = %v", name, err)
		}
		if _, known := got["expiry_lag_seconds_max"]; known || got["expiry_heartbeat"] != 0 {
			t.Errorf("%s: reported %v", name, slices.Sorted(maps.Keys(got)))
		}
	}
}

// parkingFunc is a parking whose reads may fail.
type parkingFunc struct {
	expiry.Parking
	parked   func(shard int) error
	failures func() error
}

func (p parkingFunc) Parked(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
	if p.parked != nil {
		if err := p.parked(shard); err != nil {
			return nil, "", err
		}
	}
	return p.Parking.Parked(ctx, shard, page)
}

func (p parkingFunc) Failures(ctx context.Context, id ledger.HoldID) (ledger.EndFailures, error) {
	if p.failures != nil {
		if err := p.failures(); err != nil {
			return ledger.EndFailures{}, err
		}
	}
	return p.Parking.Failures(ctx, id)
}

type brokenMetrics struct{}

func (brokenMetrics) Emit(telemetry.Properties, ...telemetry.Measurement) error {
	return errors.New("broken pipe")
}

// A report that is lost is an error, because silence must not pass for health. A batch is
// not worked on twice for it.
func TestALostReportIsAnError(t *testing.T) {
	f := newWorld(t, 1).function()
	f.hold(1)
	f.clock.Advance(holdFor)
	ports := f.ports()
	ports.Metrics = brokenMetrics{}
	broken, err := expiry.NewFunction(ports, expiry.SweepSettings{PageItems: 100, ParallelMax: 1})
	must(t, err)
	if _, err := broken.Handle(context.Background(), json.RawMessage(`{}`)); err == nil {
		t.Error("the report is lost and nobody is told")
	}
	if _, err := broken.Handle(context.Background(), json.RawMessage(`{"Records":[]}`)); err != nil || !strings.Contains(f.logs.String(), "broken pipe") {
		t.Errorf("a batch without a report: %v, logged %s", err, f.logs.String())
	}
}

func TestRecordsOfAnotherSourceAreAnError(t *testing.T) {
	f := newWorld(t, 1).function()
	for _, event := range []string{`{"Records":"canary"}`, `{"Records":[{"messageId":{"canary":1}}]}`, `{"Records":[{"body":"x"}]}`} {
		answer, err := f.handler().Handle(context.Background(), json.RawMessage(event))
		if err == nil || answer != nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, %v", event, answer, err)
		}
	}
}

// Every port is needed: a function that lacks one must not start.
func TestAMissingPortIsAnErrorAtTheStart(t *testing.T) {
	f := newWorld(t, 1).function()
	settings := expiry.SweepSettings{PageItems: 100, ParallelMax: 1}
	if _, err := expiry.NewFunction(f.ports(), settings); err != nil {
		t.Fatal(err)
	}
	for i := range reflect.TypeFor[expiry.FunctionPorts]().NumField() {
		ports := f.ports()
		reflect.ValueOf(&ports).Elem().Field(i).SetZero()
		if _, err := expiry.NewFunction(ports, settings); err == nil {
			t.Errorf("a function without %s starts", reflect.TypeFor[expiry.FunctionPorts]().Field(i).Name)
		}
	}
}

// A clock that is certainly too wrong ends nothing, neither by a sweep nor by a message, and
// says why; it has no heartbeat, so its alarm goes off.
func TestAnUnreliableClockEndsNothing(t *testing.T) {
	for _, skew := range []time.Duration{31 * time.Second, -31 * time.Second} {
		f := newWorld(t, 3).function()
		f.holds(2, 0)
		parked := f.hold(1)
		f.clock.Advance(holdFor + time.Hour)
		dueAt, _ := f.read(parked).DueAt()
		if done, err := f.world.store.Park(context.Background(), ledger.DueHold{ID: parked, DueAt: dueAt}, 3, dueAt.Add(time.Minute)); !done || err != nil {
			t.Fatalf("parked %t, %v", done, err)
		}
		f.gauge.skew = skew
		got, err := f.tick()
		if !errors.Is(err, expiry.ErrClockUnreliable) || !strings.Contains(err.Error(), "clock_unreliable") {
			t.Errorf("the tick says %v", err)
		}
		mustReport(t, got, map[string]float64{"expiry_heartbeat": 0, "clock_skew_seconds_max": 31, "expiry_released": 0, "expiry_parked": 1})
		if _, known := got["expiry_lag_seconds_max"]; known {
			t.Error("a lag is reported by a clock that is wrong")
		}
		if _, err := f.batchIn(context.Background(), f.dueMessage(f.ids[0]), expiry.SweepCall); !errors.Is(err, expiry.ErrClockUnreliable) {
			t.Errorf("the batch says %v", err)
		}
		mustReport(t, f.reported(), map[string]float64{"due_released": 0, "due_failed": 2, "clock_skew_seconds_max": 31})
		for _, id := range f.ids {
			if got := f.read(id).Status; got != ledger.StatusHeld {
				t.Errorf("hold %s is %s", id, got)
			}
		}
		f.gauge.skew = 30 * time.Second
		mustReport(t, f.mustTick(), map[string]float64{"expiry_heartbeat": 1, "expiry_released": 3})
		f.mustBeExpired()
	}
}
