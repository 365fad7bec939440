package httpapi_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/commands/commandstest"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
)

// review puts a reservation before a person, because its payment came late.
func (f *fixture) review(id string) {
	f.t.Helper()
	f.step(id, ledger.EventReservationReview, func(r *ledger.Reservation) {
		r.Status, r.Reason = ledger.ReservationReview, ledger.ReasonLate
		r.Attempts[len(r.Attempts)-1].State = ledger.AttemptAuthorized
	})
}

func (f *fixture) claim(id string, who map[string]any, headers map[string]string) answer {
	f.t.Helper()
	return f.post("/v1/reviews/"+id+"/claim", "", who, headers)
}

func (f *fixture) decide(id, decision string, who map[string]any, headers map[string]string) answer {
	f.t.Helper()
	return f.post("/v1/reviews/"+id+"/decision", fmt.Sprintf(`{"decision":%q,"why":"because"}`, decision), who, headers)
}

func (f *fixture) caseOf(id string) answer {
	f.t.Helper()
	a := f.get("/v1/reviews/"+id, "", operator())
	a.want(http.StatusOK)
	return a
}

// otherOperator is a colleague of the usual one.
func otherOperator() map[string]any {
	return map[string]any{"sub": "igor", "scope": "operate", "groups": "[ops]"}
}

// newReviewFixture has a quarantine too.
func newReviewFixture(t testing.TB) (*fixture, *commandstest.Waiting) {
	t.Helper()
	store := memory.New()
	f, waiting := newFixtureOn(t, store), commandstest.NewWaiting(store)
	o := f.options(store)
	o.Waiting = waiting
	f.api = mustAPI(t, o)
	return f, waiting
}

// late is a reservation in REVIEW of one seat.
func (f *fixture) late() string {
	f.t.Helper()
	id := f.mustPay(owner("U"), f.mustHold(owner("U"), "seat", 1))
	f.review(id)
	return id
}

// A case is listed, read, claimed and decided; each answer is the case as it is then.
func TestAReviewIsDecided(t *testing.T) {
	f, _ := newReviewFixture(t)
	f.define("seat", 5)
	id := f.late()
	list := f.get("/v1/reviews", "", operator())
	list.want(http.StatusOK)
	if got := fmt.Sprint(list.members("reviews", "case_id"), list.members("reviews", "kind"), list.members("reviews", "summary")); got != "["+id+"] [reservation] [its payment came after the hold was over]" {
		t.Errorf("listed is %s", list.body)
	}
	whole := f.caseOf(id)
	if got := fmt.Sprint(whole.members("decisions", "decision")); got != "[approve refund void]" || whole.json()["waits"] != true || whole.text("waiting_since") != "2026-11-30T12:00:00.000Z" {
		t.Errorf("the case is %s", whole.body)
	}
	for _, want := range []string{id, "1000 KRW", "authorized", "1 of seat", "HELD"} {
		if !strings.Contains(strings.Join(whole.members("facts", "text"), "; "), want) {
			t.Errorf("no fact says %q: %s", want, whole.body)
		}
	}
	claimed := f.claim(id, operator(), keyed("K"))
	claimed.want(http.StatusOK)
	if claimed.text("status") != "CLAIMED" || claimed.text("claimed_by") != "operator:olga" || claimed.text("claimed_until") != "2026-11-30T12:30:00.000Z" {
		t.Errorf("claimed is %s", claimed.body)
	}
	f.claim(id, operator(), keyed("K")).wantReplayOf(claimed)
	f.claim(id, otherOperator(), f.key()).wantProblem(http.StatusConflict, "review_claimed")
	f.decide(id, "refund", otherOperator(), f.key()).wantProblem(http.StatusConflict, "review_claimed")
	f.decide(id, "release", operator(), f.key()).wantProblem(http.StatusBadRequest, "invalid_request")

	decided := f.decide(id, "approve", operator(), keyed("D"))
	decided.want(http.StatusOK)
	if decided.text("status") != "DECIDED" || decided.text("last_decision") != "approve" || decided.text("decided_by") != "operator:olga" || decided.text("why") != "because" || decided.json()["waits"] != false {
		t.Errorf("decided is %s", decided.body)
	}
	f.decide(id, "approve", operator(), keyed("D")).wantReplayOf(decided)
	f.decide(id, "refund", operator(), keyed("D")).wantProblem(http.StatusUnprocessableEntity, "idempotency_key_reused")
	f.decide(id, "refund", otherOperator(), f.key()).wantProblem(http.StatusConflict, "review_decided")
	f.claim(id, otherOperator(), f.key()).wantProblem(http.StatusConflict, "review_decided")
	f.get("/v1/reservations/"+id, "", owner("U")).tells("AUTHORIZED", "held", "authorized")
	if got := f.caseOf(id); got.json()["waits"] != false || len(got.members("decisions", "decision")) != 0 {
		t.Errorf("afterwards it is %s", got.body)
	}
	if got := f.get("/v1/reviews", "", operator()).members("reviews", "case_id"); len(got) != 0 {
		t.Errorf("still listed are %v", got)
	}
	f.balanced()
}

