package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

const definition = `{"resource_type":"flight","resource_id":"KE0901","starts_at":"2026-12-01T18:30:00.1239+09:00",` +
	`"ends_at":"2026-12-01T12:00:00Z","capacity":10,"unit_amount":1000,"currency":"KRW","open":true,` +
	`"attributes":{"cabin":"economy"},"policy":{"hold_seconds":7200,"quantity_max_per_hold":4},"shards":3}`

func (f *fixture) put(id, body string) answer {
	f.t.Helper()
	return f.do(call{method: http.MethodPut, path: "/v1/slots/" + id, body: body, claims: catalog()})
}

func (f *fixture) patch(id, body string) answer {
	f.t.Helper()
	return f.do(call{method: http.MethodPatch, path: "/v1/slots/" + id, body: body, claims: catalog(), headers: f.key()})
}

// What a slot answers, to the letter: defaults filled in, times in UTC and milliseconds.
func TestSlotAnswer(t *testing.T) {
	f := newFixture(t)
	want := `{"attributes":{"cabin":"economy"},"available":10,"capacity":10,"confirmed":0,"created_at":"2026-11-30T12:00:00.000Z",` +
		`"currency":"KRW","ends_at":"2026-12-01T12:00:00.000Z","held":0,"open":true,` +
		`"policy":{"cancel_until_seconds":0,"cooldown_seconds":0,"delivery":"none","expiries_max":0,"grace_seconds":120,` +
		`"hold_max_seconds":7200,"hold_seconds":7200,"holds_max_per_owner":0,"holds_max_per_signal":0,` +
		`"late_payment":"reacquire","late_payment_by_provider":false,"on_decline":"release","quantity_max_per_hold":4,` +
		`"quantity_max_per_owner":0,"quantity_max_per_owner_of_resource":0,` +
		`"restock":true,"sale_time_zone":"","scarce":false,"unknown_max_seconds":900},` +
		`"policy_inherits":["grace_seconds","hold_max_seconds","on_decline","late_payment","late_payment_by_provider",` +
		`"unknown_max_seconds","delivery","cancel_until_seconds","restock","grant_to_slot_id","quantity_max_per_owner",` +
		`"quantity_max_per_owner_of_resource","holds_max_per_owner","expiries_max","cooldown_seconds","holds_max_per_signal",` +
		`"sale_from","sale_until","sale_ends_seconds_before_start","sale_time_zone","scarce"],` +
		`"price_version":1,"resource_id":"KE0901","resource_type":"flight","shards":3,"slot_id":"S","starts_at":"2026-12-01T09:30:00.123Z",` +
		`"unit_amount":1000,"updated_at":"2026-11-30T12:00:00.000Z","version":1}`
	created := f.put("S", definition)
	created.want(http.StatusCreated)
	f.clock.Advance(time.Second)
	again := f.put("S", definition)
	again.want(http.StatusOK)
	for _, a := range []answer{created, again, f.get("/v1/slots/S", "", operator())} {
		if a.body != want {
			t.Errorf("got\n%s\nwant\n%s", a.body, want)
		}
	}
	f.get("/v1/slots/T", "", catalog()).wantProblem(http.StatusNotFound, "slot_not_found")
}

func TestSlotChanges(t *testing.T) {
	f := newFixture(t)
	f.put("S", definition).want(http.StatusCreated)
	f.slots = []ledger.SlotID{"S"}
	f.mustHold(owner("U"), "S", 4)
	f.clock.Advance(time.Second)

	price := f.patch("S", `{"unit_amount":1200}`)
	price.want(http.StatusOK)
	if j := price.json(); fmt.Sprintf("%v %v %v", j["price_version"], j["version"], j["unit_amount"]) != "2 2 1200" ||
		price.text("updated_at") != "2026-11-30T12:00:01.000Z" {
		t.Errorf("answer %s", price.body)
	}
	f.create(owner("U"), line("S", 1), f.key()).wantProblem(http.StatusConflict, "price_changed")

	f.patch("S", `{"capacity_delta":-6}`).want(http.StatusOK)
	f.counters("S", 0, 4, 0, 4)
	f.patch("S", `{"capacity_delta":-1}`).wantProblem(http.StatusConflict, "capacity_in_use")
	f.patch("S", `{"capacity":1000000000,"attributes":{}}`).want(http.StatusOK)
	if a := f.get("/v1/slots/S", "", catalog()); strings.Contains(a.body, "attributes") {
		t.Errorf("attributes are left: %s", a.body)
	}
	f.patch("S", `{"capacity_delta":1}`).wantProblem(http.StatusBadRequest, "invalid_request")
	f.patch("S", `{"capacity_delta":-999999900,"open":false,"policy":{"grace_seconds":0}}`).want(http.StatusOK)
	f.create(owner("U"), strings.ReplaceAll(line("S", 1), "1000", "1200"), f.key()).wantProblem(http.StatusConflict, "slot_closed")

	f.put("S", strings.Replace(definition, "KE0901", "KE0902", 1)).wantProblem(http.StatusConflict, "slot_fixed")
	f.put("S", strings.Replace(definition, `"capacity":10`, `"capacity":3`, 1)).wantProblem(http.StatusConflict, "capacity_in_use")
	f.put("S", definition).want(http.StatusOK)
	f.create(owner("U"), line("S", 5), f.key()).wantProblem(http.StatusConflict, "quantity_over_limit")
	f.patch("T", `{"open":false}`).wantProblem(http.StatusNotFound, "slot_not_found")
	f.counters("S", 6, 4, 0, 10)
	f.balanced()
}

