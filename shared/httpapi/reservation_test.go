package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// mustSell makes a hold of a slot, starts its payment and takes it to CAPTURED. It returns
// the reservation's id.
func (f *fixture) mustSell(who map[string]any, slot string, quantity int) string {
	f.t.Helper()
	id := f.mustPay(who, f.mustHold(who, slot, quantity))
	f.sell(id)
	return id
}

func (f *fixture) cancel(id, body string, who map[string]any, headers map[string]string) answer {
	f.t.Helper()
	return f.post("/v1/reservations/"+id+"/cancel", body, who, headers)
}

func (f *fixture) deliver(id, body string, headers map[string]string) answer {
	f.t.Helper()
	return f.post("/v1/reservations/"+id+"/delivery", body, service(), headers)
}

// tells checks what an answer says of a reservation.
func (a answer) tells(status, stock, money string) {
	a.t.Helper()
	a.want(http.StatusOK)
	if a.text("status") != status || a.text("stock") != stock || a.text("money") != money {
		a.t.Errorf("told %s, %s, %s, want %s, %s, %s: %s", a.text("status"), a.text("stock"), a.text("money"), status, stock, money, a.body)
	}
}

// A reservation on its way to the end, as its owner reads it.
func TestAReservationIsFollowed(t *testing.T) {
	f := newFixture(t)
	hold := f.mustHoldOf(owner("U"), "seat")
	id := f.mustPay(owner("U"), hold)
	read := func() answer { return f.get("/v1/reservations/"+id, "", owner("U")) }
	read().tells("PAYMENT_PENDING", "held", "expected")
	f.authorize(id)
	read().tells("AUTHORIZED", "held", "authorized")
	f.confirm(id)
	read().tells("CONFIRMED", "confirmed", "authorized")
	if a := read(); a.text("sold_hold_id") != hold {
		t.Errorf("sold is %s", a.body)
	}
	f.counters("seat", 0, 0, 1, 1)
	f.balanced()
}

// Before the sale a cancellation stops the payment first; the units follow.
func TestCancelBeforeTheSale(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 2)
	hold := f.mustHold(owner("U"), "seat", 2)
	id := f.mustPay(owner("U"), hold)
	f.cancel(id, `{"lines":[{"slot_id":"seat","quantity":1}]}`, owner("U"), f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	first := f.cancel(id, "", owner("U"), keyed("K"))
	first.tells("COMPENSATING", "held", "checking")
	if first.text("reason") != "owner_canceled" {
		t.Errorf("the reason is %s", first.body)
	}
	for _, body := range []string{"", "{}", " { } "} {
		f.cancel(id, body, owner("U"), keyed("K")).wantReplayOf(first)
	}
	f.cancel(id, `{"lines":[{"slot_id":"seat","quantity":1}]}`, owner("U"), keyed("K")).wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	f.cancel(id, "", owner("U"), f.key()).tells("COMPENSATING", "held", "checking")
	f.pay(owner("U"), hold, f.key()).want(http.StatusConflict)
	f.counters("seat", 0, 2, 0, 2)
	f.balanced()
}

