package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Anonymous callers learn what is left in coarse steps only.
func TestRemainingHintIsCoarse(t *testing.T) {
	f := newFixture(t)
	for available, hint := range map[int]string{0: "0", 1: "1", 4: "1", 5: "5", 9: "5", 10: "10", 49: "10", 50: "50", 99: "50", 100: "100", 5000: "100"} {
		slot := fmt.Sprintf("slot-%d", available)
		f.define(slot, available, `"shards":3`)
		a := f.get("/v1/availability", "slot_ids="+slot, nil)
		a.want(http.StatusOK)
		if got := a.members("slots", "remaining_hint"); !slices.Equal(got, []string{hint}) {
			t.Errorf("%d left is told as %v, want %s", available, got, hint)
		}
	}
}

func TestAvailabilityBySlots(t *testing.T) {
	f := newFixture(t)
	f.define("A", 1)
	f.define("B", 500, `"open":false`)
	f.mustHold(owner("U"), "A", 1)
	a := f.get("/v1/availability", "slot_ids=B,unknown,A,B", nil)
	a.want(http.StatusOK)
	if got := fmt.Sprint(a.members("slots", "slot_id"), a.members("slots", "remaining_hint"), a.members("slots", "open")); got != "[B A] [0 0] [false true]" {
		t.Errorf("slots %s", got)
	}
	if a.json()["availability_is_guaranteed"] != false || a.text("as_of") != "2026-11-30T12:00:00.000Z" ||
		a.headers["Cache-Control"] != "public, max-age=1" {
		t.Errorf("answer %s %v", a.body, a.headers)
	}
}

func TestAvailabilityByResource(t *testing.T) {
	f := newFixture(t)
	at := func(time string) string { return `"starts_at":"2026-12-` + time + `Z"` }
	f.define("timeless", 9)
	f.define("first", 9, at("01T00:00:00.000"))
	f.define("small", 2, at("01T12:00:00.000"))
	f.define("closed", 9, at("01T13:00:00.000"), `"open":false`)
	f.define("last", 9, at("01T23:59:59.999"))
	f.define("next-day", 9, at("02T00:00:00.000"))
	f.define("elsewhere", 9, at("01T12:00:00.000"), `"resource_id":"KE0902"`)
	const resource = "resource_type=flight&resource_id=KE0901"
	for query, want := range map[string][]string{
		"":                                {"timeless", "first", "small", "last", "next-day"},
		"&date=2026-12-01":                {"first", "small", "last"},
		"&date=2026-12-01&party_size=3":   {"first", "last"},
		"&date=2026-12-01&party_size=2":   {"first", "small", "last"},
		"&from=2026-12-01T12:00:00Z":      {"small", "last", "next-day"},
		"&to=2026-12-01T12:00:00.000Z":    {"first", "small"},
		"&to=2026-12-01T21:00:00%2B09:00": {"first", "small"},
		"&from=2026-12-01T00:00:00.001Z&to=2026-12-01T23:59:59.998Z": {"small"},
		"&from=2027-01-01T00:00:00Z":                                 nil,
	} {
		a := f.get("/v1/availability", resource+query, nil)
		a.want(http.StatusOK)
		if got := a.members("slots", "slot_id"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	for _, query := range []string{
		"", "resource_type=flight", "resource_id=KE0901", "slot_ids=", "slot_ids=A&party_size=1", "slot_ids=A&slot_ids=B", "slot_ids=A&" + resource,
		resource + "&party_size=0", resource + "&party_size=11", resource + "&party_size=1.5", resource + "&date=2026-02-30", resource + "&date=today",
		resource + "&date=2026-12-01&from=2026-12-01T00:00:00Z", resource + "&from=2026-12-02T00:00:00Z&to=2026-12-01T00:00:00Z",
		resource + "&from=2026-12-01T00:00:00+09:00", resource + "&from=yesterday", resource + "&limit=101", resource + "&cursor=bogus",
		"resource_type=flight&resource_id=a%20b", resource + "&currency=KRW", "slot_ids=" + strings.Repeat("A,", 50) + "A",
	} {
		f.get("/v1/availability", query, nil).wantProblem(http.StatusBadRequest, "invalid_request")
	}
}

// Each slot that fits is on one page, also when most of them do not.
func TestAvailabilityPages(t *testing.T) {
	f := newFixture(t)
	var want []string
	for i := range 60 {
		slot := fmt.Sprintf("slot-%02d", i)
		capacity := 1
		if i%5 < 3 {
			capacity = 9
			want = append(want, slot)
		}
		f.define(slot, capacity, fmt.Sprintf(`"starts_at":"2026-12-01T10:%02d:00Z"`, i))
	}
	for _, limit := range []int{1, 2, 7, 100} {
		var got []string
		cursor := ""
		for page := 0; page == 0 || cursor != ""; page++ {
			query := fmt.Sprintf("resource_type=flight&resource_id=KE0901&party_size=5&limit=%d", limit)
			if cursor != "" {
				query += "&cursor=" + cursor
			}
			a := f.get("/v1/availability", query, nil)
			a.want(http.StatusOK)
			ids := a.members("slots", "slot_id")
			if len(ids) > limit || page > 60 {
				t.Fatalf("page %d has %d slots at limit %d", page, len(ids), limit)
			}
			got, cursor = append(got, ids...), a.text("next_cursor")
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %v, want %v", limit, got, want)
		}
	}
}
