package archive_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/archive"
	"holdfast/shared/commands"
	"holdfast/shared/lease"
	"holdfast/shared/ledger"
)

// The slots of a limited world, which are of one resource.
const (
	limitedSlotID ledger.SlotID = "rink-1"
	otherSlotID   ledger.SlotID = "rink-2"
)

// limitedWorld is a world of which each owner may have so much and no more, of two slots.
func limitedWorld(tb testing.TB) *world {
	tb.Helper()
	w := newWorld(tb, 100)
	layer := ledger.InheritAll()
	layer.Inherits &^= ledger.PartHoldsPerOwner | ledger.PartQuantityPerOwner | ledger.PartQuantityPerOwnerOfResource |
		ledger.PartExpiries | ledger.PartCooldown | ledger.PartScarce
	p := &layer.Policy
	p.HoldsPerOwnerMax, p.QuantityPerOwnerMax, p.QuantityPerOwnerOfResourceMax = 50, 50, 50
	p.ExpiriesMax, p.CooldownFor, p.Scarce = 50, time.Minute, true
	w.commit(ledger.SetPolicy(ledger.PolicyScope{ResourceType: "rink"}, ledger.ScopePolicy{}, layer, w.origin(), w.clock.Now()))
	inherits := ledger.InheritAll()
	for _, id := range []ledger.SlotID{limitedSlotID, otherSlotID} {
		w.commit(ledger.NewSlot(id, ledger.SlotDefinition{
			ResourceType: "rink", ResourceID: "r", Policy: inherits.Policy, Inherits: inherits.Inherits, Capacity: 100,
			Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 5000, Currency: "KRW"}, Shards: 1},
		}, w.origin(), w.clock.Now()))
	}
	return w
}

// limitedHold makes a hold of so many units of each slot.
func (w *world) limitedHold(units map[ledger.SlotID]ledger.Units) ledger.HoldID {
	w.tb.Helper()
	var wish commands.HoldWish
	for _, id := range slices.Sorted(maps.Keys(units)) {
		wish.Quotes = append(wish.Quotes, ledger.Quote{Slot: id, Quantity: units[id], UnitAmount: 5000})
	}
	var id ledger.HoldID
	_, err := w.commands.CreateHold(context.Background(), owner(), wish, func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
		id = h.ID
		return ledger.Response{Status: 201}, nil
	})
	w.check(err)
	return id
}

// edited is a hold with all that limits, edits, part sales and returns leave in it.
func (w *world) edited() ledger.HoldID {
	w.tb.Helper()
	id := w.limitedHold(map[ledger.SlotID]ledger.Units{limitedSlotID: 4, otherSlotID: 1})
	w.clock.Advance(time.Minute)
	change, err := ledger.EditHold(w.read(id), ledger.HoldEdit{
		Quotes:    []ledger.Quote{{Slot: limitedSlotID, Quantity: 3, UnitAmount: 5000}, {Slot: otherSlotID, Quantity: 1, UnitAmount: 5000}},
		ExtendFor: w.read(id).HoldFor,
	}, w.origin(), w.clock.Now())
	w.commit(change, err)
	change, err = ledger.ConfirmPart(w.read(id), []ledger.ReturnLine{{Slot: otherSlotID, Quantity: 1}, {Slot: limitedSlotID, Quantity: 2}}, "pay-edited", w.origin(), w.clock.Now())
	w.commit(change, err)
	change, err = ledger.ReturnUnpaid(w.read(id), []ledger.ReturnLine{
		{Slot: otherSlotID, Quantity: 1}, {Slot: limitedSlotID, Quantity: 1, Restock: ledger.RestockNever},
	}, w.origin(), w.clock.Now())
	w.commit(change, err)
	w.publish(ledger.ArchiveSubject{Hold: id})
	return id
}

