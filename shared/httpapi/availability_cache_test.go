package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

func TestReadCacheForgets(t *testing.T) {
	c := httpapi.NewReadCache(2)
	c.Put("a", 1, noon)
	for _, test := range []struct {
		at    time.Duration
		fresh bool
	}{{0, true}, {999 * time.Millisecond, true}, {time.Second, false}, {-time.Millisecond, false}} {
		if value, at, fresh := c.Get("a", noon.Add(test.at)); fresh != test.fresh || value != 1 || !at.Equal(noon) {
			t.Errorf("after %s: %d of %s, fresh %t, want %t", test.at, value, at, fresh, test.fresh)
		}
	}
	if _, _, fresh := c.Get("b", noon); fresh {
		t.Error("b is there and nobody put it")
	}
	c.Put("b", 2, noon)
	c.Put("a", 3, noon)
	for key, want := range map[string]int{"a": 3, "b": 2} {
		if value, _, fresh := c.Get(key, noon); value != want || !fresh {
			t.Errorf("%s is %d, %t; a full cache forgot it for one that is there", key, value, fresh)
		}
	}
	c.Put("c", 4, noon)
	for key, want := range map[string]bool{"a": false, "b": false, "c": true} {
		if _, _, fresh := c.Get(key, noon); fresh != want {
			t.Errorf("%s is there: %t, want %t", key, fresh, want)
		}
	}
}

// An answer from the cache has the same form as a fresh one, tells when its oldest part was
// read, and is used for a second. A hold is decided by what there is.
func TestAvailabilityIsReadOnceASecond(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 3, `"starts_at":"2026-12-01T10:00:00Z"`, `"attributes":{"size":"L"}`)
	f.define("other", 3, `"starts_at":"2026-12-01T11:00:00Z"`)
	questions := map[string]string{
		"a resource": "resource_type=flight&resource_id=KE0901&party_size=3",
		"two slots":  "slot_ids=seat,other",
	}
	ask := func(question string) answer {
		a := f.get("/v1/availability", questions[question], nil)
		a.want(http.StatusOK)
		return a
	}
	fresh := make(map[string]string)
	for question := range questions {
		fresh[question] = ask(question).body
	}
	f.clock.Advance(999 * time.Millisecond)
	f.mustHold(owner("U"), "seat", 3)
	for question := range questions {
		if a := ask(question); a.body != fresh[question] {
			t.Errorf("%s within the second:\n%s\nwant\n%s", question, a.body, fresh[question])
		}
	}
	f.create(owner("V"), line("seat", 1), f.key()).wantProblem(http.StatusConflict, "insufficient_stock")
	f.clock.Advance(time.Millisecond)
	for question, want := range map[string]string{"a resource": "[other] [1]", "two slots": "[seat other] [0 1]"} {
		a := ask(question)
		if got := fmt.Sprint(a.members("slots", "slot_id"), " ", a.members("slots", "remaining_hint")); got != want || a.text("as_of") != "2026-11-30T12:00:01.000Z" {
			t.Errorf("%s a second later: %s as of %s, want %s", question, got, a.text("as_of"), want)
		}
	}
}

// as_of is of the oldest part: a stock that was read for another question half a second ago
// makes the whole answer half a second old.
func TestAsOfIsOfTheOldestPart(t *testing.T) {
	f := newFixture(t)
	f.define("old", 3)
	f.define("new", 3)
	f.define("page", 3, `"resource_id":"KE0902"`)
	f.get("/v1/availability", "slot_ids=old", nil).want(http.StatusOK)
	// This one needs no stock, so that only the page is kept.
	f.get("/v1/availability", "resource_type=flight&resource_id=KE0902&attributes=no:such", nil).want(http.StatusOK)
	f.clock.Advance(500 * time.Millisecond)
	for query, want := range map[string]string{
		"slot_ids=new":     "2026-11-30T12:00:00.500Z",
		"slot_ids=new,old": "2026-11-30T12:00:00.000Z",
		"resource_type=flight&resource_id=KE0901":     "2026-11-30T12:00:00.000Z",
		"resource_type=flight&resource_id=KE0902":     "2026-11-30T12:00:00.000Z",
		"resource_type=flight&resource_id=nobody-has": "2026-11-30T12:00:00.500Z",
	} {
		if a := f.get("/v1/availability", query, nil); a.text("as_of") != want {
			t.Errorf("%s is as of %s, want %s", query, a.text("as_of"), want)
		}
	}
}

