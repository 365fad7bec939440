package reconcile_test

import (
	"context"
	"fmt"
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

// Case M1: the correction run reported healthy orders and doubled a correction. Among 1,000
// reservations, many of them in progress, exactly the planted faults are named and repaired,
// while others go on buying between all steps of the run; the third run has nothing to do.
func TestCaseM1_FiveFaultsAmongThousandReservations(t *testing.T) {
	const reservations, slots = 1000, 20
	b := newBazaar(t, 32)
	for n := range slots {
		b.slot(ledger.SlotID(fmt.Sprintf("S-%02d", n)), 500, 1+n%3, 3*time.Hour)
	}
	statuses := []ledger.ReservationStatus{ledger.ReservationPaymentPending, ledger.ReservationReview, ledger.ReservationCaptured}
	for n := range reservations {
		owner := ledger.OwnerID(fmt.Sprintf("U-%03d", n%400))
		id := b.mustHold(owner, b.slots[n%slots], ledger.Units(1+n%3))
		if status := statuses[n%len(statuses)]; status == ledger.ReservationCaptured {
			b.captured(id)
		} else {
			b.pay(id, status)
		}
	}
	b.slot("S-short", 10, 1, 10*time.Minute)
	ghost := b.mustHold("U-ghost", "S-short", 1)
	b.clock.Advance(time.Hour)

	served := 0
	serve := func() {
		served++
		id := b.mustHold(ledger.OwnerID(fmt.Sprintf("V-%d", served)), b.slots[served%slots], 1)
		if served%2 == 0 {
			b.end(id, served%4 == 0)
		}
	}
	sound := map[string]bool{}
	for _, f := range b.audit() {
		sound[string(f.Kind)+f.Subject] = true // what an hour's wait makes of payments is for people, and no fault of this test
	}
	faults := func() (found []reconcile.Finding) {
		for _, f := range b.audit() {
			if !sound[string(f.Kind)+f.Subject] || f.Hold == ghost {
				found = append(found, f)
			}
		}
		return found
	}
	b.damageStock("S-03", 0, ledger.Counters{Available: -2, Held: 2})
	b.damageStock("S-04", 1, ledger.Counters{Available: 1, Capacity: 1})
	b.damageStock("S-05", 2, ledger.Counters{Available: 1, Held: -1})
	b.damageQuota("U-007", ledger.QuotaHolds, 3)

	for range 50 {
		serve()
	}
	named := faults()
	if len(named) != 5 {
		t.Fatalf("named are %d: %v", len(named), named)
	}
	dry, err := b.repairer(guarded{b.store, func(ledger.Change) error { t.Error("a dry run writes"); return errDown }}).Run(t.Context(), named, false)
	if err != nil || dry.Count(reconcile.RepairPlanned) != 5 {
		t.Errorf("%v: %+v", err, dry)
	}
	for range 50 {
		serve()
	}
	busy := b.repairer(guarded{b.store, func(ledger.Change) error { serve(); return nil }})
	applied, err := busy.Run(t.Context(), named, true)
	if err != nil {
		t.Error(err)
	}
	outcomes(t, applied, done, done, done, done, done)
	b.balanced()
	for range 50 {
		serve()
	}
	if left := faults(); len(left) != 0 {
		t.Errorf("named after the repair: %v", left)
	}
	again, err := b.repairer(guarded{b.store, func(ledger.Change) error { t.Error("the third run writes"); return errDown }}).Run(t.Context(), named, true)
	if err != nil || again.Written() != 0 {
		t.Errorf("%v: %+v", err, again)
	}
	b.balanced()
}
