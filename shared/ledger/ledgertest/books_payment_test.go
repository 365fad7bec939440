package ledgertest_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
)

// books are the names of all that a store has.
type books struct {
	store        *memory.Store
	slots        []ledger.SlotID
	holds        []ledger.HoldID
	reservations []ledger.ReservationID
}

func (b books) check(t ledgertest.TB, store ledger.Store) {
	ledgertest.CheckBooks(t, store, b.slots, b.holds, b.reservations...)
}

// mustPay stores a hold of two units that was late: over when its payment came, so that
// another one was born in its place. One unit of that is given back, and the sale has
// granted three units of another slot.
func mustPay(t *testing.T) books {
	t.Helper()
	store, now := memory.New(), time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	drawn := byte(100)
	origin := func() ledger.Origin {
		drawn++
		return ledger.Origin{EventID: ledger.NewEventID([16]byte{drawn})}
	}
	must := func(change ledger.Change, err error) ledger.Change {
		t.Helper()
		if err == nil {
			err = store.Commit(t.Context(), change)
		}
		if err != nil {
			t.Fatal(err)
		}
		return change
	}
	define := func(id ledger.SlotID) ledger.Slot {
		return must(ledger.NewSlot(id, ledger.SlotDefinition{
			ResourceType: "show", ResourceID: "hamlet", Capacity: 5, Policy: ledger.DefaultPolicy(),
			Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 1},
		}, origin(), now)).Slots[0].Next
	}
	slot := define("S")
	define("W")
	hold := must(ledger.NewHold(ledger.HoldPlan{
		ID: ledger.NewHoldID([16]byte{1}), Owner: "U-1", Slots: map[ledger.SlotID]ledger.Slot{"S": slot},
		Quotes:      []ledger.Quote{{Slot: "S", Quantity: 2, UnitAmount: 500}},
		Allocations: map[ledger.SlotID][]ledger.Allocation{"S": {{Shard: 0, Quantity: 2}}},
	}, origin(), now)).Holds[0].Next
	id := ledger.NewReservationID([16]byte{2})
	hold = must(ledger.StartAttempt(hold, id, 1, origin(), now)).Holds[0].Next
	now = hold.ReleaseAt
	late := must(ledger.Reacquire(hold, nil, origin(), now)).Holds[1].Next
	must(ledger.Return(late, []ledger.ReturnLine{{Slot: "S", Quantity: 1}}, origin(), now))
	r := ledger.Reservation{ID: id, Owner: "U-1", Hold: hold.ID, Status: ledger.ReservationAuthorized, LookAt: now}
	r = must(ledger.ReservationStep(ledger.Reservation{}, r, ledger.EventReservationAuthorized, nil, origin(), now), nil).Reservations[0].Next
	next := r
	next.Status, next.SoldHold, next.Grants = ledger.ReservationConfirmed, late.ID, []ledger.Grant{{Slot: "W", Quantity: 3}}
	must(ledger.ReservationStep(r, next, ledger.EventReservationConfirmed,
		[]ledger.Movement{{Slot: "W", From: ledger.BucketOutside, To: ledger.BucketAvailable, Quantity: 3}}, origin(), now), nil)
	if err := store.Postpone(t.Context(), id, 2, now.Add(time.Hour), 3); err != nil {
		t.Fatal(err)
	}
	return books{store, []ledger.SlotID{"S", "W"}, []ledger.HoldID{hold.ID, late.ID}, []ledger.ReservationID{id}}
}

