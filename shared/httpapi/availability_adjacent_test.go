package httpapi_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// A cinema of two rows for two shows, with a seat that is gone.
func TestSeatsOfACinema(t *testing.T) {
	f := newFixture(t)
	for show := range 2 {
		for _, row := range []string{"A", "B"} {
			for number := 1; number <= 4; number++ {
				capacity := ledger.Units(1)
				if row == "A" && number == 2 {
					capacity = 0
				}
				f.stock(t, seatAt(fmt.Sprintf("%d%s%d", show, row, number), 24*show, row, strconv.Itoa(number), "class="+row), "C", capacity)
			}
		}
	}
	f.stock(t, ledger.Slot{ID: "bar-2", Attributes: map[string]string{"row": "bar", "seat": "2"}}, "C", 1)
	f.stock(t, ledger.Slot{ID: "bar-1", Attributes: map[string]string{"row": "bar", "seat": "1"}}, "C", 1)
	const cinema = "resource_type=hotel&resource_id=C&adjacent="
	for query, want := range map[string][]string{
		"2":                    {"bar-1 bar-2", "0A3 0A4", "0B1 0B2", "0B2 0B3", "0B3 0B4", "1A3 1A4", "1B1 1B2", "1B2 1B3", "1B3 1B4"},
		"2&date=2026-11-30":    {"0A3 0A4", "0B1 0B2", "0B2 0B3", "0B3 0B4"},
		"4":                    {"0B1 0B2 0B3 0B4", "1B1 1B2 1B3 1B4"},
		"5":                    nil,
		"2&attributes=class:A": {"0A3 0A4", "1A3 1A4"},
		"2&date=2027-01-01":    nil,
	} {
		for _, limit := range []int{1, 2, 3, 100} {
			got, _ := f.everyPage(t, cinema+query, limit)
			if !slices.Equal(got, want) {
				t.Errorf("adjacent=%s at limit %d: %q, want %q", query, limit, got, want)
			}
		}
	}
}

// No group is lost or told twice by where pages end, wherever its seats lie in the index.
func TestNoSeatsAreLostBetweenPages(t *testing.T) {
	f := newFixtureOn(t, memory.New())
	resources := 0
	rapid.Check(t, func(t *rapid.T) {
		resources++
		resource := fmt.Sprintf("C%d", resources)
		n, limit := rapid.IntRange(2, 3).Draw(t, "n"), rapid.IntRange(1, 5).Draw(t, "limit")
		var fit []ledger.Slot
		for i := range rapid.IntRange(0, 20).Draw(t, "slots") {
			slot := seatAt(fmt.Sprintf("%s-%02d", resource, i), rapid.IntRange(0, 2).Draw(t, "show"),
				rapid.SampledFrom([]string{"A", "B"}).Draw(t, "row"), strconv.Itoa(rapid.IntRange(1, 9).Draw(t, "seat")))
			capacity := ledger.Units(rapid.IntRange(0, 3).Draw(t, "capacity"))
			f.stock(t, slot, resource, capacity)
			if capacity > 0 {
				fit = append(fit, slot)
			}
		}
		var want []string
		for _, group := range httpapi.SeatsSideBySide(fit, n) {
			want = append(want, strings.Trim(fmt.Sprint(group), "[]"))
		}
		if got, _ := f.everyPage(t, fmt.Sprintf("resource_type=hotel&resource_id=%s&adjacent=%d", resource, n), limit); !slices.Equal(got, want) {
			t.Fatalf("all pages are %q, want %q", got, want)
		}
	})
}

