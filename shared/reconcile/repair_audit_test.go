package reconcile_test

import (
	"context"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/reconcile"
)

// whole is a store in memory as a source of all of its records.
type whole struct{ *memory.Store }

func (w whole) ScanRecords(ctx context.Context, visit func(ledger.Records) error) error {
	page, err := w.ScanSegment(ctx, 0, 1, "")
	if err != nil {
		return err
	}
	return visit(page.Records)
}

// audit is what an audit finds in the bazaar while nothing happens.
func (b *bazaar) audit() []reconcile.Finding {
	b.Helper()
	report, err := reconcile.AuditAtRest(b.Context(), whole{b.store}, b.now())
	b.check(err)
	return report.Findings
}

// Case M1, from the audit to the books: what the audit finds by itself has the proof that its
// repair needs, and the audit after the repair finds nothing but what a person was asked.
func TestCaseM1_TheAuditsFindingsAreRepaired(t *testing.T) {
	b := newBazaar(t, 31)
	b.slot("S-1", 20, 2, 10*time.Minute)
	b.slot("S-2", 10, 1, 3*time.Hour)
	b.mustHold("U-1", "S-2", 3)
	b.end(b.mustHold("U-2", "S-2", 1), true)
	b.captured(b.mustHold("U-3", "S-2", 1))
	if found := b.audit(); len(found) != 0 {
		t.Fatalf("found in a sound ledger: %+v", found)
	}
	b.mustHold("U-1", "S-1", 2)
	b.damageStock("S-1", 0, ledger.Counters{Available: -2, Held: 2})
	b.damageStock("S-1", 1, ledger.Counters{Available: 1, Capacity: 1})
	b.damageStock("S-2", 0, ledger.Counters{Available: 1, Confirmed: -1})
	b.damageQuota("U-2", ledger.SlotQuota("S-2"), 2)
	b.damageQuota("U-9", ledger.QuotaHolds, 1)
	b.clock.Advance(2 * time.Hour)
	found := b.audit()
	kinds := map[reconcile.FindingKind]int{}
	for _, f := range found {
		kinds[f.Kind]++
	}
	if kinds[reconcile.FindingGhostHold] != 1 || kinds[reconcile.FindingQuotaMismatch] != 2 || len(found) < 6 {
		t.Fatalf("found are %+v", found)
	}
	report := b.repaired(found)
	for i, result := range report.Results {
		if certain := reconcile.Plan(found[i]).Do != reconcile.ActionReview; certain != (result.Outcome == done) || !certain && result.Outcome != queued {
			t.Errorf("%s: %s, because %s", found[i], result.Outcome, result.Note)
		}
	}
	b.balanced()
	left := b.audit()
	second := b.repaired(left)
	if second.Written() != 0 {
		t.Errorf("the second run writes: %+v", second.Results)
	}
	for _, f := range left {
		if reconcile.Plan(f).Do != reconcile.ActionReview {
			t.Errorf("still found: %s", f)
		}
	}
}