// TestCheckBooksFindsEachFaultOfAPayment plants one fault at a time, as
// TestCheckBooksFindsEachFault does.
func TestCheckBooksFindsEachFaultOfAPayment(t *testing.T) {
	late := func(h *ledger.Hold) bool { return h.Reacquires != "" }
	tests := []struct {
		name string
		lie  lying
		want string
	}{
		{"nothing", lying{}, ""},
		{"a return that is not counted", lying{hold: func(h *ledger.Hold) { h.Lines[0].Returned = nil }}, "P2:"},
		{"RETURNED with a unit left", lying{hold: func(h *ledger.Hold) {
			if late(h) {
				h.Status = ledger.StatusReturned
			}
		}}, "is RETURNED with 1 of 2 units"},
		{"units back from what was not sold", lying{hold: func(h *ledger.Hold) {
			if !late(h) {
				h.Lines[0].Returned = []ledger.Allocation{{Quantity: 1}}
			}
		}}, "is EXPIRED and has given back"},
		{"a hold in the place of none", lying{hold: func(h *ledger.Hold) { h.Reacquires = "" }}, `reacquires ""`},
		{"a hold that expired without its units", lying{hold: func(h *ledger.Hold) { h.Reacquires = "another" }}, "moves 0 units, want 2"},
		{"an attempt that nobody started", lying{holdEvents: func(e []ledger.Event) []ledger.Event {
			e[1].Type = ledger.EventHoldPaymentClosed
			return e
		}}, "hold.payment_closed of hold"},
		{"an attempt that is still open", lying{holdEvents: func(e []ledger.Event) []ledger.Event {
			e[len(e)-1].Hold.AttemptOpen = 1
			return e
		}}, "should be"},
		{"a sale of what was over", lying{holdEvents: func(e []ledger.Event) []ledger.Event {
			e[len(e)-1].Type = ledger.EventHoldConfirmed
			return e
		}}, "hold.confirmed of hold"},
		{"a return to where it came from", lying{holdEvents: func(e []ledger.Event) []ledger.Event {
			for _, m := range e[1].Movements {
				m.To = ledger.BucketHeld
				e[1].Movements[0] = m
			}
			return e
		}}, "moves units from confirmed to held"},
		{"a payment that moves stock", lying{holdEvents: func(e []ledger.Event) []ledger.Event {
			if e[1].Type == ledger.EventHoldPaymentStarted {
				e[1].Movements = e[0].Movements
			}
			return e
		}}, "hold.payment_started of hold"},
		{"a grant that was not made", lying{reservation: func(r *ledger.Reservation) { r.Grants[0].Quantity = 4 }}, "granted -1 more"},
		{"a grant that is not told", lying{reservation: func(r *ledger.Reservation) { r.Grants = nil }}, "granted 3 more"},
		{"a grant from what is sold", lying{reservationEvents: func(e []ledger.Event) []ledger.Event {
			e[1].Movements[0].From = ledger.BucketConfirmed
			return e
		}}, "moves units from confirmed to available"},
		{"a sale of the hold that was over", lying{reservation: func(r *ledger.Reservation) { r.SoldHold = r.Hold }}, "P8:"},
		{"a sale of no hold", lying{reservation: func(r *ledger.Reservation) { r.SoldHold = "" }}, "P8:"},
		{"a sale of another's hold", lying{hold: func(h *ledger.Hold) { h.Reservation = "another" }}, "P8:"},
		{"a reservation that is not what its event tells", lying{reservation: func(r *ledger.Reservation) { r.Reason = ledger.ReasonLate }}, "the last event of reservation"},
		{"a lost event", lying{reservationEvents: func(e []ledger.Event) []ledger.Event { return e[:1] }}, "is at version 2 but has 1 events"},
	}
	for _, test := range tests {
		all := mustPay(t)
		test.lie.Store = all.store
		var audit recorder
		all.check(&audit, test.lie)
		reports := strings.Join(audit.reports, "\n")
		switch {
		case test.want == "" && reports != "":
			t.Errorf("%s: the audit reports %s", test.name, reports)
		case !strings.Contains(reports, test.want):
			t.Errorf("%s: the audit does not say %q: %s", test.name, test.want, reports)
		}
	}
}

func TestCheckBooksMissesNoReservation(t *testing.T) {
	all := mustPay(t)
	all.reservations = nil
	var audit recorder
	all.check(&audit, all.store)
	if reports := strings.Join(audit.reports, "\n"); !strings.Contains(reports, "its events add up to") {
		t.Errorf("an audit that is not told of a reservation reports %q", reports)
	}
}
