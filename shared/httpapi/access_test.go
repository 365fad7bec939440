package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/topology"
)

// Case L1: a user could read or change the reservation of another user. Every route with
// an id meets every kind of caller, with a fresh hold and slot for each call. A token of
// another issuer never passes the gateway's authorizer, so here it has no claims, like no
// token at all.
func TestCaseL1_EveryRouteEveryCaller(t *testing.T) {
	f := newFixture(t)
	nobody, otherUser := map[string]any(nil), owner("V")
	callers := []struct {
		name   string
		claims map[string]any
	}{
		{"owner", owner("U")}, {"other user", otherUser}, {"service", service()}, {"catalogue", catalog()},
		{"operator", operator()}, {"no operator", map[string]any{"sub": "V", "scope": "operate"}}, {"nobody", nobody},
		{"token without scopes", map[string]any{"sub": "U"}},
	}
	// The answers in the order of callers.
	matrix := map[string][]int{
		"GET /v1/holds/{hold_id}":          {200, 404, 200, 403, 200, 403, 401, 403},
		"POST /v1/holds/{hold_id}/confirm": {403, 403, 200, 403, 403, 403, 401, 403},
		"POST /v1/holds/{hold_id}/cancel":  {200, 404, 403, 403, 403, 403, 401, 403},
		"GET /v1/slots/{slot_id}":          {403, 403, 403, 200, 200, 403, 401, 403},
		"PUT /v1/slots/{slot_id}":          {403, 403, 403, 200, 403, 403, 401, 403},
		"PATCH /v1/slots/{slot_id}":        {403, 403, 403, 200, 403, 403, 401, 403},
	}
	bodies := map[string]string{
		"PUT":   `{"resource_type":"flight","resource_id":"KE0901","capacity":9,"unit_amount":1,"currency":"KRW","open":false}`,
		"PATCH": `{"open":false}`,
	}
	for _, route := range topology.Routes() {
		if !strings.Contains(route.Path, "{") {
			continue
		}
		statuses, listed := matrix[route.Method+" "+route.Path]
		if !listed {
			t.Errorf("%s %s is not in the matrix", route.Method, route.Path)
			continue
		}
		for i, caller := range callers {
			slot := fmt.Sprintf("slot-%d-%d", len(f.slots), i)
			f.define(slot, 5)
			hold := f.mustHold(owner("U"), slot, 1)
			before := f.get("/v1/holds/"+hold, "", owner("U")).body + f.get("/v1/slots/"+slot, "", catalog()).body
			path := strings.NewReplacer("{hold_id}", hold, "{slot_id}", slot).Replace(route.Path)
			a := f.do(call{method: route.Method, path: path, claims: caller.claims, headers: f.key(), body: bodies[route.Method]})
			if a.status != statuses[i] {
				t.Errorf("%s %s by %s: status %d, want %d: %s", route.Method, route.Path, caller.name, a.status, statuses[i], a.body)
			}
			after := f.get("/v1/holds/"+hold, "", owner("U")).body + f.get("/v1/slots/"+slot, "", catalog()).body
			if a.status >= 400 && before != after {
				t.Errorf("%s %s by %s: a refusal changed something", route.Method, route.Path, caller.name)
			}
		}
	}
	f.balanced()
}

// Case L1, P11: a foreign id and an unknown id get the same answer, to the byte.
func TestP11_ForeignIsUnknown(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	hold := f.mustHold(owner("U"), "seat", 1)
	unknown := strings.Repeat("0", len(hold)-5)
	for _, c := range []call{
		{method: http.MethodGet, path: "/v1/holds/%s"},
		{method: http.MethodPost, path: "/v1/holds/%s/cancel"},
	} {
		c.claims, c.headers = owner("V"), f.key()
		answers := make([]answer, 0, 3)
		for _, id := range []string{hold, "hold_" + unknown, "anything-else"} {
			asked := c
			asked.path = fmt.Sprintf(c.path, id)
			a := f.do(asked)
			a.wantProblem(http.StatusNotFound, "hold_not_found")
			answers = append(answers, a)
		}
		for _, a := range answers[1:] {
			if a.body != answers[0].body || fmt.Sprint(a.headers) != fmt.Sprint(answers[0].headers) {
				t.Errorf("%s %s: %s differs from %s", c.method, c.path, a.body, answers[0].body)
			}
		}
	}
	if got := f.pages("", owner("V")); len(got) != 0 {
		t.Errorf("V lists %v", got)
	}
	missing := f.post("/v1/holds/anything-else/confirm", "", service(), f.key())
	missing.wantProblem(http.StatusNotFound, "hold_not_found")
}

