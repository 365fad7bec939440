package ledger

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// FindingCooldownEnded is what the case of an ended cool-down names as found.
const FindingCooldownEnded = "cooldown_ended"

// CooldownSubject is what the case of an owner's cool-down is about.
func CooldownSubject(owner OwnerID) string { return "owner/" + string(owner) + "/cooldown" }

// EndCooldown forgets the owner's expired holds, as ForgetExpiries does, and writes down who
// did so and why. An owner has no events, so a case that is decided at once tells it: who
// asks later why somebody was let in again reads it there. stored is the record of that case,
// zero for none.
//
// The Change is empty for an owner of whom no expired hold is counted. It returns CodeInvalid
// without a why.
func EndCooldown(found Quota, stored Review, origin Origin, now time.Time) (Change, error) {
	if origin.Why == "" || utf8.RuneCountInString(origin.Why) > WhyCharactersMax {
		return Change{}, errorf(CodeInvalid, "say why, in 1 to %d characters", WhyCharactersMax)
	}
	if found.Expired == 0 {
		return Change{}, nil
	}
	next := NewReview(ReviewFinding, CooldownSubject(found.Owner), now)
	next.Finding = FindingCooldownEnded
	next.Evidence = fmt.Sprintf("%d holds expired, one after the other, the last one at %s", found.Expired, found.LastExpiredAt.UTC().Format(time.RFC3339))
	next.Status, next.Decision, next.DecidedBy, next.DecidedAt, next.Why = ReviewDecided, DecisionDismiss, origin.Actor, now, origin.Why
	c := reviewStep(stored, next, EventReviewDecided, origin, now)
	c.Quotas = ForgetExpiries(found.Owner, now).Quotas
	return c, nil
}
