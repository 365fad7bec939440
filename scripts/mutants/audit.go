package main

import "slices"

const (
	reconcileTally    = "shared/reconcile/tally.go"
	reconcileHold     = "shared/reconcile/tally_hold.go"
	reconcileSuspect  = "shared/reconcile/suspect.go"
	reconcileSales    = "shared/reconcile/suspect_quota.go"
	reconcileExamine  = "shared/reconcile/examine.go"
	reconcileSlot     = "shared/reconcile/examine_slot.go"
	reconcilePayments = "shared/reconcile/examine_payment.go"
	reconcileFanout   = "shared/reconcile/fanout.go"
	reconcileTell     = "shared/reconcile/fanout_tell.go"
	telemetryTally    = "shared/telemetry/tally.go"
	telemetryHeld     = "shared/telemetry/held.go"
	dynamoForget      = "shared/dynamo/forget.go"
	ledgerForget      = "shared/ledger/forget.go"
)

// auditMutants are mistakes of the audit: what it does not see, what it calls wrong that is
// only under way, and what it does not tell; and of forgetting an owner, after which it must
// still add up.
func auditMutants() []mutant {
	return slices.Concat(auditBlindMutants(), auditHastyMutants(), auditToldMutants(), forgetMutants())
}

// auditBlindMutants do not see what is wrong.
func auditBlindMutants() []mutant {
	return []mutant{
		{
			name:  "an audit that takes units from nowhere as given",
			edits: []edit{{reconcileSuspect, "case excess == ledger.Counters{}, excess == sum.denied:", "case excess.Held == 0 && excess.Confirmed == 0, excess == sum.denied:"}},
			harm:  "seats that do not exist are sold, and no audit ever says so",
		},
		{
			name:  "an audit that does not miss events",
			edits: []edit{{reconcileHold, "	if !told.whole(row.Version) {\n		return false\n	}\n", ""}},
			harm:  "a consumer never hears of a cancelled hold, and nobody finds out why",
		},
		{
			name:  "an audit that forgets what another segment saw",
			edits: []edit{{reconcileTally, "			told.merge(known)\n", "			_ = known\n"}},
			harm:  "each audit finds lost events wherever two segments meet, and the cases of what is really lost drown in them",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "an audit that knows no sales of the past",
			edits: []edit{{reconcileSales, "gone := max(0, archived-t.rows.ArchivedSales[id])", "gone := min(0, archived-t.rows.ArchivedSales[id])"}},
			harm:  "who bought last year may buy the one for each customer again",
			tests: []string{"./shared/reconcile"},
		},
	}
}

// auditHastyMutants call wrong what is only under way.
func auditHastyMutants() []mutant {
	return []mutant{
		{
			name:  "an audit that is sure at the first look",
			edits: []edit{{reconcileExamine, "case looks < LooksAgreeing:", "case looks < 1:"}, {reconcileExamine, "case looks == LooksAgreeing:", "case looks == 1:"}},
			harm:  "an index that lags a second makes a finding, and a repair of what is right",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "an audit that reads stock while it is sold",
			edits: []edit{{reconcileSlot, "return before.stock[key] != after.stock[key]", "return before.stock[key] > after.stock[key]"}, {reconcileSlot, "stable = stable && before.stock[key] == version", "stable = stable && before.stock[key] <= version"}},
			harm:  "somebody is paged at every rush, and the repair takes units that have just been sold",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "an audit that does not know of edits",
			edits: []edit{{reconcileSlot, "x.refresh(ctx, true)", "x.refresh(ctx, false)"}},
			harm:  "a hold that was moved to another night while the audit read is missed there, and its units are sold twice by the repair",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "a payment is judged at once",
			edits: []edit{{reconcilePayments, "if p.CreatedAt.Before(at.Add(-PaymentSettledAfter)) {", "if p.CreatedAt.Before(at.Add(PaymentSettledAfter)) {"}},
			harm:  "buyers who are paying right now are cases for a person",
			tests: []string{"./shared/reconcile"},
		},
	}
}

// auditToldMutants do not tell, or not the truth.
func auditToldMutants() []mutant {
	return []mutant{
		{
			name:  "an audit that hides what does not stand still",
			edits: []edit{{reconcileExamine, "report.Unsettled = len(x.pending)", "report.Unsettled = 0"}},
			harm:  "the busiest slots are never audited, and nobody knows",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "an audit that is dropped at the end of its interval",
			edits: []edit{{reconcileFanout, "errors.Join(f.look(ctx, RunAt(now.Add(-f.settings.Every), f.settings.Every), false), f.look(", "errors.Join(f.look("}},
			harm:  "one lost message shortly before the hour, and the audit of that hour tells nothing, not even that it failed",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "an audit that repairs where it was told not to",
			edits: []edit{{reconcileFanout, "f.settings.Repair == topology.AuditRepairCertain && do != ActionRedrive", `f.settings.Repair != "" && do != ActionRedrive`}},
			harm:  "a stage whose people want to see each repair first is changed behind their backs",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "units kept for nobody are no mismatch",
			edits: []edit{{reconcileTell, "FindingStockImpossible, FindingTerminalStock, FindingQuotaMismatch}", "FindingStockImpossible, FindingQuotaMismatch}"}},
			harm:  "units that nobody can buy wait for ever, and nobody is paged",
			tests: []string{"./shared/reconcile"},
		},
		{
			name:  "counts are told again",
			edits: []edit{{telemetryTally, "	t.counts = nil\n", ""}},
			harm:  "every number of the API grows for as long as a process lives, and alarms ring for what was yesterday",
			tests: []string{"./shared/telemetry"},
		},
		{
			name:  "a series for each kind of thing",
			edits: []edit{{telemetryHeld, "if len(reports) == ResourceTypesMax || ", "if "}},
			harm:  "whoever may define slots runs up a bill of $0.30 a month for each word that comes to mind",
			tests: []string{"./shared/telemetry"},
		},
	}
}

// forgetMutants forget too little, or more than a name.
func forgetMutants() []mutant {
	return []mutant{
		{
			name:  "forget the holds and keep their counts",
			edits: []edit{{dynamoForget, "	if hold.Owner == f.from {\n		moved, err", "	if hold.Owner == f.to {\n		moved, err"}},
			harm:  "the counts of a forgotten person agree with no holds any more, and the next audit calls them wrong",
			tests: []string{"./shared/dynamo"},
		},
		{
			name:  "forget a part of a longer word",
			edits: []edit{{dynamoForget, "if partOfWord(before) || partOfWord(after) {", "if partOfWord(before) && partOfWord(after) {"}},
			harm:  "forgetting U-1 rewrites what is written of U-17",
			tests: []string{"./shared/dynamo"},
		},
		{
			name:  "forget whom money is owed",
			edits: []edit{{ledgerForget, "	if !r.AtRest() {\n", "	if !r.AtRest() && r.Version == 0 {\n"}},
			harm:  "a buyer's money is owed, and nobody can tell to whom",
			tests: []string{"./shared/ledger"},
		},
	}
}