// Case L1, P11: how long an answer takes tells nothing either, because a foreign hold and
// an unknown one cause the same calls to the store, one after the other. Measured times
// would only show what the machine was busy with.
func TestP11_ForeignAndUnknownCostTheSame(t *testing.T) {
	store := &notedCalls{Store: memory.New()}
	f := newFixtureOn(t, store)
	f.define("seat", 5)
	hold := f.mustHold(owner("U"), "seat", 1)
	unknown := "hold_" + strings.Repeat("0", len(hold)-len("hold_"))
	for _, c := range []call{
		{method: http.MethodGet, path: "/v1/holds/%s"},
		{method: http.MethodPost, path: "/v1/holds/%s/cancel"},
	} {
		var calls [][]string
		for _, id := range []string{hold, unknown} {
			asked := c
			asked.path, asked.claims, asked.headers = fmt.Sprintf(c.path, id), owner("V"), f.key()
			store.names = nil
			f.do(asked).wantProblem(http.StatusNotFound, "hold_not_found")
			calls = append(calls, store.names)
		}
		if len(calls[0]) == 0 || !slices.Equal(calls[0], calls[1]) {
			t.Errorf("%s %s: a foreign hold causes %v, an unknown one %v", c.method, c.path, calls[0], calls[1])
		}
	}
}

// notedCalls notes which methods of the store are called that a request about one hold
// could call.
type notedCalls struct {
	ledger.Store
	names []string
}

func (s *notedCalls) Commit(ctx context.Context, c ledger.Change) error {
	s.names = append(s.names, "Commit")
	return s.Store.Commit(ctx, c)
}

func (s *notedCalls) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	s.names = append(s.names, "Hold")
	return s.Store.Hold(ctx, id)
}

func (s *notedCalls) HoldsOfOwner(ctx context.Context, owner ledger.OwnerID, page ledger.Page) ([]ledger.Hold, ledger.Cursor, error) {
	s.names = append(s.names, "HoldsOfOwner")
	return s.Store.HoldsOfOwner(ctx, owner, page)
}

func (s *notedCalls) Slots(ctx context.Context, ids []ledger.SlotID) ([]ledger.Slot, error) {
	s.names = append(s.names, "Slots")
	return s.Store.Slots(ctx, ids)
}

func (s *notedCalls) Stock(ctx context.Context, slots []ledger.Slot) ([]ledger.Stock, error) {
	s.names = append(s.names, "Stock")
	return s.Store.Stock(ctx, slots)
}

func (s *notedCalls) HoldEvents(ctx context.Context, id ledger.HoldID) ([]ledger.Event, error) {
	s.names = append(s.names, "HoldEvents")
	return s.Store.HoldEvents(ctx, id)
}

func (s *notedCalls) IdempotencyRecord(ctx context.Context, id ledger.IdempotencyID) (ledger.IdempotencyRecord, bool, error) {
	s.names = append(s.names, "IdempotencyRecord")
	return s.Store.IdempotencyRecord(ctx, id)
}

// A customer id in a body is refused, and the owner is who the token says.
func TestTheOwnerIsTheSubject(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	for _, member := range []string{"owner", "owner_id", "customer_id", "user_id", "sub"} {
		body := strings.TrimSuffix(line("seat", 1), "}") + fmt.Sprintf(`,%q:"V"}`, member)
		f.create(owner("U"), body, f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	hold := f.mustHold(owner("U"), "seat", 1)
	if got := f.pages("owner=U", operator()); !slices.Equal(got, []string{hold}) {
		t.Errorf("U has %v", got)
	}
}
