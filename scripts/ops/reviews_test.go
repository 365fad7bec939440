package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// late is a reservation whose payment came late and waits for a person.
func (w *world) late() ledger.ReservationID {
	w.t.Helper()
	random := system.RealRandom{}
	origin := func() ledger.Origin {
		return ledger.Origin{Actor: ledger.ActorSystem, Command: ledger.CommandDriveReservation, EventID: ledger.NewEventID(random.Bits128())}
	}
	id := ledger.NewReservationID(random.Bits128())
	begun, err := ledger.StartReservation(id, w.hold(), origin(), w.clock.Now())
	w.check(err)
	w.check(w.store.Commit(w.t.Context(), begun))
	r := begun.Reservations[0].Next
	next := r.Clone()
	next.Status, next.Reason, next.LookAt = ledger.ReservationReview, ledger.ReasonLate, time.Time{}
	next.Attempts[0].State, next.Attempts[0].Payment = ledger.AttemptAuthorized, "pi_1"
	w.check(w.store.Commit(w.t.Context(), ledger.ReservationStep(r, next, ledger.EventReservationReview, nil, origin(), w.clock.Now())))
	return id
}

// tryOps runs one command that must fail, and returns what it prints and its error.
func (w *world) tryOps(name string, arguments ...string) (string, error) {
	w.t.Helper()
	var out bytes.Buffer
	err := run(w.t.Context(), append([]string{name, "-environment", w.environment}, arguments...), &out)
	if err == nil {
		w.t.Fatalf("ops %s %v succeeds: %s", name, arguments, out.String())
	}
	return out.String(), err
}

// reviewQueue is one thing of each kind that waits for a person.
type reviewQueue struct {
	reservation ledger.ReservationID
	parked      ledger.HoldID
	event       ledger.EventItem
	ids         map[ledger.ReviewKind]string
}

// mustReviewQueue makes them wait.
func (w *world) mustReviewQueue() reviewQueue {
	w.t.Helper()
	ctx, now := w.t.Context(), w.clock.Now()
	reservation, parked, event := w.late(), w.hold(), w.hold()
	isParked, err := w.store.Park(ctx, ledger.DueHold{ID: parked.ID, DueAt: parked.ReleaseAt}, 3, time.Now().Add(time.Hour))
	if err != nil || !isParked {
		w.t.Fatalf("parked %t, %v", isParked, err)
	}
	item := ledger.EventItem{PartitionKey: "HOLD#" + string(event.ID), SortKey: "EVENT#0000000001"}
	w.check(w.store.Quarantine(ctx, item, "too_large", now))
	events, err := w.store.HoldEvents(ctx, event.ID)
	w.check(err)
	finding := ledger.NewReview(ledger.ReviewFinding, "payment pi_9", now)
	finding.Finding, finding.Evidence = "payment_without_reservation", "nobody knows it"
	w.check(w.store.Commit(ctx, ledger.OpenReview(ledger.Review{}, finding, ledger.Origin{Actor: ledger.ActorSystem, EventID: events[0].ID + "x"}, now)))
	return reviewQueue{reservation, parked.ID, item, map[ledger.ReviewKind]string{
		ledger.ReviewReservation: string(reservation), ledger.ReviewExpiry: string(parked.ID),
		ledger.ReviewEvent: string(events[0].ID), ledger.ReviewFinding: string(finding.ID),
	}}
}

// reviews are the cases that the command lists, by their kinds.
func (w *world) reviews(arguments ...string) map[ledger.ReviewKind]string {
	w.t.Helper()
	var all []waitingCase
	w.opsJSON(&all, "reviews", arguments...)
	out := map[ledger.ReviewKind]string{}
	for _, c := range all {
		if out[c.Kind] = c.Case; c.WaitingSince.IsZero() || c.Summary == "" || !c.Waits {
			w.t.Errorf("listed is %+v", c)
		}
	}
	return out
}

// All kinds of cases are listed and shown, with what can be decided.
func TestReviewsAreListedAndShown(t *testing.T) {
	w := newWorld(t, time.Hour)
	q := w.mustReviewQueue()
	all := w.reviews()
	text := w.ops("reviews", "list")
	for kind, id := range q.ids {
		if all[kind] != id || !strings.Contains(text, id) {
			t.Errorf("listed of %s is %q, want %q:\n%s", kind, all[kind], id, text)
		}
		if one := w.reviews("-kind", string(kind)); len(one) != 1 || one[kind] != id {
			t.Errorf("-kind %s lists %v", kind, one)
		}
		var shown waitingCase
		if w.opsJSON(&shown, "reviews", "show", id); shown.Case != id || len(shown.Facts) < 3 || len(shown.Decisions) == 0 {
			t.Errorf("shown is %+v", shown)
		}
	}
	for _, want := range []string{"its payment came after the hold was over", "1000 KRW", "pi_1, authorized", "approve", "the payment counts"} {
		if text := w.ops("reviews", "show", string(q.reservation)); !strings.Contains(text, want) {
			t.Errorf("show lacks %q:\n%s", want, text)
		}
	}
}

