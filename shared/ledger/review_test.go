package ledger_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"holdfast/shared/ledger"
)

var everyReviewKind = []ledger.ReviewKind{
	ledger.ReviewReservation, ledger.ReviewRefund, ledger.ReviewExpiry, ledger.ReviewEvent, ledger.ReviewFinding,
}

func operatorOf(name, why string) ledger.Origin {
	return ledger.Origin{Actor: ledger.Actor("operator:" + name), Command: ledger.CommandDecideReview, EventID: ledger.NewEventID(random(name + why)), Why: why}
}

// mustReview is the case after a change of it.
func mustReview(t *testing.T, change ledger.Change, err error) ledger.Review {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if err := change.Validate(); err != nil {
		t.Fatal(err)
	}
	return change.Reviews[0].Next
}

func findingCase(evidence string) ledger.Review {
	opened := ledger.NewReview(ledger.ReviewFinding, "link_broken/hold_1", noon)
	opened.Finding, opened.Evidence = "link_broken", evidence
	return opened
}

func mustClaim(t *testing.T, r ledger.Review, who string, now time.Time) ledger.Review {
	t.Helper()
	change, err := ledger.ClaimReview(r, operatorOf(who, ""), now)
	return mustReview(t, change, err)
}

func mustDecide(t *testing.T, r ledger.Review, d ledger.ReviewDecision, who string, now time.Time) ledger.Review {
	t.Helper()
	change, err := ledger.DecideReview(r, d, operatorOf(who, "seen to it"), now)
	return mustReview(t, change, err)
}

// Which decisions a case allows follows from its kind, and no other decision is taken.
func TestReviewKindsAllowTheirDecisions(t *testing.T) {
	allowed := map[ledger.ReviewKind]string{
		ledger.ReviewReservation: "approve refund void", ledger.ReviewRefund: "refund retry", ledger.ReviewExpiry: "release retry",
		ledger.ReviewEvent: "retry dismiss", ledger.ReviewFinding: "dismiss repaired", "another": "",
	}
	decisions := []ledger.ReviewDecision{
		ledger.DecisionApprove, ledger.DecisionRefund, ledger.DecisionVoid, ledger.DecisionRelease, ledger.DecisionRetry,
		ledger.DecisionRepaired, ledger.DecisionDismiss, "sell",
	}
	for kind, names := range allowed {
		for _, d := range decisions {
			want := strings.Contains(" "+names+" ", " "+string(d)+" ")
			if got := kind.Allows(d); got != want {
				t.Errorf("a case of the kind %s allows %s: %t, want %t", kind, d, got, want)
			}
			_, err := ledger.DecideReview(ledger.NewReview(kind, "x", noon), d, operatorOf("lee", "why"), noon)
			if code := ledger.CodeOf(err); (code == "") != want || (code != "" && code != ledger.CodeInvalid) {
				t.Errorf("deciding %s as %s: %v", kind, d, err)
			}
		}
	}
}

func TestReviewIDsAreOfKindAndSubject(t *testing.T) {
	seen := map[ledger.ReviewID]string{}
	for _, kind := range everyReviewKind {
		for _, subject := range []string{"a", "b", "nt/a"} {
			id, name := ledger.ReviewIDOf(kind, subject), string(kind)+"/"+subject
			if !ledger.ValidReviewID(string(id)) || ledger.ValidReservationID(string(id)) || ledger.ReviewIDOf(kind, subject) != id {
				t.Errorf("%s has the id %s", name, id)
			}
			if other, taken := seen[id]; taken {
				t.Errorf("%s and %s have one id", name, other)
			}
			seen[id] = name
		}
	}
}

// A claim keeps others away for half an hour, and nobody after that.
func TestReviewClaims(t *testing.T) {
	open := mustReview(t, ledger.OpenReview(ledger.Review{}, findingCase("a"), operatorOf("audit", ""), noon), nil)
	claimed := mustClaim(t, open, "lee", noon)
	if claimed.Status != ledger.ReviewClaimed || claimed.ClaimedBy != "operator:lee" || !claimed.ClaimedAt.Equal(noon) || claimed.Version != 2 {
		t.Errorf("claimed: %+v", claimed)
	}
	last := noon.Add(ledger.ReviewClaimFor - time.Millisecond)
	for name, try := range map[string]func(now time.Time) error{
		"claim": func(now time.Time) error {
			_, err := ledger.ClaimReview(claimed, operatorOf("kim", ""), now)
			return err
		},
		"decide": func(now time.Time) error {
			_, err := ledger.DecideReview(claimed, ledger.DecisionDismiss, operatorOf("kim", "why"), now)
			return err
		},
	} {
		if code := ledger.CodeOf(try(last)); code != ledger.CodeReviewClaimed {
			t.Errorf("%s by another in the last millisecond: %s", name, code)
		}
		if err := try(last.Add(time.Millisecond)); err != nil {
			t.Errorf("%s by another after half an hour: %v", name, err)
		}
	}
	if again := mustClaim(t, claimed, "lee", last); !again.ClaimedAt.Equal(last) {
		t.Errorf("a claim of one's own is not renewed: %+v", again)
	}
}

