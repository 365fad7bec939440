package outbox_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/outbox/outboxtest"
)

// sized is a slot's event with an attribute of n times the text.
func sized(slot string, text string, n int) ledger.Event {
	return ledger.Event{
		ID: ledger.EventID("event_" + slot), Type: ledger.EventSlotChanged, Version: 2, OccurredAt: start,
		Slot: &ledger.Slot{
			ID: ledger.SlotID(slot), Version: 2, CreatedAt: start, UpdatedAt: start,
			Attributes: map[string]string{"text": strings.Repeat(text, n)},
		},
	}
}

// entryBytes is how large the event's entry is, by the bus's arithmetic.
func entryBytes(tb testing.TB, e ledger.Event) int {
	tb.Helper()
	w := newWorld(tb)
	w.bus, w.bytesMax = outboxtest.NewBus(outbox.CallBytesLimit), outbox.CallBytesLimit
	w.marker.bus = w.bus
	if failed := mustHandle(context.Background(), tb, w.relay(w.ports()), w.batch(e)); failed != nil {
		tb.Fatalf("the probe was handed back: %v", failed)
	}
	return outboxtest.Bytes(w.bus.Deliveries()[0].Entry)
}

// exactly is an event whose entry has that many bytes. The text's own bytes fill it
// as far as they go, and single ones the rest.
func exactly(tb testing.TB, slot, text string, bytes int) ledger.Event {
	tb.Helper()
	room := bytes - entryBytes(tb, sized(slot, text, 0))
	e := sized(slot, text, room/len(text))
	e.Slot.Attributes["text"] += strings.Repeat("x", room%len(text))
	return e
}

// Case I3: calls are cut by count and by bytes. The limit is a setting.
func TestCaseI3_CallsAreCutByCountAndBytes(t *testing.T) {
	for _, limit := range []int{256 << 10, 1 << 20} {
		t.Run(fmt.Sprintf("%d KiB", limit>>10), func(t *testing.T) {
			w := newWorld(t)
			w.bus, w.bytesMax = outboxtest.NewBus(limit), limit
			w.marker.bus = w.bus
			var list []ledger.Event
			for i := range 3 {
				list = append(list, sized(fmt.Sprintf("large-%d", i), "x", 100<<10))
			}
			for i := range 11 {
				list = append(list, sized(fmt.Sprintf("small-%02d", i), "x", 1<<10))
			}
			list = append(list, exactly(t, "too-large", "x", limit+1), exactly(t, "korean", "한", limit-1), exactly(t, "just-fits", "x", limit))
			if failed := mustHandle(context.Background(), t, w.relay(w.ports()), w.batch(list...)); failed != nil {
				t.Errorf("handed back %v", failed)
			}
			if aside := w.reported()["set_aside"]; aside != 1 || slices.Contains(w.marker.marked, "event_too-large") {
				t.Errorf("%v set aside, marked %v; want the one that is too large set aside, unmarked", aside, w.marker.marked)
			}
			if len(w.marker.quarantined) != 1 || w.marker.quarantined["SLOT#too-large EVENT#0000000002"] != outbox.ReasonTooLarge {
				t.Errorf("quarantined %v", w.marker.quarantined)
			}
			sent := slices.DeleteFunc(ids(list), func(id ledger.EventID) bool { return id == "event_too-large" })
			if got := w.delivered(); !slices.Equal(got, sent) {
				t.Errorf("published %v, want %v", got, sent)
			}
			callsOfLarge := 0
			for _, call := range w.bus.Calls() {
				if strings.HasPrefix(call[0].Resources[0], "slot/large") {
					callsOfLarge++
				}
			}
			if want := map[int]int{256 << 10: 2, 1 << 20: 1}[limit]; callsOfLarge != want {
				t.Errorf("the three large entries begin %d calls, want %d", callsOfLarge, want)
			}
		})
	}
}