// What limits and edits add to a hold survives the archive: the item comes back with the
// same bytes, and reads as the same hold.
func TestRestoreKeepsWhatLimitsAndEditsAddToAHold(t *testing.T) {
	w := limitedWorld(t)
	id := w.edited()
	subject := ledger.ArchiveSubject{Hold: id}
	w.clock.Advance(holdsAfter)
	if report := w.mustRun(); report != (archive.Report{Archived: 1}) {
		t.Fatalf("the run reports %+v", report)
	}
	before, items := w.read(id), kept(w.texts(subject))
	line := before.Lines[0]
	if !slices.Equal(before.CountsIn, []ledger.QuotaKey{ledger.QuotaHolds}) || len(line.CountsIn) != 2 || !before.CountsExpiry || !before.Scarce ||
		before.HoldFor != ledger.HoldForDefault || before.HoldForMax != ledger.HoldForMaxDefault || line.ReturnedQuantity() != 1 || len(before.Lines) != 2 {
		t.Fatalf("the hold lacks what the test is about: %+v", before)
	}
	w.clock.Advance(archive.PurgeAfter)
	if len(w.items(subject)) != 0 {
		t.Fatal("the hold is still in the table")
	}
	w.booksAreRight()
	for _, b := range w.batches(ledger.ArchiveHolds) {
		_, err := w.archive().Restore(t.Context(), b)
		w.check(err)
	}
	if after := kept(w.texts(subject)); !slices.Equal(after, items) || !strings.Contains(strings.Join(items, ""), `"counts_in"`) {
		t.Errorf("the items were\n%s\nand are\n%s", items, after)
	}
	after := w.read(id)
	if after.ArchivedIn == "" || !slices.Equal(after.CountsIn, before.CountsIn) || !slices.Equal(after.Lines[0].CountsIn, line.CountsIn) ||
		after.CountsExpiry != before.CountsExpiry || after.Scarce != before.Scarce || after.HoldFor != before.HoldFor ||
		after.HoldForMax != before.HoldForMax || !slices.Equal(after.Lines[0].Returned, line.Returned) {
		t.Errorf("the hold was %+v and is %+v", before, after)
	}
	w.booksAreRight()
}

// counted is what is counted of the owner of all holds.
func (w *world) counted() map[ledger.QuotaKey]ledger.Units {
	w.tb.Helper()
	quota, err := w.store.Quota(context.Background(), "U-1")
	w.check(err)
	return quota.Counts
}

// endedUnderLimits makes four holds: two that were given up or are over, one whose sale was
// given back whole, and one that sold three units, of which one is left.
func (w *world) endedUnderLimits() {
	w.tb.Helper()
	canceled := w.limitedHold(map[ledger.SlotID]ledger.Units{otherSlotID: 2, limitedSlotID: 1})
	_, err := w.commands.CancelHold(context.Background(), owner(), canceled, rendered)
	w.check(err)
	returned := w.limitedHold(map[ledger.SlotID]ledger.Units{otherSlotID: 2})
	change, err := ledger.Confirm(w.read(returned), "pay-returned", w.origin(), w.clock.Now())
	w.commit(change, err)
	change, err = ledger.ReturnUnpaid(w.read(returned), nil, w.origin(), w.clock.Now())
	w.commit(change, err)
	over := w.limitedHold(map[ledger.SlotID]ledger.Units{otherSlotID: 1})
	w.clock.Set(w.read(over).ReleaseAt)
	_, err = w.commands.ExpireHold(context.Background(), over, "request_expire")
	w.check(err)
	w.edited()
	for _, id := range []ledger.HoldID{canceled, returned, over} {
		w.publish(ledger.ArchiveSubject{Hold: id})
	}
}

// What is zero goes with the holds that were counted, and what was sold counts on, also
// when the holds have left the table: "one for each customer" is true for ever.
func TestTheArchiveTakesCountsOfZeroAway(t *testing.T) {
	w := limitedWorld(t)
	w.endedUnderLimits()
	zeros := map[ledger.QuotaKey]ledger.Units{"holds": 0, "slot/rink-2": 0, "slot/rink-1": 1, "resource/rink/r": 1}
	if got := w.counted(); !maps.Equal(got, zeros) {
		t.Fatalf("before the archive %v is counted", got)
	}
	w.clock.Advance(holdsAfter)
	if report := w.mustRun(); report != (archive.Report{Archived: 4}) {
		t.Errorf("the run reports %+v", report)
	}
	sold := map[ledger.QuotaKey]ledger.Units{"slot/rink-1": 1, "resource/rink/r": 1}
	if got := w.counted(); !maps.Equal(got, sold) {
		t.Errorf("after the archive %v is counted, want %v", got, sold)
	}
	w.booksAreRight()
	w.clock.Advance(archive.PurgeAfter)
	w.booksAreRight()
	if got := w.counted(); !maps.Equal(got, sold) {
		t.Errorf("after the purge %v is counted, want %v", got, sold)
	}
}

// A count that another hold is part of stays, although the one that is archived is not.
func TestTheArchiveLeavesCountsThatAreInUse(t *testing.T) {
	w := limitedWorld(t)
	w.endedUnderLimits()
	w.clock.Advance(holdsAfter)
	w.limitedHold(map[ledger.SlotID]ledger.Units{otherSlotID: 3})
	w.mustRun()
	want := map[ledger.QuotaKey]ledger.Units{"holds": 1, "slot/rink-2": 3, "slot/rink-1": 1, "resource/rink/r": 4}
	if got := w.counted(); !maps.Equal(got, want) {
		t.Errorf("%v is counted, want %v", got, want)
	}
	w.booksAreRight()
}

