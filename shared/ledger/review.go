package ledger

import (
	"fmt"
	"time"
	"unicode/utf8"
)

const (
	// WhyCharactersMax bounds the reason that a person gives for what they do.
	WhyCharactersMax = 500
	// EvidenceCharactersMax bounds what is written down of why a case was opened.
	EvidenceCharactersMax = 2_000
	// ReviewClaimFor is for how long a claim keeps others from deciding. A person who went
	// home must not keep a buyer's money waiting.
	ReviewClaimFor = 30 * time.Minute
)

// ReviewID names a case that a person must decide. It follows from what the case is about,
// so that there is one for each subject, whoever opens it and however often.
type ReviewID string

// ReviewKind says what a case is about.
type ReviewKind string

// The kinds.
const (
	// ReviewReservation: a payment that is not what was asked for, or late under the policy
	// review, or that the provider keeps refusing to deal with. The subject is the reservation.
	ReviewReservation ReviewKind = "reservation"
	// ReviewRefund: money is owed and the provider will not give it back by itself. The
	// subject is the reservation.
	ReviewRefund ReviewKind = "refund"
	// ReviewExpiry: a hold is over and could not be ended. The subject is the hold.
	ReviewExpiry ReviewKind = "expiry"
	// ReviewEvent: no retry can publish an event as it is. The subject is the event's item.
	ReviewEvent ReviewKind = "event"
	// ReviewFinding: the audit found something that is in doubt, or about money. The subject
	// is what the finding is about.
	ReviewFinding ReviewKind = "finding"
)

// ReviewStatus is how far a case is.
type ReviewStatus string

// The statuses. A case that is decided is opened again when its subject comes back.
const (
	ReviewOpen    ReviewStatus = "OPEN"
	ReviewClaimed ReviewStatus = "CLAIMED"
	ReviewDecided ReviewStatus = "DECIDED"
)

// ReviewDecision is what a person decides.
type ReviewDecision string

// The decisions. Which of them a case allows follows from its kind.
const (
	DecisionApprove ReviewDecision = "approve" // let the payment count
	DecisionRefund  ReviewDecision = "refund"  // give the money back, or it has been given back by hand
	DecisionVoid    ReviewDecision = "void"    // let go of money that was only reserved
	DecisionRelease ReviewDecision = "release" // end the hold
	DecisionRetry   ReviewDecision = "retry"   // try again what failed
	// DecisionRepaired: the audit has put it right by itself.
	DecisionRepaired ReviewDecision = "repaired"
	// DecisionDismiss: a person has seen to it, and nothing is to be done here.
	DecisionDismiss ReviewDecision = "dismiss"
)

// Review is a case: what a person must decide, who has taken it, and what was decided. A
// case about a reservation, a parked hold or a quarantined event has a record from its first
// claim or decision on: until then what it is about is itself the case. A finding has one
// from the beginning.
type Review struct {
	ID      ReviewID
	Kind    ReviewKind
	Subject string
	// Finding is the audit's name of what is wrong, and Evidence what shows it; "" for the
	// other kinds.
	Finding, Evidence string
	Status            ReviewStatus
	OpenedAt          time.Time
	// ClaimedBy is who works on it, since ClaimedAt; "" and zero while nobody does.
	ClaimedBy Actor
	ClaimedAt time.Time
	// Decision, DecidedBy, DecidedAt and Why are of the last decision.
	Decision  ReviewDecision
	DecidedBy Actor
	DecidedAt time.Time
	Why       string
	Version   Version
}

// ReviewIDOf is the id of the case of that kind about that subject.
func ReviewIDOf(kind ReviewKind, subject string) ReviewID {
	return ReviewID("review_" + encodeID(derivedBits("review", string(kind), subject)))
}

// NewReview is a case that has no record yet.
func NewReview(kind ReviewKind, subject string, openedAt time.Time) Review {
	return Review{ID: ReviewIDOf(kind, subject), Kind: kind, Subject: subject, Status: ReviewOpen, OpenedAt: openedAt}
}

// InReviewSince is since when a finding waits for a person, and whether it does. The other
// kinds are listed by what they are about.
func (r Review) InReviewSince() (time.Time, bool) {
	return r.OpenedAt, r.Kind == ReviewFinding && r.Status != ReviewDecided
}

// InReviewSince is since when the reservation waits for a person, and whether it does.
func (r Reservation) InReviewSince() (time.Time, bool) {
	waits := r.Status == ReservationReview || r.Status == ReservationRefundRequired
	since := r.StatusSince
	if since.IsZero() { // of a record that was written before its status had a time
		since = r.UpdatedAt
	}
	return since, waits && r.ArchivedIn == ""
}