// The stock of a slot is spread over more parts, or fewer, while it is sold: by a PATCH and
// by a PUT. Nothing is lost on the way, and a hold goes back to where it came from.
func TestASlotIsResharded(t *testing.T) {
	f := newFixture(t)
	f.define("S", 10, `"shards":3`)
	hold := f.mustHold(owner("U"), "S", 4)
	for _, shards := range []int{16, 2, 1} {
		a := f.patch("S", fmt.Sprintf(`{"shards":%d}`, shards))
		a.want(http.StatusOK)
		if got := fmt.Sprint(a.json()["shards"]); got != fmt.Sprint(shards) {
			t.Errorf("the slot has %s shards, want %d", got, shards)
		}
		f.counters("S", 6, 4, 0, 10)
	}
	f.post("/v1/holds/"+hold+"/cancel", "", owner("U"), f.key()).want(http.StatusOK)
	all := f.create(owner("V"), line("S", 10), f.key())
	all.want(http.StatusCreated)
	f.counters("S", 0, 10, 0, 10)
	f.balanced()
}

// An operator who finds fewer units than are promised says so: the slot closes, shows what
// is missing, and opens again only when its capacity fits.
func TestAnOversoldSlot(t *testing.T) {
	f := newFixture(t)
	f.define("S", 5)
	hold := f.mustHold(owner("U"), "S", 4)
	f.patch("S", `{"capacity":3}`).wantProblem(http.StatusConflict, "capacity_in_use")
	f.patch("S", `{"capacity":3,"accept_oversold":false}`).wantProblem(http.StatusConflict, "capacity_in_use")
	if a := f.get("/v1/slots/S", "", catalog()); strings.Contains(a.body, "oversold") {
		t.Errorf("a sound slot answers %s", a.body)
	}
	marked := f.patch("S", `{"capacity":3,"accept_oversold":true}`)
	marked.want(http.StatusOK)
	for _, a := range []answer{marked, f.get("/v1/slots/S", "", operator())} {
		if got := fmt.Sprintf("%v %v", a.json()["oversold"], a.json()["open"]); got != "1 false" {
			t.Errorf("oversold and open are %s, want 1 false: %s", got, a.body)
		}
	}
	refused := f.patch("S", `{"open":true}`)
	refused.wantProblem(http.StatusConflict, "slot_oversold")
	if got := refused.members("slots", "slot_id"); !slices.Equal(got, []string{"S"}) {
		t.Errorf("the problem names %v", got)
	}
	f.create(owner("V"), line("S", 1), f.key()).wantProblem(http.StatusConflict, "slot_closed")
	f.post("/v1/holds/"+hold+"/confirm", "", service(), f.key()).want(http.StatusOK)
	open := f.patch("S", `{"capacity":4,"open":true}`)
	open.want(http.StatusOK)
	if strings.Contains(open.body, "oversold") {
		t.Errorf("the slot fits again and answers %s", open.body)
	}
	f.counters("S", 0, 0, 4, 4)
	f.balanced()
}

// The same change twice under one key is one change.
func TestPatchIsRepeatable(t *testing.T) {
	f := newFixture(t)
	f.define("S", 10)
	change := call{method: http.MethodPatch, path: "/v1/slots/S", body: `{"capacity_delta":5}`, claims: catalog(), headers: keyed("K")}
	first := f.do(change)
	first.want(http.StatusOK)
	change.body = ` { "capacity_delta" : 5 } `
	f.do(change).wantReplayOf(first)
	change.body = `{"capacity_delta":6}`
	f.do(change).wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	f.counters("S", 15, 0, 0, 15)
	f.balanced()
}