// What can't be decided so says what can, before and when it is tried. A claim that is over is
// not shown.
func TestAReviewThatCantBeDecidedSo(t *testing.T) {
	f, _ := newReviewFixture(t)
	f.define("seat", 5)
	id := f.late()
	f.step(id, ledger.EventReservationPaymentNoticed, func(r *ledger.Reservation) { r.WantNoMoney() })
	refused := f.decide(id, "approve", operator(), f.key())
	refused.wantProblem(http.StatusConflict, "decision_not_possible")
	if told := f.caseOf(id).members("decisions", "not_possible"); !strings.Contains(told[0], "decide refund or void") || told[0] != refused.text("detail") || told[1] != "<nil>" {
		t.Errorf("told %v, and %s", told, refused.body)
	}
	f.claim(id, operator(), f.key()).want(http.StatusOK)
	f.clock.Advance(ledger.ReviewClaimFor)
	if got := f.caseOf(id); got.text("status") != "OPEN" || strings.Contains(got.body, "claimed_by") {
		t.Errorf("after the claim it is %s", got.body)
	}
	f.decide(id, "refund", otherOperator(), f.key()).want(http.StatusOK)
	f.balanced()
}

// The other kinds: a parked hold that is released, an event and a finding that are dismissed.
// A list is of one kind, in pages.
func TestReviewsOfOtherKinds(t *testing.T) {
	f, waiting := newReviewFixture(t)
	f.define("seat", 9)
	hold := f.mustHold(owner("U"), "seat", 2)
	f.clock.Advance(time.Hour)
	stored, err := f.store.Hold(t.Context(), ledger.HoldID(hold))
	if err != nil {
		t.Fatal(err)
	}
	if parked, err := waiting.Park(t.Context(), ledger.DueHold{ID: stored.ID, DueAt: stored.ReleaseAt}, 4, f.clock.Now()); err != nil || !parked {
		t.Fatalf("parked %t, %v", parked, err)
	}
	events, err := f.store.HoldEvents(t.Context(), stored.ID)
	if err != nil {
		t.Fatal(err)
	}
	waiting.Quarantine(ledger.StoredEvent{
		Item: ledger.EventItem{PartitionKey: "HOLD#" + hold, SortKey: "EVENT#0000000001"}, Event: events[0],
		Quarantine: &ledger.Quarantine{Reason: "too_large", At: f.clock.Now()},
	})
	finding := ledger.NewReview(ledger.ReviewFinding, "slot seat", f.clock.Now())
	finding.Finding, finding.Evidence = "stock_mismatch", "1 is not 2"
	if err := f.store.Commit(t.Context(), ledger.OpenReview(ledger.Review{}, finding, f.origin(), f.clock.Now())); err != nil {
		t.Fatal(err)
	}
	want := []string{string(finding.ID), hold, string(events[0].ID)}
	var got []string
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		page := f.get("/v1/reviews", strings.TrimSuffix("limit=1&cursor="+cursor, "&cursor="), operator())
		page.want(http.StatusOK)
		got, cursor = append(got, page.members("reviews", "case_id")...), page.text("next_cursor")
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed are %v, want %v", got, want)
	}
	for i, kind := range []string{"finding", "expiry", "event"} {
		if got := f.get("/v1/reviews", "kind="+kind, operator()).members("reviews", "case_id"); !slices.Equal(got, want[i:i+1]) {
			t.Errorf("listed of %s are %v", kind, got)
		}
	}
	for _, query := range []string{"kind=bogus", "limit=0", "limit=101", "cursor=bogus", "status=OPEN"} {
		f.get("/v1/reviews", query, operator()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	f.decide(hold, "release", operator(), f.key()).want(http.StatusOK)
	f.decide(want[2], "dismiss", operator(), f.key()).want(http.StatusOK)
	f.decide(want[0], "dismiss", operator(), f.key()).want(http.StatusOK)
	f.counters("seat", 9, 0, 0, 9)
	f.balanced()
}

// P11: whatever does not wait, and whatever is no id, is one answer, to the byte.
func TestP11_UnknownReviewsAreOneAnswer(t *testing.T) {
	f, _ := newReviewFixture(t)
	f.define("seat", 5)
	hold := f.mustHold(owner("U"), "seat", 1)
	unknown := strings.Repeat("0", 26)
	var bodies []string
	for _, id := range []string{hold, f.mustPay(owner("U"), hold), "rsv_" + unknown, "hold_" + unknown, "event_" + unknown, "review_" + unknown, "anything"} {
		for _, a := range []answer{f.get("/v1/reviews/"+id, "", operator()), f.claim(id, operator(), f.key()), f.decide(id, "retry", operator(), f.key())} {
			a.wantProblem(http.StatusNotFound, "review_not_found")
			bodies = append(bodies, a.body)
		}
	}
	if slices.Sort(bodies); bodies[0] != bodies[len(bodies)-1] {
		t.Errorf("two answers: %s and %s", bodies[0], bodies[len(bodies)-1])
	}
	for _, who := range []map[string]any{owner("U"), service(), catalog(), {"sub": "olga", "scope": "operate"}} {
		f.get("/v1/reviews", "", who).wantProblem(http.StatusForbidden, "forbidden")
	}
	f.get("/v1/reviews", "", nil).wantProblem(http.StatusUnauthorized, "unauthenticated")
}

// A decision without a reason, or with more than a reason, is refused as a whole.
func TestBadReviewDecisions(t *testing.T) {
	f, _ := newReviewFixture(t)
	f.define("seat", 5)
	id := f.late()
	for _, body := range []string{
		"", "{}", `{"decision":"refund"}`, `{"decision":"refund","why":""}`, `{"decision":"refund","why":7}`, `{"decision":"repaired","why":"a"}`,
		`{"decision":"refund","why":"` + strings.Repeat("a", 501) + `"}`, `{"decision":"refund","why":"a","amount":1}`,
	} {
		f.post("/v1/reviews/"+id+"/decision", body, operator(), f.key()).wantProblem(http.StatusBadRequest, "invalid_request")
	}
	f.decide(id, "refund", operator(), nil).wantProblem(http.StatusBadRequest, "idempotency_key_missing")
	f.get("/v1/reviews/a.b", "", operator()).wantProblem(http.StatusBadRequest, "invalid_request")
	if got := f.caseOf(id); got.json()["waits"] != true || got.text("last_decision") != "" {
		t.Errorf("it is %s", got.body)
	}
}
