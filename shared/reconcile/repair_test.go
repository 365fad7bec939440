package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/reconcile"
)

const (
	done    = reconcile.RepairDone
	queued  = reconcile.RepairQueued
	known   = reconcile.RepairKnown
	skipped = reconcile.RepairSkipped
)

// moneyFinding is one that only a person can deal with.
func moneyFinding(n int) reconcile.Finding {
	id := ledger.ReservationID(fmt.Sprintf("rsv_%d", n))
	return reconcile.Finding{
		Kind: reconcile.FindingMoneyMismatch, Promise: "P8", Subject: string(id), Reservation: id,
		Evidence: "500 were taken, 300 given back, and 100 kept", Cause: "a refund was lost",
	}
}

func ghostFinding(id ledger.HoldID) reconcile.Finding {
	return reconcile.Finding{Kind: reconcile.FindingGhostHold, Promise: "P9", Subject: string(id), Hold: id, Evidence: "it is HELD, and was due"}
}

func (b *bazaar) holeFinding(id ledger.HoldID) reconcile.Finding {
	b.Helper()
	hold, err := b.store.Hold(b.Context(), id)
	b.check(err)
	return reconcile.Finding{
		Kind: reconcile.FindingDueIndexHole, Promise: "P9", Subject: string(id), Hold: id, Evidence: "it is HELD, and not listed",
		Proof: reconcile.Proof{At: b.now(), Version: hold.Version},
	}
}

// damaged is a bazaar in which one of each is wrong that can be put right, and a thing that
// can't.
func damaged(t *testing.T) (*bazaar, []reconcile.Finding) {
	b := newBazaar(t, 1)
	b.slot("S-1", 20, 2, 10*time.Minute)
	b.slot("S-2", 10, 1, time.Hour)
	ghost := b.mustHold("U-1", "S-1", 2)
	b.mustHold("U-2", "S-2", 3)
	b.end(b.mustHold("U-2", "S-2", 1), true)
	lost := b.mustHold("U-3", "S-2", 1)
	paid := b.pay(b.mustHold("U-4", "S-2", 1), ledger.ReservationPaymentPending)
	if !b.damageStock("S-1", 0, ledger.Counters{Available: 2, Held: -2}) && !b.damageStock("S-1", 1, ledger.Counters{Available: 2, Held: -2}) {
		t.Fatal("the stock could not be damaged")
	}
	b.damageStock("S-2", 0, ledger.Counters{Confirmed: 1, Capacity: 1})
	b.damageQuota("U-2", ledger.QuotaHolds, 4)
	b.clock.Advance(20 * time.Minute)
	findings := append(b.find(), ghostFinding(ghost), b.holeFinding(lost), reconcile.Finding{
		Kind: reconcile.FindingTimeToLive, Subject: string(paid.ID), Reservation: paid.ID, Proof: reconcile.Proof{At: b.now(), Version: paid.Version},
	}, moneyFinding(1))
	if len(findings) != 7 {
		t.Fatalf("found are %+v", findings)
	}
	return b, findings
}

// Case M1: without apply nothing is written, by whatever way, and everything is said that
// would be.
func TestCaseM1_DryRunWritesNothing(t *testing.T) {
	b, findings := damaged(t)
	dry := &reconcile.Repairer{
		Store:  guarded{b.store, func(ledger.Change) error { t.Error("a dry run writes"); return errDown }},
		Expire: forbidden{t}, Redrive: forbidden{t}, Clock: b.clock, Random: b.random, Actor: ledger.ActorAudit, RequestID: "request_dry",
	}
	findings = append(findings, reconcile.Finding{Kind: reconcile.FindingEventUnpublished, Subject: "event_1"})
	before := b.find()
	report, err := dry.Run(t.Context(), findings, false)
	if err != nil || report.Applied || report.Written() != 0 || report.Count(reconcile.RepairPlanned) != len(findings) {
		t.Errorf("%v: %+v", err, report)
	}
	for _, result := range report.Results {
		if result.Note == "" || result.Action.Why == "" {
			t.Errorf("not said what would be done: %+v", result)
		}
	}
	if after := b.find(); len(after) != len(before) {
		t.Errorf("found before %d, after %d", len(before), len(after))
	}
}