// A reader compares two answers byte by byte, so the same slot has the same bytes.
func TestTheSameSlotHasTheSameBytes(t *testing.T) {
	f := newFixture(t)
	f.define("S", 5, `"attributes":{"a":"1","b":"2","c":"3","d":"4","e":"5","f":"6"}`)
	first := f.get("/v1/slots/S", "", catalog())
	for range 20 {
		if again := f.get("/v1/slots/S", "", catalog()); again.body != first.body {
			t.Fatalf("%s\nand then\n%s", first.body, again.body)
		}
	}
}

func TestSlotRefusals(t *testing.T) {
	f := newFixture(t)
	replaced := func(old, replacement string) string { return strings.Replace(definition, old, replacement, 1) }
	bad := map[string]string{
		"capacity below zero":   replaced(`"capacity":10`, `"capacity":-1`),
		"capacity too large":    replaced(`"capacity":10`, `"capacity":1000000001`),
		"capacity as text":      replaced(`"capacity":10`, `"capacity":"10"`),
		"capacity null":         replaced(`"capacity":10`, `"capacity":null`),
		"capacity fraction":     replaced(`"capacity":10`, `"capacity":10.5`),
		"capacity with zeros":   replaced(`"capacity":10`, `"capacity":10.0`),
		"no capacity":           replaced(`"capacity":10,`, ``),
		"no open":               replaced(`"open":true,`, ``),
		"currency in small":     replaced("KRW", "krw"),
		"currency too long":     replaced("KRW", "KRWX"),
		"amount below zero":     replaced("1000", "-1"),
		"shards zero":           replaced(`"shards":3`, `"shards":0`),
		"shards 65":             replaced(`"shards":3`, `"shards":65`),
		"odd resource":          replaced("KE0901", "KE 0901"),
		"month 13":              replaced("2026-12-01T12", "2026-13-01T12"),
		"30 February":           replaced("2026-12-01T12", "2026-02-30T12"),
		"second 60":             replaced("12:00:00Z", "12:00:60Z"),
		"no offset":             replaced("12:00:00Z", "12:00:00"),
		"year 1":                replaced(`2026-12-01T18:30:00.1239+09:00`, "0001-01-01T00:00:00Z"),
		"before 1970":           replaced(`2026-12-01T18:30:00.1239+09:00`, "1969-12-31T23:59:59.999Z"),
		"the start of 1970":     replaced(`2026-12-01T18:30:00.1239+09:00`, "1970-01-01T00:00:00.000Z"),
		"after 9999":            replaced(`2026-12-01T12:00:00Z`, "9999-12-31T23:00:00-02:00"),
		"ends before it starts": replaced("2026-12-01T12:00:00Z", "2026-12-01T09:00:00Z"),
		"ends without a start":  replaced(`"starts_at":"2026-12-01T18:30:00.1239+09:00",`, ``),
		"hold of no time":       replaced(`"hold_seconds":7200`, `"hold_seconds":0`),
		"hold of a month":       replaced(`"hold_seconds":7200`, `"hold_seconds":2592000`),
		"shorter maximum":       replaced(`"hold_seconds":7200`, `"hold_seconds":7200,"hold_max_seconds":7199`),
		"unknown policy":        replaced(`"hold_seconds":7200`, `"hold_secs":7200`),
		"attribute as number":   replaced(`"economy"`, `1`),
		"attribute too long":    replaced(`economy`, strings.Repeat("é", 200)),
		"unknown member":        replaced(`"shards":3`, `"version":3`),
	}
	for name, body := range bad {
		t.Run(name, func(t *testing.T) { f.put("S", body).in(t).wantProblem(http.StatusBadRequest, "invalid_request") })
	}
	for _, id := range []string{"a b", "é", strings.Repeat("s", 129), "a%41"} {
		f.put(id, definition).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	f.get("/v1/slots/S", "", catalog()).wantProblem(http.StatusNotFound, "slot_not_found")
	f.put(strings.Repeat("s", 128), definition).want(http.StatusCreated)
	f.put("a.b_c:d-E9", definition).want(http.StatusCreated)
	for _, body := range []string{`{}`, `{"shards":0}`, `{"shards":65}`, `{"shards":1.5}`, `{"accept_oversold":1}`, `{"capacity":1,"capacity_delta":1}`, `{"open":null}`, `{"open":"true"}`, `{"resource_id":"x"}`, ``} {
		f.patch("a.b_c:d-E9", body).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	f.do(call{
		method: http.MethodPut, path: "/v1/slots/S", body: definition, claims: catalog(),
		headers: map[string]string{"content-type": "application/x-www-form-urlencoded"},
	}).wantProblem(http.StatusUnsupportedMediaType, "unsupported_media_type")
	f.do(call{
		method: http.MethodPut, path: "/v1/slots/S", body: definition, claims: catalog(),
		headers: map[string]string{"content-type": "Application/JSON; charset=UTF-8"},
	}).want(http.StatusCreated)
}