// countedReads counts the reads of a store, and the items that they give.
type countedReads struct {
	*memory.Store
	counts map[string]int
}

func (s *countedReads) count(call string, items int) {
	s.counts[call]++
	s.counts[call+" items"] += items
}

func (s *countedReads) Slots(ctx context.Context, ids []ledger.SlotID) ([]ledger.Slot, error) {
	out, err := s.Store.Slots(ctx, ids)
	s.count("slots", len(out))
	return out, err
}

func (s *countedReads) SlotsOfResource(ctx context.Context, t ledger.ResourceType, id ledger.ResourceID, from, to time.Time, page ledger.Page) ([]ledger.Slot, ledger.Cursor, error) {
	out, next, err := s.Store.SlotsOfResource(ctx, t, id, from, to, page)
	s.count("index", len(out))
	return out, next, err
}

func (s *countedReads) Stock(ctx context.Context, slots []ledger.Slot) ([]ledger.Stock, error) {
	out, err := s.Store.Stock(ctx, slots)
	s.count("stock", len(out))
	return out, err
}

func (s *countedReads) StockAtOneMoment(ctx context.Context, slot ledger.Slot) ([]ledger.Stock, error) {
	out, err := s.Store.StockAtOneMoment(ctx, slot)
	s.count("stock at one moment", len(out))
	return out, err
}

func (s *countedReads) Policies(ctx context.Context, scopes []ledger.PolicyScope) ([]ledger.ScopePolicy, error) {
	out, err := s.Store.Policies(ctx, scopes)
	s.count("policies", len(scopes))
	return out, err
}

func (s *countedReads) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	s.count("hold", 1)
	return s.Store.Hold(ctx, id)
}

// An answer costs one read of the index and one batch of stock for each page, and the same
// with ten slots beside and with ten thousand: in other resources, and at other times.
func TestAvailabilityCostsTheSameAmongManySlots(t *testing.T) {
	const day = "2026-12-24"
	eve := time.Date(2026, time.December, 24, 0, 0, 0, 0, time.UTC)
	costs := func(others int) map[string]map[string]int {
		store := &countedReads{Store: memory.New(), counts: make(map[string]int)}
		f := newFixtureOn(t, store)
		for i := range 8 {
			slot := ledger.Slot{
				ID: ledger.SlotID(fmt.Sprintf("eve-%d", i)), StartsAt: eve.Add(time.Duration(i) * time.Hour), EndsAt: eve.Add(time.Duration(i+1) * time.Hour),
				Attributes: map[string]string{"row": "A", "seat": fmt.Sprint(i)},
			}
			f.stock(t, slot, "H", 2)
		}
		for i := range others {
			resource, start := "H", eve.AddDate(0, 0, 2+i/100).Add(time.Duration(i%100)*time.Minute)
			if i%2 == 0 {
				resource, start = fmt.Sprintf("H%d", i%97), eve
			}
			f.stock(t, ledger.Slot{ID: ledger.SlotID(fmt.Sprintf("other-%05d", i)), StartsAt: start, EndsAt: start.Add(time.Hour)}, resource, 2)
		}
		out := make(map[string]map[string]int)
		measure := func(name string, do func()) {
			f.clock.Advance(time.Minute) // nothing is cached any more
			clear(store.counts)
			do()
			out[name] = store.counts
			store.counts = make(map[string]int)
		}
		for name, query := range map[string]string{
			"a day":            "resource_type=hotel&resource_id=H&date=" + day,
			"by attribute":     "resource_type=hotel&resource_id=H&attributes=seat:3&date=" + day,
			"by id":            "slot_ids=eve-0,eve-1,eve-2,nothing",
			"stays":            "resource_type=hotel&resource_id=H&nights=3&date=" + day,
			"seats":            "resource_type=hotel&resource_id=H&adjacent=2&date=" + day,
			"the first page":   "resource_type=hotel&resource_id=H&limit=5&from=" + day + "T00:00:00Z",
			"stays, from then": "resource_type=hotel&resource_id=H&nights=3&limit=2&from=" + day + "T00:00:00Z",
		} {
			measure(name, func() { f.get("/v1/availability", query, nil).want(http.StatusOK) })
		}
		f.mustHold(owner("U"), "eve-3", 2)
		measure("a refusal", func() {
			a := f.create(owner("V"), line("eve-3", 1), f.key())
			a.wantProblem(http.StatusConflict, "insufficient_stock")
			if got := a.members("alternatives", "slot_id"); !slices.Equal(got, []string{"eve-2", "eve-4", "eve-1", "eve-5", "eve-0"}) {
				t.Errorf("alternatives %v", got)
			}
		})
		return out
	}
	few, many := costs(10), costs(10_000)
	for name := range few {
		if got, want := fmt.Sprint(many[name]), fmt.Sprint(few[name]); name != "a refusal" && got != want {
			t.Errorf("%s costs %s among many slots and %s among few", name, got, want)
		}
	}
	for name, want := range map[string]map[string]int{
		"a day":            {"index": 1, "index items": 8, "stock": 1, "stock items": 8},
		"by attribute":     {"index": 1, "index items": 8, "stock": 1, "stock items": 1},
		"by id":            {"slots": 1, "slots items": 3, "stock": 1, "stock items": 3},
		"stays":            {"index": 1, "index items": 8, "stock": 1, "stock items": 8},
		"seats":            {"index": 1, "index items": 8, "stock": 1, "stock items": 8},
		"the first page":   {"index": 1, "index items": 5, "stock": 1, "stock items": 5},
		"stays, from then": {"index": 2, "index items": 5, "stock": 2, "stock items": 4},
	} {
		want["policies"], want["policies items"] = 1, 2
		if got := fmt.Sprint(many[name]); got != fmt.Sprint(want) {
			t.Errorf("%s costs %s, want %v", name, got, want)
		}
	}
	// On the later side there is more to look at among many, up to a bound.
	if got := many["a refusal"]["index items"]; got > 2*httpapi.AlternativesLooked || many["a refusal"]["index"] != 2 {
		t.Errorf("a refusal costs %v", many["a refusal"])
	}
}

