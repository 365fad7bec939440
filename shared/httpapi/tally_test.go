package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/telemetry"
	"holdfast/shared/telemetry/telemetrytest"
)

// tallies are the reports so far, each as holds asked for and refused as short.
func (f *fixture) tallies() string {
	f.t.Helper()
	var out []string
	for text := range strings.Lines(f.metrics.String()) {
		var line struct {
			Requests *int `json:"hold_requests"`
			Short    *int `json:"hold_requests_short"`
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			f.t.Fatal(err)
		}
		if line.Requests == nil || line.Short == nil {
			f.t.Errorf("a line tells only one of the two: %s", text)
			continue
		}
		out = append(out, fmt.Sprintf("%d/%d", *line.Requests, *line.Short))
	}
	return strings.Join(out, " ")
}

// The first create is reported at once, and then what was added up, with whatever request
// comes after the time. Where nothing was asked for there is no line.
func TestHoldsAskedForAreReportedTogether(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 3)
	health := func() { f.get("/v1/health", "", nil).want(http.StatusOK) }
	want := func(tallies string) {
		t.Helper()
		if got := f.tallies(); got != tallies {
			t.Errorf("reported %q, want %q", got, tallies)
		}
	}
	want("")
	f.mustHold(owner("U"), "seat", 1)
	want("1/0")
	f.mustHold(owner("U"), "seat", 1)
	for range 3 {
		f.create(owner("V"), line("seat", 2), f.key()).wantProblem(http.StatusConflict, "insufficient_stock")
	}
	f.clock.Advance(httpapi.TallyEvery - time.Millisecond)
	health()
	want("1/0")
	f.clock.Advance(time.Millisecond)
	health()
	want("1/0 4/3")
	f.clock.Advance(time.Hour)
	health()
	want("1/0 4/3")
	f.create(owner("V"), line("seat", 2), f.key()).wantProblem(http.StatusConflict, "insufficient_stock")
	want("1/0 4/3 1/1")
	f.clock.Set(noon) // a clock that was set back silences nothing
	f.mustHold(owner("U"), "seat", 1)
	want("1/0 4/3 1/1 1/0")
}

// tallied is the sum of all reports so far, of each metric that has one.
func (f *fixture) tallied() map[telemetry.MetricName]float64 {
	f.t.Helper()
	sums := map[telemetry.MetricName]float64{}
	for text := range strings.Lines(f.metrics.String()) {
		for name, values := range telemetrytest.Values(f.t, text) {
			for _, value := range values {
				sums[name] += value
			}
		}
	}
	maps.DeleteFunc(sums, func(_ telemetry.MetricName, sum float64) bool { return sum == 0 })
	return sums
}

