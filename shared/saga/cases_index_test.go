package saga_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// Case B8: in each hour of a day one hold was made by the hold call alone and one as part
// of a reservation. When all are over, the due index has the 48 that a scan of the whole
// table has, in whatever pages it is read; and after the sweep neither has any.
func TestCaseB8_HoldsOfBothWaysAreInTheIndex(t *testing.T) {
	t.Parallel()
	const hours = 24
	client, table := dynamotest.NewTable(t)
	// The store's own pauses must not move the clock of the world.
	w := newWorldOn(t, dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{}))
	scan := dynamo.NewScan(client, table)
	midnight := time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)
	w.clock.Set(midnight.Add(-time.Hour))
	w.slot("A", 2*hours, nil)
	var reservations []ledger.ReservationID
	for hour := range hours {
		w.clock.Set(midnight.Add(time.Duration(hour)*time.Hour + 10*time.Minute))
		w.hold("U-1", one("A"))
		w.clock.Advance(30 * time.Minute)
		id, _ := w.start("U-2", w.hold("U-2", one("A")), ledger.IdempotencyKey(fmt.Sprintf("hour-%d", hour)))
		reservations = append(reservations, id)
	}
	var last time.Time
	for _, id := range w.holds {
		due, held := w.storedHold(id).DueAt()
		if !held {
			t.Fatalf("hold %s has ended by itself", id)
		}
		if due.After(last) {
			last = due
		}
	}
	w.clock.Set(last)

	want := slices.Sorted(slices.Values(w.holds))
	if len(want) != 2*hours {
		t.Fatalf("%d holds were made", len(want))
	}
	for _, pageItems := range []int{1, ledger.PageItemsMax} {
		if listed := w.dueHolds(pageItems); !slices.Equal(listed, want) {
			t.Errorf("in pages of %d the index lists %d of %d holds: %v", pageItems, len(listed), len(want), listed)
		}
	}
	if held := w.scanHeld(scan); !slices.Equal(held, want) {
		t.Errorf("the table has %d of %d holds: %v", len(held), len(want), held)
	}

	w.sweep()
	for _, n := range w.notices() {
		w.drive(n.Reservation, n)
	}
	for _, id := range w.holds {
		w.wantHold(id, ledger.StatusExpired)
	}
	for _, id := range reservations {
		if status := w.reservation(id).Status; status != ledger.ReservationCanceled {
			t.Errorf("reservation %s is %s", id, status)
		}
	}
	if listed, held := w.dueHolds(ledger.PageItemsMax), w.scanHeld(scan); len(listed)+len(held) != 0 {
		t.Errorf("after the sweep the index has %v and the table %v", listed, held)
	}
	w.wantCounters("A", "48/0/0/48")
	w.checkBooks()
}

// dueHolds lists what the sweep would see now, over all shards and pages, in the order of
// ids.
func (w *world) dueHolds(pageItems int) []ledger.HoldID {
	w.t.Helper()
	var ids []ledger.HoldID
	for shard := range ledger.DueShards {
		page := ledger.Page{Limit: pageItems}
		for more := true; more; more = page.After != "" {
			entries, next, err := w.store.Due(w.t.Context(), shard, w.clock.Now(), page)
			w.must(err)
			for _, entry := range entries {
				ids = append(ids, entry.ID)
			}
			page.After = next
		}
	}
	slices.Sort(ids)
	return ids
}

// scanHeld reads the whole table for the holds that are HELD, in the order of ids.
func (w *world) scanHeld(scan *dynamo.Scan) []ledger.HoldID {
	w.t.Helper()
	var ids []ledger.HoldID
	w.must(scan.ScanRecords(w.t.Context(), func(page ledger.Records) error {
		for _, h := range page.Holds {
			if h.Hold.Status == ledger.StatusHeld {
				ids = append(ids, h.Hold.ID)
			}
		}
		return nil
	}))
	slices.Sort(ids)
	return ids
}