func TestAvailabilityByAttributes(t *testing.T) {
	f := newFixture(t)
	f.define("L-red", 1, `"attributes":{"size":"L","color":"red"}`)
	f.define("L-blue", 1, `"attributes":{"size":"L","color":"blue","note":"a:b,c"}`)
	f.define("M-red", 1, `"attributes":{"size":"M","color":"red"}`)
	f.define("plain", 1)
	f.define("korean", 1, `"attributes":{"색상":"빨간 색"}`)
	const resource = "resource_type=flight&resource_id=KE0901&attributes="
	for text, want := range map[string][]string{
		"size:L":                {"L-blue", "L-red"},
		"size:L,color:red":      {"L-red"},
		"color:red,size:L":      {"L-red"},
		"size:XL":               nil,
		"size:l":                nil,
		"note:a":                nil,
		"색상:빨간 색":               {"korean"},
		"size:L,color:red,no:x": nil,
	} {
		a := f.get("/v1/availability", resource+url.QueryEscape(text), nil)
		a.want(http.StatusOK)
		if got := a.members("slots", "slot_id"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	long := strings.Repeat("a", 257)
	for _, text := range []string{
		"", ",", ":", "size", "size:", ":L", "size:L,", ",size:L", "size:L,,color:red", "size:L,size:L", "size:L,size:M", "size:L:M",
		"size:L;color:red", "size=L", "size: L", " size:L", "size:L ", "size:L*", "size:\x00", "size:\xff", "size:\n", "size:a\u202eb", "size:\"L\"",
		"a:" + long, long + ":a", strings.Repeat("size:L,", 147),
		"a:1,b:1,c:1,d:1,e:1,f:1,g:1,h:1,i:1,j:1,k:1,l:1,m:1,n:1,o:1,p:1,q:1,r:1,s:1,t:1,u:1",
	} {
		refused := f.get("/v1/availability", resource+url.QueryEscape(text), nil)
		refused.wantProblem(http.StatusBadRequest, "invalid_request")
		if got := refused.members("errors", "name"); !slices.Equal(got, []string{"attributes"}) {
			t.Errorf("%q: the refusal points at %v", text, got)
		}
	}
}

// Case H4: a repeated filter is refused, and one that a gateway has joined from two means
// both of them: no half of a question is answered.
func TestCaseH4_RepeatedAttributes(t *testing.T) {
	f := newFixture(t)
	f.define("L-red", 1, `"attributes":{"size":"L","color":"red"}`)
	f.define("M-red", 1, `"attributes":{"size":"M","color":"red"}`)
	const resource = "resource_type=flight&resource_id=KE0901"
	for _, query := range []string{
		"&attributes=size:L&attributes=color:red", "&attributes=size:L&attributes=size:L", "&attributes=size:L,size:M",
		"&nights=2&nights=3", "&nights=2,3", "&adjacent=2&adjacent=2", "&adjacent=2,2", "&attributes=size:L,M",
	} {
		f.get("/v1/availability", resource+query, nil).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	joined := f.get("/v1/availability", resource+"&attributes=size:L,color:red", nil)
	joined.want(http.StatusOK)
	if got := joined.members("slots", "slot_id"); !slices.Equal(got, []string{"L-red"}) {
		t.Errorf("two filters in one find %v", got)
	}
}

func TestGroupsAreAskedForRightly(t *testing.T) {
	f := newFixture(t)
	const resource = "resource_type=flight&resource_id=KE0901&"
	for _, query := range []string{
		"nights=0", "nights=32", "nights=-1", "nights=1.5", "nights=", "nights=two", "adjacent=1", "adjacent=11", "adjacent=0", "adjacent=2.0",
		"nights=2&adjacent=2", "adjacent=2&party_size=2", "adjacent=2&party_size=1", "nights=2&party_size=11",
	} {
		f.get("/v1/availability", resource+query, nil).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	for _, query := range []string{"nights=2", "adjacent=2", "attributes=a:b"} {
		f.get("/v1/availability", "slot_ids=A&"+query, nil).wantProblem(http.StatusBadRequest, "invalid_request")
		f.get("/v1/availability", query, nil).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	for _, query := range []string{"nights=1", "nights=31", "adjacent=2", "adjacent=10"} {
		f.get("/v1/availability", resource+query, nil).want(http.StatusOK)
	}
}

// What is not on sale now can't be held, whatever is left of it: by the slot's own policy
// and by that of its resource. What more than one hold may take does not fit either.
func TestAvailabilityKeepsToTheWholePolicy(t *testing.T) {
	f := newFixture(t)
	starts := `"starts_at":"2026-12-01T10:00:00Z"`
	f.define("now", 9, starts)
	f.define("later", 9, starts, `"policy":{"sale_from":"2026-11-30T12:00:02.500Z"}`)
	f.define("over", 9, starts, `"policy":{"sale_until":"2026-11-30T12:00:00.000Z"}`)
	f.define("two", 9, starts, `"policy":{"quantity_max_per_hold":2}`)
	f.define("one-each", 9, starts, `"policy":{"quantity_max_per_owner":1}`)
	find := func(party int) string {
		return strings.Join(f.get("/v1/availability", fmt.Sprintf("resource_type=flight&resource_id=KE0901&party_size=%d", party), nil).members("slots", "slot_id"), " ")
	}
	hints := func() string {
		return strings.Join(f.get("/v1/availability", "slot_ids=now,later,over", nil).members("slots", "remaining_hint"), " ")
	}
	for party, want := range map[int]string{1: "now one-each two", 2: "now two", 3: "now"} {
		if got := find(party); got != want {
			t.Errorf("a party of %d finds %q, want %q", party, got, want)
		}
	}
	if got := hints(); got != "5 0 0" {
		t.Errorf("hints %q", got)
	}
	// A sale begins on time, also in an answer from the cache.
	f.clock.Set(noon.Add(2 * time.Second))
	if got := hints(); got != "5 0 0" {
		t.Errorf("before the sale: hints %q", got)
	}
	f.clock.Set(noon.Add(2500 * time.Millisecond))
	if got := hints(); got != "5 5 0" {
		t.Errorf("when the sale begins: hints %q", got)
	}
	if got := find(1); got != "later now one-each two" {
		t.Errorf("when the sale begins: %q", got)
	}
	f.do(call{method: http.MethodPut, path: "/v1/policies/flight", claims: catalog(), body: `{"quantity_max_per_hold":2,"sale_until":"2026-11-30T13:00:00Z"}`}).want(http.StatusCreated)
	f.clock.Advance(time.Minute)
	for party, want := range map[int]string{2: "later now two", 3: ""} {
		if got := find(party); got != want {
			t.Errorf("under the policy of the type, a party of %d finds %q, want %q", party, got, want)
		}
	}
	f.clock.Set(noon.Add(time.Hour))
	if got := find(1); got != "" {
		t.Errorf("after the sale: %q", got)
	}
}