// Only what says whether a buyer found what they wanted is counted.
func TestWhatCountsAsAskedFor(t *testing.T) {
	store := &brokenStore{Store: memory.New()}
	f := newFixtureOn(t, store)
	f.define("seat", 2)
	f.define("closed", 2, `"open":false`)
	f.define("one", 2, `"policy":{"quantity_max_per_hold":1}`)
	f.define("later", 2, `"policy":{"sale_from":"2026-12-24T00:00:00Z"}`)
	first := f.key()
	f.create(owner("U"), line("seat", 1), first).want(http.StatusCreated) // reported at once
	for name, ask := range map[string]struct {
		body    string
		headers map[string]string
		status  int
	}{
		"counted: closed":        {line("closed", 1), f.key(), http.StatusConflict},
		"counted: too many":      {line("one", 2), f.key(), http.StatusConflict},
		"counted: another price": {strings.ReplaceAll(line("seat", 1), "1000", "999"), f.key(), http.StatusConflict},
		"counted: not on sale":   {line("later", 1), f.key(), http.StatusConflict},
		"counted: short":         {line("seat", 2), f.key(), http.StatusConflict},
		"a replay":               {line("seat", 1), first, http.StatusCreated},
		"no key":                 {line("seat", 1), nil, http.StatusBadRequest},
		"a key used before":      {line("seat", 2), first, http.StatusUnprocessableEntity},
		"no such slot":           {line("nothing", 1), f.key(), http.StatusNotFound},
	} {
		if a := f.create(owner("U"), ask.body, ask.headers); a.status != ask.status {
			t.Errorf("%s: %d, want %d: %s", name, a.status, ask.status, a.body)
		}
	}
	store.err = &ledger.Error{Code: ledger.CodeUnavailable, Message: "try again"}
	f.create(owner("U"), line("seat", 1), f.key()).wantProblem(http.StatusServiceUnavailable, "unavailable")
	store.err = nil
	f.get("/v1/holds", "", owner("U")).want(http.StatusOK)
	f.clock.Advance(httpapi.TallyEvery)
	f.get("/v1/health", "", nil).want(http.StatusOK)
	if got := f.tallies(); got != "1/0 5/1" {
		t.Errorf("reported %q, want 1/0 5/1", got)
	}
	want := map[telemetry.MetricName]float64{
		telemetry.MetricHoldRequests: 6, telemetry.MetricHoldRequestsMade: 1, telemetry.MetricHoldRequestsShort: 1,
		telemetry.MetricHoldRequestsClosed: 1, telemetry.MetricHoldRequestsOverLimit: 1,
		telemetry.MetricHoldRequestsPriceChanged: 1, telemetry.MetricHoldRequestsOffSale: 1,
		telemetry.MetricHoldRequestsFailed: 1, telemetry.MetricOversellPrevented: 1,
		// All of them have a key and are understood, but the one without a key.
		telemetry.MetricCommandRequests: 10, telemetry.MetricCommandReplays: 1,
	}
	got := f.tallied()
	delete(got, telemetry.MetricShardProbes) // a slot that was short is looked at, and the order is any
	if !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// How commands fare is counted by the commands themselves, and told with the rest.
func TestHowCommandsFareIsReported(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 2, `"shards":2`)
	late := f.mustHold(owner("U"), "seat", 1) // reported at once
	swept := f.mustHold(owner("U"), "seat", 1)
	f.clock.Advance(ledger.HoldForDefault)
	f.post("/v1/holds/"+late+"/confirm", `{"payment_reference":"pay-1"}`, service(), f.key()).wantProblem(http.StatusConflict, "hold_not_active")
	for _, id := range []string{late, swept} {
		if released, err := f.sweeper.ExpireHold(t.Context(), ledger.HoldID(id), "sweep"); err != nil || !released {
			t.Fatal(released, err)
		}
	}
	f.mustHold(owner("U"), "seat", 2) // one unit of each shard
	f.create(owner("V"), line("seat", 1), f.key()).wantProblem(http.StatusConflict, "insufficient_stock")
	f.clock.Advance(httpapi.TallyEvery)
	f.get("/v1/health", "", nil).want(http.StatusOK)
	got := f.tallied()
	for metric, want := range map[telemetry.MetricName]float64{
		telemetry.MetricConfirmsLate: 1, telemetry.MetricOversellPrevented: 1, telemetry.MetricShardSplits: 1, telemetry.MetricConflictRetries: 0,
	} {
		if got[metric] != want {
			t.Errorf("%s is %v, want %v", metric, got[metric], want)
		}
	}
	if got[telemetry.MetricShardProbes] < 2 {
		t.Errorf("%v looks at other stock items, want 2 at the least", got[telemetry.MetricShardProbes])
	}
}

// That a number can't be written is told in the log and changes no answer.
func TestHoldsAreMadeWithoutMetrics(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 2)
	options := f.options(f.store)
	for name, metrics := range map[string]httpapi.Metrics{"none": nil, "broken": brokenMetrics{}} {
		options.Metrics = metrics
		f.api = mustAPI(t, options)
		f.mustHold(owner("U"), "seat", 1)
		if told := strings.Contains(f.logs.String(), "the pipe is broken"); told != (metrics != nil) {
			t.Errorf("%s: the log says %s", name, f.logs.String())
		}
		f.logs.buffer.Reset()
	}
}
