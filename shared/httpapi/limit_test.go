package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// limitsOf are the limits that a refusal names, each as "limit slot resource max".
func limitsOf(a answer) string {
	a.t.Helper()
	var out []string
	items, _ := a.json()["limits"].([]any)
	for _, item := range items {
		l := item.(map[string]any)
		out = append(out, fmt.Sprintf("%v %v %v/%v %v", l["limit"], l["slot_id"], l["resource_type"], l["resource_id"], l["max"]))
	}
	return strings.Join(out, ", ")
}

// One owner may have so many units of a slot, of a resource, and so many holds at once; what
// is given back may be taken again, and what was bought counts. Others have their own.
func TestLimitsOfAnOwner(t *testing.T) {
	f := newFixture(t)
	f.define("A", 50, `"policy":{"quantity_max_per_owner":2,"quantity_max_per_owner_of_resource":3}`)
	f.define("B", 50, `"policy":{"quantity_max_per_owner_of_resource":3}`)
	refused := func(a answer, limits string) {
		t.Helper()
		a.wantProblem(http.StatusTooManyRequests, "limit_reached")
		if got := limitsOf(a); got != limits || a.headers["Retry-After"] != "" {
			t.Errorf("limits are %s, want %s: %v %s", got, limits, a.headers, a.body)
		}
	}
	refused(f.create(owner("U"), line("A", 3), f.key()), "slot A <nil>/<nil> 2")
	hold := f.mustHold(owner("U"), "A", 2)
	refused(f.create(owner("U"), line("A", 1), f.key()), "slot A <nil>/<nil> 2")
	refused(f.edit(owner("U"), hold, line("A", 3), f.key()), "slot A <nil>/<nil> 2")
	f.post("/v1/holds/"+hold+"/confirm", "", service(), f.key()).want(http.StatusOK)
	refused(f.create(owner("U"), line("B", 2), f.key()), "resource <nil> flight/KE0901 3")
	refused(f.create(owner("U"), `{"slot_ids":["A","B"],"quantity":1,"quoted_price":1000}`, f.key()), "resource <nil> flight/KE0901 3, slot A <nil>/<nil> 2")
	f.mustHold(owner("U"), "B", 1)
	f.mustHold(owner("V"), "A", 2)
	f.giveBack(hold, `{"lines":[{"slot_id":"A","quantity":1}]}`, f.key()).want(http.StatusOK)
	f.mustHold(owner("U"), "A", 1)

	f.define("C", 50, `"resource_id":"KE0902"`, `"policy":{"holds_max_per_owner":1}`)
	only := f.mustHold(owner("U"), "C", 1)
	refused(f.create(owner("U"), line("C", 1), f.key()), "holds <nil> <nil>/<nil> 1")
	f.post("/v1/holds/"+only+"/cancel", "", owner("U"), f.key()).want(http.StatusOK)
	f.mustHold(owner("U"), "C", 1)
	f.counters("A", 46, 3, 1, 50)
	f.balanced()
}

// A refusal by a limit is not remembered: the same request under the same key goes through
// once there is room, and what went through is answered again when there is none.
func TestALimitIsNotRememberedUnderAKey(t *testing.T) {
	f := newFixture(t)
	f.define("A", 50, `"policy":{"quantity_max_per_owner":1}`)
	hold := f.mustHold(owner("U"), "A", 1)
	f.create(owner("U"), line("A", 1), keyed("K")).wantProblem(http.StatusTooManyRequests, "limit_reached")
	f.post("/v1/holds/"+hold+"/cancel", "", owner("U"), f.key()).want(http.StatusOK)
	first := f.create(owner("U"), line("A", 1), keyed("K"))
	first.want(http.StatusCreated)
	f.create(owner("U"), line("A", 1), keyed("K")).wantReplayOf(first)
	f.balanced()
}

