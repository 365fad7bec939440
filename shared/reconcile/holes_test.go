package reconcile_test

import (
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/reconcile"
)

// Case B8: a HELD hold that no sweep would meet in time is a hole, and so is an ended one
// that every sweep meets.
func TestCaseB8_WhatIsAHole(t *testing.T) {
	held := ledger.IndexedHold{Hold: "hold_1", Status: ledger.StatusHeld, DueAt: start, InDue: true, ListedAt: start}
	for name, test := range map[string]struct {
		change func(*ledger.IndexedHold)
		hole   bool
	}{
		"held and listed":                  {func(*ledger.IndexedHold) {}, false},
		"held and parked until later":      {func(h *ledger.IndexedHold) { h.InDue, h.Parked, h.ListedAt = false, true, start.Add(time.Hour) }, false},
		"held and not listed":              {func(h *ledger.IndexedHold) { h.InDue, h.ListedAt = false, time.Time{} }, true},
		"held in another shard":            {func(h *ledger.IndexedHold) { h.InDue, h.Misplaced = false, true }, true},
		"held and listed too late":         {func(h *ledger.IndexedHold) { h.ListedAt = start.Add(time.Millisecond) }, true},
		"held and listed too early":        {func(h *ledger.IndexedHold) { h.ListedAt = start.Add(-time.Millisecond) }, true},
		"ended and not listed":             {func(h *ledger.IndexedHold) { h.Status, h.InDue, h.ListedAt = ledger.StatusExpired, false, time.Time{} }, false},
		"ended and listed":                 {func(h *ledger.IndexedHold) { h.Status = ledger.StatusConfirmed }, true},
		"ended and parked":                 {func(h *ledger.IndexedHold) { h.Status, h.InDue, h.Parked = ledger.StatusCanceled, false, true }, true},
		"ended and listed somewhere":       {func(h *ledger.IndexedHold) { h.Status, h.InDue, h.Misplaced = ledger.StatusReturned, false, true }, true},
		"of no readable status, listed":    {func(h *ledger.IndexedHold) { h.Status = "" }, true},
		"of no readable status, unlisted":  {func(h *ledger.IndexedHold) { h.Status, h.InDue = "", false }, false},
		"held, listed and of no due time ": {func(h *ledger.IndexedHold) { h.DueAt = time.Time{} }, true},
	} {
		h := held
		test.change(&h)
		if got := reconcile.Hole(h); (got != "") != test.hole {
			t.Errorf("%s: %q", name, got)
		}
	}
}
