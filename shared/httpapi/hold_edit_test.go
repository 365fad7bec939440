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

// edit asks to change a hold.
func (f *fixture) edit(who map[string]any, hold, body string, headers map[string]string) answer {
	f.t.Helper()
	return f.do(call{method: http.MethodPatch, path: "/v1/holds/" + hold, body: body, claims: who, headers: headers})
}

// extend asks for more time.
func (f *fixture) extend(hold, body string) answer {
	f.t.Helper()
	return f.post("/v1/holds/"+hold+"/extend", body, owner("U"), f.key())
}

// What an edit answers, to the letter: a line that shrinks, one that is new, one that is
// gone, and the time. What came is stricter, so the hold is.
func TestHoldEditAnswer(t *testing.T) {
	f := newFixture(t)
	f.define("A", 9)
	f.define("B", 9)
	f.define("C", 9, `"unit_amount":70`, `"policy":{"grace_seconds":5,"hold_max_seconds":900}`)
	made := f.create(owner("U"), `{"slot_ids":["A","B"],"quantity":3,"quoted_price":1000}`, f.key())
	hold := made.text("hold_id")
	f.clock.Advance(time.Minute)
	a := f.edit(owner("U"), hold, `{"lines":[{"slot_id":"C","quantity":2,"unit_amount":70},{"slot_id":"A","quantity":1,"unit_amount":1000}],"hold_seconds":600}`, f.key())
	a.want(http.StatusOK)
	want := `{"created_at":"2026-11-30T12:00:00.000Z","expires_at":"2026-11-30T12:11:00.000Z",` +
		`"extendable_until":"2026-11-30T12:15:00.000Z","grace_seconds":5,"hold_id":"` + hold + `","hold_seconds":600,` +
		`"lines":[{"amount":1000,"quantity":1,"returned_quantity":0,"slot_id":"A","unit_amount":1000},` +
		`{"amount":140,"quantity":2,"returned_quantity":0,"slot_id":"C","unit_amount":70}],"payment_open":false,` +
		`"release_at":"2026-11-30T12:11:00.000Z","server_time":"2026-11-30T12:01:00.000Z","status":"HELD",` +
		`"total":{"amount":1140,"currency":"KRW"},"version":2}`
	if a.body != want {
		t.Errorf("got\n%s\nwant\n%s", a.body, want)
	}
	if read := f.get("/v1/holds/"+hold, "", owner("U")); read.body != want {
		t.Errorf("read\n%s\nwant\n%s", read.body, want)
	}
	f.counters("A", 8, 1, 0, 9)
	f.counters("B", 9, 0, 0, 9)
	f.counters("C", 7, 2, 0, 9)
	f.balanced()
}

// An extension counts from its own moment, for as long as it is promised at a time or for
// less, never makes a hold shorter, and goes to extendable_until and no further.
func TestAHoldIsExtended(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5, `"policy":{"hold_seconds":600,"hold_max_seconds":1200}`)
	hold := f.mustHold(owner("U"), "seat", 1)
	for _, step := range []struct {
		after   time.Duration
		body    string
		expires string // "" for hold_at_maximum
	}{
		{5 * time.Minute, ``, "2026-11-30T12:15:00.000Z"},
		{5 * time.Minute, `{"hold_seconds":60}`, "2026-11-30T12:15:00.000Z"},
		{10 * time.Minute, `{"hold_seconds":400}`, "2026-11-30T12:16:40.000Z"},
		{14 * time.Minute, `{}`, "2026-11-30T12:20:00.000Z"},
		{15 * time.Minute, `{}`, ""},
	} {
		f.clock.Set(noon.Add(step.after))
		a := f.extend(hold, step.body)
		if step.expires == "" {
			a.wantProblem(http.StatusConflict, "hold_at_maximum")
			f.edit(owner("U"), hold, `{"hold_seconds":600}`, f.key()).wantProblem(http.StatusConflict, "hold_at_maximum")
			continue
		}
		a.want(http.StatusOK)
		if a.text("expires_at") != step.expires || a.text("release_at") != step.expires || a.text("extendable_until") != "2026-11-30T12:20:00.000Z" {
			t.Errorf("extended by %s after %s the hold is %s", step.body, step.after, a.body)
		}
	}
	// What a hold is promised at a time is its policy's, also for a longer wish.
	f.extend(hold, `{"hold_seconds":601}`).wantProblem(http.StatusBadRequest, "invalid_request")
	f.clock.Set(noon.Add(20*time.Minute - time.Millisecond))
	f.post("/v1/holds/"+hold+"/confirm", "", service(), f.key()).want(http.StatusOK)
	f.balanced()
}

