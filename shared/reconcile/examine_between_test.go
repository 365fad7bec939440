package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/reconcile"
)

// halves is a ledger that is scanned in two pages, and in which something happens in between:
// the second page has the stock of one slot, or else all holds with their events, and the first
// has all else.
type halves struct {
	*bazaar
	*memory.Store
	later   ledger.SlotID
	between func()
	// unlisted are holds that the due index does not list yet, and lost those whose items are
	// gone.
	unlisted, lost []ledger.HoldID
	purged         bool             // the events of the lost ones are gone, too
	untold         ledger.HoldID    // one whose first event is gone
	unreadable     ledger.EventItem // the item of a lost one, if it is there and can't be read
}

func (h *halves) ScanSegment(ctx context.Context, segment, total int, after ledger.Cursor) (ledger.RecordsPage, error) {
	page, err := h.Store.ScanSegment(ctx, segment, total, "")
	h.hide(&page.Records)
	if h.unreadable != (ledger.EventItem{}) {
		page.Records.Unreadable = append(page.Records.Unreadable, h.unreadable)
	}
	second := ledger.Records{Holds: page.Records.Holds, Events: page.Records.Events, ArchivedEvents: page.Records.ArchivedEvents}
	if h.later == "" {
		page.Records.Holds, page.Records.Events, page.Records.ArchivedEvents = nil, nil, nil
	} else {
		isLater := func(s ledger.Stock) bool { return s.Slot == h.later }
		second = ledger.Records{Stock: slices.DeleteFunc(slices.Clone(page.Records.Stock), func(s ledger.Stock) bool { return !isLater(s) })}
		page.Records.Stock = slices.DeleteFunc(page.Records.Stock, isLater)
	}
	if after != "" {
		page.Records, page.Next = second, ""
		return page, err
	}
	page.Next = "second"
	if h.between != nil {
		h.between()
	}
	return page, err
}

func (h *halves) hide(r *ledger.Records) {
	r.Holds = slices.DeleteFunc(r.Holds, func(s ledger.StoredHold) bool { return slices.Contains(h.lost, s.Hold.ID) })
	r.Events = slices.DeleteFunc(r.Events, func(e ledger.Event) bool { return h.purged && e.Hold != nil && slices.Contains(h.lost, e.Hold.ID) })
	r.Events = slices.DeleteFunc(r.Events, func(e ledger.Event) bool { return e.Hold != nil && e.Hold.ID == h.untold && e.Version == 1 })
}

func (h *halves) Records(ctx context.Context, of ledger.RecordsOf) (ledger.Records, error) {
	if of.Item != (ledger.EventItem{}) && of.Item == h.unreadable {
		return ledger.Records{Unreadable: []ledger.EventItem{h.unreadable}}, nil
	}
	r, err := h.Store.Records(ctx, of)
	h.hide(&r)
	return r, err
}

func (h *halves) Holds(ctx context.Context, ids []ledger.HoldID) ([]ledger.Hold, error) {
	if len(slices.Compact(slices.Sorted(slices.Values(ids)))) < len(ids) {
		return nil, errors.New("an id is asked for twice, which DynamoDB refuses")
	}
	holds, err := h.Store.Holds(ctx, ids)
	return slices.DeleteFunc(holds, func(one ledger.Hold) bool { return slices.Contains(h.lost, one.ID) }), err
}

func (h *halves) HoldsOfOwner(ctx context.Context, owner ledger.OwnerID, page ledger.Page) ([]ledger.Hold, ledger.Cursor, error) {
	holds, next, err := h.Store.HoldsOfOwner(ctx, owner, page)
	return slices.DeleteFunc(holds, func(one ledger.Hold) bool { return slices.Contains(h.lost, one.ID) }), next, err
}

func (h *halves) Due(ctx context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
	due, next, err := h.Store.Due(ctx, shard, now, page)
	return slices.DeleteFunc(due, func(d ledger.DueHold) bool { return slices.Contains(h.unlisted, d.ID) }), next, err
}

