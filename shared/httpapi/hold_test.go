package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// Case B5: a hold lasted up to twice its promised time.
func TestCaseB5_NoConfirmAfterRelease(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 1, `"policy":{"hold_seconds":900}`)
	hold := f.mustHold(owner("U"), "seat", 1)
	confirm := func() answer {
		return f.post("/v1/holds/"+hold+"/confirm", `{"payment_reference":"pay-1"}`, service(), f.key())
	}
	for _, after := range []time.Duration{15 * time.Minute, 15*time.Minute + time.Millisecond} {
		f.clock.Set(noon.Add(after))
		confirm().wantProblem(http.StatusConflict, "hold_not_active")
	}
	f.counters("seat", 0, 1, 0, 1)
	f.clock.Set(noon.Add(17 * time.Minute))
	if released, err := f.sweeper.ExpireHold(t.Context(), ledger.HoldID(hold), "sweep"); !released || err != nil {
		t.Fatalf("expire: %t, %v", released, err)
	}
	if got := f.get("/v1/holds/"+hold, "", owner("U")).text("status"); got != "EXPIRED" {
		t.Errorf("status %s", got)
	}
	f.mustHold(owner("V"), "seat", 1)
	f.counters("seat", 0, 1, 0, 1)
	f.balanced()
}

// P4, the other side: one millisecond before its release a hold is confirmed.
func TestP4_ConfirmJustBeforeRelease(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 1, `"policy":{"hold_seconds":900}`)
	hold := f.mustHold(owner("U"), "seat", 1)
	f.clock.Set(noon.Add(15*time.Minute - time.Millisecond))
	a := f.post("/v1/holds/"+hold+"/confirm", "", service(), f.key())
	a.want(http.StatusOK)
	if a.text("status") != "CONFIRMED" || a.text("ended_at") != "2026-11-30T12:14:59.999Z" {
		t.Errorf("answer %s", a.body)
	}
	f.counters("seat", 0, 0, 1, 1)
	f.balanced()
}

// Case C3: competing release paths each put the units back.
func TestCaseC3_CompetingReleases(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 10)
	for round := range 300 {
		hold := f.mustHold(owner("U"), "seat", 3)
		f.clock.Advance(ledger.HoldForDefault)
		var cancelled answer
		released := make([]bool, 3)
		atOnce(3, func(i int) {
			if i == 0 {
				cancelled = f.post("/v1/holds/"+hold+"/cancel", "", owner("U"), f.key())
				released[0] = cancelled.status == http.StatusOK
				return
			}
			var err error
			if released[i], err = f.sweeper.ExpireHold(t.Context(), ledger.HoldID(hold), "sweep"); err != nil {
				t.Errorf("expire: %v", err)
			}
		})
		if released[0] == (released[1] || released[2]) || (released[1] && released[2]) {
			t.Fatalf("round %d: released by %v, want exactly one", round, released)
		}
		want := "CANCELED"
		if !released[0] {
			want = "EXPIRED"
			cancelled.wantProblem(http.StatusConflict, "hold_not_active")
		}
		if got := f.get("/v1/holds/"+hold, "", owner("U")).text("status"); got != want {
			t.Fatalf("round %d: status %s, want %s", round, got, want)
		}
		events, err := f.store.HoldEvents(t.Context(), ledger.HoldID(hold))
		if err != nil || len(events) != 2 {
			t.Fatalf("round %d: %d events, %v; want the creation and one release", round, len(events), err)
		}
	}
	f.counters("seat", 10, 0, 0, 10)
	f.balanced()
}

// Case C6: several readers of an overdue hold each released it. Reads release nothing.
func TestCaseC6_ReadersReleaseNothing(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	hold := f.mustHold(owner("U"), "seat", 2)
	f.clock.Advance(ledger.HoldForDefault)
	atOnce(50, func(int) {
		a := f.get("/v1/holds/"+hold, "", owner("U"))
		if a.status != http.StatusOK || a.text("status") != "EXPIRED" {
			t.Errorf("status %d: %s", a.status, a.body)
		}
	})
	f.counters("seat", 3, 2, 0, 5)
	for i := range 2 {
		released, err := f.sweeper.ExpireHold(t.Context(), ledger.HoldID(hold), "sweep")
		if err != nil || released != (i == 0) {
			t.Errorf("sweep %d: released %t, %v", i, released, err)
		}
	}
	f.counters("seat", 5, 0, 0, 5)
	f.balanced()
}

