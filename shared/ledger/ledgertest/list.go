package ledgertest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

var listRules = []rule{
	{"HoldsOfOwner", listsHoldsOfOwner},
	{"SlotsOfResource", listsSlotsOfResource},
	{"SlotsOfResourceBetween", listsSlotsBetween},
	{"CursorOutsideTheBounds", cursorOutsideTheBounds},
	{"Due", listsDueHolds},
	{"ReservationsOfOwner", listsReservationsOfOwner},
	{"DueReservations", listsDueReservations},
	{"PageOutOfBoundsIsInvalid", badPageIsInvalid},
}

// pagesMax ends a walk over the pages of a store that never says that it is done.
const pagesMax = 200

// walk reads all pages of a list, each of at most limit items. A page may be short or
// empty before the end, as the pages of an index may be.
func walk[T any](f *fixture, limit int, list func(ledger.Page) ([]T, ledger.Cursor, error)) []T {
	f.Helper()
	var all []T
	page := ledger.Page{Limit: limit}
	for range pagesMax {
		items, next, err := list(page)
		f.read(err)
		if len(items) > limit {
			f.Fatalf("a page of at most %d items has %d", limit, len(items))
		}
		all = append(all, items...)
		if next == "" {
			return all
		}
		page.After = next
	}
	f.Fatalf("the list has no end after %d pages", pagesMax)
	return nil
}

// walkLimits are page sizes that end inside, at and beyond a list of seven.
var walkLimits = []int{1, 2, 3, 7, 8, ledger.PageItemsMax}

func listsHoldsOfOwner(f *fixture) {
	slot := f.slot("A", definition(100, 1))
	// The offsets in milliseconds are such that text without trailing zeros, or
	// numbers as text, would be out of order; two holds are of the same moment.
	var want []ledger.Hold
	for _, offset := range []int{0, 7, 77, 777, 877, 877, 10_000} {
		f.now = noon.Add(time.Duration(offset) * time.Millisecond)
		want = append(want, f.held(one(slot, 1)))
		f.commit(f.hold(theOwner+"x", one(slot, 1)))
	}
	f.commit(f.confirm(want[6], ""))
	want[6] = f.storedHold(want[6].ID)

	for _, limit := range walkLimits {
		got := walk(f, limit, func(page ledger.Page) ([]ledger.Hold, ledger.Cursor, error) {
			return f.store.HoldsOfOwner(f.ctx, theOwner, page)
		})
		if !slices.IsSortedFunc(got, func(a, b ledger.Hold) int { return b.CreatedAt.Compare(a.CreatedAt) }) {
			f.Errorf("limit %d: the newest hold is not always first: %s", limit, text(got))
		}
		byID := func(a, b ledger.Hold) int { return cmp.Compare(a.ID, b.ID) }
		f.equal(fmt.Sprintf("holds in pages of %d", limit), slices.SortedFunc(slices.Values(got), byID), slices.SortedFunc(slices.Values(want), byID))
	}
	none, next, err := f.store.HoldsOfOwner(f.ctx, "nobody", ledger.Page{Limit: 1})
	f.read(err)
	f.equal("holds of nobody", none, []ledger.Hold{})
	f.equal("cursor after the holds of nobody", next, ledger.Cursor(""))
}

// flights defines seven slots of one resource in the order of their start, and others
// of neighbouring resources.
func (f *fixture) flights() []ledger.Slot {
	f.Helper()
	at := func(id ledger.SlotID, resource ledger.ResourceID, start time.Time) ledger.Slot {
		d := definition(1, 1)
		d.ResourceID, d.StartsAt = resource, start
		return f.slot(id, d)
	}
	day := time.Date(2026, time.May, 4, 0, 0, 0, 0, time.UTC)
	slots := []ledger.Slot{
		at("z-any-time-1", "OZ-102", time.Time{}),
		at("z-any-time-2", "OZ-102", time.Time{}),
		at("y", "OZ-102", day.Add(-time.Millisecond)),
		at("x", "OZ-102", day),
		at("v", "OZ-102", day.Add(100*time.Millisecond)),
		at("w", "OZ-102", day.Add(100*time.Millisecond)),
		at("a", "OZ-102", day.Add(120*time.Millisecond)),
	}
	at("b", "OZ-1020", day)
	at("c", "OZ-10", day)
	at("d", "OZ-102:x", day)
	other := definition(1, 1)
	other.ResourceType, other.StartsAt = "hotel", day
	f.slot("e", other)
	return slots
}

func listsSlotsOfResource(f *fixture) {
	want := f.flights()
	for _, limit := range walkLimits {
		got := walk(f, limit, func(page ledger.Page) ([]ledger.Slot, ledger.Cursor, error) {
			return f.store.SlotsOfResource(f.ctx, "flight", "OZ-102", time.Time{}, time.Time{}, page)
		})
		f.equal(fmt.Sprintf("slots in pages of %d", limit), got, want)
	}
}

func listsSlotsBetween(f *fixture) {
	slots := f.flights()
	day := slots[3].StartsAt
	tests := []struct {
		from, to time.Time
		want     []ledger.Slot
	}{
		{day, time.Time{}, slots[3:]},
		{time.Time{}, day, slots[2:4]},
		{day, day, slots[3:4]},
		{day.Add(time.Millisecond), day.Add(100 * time.Millisecond), slots[4:6]},
		{day.Add(-time.Millisecond), day.Add(119 * time.Millisecond), slots[2:6]},
		{day.Add(121 * time.Millisecond), time.Time{}, nil},
		{day, day.Add(-time.Millisecond), nil},
	}
	for _, test := range tests {
		for _, limit := range []int{1, 2, ledger.PageItemsMax} {
			got := walk(f, limit, func(page ledger.Page) ([]ledger.Slot, ledger.Cursor, error) {
				return f.store.SlotsOfResource(f.ctx, "flight", "OZ-102", test.from, test.to, page)
			})
			f.equal(fmt.Sprintf("slots from %v to %v in pages of %d", test.from, test.to, limit), got, test.want)
		}
	}
}

