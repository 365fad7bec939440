package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// policyReachesSlots is how long a changed policy may take until new holds and answers go by it.
const policyReachesSlots = 10 * time.Second

// putPolicy says something for a scope: "type" or "type/id".
func (f *fixture) putPolicy(scope, body string) answer {
	f.t.Helper()
	return f.do(call{method: http.MethodPut, path: "/v1/policies/" + scope, body: body, claims: catalog()})
}

// policyOf is the whole policy that a slot answers.
func (f *fixture) policyOf(slot string) map[string]any {
	f.t.Helper()
	a := f.get("/v1/slots/"+slot, "", catalog())
	a.want(http.StatusOK)
	return a.json()["policy"].(map[string]any)
}

// everyPart is a body that names each part of a policy with a value that is not its default.
const everyPart = `{"hold_seconds":61,"grace_seconds":62,"hold_max_seconds":3663,"quantity_max_per_hold":4,"on_decline":"keep",` +
	`"late_payment":"refund","late_payment_by_provider":true,"unknown_max_seconds":65,"delivery":"event","cancel_until_seconds":66,` +
	`"restock":false,"grant_to_slot_id":"points-{owner}","quantity_max_per_owner":7,"quantity_max_per_owner_of_resource":8,` +
	`"holds_max_per_owner":9,"expiries_max":10,"cooldown_seconds":71,"holds_max_per_signal":12,` +
	`"sale_from":"2026-11-01T10:00:00.000Z","sale_until":"2026-12-31T23:59:59.999Z","sale_ends_seconds_before_start":73,` +
	`"sale_time_zone":"Asia/Seoul","scarce":true}`

// What is said for a scope, to the letter: the parts that are said, in a form that says the
// same again, and the names of the others.
func TestPolicyAnswer(t *testing.T) {
	f := newFixture(t)
	created := f.putPolicy("flight", `{"quantity_max_per_owner":0,"hold_seconds":60,"sale_until":""}`)
	created.want(http.StatusCreated)
	f.clock.Advance(time.Second)
	again := f.putPolicy("flight", `{"hold_seconds":60,"sale_until":"","quantity_max_per_owner":0}`)
	again.want(http.StatusOK)
	want := `{"created_at":"2026-11-30T12:00:00.000Z","policy":{"hold_seconds":60,"quantity_max_per_owner":0,"sale_until":""},` +
		`"policy_inherits":["grace_seconds","hold_max_seconds","quantity_max_per_hold",` +
		`"on_decline","late_payment","late_payment_by_provider","unknown_max_seconds","delivery","cancel_until_seconds","restock",` +
		`"grant_to_slot_id","quantity_max_per_owner_of_resource","holds_max_per_owner","expiries_max","cooldown_seconds",` +
		`"holds_max_per_signal","sale_from","sale_ends_seconds_before_start","sale_time_zone","scarce"],` +
		`"resource_type":"flight","updated_at":"2026-11-30T12:00:00.000Z","version":1}`
	for _, a := range []answer{created, again, f.get("/v1/policies/flight", "", operator())} {
		if a.body != want {
			t.Errorf("got\n%s\nwant\n%s", a.body, want)
		}
	}

	whole := f.putPolicy("flight/KE0901", everyPart)
	whole.want(http.StatusCreated)
	f.clock.Advance(time.Second)
	changed := f.putPolicy("flight/KE0901", `{"scarce":true}`)
	changed.want(http.StatusOK)
	if got := fmt.Sprintf("%v %v %v", changed.json()["policy"], changed.json()["version"], changed.text("updated_at")); got != "map[scarce:true] 2 2026-11-30T12:00:02.000Z" {
		t.Errorf("what was said before is left: %s", changed.body)
	}
	if whole.text("resource_id") != "KE0901" || len(whole.json()["policy_inherits"].([]any)) != 0 {
		t.Errorf("answer %s", whole.body)
	}
	for _, scope := range []string{"ship", "flight/KE0902", "KE0901/flight"} {
		f.get("/v1/policies/"+scope, "", catalog()).wantProblem(http.StatusNotFound, "policy_not_found")
	}
}