// After the sale the return and the refund that is owed are told together. The order of
// the lines makes no other request of it.
func TestCancelAfterTheSale(t *testing.T) {
	f := newFixture(t)
	f.define("A", 5)
	f.define("B", 5, `"unit_amount":70`)
	hold := f.create(owner("U"), `{"lines":[{"slot_id":"A","quantity":2,"unit_amount":1000},{"slot_id":"B","quantity":3,"unit_amount":70}]}`, f.key())
	id := f.mustPay(owner("U"), hold.text("hold_id"))
	f.sell(id)
	f.complete(id)
	part := f.cancel(id, `{"lines":[{"slot_id":"B","quantity":2},{"slot_id":"A","quantity":1}]}`, owner("U"), keyed("K"))
	part.tells("COMPLETED", "partly_returned", "refund_on_its_way")
	if part.number("owed_amount") != 1140 || part.number("captured_amount") != 2210 || fmt.Sprint(part.members("refunds", "amount")) != "[1140]" {
		t.Errorf("owed is %s", part.body)
	}
	f.cancel(id, `{"lines":[{"quantity":1,"slot_id":"\u0041"},{"slot_id":"B","quantity":2}]}`, owner("U"), keyed("K")).wantReplayOf(part)
	f.cancel(id, `{"lines":[{"slot_id":"A","quantity":2},{"slot_id":"B","quantity":2}]}`, owner("U"), keyed("K")).
		wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	if got := f.get("/v1/holds/"+hold.text("hold_id"), "", owner("U")); fmt.Sprint(got.members("lines", "returned_quantity")) != "[1 2]" {
		t.Errorf("the hold is %s", got.body)
	}
	f.cancel(id, `{"lines":[{"slot_id":"A","quantity":2}]}`, owner("U"), f.key()).wantProblem(http.StatusConflict, "return_over_sale")
	f.cancel(id, `{"lines":[{"slot_id":"C","quantity":1}]}`, owner("U"), f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	f.counters("A", 4, 0, 1, 5)
	f.counters("B", 4, 0, 1, 5)
	whole := f.cancel(id, "{}", owner("U"), f.key())
	whole.tells("COMPENSATING", "returned", "refund_on_its_way")
	if whole.number("owed_amount") != 2210 || whole.number("refunded_amount") != 0 {
		t.Errorf("owed is %s", whole.body)
	}
	f.counters("A", 5, 0, 0, 5)
	f.balanced()
}

// Case C1: a refund followed by a cancel gave the stock back twice.
func TestCaseC1_AReturnThenACancel(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 100)
	id := f.mustSell(owner("U"), "seat", 1)
	f.counters("seat", 99, 0, 1, 100)
	f.cancel(id, "", owner("U"), f.key()).tells("COMPENSATING", "returned", "refund_on_its_way")
	_, hold := f.paid(id)
	f.post("/v1/holds/"+string(hold.ID)+"/cancel", "", owner("U"), f.key()).wantProblem(http.StatusConflict, "hold_not_active")
	if got := f.get("/v1/holds/"+string(hold.ID), "", owner("U")).text("status"); got != "RETURNED" {
		t.Errorf("the hold is %s", got)
	}
	if got := f.pages("status=RETURNED", owner("U")); len(got) != 1 {
		t.Errorf("RETURNED are %v", got)
	}
	f.counters("seat", 100, 0, 0, 100)
	f.balanced()
}

// The policy of the slot binds the owner and not an operator.
func TestCancelByWhom(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5, `"starts_at":"2026-12-01T12:00:00Z","policy":{"cancel_until_seconds":3600,"restock":false}`)
	first, second := f.mustSell(owner("U"), "seat", 1), f.mustSell(owner("U"), "seat", 1)
	_, hold := f.paid(first)
	if got := f.get("/v1/holds/"+string(hold.ID), "", owner("U")); fmt.Sprint(got.members("lines", "cancel_until")) != "[2026-12-01T11:00:00.000Z]" {
		t.Errorf("the hold is %s", got.body)
	}
	f.clock.Set(time.Date(2026, time.December, 1, 10, 59, 59, 0, time.UTC))
	f.cancel(first, "", owner("U"), f.key()).tells("COMPENSATING", "returned", "refund_on_its_way")
	f.clock.Set(time.Date(2026, time.December, 1, 11, 0, 0, 0, time.UTC))
	f.cancel(second, "", owner("U"), f.key()).wantProblem(http.StatusConflict, "too_late_to_cancel")
	noOperator := map[string]any{"sub": "U", "scope": "holds operate"}
	f.cancel(second, "", noOperator, f.key()).wantProblem(http.StatusConflict, "too_late_to_cancel")
	by := f.cancel(second, "", operator(), f.key())
	by.tells("COMPENSATING", "returned", "refund_on_its_way")
	if by.text("reason") != "operator_canceled" {
		t.Errorf("the reason is %s", by.body)
	}
	events, err := f.store.ReservationEvents(t.Context(), ledger.ReservationID(second))
	if err != nil || events[len(events)-1].Origin.Actor != "operator:olga" {
		t.Errorf("the last event is by %+v, %v", events[len(events)-1].Origin, err)
	}
	f.counters("seat", 3, 0, 0, 3) // not sold again
	f.balanced()
}