// Who lets holds expire one after the other waits, and is told how long. Buying begins anew.
func TestCoolDown(t *testing.T) {
	f := newFixture(t)
	f.define("A", 50, `"policy":{"hold_seconds":60,"expiries_max":2,"cooldown_seconds":600}`)
	expire := func() {
		t.Helper()
		hold := f.mustHold(owner("U"), "A", 1)
		f.clock.Advance(time.Minute)
		if released, err := f.sweeper.ExpireHold(t.Context(), ledger.HoldID(hold), "sweep"); !released || err != nil {
			t.Fatalf("expire: %t, %v", released, err)
		}
	}
	expire()
	expire()
	f.clock.Advance(99*time.Second + time.Millisecond)
	refused := f.create(owner("U"), line("A", 1), f.key())
	refused.wantProblem(http.StatusTooManyRequests, "cooling_down")
	if refused.headers["Retry-After"] != "501" {
		t.Errorf("Retry-After is %q, want 501: what is left, rounded up", refused.headers["Retry-After"])
	}
	f.mustHold(owner("V"), "A", 1)
	f.clock.Advance(501 * time.Second)
	hold := f.mustHold(owner("U"), "A", 1)
	f.post("/v1/holds/"+hold+"/confirm", "", service(), f.key()).want(http.StatusOK)
	expire()
	f.mustHold(owner("U"), "A", 1)
	f.balanced()
}

// Before its sale a slot says when it begins, and when to ask again if that is soon; after
// it, that it is over.
func TestSaleWindow(t *testing.T) {
	f := newFixture(t)
	f.define("A", 5, `"policy":{"sale_from":"2026-12-01T10:00","sale_until":"2026-12-01T12:00","sale_time_zone":"Asia/Seoul"}`)
	f.define("B", 5, `"starts_at":"2026-12-01T03:00:00Z"`, `"policy":{"sale_ends_seconds_before_start":3600}`)
	opens := time.Date(2026, time.December, 1, 1, 0, 0, 0, time.UTC)
	for _, early := range []struct {
		at         time.Time
		retryAfter string
	}{{noon, ""}, {opens.Add(-time.Hour - time.Millisecond), ""}, {opens.Add(-time.Hour), "3600"}, {opens.Add(-time.Millisecond), "1"}} {
		f.clock.Set(early.at)
		a := f.create(owner("U"), line("A", 1), f.key())
		a.wantProblem(http.StatusConflict, "sale_not_open")
		if a.text("opens_at") != "2026-12-01T01:00:00.000Z" || a.headers["Retry-After"] != early.retryAfter || fmt.Sprint(a.members("slots", "slot_id")) != "[A]" {
			t.Errorf("at %s: %v %s", early.at, a.headers, a.body)
		}
	}
	f.clock.Set(opens)
	f.mustHold(owner("U"), "A", 1)
	f.mustHold(owner("U"), "B", 1)
	for slot, ends := range map[string]time.Time{"B": opens.Add(time.Hour), "A": opens.Add(2 * time.Hour)} {
		f.clock.Set(ends.Add(-time.Millisecond))
		f.mustHold(owner("U"), slot, 1)
		f.clock.Set(ends)
		a := f.create(owner("U"), line(slot, 1), f.key())
		a.wantProblem(http.StatusConflict, "sale_over")
		if fmt.Sprint(a.members("slots", "slot_id")) != "["+slot+"]" || a.text("opens_at") != "" {
			t.Errorf("answer %s", a.body)
		}
	}
	f.balanced()
}

// keptChanges keeps what is written, in full.
type keptChanges struct {
	*memory.Store
	text strings.Builder
}

func (s *keptChanges) Commit(ctx context.Context, c ledger.Change) error {
	fmt.Fprintf(&s.text, "%+v\n", c)
	for _, e := range c.Events {
		fmt.Fprintf(&s.text, "%+v\n", e)
	}
	if c.Idempotency != nil {
		fmt.Fprintf(&s.text, "%+v %s\n", *c.Idempotency, c.Idempotency.Response.Body)
	}
	return s.Store.Commit(ctx, c)
}

