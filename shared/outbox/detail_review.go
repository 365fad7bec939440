package outbox

import (
	"strings"

	"holdfast/shared/ledger"
)

// reviewDetail is a case as consumers get it: that something waits for a person, for how
// long, and how it was decided. Who works on it and why they decided so is between colleagues,
// and the evidence of a finding may name an owner and what is counted of one; both are for
// operators, who read the case itself.
type reviewDetail struct {
	ID   ledger.ReviewID   `json:"review_id"`
	Kind ledger.ReviewKind `json:"kind"`
	// Subject is the id of what a case is about; "" for a finding, which the audit describes in
	// its own words.
	Subject   string                `json:"subject,omitempty"`
	Finding   string                `json:"finding,omitempty"`
	Status    ledger.ReviewStatus   `json:"status"`
	OpenedAt  string                `json:"opened_at"`
	ClaimedAt string                `json:"claimed_at,omitempty"`
	Decision  ledger.ReviewDecision `json:"decision,omitempty"`
	DecidedAt string                `json:"decided_at,omitempty"`
	Version   ledger.Version        `json:"version"`
}

func newReviewDetail(r ledger.Review) *reviewDetail {
	detail := &reviewDetail{
		ID: r.ID, Kind: r.Kind, Finding: r.Finding, Status: r.Status, OpenedAt: formatTime(r.OpenedAt), ClaimedAt: formatTime(r.ClaimedAt),
		Decision: r.Decision, DecidedAt: formatTime(r.DecidedAt), Version: r.Version,
	}
	if r.Kind != ledger.ReviewFinding {
		detail.Subject = r.Subject
	}
	return detail
}

// publishedActor is who caused the event, as it is published. Of what a person did about a
// case, or repaired, only the role is told, such as "operator": how long each colleague takes
// for how many cases is nobody's business on the bus.
func publishedActor(e ledger.Event) ledger.Actor {
	role, _, named := strings.Cut(string(e.Origin.Actor), ":")
	if !named || (e.Review == nil && e.Type != ledger.EventAuditRepaired) || e.Origin.Actor == ledger.ActorAudit {
		return e.Origin.Actor
	}
	return ledger.Actor(role)
}