// keeper is the store of the world, which notes what is tidied, and can't for some time.
type keeper struct {
	archive.Store
	down   error
	tidied []ledger.QuotaKey
}

func (k *keeper) TidyQuota(ctx context.Context, owner ledger.OwnerID, keys []ledger.QuotaKey) error {
	if k.down != nil {
		return k.down
	}
	k.tidied = append(k.tidied, keys...)
	return k.Store.TidyQuota(ctx, owner, keys)
}

// A worker that dies or fails before it has tidied leaves that to the next one, and a hold
// that was counted nowhere, or whose counts are not zero by itself, costs no call.
func TestTidyingIsTakenUpAgain(t *testing.T) {
	w := limitedWorld(t)
	w.endedUnderLimits()
	w.holds(2) // of the slot without limits
	w.clock.Advance(holdsAfter)
	k := &keeper{Store: w.store, down: &ledger.Error{Code: ledger.CodeUnavailable, Message: "the database is busy"}}
	if report, err := w.worker(k).Run(t.Context(), lease.Worker("first")); err == nil || report.Failed == 0 {
		t.Errorf("a run that could not tidy reports %+v, %v", report, err)
	}
	k.down = nil
	w.clock.Advance(2 * archive.LeaseFor)
	_, err := w.worker(k).Run(t.Context(), lease.Worker("second"))
	w.check(err)
	slices.Sort(k.tidied)
	want := []ledger.QuotaKey{"holds", "holds", "holds", "holds", "resource/rink/r", "resource/rink/r", "resource/rink/r", "slot/rink-1", "slot/rink-2", "slot/rink-2", "slot/rink-2", "slot/rink-2"}
	if !slices.Equal(k.tidied, want) {
		t.Errorf("tidied %v, want %v", k.tidied, want)
	}
	if _, there := w.counted()["holds"]; there {
		t.Error("the owner's item still has a count of zero")
	}
	w.booksAreRight()
}

// A hold that has left the table is known by its reservation alone. That stand-in can't be
// edited, sold in part or given back, and is counted nowhere.
func TestTheStandInOfAGoneHoldTakesNoEdit(t *testing.T) {
	w := limitedWorld(t)
	hold, id := w.captured()
	w.complete(id)
	w.clock.Advance(holdsAfter)
	w.mustRun()
	w.clock.Advance(archive.PurgeAfter)
	gone, err := ledger.HoldOf(t.Context(), w.store, w.reservation(id), hold)
	w.check(err)
	if gone.Status != ledger.StatusConfirmed || len(gone.CountsIn)+len(gone.Lines) > 0 || gone.CountsExpiry {
		t.Errorf("the stand-in is %+v", gone)
	}
	line := []ledger.ReturnLine{{Slot: slotID, Quantity: 1}}
	for name, c := range map[string]struct {
		step func(o ledger.Origin, now time.Time) (ledger.Change, error)
		want ledger.Code
	}{
		"an edit": {func(o ledger.Origin, now time.Time) (ledger.Change, error) {
			return ledger.EditHold(gone, ledger.HoldEdit{Quotes: []ledger.Quote{{Slot: slotID, Quantity: 2, UnitAmount: 5000}}}, o, now)
		}, ledger.CodeHoldArchived},
		"an extension": {func(o ledger.Origin, now time.Time) (ledger.Change, error) {
			return ledger.EditHold(gone, ledger.HoldEdit{ExtendFor: time.Minute}, o, now)
		}, ledger.CodeHoldArchived},
		"a part sale": {func(o ledger.Origin, now time.Time) (ledger.Change, error) {
			return ledger.ConfirmPart(gone, line, "pay-late", o, now)
		}, ledger.CodeHoldArchived},
		"a return": {func(o ledger.Origin, now time.Time) (ledger.Change, error) {
			return ledger.Return(gone, line, o, now)
		}, ledger.CodeHoldArchived},
		"a return by the shop": {func(o ledger.Origin, now time.Time) (ledger.Change, error) {
			return ledger.ReturnUnpaid(gone, line, o, now)
		}, ledger.CodeHasReservation},
	} {
		if change, err := c.step(w.origin(), w.clock.Now()); ledger.CodeOf(err) != c.want || !change.Empty() {
			t.Errorf("%s: %+v, %v; want %s", name, change, err, c.want)
		}
	}
}