// The time up to which a hold can be extended is told as long as it can be, and no longer.
func TestExtendableUntilIsToldWhileItHelps(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 9)
	told := func(hold string) bool { return f.get("/v1/holds/"+hold, "", owner("U")).text("extendable_until") != "" }
	held, paying, sold, left := f.mustHold(owner("U"), "seat", 1), f.mustHold(owner("U"), "seat", 1), f.mustHold(owner("U"), "seat", 1), f.mustHold(owner("U"), "seat", 1)
	f.mustPay(owner("U"), paying)
	f.post("/v1/holds/"+sold+"/confirm", "", service(), f.key()).want(http.StatusOK)
	f.post("/v1/holds/"+left+"/cancel", "", owner("U"), f.key()).want(http.StatusOK)
	if got := fmt.Sprint(told(held), told(paying), told(sold), told(left)); got != "true false false false" {
		t.Errorf("told of a held, a paying, a sold and a cancelled hold: %s", got)
	}
	f.clock.Advance(ledger.HoldForDefault)
	if told(held) {
		t.Error("told of a hold that is over")
	}
}

// Each reason not to change a hold leaves it and the stock as they are.
func TestHoldEditRefusals(t *testing.T) {
	f := newFixture(t)
	f.define("A", 5)
	f.define("B", 1)
	f.define("closed", 5, `"open":false`)
	f.define("early", 5, `"policy":{"sale_from":"2026-12-24T00:00:00Z"}`)
	f.define("over", 5, `"policy":{"sale_until":"2026-11-30T12:00:00Z"}`)
	f.define("few", 5, `"policy":{"quantity_max_per_hold":1}`)
	f.define("dollars", 5, `"currency":"USD"`)
	hold := f.mustHold(owner("U"), "A", 2)
	before := f.get("/v1/holds/"+hold, "", owner("U")).body
	two := func(slot string, quantity, amount int) string {
		return fmt.Sprintf(`{"lines":[{"slot_id":"A","quantity":3,"unit_amount":1000},{"slot_id":%q,"quantity":%d,"unit_amount":%d}],"hold_seconds":60}`, slot, quantity, amount)
	}
	for _, test := range []struct {
		body   string
		status int
		code   string
	}{
		{two("B", 2, 1000), 409, "insufficient_stock"},
		{line("A", 6), 409, "insufficient_stock"},
		{two("B", 1, 999), 409, "price_changed"},
		{`{"lines":[{"slot_id":"A","quantity":1,"unit_amount":999}]}`, 409, "price_changed"},
		{two("closed", 1, 1000), 409, "slot_closed"},
		{two("early", 1, 1000), 409, "sale_not_open"},
		{two("over", 1, 1000), 409, "sale_over"},
		{two("few", 2, 1000), 409, "quantity_over_limit"},
		{two("nowhere", 1, 1000), 404, "slot_not_found"},
		{two("dollars", 1, 1000), 400, "invalid_request"},
		{`{"hold_seconds":601}`, 400, "invalid_request"},
	} {
		a := f.edit(owner("U"), hold, test.body, f.key())
		if a.status != test.status || a.text("code") != test.code {
			t.Errorf("%s is answered %d %s, want %d %s", test.body, a.status, a.body, test.status, test.code)
		}
		if a.text("existing_hold_id") != "" {
			t.Errorf("the hold that was to be changed is named as another one: %s", a.body)
		}
	}
	short := f.edit(owner("U"), hold, two("B", 2, 1000), f.key())
	if got := short.members("slots", "slot_id"); !slices.Equal(got, []string{"B"}) {
		t.Errorf("short are %v", got)
	}
	if after := f.get("/v1/holds/"+hold, "", owner("U")).body; after != before {
		t.Errorf("a refused edit made of\n%s\nthis:\n%s", before, after)
	}
	f.counters("A", 3, 2, 0, 5)
	f.counters("B", 1, 0, 0, 1)

	paying := f.mustHold(owner("U"), "A", 1)
	f.mustPay(owner("U"), paying)
	f.edit(owner("U"), paying, line("A", 2), f.key()).wantProblem(http.StatusConflict, "payment_in_progress")
	f.extend(paying, ``).wantProblem(http.StatusConflict, "payment_in_progress")
	f.clock.Advance(ledger.HoldForDefault)
	f.edit(owner("U"), hold, line("A", 1), f.key()).wantProblem(http.StatusConflict, "hold_not_active")
	f.extend(hold, ``).wantProblem(http.StatusConflict, "hold_not_active")
	f.balanced()
}