// signed is a request for one unit with signals.
func signed(slot, device, means string) string {
	return fmt.Sprintf(`{"slot_ids":[%q],"quantity":1,"quoted_price":1000,"signals":{"device":%q,"payment_means":%q}}`, slot, device, means)
}

// So many holds are made in an hour from one device, and with one means of payment, by
// whichever owners. The next hour begins anew.
func TestLimitsOfSignals(t *testing.T) {
	f := newFixture(t)
	f.define("drop", 100, `"policy":{"holds_max_per_signal":2}`)
	f.define("calm", 100)
	refused := func(a answer) {
		t.Helper()
		a.wantProblem(http.StatusTooManyRequests, "limit_reached")
		if limitsOf(a) != "" || a.headers["Retry-After"] != "1800" {
			t.Errorf("answer %v %s", a.headers, a.body)
		}
	}
	f.clock.Set(noon.Add(30 * time.Minute))
	f.create(owner("U1"), signed("drop", "phone", "card-1"), f.key()).want(http.StatusCreated)
	f.create(owner("U2"), signed("drop", "phone", "card-2"), f.key()).want(http.StatusCreated)
	refused(f.create(owner("U3"), signed("drop", "phone", "card-3"), f.key()))
	f.create(owner("U4"), signed("drop", "tablet", "card-2"), f.key()).want(http.StatusCreated)
	refused(f.create(owner("U5"), signed("drop", "laptop", "card-2"), f.key()))
	// The same text says another thing as a device and as a means of payment.
	f.create(owner("U6"), signed("drop", "card-2", "phone"), f.key()).want(http.StatusCreated)
	// Where no policy limits them, signals count nothing, and without them nobody is counted.
	f.create(owner("U7"), signed("calm", "phone", "card-2"), f.key()).want(http.StatusCreated)
	f.create(owner("U8"), line("drop", 1), f.key()).want(http.StatusCreated)
	f.clock.Set(noon.Add(time.Hour))
	f.create(owner("U9"), signed("drop", "phone", "card-2"), f.key()).want(http.StatusCreated)
	f.counters("drop", 94, 6, 0, 100)
	f.balanced()
}