// Each part that is said comes back as it was said, from the scope and from a slot of it:
// no part is read into another.
func TestEveryPartOfAPolicy(t *testing.T) {
	f := newFixture(t)
	parts := f.putPolicy("flight", everyPart)
	parts.want(http.StatusCreated)
	said := parts.json()["policy"].(map[string]any)
	f.define("by-type", 5)
	f.define("own", 5, `"resource_type":"ship","policy":`+everyPart)
	for _, slot := range []string{"by-type", "own"} {
		if got := f.policyOf(slot); fmt.Sprint(got) != fmt.Sprint(said) {
			t.Errorf("slot %s has the policy\n%v\nwant\n%v", slot, got, said)
		}
	}
	if len(said) != strings.Count(everyPart, `":`) || len(said) != 23 {
		t.Errorf("%d parts came back, want 23: %s", len(said), parts.body)
	}
	for part, value := range said {
		if !strings.Contains(everyPart, fmt.Sprintf("%q:%v", part, value)) && !strings.Contains(everyPart, fmt.Sprintf("%q:%q", part, value)) {
			t.Errorf("%s came back as %v", part, value)
		}
	}
}

// What a slot does not say is its resource's, then its resource type's, then the default.
// A slot can leave a part that it has said.
func TestPoliciesByLayer(t *testing.T) {
	f := newFixture(t)
	f.define("S", 5, `"policy":{"hold_seconds":100}`)
	has := func(want string) {
		t.Helper()
		f.clock.Advance(policyReachesSlots)
		p := f.policyOf("S")
		if got := fmt.Sprintf("%v %v %v", p["hold_seconds"], p["grace_seconds"], p["quantity_max_per_hold"]); got != want {
			t.Errorf("the slot has %s, want %s", got, want)
		}
	}
	has("100 120 10000")
	f.putPolicy("flight", `{"hold_seconds":200,"grace_seconds":20,"quantity_max_per_hold":2}`).want(http.StatusCreated)
	has("100 20 2")
	f.putPolicy("flight/KE0901", `{"hold_seconds":300,"quantity_max_per_hold":3}`).want(http.StatusCreated)
	has("100 20 3")
	f.patch("S", `{"policy":{"grace_seconds":10}}`).want(http.StatusOK)
	has("100 10 3")
	left := f.patch("S", `{"policy":{"inherit":["hold_seconds","grace_seconds"],"quantity_max_per_hold":1}}`)
	left.want(http.StatusOK)
	has("300 20 1")
	if slices.Contains(listOf(left, "policy_inherits"), "quantity_max_per_hold") || !slices.Contains(listOf(left, "policy_inherits"), "hold_seconds") {
		t.Errorf("the slot inherits %v", listOf(left, "policy_inherits"))
	}
	f.putPolicy("flight/KE0901", `{}`).want(http.StatusOK)
	has("200 20 1")
	f.putPolicy("ship/KE0901", `{"hold_seconds":400}`).want(http.StatusCreated)
	f.putPolicy("flight/KE0902", `{"hold_seconds":500}`).want(http.StatusCreated)
	has("200 20 1")

	hold := f.create(owner("U"), line("S", 1), f.key())
	hold.want(http.StatusCreated)
	if got := fmt.Sprint(hold.json()["hold_seconds"]); got != "200" {
		t.Errorf("a hold lives %s seconds", got)
	}
	f.create(owner("U"), line("S", 2), f.key()).wantProblem(http.StatusConflict, "quantity_over_limit")
	// A policy that changes is for new holds only.
	f.putPolicy("flight", `{"hold_seconds":10}`).want(http.StatusOK)
	f.clock.Advance(policyReachesSlots)
	if got := f.get("/v1/holds/"+hold.text("hold_id"), "", owner("U")); fmt.Sprint(got.json()["hold_seconds"]) != "200" || got.text("expires_at") != hold.text("expires_at") {
		t.Errorf("the hold that was there is now %s", got.body)
	}
	f.balanced()
}

// listOf is a list of texts in a body.
func listOf(a answer, member string) []string {
	var out []string
	items, _ := a.json()[member].([]any)
	for _, item := range items {
		out = append(out, fmt.Sprint(item))
	}
	return out
}

