package reconcile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/reconcile"
)

// A hold that was read, and then brought to another slot, is where the tally does not know it,
// and nothing about it is new but its version. So all HELD holds are read again.
func TestAHoldThatWasMovedIsNotMissed(t *testing.T) {
	h := newHalves(t, 31)
	id := h.mustHold("owner-1", "A", 2)
	h.between = func() {
		_, err := h.commands.EditHold(t.Context(), h.request("owner-1"), id,
			commands.EditWish{Quotes: []ledger.Quote{{Slot: "B", Quantity: 2, UnitAmount: 500}}}, renderNothing)
		h.check(err)
	}
	if report := h.audit(func() {}); report.Suspects == 0 || len(report.Findings)+report.Unsettled > 0 {
		t.Errorf("of %d suspects it found %v, and %d are unsettled", report.Suspects, report.Findings, report.Unsettled)
	}
}

// rush is a ledger in which somebody buys of slot A before each read of its stock.
type rush struct {
	*halves
	sold int
}

func (r *rush) Records(ctx context.Context, of ledger.RecordsOf) (ledger.Records, error) {
	if of.OfStock && of.Slot == "A" {
		r.sold++
		r.mustHold(ledger.OwnerID(fmt.Sprintf("owner-%d", r.sold)), "A", 1)
	}
	return r.halves.Records(ctx, of)
}

// What never stands still can't be judged. That is told: else the slots that sell most would
// never be audited, and nobody would know.
func TestWhatNeverStandsStillIsUnsettled(t *testing.T) {
	r := &rush{halves: newHalves(t, 32)}
	if !r.damageStock("A", 0, ledger.Counters{Available: -1, Held: 1}) {
		t.Fatal("nothing was damaged")
	}
	tally, err := reconcile.TallySegment(t.Context(), r, 0, 1, r.clock.Now())
	r.check(err)
	looks := 1
	examiner := &reconcile.Examiner{Store: r, Clock: r.clock, Wait: func(_ context.Context, d time.Duration) error {
		looks++
		r.clock.Advance(d)
		return nil
	}}
	report, err := examiner.Examine(t.Context(), tally)
	r.check(err)
	if report.Suspects != 1 || report.Unsettled != 1 || len(report.Findings) > 0 || looks != reconcile.LooksMax {
		t.Errorf("after %d looks and %d sales: %d suspects, %d unsettled, %v", looks, r.sold, report.Suspects, report.Unsettled, report.Findings)
	}
}

// scattered deals the events of each thing out over the segments, and has all else in the first.
type scattered struct{ *memory.Store }

func (s scattered) ScanSegment(ctx context.Context, segment, total int, _ ledger.Cursor) (ledger.RecordsPage, error) {
	page, err := s.Store.ScanSegment(ctx, 0, 1, "")
	events := page.Records.Events
	page.Records.Events = nil
	if segment > 0 {
		page.Records = ledger.Records{}
	}
	for _, e := range events {
		if int(e.Version)%total == segment {
			page.Records.Events = append(page.Records.Events, e)
		}
	}
	return page, err
}

// Two segments may meet in the middle of a thing's events.
func TestEventsOfOneThingMayBeInSeveralSegments(t *testing.T) {
	b := newBazaar(t, 33)
	b.slot("A", 100, 2, time.Hour)
	for n := range 5 {
		id := b.mustHold("owner-1", "A", 1)
		b.end(id, n%2 == 0)
	}
	b.captured(b.mustHold("owner-2", "A", 2))
	for _, segments := range []int{1, 2, 3} {
		merged := reconcile.NewTally(b.now())
		for segment := range segments {
			tally, err := reconcile.TallySegment(t.Context(), scattered{b.store}, segment, segments, b.now())
			b.check(err)
			merged.Merge(tally)
		}
		if found := merged.Suspects(); len(found) > 0 {
			t.Errorf("in %d segments: %v", segments, found)
		}
	}
}