// Case E4 for edits and extensions: a retry that says the same in other words, or in another
// order of lines, gives the first answer again, also when the change it made is the reason
// why it would now be refused. Another request under the key is refused.
func TestCaseE4_OneMeaningOfAnEdit(t *testing.T) {
	f := newFixture(t)
	f.define("A", 10)
	f.define("B", 10)
	hold := f.mustHold(owner("U"), "A", 1)
	first := f.edit(owner("U"), hold, `{"lines":[{"slot_id":"A","quantity":3,"unit_amount":1000},{"slot_id":"B","quantity":1,"unit_amount":1000}],"hold_seconds":300}`, keyed("K"))
	first.want(http.StatusOK)
	f.clock.Advance(ledger.HoldForDefault)
	for _, same := range []string{
		`{"hold_seconds":300,"lines":[{"unit_amount":1000,"slot_id":"B","quantity":1},{"slot_id":"\u0041","quantity":3,"unit_amount":1000}]}`,
		` {"lines":[{"slot_id":"A","quantity":1,"unit_amount":1000},{"slot_id":"B","quantity":1,"unit_amount":1000},{"slot_id":"A","quantity":2,"unit_amount":1000}],"hold_seconds":300} `,
	} {
		f.edit(owner("U"), hold, same, keyed("K")).wantReplayOf(first)
	}
	for _, other := range []string{
		`{"lines":[{"slot_id":"A","quantity":3,"unit_amount":1000},{"slot_id":"B","quantity":1,"unit_amount":1000}]}`,
		`{"lines":[{"slot_id":"A","quantity":3,"unit_amount":1000}],"hold_seconds":300}`, `{"hold_seconds":300}`,
	} {
		f.edit(owner("U"), hold, other, keyed("K")).wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	}

	hold = f.mustHold(owner("U"), "A", 1)
	f.clock.Advance(time.Minute)
	first = f.post("/v1/holds/"+hold+"/extend", ``, owner("U"), keyed("K"))
	first.want(http.StatusOK)
	f.clock.Advance(time.Minute)
	for _, same := range []string{``, `{}`, ` { } `} {
		f.post("/v1/holds/"+hold+"/extend", same, owner("U"), keyed("K")).wantReplayOf(first)
	}
	f.post("/v1/holds/"+hold+"/extend", `{"hold_seconds":600}`, owner("U"), keyed("K")).wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	f.counters("A", 6, 4, 0, 10)
	f.balanced()
}

// Case K5 for edits: the price changes while the units are held. What is kept is kept at the
// price that was quoted, and what grows is bought at today's.
func TestCaseK5_TheQuoteIsKeptInAnEdit(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 9)
	f.define("bag", 9)
	hold := f.mustHold(owner("U"), "seat", 3)
	f.patch("seat", `{"unit_amount":1500}`).want(http.StatusOK)
	kept := f.edit(owner("U"), hold, `{"lines":[{"slot_id":"seat","quantity":2,"unit_amount":1000},{"slot_id":"bag","quantity":1,"unit_amount":1000}]}`, f.key())
	kept.want(http.StatusOK)
	if got := fmt.Sprint(kept.json()["total"]); got != "map[amount:3000 currency:KRW]" {
		t.Errorf("what is kept costs %s", got)
	}
	grown := strings.Replace(line("seat", 4), "1000", "1500", 1)
	refused := f.edit(owner("U"), hold, line("seat", 4), f.key())
	refused.wantProblem(http.StatusConflict, "price_changed")
	if got := refused.members("prices", "unit_amount"); !slices.Equal(got, []string{"1500"}) {
		t.Errorf("the price of today is %v", got)
	}
	all := f.edit(owner("U"), hold, grown, f.key())
	all.want(http.StatusOK)
	if got := fmt.Sprint(all.json()["total"]); got != "map[amount:6000 currency:KRW]" {
		t.Errorf("what has grown costs %s", got)
	}
	f.counters("seat", 5, 4, 0, 9)
	f.counters("bag", 9, 0, 0, 9)
	f.balanced()
}