// The parts to inherit are a set: their order and a repeated name make no other request.
func TestPartsToInheritAreASet(t *testing.T) {
	f := newFixture(t)
	f.define("S", 5, `"policy":{"hold_seconds":100,"scarce":true}`)
	patch := func(body string) answer {
		return f.do(call{method: http.MethodPatch, path: "/v1/slots/S", body: body, claims: catalog(), headers: keyed("K")})
	}
	first := patch(`{"policy":{"inherit":["hold_seconds","scarce"],"sale_from":"2026-12-01T10:00","sale_time_zone":"Asia/Seoul"}}`)
	first.want(http.StatusOK)
	patch(`{"policy":{"sale_time_zone":"Asia/Seoul","sale_from":"2026-12-01T01:00:00Z","inherit":["scarce","hold_seconds","scarce"]}}`).wantReplayOf(first)
	patch(`{"policy":{"inherit":["hold_seconds"],"sale_from":"2026-12-01T10:00","sale_time_zone":"Asia/Seoul"}}`).
		wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
}

// What is said to be empty is another request than what is not said.
func TestEmptyIsNotUnsaid(t *testing.T) {
	f := newFixture(t)
	f.define("S", 5, `"attributes":{"cabin":"economy"}`, `"policy":{"grant_to_slot_id":"points"}`)
	for said, unsaid := range map[string]string{
		`{"open":true,"attributes":{}}`:                         `{"open":true}`,
		`{"policy":{"scarce":true,"grant_to_slot_id":""}}`:      `{"policy":{"scarce":true}}`,
		`{"policy":{"scarce":true,"sale_until":""}}`:            `{"policy":{"scarce":true}}`,
		`{"policy":{"scarce":true,"sale_from":""},"open":true}`: `{"policy":{"scarce":true,"sale_from":"2026-11-30T00:00:00Z"},"open":true}`,
	} {
		patch := call{method: http.MethodPatch, path: "/v1/slots/S", body: said, claims: catalog(), headers: f.key()}
		f.do(patch).want(http.StatusOK)
		patch.body = unsaid
		f.do(patch).wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	}
}

