package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// Case E1: one key shared its answer between different operations.
func TestCaseE1_OneKeyManyOperations(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 10)
	p, q := f.mustHold(owner("U"), "seat", 1), f.mustHold(owner("U"), "seat", 1)
	// One user with both scopes, so that the three share the owner part of the key too.
	user := map[string]any{"sub": "U", "scope": "holds confirm"}
	created := f.create(user, line("seat", 1), keyed("one"))
	created.want(http.StatusCreated)
	confirmed := f.post("/v1/holds/"+p+"/confirm", "", user, keyed("one"))
	confirmed.want(http.StatusOK)
	cancelled := f.post("/v1/holds/"+q+"/cancel", "", user, keyed("one"))
	cancelled.want(http.StatusOK)
	if confirmed.text("status") != "CONFIRMED" || cancelled.text("status") != "CANCELED" || confirmed.text("hold_id") != p {
		t.Errorf("answers %s and %s", confirmed.body, cancelled.body)
	}
	f.create(user, line("seat", 0), keyed("two")).wantProblem(http.StatusBadRequest, "invalid_request")
	f.create(user, line("seat", 1), keyed("two")).want(http.StatusCreated)
	f.counters("seat", 7, 2, 1, 10)
	f.balanced()
}

// Case E3: the second of two different requests vanished because both used one key.
func TestCaseE3_AnotherRequestUnderTheKey(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 10)
	first := f.create(owner("U"), line("seat", 1), keyed("K"))
	first.want(http.StatusCreated)
	f.create(owner("U"), line("seat", 2), keyed("K")).wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	f.clock.Advance(time.Minute)
	again := f.create(owner("U"), line("seat", 1), keyed("K"))
	again.wantReplayOf(first)
	if first.headers["Idempotent-Replayed"] != "" {
		t.Error("the first answer claims to be a replay")
	}
	f.counters("seat", 9, 1, 0, 10)
	// Another owner's key is another key (P6).
	other := f.create(owner("V"), line("seat", 1), keyed("K"))
	other.want(http.StatusCreated)
	if other.text("hold_id") == first.text("hold_id") {
		t.Error("V was answered with the hold of U")
	}
	f.balanced()
}

// wantReplayOf checks that a is the same answer again, to the byte.
func (a answer) wantReplayOf(first answer) {
	a.t.Helper()
	if a.status != first.status || a.body != first.body || a.headers["Idempotent-Replayed"] != "true" {
		a.t.Errorf("answer %d %s %s is no replay of %d %s", a.status, a.body, a.headers["Idempotent-Replayed"], first.status, first.body)
	}
}

// Case E4: a different order of JSON members made an honest retry fail.
func TestCaseE4_OneMeaningManyTexts(t *testing.T) {
	f := newFixture(t)
	f.define("A", 10)
	f.define("B", 10)
	first := f.create(owner("U"), `{"lines":[{"slot_id":"A","quantity":1,"unit_amount":1000},{"slot_id":"B","quantity":1,"unit_amount":1000}]}`, keyed("K"))
	first.want(http.StatusCreated)
	same := map[string]string{
		"member order": `{"lines":[{"unit_amount":1000,"quantity":1,"slot_id":"A"},{"quantity":1,"unit_amount":1000,"slot_id":"B"}]}`,
		"white space":  " {\n\"lines\" : [ {\"slot_id\":\"A\" ,\t\"quantity\":1,\"unit_amount\":1000},{\"slot_id\":\"B\",\"quantity\":1,\"unit_amount\":1000} ]\r\n} ",
		"line order":   `{"lines":[{"slot_id":"B","quantity":1,"unit_amount":1000},{"slot_id":"A","quantity":1,"unit_amount":1000}]}`,
		"escapes":      `{"\u006cines":[{"slot_id":"\u0041","quantity":1,"unit_amount":1000},{"slot_id":"B","quantity":1,"unit_amount":1000}]}`,
		"short form":   `{"slot_ids":["B","A"],"quantity":1,"quoted_price":1000}`,
	}
	for name, body := range same {
		t.Run(name, func(t *testing.T) { f.create(owner("U"), body, keyed("K")).in(t).wantReplayOf(first) })
	}
	f.counters("A", 9, 1, 0, 10)
	f.counters("B", 9, 1, 0, 10)
	strict := map[string]string{
		"member twice":         `{"slot_ids":["A"],"quantity":1,"quoted_price":1000,"quantity":1}`,
		"member twice, deep":   `{"lines":[{"slot_id":"A","quantity":1,"unit_amount":1000,"slot_id":"A"}]}`,
		"twice by an escape":   `{"slot_ids":["A"],"quantity":1,"quoted_price":1000,"\u0071uantity":1}`,
		"something after":      `{"slot_ids":["A"],"quantity":1,"quoted_price":1000} {}`,
		"broken UTF-8":         "{\"slot_ids\":[\"A\xff\"],\"quantity\":1,\"quoted_price\":1000}",
		"unknown member":       `{"slot_ids":["A"],"quantity":1,"quoted_price":1000,"customer_id":"V"}`,
		"member in other case": `{"Slot_ids":["A"],"quantity":1,"quoted_price":1000}`,
		"both forms":           `{"lines":[{"slot_id":"A","quantity":1,"unit_amount":1000}],"quantity":1}`,
		"half a form":          `{"slot_ids":["A"],"quantity":1}`,
		"neither form":         `{}`,
		"no lines":             `{"lines":[]}`,
		"two prices":           `{"lines":[{"slot_id":"A","quantity":1,"unit_amount":1000},{"slot_id":"A","quantity":1,"unit_amount":999}]}`,
		"no object":            `[]`,
		"null":                 `null`,
		"no JSON":              `lines=A`,
		"cut short":            `{"lines":[{"slot_id":"A"`,
		"empty":                ``,
		"deep":                 strings.Repeat("[", 20000),
	}
	for name, body := range strict {
		t.Run(name, func(t *testing.T) {
			a := f.do(call{
				method: http.MethodPost, path: "/v1/holds", claims: owner("U"), headers: f.key(),
				// Base64 keeps bytes that are no text as they are.
				body: encoded(body), isBase64: true,
			}).in(t)
			a.wantProblem(http.StatusBadRequest, "invalid_request")
			if len(a.members("errors", "in")) == 0 && name != "two prices" {
				t.Errorf("the problem points at nothing: %s", a.body)
			}
		})
	}
	f.balanced()
}