// Cases F1 and F5 for edits: lines of one slot are added up, and more than 50 slots are
// refused before any write.
func TestCaseF5_ABasketDoesNotGrowBeyondTheLimit(t *testing.T) {
	f := newFixture(t)
	var lines []string
	for i := range ledger.LinesMax + 1 {
		slot := fmt.Sprintf("slot-%d", i)
		f.define(slot, 2)
		lines = append(lines, fmt.Sprintf(`{"slot_id":%q,"quantity":1,"unit_amount":1000}`, slot))
	}
	hold := f.mustHold(owner("U"), "slot-0", 1)
	basket := func(lines []string) string { return `{"lines":[` + strings.Join(lines, ",") + `]}` }
	f.edit(owner("U"), hold, basket(lines), f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	f.edit(owner("U"), hold, basket(append(lines[:50:50], lines[0], lines[0])), f.key()).wantProblem(http.StatusConflict, "insufficient_stock")
	f.edit(owner("U"), hold, basket(append(lines[:50:50], lines[0])), f.key()).want(http.StatusOK)
	f.counters("slot-0", 0, 2, 0, 2)
	f.counters("slot-49", 1, 1, 0, 2)
	f.counters("slot-50", 2, 0, 0, 2)
	f.balanced()
}

// Case L6 for edits, extensions, part sales and returns: what is no whole number within
// bounds is refused with its place, and nothing is written.
func TestCaseL6_OddQuantitiesOfAHold(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 998)
	hold := f.mustHold(owner("U"), "seat", 2)
	for _, odd := range []string{"-1", "0", "1.5", `"1"`, "1e9", "9223372036854775808", "null", "1e400", "1.0", "true", "[1]", "604801"} {
		quantity := fmt.Sprintf(`{"lines":[{"slot_id":"seat","quantity":%s}]}`, odd)
		for at, a := range map[string]answer{
			"PATCH /lines/0/quantity":   f.edit(owner("U"), hold, fmt.Sprintf(`{"lines":[{"slot_id":"seat","quantity":%s,"unit_amount":1000}]}`, odd), f.key()),
			"PATCH /hold_seconds":       f.edit(owner("U"), hold, fmt.Sprintf(`{"hold_seconds":%s}`, odd), f.key()),
			"extend /hold_seconds":      f.extend(hold, fmt.Sprintf(`{"hold_seconds":%s}`, odd)),
			"confirm /lines/0/quantity": f.post("/v1/holds/"+hold+"/confirm", quantity, service(), f.key()),
			"return /lines/0/quantity":  f.post("/v1/holds/"+hold+"/return", quantity, service(), f.key()),
		} {
			a.wantProblem(http.StatusBadRequest, "invalid_request")
			if _, place, _ := strings.Cut(at, " "); !slices.Equal(a.members("errors", "name"), []string{place}) {
				t.Errorf("%s of %s: %s", odd, at, a.body)
			}
		}
	}
	for _, body := range []string{`{}`, `{"lines":[]}`, `{"lines":null}`, `{"lines":{}}`, `{"owner":"V"}`, `[]`, `null`, ``, `{"slot_ids":["seat"],"quantity":1,"quoted_price":1000}`} {
		f.edit(owner("U"), hold, body, f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	f.extend(hold, `{"lines":[]}`).wantProblem(http.StatusBadRequest, "invalid_request")
	f.extend(hold, `{"hold_seconds":60,"hold_seconds":60}`).wantProblem(http.StatusBadRequest, "invalid_request")
	f.counters("seat", 996, 2, 0, 998)
	f.balanced()
}