// What was granted and used can't be taken back.
func TestCancelWhatWasUsed(t *testing.T) {
	f := newFixture(t)
	f.define("coins-U", 1)
	f.define("coins-V", 1)
	f.define("pack", 5, `"policy":{"grant_to_slot_id":"coins-{owner}"}`)
	hold := f.mustHold(owner("U"), "pack", 1)
	if got := f.get("/v1/holds/"+hold, "", owner("U")); fmt.Sprint(got.members("lines", "grant_to_slot_id")) != "[coins-U]" {
		t.Errorf("the hold is %s", got.body)
	}
	id := f.mustPay(owner("U"), hold)
	f.sell(id)
	r, sold := f.paid(id)
	slots, err := f.store.Slots(t.Context(), []ledger.SlotID{"coins-U"})
	if err != nil {
		t.Fatal(err)
	}
	stock, err := f.store.Stock(t.Context(), slots)
	if err != nil {
		t.Fatal(err)
	}
	movements, grants, err := ledger.GrantSteps(r, sold, stock)
	if err != nil {
		t.Fatal(err)
	}
	next := r.Clone()
	next.Status, next.Grants = ledger.ReservationCompleted, grants
	if err := f.store.Commit(t.Context(), ledger.ReservationStep(r, next, ledger.EventReservationCompleted, movements, f.origin(), f.clock.Now())); err != nil {
		t.Fatal(err)
	}
	f.counters("coins-U", 2, 0, 0, 2)
	f.mustHold(owner("U"), "coins-U", 2)
	refused := f.cancel(id, "", owner("U"), f.key())
	refused.wantProblem(http.StatusConflict, "already_used")
	if got := refused.members("slots", "slot_id"); fmt.Sprint(got) != "[coins-U]" {
		t.Errorf("the refusal names %v", got)
	}
	f.get("/v1/reservations/"+id, "", owner("U")).tells("COMPLETED", "confirmed", "captured")
	f.balanced()
}

// A trusted service says what a delivery came to, once.
func TestDelivery(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5, `"policy":{"delivery":"event"}`)
	done, failed := f.mustSell(owner("U"), "seat", 1), f.mustSell(owner("U"), "seat", 1)
	first := f.deliver(done, `{"delivered":true}`, keyed("K"))
	first.tells("CAPTURED", "confirmed", "captured")
	if strings.Contains(first.text("message"), "being delivered") {
		t.Errorf("delivered: %s", first.body)
	}
	f.deliver(done, ` { "delivered" : true } `, keyed("K")).wantReplayOf(first)
	f.deliver(done, `{"delivered":false}`, keyed("K")).wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	f.deliver(failed, `{"delivered":false}`, f.key()).tells("COMPENSATING", "returned", "refund_on_its_way")
	if a := f.get("/v1/reservations/"+failed, "", service()); a.text("reason") != "delivery_failed" {
		t.Errorf("failed: %s", a.body)
	}
	pending := f.mustPay(owner("U"), f.mustHold(owner("U"), "seat", 1))
	f.deliver(pending, `{"delivered":true}`, f.key()).wantProblem(http.StatusConflict, "reservation_not_active")
	f.counters("seat", 3, 1, 1, 5)
	f.balanced()
}