// Case E9, the create part: of two at once with one key, the loser replays the winner's
// answer. P6: the same key 50 times at once makes one hold.
func TestCaseE9_SameKeyAtOnce(t *testing.T) {
	for _, callers := range []int{2, 50} {
		t.Run(fmt.Sprintf("%d callers", callers), func(t *testing.T) {
			f := newFixture(t)
			f.define("seat", 100)
			for round := range 20 {
				answers := make([]answer, callers)
				key := keyed(fmt.Sprintf("round-%d", round))
				atOnce(callers, func(i int) { answers[i] = f.create(owner("U"), line("seat", 1), key) })
				replays := 0
				for _, a := range answers {
					a.want(http.StatusCreated)
					if a.body != answers[0].body {
						t.Errorf("two answers: %s and %s", a.body, answers[0].body)
					}
					if a.headers["Idempotent-Replayed"] == "true" {
						replays++
					}
				}
				if replays != callers-1 {
					t.Errorf("%d replays of %d", replays, callers)
				}
			}
			f.counters("seat", 80, 20, 0, 100)
			f.balanced()
		})
	}
}

// Case E9, with one unit on several shards: the two calls of one request look for the
// unit in the same shards, and one of them may see it taken. By whom it was taken, it must
// find out before it says that nothing is left.
func TestCaseE9_TheLastUnitAtOnce(t *testing.T) {
	const rounds = 300
	for _, shards := range []int{2, 3} {
		t.Run(fmt.Sprintf("%d shards", shards), func(t *testing.T) {
			f := newFixture(t)
			for round := range rounds {
				slot := fmt.Sprintf("seat-%d", round)
				f.define(slot, 1, fmt.Sprintf(`"shards":%d`, shards))
				var answers [2]answer
				key := keyed(slot)
				atOnce(len(answers), func(i int) { answers[i] = f.create(owner("U"), line(slot, 1), key) })
				if answers[0].status != http.StatusCreated || answers[1].status != http.StatusCreated || answers[0].body != answers[1].body {
					t.Fatalf("round %d: %d %s and %d %s", round, answers[0].status, answers[0].body, answers[1].status, answers[1].body)
				}
				f.counters(slot, 0, 1, 0, 1)
			}
			f.balanced()
		})
	}
}

// slowStore is a store whose next commit is applied only after its caller has given up.
type slowStore struct {
	*memory.Store
	late atomic.Bool
}

func (s *slowStore) Commit(ctx context.Context, c ledger.Change) error {
	err := s.Store.Commit(ctx, c)
	if s.late.Swap(false) && err == nil {
		return &ledger.Error{Code: ledger.CodeOutcomeUnknown, Message: "no answer in time; ask again with the same key"}
	}
	return err
}