// audit scans all in one segment, and examines it; pause is called before each look but the
// first.
func (h *halves) audit(pause func()) reconcile.Report {
	h.Helper()
	tally, err := reconcile.TallySegment(h.Context(), h, 0, 1, h.clock.Now())
	h.check(err)
	examiner := &reconcile.Examiner{Store: h, Clock: h.clock, Wait: func(_ context.Context, d time.Duration) error {
		h.clock.Advance(d)
		pause()
		return nil
	}}
	report, err := examiner.Examine(h.Context(), tally)
	h.check(err)
	return report
}

func newHalves(t *testing.T, seed uint64) *halves {
	t.Helper()
	b := newBazaar(t, seed)
	b.slot("A", 100, 1, time.Hour)
	b.slot("B", 100, 3, time.Hour)
	return &halves{bazaar: b, Store: b.store, later: "B"}
}

// A hold that was read, then brought to another slot, and then sold, is not among the HELD ones
// when the slot is looked at. It has bought its units all the same.
func TestAHoldThatWasMovedAndSoldIsNotMissed(t *testing.T) {
	h := newHalves(t, 21)
	id := h.mustHold("owner-1", "A", 2)
	h.between = func() {
		_, err := h.commands.EditHold(t.Context(), h.request("owner-1"), id,
			commands.EditWish{Quotes: []ledger.Quote{{Slot: "B", Quantity: 2, UnitAmount: 500}}}, renderNothing)
		h.check(err)
		h.end(id, true)
	}
	if report := h.audit(func() {}); report.Suspects == 0 || len(report.Findings)+report.Unsettled > 0 {
		t.Errorf("of %d suspects it found %v, and %d are unsettled", report.Suspects, report.Findings, report.Unsettled)
	}
}

// Of a sale whose item is lost the events are left, and nobody may sell its units again before
// a person has looked.
func TestTheUnitsOfALostHoldAreNotGivenBack(t *testing.T) {
	h := newHalves(t, 22)
	id := h.mustHold("owner-1", "B", 2)
	h.end(id, true)
	h.lost = []ledger.HoldID{id}
	report := h.audit(func() {})
	var kinds []reconcile.FindingKind
	for _, f := range report.Findings {
		kinds = append(kinds, f.Kind)
		if do := reconcile.Plan(f).Do; f.Slot == "B" && do != reconcile.ActionReview {
			t.Errorf("%v: it would %s", f, do)
		}
	}
	if !slices.Contains(kinds, reconcile.FindingEventMissing) || !slices.Contains(kinds, reconcile.FindingTerminalStock) {
		t.Errorf("found %v", report.Findings)
	}
}

// On a slot that is on sale each look may see another hold that the index does not list yet. So
// it is the same difference that several looks must see.
func TestLooksMustAgreeAboutWhatIsWrong(t *testing.T) {
	h := newHalves(t, 23)
	units := ledger.Units(0)
	buy := func() {
		units++
		h.unlisted = []ledger.HoldID{h.mustHold("owner-1", "B", units)}
	}
	h.between = buy
	if report := h.audit(buy); len(report.Findings) > 0 || report.Suspects == 0 || units < reconcile.LooksMax {
		t.Errorf("after %d holds, of %d suspects: %v", units, report.Suspects, report.Findings)
	}
	h.between = nil
	if !h.damageStock("B", 0, ledger.Counters{Available: -1, Held: 1}) {
		t.Fatal("nothing was damaged")
	}
	h.unlisted = nil
	if report := h.audit(func() {}); len(report.Findings) != 1 || report.Findings[0].Kind != reconcile.FindingTerminalStock || report.Unsettled > 0 {
		t.Errorf("what is wrong in each look is told as %v, with %d unsettled", report.Findings, report.Unsettled)
	}
}

// archive marks a hold as archived.
func (h *halves) archive(id ledger.HoldID) {
	h.Helper()
	hold, err := h.Hold(h.Context(), id)
	h.check(err)
	events, err := h.HoldEvents(h.Context(), id)
	h.check(err)
	now := h.now()
	change, err := ledger.ArchiveHold(hold, nil, events, "batch", now.Add(30*24*time.Hour).Truncate(time.Second), now)
	h.check(err)
	h.check(h.Commit(h.Context(), change))
}