// cursorOutsideTheBounds asks for the next page with bounds that the page before did not
// have. Stores may go on or refuse; what they must not do is fail.
func cursorOutsideTheBounds(f *fixture) {
	slots := f.flights()
	day := slots[3].StartsAt
	list := func(from, to time.Time, after ledger.Cursor) ([]ledger.Slot, ledger.Cursor, error) {
		return f.store.SlotsOfResource(f.ctx, "flight", "OZ-102", from, to, ledger.Page{Limit: 1, After: after})
	}
	_, beforeAll, err := list(time.Time{}, time.Time{}, "")
	f.read(err)
	_, inside, err := list(day, time.Time{}, "")
	f.read(err)
	for name, bounds := range map[string]struct {
		from, to time.Time
		after    ledger.Cursor
	}{
		"a slot without a start": {day, time.Time{}, beforeAll},
		"a start before from":    {day.Add(time.Millisecond), time.Time{}, inside},
		"a start after to":       {time.Time{}, day.Add(-time.Millisecond), inside},
	} {
		if _, _, err := list(bounds.from, bounds.to, bounds.after); err != nil && ledger.CodeOf(err) != ledger.CodeInvalid {
			f.Errorf("the cursor of %s: %v", name, err)
		}
	}
}

func listsDueHolds(f *fixture) {
	slot := f.slot("A", definition(100, 1))
	// Seven due holds of one shard; their creation order is not their due order.
	const shard = 5
	var want []ledger.DueHold
	var ids []ledger.HoldID
	for _, offset := range []int{7, 0, 777, 77, 10_000, 877, 877} {
		f.now = noon.Add(time.Duration(offset) * time.Millisecond)
		change := f.holdOfDueShard(shard, slot)
		f.commit(change)
		hold := change.Holds[0].Next
		ids = append(ids, hold.ID)
		want = append(want, ledger.DueHold{ID: hold.ID, DueAt: hold.ReleaseAt})
	}
	slices.SortFunc(want, func(a, b ledger.DueHold) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(a.ID, b.ID))
	})
	other := f.holdOfDueShard(shard+1, slot)
	f.commit(other)
	ids = append(ids, other.Holds[0].Next.ID)

	list := func(now time.Time) func(ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
		return func(page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
			return f.store.Due(f.ctx, shard, now, page)
		}
	}
	last := want[len(want)-1].DueAt
	for _, limit := range walkLimits {
		f.equal(fmt.Sprintf("due holds in pages of %d", limit), walk(f, limit, list(last)), want)
	}
	f.equal("due holds before the last is due", walk(f, 2, list(last.Add(-time.Millisecond))), want[:6])
	f.equal("due holds when the first is due", walk(f, 2, list(want[0].DueAt)), want[:1])
	f.equal("due holds before the first is due", walk(f, 2, list(want[0].DueAt.Add(-time.Millisecond))), []ledger.DueHold{})

	for i, end := range f.endings() {
		f.now = noon
		f.commit(end.build(f.storedHold(want[i].ID)))
	}
	f.equal("due holds after three have ended", walk(f, 2, list(last)), want[3:])
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, ids)
}

// holdOfDueShard draws hold ids until one waits in this partition of the due index.
func (f *fixture) holdOfDueShard(shard int, slot ledger.Slot) ledger.Change {
	f.Helper()
	const triesMax = 100 * ledger.DueShards
	for range triesMax {
		change := f.hold(theOwner, one(slot, 1))
		if ledger.DueShard(change.Holds[0].Next.ID) == shard {
			return change
		}
	}
	f.Fatalf("no hold id of due shard %d in %d tries", shard, triesMax)
	return ledger.Change{}
}

func badPageIsInvalid(f *fixture) {
	for _, page := range []ledger.Page{{Limit: 0}, {Limit: -1}, {Limit: ledger.PageItemsMax + 1}, {Limit: 1, After: "no list gave this!"}, {Limit: 1, After: "AAAA"}} {
		_, _, err := f.store.HoldsOfOwner(f.ctx, theOwner, page)
		f.equal(fmt.Sprintf("code for the holds of page %+v", page), ledger.CodeOf(err), ledger.CodeInvalid)
		_, _, err = f.store.SlotsOfResource(f.ctx, "flight", "OZ-102", time.Time{}, time.Time{}, page)
		f.equal(fmt.Sprintf("code for the slots of page %+v", page), ledger.CodeOf(err), ledger.CodeInvalid)
		_, _, err = f.store.Due(f.ctx, 0, f.now, page)
		f.equal(fmt.Sprintf("code for the due holds of page %+v", page), ledger.CodeOf(err), ledger.CodeInvalid)
		_, _, err = f.store.ReservationsOfOwner(f.ctx, theOwner, page)
		f.equal(fmt.Sprintf("code for the reservations of page %+v", page), ledger.CodeOf(err), ledger.CodeInvalid)
		_, _, err = f.store.DueReservations(f.ctx, 0, f.now, page)
		f.equal(fmt.Sprintf("code for the due reservations of page %+v", page), ledger.CodeOf(err), ledger.CodeInvalid)
	}
	_, err := f.store.Slots(f.ctx, make([]ledger.SlotID, ledger.PageItemsMax+1))
	f.equal("code for too many slots", ledger.CodeOf(err), ledger.CodeInvalid)
}