// Case M1: apply repairs what is certain and asks a person about the rest; the books balance
// from then on, and a second run has nothing to do.
func TestCaseM1_ApplyRepairsAndTheSecondRunIsEmpty(t *testing.T) {
	b, findings := damaged(t)
	report := b.repaired(findings)
	outcomes(t, report, done, done, done, done, done, done, queued)
	b.balanced()
	if left := b.find(); len(left) != 0 {
		t.Errorf("still found: %+v", left)
	}
	waiting, _, err := b.store.InReview(t.Context(), ledger.Page{Limit: 10})
	if err != nil || len(waiting) != 1 || waiting[0].Review != ledger.ReviewIDOf(ledger.ReviewFinding, "money_mismatch/rsv_1") {
		t.Errorf("waiting are %+v, %v", waiting, err)
	}
	b.clock.Advance(time.Hour)
	writes := 0
	second, err := b.repairer(guarded{b.store, func(ledger.Change) error { writes++; return nil }}).Run(t.Context(), findings, true)
	if err != nil || writes != 0 {
		t.Errorf("the second run writes %d times, %v", writes, err)
	}
	outcomes(t, second, skipped, skipped, skipped, skipped, skipped, skipped, known)
	b.balanced()
}

// Each repair has an event that says who, by what run and why.
func TestRepairsTellWhoAndWhy(t *testing.T) {
	b, findings := damaged(t)
	repairer := b.repairer(b.store)
	repairer.Actor = "operator:lee"
	if _, err := repairer.Run(t.Context(), findings, true); err != nil {
		t.Fatal(err)
	}
	var events []ledger.Event
	for _, f := range findings {
		var list []ledger.Event
		var err error
		switch reconcile.Plan(f).Do {
		case reconcile.ActionRepairStock:
			list, err = b.store.SlotEvents(t.Context(), f.Slot)
		case reconcile.ActionRepairHold:
			list, err = b.store.HoldEvents(t.Context(), f.Hold)
		case reconcile.ActionRepairReservation:
			list, err = b.store.ReservationEvents(t.Context(), f.Reservation)
		default:
			if f.Kind == reconcile.FindingGhostHold {
				continue // told by the command's own event
			}
			list, err = b.store.ReviewEvents(t.Context(), reconcile.CaseOf(f, start).ID)
		}
		if err != nil || len(list) == 0 {
			t.Fatalf("%s: no events, %v", f.Kind, err)
		}
		events = append(events, list[len(list)-1])
	}
	for i, e := range events {
		want, command := ledger.EventAuditRepaired, ledger.CommandRepair
		if i == len(events)-1 {
			want, command = ledger.EventReviewOpened, ledger.CommandOpenReview
		}
		if e.Type != want || e.Origin.Command != command || e.Origin.Actor != "operator:lee" || e.Origin.RequestID != "request_repair" || e.Origin.Why == "" {
			t.Errorf("%s is told by %s with %+v", findings[i].Kind, e.Type, e.Origin)
		}
	}
}

// Units that are sold between the audit and the repair are kept: what is taken off is the
// difference, and not a number of yesterday.
func TestRepairKeepsWhatWasSoldSince(t *testing.T) {
	b := newBazaar(t, 2)
	b.slot("S-1", 10, 1, time.Hour)
	first := b.mustHold("U-1", "S-1", 2)
	b.damageStock("S-1", 0, ledger.Counters{Available: -3, Held: 3})
	b.damageQuota("U-1", ledger.SlotQuota("S-1"), 5)
	findings := b.find()
	b.end(first, true)
	b.mustHold("U-1", "S-1", 4)
	outcomes(t, b.repaired(findings), done, done)
	if _, stock := b.storedSlot("S-1"); stock[0].Counters != (ledger.Counters{Available: 4, Held: 4, Confirmed: 2, Capacity: 10}) {
		t.Errorf("the stock is %+v", stock[0].Counters)
	}
	b.balanced()
}

