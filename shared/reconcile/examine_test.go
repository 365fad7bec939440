package reconcile_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/reconcile"
)

const bazaarSegments = 8

// busy is a bazaar in which somebody trades between every two reads of an audit.
type busy struct {
	*bazaar
	*memory.Store
	step, reads, writes int
	quiet               bool
	open                []ledger.HoldID
	every               int // reads between two steps
}

func newBusy(t *testing.T, seed uint64, every int) *busy {
	t.Helper()
	b := newBazaar(t, seed)
	for i := range 6 {
		b.slot(ledger.SlotID(fmt.Sprintf("S-%d", i)), 1000, 1+i%3, time.Hour)
	}
	b.slot("quiet", 100, 2, time.Hour)
	w := &busy{bazaar: b, Store: b.bazaarStore(), every: every, quiet: true}
	for range 120 {
		w.trade()
	}
	b.mustHold("owner-quiet", "quiet", 3)
	w.quiet = false
	return w
}

func (b *bazaar) bazaarStore() *memory.Store { return b.store }

// trade is one step of somebody: a hold is made, sold, given up, or its payment begins.
func (w *busy) trade() {
	w.step++
	owner := ledger.OwnerID(fmt.Sprintf("owner-%d", w.step%5))
	switch slot := ledger.SlotID(fmt.Sprintf("S-%d", w.step%6)); {
	case w.step%3 != 0 || len(w.open) == 0:
		if id, made := w.hold(owner, slot, ledger.Units(1+w.step%3)); made {
			w.open = append(w.open, id)
		}
	default:
		id := w.open[0]
		w.open = w.open[1:]
		if w.step%4 == 0 {
			w.pay(id, ledger.ReservationPaymentPending)
		} else {
			w.end(id, w.step%2 == 0)
		}
	}
}

// read is called with each read of the audit.
func (w *busy) read() {
	w.reads++
	if !w.quiet && w.reads%w.every == 0 {
		w.writes++
		w.trade()
	}
}

func (w *busy) ScanSegment(ctx context.Context, segment, total int, after ledger.Cursor) (ledger.RecordsPage, error) {
	w.read()
	return w.Store.ScanSegment(ctx, segment, total, after)
}

func (w *busy) Records(ctx context.Context, of ledger.RecordsOf) (ledger.Records, error) {
	w.read()
	return w.Store.Records(ctx, of)
}

func (w *busy) Holds(ctx context.Context, ids []ledger.HoldID) ([]ledger.Hold, error) {
	w.read()
	return w.Store.Holds(ctx, ids)
}

func (w *busy) Quota(ctx context.Context, owner ledger.OwnerID) (ledger.Quota, error) {
	w.read()
	return w.Store.Quota(ctx, owner)
}

// auditNow reads one segment after the other, sends each tally through its encoding, and merges
// them, as workers that are far apart do.
func (w *busy) auditNow(order []int) reconcile.Report {
	w.Helper()
	at := w.clock.Now()
	merged := reconcile.NewTally(at)
	for _, segment := range order {
		tally, err := reconcile.TallySegment(w.Context(), w, segment, len(order), at)
		w.check(err)
		var wire bytes.Buffer
		w.check(tally.Encode(&wire))
		tally, err = reconcile.DecodeTally(&wire)
		w.check(err)
		merged.Merge(tally)
	}
	examiner := &reconcile.Examiner{Store: w, Clock: w.clock, Wait: func(_ context.Context, pause time.Duration) error {
		w.clock.Advance(pause)
		return nil
	}}
	report, err := examiner.Examine(w.Context(), merged)
	w.check(err)
	return report
}

func upTo(n int) []int {
	var out []int
	for i := range n {
		out = append(out, i)
	}
	return out
}

// Whatever is under way between two reads of an audit is never reported, however often
// somebody trades; and what is wrong about something that is in peace always is.
func TestWorkUnderWayIsNeverReported(t *testing.T) {
	steps, suspects := 0, 0
	for seed := range uint64(3) {
		for _, every := range []int{1, 2, 5} {
			w := newBusy(t, seed, every)
			report := w.auditNow(upTo(bazaarSegments))
			if len(report.Findings) > 0 {
				t.Errorf("seed %d, a step every %d reads: %v", seed, every, report.Findings)
			}
			steps, suspects = steps+w.writes, suspects+report.Suspects
			if !w.damageStock("quiet", 1, ledger.Counters{Available: -2, Held: 2}) || !w.damageQuota("owner-quiet", "holds", 1) {
				t.Fatal("nothing was damaged")
			}
			report = w.auditNow(upTo(bazaarSegments))
			var kinds []reconcile.FindingKind
			for _, f := range report.Findings {
				kinds = append(kinds, f.Kind)
				if !f.Proof.Certain {
					t.Errorf("it is not certain: %v", f)
				}
			}
			if want := []reconcile.FindingKind{reconcile.FindingQuotaMismatch, reconcile.FindingTerminalStock}; !slices.Equal(kinds, want) {
				t.Errorf("seed %d, a step every %d reads: found %v", seed, every, report.Findings)
			}
			w.quiet = true
			outcomes(t, w.repaired(report.Findings), done, done)
			if report = w.auditNow(upTo(bazaarSegments)); len(report.Findings)+report.Unsettled > 0 {
				t.Errorf("after the repair: %v, %d unsettled", report.Findings, report.Unsettled)
			}
			w.balanced()
		}
	}
	if steps < 50 || suspects < 20 {
		t.Errorf("%d steps beside the audits, %d suspects: this shows nothing", steps, suspects)
	}
}

// The parts may be merged in any order, and be as many as there are.
func TestTalliesMergeInAnyOrder(t *testing.T) {
	w := newBusy(t, 3, 1)
	w.quiet = true
	if !w.damageStock("S-2", 0, ledger.Counters{Available: 1, Capacity: 1}) {
		t.Fatal("nothing was damaged")
	}
	want := w.auditNow(upTo(1))
	for _, order := range [][]int{upTo(8), {3, 1, 2, 0}, {1, 0}} {
		got := w.auditNow(order)
		got.Pages, want.Pages = 0, 0
		for i := range got.Findings {
			got.Findings[i].Proof.At = want.Findings[i].Proof.At
		}
		if len(got.Findings) != 1 || !slices.Equal(got.Findings, want.Findings) || got.Events != want.Events || got.Holds != want.Holds || got.Unsettled != 0 {
			t.Errorf("order %v: %+v, want %+v", order, got, want)
		}
	}
}