// P12: what a buyer is known by is written and logged nowhere, and a hash of one hour says
// nothing of the same device in the next, nor of the same text as a means of payment.
func TestP12_SignalsLeaveAHashOfTheirHour(t *testing.T) {
	store := &keptChanges{Store: memory.New()}
	f := newFixtureOn(t, store)
	f.define("drop", 100, `"policy":{"holds_max_per_signal":9}`)
	hashes := make(map[string]bool)
	for hour := range 2 {
		f.clock.Set(noon.Add(time.Duration(hour) * time.Hour))
		f.create(owner("U"), signed("drop", "marker-device 7", "marker-means"), f.key()).want(http.StatusCreated)
		f.create(owner("U"), signed("drop", "marker-device and marker-means", "marker-device and marker-means"), f.key()).want(http.StatusCreated)
		f.create(owner("U"), signed("drop", "marker-device 7", "marker-\u00e9"), f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	written := store.text.String()
	for _, place := range []string{written, f.logs.String(), f.metrics.String()} {
		if strings.Contains(place, "marker-device") || strings.Contains(place, "marker-means") || strings.Contains(place, "marker-\u00e9") {
			t.Errorf("a signal is readable in %s", place)
		}
	}
	for _, part := range strings.Split(written, "Hash:")[1:] {
		hashes[part[:ledger.SignalHashCharacters]] = true
	}
	if len(hashes) != 8 {
		t.Errorf("%d hashes of four signals in two hours, want 8: %v", len(hashes), hashes)
	}
}

// Signals are no part of what makes two requests the same: an honest retry may come from a
// device that is now known by another text, or with no word on it.
func TestSignalsAreNoPartOfTheMeaning(t *testing.T) {
	f := newFixture(t)
	f.define("drop", 100, `"policy":{"holds_max_per_signal":1}`)
	first := f.create(owner("U"), signed("drop", "phone", "card"), keyed("K"))
	first.want(http.StatusCreated)
	f.create(owner("U"), signed("drop", "phone", "card"), keyed("K")).wantReplayOf(first)
	f.create(owner("U"), signed("drop", "other phone", "card"), keyed("K")).wantReplayOf(first)
	f.create(owner("U"), line("drop", 1), keyed("K")).wantReplayOf(first)
	for _, signals := range []string{
		`{}`, `null`, `[]`, `{"device":""}`, `{"device":null}`, `{"device":7}`, `{"device":"a\tb"}`, `{"device":"é"}`, `{"ip":"192.0.2.1"}`,
		`{"payment_means":"` + strings.Repeat("x", 257) + `"}`,
	} {
		body := strings.TrimSuffix(line("drop", 1), "}") + `,"signals":` + signals + `}`
		f.create(owner("U"), body, f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	body := strings.TrimSuffix(line("drop", 1), "}") + `,"signals":{"payment_means":"` + strings.Repeat("~ ", 128) + `"}}`
	f.create(owner("U"), body, f.key()).want(http.StatusCreated)
	f.counters("drop", 98, 2, 0, 100)
	f.balanced()
}

// One owner's requests are braked in each process, those of a shop's services are not, and a
// refused one writes nothing. Asking again after Retry-After is answered.
func TestRequestsOfAnOwnerAreBraked(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 100)
	options := f.options(f.store)
	options.OwnerRate = httpapi.OwnerRate{PerSecond: 2, Burst: 3}
	f.api = mustAPI(t, options)
	hold := f.mustHold(owner("U"), "seat", 1)
	for range 2 {
		f.get("/v1/holds", "", owner("U")).want(http.StatusOK)
	}
	refused := f.create(owner("U"), line("seat", 1), keyed("K"))
	refused.wantProblem(http.StatusTooManyRequests, "rate_limited")
	if refused.headers["Retry-After"] != "1" {
		t.Errorf("Retry-After is %q", refused.headers["Retry-After"])
	}
	f.create(owner("V"), line("seat", 1), f.key()).want(http.StatusCreated)
	for range 10 {
		f.get("/v1/holds/"+hold, "", service()).want(http.StatusOK)
		f.get("/v1/holds", "owner=U", operator()).want(http.StatusOK)
		f.get("/v1/availability", "slot_ids=seat", nil).want(http.StatusOK)
		f.counters("seat", 98, 2, 0, 100)
	}
	for _, step := range []struct {
		after  time.Duration
		passes int
	}{{499 * time.Millisecond, 0}, {time.Millisecond, 1}, {time.Second, 2}, {time.Hour, 3}, {-2 * time.Hour, 0}, {2 * time.Second, 3}} {
		f.clock.Advance(step.after)
		passed := 0
		for f.get("/v1/holds/"+hold, "", owner("U")).status == http.StatusOK && passed < 100 {
			passed++
		}
		if passed != step.passes {
			t.Errorf("after %s more %d requests pass, want %d", step.after, passed, step.passes)
		}
	}
	f.balanced()
}

// However many owners ask, a process remembers a bounded number of them, and none is braked
// for what others do.
func TestManyOwnersAreNotBraked(t *testing.T) {
	f := newFixture(t)
	options := f.options(f.store)
	options.OwnerRate = httpapi.OwnerRate{PerSecond: 1, Burst: 1}
	api := mustAPI(t, options)
	const owners = 25_000
	for i := range owners {
		c := call{method: http.MethodGet, path: "/v1/holds/hold_1", claims: owner(fmt.Sprintf("U-%d", i))}
		response, err := api.Lambda(t.Context(), c.event(t))
		if err != nil || response.StatusCode != http.StatusNotFound {
			t.Fatalf("owner %d: %d %v", i, response.StatusCode, err)
		}
	}
	if got := httpapi.OwnersRemembered(api); got < 1 || got > 10_000 {
		t.Errorf("%d owners are remembered, want 1 to 10,000", got)
	}
}
