package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"holdfast/shared/ledger"
)

// confirmLines sells the lines of a hold that the body names.
func (f *fixture) confirmLines(hold, body string, headers map[string]string) answer {
	f.t.Helper()
	return f.post("/v1/holds/"+hold+"/confirm", body, service(), headers)
}

// giveBack returns what was sold.
func (f *fixture) giveBack(hold, body string, headers map[string]string) answer {
	f.t.Helper()
	return f.post("/v1/holds/"+hold+"/return", body, service(), headers)
}

// quantities are the lines of a hold as "slot quantity returned".
func quantities(a answer) string {
	a.t.Helper()
	var out []string
	for i, slot := range a.members("lines", "slot_id") {
		out = append(out, slot+" "+a.members("lines", "quantity")[i]+" "+a.members("lines", "returned_quantity")[i])
	}
	return strings.Join(out, ", ")
}

// A part of a hold is sold and the rest goes back in the same step. Asking again by the same
// payment, in another order of lines, gives the same.
func TestAPartIsConfirmed(t *testing.T) {
	f := newFixture(t)
	for _, slot := range []string{"A", "B", "C"} {
		f.define(slot, 5)
	}
	hold := f.create(owner("U"), `{"slot_ids":["A","B","C"],"quantity":2,"quoted_price":1000}`, f.key()).text("hold_id")
	sale := `{"payment_reference":"pay-1","lines":[{"slot_id":"C","quantity":2},{"slot_id":"A","quantity":1}]}`
	first := f.confirmLines(hold, sale, keyed("K"))
	first.want(http.StatusOK)
	if got := quantities(first); got != "A 1 0, C 2 0" || first.text("status") != "CONFIRMED" || fmt.Sprint(first.json()["total"]) != "map[amount:3000 currency:KRW]" {
		t.Errorf("sold is %s: %s", got, first.body)
	}
	f.confirmLines(hold, `{"lines":[{"quantity":1,"slot_id":"A"},{"slot_id":"C","quantity":2}],"payment_reference":"pay-1"}`, keyed("K")).wantReplayOf(first)
	again := f.confirmLines(hold, sale, f.key())
	again.want(http.StatusOK)
	if quantities(again) != quantities(first) {
		t.Errorf("asked again %s", again.body)
	}
	f.confirmLines(hold, `{"payment_reference":"pay-1","lines":[{"slot_id":"A","quantity":1}]}`, keyed("K")).wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	f.confirmLines(hold, `{"payment_reference":"pay-2","lines":[{"slot_id":"A","quantity":1}]}`, f.key()).wantProblem(http.StatusConflict, "hold_not_active")
	f.counters("A", 4, 0, 1, 5)
	f.counters("B", 5, 0, 0, 5)
	f.counters("C", 3, 0, 2, 5)
	f.balanced()
}

