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

// The whole queue on the real engine: all kinds are listed and shown, claimed, and decided by
// one person, with who and why; what can't be taken back is only told until -yes is given.
func TestReviews(t *testing.T) {
	w := newWorld(t, time.Hour)
	reservation := w.late()
	parked, event := w.hold(), w.hold()
	isParked, err := w.store.Park(t.Context(), ledger.DueHold{ID: parked.ID, DueAt: parked.ReleaseAt}, 3, time.Now().Add(time.Hour))
	if err != nil || !isParked {
		t.Fatalf("parked %t, %v", isParked, err)
	}
	item := ledger.EventItem{PartitionKey: "HOLD#" + string(event.ID), SortKey: "EVENT#0000000001"}
	w.check(w.store.Quarantine(t.Context(), item, "too_large", w.clock.Now()))
	events, err := w.store.HoldEvents(t.Context(), event.ID)
	w.check(err)
	finding := ledger.NewReview(ledger.ReviewFinding, "payment pi_9", w.clock.Now())
	finding.Finding, finding.Evidence = "payment_without_reservation", "nobody knows it"
	w.check(w.store.Commit(t.Context(), ledger.OpenReview(ledger.Review{}, finding, ledger.Origin{Actor: ledger.ActorSystem, EventID: events[0].ID + "x"}, w.clock.Now())))

	ids := map[ledger.ReviewKind]string{
		ledger.ReviewReservation: string(reservation), ledger.ReviewExpiry: string(parked.ID), ledger.ReviewEvent: string(events[0].ID), ledger.ReviewFinding: string(finding.ID),
	}
	waits := func(arguments ...string) map[ledger.ReviewKind]string {
		t.Helper()
		var all []waitingCase
		w.opsJSON(&all, "reviews", arguments...)
		out := map[ledger.ReviewKind]string{}
		for _, c := range all {
			if out[c.Kind] = c.Case; c.WaitingSince.IsZero() || c.Summary == "" || !c.Waits {
				t.Errorf("listed is %+v", c)
			}
		}
		return out
	}
	all := waits()
	text := w.ops("reviews", "list")
	for kind, id := range ids {
		if all[kind] != id || !strings.Contains(text, id) {
			t.Errorf("listed of %s is %q, want %q:\n%s", kind, all[kind], id, text)
		}
		if one := waits("-kind", string(kind)); len(one) != 1 || one[kind] != id {
			t.Errorf("-kind %s lists %v", kind, one)
		}
		var shown waitingCase
		if w.opsJSON(&shown, "reviews", "show", id); shown.Case != id || len(shown.Facts) < 3 || len(shown.Decisions) == 0 {
			t.Errorf("shown is %+v", shown)
		}
	}
	for _, want := range []string{"its payment came after the hold was over", "1000 KRW", "pi_1, authorized", "approve", "the payment counts"} {
		if text := w.ops("reviews", "show", string(reservation)); !strings.Contains(text, want) {
			t.Errorf("show lacks %q:\n%s", want, text)
		}
	}

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
		w.opsJSON(&decided, "reviews", "decide", ids[kind], string(d), "-who", "olga", "-why", "because", "-yes")
		if decided.Case != ids[kind] || decided.Decision != d || !decided.Decided || decided.Effect == "" {
			t.Errorf("%s: %+v", kind, decided)
		}
	}
	if left := waits(); len(left) != 0 {
		t.Errorf("still waiting: %v", left)
	}
	if r, err := w.store.Reservation(t.Context(), reservation); err != nil || r.Status != ledger.ReservationAuthorized || r.ApprovedAt.IsZero() {
		t.Errorf("the reservation is %+v, %v", r, err)
	}
	if h, err := w.store.Hold(t.Context(), parked.ID); err != nil || h.Status != ledger.StatusExpired {
		t.Errorf("the hold is %s, %v", h.Status, err)
	}
	stored, err := w.store.UnpublishedEvents(t.Context(), []ledger.EventItem{item})
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
