package commands_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/commands/commandstest"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/system/systemtest"
)

// desk is where operators decide: a bench with a queue on it.
type desk struct {
	*bench
	inner        *memory.Store
	waiting      *commandstest.Waiting
	reviews      *commands.Reviews
	random       *systemtest.Random
	reservations []ledger.ReservationID
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	inner := memory.New()
	d := &desk{inner: inner, waiting: commandstest.NewWaiting(inner), random: systemtest.NewRandom(9)}
	d.bench = &bench{t: t, clock: systemtest.NewClock(noon), store: &hooks{Store: inner}}
	d.commands = commands.New(d.store, d.clock, systemtest.NewRandom(1))
	d.others = commands.New(inner, d.clock, systemtest.NewRandom(2))
	d.reviews = commands.NewReviews(d.commands, d.waiting)
	d.define("seat", definition(100, 1))
	return d
}

func operatedBy(operator, key string) commands.Request {
	return commands.Request{
		Actor: ledger.Actor("operator:" + operator), RequestID: "request", Owner: ledger.OwnerID(operator),
		Key: ledger.IdempotencyKey(key), Fingerprint: "same", Why: "because",
	}
}

func renderCase(c commands.Case, now time.Time) (ledger.Response, error) {
	return ledger.Response{Status: 200, Body: fmt.Appendf(nil, "%s %s %t %s", c.Name, c.Review.Status, c.Waits, now.Format("15:04:05"))}, nil
}

func (d *desk) claim(name, operator string) error {
	_, err := d.reviews.Claim(d.t.Context(), operatedBy(operator, ""), name, renderCase)
	return err
}

func (d *desk) decide(name string, decision ledger.ReviewDecision, operator, key string) (commands.Answer, error) {
	return d.reviews.Decide(d.t.Context(), operatedBy(operator, key), name, decision, renderCase)
}