// A step between reading and writing makes the write void, and the repair is decided anew.
func TestRepairIsDecidedAnewAfterAStepInBetween(t *testing.T) {
	b := newBazaar(t, 3)
	b.slot("S-1", 100, 1, time.Hour)
	b.mustHold("U-1", "S-1", 2)
	b.damageStock("S-1", 0, ledger.Counters{Available: 1, Held: -1})
	findings := b.find()
	steps := 0
	store := guarded{b.store, func(ledger.Change) error {
		if steps++; steps <= 3 {
			b.mustHold("U-2", "S-1", 1)
		}
		return nil
	}}
	report, err := b.repairer(store).Run(t.Context(), findings, true)
	if err != nil || steps != 4 {
		t.Errorf("%d tries, %v", steps, err)
	}
	outcomes(t, report, done)
	b.balanced()

	b.damageStock("S-1", 0, ledger.Counters{Available: 1, Held: -1})
	store = guarded{b.store, func(ledger.Change) error { b.mustHold("U-2", "S-1", 1); return nil }}
	report, err = b.repairer(store).Run(t.Context(), b.find(), true)
	if err != nil {
		t.Error(err)
	}
	outcomes(t, report, skipped)
	if !strings.Contains(report.Results[0].Note, "a step came in between") {
		t.Errorf("it is said that %s", report.Results[0].Note)
	}
	outcomes(t, b.repaired(b.find()), done)
	b.balanced()
}

// Case M1: a correction was doubled. Two runs that found the same thing correct it once,
// also when one writes between the other's reading and writing.
func TestCaseM1_TwoRunsCorrectOnce(t *testing.T) {
	for name, meet := range map[string]func(b *bazaar, findings []reconcile.Finding) error{
		"one after the other": func(b *bazaar, findings []reconcile.Finding) error {
			b.repaired(findings)
			_, err := b.repairer(b.store).Run(b.Context(), findings, true)
			return err
		},
		"one in the other's middle": func(b *bazaar, findings []reconcile.Finding) error {
			met := false
			_, err := b.repairer(guarded{b.store, func(ledger.Change) error {
				if !met {
					met = true
					b.repaired(findings)
				}
				return nil
			}}).Run(b.Context(), findings, true)
			return err
		},
		"one in the other's middle, and a sale after it": func(b *bazaar, findings []reconcile.Finding) error {
			met := false
			_, err := b.repairer(guarded{b.store, func(ledger.Change) error {
				if !met {
					met = true
					b.repaired(findings)
					b.mustHold("U-1", "S-1", 1)
				}
				return nil
			}}).Run(b.Context(), findings, true)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBazaar(t, 4)
			b.slot("S-1", 10, 1, time.Hour)
			b.mustHold("U-1", "S-1", 2)
			b.damageStock("S-1", 0, ledger.Counters{Available: 1, Held: -1})
			b.damageQuota("U-1", ledger.QuotaHolds, 2)
			if err := meet(b, b.find()); err != nil {
				t.Error(err)
			}
			b.balanced()
		})
	}
}

// A repair that came while the count was looked at, or by a clock that is behind, is known.
// Only a fault that is found later is another one.
func TestCaseM1_ACountIsNotCorrectedTwiceInOneLook(t *testing.T) {
	b := newBazaar(t, 16)
	b.slot("S-1", 10, 1, time.Hour)
	b.mustHold("U-1", "S-1", 2)
	b.damageQuota("U-1", ledger.QuotaHolds, 2)
	found := b.find()
	outcomes(t, b.repaired(found), done)
	found[0].Proof.At = b.now().Add(reconcile.RepairApart)
	outcomes(t, b.repaired(found), skipped)
	b.balanced()
	b.clock.Advance(reconcile.RepairApart + time.Millisecond)
	b.damageQuota("U-1", ledger.QuotaHolds, 1)
	outcomes(t, b.repaired(b.find()), done)
	b.balanced()
}

