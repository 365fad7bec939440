package main

import "slices"

const (
	ledgerReview      = "shared/ledger/review.go"
	ledgerRepair      = "shared/ledger/repair.go"
	outboxReview      = "shared/outbox/detail_review.go"
	reconcilePlan     = "shared/reconcile/repair.go"
	reconcileRun      = "shared/reconcile/repair_run.go"
	reconcileStock    = "shared/reconcile/repair_stock.go"
	reconcileItem     = "shared/reconcile/repair_item.go"
	reconcileQuota    = "shared/reconcile/repair_quota.go"
	reconcileCase     = "shared/reconcile/repair_case.go"
	dryRunReturn      = "	if !r.apply {\n		r.written++\n		r.say(job, RepairPlanned, note)\n		return true, nil\n	}\n"
	dismissedIsKnown  = "if same && (waits || stored.Decision == DecisionDismiss) {"
	claimKeepsOthers  = "case r.ClaimedAgainst(who, now):"
	repairedOfVersion = "condition := expression.Name(attributeVersion).Equal(expression.Value(r.Replaces))"
)

// repairMutants are mistakes of what the audit and people do about what is wrong. The
// simulation damages nothing but what an audit of it repairs, so most are for the tests.
func repairMutants() []mutant {
	return slices.Concat(reviewMutants(), repairWriteMutants(), repairPlanMutants())
}

// reviewMutants lose cases, or the order in which people work on them.
func reviewMutants() []mutant {
	return []mutant{
		{
			name:  "a case is written at each audit",
			edits: []edit{{ledgerReview, dismissedIsKnown, "if same && waits && stored.Decision == DecisionDismiss {"}},
			harm:  "an operator dismisses the same case every five minutes, and its events bury all others",
			tests: []string{"./shared/ledger", "./shared/reconcile"},
		},
		{
			name:  "a claim keeps nobody off",
			edits: []edit{{ledgerReview, claimKeepsOthers, "case r.ClaimedAgainst(who, now) && now.IsZero():"}},
			harm:  "two people refund one buyer",
			tests: []string{"./shared/ledger"},
		},
		{
			name:  "decide without a reason",
			edits: []edit{{ledgerReview, `if origin.Why == "" || utf8`, "if utf8"}},
			harm:  "nobody knows a year later why a buyer got the money back",
			tests: []string{"./shared/ledger"},
		},
		{
			name:  "a decided case stays in the list",
			edits: []edit{{ledgerReview, "r.Kind == ReviewFinding && r.Status != ReviewDecided", "r.Kind == ReviewFinding"}},
			harm:  "the list of what waits only grows, and is read by nobody any more",
			tests: []string{"./shared/ledger"},
		},
		{
			name:  "two findings are one case",
			edits: []edit{{reconcileCase, `return string(f.Kind) + "/" + f.Subject`, "return f.Subject"}},
			harm:  "of two things that are wrong about a hold one is never seen",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "the bus hears who decided",
			edits: []edit{{outboxReview, "	return ledger.Actor(role)\n", "	return e.Origin.Actor\n"}, {outboxReview, "role, _, named :=", "_, _, named :="}},
			harm:  "every team on the bus can count how long each operator takes",
			tests: []string{"./shared/outbox"},
		},
	}
}

// repairWriteMutants write more than was decided, or on an older word.
func repairWriteMutants() []mutant {
	return []mutant{
		{
			name:  "repair stock that has moved on",
			edits: []edit{{dynamoStock, repairedOfVersion, "condition := " + alwaysTrue}},
			harm:  "a sale between reading and writing is undone, and its unit sold again",
			tests: []string{"./shared/dynamo"},
		},
		{
			name:  "repaired stock is deleted all the same",
			edits: []edit{{dynamoStock, ".\n		Remove(expression.Name(AttributeTimeToLive))", ""}},
			harm:  "the stock of a slot disappears within days, with all that was promised of it",
			tests: []string{"./shared/dynamo"},
		},
		{
			name:  "repair a count that has moved on",
			edits: []edit{{dynamoQuota, "if d.Was != nil {", "if d.Was != nil && d.Max > 0 {"}},
			harm:  "an owner who bought in this moment may buy as much once more",
			tests: []string{"./shared/dynamo"},
		},
		{
			name:  "a repaired reservation is never looked at",
			edits: []edit{{ledgerRepair, "if !r.AtRest() && r.Status != ReservationReview {", "if r.AtRest() && r.Status != ReservationReview {"}},
			harm:  "money that is owed stays owed, although the audit says that it was put right",
			tests: []string{"./shared/ledger"},
		},
		{
			name:  "a dry run writes",
			edits: []edit{{reconcileRun, dryRunReturn, ""}},
			harm:  "who only wanted to look has changed the books",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "a dry run ends holds",
			edits: []edit{{reconcileItem, "	if !r.apply {\n		r.written++\n		r.say(job, RepairPlanned, note)", "	if !r.apply && note == \"\" {\n		r.written++\n		r.say(job, RepairPlanned, note)"}},
			harm:  "who only wanted to look has taken units from a buyer",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "repair without an end",
			edits: []edit{{reconcileRun, "if run.written >= RepairsMax {", "if run.written >= 100*RepairsMax {"}},
			harm:  "a fault of the audit itself is written over the whole table before anybody looks",
			tests: []string{"./shared/reconcile"},
		},
	}
}

// repairPlanMutants repair what is not certain, or not any more.
func repairPlanMutants() []mutant {
	return []mutant{
		{
			name:  "repair stock in doubt",
			edits: []edit{{reconcilePlan, "	case !f.Proof.Certain:\n		return ActionReview, \"the rest", "	case !f.Proof.Certain && f.Slot == \"\":\n		return ActionReview, \"the rest"}},
			harm:  "a hold that the audit has not seen loses its units",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "repair a count in doubt",
			edits: []edit{{reconcilePlan, `if f.Owner == "" || f.Count == "" || !f.Proof.Certain {`, `if f.Owner == "" || f.Count == "" {`}},
			harm:  "an owner is locked out by purchases that are only out of sight",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "money is nobody's case",
			edits: []edit{{reconcilePlan, `return ActionReview, "it is about money"`, `return ActionNone, "it is about money"`}},
			harm:  "a buyer whose money is gone waits for ever",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "correct stock twice",
			edits: []edit{{reconcileStock, "case f.Proof.Version != p.slot.Version:", "case f.Proof.Version > p.slot.Version:"}},
			harm:  "two audits at once take off the same difference twice, and a right number becomes a wrong one",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "correct a count twice",
			edits: []edit{{reconcileQuota, "if stored.Decision == ledger.DecisionRepaired && !stored.DecidedAt.Before(f.Proof.At.Add(-RepairApart)) {", "if stored.Decision == ledger.DecisionRepaired && stored.DecidedAt.IsZero() {"}},
			harm:  "two audits at once give an owner units beyond the limit",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "set a count to yesterday's number",
			edits: []edit{{reconcileQuota, "want := was + f.Proof.Want - f.Proof.Was", "want := f.Proof.Want"}},
			harm:  "what an owner bought since the audit is not counted",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "write over what has gone on",
			edits: []edit{{reconcileItem, "case version != f.Proof.Version:", "case version < f.Proof.Version:"}},
			harm:  "each run writes holds anew that are right by now, and a second run is never empty",
			tests: []string{"./shared/reconcile"},
		},
	}
}