// A sale is marked as archived after its stock item was read, and before it is: what is archived
// must not seem to be less than it is, or who bought long ago could buy the one for each customer
// again.
func TestAMarkOfTheArchiveBetweenTwoReadsTakesNoCount(t *testing.T) {
	h := newHalves(t, 24)
	h.later = ""
	gone, old := h.mustHold("owner-1", "B", 1), h.mustHold("owner-2", "B", 1)
	h.end(gone, true)
	h.end(old, true)
	h.clock.Advance(48 * time.Hour)
	h.archive(gone)
	h.lost, h.purged = []ledger.HoldID{gone}, true
	h.between = func() { h.archive(old) }
	if report := h.audit(func() {}); len(report.Findings)+report.Unsettled > 0 || report.Suspects == 0 {
		t.Errorf("of %d suspects it found %v, and %d are unsettled", report.Suspects, report.Findings, report.Unsettled)
	}
	h.between = nil
	if !h.damageQuota("owner-1", "slot/B", 1) {
		t.Fatal("nothing was damaged")
	}
	if report := h.audit(func() {}); len(report.Findings) != 1 || report.Findings[0].Kind != reconcile.FindingQuotaMismatch {
		t.Errorf("a count that is too high is told as %v", report.Findings)
	}
}

// A slot that is made after its place was read is known by its holds.
func TestASlotThatIsMadeBetweenTwoReadsIsKnown(t *testing.T) {
	h := newHalves(t, 25)
	h.later = ""
	h.between = func() {
		policy := ledger.DefaultPolicy()
		policy.QuantityPerOwnerOfResourceMax = 10
		_, err := h.commands.PutSlot(t.Context(), h.request("catalog"), "new", ledger.SlotDefinition{
			ResourceType: "show", ResourceID: "R-2", Capacity: 10, Policy: policy,
			Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 1},
		}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
			return ledger.Response{}, nil
		})
		h.check(err)
		h.mustHold("owner-1", "new", 1)
	}
	if report := h.audit(func() {}); len(report.Findings)+report.Unsettled > 0 || report.Suspects == 0 {
		t.Errorf("of %d suspects it found %v, and %d are unsettled", report.Suspects, report.Findings, report.Unsettled)
	}
}

// One item that can't be read is told as that, and keeps nothing else from being told; what it
// may have is not given away.
func TestAnItemThatCanNotBeReadIsToldBesideAllElse(t *testing.T) {
	h := newHalves(t, 26)
	id := h.mustHold("owner-1", "B", 2)
	h.lost, h.unreadable = []ledger.HoldID{id}, ledger.EventItem{PartitionKey: "HOLD#" + string(id), SortKey: "HOLD"}
	if !h.damageStock("A", 0, ledger.Counters{Available: -1, Held: 1}) {
		t.Fatal("nothing was damaged")
	}
	found := map[reconcile.FindingKind]int{}
	for _, f := range h.audit(func() {}).Findings {
		found[f.Kind]++
		if do := reconcile.Plan(f).Do; do != reconcile.ActionReview && f.Slot != "A" {
			t.Errorf("%v: it would %s", f, do)
		}
	}
	if found[reconcile.FindingUnreadable] != 1 || found[reconcile.FindingTerminalStock] != 2 || found[reconcile.FindingEventMissing] != 1 {
		t.Errorf("found %v", found)
	}
}

// A hold of which an event is lost is asked for once, although its row and its events both tell
// of it.
func TestAHoldWithoutOneOfItsEventsIsAskedForOnce(t *testing.T) {
	h := newHalves(t, 27)
	id := h.mustHold("owner-1", "B", 2)
	h.end(id, true)
	h.untold = id
	if !h.damageQuota("owner-1", "slot/B", 1) {
		t.Fatal("nothing was damaged")
	}
	kinds := map[reconcile.FindingKind]int{}
	for _, f := range h.audit(func() {}).Findings {
		kinds[f.Kind]++
	}
	if kinds[reconcile.FindingEventMissing] != 1 || kinds[reconcile.FindingQuotaMismatch] != 1 || len(kinds) != 2 {
		t.Errorf("found %v", kinds)
	}
}