// Case L6 for the numbers of a policy: what is no whole number within bounds is refused,
// wherever it is said, and nothing is written.
func TestCaseL6_OddNumbersInPolicies(t *testing.T) {
	f := newFixture(t)
	f.define("S", 5)
	limits := []string{"quantity_max_per_owner", "quantity_max_per_owner_of_resource", "holds_max_per_owner", "expiries_max", "holds_max_per_signal",
		"cooldown_seconds", "sale_ends_seconds_before_start"}
	for _, part := range limits {
		for _, value := range []string{"-1", "1.5", `"1"`, "1e9", "9223372036854775808", "null", "true", "[1]", "31622401"} {
			policy := fmt.Sprintf(`{%q:%s}`, part, value)
			for at, a := range map[string]answer{
				"/":        f.putPolicy("flight", policy),
				"/policy/": f.patch("S", `{"policy":`+policy+`}`),
			} {
				a.wantProblem(http.StatusBadRequest, "invalid_request")
				if got := a.members("errors", "name"); !slices.Equal(got, []string{at + part}) {
					t.Errorf("%s: the errors point at %v: %s", policy, got, a.body)
				}
			}
		}
	}
	for _, body := range []string{
		`{"hold_seconds":0}`, `{"quantity_max_per_hold":0}`, `{"scarce":1}`, `{"expiries_max":1,"cooldown_seconds":0}`,
		`{"hold_seconds":60,"hold_max_seconds":59}`, `{"sale_from":"2026-12-02T00:00:00Z","sale_until":"2026-12-02T00:00:00Z"}`,
		`{"owner":"U"}`, `{"inherit":["price"]}`, `{"inherit":["scarce"],"scarce":true}`, `{"inherit":7}`, `[]`, `null`, ``,
	} {
		f.putPolicy("flight", body).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	for _, scope := range []string{"a b", "é", strings.Repeat("s", 129), "flight/a b", "flight/" + strings.Repeat("s", 129)} {
		f.putPolicy(scope, `{}`).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	f.get("/v1/policies/flight", "", catalog()).wantProblem(http.StatusNotFound, "policy_not_found")
	if a := f.get("/v1/slots/S", "", catalog()); fmt.Sprint(a.json()["version"]) != "1" {
		t.Errorf("a refused patch changed the slot: %s", a.body)
	}
}

// Times of a sale come with an offset, or as the clocks of a zone show them; answers give
// UTC. A local time that clocks show twice is the first of the two.
func TestTimesOfASale(t *testing.T) {
	f := newFixture(t)
	for i, test := range []struct{ from, zone, want string }{
		{"2026-12-01T10:00:00+09:00", "", "2026-12-01T01:00:00.000Z"},
		{"2026-12-01T10:00:00.1239Z", "Asia/Seoul", "2026-12-01T10:00:00.123Z"},
		{"2026-12-01T10:00", "Asia/Seoul", "2026-12-01T01:00:00.000Z"},
		{"2026-12-01T10:00:30", "America/New_York", "2026-12-01T15:00:30.000Z"},
		{"2026-07-01T10:00:30.5", "America/New_York", "2026-07-01T14:00:30.500Z"},
		{"2026-12-01T10:00", "UTC", "2026-12-01T10:00:00.000Z"},
		// On 1 November 2026 New York sets its clocks from 02:00 back to 01:00.
		{"2026-11-01T00:59:59", "America/New_York", "2026-11-01T04:59:59.000Z"},
		{"2026-11-01T01:30", "America/New_York", "2026-11-01T05:30:00.000Z"},
		{"2026-11-01T02:00", "America/New_York", "2026-11-01T07:00:00.000Z"},
		// On 8 March 2026 it sets them from 02:00 to 03:00.
		{"2026-03-08T01:59:59", "America/New_York", "2026-03-08T06:59:59.000Z"},
		{"2026-03-08T03:00", "America/New_York", "2026-03-08T07:00:00.000Z"},
		// Lord Howe Island moves its clocks by half an hour.
		{"2027-04-04T01:45", "Australia/Lord_Howe", "2027-04-03T14:45:00.000Z"},
	} {
		a := f.putPolicy(fmt.Sprintf("type-%d", i), fmt.Sprintf(`{"sale_from":%q,"sale_time_zone":%q}`, test.from, test.zone))
		a.want(http.StatusCreated)
		if p := a.json()["policy"].(map[string]any); p["sale_from"] != test.want || p["sale_time_zone"] != test.zone {
			t.Errorf("%s in %q is %v in %v, want %s", test.from, test.zone, p["sale_from"], p["sale_time_zone"], test.want)
		}
	}
	for body, at := range map[string]string{
		`{"sale_from":"2026-03-08T02:00","sale_time_zone":"America/New_York"}`:     "/sale_from",
		`{"sale_until":"2026-03-08T02:59:59","sale_time_zone":"America/New_York"}`: "/sale_until",
		// Samoa went without this day.
		`{"sale_from":"2011-12-30T12:00","sale_time_zone":"Pacific/Apia"}`: "/sale_from",
		`{"sale_from":"2026-12-01T10:00"}`:                                 "/sale_from",
		`{"sale_from":"2026-12-01T10:00","sale_time_zone":""}`:             "/sale_from",
		`{"sale_from":"2026-12-01T10:00","sale_time_zone":"Mars/Olympus"}`: "/sale_time_zone",
		`{"sale_time_zone":"Local"}`:                                       "/sale_time_zone",
		`{"sale_time_zone":"../../etc/passwd"}`:                            "/sale_time_zone",
		`{"sale_time_zone":"/etc/localtime"}`:                              "/sale_time_zone",
		`{"sale_time_zone":"+09:00"}`:                                      "/sale_time_zone",
		`{"sale_from":"2026-12-01"}`:                                       "/sale_from",
		`{"sale_from":"tomorrow"}`:                                         "/sale_from",
		`{"sale_from":null}`:                                               "/sale_from",
		`{"sale_from":1}`:                                                  "/sale_from",
		`{"sale_from":"2026-13-01T10:00:00Z"}`:                             "/sale_from",
		`{"sale_from":"2026-02-30T10:00","sale_time_zone":"Asia/Seoul"}`:   "/sale_from",
		`{"sale_from":"1969-12-31T10:00:00Z"}`:                             "/sale_from",
		`{"sale_from":"2026-12-01T10:00Z"}`:                                "/sale_from",
	} {
		a := f.putPolicy("never", body)
		a.wantProblem(http.StatusBadRequest, "invalid_request")
		if got := a.members("errors", "name"); !slices.Equal(got, []string{at}) {
			t.Errorf("%s: the errors point at %v: %s", body, got, a.body)
		}
	}
	f.get("/v1/policies/never", "", catalog()).wantProblem(http.StatusNotFound, "policy_not_found")
}