// The largest hold that the ledger allows is far below the smallest limit, also as the
// event that ends it.
func TestTheLargestHoldFits(t *testing.T) {
	e := event("hold_"+strings.Repeat("z", 26), 2)
	name := strings.Repeat("s", ledger.NameCharactersMax-3)
	*e.Hold = ledger.Hold{
		ID: e.Hold.ID, Owner: ledger.OwnerID(strings.Repeat("o", 128)), Status: ledger.StatusConfirmed,
		CreatedAt: start, ExpiresAt: start, ReleaseAt: start, EndedAt: start, GraceFor: time.Hour, Version: 2,
		PaymentReference: ledger.PaymentReference(strings.Repeat("p", ledger.PaymentReferenceCharactersMax)),
		Terms:            ledger.DefaultPaymentTerms(), Reservation: reservationID(1), AttemptOpen: ledger.AttemptsMax, Reacquires: e.Hold.ID,
	}
	for i := range ledger.StockActionsMax {
		slot := ledger.SlotID(fmt.Sprintf("%s-%02d", name, i%ledger.LinesMax))
		allocation := ledger.Allocation{Shard: 63, Quantity: ledger.QuantityPerLineMax}
		if i < ledger.LinesMax {
			e.Hold.Lines = append(e.Hold.Lines, ledger.Line{
				Slot: slot, Quantity: ledger.QuantityPerLineMax,
				UnitPrice:   ledger.Money{AmountMinor: ledger.AmountMinorMax, Currency: "KRW"},
				CancelUntil: start, NoRestock: true, GrantTo: slot,
			})
		}
		line := &e.Hold.Lines[i%ledger.LinesMax]
		line.Shards, line.Returned = append(line.Shards, allocation), append(line.Returned, allocation)
		e.Movements = append(e.Movements, ledger.Movement{
			Slot: slot, Shard: 63, From: ledger.BucketHeld, To: ledger.BucketConfirmed, Quantity: ledger.QuantityPerLineMax,
		})
	}
	if size := entryBytes(t, e); size > 64<<10 {
		t.Errorf("the largest hold makes an event of %d bytes; one of 64 KiB is billed once", size)
	} else {
		t.Logf("the largest hold makes an event of %d bytes", size)
	}
}

// So is the largest reservation: every attempt was made, every refund is owed, every line
// is granted.
func TestTheLargestReservationFits(t *testing.T) {
	e := reserved(1, 2, ledger.EventReservationRefundOwed, ledger.ReservationCompensating)
	r := e.Reservation
	r.Owner, r.SoldHold, r.Reason = ledger.OwnerID(strings.Repeat("o", 128)), ledger.HoldID("hold_"+strings.Repeat("z", 26)), ledger.ReasonAuthorizationLost
	r.Amount = ledger.Money{AmountMinor: ledger.AmountMinorMax, Currency: "KRW"}
	for n := range ledger.AttemptsMax {
		r.Attempts = append(r.Attempts, ledger.Attempt{
			Number: ledger.AttemptNumber(n + 1), Payment: ledger.PaymentID(strings.Repeat("p", 128)), State: ledger.AttemptAuthorized,
			Unwanted: true, CapturedMinor: ledger.AmountMinorMax, OpenedAt: start, AuthorizedAt: start,
		})
	}
	for n := range ledger.RefundsMax {
		r.Refunds = append(r.Refunds, ledger.Refund{
			Number: n + 1, Attempt: ledger.AttemptsMax, AmountMinor: ledger.AmountMinorMax, Reason: ledger.ReasonAuthorizationLost,
			State: ledger.RefundFailed, OwedAt: start, EndedAt: start,
		})
	}
	for n := range ledger.LinesMax {
		slot := ledger.SlotID(fmt.Sprintf("%s-%02d", strings.Repeat("s", ledger.NameCharactersMax-3), n))
		r.Grants = append(r.Grants, ledger.Grant{Slot: slot, Shard: 63, Quantity: ledger.QuantityPerLineMax})
		e.Movements = append(e.Movements, ledger.Movement{
			Slot: slot, Shard: 63, From: ledger.BucketAvailable, To: ledger.BucketOutside, Quantity: ledger.QuantityPerLineMax,
		})
	}
	if size := entryBytes(t, e); size > 64<<10 {
		t.Errorf("the largest reservation makes an event of %d bytes; one of 64 KiB is billed once", size)
	} else {
		t.Logf("the largest reservation makes an event of %d bytes", size)
	}
}