// The whole queue on the real engine: cases of all kinds are decided by one person, with who
// and why; what can't be taken back is only told until -yes is given.
func TestReviewsAreDecided(t *testing.T) {
	w := newWorld(t, time.Hour)
	q := w.mustReviewQueue()
	reservation := q.reservation
	if text := w.ops("reviews", "claim", string(reservation), "-who", "olga"); !strings.Contains(text, "operator:olga") {
		t.Errorf("claim prints %s", text)
	}
	if _, err := w.tryOps("reviews", "decide", string(reservation), "approve", "-who", "igor", "-why", "a", "-yes"); ledger.CodeOf(err) != ledger.CodeReviewClaimed {
		t.Errorf("decided over a claim: %v", err)
	}
	out, err := w.tryOps("reviews", "decide", string(reservation), "approve", "-who", "olga", "-why", "because")
	if !errors.Is(err, errNotSaidYes) || !strings.Contains(out, "the payment counts") || !strings.Contains(out, "false") {
		t.Errorf("without -yes: %v\n%s", err, out)
	}
	if r, err := w.store.Reservation(t.Context(), reservation); err != nil || r.Status != ledger.ReservationReview {
		t.Errorf("without -yes it is %s, %v", r.Status, err)
	}
	var decided decidedCase
	for kind, d := range map[ledger.ReviewKind]ledger.ReviewDecision{
		ledger.ReviewReservation: ledger.DecisionApprove, ledger.ReviewExpiry: ledger.DecisionRelease,
		ledger.ReviewEvent: ledger.DecisionRetry, ledger.ReviewFinding: ledger.DecisionDismiss,
	} {
		w.opsJSON(&decided, "reviews", "decide", q.ids[kind], string(d), "-who", "olga", "-why", "because", "-yes")
		if decided.Case != q.ids[kind] || decided.Decision != d || !decided.Decided || decided.Effect == "" {
			t.Errorf("%s: %+v", kind, decided)
		}
	}
	if left := w.reviews(); len(left) != 0 {
		t.Errorf("still waiting: %v", left)
	}
	if r, err := w.store.Reservation(t.Context(), reservation); err != nil || r.Status != ledger.ReservationAuthorized || r.ApprovedAt.IsZero() {
		t.Errorf("the reservation is %+v, %v", r, err)
	}
	if h, err := w.store.Hold(t.Context(), q.parked); err != nil || h.Status != ledger.StatusExpired {
		t.Errorf("the hold is %s, %v", h.Status, err)
	}
	stored, err := w.store.UnpublishedEvents(t.Context(), []ledger.EventItem{q.event})
	if err != nil || len(stored) != 1 || stored[0].Quarantine != nil {
		t.Errorf("the event is %+v, %v", stored, err)
	}
	history, err := w.store.ReviewEvents(t.Context(), ledger.ReviewIDOf(ledger.ReviewReservation, string(reservation)))
	if err != nil || len(history) != 2 || history[1].Origin.Actor != "operator:olga" || history[1].Origin.Why != "because" {
		t.Errorf("the case's events are %+v, %v", history, err)
	}
	_, err = w.tryOps("reviews", "decide", string(reservation), "refund", "-who", "olga", "-why", "a", "-yes")
	if !strings.Contains(err.Error(), "nothing is left to decide") {
		t.Errorf("decided twice: %v", err)
	}
	if text := w.ops("reviews", "show", string(reservation)); !strings.Contains(text, "approve, by operator:olga") || !strings.Contains(text, "nothing is left to decide") {
		t.Errorf("show prints\n%s", text)
	}
}

// What is decided wrongly is told with what is right, before anything is asked of the table
// where that is possible.
func TestWrongReviewCommands(t *testing.T) {
	w := newWorld(t, time.Hour)
	id := string(w.late())
	for _, test := range []struct{ line, want string }{
		{"what", "say `list`, `show ID`"},
		{"list more", "say `list`, `show ID`"},
		{"decide " + id, "decide ID DECISION"},
		{"list -kind bogus", `no kind "bogus"`},
		{"show rsv_1", "nothing of this id waits"},
		{"decide " + id + " release -why a -who olga -yes", "it has approve, refund, void"},
		{"decide " + id + " refund -who olga -yes", "say -why"},
	} {
		if _, err := w.tryOps("reviews", strings.Fields(test.line)...); !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.line, err, test.want)
		}
	}
	names := reviewKindNames()
	if slices.Sort(names); len(slices.Compact(names)) != 5 {
		t.Errorf("the kinds are %v", names)
	}
}