// A house is looked at whole: the two free seats of a full house lie at both ends of the
// index. Of a house with more seats than may be looked at nothing is answered, and the
// houses before it are.
func TestSeatsOfALargeHouse(t *testing.T) {
	f := newFixture(t)
	house := func(resource string, hour, size int) {
		for i := range size {
			row, number, capacity := "A", 2*i+1, ledger.Units(0)
			if i == 0 || i == size-1 {
				row, number, capacity = "Z", 1+min(i, 1), 1
			}
			f.stock(t, seatAt(fmt.Sprintf("%s-%d-%04d", resource, hour, i), hour, row, strconv.Itoa(number)), resource, capacity)
		}
	}
	house("just", 0, httpapi.GroupSlotsLookedMax)
	house("over", 0, 2)
	house("over", 24, httpapi.GroupSlotsLookedMax+1)
	query := func(resource string) string { return "resource_type=hotel&resource_id=" + resource + "&adjacent=2" }
	if got, _ := f.everyPage(t, query("just"), 20); !slices.Equal(got, []string{fmt.Sprintf("just-0-0000 just-0-%04d", httpapi.GroupSlotsLookedMax-1)}) {
		t.Errorf("groups %q", got)
	}
	before := f.get("/v1/availability", query("over"), nil)
	before.want(http.StatusOK)
	if got := before.groups(); !slices.Equal(got, []string{"over-0-0000 over-0-0001"}) || before.text("next_cursor") == "" {
		t.Errorf("the house before the large one: %s", before.body)
	}
	refused := f.get("/v1/availability", query("over")+"&cursor="+before.text("next_cursor"), nil)
	refused.wantProblem(http.StatusBadRequest, "invalid_request")
	if got := refused.members("errors", "name"); !slices.Equal(got, []string{"adjacent"}) {
		t.Errorf("the refusal points at %v", got)
	}
}

// A seat that is sold between two pages moves no other group.
func TestSeatsSoldBetweenTwoPages(t *testing.T) {
	f := newFixture(t)
	for number := 1; number <= 6; number++ {
		f.stock(t, seatAt(fmt.Sprintf("s%d", number), 24, "A", strconv.Itoa(number)), "C", 1)
	}
	const query = "resource_type=hotel&resource_id=C&adjacent=2&limit=2"
	first := f.get("/v1/availability", query, nil)
	if got := first.groups(); !slices.Equal(got, []string{"s1 s2", "s2 s3"}) {
		t.Fatalf("groups %q", got)
	}
	f.mustHold(owner("V"), "s2", 1)
	f.clock.Advance(time.Second)
	second := f.get("/v1/availability", query+"&cursor="+first.text("next_cursor"), nil)
	if got := second.groups(); !slices.Equal(got, []string{"s3 s4", "s4 s5"}) {
		t.Errorf("groups %q", got)
	}
}

func TestSeatCursorsThatNoListGave(t *testing.T) {
	f := newFixture(t)
	f.stock(t, seatAt("s1", 24, "A", "1"), "C", 1)
	f.stock(t, night("bench", 24, 26), "C", 1)
	start := noon.Add(24 * time.Hour)
	for name, text := range map[string]string{
		"no base64":        "",
		"of another list":  "memory:2026/s1",
		"no number":        "seats:x:",
		"no end":           "seats:1",
		"no such slot":     fmt.Sprintf("seats:%d:s9", start.UnixMilli()),
		"not a seat":       fmt.Sprintf("seats:%d:bench", start.UnixMilli()),
		"no name":          fmt.Sprintf("seats:%d:a b", start.UnixMilli()),
		"before the range": fmt.Sprintf("seats:%d:", start.Add(-24*time.Hour).UnixMilli()),
		"after the range":  fmt.Sprintf("seats:%d:", start.Add(48*time.Hour).UnixMilli()),
		"without a time":   fmt.Sprintf("seats:%d:", time.Time{}.UnixMilli()),
		"beyond time":      fmt.Sprintf("seats:%d:", int64(1)<<62),
	} {
		cursor := base64.RawURLEncoding.EncodeToString([]byte(text))
		if text == "" {
			cursor = "~~~"
		}
		refused := f.get("/v1/availability", "resource_type=hotel&resource_id=C&adjacent=2&date=2026-12-01&cursor="+cursor, nil)
		if refused.status != http.StatusBadRequest || !slices.Equal(refused.members("errors", "name"), []string{"cursor"}) {
			t.Errorf("%s: %d %s", name, refused.status, refused.body)
		}
	}
	seats := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "seats:%d:", start.UnixMilli()))
	f.get("/v1/availability", "resource_type=hotel&resource_id=C&cursor="+seats, nil).wantProblem(http.StatusBadRequest, "invalid_request")
	f.get("/v1/availability", "resource_type=hotel&resource_id=C&nights=2&cursor="+seats, nil).wantProblem(http.StatusBadRequest, "invalid_request")
}