// Case H8: the client saw an error although the order was saved a moment later. The
// retry gets the original answer. (That the time-outs are ordered is a test of package
// topology.)
func TestCaseH8_RetryAfterALateCommit(t *testing.T) {
	store := &slowStore{Store: memory.New()}
	f := newFixtureOn(t, store)
	f.define("seat", 10)
	store.late.Store(true)
	f.create(owner("U"), line("seat", 1), keyed("K")).wantProblem(http.StatusServiceUnavailable, "outcome_unknown")
	again := f.create(owner("U"), line("seat", 1), keyed("K"))
	again.want(http.StatusCreated)
	if again.headers["Idempotent-Replayed"] != "true" {
		t.Errorf("the retry made another hold: %s", again.body)
	}
	if got := f.pages("", owner("U")); len(got) != 1 || got[0] != again.text("hold_id") {
		t.Errorf("holds %v, want the one answered", got)
	}
	f.counters("seat", 9, 1, 0, 10)
	f.balanced()
}

// A key is remembered for 48 hours and no longer; a refusal is never remembered.
func TestKeysAreForgotten(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 1, `"policy":{"hold_seconds":604800,"hold_max_seconds":604800}`)
	first := f.create(owner("U"), line("seat", 1), keyed("K"))
	first.want(http.StatusCreated)
	f.create(owner("V"), line("seat", 1), keyed("K")).wantProblem(http.StatusConflict, "insufficient_stock")
	f.clock.Set(noon.Add(ledger.IdempotencyRetainFor - time.Millisecond))
	f.create(owner("U"), line("seat", 1), keyed("K")).wantReplayOf(first)
	f.clock.Set(noon.Add(ledger.IdempotencyRetainFor))
	f.create(owner("U"), line("seat", 1), keyed("K")).wantProblem(http.StatusConflict, "insufficient_stock")
	f.post("/v1/holds/"+first.text("hold_id")+"/cancel", "", owner("U"), f.key()).want(http.StatusOK)
	f.create(owner("V"), line("seat", 1), keyed("K")).want(http.StatusCreated)
	f.balanced()
}

// Every POST and PATCH needs a key, and a PUT does not.
func TestKeysAreNeeded(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	hold := f.mustHold(owner("U"), "seat", 1)
	paying := f.mustPay(owner("U"), f.mustHoldOf(owner("U"), "paid"))
	calls := []call{
		{method: http.MethodPost, path: "/v1/holds", body: line("seat", 1), claims: owner("U")},
		{method: http.MethodPost, path: "/v1/holds/" + hold + "/cancel", claims: owner("U")},
		{method: http.MethodPost, path: "/v1/holds/" + hold + "/confirm", claims: service()},
		{method: http.MethodPatch, path: "/v1/slots/seat", body: `{"open":false}`, claims: catalog()},
		{method: http.MethodPatch, path: "/v1/holds/" + hold, body: line("seat", 2), claims: owner("U")},
		{method: http.MethodPost, path: "/v1/holds/" + hold + "/extend", claims: owner("U")},
		{method: http.MethodPost, path: "/v1/holds/" + hold + "/return", claims: service()},
		{method: http.MethodPost, path: "/v1/holds/" + hold + "/payment", claims: owner("U")},
		{method: http.MethodPost, path: "/v1/reservations/" + paying + "/cancel", claims: owner("U")},
		{method: http.MethodPost, path: "/v1/reservations/" + paying + "/delivery", body: `{"delivered":true}`, claims: service()},
	}
	for _, c := range calls {
		f.do(c).wantProblem(http.StatusBadRequest, "idempotency_key_missing")
		for _, key := range []string{"a,b", "a b", "a\tb", "ключ", "", strings.Repeat("k", 256)} {
			c.headers = keyed(key)
			a := f.do(c)
			if a.status != http.StatusBadRequest {
				t.Errorf("%s %s with key %q: %d %s", c.method, c.path, key, a.status, a.body)
			}
		}
	}
	f.counters("seat", 4, 1, 0, 5)
	calls[0].headers = keyed(strings.Repeat("k", 255))
	f.do(calls[0]).want(http.StatusCreated)
}

// A replay is given also when what the first request did is the very reason why it would
// be refused now.
func TestReplayAfterTheHoldEnded(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 1)
	hold := f.mustHold(owner("U"), "seat", 1)
	first := f.post("/v1/holds/"+hold+"/cancel", "", owner("U"), keyed("K"))
	first.want(http.StatusOK)
	for _, body := range []string{"", "{}", " { } "} {
		f.post("/v1/holds/"+hold+"/cancel", body, owner("U"), keyed("K")).wantReplayOf(first)
	}
	f.post("/v1/holds/"+hold+"/cancel", "", owner("U"), keyed("L")).wantProblem(http.StatusConflict, "hold_not_active")
	other := f.mustHold(owner("U"), "seat", 1)
	f.post("/v1/holds/"+other+"/cancel", "", owner("U"), keyed("K")).wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	f.balanced()
}
