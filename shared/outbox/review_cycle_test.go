package outbox_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// cases is everything that happens to cases, and each kind of repair: of a slot's stock, a
// hold, a reservation, and an owner's counts.
func (l *lifeCycle) cases(slotID ledger.SlotID, holdID ledger.HoldID, reservationID ledger.ReservationID) []ledger.ReviewID {
	l.tb.Helper()
	const system, operator = "system:audit", "operator:kim"
	why := func(o ledger.Origin) ledger.Origin {
		o.Why = "Mrs Novak has called about her card"
		return o
	}
	finding := ledger.NewReview(ledger.ReviewFinding, "quota_mismatch/owner U-17", l.clock.Now())
	finding.Finding, finding.Evidence = "quota_mismatch", "owner U-17 has 7 of slot/"+string(slotID)
	var stored ledger.Review
	step := func(actor string, command ledger.Command, decide func(o ledger.Origin, now time.Time) (ledger.Change, error)) {
		stored = l.decided(actor, command, decide).Reviews[0].Next
	}
	step(system, ledger.CommandOpenReview, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		return ledger.OpenReview(stored, finding, why(o), now), nil
	})
	step(operator, ledger.CommandClaimReview, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		return ledger.ClaimReview(stored, why(o), now)
	})
	step(operator, ledger.CommandDecideReview, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		return ledger.DecideReview(stored, ledger.DecisionDismiss, why(o), now)
	})
	step(system, ledger.CommandOpenReview, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		finding.Evidence = "it is 9 by now"
		return ledger.OpenReview(stored, finding, why(o), now), nil
	})
	parked := ledger.NewReview(ledger.ReviewExpiry, string(holdID), l.clock.Now())
	l.decided(operator, ledger.CommandDecideReview, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		return ledger.DecideReview(parked, ledger.DecisionRetry, why(o), now)
	})

	l.decided(operator, ledger.CommandRepair, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		slots, err := l.store.Slots(context.Background(), []ledger.SlotID{slotID})
		l.check(err)
		stock, err := l.store.StockAtOneMoment(context.Background(), slots[0])
		l.check(err)
		return ledger.RepairStock(slots[0], []ledger.StockRepair{{
			Slot: slotID, Replaces: stock[0].Version, Counters: stock[0].Counters, Terms: stock[0].Terms,
		}}, why(o), now), nil
	})
	l.decided(system, ledger.CommandRepair, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		hold, err := l.store.Hold(context.Background(), holdID)
		return ledger.RepairHold(hold, why(o), now), err
	})
	l.decided(system, ledger.CommandRepair, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		reservation, err := l.store.Reservation(context.Background(), reservationID)
		return ledger.RepairReservation(reservation, why(o), now), err
	})
	step(system, ledger.CommandRepair, func(o ledger.Origin, now time.Time) (ledger.Change, error) {
		found, err := l.store.Quota(context.Background(), "U-18")
		return ledger.RepairQuota(found, map[ledger.QuotaKey]ledger.Units{ledger.QuotaHolds: 1}, stored, finding, why(o), now), err
	})
	return []ledger.ReviewID{stored.ID, parked.ID}
}

// What a person says to colleagues, who they are, and what the audit saw of an owner are for
// operators alone.
func TestReasonsAndNamesOfOperatorsAreNotPublished(t *testing.T) {
	told := 0
	for kind, details := range emitted(t) {
		of := strings.HasPrefix(string(kind), "review.") || kind == ledger.EventAuditRepaired
		for _, detail := range details {
			for _, secret := range []string{"Novak", "kim", "it is 9 by now", "owner U-17", "quota_mismatch/"} {
				if bytes.Contains(detail, []byte(secret)) {
					t.Errorf("%s tells %q: %s", kind, secret, detail)
				}
			}
			if of {
				told++
				actor := mustRead(t, detail)["actor"]
				if actor != "operator" && actor != string(ledger.ActorAudit) {
					t.Errorf("%s was caused by %q", kind, actor)
				}
			} else if bytes.Contains(detail, []byte(`"actor":"operator"`)) {
				t.Errorf("%s, which is about a slot or a policy, does not tell who changed it: %s", kind, detail)
			}
		}
	}
	if told < 9 {
		t.Errorf("only %d events of cases and repairs were published", told)
	}
}

// A case is told by the id of what it is about; a finding by its name.
func TestTheSchemaKnowsFindingsFromOtherCases(t *testing.T) {
	schema := mustCompile(t, ledger.EventReviewDecided)
	details := emitted(t)[ledger.EventReviewDecided]
	kinds := map[any]bool{}
	for _, detail := range details {
		read := mustRead(t, detail)
		review := read["review"].(map[string]any)
		kinds[review["kind"]] = true
		for name, damage := range map[string]func(){
			"both a subject and a finding": func() { review["subject"], review["finding"] = "hold_1", "link_broken" },
			"no decision":                  func() { delete(review, "decision") },
			"a decision that there is not": func() { review["decision"] = "sell" },
			"who decided":                  func() { review["decided_by"] = "operator:kim" },
		} {
			review = map[string]any{}
			for member, value := range mustRead(t, detail)["review"].(map[string]any) {
				review[member] = value
			}
			damage()
			read["review"] = review
			if schema.Validate(read) == nil {
				t.Errorf("the schema allows a case with %s: %v", name, review)
			}
		}
	}
	if !kinds["finding"] || !kinds["expiry"] {
		t.Errorf("decided were cases of the kinds %v only", kinds)
	}
}

// A repair is told of exactly one thing, and of each kind of thing that can be repaired.
func TestTheSchemaOfRepairsIsOfOneThing(t *testing.T) {
	schema := mustCompile(t, ledger.EventAuditRepaired)
	of := map[string]any{}
	for _, detail := range emitted(t)[ledger.EventAuditRepaired] {
		read := mustRead(t, detail)
		member := subjectMember(t, read)
		of[member] = read[member]
	}
	if len(of) != 4 {
		t.Fatalf("repairs were told of %d kinds of things", len(of))
	}
	both := mustRead(t, emitted(t)[ledger.EventAuditRepaired][0])
	for member, thing := range of {
		both[member] = thing
	}
	if schema.Validate(both) == nil {
		t.Error("the schema allows a repair of several things at once")
	}
}
