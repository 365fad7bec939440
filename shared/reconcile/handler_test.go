package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/reconcile"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
)

// desk is a handler whose ports the test sets.
type desk struct {
	clock   *systemtest.Clock
	metrics bytes.Buffer
	logs    bytes.Buffer

	redriven    outbox.RedriveReport
	redriveErr  error
	age, bound  time.Duration // of the last redrive
	quarantined map[int][]int // the sizes of a shard's pages
	sizeErr     error         // of the last shard
}

func newDesk() *desk {
	return &desk{clock: systemtest.NewClock(start), quarantined: map[int][]int{}}
}

func (d *desk) Run(_ context.Context, age, longest time.Duration) (outbox.RedriveReport, error) {
	d.age, d.bound = age, longest
	return d.redriven, d.redriveErr
}

func (d *desk) Quarantined(_ context.Context, shard int, page ledger.Page) ([]ledger.UnpublishedEvent, ledger.Cursor, error) {
	if shard == ledger.UnpublishedShards-1 && d.sizeErr != nil {
		return nil, "", d.sizeErr
	}
	at, sizes := pageOf(page.After), d.quarantined[shard]
	if at >= len(sizes) {
		return nil, "", nil
	}
	next := ledger.Cursor(strconv.Itoa(at + 1))
	if at+1 == len(sizes) {
		next = ""
	}
	return make([]ledger.UnpublishedEvent, sizes[at]), next, nil
}

func pageOf(cursor ledger.Cursor) int {
	n, err := strconv.Atoi(string(cursor))
	if err != nil {
		return 0
	}
	return n
}

// handle answers one tick, and returns what it reported.
func (d *desk) handle(ctx context.Context, t *testing.T) (map[string]float64, error) {
	t.Helper()
	source := telemetry.Source{Stage: "dev", Function: "reconcile"}
	d.metrics.Reset()
	err := reconcile.NewHandler(reconcile.Ports{
		Redrive: d, Quarantine: d, Metrics: telemetry.NewEmitter(&d.metrics, d.clock, source),
		Clock: d.clock, Logger: telemetry.NewLogger(&d.logs, source),
	}).Handle(ctx, json.RawMessage(`{"nonsense":true}`))
	var line map[string]any
	if err := json.Unmarshal(d.metrics.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, d.metrics.String())
	}
	out := map[string]float64{}
	for name, value := range line {
		if _, metric := telemetry.MetricNamed(telemetry.MetricName(name)); metric {
			out[name] = value.(float64)
		}
	}
	return out, err
}

func same(t *testing.T, got, want map[string]float64) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("reported %v, want %v", got, want)
	}
}

// One tick redrives what is old enough, and counts all pages of the quarantine. All of it is
// reported, also when there is nothing.
func TestATickReportsAllThatItSaw(t *testing.T) {
	d := newDesk()
	d.redriven = outbox.RedriveReport{LagKnown: true}
	got, err := d.handle(t.Context(), t)
	if err != nil || d.age != reconcile.RedriveAge || d.bound != reconcile.RedriveFor {
		t.Errorf("%v; events older than %s for %s", err, d.age, d.bound)
	}
	same(t, got, map[string]float64{
		"reconcile_heartbeat": 1, "outbox_unpublished_lag_seconds_max": 0, "outbox_republished": 0, "outbox_quarantine_size": 0,
	})
	d.redriven = outbox.RedriveReport{Republished: 7, Quarantined: 1, Lag: 90 * time.Minute, LagKnown: true}
	d.quarantined[3], d.quarantined[15] = []int{500, 0, 2}, []int{1}
	got, err = d.handle(t.Context(), t)
	if err != nil {
		t.Error(err)
	}
	same(t, got, map[string]float64{
		"reconcile_heartbeat": 1, "outbox_unpublished_lag_seconds_max": 5400, "outbox_republished": 7, "outbox_quarantine_size": 503,
	})
}

// What can't be read is left out and told, and keeps nothing else from its work. A bus that
// is down is no such thing: the lag tells of it.
func TestAPartThatFailsIsLeftOut(t *testing.T) {
	d := newDesk()
	d.redriven, d.redriveErr = outbox.RedriveReport{Republished: 2}, errors.New("shard 3 is throttled")
	d.sizeErr = errors.New("quarantine is throttled")
	got, err := d.handle(t.Context(), t)
	for _, cause := range []error{d.redriveErr, d.sizeErr} {
		if !errors.Is(err, cause) {
			t.Errorf("%v does not tell that %v", err, cause)
		}
	}
	same(t, got, map[string]float64{"reconcile_heartbeat": 0, "outbox_republished": 2})
	d = newDesk()
	d.redriven = outbox.RedriveReport{Failed: 30, Left: 70, Futile: true, Lag: time.Hour, LagKnown: true}
	got, err = d.handle(t.Context(), t)
	if err != nil || got["reconcile_heartbeat"] != 1 || got["outbox_unpublished_lag_seconds_max"] != 3600 {
		t.Errorf("with the bus down: %v, %v", got, err)
	}
}

// endsAt is a context that says when it ends by the test's clock.
type endsAt struct {
	context.Context
	at time.Time
}

func (c endsAt) Deadline() (time.Time, bool) { return c.at, true }

// A run that has no time left counts nothing, and does not say that there is nothing.
func TestWithoutTimeNothingIsCounted(t *testing.T) {
	d := newDesk()
	got, err := d.handle(endsAt{t.Context(), start.Add(reconcile.MarginBeforeDeadline)}, t)
	if _, told := got["outbox_quarantine_size"]; err == nil || told {
		t.Errorf("without time: %v, %v", got, err)
	}
}