// What a hold answers, to the letter. Times have exactly three decimals, also when they
// end in zeros.
func TestHoldAnswer(t *testing.T) {
	f := newFixture(t)
	f.define("B", 9, `"unit_amount":70`, `"policy":{"hold_max_seconds":2400}`)
	f.define("A", 9, `"policy":{"hold_seconds":60,"grace_seconds":5}`)
	f.clock.Advance(120 * time.Millisecond)
	body := `{"lines":[{"slot_id":"B","quantity":3,"unit_amount":70},{"slot_id":"A","quantity":2,"unit_amount":1000}]}`
	a := f.create(owner("U"), body, f.key())
	a.want(http.StatusCreated)
	// Of the two policies the shortest of each counts: A's life and grace, B's longest life.
	want := `{"created_at":"2026-11-30T12:00:00.120Z","expires_at":"2026-11-30T12:01:00.120Z",` +
		`"extendable_until":"2026-11-30T12:40:00.120Z","grace_seconds":5,` +
		`"hold_id":"` + a.text("hold_id") + `","hold_seconds":60,` +
		`"lines":[{"amount":2000,"quantity":2,"returned_quantity":0,"slot_id":"A","unit_amount":1000},` +
		`{"amount":210,"quantity":3,"returned_quantity":0,"slot_id":"B","unit_amount":70}],"payment_open":false,` +
		`"release_at":"2026-11-30T12:01:00.120Z","server_time":"2026-11-30T12:00:00.120Z","status":"HELD",` +
		`"total":{"amount":2210,"currency":"KRW"},"version":1}`
	if a.body != want {
		t.Errorf("got\n%s\nwant\n%s", a.body, want)
	}
	if !ledger.ValidHoldID(a.text("hold_id")) || a.headers["Cache-Control"] != "no-store" {
		t.Errorf("id or headers: %s %v", a.body, a.headers)
	}
}

// Case G9, the listing part: each hold is on exactly one page, whatever is filtered out.
func TestCaseG9_EachHoldOnceOverAllPages(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 1000)
	var all, cancelled []string
	for i := range 57 {
		f.clock.Advance(time.Millisecond)
		hold := f.mustHold(owner("U"), "seat", 1)
		all = append(all, hold)
		if i%5 < 3 {
			f.post("/v1/holds/"+hold+"/cancel", "", owner("U"), f.key()).want(http.StatusOK)
			cancelled = append(cancelled, hold)
		}
	}
	f.mustHold(owner("V"), "seat", 1)
	slices.Reverse(all)
	slices.Reverse(cancelled)
	if got := f.pages("limit=10", owner("U")); !slices.Equal(got, all) {
		t.Errorf("all pages have %d holds, want %d, the newest first", len(got), len(all))
	}
	for _, limit := range []string{"limit=1", "limit=7", "limit=100", ""} {
		if got := f.pages(limit+"&status=CANCELED", owner("U")); !slices.Equal(got, cancelled) {
			t.Errorf("%s: cancelled holds are %v, want %v", limit, got, cancelled)
		}
	}
	if got := f.pages("owner=U&limit=30", operator()); !slices.Equal(got, all) {
		t.Errorf("an operator sees %d holds of U", len(got))
	}
	f.balanced()
}

// Case G9: all of 5,000 holds are listed, each once, however large the pages are.
func TestCaseG9_ManyPages(t *testing.T) {
	const holds = 5_000
	f := newFixture(t)
	f.define("seat", holds)
	all := make([]string, holds)
	for i := range all {
		if i%3 > 0 { // some at the same millisecond
			f.clock.Advance(time.Millisecond)
		}
		all[i] = f.mustHold(owner("U"), "seat", 1)
	}
	slices.Sort(all)
	for _, limit := range []int{10, 33, 100} {
		got := f.pages(fmt.Sprintf("limit=%d", limit), owner("U"))
		slices.Sort(got)
		if !slices.Equal(got, all) {
			t.Errorf("in pages of %d: %d ids, want each of %d once", limit, len(got), holds)
		}
	}
}

