package httpapi_test

import (
	"context"
	"encoding/json"
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

// stock defines a slot in the store itself: many of them take less time than through the API.
func (f *fixture) stock(t rapid.TB, slot ledger.Slot, resource string, capacity ledger.Units) {
	t.Helper()
	f.counter++
	change, err := ledger.NewSlot(slot.ID, ledger.SlotDefinition{
		ResourceType: "hotel", ResourceID: ledger.ResourceID(resource), StartsAt: slot.StartsAt, EndsAt: slot.EndsAt, Attributes: slot.Attributes,
		Terms:    ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: 1},
		Inherits: ledger.AllPolicyParts, Capacity: capacity,
	}, ledger.Origin{Actor: "catalog:test", Command: ledger.CommandPutSlot, RequestID: "r", EventID: ledger.NewEventID([16]byte{1, byte(f.counter >> 16), byte(f.counter >> 8), byte(f.counter)})}, noon)
	if err == nil {
		err = f.store.Commit(context.Background(), change)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// groups are the groups of an answer, each as its ids joined by spaces.
func (a answer) groups() []string {
	a.t.Helper()
	var body struct {
		Groups [][]string `json:"groups"`
	}
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		a.t.Fatal(err)
	}
	var out []string
	for _, group := range body.Groups {
		out = append(out, strings.Join(group, " "))
	}
	return out
}

// everyPage asks for page after page. It fails on a page over the limit, and on a list
// that does not end.
func (f *fixture) everyPage(t rapid.TB, query string, limit int) (groups []string, pages int) {
	t.Helper()
	const pagesMax = 100
	cursor := ""
	for pages = 0; pages == 0 || cursor != ""; pages++ {
		asked := fmt.Sprintf("%s&limit=%d", query, limit)
		if cursor != "" {
			asked += "&cursor=" + cursor
		}
		a := f.get("/v1/availability", asked, nil)
		if a.status != http.StatusOK || pages == pagesMax {
			t.Fatalf("page %d of %s: %d %s", pages, query, a.status, a.body)
		}
		page := a.groups()
		if len(page) > limit {
			t.Fatalf("page %d of %s has %d groups at limit %d", pages, query, len(page), limit)
		}
		members := make(map[string]bool)
		for _, group := range page {
			for id := range strings.FieldsSeq(group) {
				members[id] = true
			}
		}
		listed := a.members("slots", "slot_id")
		if len(listed) != len(members) || slices.ContainsFunc(listed, func(id string) bool { return !members[id] }) {
			t.Fatalf("page %d of %s lists the slots %v, want the members of its groups: %s", pages, query, listed, a.body)
		}
		groups, cursor = append(groups, page...), a.text("next_cursor")
	}
	return groups, pages
}

// A hotel with a room of two beds for five nights, the third of which is nearly gone.
func TestStaysOfAHotel(t *testing.T) {
	f := newFixture(t)
	for i := range 5 {
		capacity := ledger.Units(4)
		if i == 2 {
			capacity = 1
		}
		f.stock(t, night(fmt.Sprintf("n%d", i), 24*i, 24*i+24, "room=double"), "H", capacity)
	}
	const hotel = "resource_type=hotel&resource_id=H&nights="
	for query, want := range map[string][]string{
		"2":                                    {"n0 n1", "n1 n2", "n2 n3", "n3 n4"},
		"2&party_size=2":                       {"n0 n1", "n3 n4"},
		"3&party_size=2":                       nil,
		"5":                                    {"n0 n1 n2 n3 n4"},
		"6":                                    nil,
		"1&party_size=2":                       {"n0", "n1", "n3", "n4"},
		"2&date=2026-12-01":                    {"n1 n2"}, // the day of the first night
		"4&from=2026-12-01T00:00:00Z":          {"n1 n2 n3 n4"},
		"3&to=2026-12-01T12:00:00Z":            {"n0 n1 n2", "n1 n2 n3"},
		"2&attributes=room:double":             {"n0 n1", "n1 n2", "n2 n3", "n3 n4"},
		"2&attributes=room:single":             nil,
		"2&date=2027-01-01":                    nil,
		"31&from=2026-12-01T00:00:00Z&limit=1": nil,
	} {
		a := f.get("/v1/availability", hotel+query, nil)
		a.want(http.StatusOK)
		if got := a.groups(); !slices.Equal(got, want) {
			t.Errorf("nights=%s: %q, want %q", query, got, want)
		}
		if !strings.Contains(a.body, `"groups":[`) {
			t.Errorf("nights=%s: no list of groups: %s", query, a.body)
		}
	}
	if a := f.get("/v1/availability", "resource_type=hotel&resource_id=H", nil); strings.Contains(a.body, "groups") {
		t.Errorf("groups that nobody asked for: %s", a.body)
	}
	a := f.get("/v1/availability", hotel+"2", nil)
	if got := a.members("slots", "slot_id"); !slices.Equal(got, []string{"n0", "n1", "n2", "n3", "n4"}) {
		t.Errorf("the members are listed as %v, want each once", got)
	}
}

// A stay that can't be held, because its resource allows one owner fewer units, is none.
func TestStaysKeepToWhatOneOwnerMayHave(t *testing.T) {
	f := newFixture(t)
	for i := range 3 {
		f.stock(t, night(fmt.Sprintf("n%d", i), 24*i, 24*i+24), "H", 4)
	}
	f.do(call{method: http.MethodPut, path: "/v1/policies/hotel/H", claims: catalog(), body: `{"quantity_max_per_owner_of_resource":4}`}).want(http.StatusCreated)
	for query, want := range map[string]int{"nights=2": 2, "nights=2&party_size=2": 2, "nights=3&party_size=1": 1, "nights=3&party_size=2": 0} {
		if got := f.get("/v1/availability", "resource_type=hotel&resource_id=H&"+query, nil).groups(); len(got) != want {
			t.Errorf("%s: %q, want %d groups", query, got, want)
		}
	}
}

// No stay is lost, cut or told twice by where pages end: at every limit all pages together
// are the stays among all slots.
func TestNoStayIsLostBetweenPages(t *testing.T) {
	f := newFixtureOn(t, memory.New())
	resources := 0
	rapid.Check(t, func(t *rapid.T) {
		resources++
		resource := fmt.Sprintf("H%d", resources)
		nights, limit := rapid.IntRange(1, 5).Draw(t, "nights"), rapid.IntRange(1, 6).Draw(t, "limit")
		from, to := rapid.IntRange(0, 7).Draw(t, "from"), rapid.IntRange(0, 7).Draw(t, "to")
		slots := drawNights(t)
		var fit, firsts []ledger.Slot
		for i := range slots {
			slots[i].ID = ledger.SlotID(resource + "-" + string(slots[i].ID))
			capacity := ledger.Units(rapid.IntRange(0, 2).Draw(t, "capacity"))
			f.stock(t, slots[i], resource, capacity)
			if capacity == 0 {
				continue
			}
			fit = append(fit, slots[i])
			if start := int(slots[i].StartsAt.Sub(noon).Hours()); start >= from && start <= max(from, to) {
				firsts = append(firsts, slots[i])
			}
		}
		slices.SortStableFunc(firsts, func(a, b ledger.Slot) int { return a.StartsAt.Compare(b.StartsAt) })
		var want []string
		for _, stay := range httpapi.Stays(nights, firsts, fit) {
			want = append(want, strings.Trim(fmt.Sprint(stay), "[]"))
		}
		got, _ := f.everyPage(t, fmt.Sprintf("resource_type=hotel&resource_id=%s&nights=%d&from=%s&to=%s", resource, nights,
			noon.Add(time.Duration(from)*time.Hour).Format(time.RFC3339), noon.Add(time.Duration(max(from, to))*time.Hour).Format(time.RFC3339)), limit)
		if !slices.Equal(got, want) {
			t.Fatalf("all pages are %q, want %q", got, want)
		}
	})
}

// Where more slots start within a stay than may be looked at, nothing is answered, rather
// than an answer in which some stays are missing. As many as may be are looked at.
func TestStaysAreNotLookedForWithoutEnd(t *testing.T) {
	f := newFixture(t)
	minute := func(resource string, i int) ledger.Slot {
		return ledger.Slot{ID: ledger.SlotID(resource + "-" + strconv.Itoa(i)), StartsAt: noon.Add(time.Duration(i) * time.Minute), EndsAt: noon.Add(time.Duration(i+1) * time.Minute)}
	}
	for resource, between := range map[string]int{"just": httpapi.GroupSlotsLookedMax - 2, "over": httpapi.GroupSlotsLookedMax + httpapi.GroupReadSlots} {
		first, last := night(resource+"-first", -1, 0), night(resource+"-last", 24, 48)
		first.EndsAt, first.StartsAt = noon, noon.Add(-time.Hour)
		second := night(resource+"-second", 0, 24)
		for i := range between {
			f.stock(t, minute(resource, i+1), resource, 1)
		}
		for _, slot := range []ledger.Slot{first, second, last} {
			f.stock(t, slot, resource, 1)
		}
	}
	query := func(resource string) string {
		return "resource_type=hotel&resource_id=" + resource + "&nights=3&to=" + noon.Add(-time.Minute).Format(time.RFC3339)
	}
	refused := f.get("/v1/availability", query("over"), nil)
	refused.wantProblem(http.StatusBadRequest, "invalid_request")
	if got := refused.members("errors", "name"); !slices.Equal(got, []string{"nights"}) {
		t.Errorf("the refusal points at %v", got)
	}
	a := f.get("/v1/availability", query("just"), nil)
	a.want(http.StatusOK)
	if got := a.groups(); !slices.Equal(got, []string{"just-first just-second just-last"}) {
		t.Errorf("groups %q", got)
	}
}