// What can't be sold of a hold is refused, and all of it stays held.
func TestPartSalesAreRefused(t *testing.T) {
	f := newFixture(t)
	f.define("A", 5)
	f.define("B", 5)
	hold := f.mustHold(owner("U"), "A", 2)
	for _, body := range []string{
		`{"lines":[{"slot_id":"A","quantity":3}]}`, `{"lines":[{"slot_id":"B","quantity":1}]}`,
		`{"lines":[{"slot_id":"A","quantity":1},{"slot_id":"B","quantity":1}]}`,
		`{"lines":[]}`, `{"lines":null}`, `{"lines":[{"slot_id":"A"}]}`, `{"lines":[{"slot_id":"A","quantity":1,"unit_amount":1000}]}`,
	} {
		f.confirmLines(hold, body, f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	twice := f.confirmLines(hold, `{"lines":[{"slot_id":"A","quantity":1},{"slot_id":"A","quantity":1}]}`, f.key())
	twice.wantProblem(http.StatusBadRequest, "invalid_request")
	if got := twice.members("errors", "name"); !slices.Equal(got, []string{"/lines/1/slot_id"}) {
		t.Errorf("the errors point at %v", got)
	}
	paying := f.mustHold(owner("U"), "A", 1)
	f.mustPay(owner("U"), paying)
	f.confirmLines(paying, `{"lines":[{"slot_id":"A","quantity":1}]}`, f.key()).wantProblem(http.StatusConflict, "payment_in_progress")
	f.counters("A", 2, 3, 0, 5)
	f.clock.Advance(ledger.HoldForDefault)
	f.confirmLines(hold, `{"lines":[{"slot_id":"A","quantity":1}]}`, f.key()).wantProblem(http.StatusConflict, "hold_not_active")
	f.balanced()
}

// Units come back in parts and then whole. Each line says whether they are sold again, and
// where it does not, the policy of the time of the hold does.
func TestAHoldIsReturned(t *testing.T) {
	f := newFixture(t)
	f.define("A", 5)
	f.define("B", 5, `"policy":{"restock":false}`)
	hold := f.create(owner("U"), `{"slot_ids":["A","B"],"quantity":4,"quoted_price":1000}`, f.key()).text("hold_id")
	f.confirmLines(hold, "", f.key()).want(http.StatusOK)
	f.patch("B", `{"policy":{"restock":true}}`).want(http.StatusOK)

	part := f.giveBack(hold, `{"lines":[{"slot_id":"B","quantity":1},{"slot_id":"A","quantity":1}]}`, keyed("K"))
	part.want(http.StatusOK)
	if got := quantities(part); got != "A 4 1, B 4 1" || part.text("status") != "CONFIRMED" {
		t.Errorf("after a part of it %s: %s", got, part.body)
	}
	f.counters("A", 2, 0, 3, 5)
	f.counters("B", 1, 0, 3, 4)
	f.giveBack(hold, `{"lines":[{"quantity":1,"slot_id":"A"},{"quantity":1,"slot_id":"B"}]}`, keyed("K")).wantReplayOf(part)
	f.giveBack(hold, `{"lines":[{"slot_id":"A","quantity":1,"restock":true},{"slot_id":"B","quantity":1}]}`, keyed("K")).
		wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")

	f.giveBack(hold, `{"lines":[{"slot_id":"A","quantity":1,"restock":false},{"slot_id":"B","quantity":1,"restock":true}]}`, f.key()).want(http.StatusOK)
	f.counters("A", 2, 0, 2, 4)
	f.counters("B", 2, 0, 2, 4)
	f.giveBack(hold, `{"lines":[{"slot_id":"A","quantity":3}]}`, f.key()).wantProblem(http.StatusConflict, "return_over_sale")

	whole := f.giveBack(hold, "", keyed("L"))
	whole.want(http.StatusOK)
	if got := quantities(whole); got != "A 4 4, B 4 4" || whole.text("status") != "RETURNED" {
		t.Errorf("after all of it %s: %s", got, whole.body)
	}
	f.giveBack(hold, "{}", keyed("L")).wantReplayOf(whole)
	f.giveBack(hold, "", f.key()).wantProblem(http.StatusConflict, "hold_not_active")
	f.counters("A", 4, 0, 0, 4)
	f.counters("B", 2, 0, 0, 2)
	f.balanced()
}

// What can't go back is refused: what is not sold, what is not of the hold, and what was
// paid through a reservation, whose money must go with it.
func TestReturnsAreRefused(t *testing.T) {
	f := newFixture(t)
	f.define("A", 5)
	hold := f.mustHold(owner("U"), "A", 2)
	f.giveBack(hold, "", f.key()).wantProblem(http.StatusConflict, "hold_not_active")
	f.confirmLines(hold, "", f.key()).want(http.StatusOK)
	for _, body := range []string{
		`{"lines":[{"slot_id":"B","quantity":1}]}`, `{"lines":[]}`, `{"lines":null}`, `{"lines":[{"slot_id":"A","quantity":1,"restock":"yes"}]}`,
		`{"lines":[{"slot_id":"A","quantity":1,"restock":null}]}`, `{"amount":1}`,
	} {
		f.giveBack(hold, body, f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	twice := f.giveBack(hold, `{"lines":[{"slot_id":"A","quantity":1},{"slot_id":"A","quantity":1,"restock":false}]}`, f.key())
	twice.wantProblem(http.StatusBadRequest, "invalid_request")
	if got := twice.members("errors", "name"); !slices.Equal(got, []string{"/lines/1/slot_id"}) {
		t.Errorf("the errors point at %v", got)
	}
	paid := f.mustHold(owner("U"), "A", 1)
	f.sell(f.mustPay(owner("U"), paid))
	f.giveBack(paid, "", f.key()).wantProblem(http.StatusConflict, "has_reservation")
	f.counters("A", 2, 0, 3, 5)
	f.balanced()
}