// pages follows the cursors of a list and returns the ids of all pages.
func (f *fixture) pages(query string, who map[string]any) []string {
	f.t.Helper()
	const pagesMax = 501
	query = strings.TrimPrefix(query, "&")
	var ids []string
	cursor := ""
	for range pagesMax {
		asked := query
		if cursor != "" {
			asked = strings.TrimPrefix(query+"&cursor="+cursor, "&")
		}
		a := f.get("/v1/holds", asked, who)
		a.want(http.StatusOK)
		page := a.members("holds", "hold_id")
		if len(page) > limitOf(f.t, query) {
			f.t.Errorf("%s: a page of %d holds", query, len(page))
		}
		ids = append(ids, page...)
		if cursor = a.text("next_cursor"); cursor == "" {
			return ids
		}
	}
	f.t.Fatalf("%s: more than %d pages", query, pagesMax)
	return nil
}

// limitOf is the limit of a list's query, or the default.
func limitOf(t testing.TB, query string) int {
	t.Helper()
	const limitDefault = 20
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	if values.Get("limit") == "" {
		return limitDefault
	}
	limit, err := strconv.Atoi(values.Get("limit"))
	if err != nil {
		t.Fatal(err)
	}
	return limit
}

// A list filters by what it shows: an overdue hold is EXPIRED, swept or not.
func TestListFiltersByTheShownStatus(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 10)
	hold := f.mustHold(owner("U"), "seat", 1)
	for _, moment := range []struct {
		at            time.Time
		held, expired int
	}{{noon.Add(ledger.HoldForDefault - time.Millisecond), 1, 0}, {noon.Add(ledger.HoldForDefault), 0, 1}} {
		f.clock.Set(moment.at)
		held, expired := f.pages("status=HELD", owner("U")), f.pages("status=EXPIRED", owner("U"))
		if len(held) != moment.held || len(expired) != moment.expired {
			t.Errorf("at %s: held %v, expired %v of %s", moment.at, held, expired, hold)
		}
	}
}

func TestListRefuses(t *testing.T) {
	f := newFixture(t)
	for query, who := range map[string]map[string]any{
		"limit=0": owner("U"), "limit=101": owner("U"), "limit=1.5": owner("U"), "limit=": owner("U"), "limit=x": owner("U"),
		"status=": owner("U"), "status=held": owner("U"), "cursor=%20": owner("U"), "cursor=bogus": owner("U"),
		"": operator(), "page=2": owner("U"), "limit=5;status=HELD": owner("U"), "status=%zz": owner("U"),
	} {
		a := f.get("/v1/holds", query, who)
		a.wantProblem(http.StatusBadRequest, "invalid_request")
	}
	f.get("/v1/holds", "owner=V", owner("U")).wantProblem(http.StatusForbidden, "forbidden")
	withBody := call{method: http.MethodGet, path: "/v1/holds", body: "{}", claims: owner("U")}
	f.do(withBody).wantProblem(http.StatusBadRequest, "invalid_request")
}

// A payment confirms one hold; the shop that lost the answer asks again, under any key.
func TestPaymentReferenceConfirmsOneHold(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	first, second := f.mustHold(owner("U"), "seat", 1), f.mustHold(owner("U"), "seat", 1)
	confirm := func(hold, reference string) answer {
		return f.post("/v1/holds/"+hold+"/confirm", fmt.Sprintf(`{"payment_reference":%q}`, reference), service(), f.key())
	}
	confirm(first, "pay-1").want(http.StatusOK)
	again := confirm(first, "pay-1")
	again.want(http.StatusOK)
	if again.text("payment_reference") != "pay-1" || again.text("status") != "CONFIRMED" {
		t.Errorf("answer %s", again.body)
	}
	confirm(first, "pay-2").wantProblem(http.StatusConflict, "hold_not_active")
	confirm(second, "pay-1").wantProblem(http.StatusConflict, "payment_reference_used")
	confirm(second, "has space").wantProblem(http.StatusBadRequest, "invalid_request")
	confirm(second, strings.Repeat("x", 129)).wantProblem(http.StatusBadRequest, "invalid_request")
	f.counters("seat", 3, 1, 1, 5)
	f.balanced()
}