// ClaimedAgainst reports whether somebody else than who works on the case at now.
func (r Review) ClaimedAgainst(who Actor, now time.Time) bool {
	return r.Status == ReviewClaimed && r.ClaimedBy != who && now.Before(r.ClaimedAt.Add(ReviewClaimFor))
}

// Allows reports whether the case can be decided so.
func (k ReviewKind) Allows(d ReviewDecision) bool {
	switch k {
	case ReviewReservation:
		return d == DecisionApprove || d == DecisionRefund || d == DecisionVoid
	case ReviewRefund:
		return d == DecisionRefund || d == DecisionRetry
	case ReviewExpiry:
		return d == DecisionRelease || d == DecisionRetry
	case ReviewEvent:
		return d == DecisionRetry || d == DecisionDismiss
	case ReviewFinding:
		return d == DecisionDismiss || d == DecisionRepaired
	}
	return false
}

// OpenReview opens a case, or opens it again with what is known now; stored is its record,
// zero for none. The Change is empty where nothing is new: a case that waits with the same
// evidence, and one that a person dismissed on the same evidence, who would else have to say
// so again after every audit.
func OpenReview(stored, opened Review, origin Origin, now time.Time) Change {
	opened.Evidence = Shorten(opened.Evidence, EvidenceCharactersMax)
	same := stored.Version > 0 && stored.Finding == opened.Finding && stored.Evidence == opened.Evidence
	waits := stored.Status == ReviewOpen || stored.Status == ReviewClaimed
	if same && (waits || stored.Decision == DecisionDismiss) {
		return Change{}
	}
	opened.Decision, opened.DecidedBy, opened.DecidedAt, opened.Why = stored.Decision, stored.DecidedBy, stored.DecidedAt, stored.Why
	if waits {
		opened.OpenedAt, opened.Status = stored.OpenedAt, stored.Status
		opened.ClaimedBy, opened.ClaimedAt = stored.ClaimedBy, stored.ClaimedAt
	}
	return reviewStep(stored, opened, EventReviewOpened, origin, now)
}

// ClaimReview takes a case for whom origin names. A claim of one's own is renewed.
//
// Errors: CodeReviewClaimed, CodeReviewDecided.
func ClaimReview(r Review, origin Origin, now time.Time) (Change, error) {
	if err := r.free(origin.Actor, now); err != nil {
		return Change{}, err
	}
	next := r
	next.Status, next.ClaimedBy, next.ClaimedAt = ReviewClaimed, origin.Actor, now
	return reviewStep(r, next, EventReviewClaimed, origin, now), nil
}

// DecideReview writes down who decided what, and why, which is origin.Why. What the decision
// does is another Change, and belongs into the same write.
//
// Errors: CodeReviewClaimed, CodeReviewDecided, CodeInvalid for a decision that the kind
// does not allow, or without a why.
func DecideReview(r Review, d ReviewDecision, origin Origin, now time.Time) (Change, error) {
	if err := r.free(origin.Actor, now); err != nil {
		return Change{}, err
	}
	if !r.Kind.Allows(d) {
		return Change{}, &Error{Code: CodeInvalid, Message: fmt.Sprintf("a case of the kind %s can't be decided as %q", r.Kind, d)}
	}
	if origin.Why == "" || utf8.RuneCountInString(origin.Why) > WhyCharactersMax {
		return Change{}, &Error{Code: CodeInvalid, Message: fmt.Sprintf("say why, in 1 to %d characters", WhyCharactersMax)}
	}
	next := r
	next.Status, next.Decision, next.DecidedBy, next.DecidedAt, next.Why = ReviewDecided, d, origin.Actor, now, origin.Why
	next.ClaimedBy, next.ClaimedAt = "", time.Time{}
	return reviewStep(r, next, EventReviewDecided, origin, now), nil
}

// free returns an error unless who may claim or decide the case at now.
func (r Review) free(who Actor, now time.Time) error {
	switch {
	case r.Status == ReviewDecided:
		return &Error{Code: CodeReviewDecided, Message: fmt.Sprintf("the case was decided as %s; it is opened again if its subject comes back", r.Decision)}
	case r.ClaimedAgainst(who, now):
		return &Error{Code: CodeReviewClaimed, Message: fmt.Sprintf("%s works on the case until %s at the latest", r.ClaimedBy, r.ClaimedAt.Add(ReviewClaimFor).Format(time.RFC3339))}
	}
	return nil
}

func reviewStep(stored, next Review, t EventType, origin Origin, now time.Time) Change {
	next.Version = stored.Version + 1
	return Change{
		At: now, Reviews: []ReviewWrite{{Next: next, Replaces: stored.Version}},
		Events: []Event{{ID: origin.EventID, Type: t, Version: next.Version, OccurredAt: now, Origin: origin, Review: &next}},
	}
}

// Shorten is s, or its first characters if it has more than most.
func Shorten(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:most-1]) + "…"
}
