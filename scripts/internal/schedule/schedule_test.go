package schedule_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/scripts/internal/schedule"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

// record is what a schedule did, by the time since its start.
type record struct {
	mu       sync.Mutex
	start    time.Time
	runs     []string // "at 1m0s for 1m0s"
	ticks    []schedule.Tick
	failures []string
}

// run runs a schedule for a time of its own, which passes at once.
func run(t *testing.T, trigger topology.ScheduleTrigger, length time.Duration, do func(context.Context, int) error) *record {
	t.Helper()
	got := &record{}
	synctest.Test(t, func(t *testing.T) {
		got.start = time.Now()
		tested, err := schedule.New(schedule.Config{
			Name: "sweep", Trigger: trigger,
			Invoke: func(ctx context.Context, payload []byte) ([]byte, error) {
				var tick schedule.Tick
				if err := json.Unmarshal(payload, &tick); err != nil {
					return nil, err
				}
				got.mu.Lock()
				got.ticks = append(got.ticks, tick)
				got.runs = append(got.runs, fmt.Sprintf("at %s for %s", time.Since(got.start), tick.Time.Sub(got.start)))
				number := len(got.runs)
				got.mu.Unlock()
				return nil, do(ctx, number)
			},
			GiveUp: func(_ context.Context, failure schedule.Failure) error {
				got.mu.Lock()
				defer got.mu.Unlock()
				got.failures = append(got.failures, fmt.Sprintf("%s for %s after %d",
					failure.RequestContext.Condition, failure.RequestPayload.Time.Sub(got.start), failure.RequestContext.ApproximateInvokeCount))
				return nil
			},
			Clock: system.RealClock{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), length)
		defer cancel()
		tested.Run(ctx)
	})
	return got
}

func want(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s = %q, want %q", what, got, want)
	}
}

var patient = topology.ScheduleTrigger{Every: time.Minute, Retries: 2, EventAgeMax: time.Hour}

func succeed(context.Context, int) error { return nil }

func TestTicksComeAtTheirRateAsTheSchedulerSendsThem(t *testing.T) {
	got := run(t, patient, 3*time.Minute+time.Second, succeed)
	want(t, "runs", got.runs, "at 1m0s for 1m0s", "at 2m0s for 2m0s", "at 3m0s for 3m0s")
	first, second := got.ticks[0], got.ticks[1]
	if first.ID == "" || first.ID == second.ID {
		t.Errorf("ids = %q and %q, want two different ones", first.ID, second.ID)
	}
	first.ID = "id"
	text, err := json.Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	// The time in a synctest bubble starts at the year 2000.
	const event = `{"version":"0","id":"id","detail-type":"Scheduled Event","source":"aws.scheduler","account":"000000000000",` +
		`"time":"2000-01-01T00:01:00Z","region":"us-east-1","resources":["arn:aws:scheduler:us-east-1:000000000000:schedule/default/sweep"],"detail":"{}"}`
	if string(text) != event {
		t.Errorf("event = %s, want %s", text, event)
	}
}

func TestSlowRunDoesNotDelayTheNextTick(t *testing.T) {
	got := run(t, patient, 2*time.Minute+time.Second, func(ctx context.Context, _ int) error {
		return system.RealClock{}.Sleep(ctx, 90*time.Second)
	})
	want(t, "runs", got.runs, "at 1m0s for 1m0s", "at 2m0s for 2m0s")
}

// Case B2: a sweep that fails twice does not stop the schedule.
func TestCaseB2_FailedRunsAreRetriedBesideLaterTicks(t *testing.T) {
	hourly := topology.ScheduleTrigger{Every: 10 * time.Minute, Retries: 2, EventAgeMax: time.Hour}
	got := run(t, hourly, 21*time.Minute, func(_ context.Context, number int) error {
		if number <= 2 {
			return errors.New("told to fail")
		}
		return nil
	})
	want(t, "runs", got.runs, "at 10m0s for 10m0s", "at 11m0s for 10m0s", "at 13m0s for 10m0s", "at 20m0s for 20m0s")
	want(t, "failures", got.failures)
}

func TestTickIsGivenUp(t *testing.T) {
	fail := func(context.Context, int) error { return errors.New("told to fail") }
	tests := []struct {
		name    string
		trigger topology.ScheduleTrigger
		runs    []string
		failure string
	}{
		{"after its retries", topology.ScheduleTrigger{Every: 10 * time.Minute, Retries: 1, EventAgeMax: time.Hour},
			[]string{"at 10m0s for 10m0s", "at 11m0s for 10m0s"}, "RetriesExhausted for 10m0s after 2"},
		{"when it is too old", topology.ScheduleTrigger{Every: 10 * time.Minute, Retries: 9, EventAgeMax: 90 * time.Second},
			[]string{"at 10m0s for 10m0s", "at 11m0s for 10m0s"}, "EventAgeExceeded for 10m0s after 2"},
		{"without any retry", topology.ScheduleTrigger{Every: 10 * time.Minute, EventAgeMax: time.Hour},
			[]string{"at 10m0s for 10m0s"}, "RetriesExhausted for 10m0s after 1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := run(t, test.trigger, 19*time.Minute, fail)
			want(t, "runs", got.runs, test.runs...)
			want(t, "failures", got.failures, test.failure)
		})
	}
}

func TestRunThatIsCutOffByTheEndIsNotGivenUp(t *testing.T) {
	impatient := topology.ScheduleTrigger{Every: time.Minute, EventAgeMax: time.Hour}
	got := run(t, impatient, 90*time.Second, func(ctx context.Context, _ int) error {
		<-ctx.Done()
		return ctx.Err()
	})
	want(t, "runs", got.runs, "at 1m0s for 1m0s")
	want(t, "failures", got.failures)
}

// sleepyClock jumps once, as the clock of a machine that was asleep does.
type sleepyClock struct {
	system.RealClock
	asleep time.Duration
}

func (c *sleepyClock) Now() time.Time { return c.RealClock.Now().Add(c.asleep) }

func (c *sleepyClock) Sleep(ctx context.Context, duration time.Duration) error {
	err := c.RealClock.Sleep(ctx, duration)
	if c.asleep == 0 {
		c.asleep = 5*time.Minute + 30*time.Second
	}
	return err
}

func TestTicksThatPassedInSleepAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var runs []string
		tested, err := schedule.New(schedule.Config{
			Name: "sweep", Trigger: patient,
			Invoke: func(_ context.Context, payload []byte) ([]byte, error) {
				var tick schedule.Tick
				err := json.Unmarshal(payload, &tick)
				mu.Lock()
				defer mu.Unlock()
				runs = append(runs, tick.Time.Sub(start).String())
				return nil, err
			},
			Clock: &sleepyClock{}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		tested.Run(ctx)
		slices.Sort(runs) // the tick of the wake-up and the one before it run at once
		want(t, "ticks", runs, "1m0s", "6m0s", "7m0s")
	})
}

func TestTriggerIsChecked(t *testing.T) {
	for _, trigger := range []topology.ScheduleTrigger{{EventAgeMax: time.Hour}, {Every: time.Minute}} {
		if _, err := schedule.New(schedule.Config{Trigger: trigger}); err == nil {
			t.Errorf("no error for %+v", trigger)
		}
	}
}