// An edit of the slot between audit and repair ends the proof.
func TestRepairOfAnEditedSlotWaitsForTheNextAudit(t *testing.T) {
	b := newBazaar(t, 5)
	b.slot("S-1", 10, 1, time.Hour)
	b.damageStock("S-1", 0, ledger.Counters{Available: 1, Held: -1})
	b.damageStock("S-1", 0, ledger.Counters{Available: -1, Held: 1})
	b.damageStock("S-1", 0, ledger.Counters{Available: -1, Held: 1})
	findings := b.find()
	b.slot("S-1", 30, 3, time.Hour)
	b.slots = b.slots[:1]
	outcomes(t, b.repaired(findings), skipped)
	outcomes(t, b.repaired(b.find()), done)
	b.balanced()
}

// What would leave impossible numbers is not written, and a person is asked, once.
func TestRepairThatLeavesImpossibleNumbersIsAsked(t *testing.T) {
	b := newBazaar(t, 6)
	b.slot("S-1", 10, 2, time.Hour)
	slot, _ := b.storedSlot("S-1")
	wrong := []reconcile.Finding{
		stockFinding(slot, 0, ledger.Counters{Available: 9, Capacity: 9}, start),
		stockFinding(slot, 7, ledger.Counters{Available: 1, Capacity: 1}, start),
		{Kind: reconcile.FindingQuotaMismatch, Subject: "holds of U-9", Owner: "U-9", Count: ledger.QuotaHolds, Proof: reconcile.Proof{At: start, Certain: true, Was: 3, Want: 1}},
	}
	for _, finding := range wrong {
		outcomes(t, b.repaired([]reconcile.Finding{finding}), queued)
		b.clock.Advance(time.Minute)
		outcomes(t, b.repaired([]reconcile.Finding{finding}), known)
	}
	b.balanced()
}

// Several findings about one slot are one write; those that contradict each other are none.
func TestFindingsOfOneSlotAreRepairedTogether(t *testing.T) {
	b := newBazaar(t, 7)
	b.slot("S-1", 30, 3, time.Hour)
	b.damageStock("S-1", 0, ledger.Counters{Available: -1, Held: 1})
	b.damageStock("S-1", 2, ledger.Counters{Available: -2, Confirmed: 2})
	findings := b.find()
	same := findings[0]
	same.Kind = reconcile.FindingTerminalStock
	terms := findings[1]
	terms.Kind, terms.Proof.Excess = reconcile.FindingStockTerms, ledger.Counters{}
	other := findings[0]
	other.Proof.Excess = ledger.Counters{Available: -2, Held: 2}
	writes := 0
	report, err := b.repairer(guarded{b.store, func(ledger.Change) error { writes++; return nil }}).
		Run(t.Context(), append(findings, same, terms, other), true)
	if err != nil || writes != 1 {
		t.Errorf("%d writes, %v", writes, err)
	}
	outcomes(t, report, done, done, done, done, skipped)
	b.balanced()
}

// What is wrong about one stock item in several ways is right by all of it together: terms
// that are wrong are put right with numbers that are impossible without the other finding.
func TestFindingsOfOneItemAreJudgedTogether(t *testing.T) {
	b := newBazaar(t, 17)
	b.slot("S-1", 10, 1, time.Hour)
	slot, _ := b.storedSlot("S-1")
	beyond := stockFinding(slot, 0, ledger.Counters{Available: 14, Capacity: 14}, start)
	b.damageStock("S-1", 0, ledger.Counters{Available: 2, Confirmed: 1, Capacity: 3})
	slot, _ = b.storedSlot("S-1")
	numbers := stockFinding(slot, 0, ledger.Counters{Available: 2, Confirmed: 1, Capacity: 3}, start)
	terms := numbers
	terms.Kind, terms.Proof.Excess = reconcile.FindingStockTerms, ledger.Counters{}
	beyond.Proof.Version = slot.Version
	outcomes(t, b.repaired([]reconcile.Finding{terms, beyond}), queued, queued)
	outcomes(t, b.repaired([]reconcile.Finding{terms, numbers}), done, done)
	b.balanced()
}

