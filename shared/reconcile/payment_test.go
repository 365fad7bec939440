package reconcile_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/reconcile"
)

// till is a ledger in memory in which holds are paid, with the names of all that is in it.
type till struct {
	*testing.T
	store        *memory.Store
	now          time.Time
	drawn        byte
	slots        []ledger.SlotID
	holds        []ledger.HoldID
	reservations []ledger.ReservationID
}

func (t *till) random() [16]byte {
	t.drawn++
	return [16]byte{t.drawn}
}

func (t *till) origin() ledger.Origin { return ledger.Origin{EventID: ledger.NewEventID(t.random())} }

// commit applies a change that could be built.
func (t *till) commit(c ledger.Change, err error) ledger.Change {
	t.Helper()
	if err == nil {
		err = t.store.Commit(t.Context(), c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (t *till) slot(id ledger.SlotID, capacity ledger.Units, grantTo ledger.SlotID) ledger.Slot {
	t.Helper()
	d := ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "R-1", Capacity: capacity, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 1},
	}
	d.Policy.GrantTo = string(grantTo)
	t.slots = append(t.slots, id)
	return t.commit(ledger.NewSlot(id, d, t.origin(), t.now)).Slots[0].Next
}

// pay begins the payment of a new hold of the slot.
func (t *till) pay(slot ledger.Slot, units ledger.Units) (ledger.Hold, ledger.Reservation) {
	t.Helper()
	hold := t.commit(ledger.NewHold(ledger.HoldPlan{
		ID: ledger.NewHoldID(t.random()), Owner: "U-1",
		Quotes:      []ledger.Quote{{Slot: slot.ID, Quantity: units, UnitAmount: 500}},
		Slots:       map[ledger.SlotID]ledger.Slot{slot.ID: slot},
		Allocations: map[ledger.SlotID][]ledger.Allocation{slot.ID: {{Shard: 0, Quantity: units}}},
	}, t.origin(), t.now)).Holds[0].Next
	next := ledger.Reservation{
		ID: ledger.NewReservationID(t.random()), Owner: "U-1", Hold: hold.ID, Status: ledger.ReservationPaymentPending,
		Amount: hold.Total(), Attempts: []ledger.Attempt{{Number: 1, State: ledger.AttemptOpen, OpenedAt: t.now}}, LookAt: t.now,
	}
	started, err := ledger.StartAttempt(hold, next.ID, 1, t.origin(), t.now)
	change := t.commit(ledger.Together(started, t.step(ledger.Reservation{}, next, nil)), err)
	t.holds, t.reservations = append(t.holds, hold.ID), append(t.reservations, next.ID)
	return change.Holds[0].Next, change.Reservations[0].Next
}

func (t *till) step(r, next ledger.Reservation, movements []ledger.Movement) ledger.Change {
	return ledger.ReservationStep(r, next, ledger.EventReservationPaymentNoticed, movements, t.origin(), t.now)
}

// move takes the reservation to another status, beside a change of its hold.
func (t *till) move(r ledger.Reservation, status ledger.ReservationStatus, beside ledger.Change, alter func(*ledger.Reservation)) ledger.Reservation {
	t.Helper()
	next := r.Clone()
	next.Status = status
	if alter != nil {
		alter(&next)
	}
	return t.commit(ledger.Together(t.step(r, next, nil), beside), nil).Reservations[0].Next
}

func (t *till) built(c ledger.Change, err error) ledger.Change {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The places of what paid makes.
const (
	completed = iota // sold, granted, and one of three units given back
	pending          // waits for its payment, which is open
	late             // sold after its hold was over, into the third hold's place
	refunded         // paid in vain, and given back
)

// paid is a sound ledger with a reservation of each of these kinds, in this order.
func paid(tb *testing.T) ledger.Records {
	tb.Helper()
	t := &till{T: tb, store: memory.New(), now: start}
	wallet := t.slot("wallet", 0, "")
	slot := t.slot("S-1", 20, wallet.ID)

	hold, r := t.pay(slot, 3)
	r = t.move(r, ledger.ReservationAuthorized, ledger.Change{}, func(r *ledger.Reservation) { r.Attempts[0].State = ledger.AttemptAuthorized })
	r = t.move(r, ledger.ReservationConfirmed, t.built(ledger.ConfirmPaid(hold, t.origin(), t.now)), func(r *ledger.Reservation) { r.SoldHold = hold.ID })
	r = t.move(r, ledger.ReservationCaptured, ledger.Change{}, func(r *ledger.Reservation) {
		r.Attempts[0].State, r.Attempts[0].CapturedMinor = ledger.AttemptCaptured, 1500
	})
	next := r.Clone()
	next.Status, next.LookAt = ledger.ReservationCompleted, time.Time{}
	next.Grants = []ledger.Grant{{Slot: wallet.ID, Quantity: 3}}
	r = t.commit(t.step(r, next, []ledger.Movement{{Slot: wallet.ID, From: ledger.BucketOutside, To: ledger.BucketAvailable, Quantity: 3}}), nil).Reservations[0].Next
	sold, err := t.store.Hold(tb.Context(), hold.ID)
	back := t.built(ledger.Return(sold, []ledger.ReturnLine{{Slot: "S-1", Quantity: 1}}, t.origin(), t.now))
	if err != nil {
		tb.Fatal(err)
	}
	t.move(r, ledger.ReservationCompleted, back, func(r *ledger.Reservation) {
		r.Owe(1, 500, ledger.ReasonReturned, t.now)
		r.LookAt = t.now
	})

	t.pay(slot, 1)

	hold, r = t.pay(slot, 2)
	r = t.move(r, ledger.ReservationAuthorized, ledger.Change{}, func(r *ledger.Reservation) { r.Attempts[0].State = ledger.AttemptAuthorized })
	t.now = hold.ReleaseAt
	t.holds = append(t.holds, ledger.ReacquiredID(hold))
	t.move(r, ledger.ReservationConfirmed, t.built(ledger.Reacquire(hold, nil, t.origin(), t.now)), func(r *ledger.Reservation) { r.SoldHold = ledger.ReacquiredID(hold) })

	t.now = start
	hold, r = t.pay(slot, 4)
	r = t.move(r, ledger.ReservationCompensating, t.built(ledger.ReleaseUnpaid(hold, t.origin(), t.now)), func(r *ledger.Reservation) {
		r.Attempts[0] = ledger.Attempt{Number: 1, State: ledger.AttemptCaptured, Unwanted: true, CapturedMinor: 2000, OpenedAt: t.now}
		r.Owe(1, 2000, ledger.ReasonLate, t.now)
	})
	t.move(r, ledger.ReservationRefunded, ledger.Change{}, func(r *ledger.Reservation) {
		r.Refunds[0].State, r.LookAt = ledger.RefundDone, time.Time{}
	})
	return t.records()
}

// records reads all that is there, as a sound table has it.
func (t *till) records() ledger.Records {
	t.Helper()
	var r ledger.Records
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var err error
	r.Slots, err = t.store.Slots(t.Context(), t.slots)
	must(err)
	r.Stock, err = t.store.Stock(t.Context(), r.Slots)
	must(err)
	for _, id := range t.slots {
		events, err := t.store.SlotEvents(t.Context(), id)
		must(err)
		r.Events = append(r.Events, events...)
	}
	for _, id := range t.holds {
		hold, err := t.store.Hold(t.Context(), id)
		must(err)
		events, err := t.store.HoldEvents(t.Context(), id)
		must(err)
		_, due := hold.DueAt()
		_, archivable := hold.ArchiveFrom(hold.EndedAt)
		r.Holds, r.Events = append(r.Holds, ledger.StoredHold{Hold: hold, Due: due, Archivable: archivable}), append(r.Events, events...)
	}
	for _, id := range t.reservations {
		reservation, err := t.store.Reservation(t.Context(), id)
		must(err)
		events, err := t.store.ReservationEvents(t.Context(), id)
		must(err)
		_, archivable := reservation.ArchiveFrom()
		r.Reservations = append(r.Reservations, ledger.StoredReservation{
			Reservation: reservation, Due: !reservation.LookAt.IsZero(), Archivable: archivable,
		})
		r.Events = append(r.Events, events...)
	}
	return r
}

func TestSoundPaidBooksHaveNoViolation(t *testing.T) {
	report, err := reconcile.AuditAtRest(context.Background(), pages{paid(t)}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[ledger.Currency]reconcile.Money{"USD": {Captured: 3500, Refunded: 2000, Owed: 500}}
	if report.Reservations != 4 || report.Holds != 5 || len(report.Findings) > 0 || !reflect.DeepEqual(report.Money, want) {
		t.Errorf("report %+v; want 4 reservations, 5 holds, %v and no violation", report, want)
	}
}

// Every way to break the books of payments is found, under the promise that it breaks
// and on the thing that is broken.
func TestBrokenPaidBooksAreFound(t *testing.T) {
	reservation := func(r *ledger.Records, kind int) *ledger.Reservation { return &r.Reservations[kind].Reservation }
	hold := func(r *ledger.Records, i int) *ledger.Hold { return &r.Holds[i].Hold }
	const heldPending, born = 1, 3 // in the order in which till names the holds
	for _, broken := range []struct {
		name    string
		promise string
		subject string
		how     func(*ledger.Records)
	}{
		{"a return that is not counted", "P3", "hold", func(r *ledger.Records) { hold(r, 0).Lines[0].Returned = nil }},
		{"more returned than sold", "P3", "hold", func(r *ledger.Records) { hold(r, 0).Lines[0].Returned[0].Quantity = 4 }},
		{"RETURNED with units left", "P3", "hold", func(r *ledger.Records) { hold(r, 0).Status = ledger.StatusReturned }},
		{"returned of a hold that was not sold", "P3", "hold", func(r *ledger.Records) {
			hold(r, heldPending).Lines[0].Returned = []ledger.Allocation{{Quantity: 1}}
		}},
		{"a grant that no event made", "P3", "reservation", func(r *ledger.Records) { reservation(r, completed).Grants[0].Quantity++ }},
		{"a grant without stock", "P3", "stock of wallet, shard 0", func(r *ledger.Records) {
			i := slices.IndexFunc(r.Stock, func(s ledger.Stock) bool { return s.Slot == "wallet" })
			r.Stock[i].Counters = ledger.Counters{}
		}},
		{"two holds of one late payment", "P3", "hold", func(r *ledger.Records) { hold(r, 2).Status = ledger.StatusConfirmed }},
		{"a status that is only shown", "P3", "hold", func(r *ledger.Records) { hold(r, heldPending).Status = ledger.StatusPaymentChecking }},
		{"a hold in the place of none", "P3", "hold", func(r *ledger.Records) { hold(r, born).Reacquires = "hold_none" }},
		{"a hold whose reservation is lost", "P5", "hold", func(r *ledger.Records) { r.Reservations = r.Reservations[1:] }},
		{"a reservation of another hold", "P5", "reservation", func(r *ledger.Records) { reservation(r, pending).Hold = hold(r, 0).ID }},
		{"a reservation without its event", "P5", "reservation", func(r *ledger.Records) { reservation(r, pending).Version++ }},
		{"an attempt that can't succeed keeps the hold", "P9", "hold", func(r *ledger.Records) {
			reservation(r, pending).Attempts[0].State = ledger.AttemptVoided
		}},
		{"an attempt that was never made keeps the hold", "P9", "hold", func(r *ledger.Records) { hold(r, heldPending).AttemptOpen = 2 }},
		{"an ended hold with an open attempt", "P9", "hold", func(r *ledger.Records) { hold(r, 0).AttemptOpen = 1 }},
		{"a pending reservation that nobody looks at", "P9", "reservation", func(r *ledger.Records) {
			reservation(r, pending).LookAt, r.Reservations[pending].Due = time.Time{}, false
		}},
		{"looked at, and not in the due index", "P9", "reservation", func(r *ledger.Records) { r.Reservations[late].Due = false }},
		{"ended, and in the due index", "P9", "reservation", func(r *ledger.Records) { r.Reservations[refunded].Due = true }},
		{"an owed refund that nobody gives", "P8", "reservation", func(r *ledger.Records) {
			reservation(r, completed).LookAt, r.Reservations[completed].Due = time.Time{}, false
		}},
		{"a sale without a sold hold", "P8", "reservation", func(r *ledger.Records) { reservation(r, late).SoldHold = reservation(r, late).Hold }},
		{"a sale of another reservation's hold", "P8", "reservation", func(r *ledger.Records) { reservation(r, late).SoldHold = hold(r, 0).ID }},
		{"a capture of another amount", "P8", "reservation", func(r *ledger.Records) { reservation(r, completed).Attempts[0].CapturedMinor-- }},
		{"no capture at all", "P8", "reservation", func(r *ledger.Records) {
			reservation(r, completed).Attempts[0].State = ledger.AttemptAuthorized
		}},
		{"two captures", "P8", "reservation", func(r *ledger.Records) {
			attempts := &reservation(r, completed).Attempts
			*attempts = append(*attempts, (*attempts)[0])
		}},
		{"a surplus that is not given back", "P8", "reservation", func(r *ledger.Records) {
			attempts := &reservation(r, completed).Attempts
			*attempts = append(*attempts, ledger.Attempt{Number: 2, State: ledger.AttemptCaptured, Unwanted: true, CapturedMinor: 1500})
		}},
		{"refunds of more than was taken", "P8", "reservation", func(r *ledger.Records) { reservation(r, completed).Refunds[0].AmountMinor = 1501 }},
		{"REFUNDED and the refund failed", "P8", "reservation", func(r *ledger.Records) {
			reservation(r, refunded).Refunds[0].State = ledger.RefundFailed
		}},
		{"CANCELED with the buyer's money", "P8", "reservation", func(r *ledger.Records) {
			reservation(r, refunded).Status, reservation(r, refunded).Refunds = ledger.ReservationCanceled, nil
		}},
	} {
		t.Run(broken.name, func(t *testing.T) {
			records := paid(t)
			broken.how(&records)
			report, err := reconcile.AuditAtRest(context.Background(), pages{records}, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(report.Findings, func(v reconcile.Finding) bool {
				kind, _, _ := strings.Cut(v.Subject, " ")
				return v.Promise == broken.promise && (v.Subject == broken.subject || kind == broken.subject)
			})
			if !found {
				t.Errorf("violations %v; want one of %s by a %s", report.Findings, broken.promise, broken.subject)
			}
		})
	}
}
