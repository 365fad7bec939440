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
		"POST /v1/holds/{hold_id}/payment": {202, 404, 403, 403, 403, 403, 401, 403},
		"PATCH /v1/holds/{hold_id}":        {200, 404, 403, 403, 403, 403, 401, 403},
		"POST /v1/holds/{hold_id}/extend":  {200, 404, 403, 403, 403, 403, 401, 403},
		"POST /v1/holds/{hold_id}/return":  {403, 403, 200, 403, 403, 403, 401, 403},
		"GET /v1/slots/{slot_id}":          {403, 403, 403, 200, 200, 403, 401, 403},
		"PUT /v1/slots/{slot_id}":          {403, 403, 403, 200, 403, 403, 401, 403},
		"PATCH /v1/slots/{slot_id}":        {403, 403, 403, 200, 403, 403, 401, 403},

		"GET /v1/policies/{resource_type}":               {403, 403, 403, 200, 200, 403, 401, 403},
		"PUT /v1/policies/{resource_type}":               {403, 403, 403, 200, 403, 403, 401, 403},
		"GET /v1/policies/{resource_type}/{resource_id}": {403, 403, 403, 200, 200, 403, 401, 403},
		"PUT /v1/policies/{resource_type}/{resource_id}": {403, 403, 403, 200, 403, 403, 401, 403},

		"GET /v1/reservations/{reservation_id}":                  {200, 404, 200, 403, 200, 403, 401, 403},
		"POST /v1/reservations/{reservation_id}/payment-session": {200, 404, 403, 403, 403, 403, 401, 403},
		"POST /v1/reservations/{reservation_id}/cancel":          {200, 404, 403, 403, 200, 403, 401, 403},
		"POST /v1/reservations/{reservation_id}/delivery":        {403, 403, 200, 403, 403, 403, 401, 403},

		"GET /v1/reviews/{case_id}":           {403, 403, 403, 403, 200, 403, 401, 403},
		"POST /v1/reviews/{case_id}/claim":    {403, 403, 403, 403, 200, 403, 401, 403},
		"POST /v1/reviews/{case_id}/decision": {403, 403, 403, 403, 200, 403, 401, 403},
	}
	const (
		deliveryPath = "/v1/reservations/{reservation_id}/delivery"
		returnPath   = "/v1/holds/{hold_id}/return"
		typePath     = "/v1/policies/{resource_type}"
		resourcePath = "/v1/policies/{resource_type}/{resource_id}"
		decisionPath = "/v1/reviews/{case_id}/decision"
	)
	bodies := map[string]string{
		"PUT /v1/slots/{slot_id}":   `{"resource_type":"flight","resource_id":"KE0901","capacity":9,"unit_amount":1,"currency":"KRW","open":false}`,
		"PATCH /v1/slots/{slot_id}": `{"open":false}`,
		"PATCH /v1/holds/{hold_id}": `{"lines":[{"slot_id":"{slot_id}","quantity":2,"unit_amount":1000}]}`,
		"POST " + deliveryPath:      `{"delivered":true}`,
		"PUT " + typePath:           `{"hold_seconds":60}`,
		"PUT " + resourcePath:       `{"hold_seconds":60}`,
		"POST " + decisionPath:      `{"decision":"refund","why":"because"}`,
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
			f.define(slot, 5, `"policy":{"delivery":"event"}`)
			hold, reservation := f.mustHold(owner("U"), slot, 1), ""
			isCase := strings.Contains(route.Path, "{case_id}")
			if isCase || strings.Contains(route.Path, "{reservation_id}") {
				reservation = f.mustPay(owner("U"), hold)
			}
			named := strings.NewReplacer("{hold_id}", hold, "{slot_id}", slot, "{reservation_id}", reservation,
				"{case_id}", reservation, "{resource_type}", slot, "{resource_id}", slot)
			isPolicy := strings.HasPrefix(route.Path, typePath)
			switch {
			case isCase:
				f.review(reservation)
			case route.Path == deliveryPath:
				f.sell(reservation)
			case route.Path == returnPath:
				f.post("/v1/holds/"+hold+"/confirm", "", service(), f.key()).want(http.StatusOK)
			case isPolicy:
				f.putPolicy(slot, `{"scarce":true}`).want(http.StatusCreated)
				f.putPolicy(slot+"/"+slot, `{"scarce":true}`).want(http.StatusCreated)
			}
			state := func() string {
				text := f.get("/v1/holds/"+hold, "", owner("U")).body + f.get("/v1/slots/"+slot, "", catalog()).body
				if isPolicy {
					text += f.get(named.Replace(typePath), "", catalog()).body + f.get(named.Replace(resourcePath), "", catalog()).body
				}
				if isCase {
					text += f.get("/v1/reviews/"+reservation, "", operator()).body
				}
				if reservation != "" {
					text += f.get("/v1/reservations/"+reservation, "", owner("U")).body
				}
				return text
			}
			before := state()
			a := f.do(call{
				method: route.Method, path: named.Replace(route.Path), claims: caller.claims, headers: f.key(),
				body: named.Replace(bodies[route.Method+" "+route.Path]),
			})
			if a.status != statuses[i] {
				t.Errorf("%s %s by %s: status %d, want %d: %s", route.Method, route.Path, caller.name, a.status, statuses[i], a.body)
			}
			if a.status >= 400 && before != state() {
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
	reservation := f.mustPay(owner("U"), hold)
	unknown := strings.Repeat("0", len(hold)-5)
	holds, reservations := []string{hold, "hold_" + unknown, "anything-else"}, []string{reservation, "rsv_" + unknown, hold}
	for _, foreign := range []struct {
		call
		ids  []string
		code string
	}{
		{call{method: http.MethodGet, path: "/v1/holds/%s"}, holds, "hold_not_found"},
		{call{method: http.MethodPost, path: "/v1/holds/%s/cancel"}, holds, "hold_not_found"},
		{call{method: http.MethodPost, path: "/v1/holds/%s/payment"}, holds, "hold_not_found"},
		{call{method: http.MethodPatch, path: "/v1/holds/%s", body: line("seat", 2)}, holds, "hold_not_found"},
		{call{method: http.MethodPatch, path: "/v1/holds/%s", body: line("other", 2)}, holds, "hold_not_found"},
		{call{method: http.MethodPatch, path: "/v1/holds/%s", body: `{"hold_seconds":1}`}, holds, "hold_not_found"},
		{call{method: http.MethodPost, path: "/v1/holds/%s/extend"}, holds, "hold_not_found"},
		{call{method: http.MethodGet, path: "/v1/reservations/%s"}, reservations, "reservation_not_found"},
		{call{method: http.MethodPost, path: "/v1/reservations/%s/cancel"}, reservations, "reservation_not_found"},
		{call{method: http.MethodPost, path: "/v1/reservations/%s/payment-session"}, reservations, "reservation_not_found"},
	} {
		c := foreign.call
		c.claims, c.headers = owner("V"), f.key()
		answers := make([]answer, 0, 3)
		for _, id := range foreign.ids {
			asked := c
			asked.path = fmt.Sprintf(c.path, id)
			a := f.do(asked)
			a.wantProblem(http.StatusNotFound, foreign.code)
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
	missing = f.post("/v1/holds/anything-else/return", "", service(), f.key())
	missing.wantProblem(http.StatusNotFound, "hold_not_found")
	missing = f.post("/v1/reservations/anything-else/delivery", `{"delivered":true}`, service(), f.key())
	missing.wantProblem(http.StatusNotFound, "reservation_not_found")
	if listed := f.get("/v1/reservations", "", owner("V")).members("reservations", "reservation_id"); len(listed) != 0 {
		t.Errorf("V lists %v", listed)
	}
}

// Case L1, P11: how long an answer takes tells nothing either, because a foreign hold and
// an unknown one cause the same calls to the store, one after the other. Measured times
// would only show what the machine was busy with.
func TestP11_ForeignAndUnknownCostTheSame(t *testing.T) {
	store := &notedCalls{Store: memory.New()}
	f := newFixtureOn(t, store)
	f.define("seat", 5)
	hold := f.mustHold(owner("U"), "seat", 1)
	reservation := f.mustPay(owner("U"), hold)
	unknown := strings.Repeat("0", len(hold)-len("hold_"))
	holds, reservations := []string{hold, "hold_" + unknown}, []string{reservation, "rsv_" + unknown}
	for _, c := range []struct {
		call
		ids []string
	}{
		{call{method: http.MethodGet, path: "/v1/holds/%s"}, holds},
		{call{method: http.MethodPost, path: "/v1/holds/%s/cancel"}, holds},
		{call{method: http.MethodPost, path: "/v1/holds/%s/payment"}, holds},
		{call{method: http.MethodPatch, path: "/v1/holds/%s", body: line("seat", 2)}, holds},
		{call{method: http.MethodPatch, path: "/v1/holds/%s", body: `{"hold_seconds":1}`}, holds},
		{call{method: http.MethodPost, path: "/v1/holds/%s/extend"}, holds},
		{call{method: http.MethodGet, path: "/v1/reservations/%s"}, reservations},
		{call{method: http.MethodPost, path: "/v1/reservations/%s/cancel"}, reservations},
		{call{method: http.MethodPost, path: "/v1/reservations/%s/payment-session"}, reservations},
	} {
		var calls [][]string
		for _, id := range c.ids {
			asked := c.call
			asked.path, asked.claims, asked.headers = fmt.Sprintf(c.path, id), owner("V"), f.key()
			store.names = nil
			f.do(asked).want(http.StatusNotFound)
			calls = append(calls, store.names)
		}
		if len(calls[0]) == 0 || !slices.Equal(calls[0], calls[1]) {
			t.Errorf("%s %s: a foreign id causes %v, an unknown one %v", c.method, c.path, calls[0], calls[1])
		}
	}
}

// notedCalls notes which methods of the store are called that a request about one
// hold or reservation could call.
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

func (s *notedCalls) Reservation(ctx context.Context, id ledger.ReservationID) (ledger.Reservation, error) {
	s.names = append(s.names, "Reservation")
	return s.Store.Reservation(ctx, id)
}

func (s *notedCalls) ReservationEvents(ctx context.Context, id ledger.ReservationID) ([]ledger.Event, error) {
	s.names = append(s.names, "ReservationEvents")
	return s.Store.ReservationEvents(ctx, id)
}

func (s *notedCalls) Claimed(ctx context.Context, kind ledger.UniquenessKind, value string) (ledger.Uniqueness, bool, error) {
	s.names = append(s.names, "Claimed")
	return s.Store.Claimed(ctx, kind, value)
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