// A time to live can't be read here, so the item is written also where its numbers are right;
// nothing else is.
func TestStockThatDiesIsWrittenAnew(t *testing.T) {
	b := newBazaar(t, 8)
	b.slot("S-1", 10, 1, time.Hour)
	slot, _ := b.storedSlot("S-1")
	finding := reconcile.Finding{Kind: reconcile.FindingTimeToLive, Slot: "S-1", Proof: reconcile.Proof{At: start, Version: slot.Version}}
	right := stockFinding(slot, 0, ledger.Counters{}, start)
	outcomes(t, b.repaired([]reconcile.Finding{right}), skipped)
	outcomes(t, b.repaired([]reconcile.Finding{finding}), done)
	outcomes(t, b.repaired([]reconcile.Finding{finding}), skipped)
	b.balanced()
}

// Case M3, M7: what was found before the thing went on is not done to it as it is now.
func TestFindingsThatAreOverAreLeft(t *testing.T) {
	b := newBazaar(t, 9)
	b.slot("S-1", 100, 1, 10*time.Minute)
	extended, sold, hole := b.mustHold("U-1", "S-1", 1), b.mustHold("U-1", "S-1", 1), b.mustHold("U-1", "S-1", 1)
	paying := b.mustHold("U-1", "S-1", 1)
	findings := []reconcile.Finding{ghostFinding(extended), ghostFinding(sold), b.holeFinding(hole), ghostFinding(paying), ghostFinding("hold_gone")}
	gone := findings[2]
	gone.Hold, gone.Subject = "hold_gone", "hold_gone"
	findings = append(findings, gone, reconcile.Finding{
		Kind: reconcile.FindingTimeToLive, Subject: "rsv_gone", Reservation: "rsv_gone", Proof: reconcile.Proof{Version: 1},
	}, reconcile.Finding{Kind: "colour_mismatch", Subject: "x"})
	b.clock.Advance(9 * time.Minute)
	_, err := b.commands.ExtendHold(t.Context(), b.request("U-1"), extended, 10*time.Minute, renderNothing)
	b.check(err)
	b.end(sold, true)
	b.end(hole, false)
	b.pay(paying, ledger.ReservationPaymentPending)
	b.clock.Advance(2 * time.Minute)
	writes := 0
	report, err := b.repairer(guarded{b.store, func(ledger.Change) error { writes++; return nil }}).Run(t.Context(), findings, true)
	if err != nil || writes != 0 {
		t.Errorf("%d writes, %v", writes, err)
	}
	outcomes(t, report, skipped, skipped, skipped, skipped, skipped, skipped, skipped, skipped)
	for _, result := range report.Results {
		if result.Note == "" {
			t.Errorf("not said why %s was left", result.Action.Finding.Subject)
		}
	}
	b.balanced()
}

// What lies in the archive has a time to live with right.
func TestArchivedItemsAreLeft(t *testing.T) {
	b := newBazaar(t, 10)
	b.slot("S-1", 10, 1, time.Hour)
	id := b.mustHold("U-1", "S-1", 1)
	b.end(id, false)
	hold, err := b.store.Hold(t.Context(), id)
	b.check(err)
	events, err := b.store.HoldEvents(t.Context(), id)
	b.check(err)
	b.clock.Advance(100 * 24 * time.Hour)
	mark, err := ledger.ArchiveHold(hold, nil, events, "batch_1", b.now().Add(time.Hour), b.now())
	b.check(err)
	b.check(b.store.Commit(t.Context(), mark))
	finding := b.holeFinding(id)
	finding.Kind = reconcile.FindingTimeToLive
	outcomes(t, b.repaired([]reconcile.Finding{finding}), skipped)
	b.balanced()
}

// redriveOf is a redrive that comes to that.
type redriveOf struct {
	report outbox.RedriveReport
	err    error
	runs   int
	cut    bool // it was given less time than it may take
}

func (r *redriveOf) Run(ctx context.Context, _, longest time.Duration) (outbox.RedriveReport, error) {
	r.runs++
	deadline, bounded := ctx.Deadline()
	r.cut = bounded && time.Until(deadline) < longest
	return r.report, r.err
}