func (d *desk) find(name string) commands.Case {
	d.t.Helper()
	c, err := d.reviews.Case(d.t.Context(), name)
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

func (d *desk) commit(c ledger.Change) {
	d.t.Helper()
	if err := d.inner.Commit(d.t.Context(), c); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) origin() ledger.Origin {
	return ledger.Origin{Actor: ledger.ActorSystem, Command: ledger.CommandDriveReservation, RequestID: "saga", EventID: ledger.NewEventID(d.random.Bits128())}
}

// step is what the saga does with a reservation.
func (d *desk) step(id ledger.ReservationID, t ledger.EventType, change func(*ledger.Reservation)) {
	d.t.Helper()
	r := d.reservation(id)
	next := r.Clone()
	change(&next)
	d.commit(ledger.ReservationStep(r, next, t, nil, d.origin(), d.clock.Now()))
}

func (d *desk) reservation(id ledger.ReservationID) ledger.Reservation {
	d.t.Helper()
	r, err := d.inner.Reservation(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

// paying is a new reservation of one seat.
func (d *desk) paying() ledger.ReservationID {
	d.t.Helper()
	id := ledger.NewReservationID(d.random.Bits128())
	change, err := ledger.StartReservation(id, d.mustHold("seat", 1), d.origin(), d.clock.Now())
	if err != nil {
		d.t.Fatal(err)
	}
	d.commit(change)
	d.reservations = append(d.reservations, id)
	return id
}

// late is a reservation whose authorized payment came late and waits for a person.
func (d *desk) late() string {
	d.t.Helper()
	id := d.paying()
	d.step(id, ledger.EventReservationReview, toReview)
	return string(id)
}

func toReview(r *ledger.Reservation) {
	r.Status, r.Reason, r.LookAt = ledger.ReservationReview, ledger.ReasonLate, time.Time{}
	r.Attempts[0].State, r.Attempts[0].Payment = ledger.AttemptAuthorized, "pi-1"
}

// owing is a reservation whose refund the provider has refused.
func (d *desk) owing() string {
	d.t.Helper()
	id := d.paying()
	d.step(id, ledger.EventReservationCompensating, func(r *ledger.Reservation) {
		r.Status, r.Reason = ledger.ReservationCompensating, ledger.ReasonOwnerCanceled
		r.WantNoMoney()
		r.Attempts[0].State, r.Attempts[0].CapturedMinor, r.Attempts[0].Payment = ledger.AttemptCaptured, 1000, "pi-1"
	})
	d.refuseRefund(id)
	return string(id)
}

func (d *desk) refuseRefund(id ledger.ReservationID) {
	d.t.Helper()
	d.step(id, ledger.EventReservationRefundRequired, func(r *ledger.Reservation) {
		r.Status = ledger.ReservationRefundRequired
		if len(r.Refunds) == 0 {
			r.Owe(1, 1000, ledger.ReasonOwnerCanceled, d.clock.Now())
		}
		r.Refunds[0].State, r.Refunds[0].EndedAt = ledger.RefundFailed, d.clock.Now()
	})
}

// parked is a hold that is over and could not be ended three times.
func (d *desk) parked() string {
	d.t.Helper()
	h := d.mustHold("seat", 2)
	if now := d.clock.Now(); now.Before(h.ReleaseAt) {
		d.clock.Advance(h.ReleaseAt.Sub(now))
	}
	d.park(h)
	return string(h.ID)
}

func (d *desk) park(h ledger.Hold) {
	d.t.Helper()
	parked, err := d.inner.Park(d.t.Context(), ledger.DueHold{ID: h.ID, DueAt: h.ReleaseAt}, 3, d.clock.Now().Add(time.Minute))
	if err != nil || !parked {
		d.t.Fatalf("parked %t: %v", parked, err)
	}
}

// quarantined is an event that is set aside now.
func (d *desk) quarantined(event ledger.Event, item ledger.EventItem) {
	d.waiting.Quarantine(ledger.StoredEvent{Item: item, Event: event, Quarantine: &ledger.Quarantine{Reason: "too_large", At: d.clock.Now()}})
}

func (d *desk) event() (string, ledger.EventItem) {
	d.t.Helper()
	h := d.mustHold("seat", 1)
	events, err := d.inner.HoldEvents(d.t.Context(), h.ID)
	if err != nil {
		d.t.Fatal(err)
	}
	item := ledger.EventItem{PartitionKey: "HOLD#" + string(h.ID), SortKey: "EVENT#0000000001"}
	d.quarantined(events[0], item)
	return string(events[0].ID), item
}

// finding is what the audit has found, as a case with that evidence.
func (d *desk) finding(evidence string) string {
	d.t.Helper()
	opened := ledger.NewReview(ledger.ReviewFinding, "payment pi-9", d.clock.Now())
	opened.Finding, opened.Evidence = "payment_without_reservation", evidence
	stored, err := d.inner.Reviews(d.t.Context(), []ledger.ReviewID{opened.ID})
	if err != nil {
		d.t.Fatal(err)
	}
	var before ledger.Review
	if len(stored) > 0 {
		before = stored[0]
	}
	d.commit(ledger.OpenReview(before, opened, d.origin(), d.clock.Now()))
	return string(opened.ID)
}

// names lists the queue in pages of that size.
func (d *desk) names(kind ledger.ReviewKind, size int) []string {
	d.t.Helper()
	var out []string
	page := ledger.Page{Limit: size}
	for range 200 {
		cases, next, err := d.reviews.List(d.t.Context(), kind, page)
		if err != nil {
			d.t.Fatal(err)
		}
		if len(cases) > size {
			d.t.Errorf("a page of %d has %d cases", size, len(cases))
		}
		for _, c := range cases {
			if !c.Waits || c.Since.IsZero() || c.Summary() == "" {
				d.t.Errorf("listed is %+v", c)
			}
			out = append(out, c.Name)
		}
		if page.After = next; next == "" {
			return out
		}
	}
	d.t.Fatal("the list has no end")
	return nil
}

func (d *desk) books() {
	d.t.Helper()
	ledgertest.CheckBooks(d.t, d.inner, d.slots, d.holds, d.reservations...)
}

// The queue has each case that waits once, whatever the size of its pages, and of one kind
// only those.
func TestReviewsList(t *testing.T) {
	d := newDesk(t)
	want := map[ledger.ReviewKind][]string{}
	add := func(kind ledger.ReviewKind, name string) { want[kind] = append(want[kind], name) }
	for range 7 {
		d.clock.Advance(time.Second)
		add(ledger.ReviewReservation, d.late())
		add(ledger.ReviewRefund, d.owing())
	}
	add(ledger.ReviewFinding, d.finding("it is not known"))
	for range 5 {
		add(ledger.ReviewExpiry, d.parked())
		event, _ := d.event()
		add(ledger.ReviewEvent, event)
	}
	var all []string
	for _, names := range want {
		all = append(all, names...)
	}
	sorted := func(names []string) []string { return slices.Sorted(slices.Values(names)) }
	for _, size := range []int{1, 2, 7, commands.CasesMax} {
		if got := d.names("", size); !slices.Equal(sorted(got), sorted(all)) {
			t.Errorf("in pages of %d listed are %d of %d: %v", size, len(got), len(all), got)
		}
		for kind, names := range want {
			if got := d.names(kind, size); !slices.Equal(sorted(got), sorted(names)) {
				t.Errorf("in pages of %d listed of %s are %v, want %v", size, kind, got, names)
			}
		}
	}
	if got := d.names(ledger.ReviewReservation, 3); !slices.Equal(got, want[ledger.ReviewReservation]) {
		t.Errorf("the longest waiting is not first: %v", got)
	}
	for _, page := range []ledger.Page{{Limit: 0}, {Limit: commands.CasesMax + 1}, {Limit: 1, After: "bogus"}, {Limit: 1, After: "cmV2aWV3cyA5OSA"}} {
		_, _, err := d.reviews.List(t.Context(), "", page)
		d.wantCode(err, ledger.CodeInvalid)
	}
	without := commands.NewReviews(d.commands, nil)
	cases, next, err := without.List(t.Context(), "", ledger.Page{Limit: commands.CasesMax})
	if err != nil || next != "" || len(cases) != 15 {
		t.Errorf("without parked holds and events it lists %d, %q, %v", len(cases), next, err)
	}
}

// A claim keeps others from claiming and deciding, for a time; one's own is renewed.
func TestReviewClaims(t *testing.T) {
	d := newDesk(t)
	name := d.late()
	if err := d.claim(name, "olga"); err != nil {
		t.Fatal(err)
	}
	d.clock.Advance(20 * time.Minute)
	d.wantCode(d.claim(name, "igor"), ledger.CodeReviewClaimed)
	_, err := d.decide(name, ledger.DecisionRefund, "igor", "")
	d.wantCode(err, ledger.CodeReviewClaimed)
	if err := d.claim(name, "olga"); err != nil {
		t.Errorf("renewed: %v", err)
	}
	d.clock.Advance(ledger.ReviewClaimFor - time.Millisecond)
	d.wantCode(d.claim(name, "igor"), ledger.CodeReviewClaimed)
	d.clock.Advance(time.Millisecond)
	if err := d.claim(name, "igor"); err != nil {
		t.Errorf("when it is over: %v", err)
	}
	if c := d.find(name); c.Review.ClaimedBy != "operator:igor" || c.Review.Status != ledger.ReviewClaimed || !c.Waits {
		t.Errorf("found is %+v", c.Review)
	}
	if got := d.names("", 9); !slices.Equal(got, []string{name}) {
		t.Errorf("a claimed case is not listed: %v", got)
	}
	if r := d.reservation(ledger.ReservationID(name)); r.Status != ledger.ReservationReview || r.Version != 2 {
		t.Errorf("claims have changed the reservation: %+v", r)
	}
	d.books()
}

// What is decided, and who, when and why, are one Change; the case is gone from the queue, and
// the next decision is told so. The same request is answered again.
func TestReviewDecisions(t *testing.T) {
	d := newDesk(t)
	for _, test := range []struct {
		name     string
		decision ledger.ReviewDecision
		status   ledger.ReservationStatus
	}{
		{d.late(), ledger.DecisionApprove, ledger.ReservationAuthorized},
		{d.late(), ledger.DecisionRefund, ledger.ReservationCompensating},
		{d.late(), ledger.DecisionVoid, ledger.ReservationCompensating},
		{d.owing(), ledger.DecisionRetry, ledger.ReservationCompensating},
		{d.owing(), ledger.DecisionRefund, ledger.ReservationCompensating},
	} {
		d.calls()
		first, err := d.decide(test.name, test.decision, "olga", "key "+test.name)
		if err != nil {
			t.Fatalf("%s: %v", test.decision, err)
		}
		if commits := d.store.calls()[0]; commits != 1 {
			t.Errorf("%s: %d commits", test.decision, commits)
		}
		r, c := d.reservation(ledger.ReservationID(test.name)), d.find(test.name)
		if r.Status != test.status || r.LookAt != d.clock.Now() {
			t.Errorf("%s: the reservation is %s, looked at at %s", test.decision, r.Status, r.LookAt)
		}
		if v := c.Review; c.Waits || v.Status != ledger.ReviewDecided || v.Decision != test.decision || v.DecidedBy != "operator:olga" || v.DecidedAt != d.clock.Now() || v.Why != "because" {
			t.Errorf("%s: the record is %+v", test.decision, v)
		}
		events, err := d.inner.ReviewEvents(t.Context(), c.Review.ID)
		if err != nil || len(events) != 1 || events[0].Type != ledger.EventReviewDecided || events[0].Origin.Why != "because" {
			t.Errorf("%s: the events are %+v, %v", test.decision, events, err)
		}
		again, err := d.decide(test.name, test.decision, "olga", "key "+test.name)
		if err != nil || !again.Replayed || string(again.Response.Body) != string(first.Response.Body) {
			t.Errorf("%s: the same request is answered %+v, %v", test.decision, again, err)
		}
		_, err = d.decide(test.name, test.decision, "igor", "other "+test.name)
		d.wantCode(err, ledger.CodeReviewDecided)
		d.wantCode(d.claim(test.name, "igor"), ledger.CodeReviewDecided)
	}
	if got := d.names("", 9); len(got) != 0 {
		t.Errorf("still listed are %v", got)
	}
	d.books()
}

func (d *desk) calls() { d.store.calls() }

// Nothing is written where the case has not that decision, or it can't be carried out now, or
// no reason is given.
func TestRefusedReviewDecisions(t *testing.T) {
	d := newDesk(t)
	mismatch := d.late()
	d.step(ledger.ReservationID(mismatch), ledger.EventReservationPaymentNoticed, func(r *ledger.Reservation) { r.WantNoMoney() })
	late := d.late()
	for _, test := range []struct {
		name     string
		decision ledger.ReviewDecision
		why      string
		code     ledger.Code
	}{
		{mismatch, ledger.DecisionApprove, "because", ledger.CodeDecisionNotPossible},
		{late, ledger.DecisionRelease, "because", ledger.CodeInvalid},
		{late, "bogus", "because", ledger.CodeInvalid},
		{late, ledger.DecisionRefund, "", ledger.CodeInvalid},
		{late, ledger.DecisionRefund, strings.Repeat("a", 501), ledger.CodeInvalid},
	} {
		r := operatedBy("olga", "key")
		r.Why = test.why
		_, err := d.reviews.Decide(t.Context(), r, test.name, test.decision, renderCase)
		d.wantCode(err, test.code)
		if c := d.find(test.name); !c.Waits || c.Review.Version != 0 {
			t.Errorf("%s has left %+v", test.decision, c.Review)
		}
	}
	for _, option := range d.find(mismatch).Options(d.clock.Now()) {
		if possible := option.NotPossible == ""; possible != (option.Decision != ledger.DecisionApprove) || option.Effect == "" {
			t.Errorf("told is %+v", option)
		}
	}
	d.books()
}

// A foreign name, a name of nothing, and what never waited are one answer.
func TestP11_UnknownReviews(t *testing.T) {
	d := newDesk(t)
	paying, hold := d.paying(), d.mustHold("seat", 1)
	none := [16]byte{9}
	for _, name := range []string{
		string(paying), string(hold.ID), string(ledger.NewReservationID(none)), string(ledger.NewHoldID(none)), string(ledger.NewEventID(none)),
		string(ledger.ReviewIDOf(ledger.ReviewRefund, "rsv_1")), "seat", "", "batch_1",
	} {
		_, err := d.reviews.Case(t.Context(), name)
		_, decided := d.decide(name, ledger.DecisionRetry, "olga", "")
		for _, err := range []error{err, d.claim(name, "olga"), decided} {
			d.wantCode(err, ledger.CodeReviewNotFound)
			if err.Error() != ledger.ReviewNotFound().Error() {
				t.Errorf("%q is answered with %v", name, err)
			}
		}
	}
}

// The saga is faster than an operator: the operator is told, and nothing is undone.
func TestAReviewThatSettlesItself(t *testing.T) {
	d := newDesk(t)
	name := d.owing()
	if err := d.claim(name, "olga"); err != nil {
		t.Fatal(err)
	}
	d.store.beforeCommit = func(int, ledger.Change) error {
		d.store.beforeCommit = nil
		d.step(ledger.ReservationID(name), ledger.EventReservationRefundEnded, func(r *ledger.Reservation) {
			r.Status, r.Refunds[0].State = ledger.ReservationRefunded, ledger.RefundDone
		})
		return nil
	}
	_, err := d.decide(name, ledger.DecisionRefund, "olga", "")
	d.wantCode(err, ledger.CodeReviewDecided)
	if !strings.Contains(err.Error(), "REFUNDED") {
		t.Errorf("told %v", err)
	}
	if r := d.reservation(ledger.ReservationID(name)); r.Refunds[0].ByHand || r.Status != ledger.ReservationRefunded {
		t.Errorf("the reservation is %+v", r)
	}
	d.wantCode(d.claim(name, "olga"), ledger.CodeReviewDecided)
	if got := d.names("", 9); len(got) != 0 {
		t.Errorf("still listed are %v", got)
	}
}

// A case that was decided is open again when its subject comes back, with what was decided
// the last time.
func TestAReviewComesBack(t *testing.T) {
	d := newDesk(t)
	name := d.owing()
	for round := range 3 {
		if _, err := d.decide(name, ledger.DecisionRetry, "olga", fmt.Sprint("key", round)); err != nil {
			t.Fatal(err)
		}
		d.clock.Advance(time.Minute)
		d.refuseRefund(ledger.ReservationID(name))
		c := d.find(name)
		if !c.Waits || c.Review.Status != ledger.ReviewOpen || c.Review.Decision != ledger.DecisionRetry || c.Since != d.clock.Now() {
			t.Errorf("round %d: it is %+v", round, c.Review)
		}
		if got := d.names("", 9); !slices.Equal(got, []string{name}) {
			t.Errorf("round %d: listed are %v", round, got)
		}
	}
	if r := d.reservation(ledger.ReservationID(name)); r.Refunds[0].Again != 3 {
		t.Errorf("it was asked for again %d times", r.Refunds[0].Again)
	}
	d.books()
}

// A parked hold is released by the sweep's own transition, in one Change with the record.
func TestAParkedHoldIsReleased(t *testing.T) {
	d := newDesk(t)
	name := d.parked()
	c := d.find(name)
	if c.Failures.Count != 3 || c.Since != c.Hold.ReleaseAt || !strings.Contains(fmt.Sprint(c.Facts()), "2 of seat") {
		t.Errorf("found is %+v", c)
	}
	d.calls()
	if _, err := d.decide(name, ledger.DecisionRelease, "olga", "key"); err != nil {
		t.Fatal(err)
	}
	if commits := d.store.calls()[0]; commits != 1 {
		t.Errorf("%d commits", commits)
	}
	if h := d.hold(ledger.HoldID(name)); h.Status != ledger.StatusExpired {
		t.Errorf("the hold is %s", h.Status)
	}
	again, err := d.decide(name, ledger.DecisionRelease, "olga", "key")
	if err != nil || !again.Replayed {
		t.Errorf("the same request is answered %+v, %v", again, err)
	}
	_, err = d.decide(name, ledger.DecisionRelease, "igor", "")
	d.wantCode(err, ledger.CodeReviewDecided)
	d.wantCounters("seat", 100, 0, 0)
	d.balanced()
}

// A hold with an open payment is released when it may be, together with what is owed.
func TestAParkedHoldWithAPaymentIsReleased(t *testing.T) {
	d := newDesk(t)
	id := d.paying()
	h := d.hold(d.reservation(id).Hold)
	due, _ := h.DueAt()
	d.clock.Advance(h.ReleaseAt.Sub(d.clock.Now()))
	parked, err := d.inner.Park(t.Context(), ledger.DueHold{ID: h.ID, DueAt: due}, 3, due.Add(time.Hour))
	if err != nil || !parked {
		t.Fatalf("parked %t: %v", parked, err)
	}
	_, err = d.decide(string(h.ID), ledger.DecisionRelease, "olga", "")
	d.wantCode(err, ledger.CodeDecisionNotPossible)
	d.clock.Advance(due.Sub(d.clock.Now()))
	if _, err := d.decide(string(h.ID), ledger.DecisionRelease, "olga", ""); err != nil {
		t.Fatal(err)
	}
	if r := d.reservation(id); r.Status != ledger.ReservationCompensating || d.hold(h.ID).Status != ledger.StatusExpired {
		t.Errorf("the reservation is %s, the hold %s", r.Status, d.hold(h.ID).Status)
	}
	d.books()
}

// A hold that can't be ended, because its stock does not have its units or because it can't be
// read, is told as such, and nothing is written.
func TestAParkedHoldThatCantBeReleased(t *testing.T) {
	d := newDesk(t)
	name := d.parked()
	shortage := &ledger.Refused{Legs: []ledger.RefusedLeg{{Kind: ledger.LegStock, Slot: "seat"}}}
	d.store.beforeCommit = func(int, ledger.Change) error { return shortage }
	_, err := d.decide(name, ledger.DecisionRelease, "olga", "")
	if e := d.refusal(err, ledger.CodeDecisionNotPossible); len(e.Slots) != 1 || e.Slots[0] != "seat" {
		t.Errorf("told %+v", e)
	}
	d.store.beforeCommit = func(int, ledger.Change) error { return &ledger.Error{Code: ledger.CodeInternal, Message: "no lines"} }
	_, err = d.decide(name, ledger.DecisionRelease, "olga", "")
	d.wantCode(err, ledger.CodeDecisionNotPossible)
	d.store.beforeCommit = nil

	unreadable := commands.NewReviews(commands.New(&unreadableHolds{d.inner}, d.clock, systemtest.NewRandom(3)), d.waiting)
	c, err := unreadable.Case(t.Context(), name)
	if err != nil || c.HoldUnreadable == nil || !strings.Contains(fmt.Sprint(c.Facts()), "not readable") {
		t.Errorf("found is %+v, %v", c, err)
	}
	_, err = unreadable.Decide(t.Context(), operatedBy("olga", ""), name, ledger.DecisionRelease, renderCase)
	d.wantCode(err, ledger.CodeDecisionNotPossible)
	if c := d.find(name); !c.Waits || c.Review.Version != 0 {
		t.Errorf("left is %+v", c.Review)
	}
	if _, err := unreadable.Decide(t.Context(), operatedBy("olga", ""), name, ledger.DecisionRetry, renderCase); err != nil {
		t.Errorf("a retry: %v", err)
	}
}

type unreadableHolds struct{ *memory.Store }

func (*unreadableHolds) Hold(context.Context, ledger.HoldID) (ledger.Hold, error) {
	return ledger.Hold{}, &ledger.Error{Code: ledger.CodeInternal, Message: "reading a hold"}
}

// A reservation whose hold is gone is shown, and nothing is decided about it that the saga
// could not carry out.
func TestAReviewWhoseHoldIsGone(t *testing.T) {
	d := newDesk(t)
	name := d.late()
	gone := commands.NewReviews(commands.New(&unreadableHolds{d.inner}, d.clock, systemtest.NewRandom(3)), d.waiting)
	c, err := gone.Case(t.Context(), name)
	if err != nil || c.HoldUnreadable == nil || !c.Waits {
		t.Errorf("found is %+v, %v", c, err)
	}
	for _, option := range c.Options(d.clock.Now()) {
		if option.NotPossible == "" {
			t.Errorf("%s is possible", option.Decision)
		}
	}
	_, err = gone.Decide(t.Context(), operatedBy("olga", ""), name, ledger.DecisionRefund, renderCase)
	d.wantCode(err, ledger.CodeDecisionNotPossible)
}

// A retry puts the hold back for the sweep. Where that fails after it was written down, the
// case stays open and the same request ends it; one that is parked anew is a case anew.
func TestAParkedHoldIsRetried(t *testing.T) {
	d := newDesk(t)
	name := d.parked()
	d.waiting.BeforeUnpark = func() error { return &ledger.Error{Code: ledger.CodeUnavailable, Message: "throttled"} }
	_, err := d.decide(name, ledger.DecisionRetry, "olga", "key")
	d.wantCode(err, ledger.CodeOutcomeUnknown)
	if c := d.find(name); !c.Waits || c.Review.Status != ledger.ReviewOpen || c.Review.Decision != ledger.DecisionRetry {
		t.Errorf("it is %+v", c.Review)
	}
	d.waiting.BeforeUnpark = nil
	if again, err := d.decide(name, ledger.DecisionRetry, "olga", "key"); err != nil || !again.Replayed {
		t.Errorf("the same request is answered %+v, %v", again, err)
	}
	if known, err := d.inner.Failures(t.Context(), ledger.HoldID(name)); err != nil || known != (ledger.EndFailures{}) {
		t.Errorf("it is still parked: %+v, %v", known, err)
	}
	_, err = d.decide(name, ledger.DecisionRetry, "igor", "")
	d.wantCode(err, ledger.CodeReviewDecided)
	d.park(d.hold(ledger.HoldID(name)))
	if c := d.find(name); !c.Waits || c.Review.Status != ledger.ReviewOpen {
		t.Errorf("parked anew it is %+v", c.Review)
	}
	d.balanced()
}

// A quarantined event is tried again, or left where it is. Dismissed it is no case any more,
// until it comes into quarantine anew. One without a readable id is named by its case.
func TestQuarantinedEventsAreDecided(t *testing.T) {
	d := newDesk(t)
	name, item := d.event()
	if facts := fmt.Sprint(d.find(name).Facts()); !strings.Contains(facts, "too_large") || !strings.Contains(facts, "hold.created") {
		t.Errorf("told is %s", facts)
	}
	d.waiting.BeforeRequeue = func() error { return errors.New("throttled") }
	_, err := d.decide(name, ledger.DecisionRetry, "olga", "key")
	d.wantCode(err, ledger.CodeOutcomeUnknown)
	d.waiting.BeforeRequeue = nil
	if again, err := d.decide(name, ledger.DecisionRetry, "olga", "key"); err != nil || !again.Replayed {
		t.Errorf("the same request is answered %+v, %v", again, err)
	}
	if _, err := d.decide(name, ledger.DecisionRetry, "olga", "key"); err != nil {
		t.Errorf("a third time: %v", err)
	}
	byCase := string(ledger.ReviewIDOf(ledger.ReviewEvent, item.String()))
	_, err = d.decide(byCase, ledger.DecisionRetry, "igor", "")
	d.wantCode(err, ledger.CodeReviewDecided)

	damaged := ledger.EventItem{PartitionKey: "HOLD#hold_x", SortKey: "EVENT#0000000009"}
	d.waiting.Quarantine(ledger.StoredEvent{Item: damaged, Unreadable: errors.New("no id"), Quarantine: &ledger.Quarantine{Reason: "unreadable", At: d.clock.Now()}})
	unnamed := string(ledger.ReviewIDOf(ledger.ReviewEvent, damaged.String()))
	if got := d.names(ledger.ReviewEvent, 9); !slices.Equal(got, []string{unnamed}) {
		t.Errorf("listed are %v", got)
	}
	if _, err := d.decide(unnamed, ledger.DecisionDismiss, "olga", ""); err != nil {
		t.Fatal(err)
	}
	if got := d.names("", 9); len(got) != 0 {
		t.Errorf("a dismissed event is listed: %v", got)
	}
	_, err = d.decide(unnamed, ledger.DecisionRetry, "olga", "")
	d.wantCode(err, ledger.CodeReviewDecided)
	d.clock.Advance(time.Minute)
	d.quarantined(ledger.Event{}, damaged)
	if got := d.names("", 9); !slices.Equal(got, []string{unnamed}) {
		t.Errorf("in quarantine anew it is not listed: %v", got)
	}
}

// A finding is closed by a person, and opened again by other evidence only.
func TestFindingsAreDismissed(t *testing.T) {
	d := newDesk(t)
	name := d.finding("first")
	if facts := fmt.Sprint(d.find(name).Facts()); !strings.Contains(facts, "payment_without_reservation") || !strings.Contains(facts, "first") {
		t.Errorf("told is %s", facts)
	}
	_, err := d.decide(name, ledger.DecisionRefund, "olga", "")
	d.wantCode(err, ledger.CodeInvalid)
	if _, err := d.decide(name, ledger.DecisionDismiss, "olga", ""); err != nil {
		t.Fatal(err)
	}
	_, err = d.decide(name, ledger.DecisionDismiss, "igor", "")
	d.wantCode(err, ledger.CodeReviewDecided)
	if d.finding("second"); !slices.Equal(d.names("", 9), []string{name}) {
		t.Error("it is not open again")
	}
}

// Of many operators who decide at once, one does; the case's record has one decision, and the
// hold ends once.
func TestOperatorsAtOnce(t *testing.T) {
	d := newDesk(t)
	for round := range 20 {
		name := d.parked()
		errs := make([]error, 8)
		var done sync.WaitGroup
		for i := range errs {
			done.Go(func() { _, errs[i] = d.decide(name, ledger.DecisionRelease, fmt.Sprint("operator", i), "") })
		}
		done.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if ledger.CodeOf(err) != ledger.CodeReviewDecided {
				t.Errorf("round %d: %v", round, err)
			}
		}
		if c := d.find(name); won != 1 || c.Review.Version != 1 {
			t.Errorf("round %d: %d have decided, the record is %+v", round, won, c.Review)
		}
	}
	d.balanced()
}
