package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// simple is the definition of a slot of so many units.
func simple(capacity int) string {
	return fmt.Sprintf(`{"resource_type":"flight","resource_id":"KE0901","capacity":%d,"unit_amount":1000,"currency":"KRW","open":true}`, capacity)
}

func putOf(id, body string) string   { return fmt.Sprintf(`{"slot_id":%q,"put":%s}`, id, body) }
func patchOf(id, body string) string { return fmt.Sprintf(`{"slot_id":%q,"patch":%s}`, id, body) }

func (f *fixture) batch(headers map[string]string, rows ...string) answer {
	f.t.Helper()
	return f.post("/v1/slots/batch", `{"slots":[`+strings.Join(rows, ",")+`]}`, catalog(), headers)
}

// results are what came of the rows: the result of each, or the code of its problem.
func (a answer) results() string {
	a.t.Helper()
	a.want(http.StatusOK)
	var body httpapi.SlotBatchResults
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		a.t.Fatal(err)
	}
	var words []string
	for _, r := range body.Results {
		word := string(r.Result)
		if (r.Problem != nil) != (word == "refused") {
			a.t.Errorf("result %q with the problem %+v", word, r.Problem)
		}
		if r.Problem != nil {
			word = string(r.Problem.Code)
		}
		words = append(words, r.SlotID+":"+word)
	}
	return strings.Join(words, " ")
}

// Good rows and bad ones in one batch: each has its own result, in the order of the rows,
// and a bad one keeps no other back. Sent again, the batch ends the same.
func TestMixedBatch(t *testing.T) {
	f := newFixture(t)
	f.define("old", 5)
	f.define("more", 5)
	f.mustHold(owner("U"), "old", 3)
	f.slots = append(f.slots, "new", "dated")
	rows := []string{
		putOf("new", simple(7)),
		putOf("old", simple(2)),
		patchOf("more", `{"capacity_delta":4}`),
		patchOf("none", `{"open":false}`),
		putOf("zzz", strings.Replace(simple(1), "KRW", "ZZZ", 1)),
		patchOf("yyy", `{"currency":"XXX"}`),
		putOf("zone", strings.Replace(simple(1), `"open"`, `"policy":{"sale_time_zone":"Mars/Olympus"},"open"`, 1)),
		putOf("ends", strings.Replace(simple(1), `"open"`, `"ends_at":"2026-12-01T09:30:00Z","open"`, 1)),
		putOf("dated", definition),
	}
	key := f.key()
	first := f.batch(key, rows...)
	const refused = "none:slot_not_found zzz:invalid_request yyy:invalid_request zone:invalid_request ends:invalid_request "
	if got, want := first.results(), "new:created old:capacity_in_use more:changed "+refused+"dated:created"; got != want {
		t.Errorf("first\n%s, want\n%s", got, want)
	}
	for _, place := range []string{`"/slots/4/put/currency"`, `"/slots/5/patch/currency"`, `"/slots/6/put/policy/sale_time_zone"`} {
		if !strings.Contains(first.body, place) {
			t.Errorf("no mistake is at %s: %s", place, first.body)
		}
	}
	if got, want := f.batch(key, rows...).results(), "new:unchanged old:capacity_in_use more:changed "+refused+"dated:unchanged"; got != want {
		t.Errorf("again\n%s, want\n%s", got, want)
	}
	f.counters("more", 9, 0, 0, 9)
	f.counters("new", 7, 0, 0, 7)
	f.counters("old", 2, 3, 0, 5)
	// The same row in another batch is the same row, and another row under the key is not.
	if got, want := f.batch(key, patchOf("more", `{ "capacity_delta": 4 }`), patchOf("old", `{"capacity_delta":1}`)).results(), "more:changed old:changed"; got != want {
		t.Errorf("apart: %s, want %s", got, want)
	}
	if got, want := f.batch(key, patchOf("more", `{"capacity_delta":5}`)).results(), "more:idempotency_key_reused"; got != want {
		t.Errorf("reused: %s, want %s", got, want)
	}
	f.counters("more", 9, 0, 0, 9)
	f.balanced()
}