// All unpublished events are one redrive, and the report says what came of it.
func TestUnpublishedEventsAreRedrivenOnce(t *testing.T) {
	b := newBazaar(t, 11)
	findings := []reconcile.Finding{{Kind: reconcile.FindingEventUnpublished, Subject: "event_1"}, {Kind: reconcile.FindingEventUnpublished, Subject: "event_2"}}
	for name, test := range map[string]struct {
		redrive redriveOf
		want    reconcile.RepairOutcome
	}{
		"published":          {redriveOf{report: outbox.RedriveReport{Republished: 2}}, done},
		"set aside":          {redriveOf{report: outbox.RedriveReport{Quarantined: 2}}, done},
		"published since":    {redriveOf{}, skipped},
		"half of it":         {redriveOf{report: outbox.RedriveReport{Republished: 1, Failed: 1}}, reconcile.RepairFailed},
		"no time":            {redriveOf{report: outbox.RedriveReport{Republished: 1, Truncated: true}}, reconcile.RepairFailed},
		"a bus that is down": {redriveOf{report: outbox.RedriveReport{Futile: true}}, reconcile.RepairFailed},
		"unreadable":         {redriveOf{err: errDown}, reconcile.RepairFailed},
	} {
		repairer := b.repairer(b.store)
		repairer.Redrive = &test.redrive
		report, err := repairer.Run(t.Context(), findings, true)
		if (err != nil) != (test.want == reconcile.RepairFailed) || test.redrive.runs != 1 || test.redrive.cut {
			t.Errorf("%s: %d runs, cut %t, %v", name, test.redrive.runs, test.redrive.cut, err)
		}
		outcomes(t, report, test.want, test.want)
	}
	without := b.repairer(b.store)
	without.Redrive = nil
	for _, apply := range []bool{false, true} {
		report, err := without.Run(t.Context(), findings, apply)
		if err != nil {
			t.Error(err)
		}
		outcomes(t, report, skipped, skipped)
	}
}

// A failure is told and keeps nothing else from being done; the next run does what is left.
func TestAFailureKeepsNothingElseBack(t *testing.T) {
	b, findings := damaged(t)
	failed := map[string]bool{}
	store := guarded{b.store, func(c ledger.Change) error {
		subject := c.Events[0].Subject()
		if !failed[subject] {
			failed[subject] = true
			return &ledger.Error{Code: ledger.CodeUnavailable, Message: "it is down"}
		}
		return nil
	}}
	repairer := b.repairer(store)
	first, err := repairer.Run(t.Context(), findings, true)
	if ledger.CodeOf(err) == "" || first.Count(reconcile.RepairFailed) != len(findings) {
		t.Errorf("%v: %+v", err, first.Results) // the hold can't give back to stock that is wrong still
	}
	second, err := repairer.Run(t.Context(), findings, true)
	if err != nil || second.Written() != len(findings) {
		t.Errorf("%v: %+v", err, second.Results)
	}
	b.balanced()
}