// Cases H4 and L6 on the new routes: bad input changes nothing.
func TestCaseL6_OddBodiesOfReservations(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 998)
	id := f.mustSell(owner("U"), "seat", 2)
	before := f.get("/v1/reservations/"+id, "", owner("U")).body
	lines := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`{"slot_id":"slot-%d","quantity":1}`, i))
		}
		return `{"lines":[` + strings.Join(all, ",") + `]}`
	}
	var bodies []string
	for _, quantity := range []string{"-1", "0", "1.5", `"1"`, "1e9", "9223372036854775808", "null", "true", "[]"} {
		bodies = append(bodies, `{"lines":[{"slot_id":"seat","quantity":`+quantity+`}]}`)
	}
	bodies = append(bodies, lines(51), `{"lines":[]}`, `{"lines":null}`, `{"lines":{}}`, `{"lines":[{}]}`, `{"lines":[null]}`, `{"lines":[{"quantity":1}]}`,
		`{"lines":[{"slot_id":"a b","quantity":1}]}`, `{"lines":[{"slot_id":"seat","quantity":1,"quantity":2}]}`,
		`{"lines":[{"slot_id":"seat","quantity":1}],"lines":[{"slot_id":"seat","quantity":1}]}`,
		`{"lines":[{"slot_id":"seat","quantity":1},{"slot_id":"seat","quantity":1}]}`,
		`{"lines":[{"slot_id":"seat","quantity":1,"unit_amount":1}]}`, `{"reason":"late"}`, `{"owner":"V"}`, `[]`, `null`, `"all"`, `{`, `{} {}`)
	for _, body := range bodies {
		f.cancel(id, body, owner("U"), f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	for _, body := range []string{``, `{}`, `{"delivered":null}`, `{"delivered":1}`, `{"delivered":"true"}`, `{"delivered":true,"delivered":false}`, `{"delivered":true,"x":1}`, `true`} {
		f.deliver(id, body, f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	for _, body := range []string{`{"quantity":1}`, `[]`, `null`, `{`, `{"a":1,"a":1}`} {
		_, hold := f.paid(id)
		f.post("/v1/holds/"+string(hold.ID)+"/payment", body, owner("U"), f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	f.cancel(id, lines(50), owner("U"), f.key()).wantProblem(http.StatusBadRequest, "invalid_request") // no line of the hold
	f.cancel(id, strings.Repeat(" ", 65_537), owner("U"), f.key()).wantProblem(http.StatusRequestEntityTooLarge, "body_too_large")
	if after := f.get("/v1/reservations/"+id, "", owner("U")).body; after != before {
		t.Errorf("bad input made %s of %s", after, before)
	}
	f.counters("seat", 996, 0, 2, 998)
	f.balanced()
}

// Case H3: a path that is already decoded reaches no other reservation.
func TestCaseH3_OddReservationIDs(t *testing.T) {
	f := newFixture(t)
	f.get("/v1/reservations/a/b", "", owner("U")).wantProblem(http.StatusNotFound, "route_not_found")
	for _, id := range []string{"x?admin=true", "a#b", "a\x00b", "€", "a%2Fb", "a.b", strings.Repeat("r", 65)} {
		f.get("/v1/reservations/"+id, "", owner("U")).wantProblem(http.StatusBadRequest, "invalid_request")
		f.cancel(id, "", owner("U"), f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
}

// A list has each reservation once, the newest first, for its owner or an operator.
func TestReservationList(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 100)
	var all, sold []string
	for i := range 23 {
		f.clock.Advance(time.Second)
		id := f.mustPay(owner("U"), f.mustHold(owner("U"), "seat", 1))
		if all = append(all, id); i%5 < 2 {
			f.sell(id)
			sold = append(sold, id)
		}
	}
	f.mustPay(owner("V"), f.mustHold(owner("V"), "seat", 1))
	slices.Reverse(all)
	slices.Reverse(sold)
	for _, limit := range []string{"limit=1", "limit=7", "limit=100", "limit=20"} {
		if got := f.reservationPages(limit, owner("U")); !slices.Equal(got, all) {
			t.Errorf("%s: %d ids, want %d", limit, len(got), len(all))
		}
		if got := f.reservationPages(limit+"&status=CAPTURED", owner("U")); !slices.Equal(got, sold) {
			t.Errorf("%s: sold are %v, want %v", limit, got, sold)
		}
	}
	if got := f.reservationPages("owner=U", operator()); !slices.Equal(got, all) {
		t.Errorf("an operator sees %d reservations of U", len(got))
	}
	page := f.get("/v1/reservations", "status=CAPTURED&limit=1", owner("U"))
	if got := fmt.Sprint(page.members("reservations", "stock"), page.members("reservations", "money")); got != "[confirmed] [captured]" {
		t.Errorf("a page tells %s", page.body)
	}
	for query, who := range map[string]map[string]any{
		"limit=0": owner("U"), "limit=101": owner("U"), "status=": owner("U"), "status=captured": owner("U"), "status=HELD": owner("U"),
		"status=CAPTURED,CANCELED": owner("U"), "status=CAPTURED&status=CAPTURED": owner("U"), "cursor=bogus": owner("U"), "": operator(), "hold_id=x": owner("U"),
	} {
		f.get("/v1/reservations", query, who).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	f.get("/v1/reservations", "owner=V", owner("U")).wantProblem(http.StatusForbidden, "forbidden")
	f.get("/v1/reservations", "", service()).wantProblem(http.StatusForbidden, "forbidden")
	f.get("/v1/reservations", "", nil).wantProblem(http.StatusUnauthorized, "unauthenticated")
}

// reservationPages follows the cursors of a list and returns the ids of all pages.
func (f *fixture) reservationPages(query string, who map[string]any) []string {
	f.t.Helper()
	const pagesMax = 101
	var ids []string
	cursor := ""
	for range pagesMax {
		asked := query
		if cursor != "" {
			asked += "&cursor=" + cursor
		}
		a := f.get("/v1/reservations", asked, who)
		a.want(http.StatusOK)
		page := a.members("reservations", "reservation_id")
		if len(page) > limitOf(f.t, query) {
			f.t.Errorf("%s: a page of %d", query, len(page))
		}
		ids = append(ids, page...)
		if cursor = a.text("next_cursor"); cursor == "" {
			return ids
		}
	}
	f.t.Fatalf("%s: more than %d pages", query, pagesMax)
	return nil
}

// sellsBetween lets the sale happen between the read of the reservation and that of its
// hold.
type sellsBetween struct {
	*memory.Store
	sell func()
}

func (s *sellsBetween) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	if sell := s.sell; sell != nil {
		s.sell = nil
		sell()
	}
	return s.Store.Hold(ctx, id)
}

// Two reads are of two moments when a sale comes between them. The answer is of one.
func TestASaleBetweenTheReads(t *testing.T) {
	store := &sellsBetween{Store: memory.New()}
	f := newFixtureOn(t, store)
	f.define("seat", 5)
	for name, read := range map[string]func(id string) answer{
		"one":    func(id string) answer { return f.get("/v1/reservations/"+id, "", owner("U")) },
		"a list": func(string) answer { return f.get("/v1/reservations", "limit=1", owner("U")) },
	} {
		f.clock.Advance(time.Second)
		id := f.mustPay(owner("U"), f.mustHold(owner("U"), "seat", 1))
		f.authorize(id)
		store.sell = func() { f.confirm(id) }
		a := read(id)
		a.want(http.StatusOK)
		for _, want := range []string{`"status":"CONFIRMED"`, `"stock":"confirmed"`, `"money":"authorized"`, `"sold_hold_id"`} {
			if !strings.Contains(a.body, want) {
				t.Errorf("%s: no %s in %s", name, want, a.body)
			}
		}
	}
	f.balanced()
}

// A reservation whose hold is gone is a fault of ours, and not an unknown reservation.
func TestAReservationWithoutItsHold(t *testing.T) {
	store := &toldStore{Store: memory.New(), reservation: reservationOf(ledger.ReservationCanceled, "", toldPurses()["voided"])}
	f := newFixtureOn(t, &noHolds{store})
	f.get("/v1/reservations/rsv_1", "", owner("U")).wantProblem(http.StatusInternalServerError, "internal")
}

// P11: whatever the ledger says of it, an unknown reservation has one text.
func TestP11_OneTextForAnUnknownReservation(t *testing.T) {
	f := newFixtureOn(t, &oddRefusals{memory.New()})
	a := f.get("/v1/reservations/rsv_1", "", owner("U"))
	a.wantProblem(http.StatusNotFound, "reservation_not_found")
	if a.text("detail") != ledger.ReservationNotFound().Message {
		t.Errorf("told %s", a.body)
	}
}

type oddRefusals struct{ *memory.Store }

func (*oddRefusals) Reservation(context.Context, ledger.ReservationID) (ledger.Reservation, error) {
	return ledger.Reservation{}, &ledger.Error{Code: ledger.CodeReservationNotFound, Message: "it is of somebody else"}
}

type noHolds struct{ *toldStore }

func (*noHolds) Hold(context.Context, ledger.HoldID) (ledger.Hold, error) {
	return ledger.Hold{}, ledger.HoldNotFound()
}

// The webhook's route is another function's: the document describes it, and here it is
// answered like any path that nothing answers to.
func TestTheWebhookIsNotAnsweredHere(t *testing.T) {
	f := newFixture(t)
	if mustLoad(t).Paths.Find("/v1/webhooks/stripe") == nil || !strings.Contains(f.get("/v1/openapi.json", "", nil).body, "/v1/webhooks/stripe") {
		t.Error("the document does not describe the webhook")
	}
	for _, claims := range []map[string]any{nil, owner("U"), operator()} {
		f.do(call{
			method: http.MethodPost, path: "/v1/webhooks/stripe", body: `{}`, claims: claims,
			headers: map[string]string{"stripe-signature": "t=1,v1=00"},
		}).wantProblem(http.StatusNotFound, "route_not_found")
	}
}

// Each part of a policy that is about payment is taken, shown, and changed on its own.
func TestPaymentPolicy(t *testing.T) {
	f := newFixture(t)
	f.define("S", 5)
	f.patch("S", `{"policy":{"on_decline":"keep"}}`).want(http.StatusOK)
	f.patch("S", `{"policy":{"late_payment":"refund","late_payment_by_provider":true}}`).want(http.StatusOK)
	f.patch("S", `{"policy":{"unknown_max_seconds":0,"delivery":"event"}}`).want(http.StatusOK)
	f.patch("S", `{"policy":{"cancel_until_seconds":31622400,"restock":false}}`).want(http.StatusOK)
	whole := f.patch("S", `{"policy":{"grant_to_slot_id":"coins-{owner}"}}`)
	whole.want(http.StatusOK)
	want := map[string]any{
		"on_decline": "keep", "late_payment": "refund", "late_payment_by_provider": true, "unknown_max_seconds": "0", "delivery": "event",
		"cancel_until_seconds": "31622400", "restock": false, "grant_to_slot_id": "coins-{owner}",
	}
	got, _ := whole.json()["policy"].(map[string]any)
	for name, value := range want {
		if fmt.Sprint(got[name]) != fmt.Sprint(value) {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
	if body := f.patch("S", `{"policy":{"grant_to_slot_id":"","restock":true}}`).body; strings.Contains(body, "grant_to_slot_id") || !strings.Contains(body, `"restock":true`) {
		t.Errorf("after the grant: %s", body)
	}
	for _, policy := range []string{
		`{"on_decline":"wait"}`, `{"late_payment":"keep"}`, `{"delivery":"grant"}`, `{"unknown_max_seconds":-1}`, `{"unknown_max_seconds":604801}`,
		`{"cancel_until_seconds":31622401}`, `{"restock":null}`, `{"grant_to_slot_id":"{buyer}"}`, `{"late_payment_by_provider":"yes"}`,
	} {
		f.patch("S", `{"policy":`+policy+`}`).wantProblem(http.StatusBadRequest, "invalid_request")
	}
}