// A body that is not as described is refused as a whole, with the row's position, and
// nothing of it is carried out.
func TestWhatIsNoBatchIsRefusedWhole(t *testing.T) {
	f := newFixture(t)
	good := putOf("good", simple(1))
	many := make([]string, 101)
	for i := range many {
		many[i] = patchOf(fmt.Sprint("S", i), `{"open":true}`)
	}
	for _, test := range []struct {
		rows  []string
		place string
	}{
		{nil, "/slots"},
		{many, "/slots"},
		{[]string{good, `7`}, "/slots/1"},
		{[]string{good, `{}`}, "/slots/1/slot_id"},
		{[]string{good, `{"slot_id":"S"}`}, "/slots/1"},
		{[]string{good, `{"slot_id":"S","put":` + simple(1) + `,"patch":{"open":true}}`}, "/slots/1"},
		{[]string{good, putOf("a b", simple(1))}, "/slots/1/slot_id"},
		{[]string{good, putOf("S", strings.Replace(simple(1), `"capacity":1`, `"capacity":-1`, 1))}, "/slots/1/put/capacity"},
		{[]string{good, putOf("S", strings.Replace(simple(1), `"open"`, `"opened"`, 1))}, "/slots/1/put/opened"},
		{[]string{good, patchOf("S", `{}`)}, "/slots/1/patch"},
		{[]string{good, patchOf("S", `{"starts_at":"2026-13-01T00:00:00Z"}`)}, "/slots/1/patch/starts_at"},
		{[]string{good, patchOf("T", `{"open":true}`), patchOf("good", `{"open":true}`)}, "/slots/2/slot_id"},
	} {
		a := f.batch(f.key(), test.rows...)
		a.wantProblem(http.StatusBadRequest, "invalid_request")
		if !strings.Contains(a.body, `"`+test.place+`"`) {
			t.Errorf("%.80v: the place %s is not told: %s", test.rows, test.place, a.body)
		}
	}
	f.post("/v1/slots/batch", `{"slots":[`, catalog(), f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	f.post("/v1/slots/batch", `{"slots":[`+good+`]}`, catalog(), nil).wantProblem(http.StatusBadRequest, "idempotency_key_missing")
	f.post("/v1/slots/batch", `{"slots":[`+good+`]}`, owner("U"), f.key()).wantProblem(http.StatusForbidden, "forbidden")
	big := strings.Replace(good, `"open"`, `"attributes":{"x":"`+strings.Repeat("x", 65_536)+`"},"open"`, 1)
	f.batch(f.key(), big).wantProblem(http.StatusRequestEntityTooLarge, "body_too_large")
	if slots, err := f.store.Slots(t.Context(), []ledger.SlotID{"good", "T"}); err != nil || len(slots) != 0 {
		t.Errorf("there are slots %v, %v", slots, err)
	}
}

// A hundred rows fit into one body, and are one answer.
func TestAFullBatch(t *testing.T) {
	f := newFixture(t)
	rows := make([]string, 100)
	for i := range rows {
		id := fmt.Sprint("S", i)
		rows[i] = putOf(id, strings.Replace(definition, `"shards":3`, `"shards":1`, 1))
		f.slots = append(f.slots, ledger.SlotID(id))
	}
	for _, want := range []string{"created", "unchanged"} {
		if got := strings.Count(f.batch(f.key(), rows...).results(), ":"+want); got != len(rows) {
			t.Errorf("%d of %d rows are %s", got, len(rows), want)
		}
	}
	f.balanced()
}

// Bulk changes of prices and capacities beside buyers: each delta counts once, and who
// quotes the old price is told the new one.
func TestBatchesBesideBuyers(t *testing.T) {
	const slots, buyers, batches = 4, 40, 6
	f := newFixture(t)
	for s := range slots {
		f.define(fmt.Sprint("S", s), buyers, `"shards":2`)
	}
	atOnce(buyers+2*batches, func(i int) {
		if i < buyers {
			a := f.create(owner(fmt.Sprint("U", i)), line(fmt.Sprint("S", i%slots), 1), f.key())
			if a.status != http.StatusCreated {
				a.wantProblem(http.StatusConflict, "price_changed")
			}
			return
		}
		n := (i - buyers) / 2
		rows := make([]string, slots)
		for s := range rows {
			rows[s] = patchOf(fmt.Sprint("S", s), fmt.Sprintf(`{"capacity_delta":%d,"unit_amount":%d}`, n+1, 1100))
		}
		if got := strings.Count(f.batch(keyed(fmt.Sprint("batch-", n)), rows...).results(), ":changed"); got != slots {
			t.Errorf("batch %d: %d of %d rows", n, got, slots)
		}
	})
	for s := range slots {
		j := f.get(fmt.Sprint("/v1/slots/S", s), "", catalog()).json()
		if got, want := fmt.Sprintf("%v %v %v", j["capacity"], j["unit_amount"], j["price_version"]), fmt.Sprintf("%d 1100 2", buyers+21); got != want {
			t.Errorf("slot %d is at %s, want %s", s, got, want)
		}
	}
	f.create(owner("late"), line("S0", 1), f.key()).wantProblem(http.StatusConflict, "price_changed")
	f.balanced()
}

// broken is a store that fails to write what names a slot.
type broken struct {
	ledger.Store
	slot ledger.SlotID
	err  error
}

func (b broken) Commit(ctx context.Context, c ledger.Change) error {
	for _, w := range c.Slots {
		if w.Next.ID == b.slot {
			return b.err
		}
	}
	return b.Store.Commit(ctx, c)
}

// A fault of ours in one row is told to nobody but the log, where it counts as a fault of
// the request; a store that does not answer is told as what it is.
func TestFaultsOfRows(t *testing.T) {
	for _, test := range []struct {
		err  error
		code string
		rung bool
	}{
		{errors.New("marker of a secret"), "internal", true},
		{&ledger.Error{Code: ledger.CodeUnavailable, Message: "try again", Cause: errors.New("marker of a secret")}, "unavailable", false},
	} {
		f := newFixtureOn(t, broken{memory.New(), "bad", test.err})
		rows := []string{patchOf("none", `{"open":true}`), putOf("good", simple(1)), putOf("bad", strings.Replace(simple(1), `"open"`, `"shards":64,"open"`, 1)), putOf("last", strings.Replace(simple(1), `"open"`, `"shards":64,"open"`, 1))}
		a := f.batch(f.key(), rows...)
		if got, want := a.results(), "none:slot_not_found good:"+test.code+" bad:"+test.code+" last:created"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if strings.Contains(a.body, "marker") || strings.Count(f.logs.String(), "marker of a secret") != 1 {
			t.Errorf("told %s, logged %s", a.body, f.logs)
		}
		if rung := strings.Contains(f.metrics.String(), "api_internal_faults"); rung != test.rung {
			t.Errorf("%s: the fault is counted: %t", test.code, rung)
		}
	}
}

// A row that is read without the API means what it means in a batch, and is refused for the
// same reasons.
func TestARowOutsideABatch(t *testing.T) {
	contract, err := httpapi.LoadContract()
	if err != nil {
		t.Fatal(err)
	}
	row, err := contract.SlotRow([]byte(putOf("S", definition)))
	if err != nil || row.ID != "S" || row.Put == nil || row.Put.Capacity != 10 || row.Put.Terms.Shards != 3 || row.Put.Attributes["cabin"] != "economy" {
		t.Errorf("%+v, %v", row, err)
	}
	row, err = contract.SlotRow([]byte(patchOf("S", `{"capacity_delta":-3}`)))
	same, sameErr := contract.SlotRow([]byte(` { "patch": {"capacity_delta":-3}, "slot_id":"S"}`))
	if err != nil || sameErr != nil || *row.Patch.CapacityDelta != -3 || row.Fingerprint == "" || row.Fingerprint != same.Fingerprint {
		t.Errorf("%+v, %v; %+v, %v", row, err, same, sameErr)
	}
	if other, err := contract.SlotRow([]byte(patchOf("T", `{"capacity_delta":-3}`))); err != nil || other.Fingerprint == row.Fingerprint {
		t.Errorf("two slots have one fingerprint, %v", err)
	}
	for text, place := range map[string]string{
		"":                                  "",
		"{":                                 "",
		"[]":                                "",
		"\xff":                              "",
		`{"slot_id":"S","slot_id":"S"}`:     "/slot_id",
		putOf("S", simple(1)) + "{}":        "",
		putOf("a b", simple(1)):             "/slot_id",
		patchOf("S", `{"capacity":1e3}`):    "/patch/capacity",
		patchOf("S", `{"capacity":"5"}`):    "/patch/capacity",
		patchOf("S", `{"currency":"ZZZ"}`):  "/patch/currency",
		patchOf("S", `{"seats":1}`):         "/patch/seats",
		patchOf("S", `{"starts_at":"now"}`): "/patch/starts_at",
		`{"slot_id":"S"}`:                   "",
	} {
		_, err := contract.SlotRow([]byte(text))
		p := httpapi.ProblemOf(err)
		if err == nil || p.Code != "invalid_request" || len(p.Errors) == 0 || p.Errors[0].Name != place {
			t.Errorf("%q: %v, told %+v", text, err, p)
		}
	}
}