// One run writes so much and no more, and says what it has left.
func TestARunIsBounded(t *testing.T) {
	b := newBazaar(t, 12)
	var findings []reconcile.Finding
	for n := range reconcile.RepairsMax + 5 {
		findings = append(findings, moneyFinding(n))
	}
	for _, apply := range []bool{false, true} {
		report, err := b.repairer(b.store).Run(t.Context(), findings, apply)
		if err != nil || report.Count(reconcile.RepairLeft) != 5 || report.Results[reconcile.RepairsMax].Note == "" {
			t.Errorf("apply %t: %d are left, %v", apply, report.Count(reconcile.RepairLeft), err)
		}
	}
	second := b.repaired(findings)
	if second.Count(queued) != 5 || second.Count(known) != reconcile.RepairsMax {
		t.Errorf("the second run: %d opened, %d known", second.Count(queued), second.Count(known))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	late, err := b.repairer(b.store).Run(ctx, findings, true)
	if err != nil || late.Count(reconcile.RepairLeft) != len(findings) {
		t.Errorf("without time: %d are left, %v", late.Count(reconcile.RepairLeft), err)
	}
}

// A case that was opened in doubt is closed by the repair, unless a person has taken it.
func TestRepairClosesItsCase(t *testing.T) {
	for claimed, want := range map[bool]ledger.ReviewStatus{false: ledger.ReviewDecided, true: ledger.ReviewClaimed} {
		b := newBazaar(t, 13)
		b.slot("S-1", 10, 1, time.Hour)
		b.damageStock("S-1", 0, ledger.Counters{Available: -1, Held: 1})
		certain := b.find()
		doubtful := certain[0]
		doubtful.Proof.Certain = false
		outcomes(t, b.repaired([]reconcile.Finding{doubtful}), queued)
		id := reconcile.CaseOf(doubtful, start).ID
		read := func() ledger.Review {
			stored, err := b.store.Reviews(t.Context(), []ledger.ReviewID{id})
			if err != nil || len(stored) != 1 {
				t.Fatalf("%v, %v", stored, err)
			}
			return stored[0]
		}
		if claimed {
			change, err := ledger.ClaimReview(read(), ledger.Origin{Actor: "operator:lee", EventID: "event_claim"}, b.now())
			b.check(err)
			b.check(b.store.Commit(t.Context(), change))
		}
		outcomes(t, b.repaired(certain), done)
		if got := read(); got.Status != want || (want == ledger.ReviewDecided && got.Decision != ledger.DecisionRepaired) {
			t.Errorf("claimed %t: the case is %+v", claimed, got)
		}
		b.balanced()
	}
}

// A case in doubt stays as it is while its slot is sold and its owner buys: what is wrong
// about them is the same, with other numbers.
func TestCasesOfBusyThingsAreWrittenOnce(t *testing.T) {
	b := newBazaar(t, 15)
	b.slot("S-1", 20, 1, time.Hour)
	b.damageStock("S-1", 0, ledger.Counters{Available: -1, Held: 1})
	b.damageQuota("U-1", ledger.QuotaHolds, 2)
	doubtful := func() []reconcile.Finding {
		findings := b.find()
		for i := range findings {
			findings[i].Proof.Certain = false
		}
		return findings
	}
	first := doubtful()
	outcomes(t, b.repaired(first), queued, queued)
	b.mustHold("U-1", "S-1", 2)
	again := doubtful()
	if first[0].Evidence != again[0].Evidence || first[1].Evidence == again[1].Evidence {
		t.Errorf("the numbers did not move as they should: %+v, %+v", first, again)
	}
	outcomes(t, b.repaired(again), known, known)
	b.damageQuota("U-1", ledger.QuotaHolds, 1)
	outcomes(t, b.repaired(doubtful()), known, queued)
}

// Two things that are wrong about one hold are two cases.
func TestFindingsOfTwoKindsAreTwoCases(t *testing.T) {
	b := newBazaar(t, 14)
	a := reconcile.Finding{Kind: reconcile.FindingLinkBroken, Subject: "hold_1", Hold: "hold_1", Evidence: "a"}
	c := reconcile.Finding{Kind: reconcile.FindingEventMissing, Subject: "hold_1", Hold: "hold_1", Evidence: "b"}
	outcomes(t, b.repaired([]reconcile.Finding{a, c}), queued, queued)
	outcomes(t, b.repaired([]reconcile.Finding{c, a}), known, known)
}

// A hold that no try can end, because the stock does not have its units, is a case for a person,
// written once, and no failure of each run.
func TestAHoldThatCanNotBeEndedIsAsked(t *testing.T) {
	b := newBazaar(t, 31)
	b.slot("A", 10, 1, time.Minute)
	id := b.mustHold("owner-1", "A", 2)
	if !b.damageStock("A", 0, ledger.Counters{Available: 2, Held: -2}) {
		t.Fatal("nothing was damaged")
	}
	b.clock.Advance(time.Hour)
	ghost := reconcile.Finding{Kind: reconcile.FindingGhostHold, Promise: "P9", Subject: "hold " + string(id), Hold: id, Evidence: "it is HELD"}
	for _, want := range []reconcile.RepairOutcome{reconcile.RepairQueued, reconcile.RepairKnown} {
		report, err := b.repairer(b.store).Run(t.Context(), []reconcile.Finding{ghost}, true)
		if err != nil || report.Count(want) != 1 {
			t.Errorf("%v: %+v, want %s", err, report.Results, want)
		}
	}
}