func TestReviewDecisions(t *testing.T) {
	claimed := mustClaim(t, ledger.NewReview(ledger.ReviewReservation, "rsv_1", noon), "lee", noon)
	decided := mustDecide(t, claimed, ledger.DecisionApprove, "lee", noon.Add(time.Minute))
	want := claimed
	want.Status, want.Decision, want.DecidedBy, want.DecidedAt, want.Why = ledger.ReviewDecided, ledger.DecisionApprove, "operator:lee", noon.Add(time.Minute), "seen to it"
	want.ClaimedBy, want.ClaimedAt, want.Version = "", time.Time{}, 2
	if decided != want {
		t.Errorf("decided\n%+v, want\n%+v", decided, want)
	}
	for name, err := range map[string]error{
		"claim": func() error { _, err := ledger.ClaimReview(decided, operatorOf("lee", ""), noon); return err }(),
		"decide": func() error {
			_, err := ledger.DecideReview(decided, ledger.DecisionVoid, operatorOf("lee", "why"), noon)
			return err
		}(),
	} {
		if ledger.CodeOf(err) != ledger.CodeReviewDecided {
			t.Errorf("%s after the decision: %v", name, err)
		}
	}
	for name, why := range map[string]string{"no reason": "", "a reason that is too long": strings.Repeat("é", ledger.WhyCharactersMax+1)} {
		if _, err := ledger.DecideReview(claimed, ledger.DecisionApprove, operatorOf("lee", why), noon); ledger.CodeOf(err) != ledger.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ledger.DecideReview(claimed, ledger.DecisionApprove, operatorOf("lee", strings.Repeat("é", ledger.WhyCharactersMax)), noon); err != nil {
		t.Errorf("the longest reason: %v", err)
	}
}

// The audit may see the same thing again after every run. Only what is new is written.
func TestReviewsAreOpenedOnce(t *testing.T) {
	long := strings.Repeat("é", ledger.EvidenceCharactersMax+5)
	origin := func(n string) ledger.Origin { return operatorOf("audit", n) }
	open := mustReview(t, ledger.OpenReview(ledger.Review{}, findingCase(long), origin("1"), noon), nil)
	if utf8.RuneCountInString(open.Evidence) != ledger.EvidenceCharactersMax || open.Status != ledger.ReviewOpen || open.Version != 1 {
		t.Fatalf("opened %+v", open)
	}
	later := noon.Add(time.Hour)
	claimed := mustClaim(t, open, "lee", noon)
	dismissed := mustDecide(t, open, ledger.DecisionDismiss, "lee", noon)
	for name, stored := range map[string]ledger.Review{"open": open, "claimed": claimed, "dismissed": dismissed} {
		if change := ledger.OpenReview(stored, findingCase(long), origin("2"), later); !change.Empty() {
			t.Errorf("%s, and seen again as it was: written anew", name)
		}
	}
	more := mustReview(t, ledger.OpenReview(claimed, findingCase("more"), origin("3"), later), nil)
	if more.Status != ledger.ReviewClaimed || more.ClaimedBy != claimed.ClaimedBy || !more.OpenedAt.Equal(noon) || more.Evidence != "more" || more.Version != 3 {
		t.Errorf("claimed, and seen again with more: %+v", more)
	}
	for name, stored := range map[string]ledger.Review{
		"dismissed, and seen again with more": dismissed,
		"repaired, and seen again as it was":  mustDecide(t, open, ledger.DecisionRepaired, "audit", noon),
	} {
		fresh := findingCase("more")
		if stored.Decision == ledger.DecisionRepaired {
			fresh = findingCase(long)
		}
		fresh.OpenedAt = later
		again := mustReview(t, ledger.OpenReview(stored, fresh, origin("4"), later), nil)
		if again.Status != ledger.ReviewOpen || !again.OpenedAt.Equal(later) || again.Decision != stored.Decision || again.Why != "seen to it" || again.Version != 3 {
			t.Errorf("%s: %+v", name, again)
		}
	}
}

// What waits for a person is listed once: a finding by its case, a reservation by itself.
func TestWhatWaitsForAPersonIsListed(t *testing.T) {
	for _, kind := range everyReviewKind {
		open := ledger.NewReview(kind, "x", noon)
		if since, waits := open.InReviewSince(); waits != (kind == ledger.ReviewFinding) || !since.Equal(noon) {
			t.Errorf("a case of the kind %s: %t, since %s", kind, waits, since)
		}
	}
	if _, waits := mustClaim(t, findingCase("a"), "lee", noon).InReviewSince(); !waits {
		t.Error("a finding that is claimed is not listed")
	}
	if _, waits := mustDecide(t, findingCase("a"), ledger.DecisionDismiss, "lee", noon).InReviewSince(); waits {
		t.Error("a finding that is decided is listed")
	}
	for _, status := range []ledger.ReservationStatus{
		ledger.ReservationPaymentPending, ledger.ReservationAuthorized, ledger.ReservationConfirmed, ledger.ReservationCaptured,
		ledger.ReservationCompleted, ledger.ReservationCompensating, ledger.ReservationCanceled, ledger.ReservationRefunded,
		ledger.ReservationRefundRequired, ledger.ReservationReview,
	} {
		want := status == ledger.ReservationReview || status == ledger.ReservationRefundRequired
		if _, waits := (ledger.Reservation{Status: status}).InReviewSince(); waits != want {
			t.Errorf("a reservation in %s: %t", status, waits)
		}
		if _, waits := (ledger.Reservation{Status: status, ArchivedIn: "batch"}).InReviewSince(); waits {
			t.Errorf("an archived reservation in %s is listed", status)
		}
	}
}
