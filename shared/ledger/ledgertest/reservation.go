package ledgertest

import (
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

var reservationRules = []rule{
	{"SmallestIsStoredExactly", smallestReservationIsStoredExactly},
	{"LargestIsStoredExactly", largestReservationIsStoredExactly},
	{"UnknownIsNotFound", unknownReservationIsNotFound},
	{"CreatedTwice", reservationCreatedTwice},
	{"MissingIsRefused", missingReservationIsRefused},
	{"StaleVersionIsRefused", staleReservationIsRefused},
	{"WrongStatusIsRefused", wrongStatusIsRefused},
	{"P5_SaleIsOneChange", saleIsOneChange},
	{"P5_RepeatedAfterALostAnswer", repeatedSaleIsRecognised},
	{"OneReservationPaysAHold", oneReservationPaysAHold},
	{"ClaimedTellsWho", claimedTellsWho},
	{"KeepsNoReferenceToItsCaller", reservationIsKeptApart},
}

func smallestReservationIsStoredExactly(f *fixture) {
	next := ledger.Reservation{ID: f.reservationID(), Owner: theOwner, Hold: f.holdID(), Status: ledger.ReservationAuthorized, Amount: ledger.Money{Currency: dollar}}
	change := f.step(ledger.Reservation{}, next, ledger.EventReservationAuthorized, f.origin(ledger.CommandStartPayment))
	f.commit(change)
	want := change.Reservations[0].Next
	f.equal("reservation", f.storedReservation(want.ID), want)
	events, err := f.store.ReservationEvents(f.ctx, want.ID)
	f.read(err)
	f.equal("events", events, change.Events)
	if _, listed := f.lookAt(want.ID); listed {
		f.Errorf("a reservation that is never looked at is in the due index")
	}
	CheckBooks(f.T, f.store, nil, nil, want.ID)
}

// largestReservation has every part at its limit.
func (f *fixture) largestReservation() ledger.Reservation {
	r := ledger.Reservation{
		ID: f.reservationID(), Owner: theOwner, Hold: f.holdID(), SoldHold: f.holdID(), Status: ledger.ReservationAuthorized,
		Reason: ledger.ReasonOwnerCanceled, Amount: ledger.Money{AmountMinor: ledger.AmountMinorMax, Currency: dollar},
		DeliveredAt: f.now.Add(7 * time.Millisecond), ApprovedAt: f.now.Add(9 * time.Millisecond), LookAt: f.now.Add(77 * time.Millisecond),
	}
	for n := range ledger.AttemptsMax {
		r.Attempts = append(r.Attempts, ledger.Attempt{
			Number: ledger.AttemptNumber(n + 1), Payment: ledger.PaymentID(fmt.Sprintf("pi_%026d", n)), State: ledger.AttemptCaptured,
			Unwanted: n > 0, CapturedMinor: ledger.AmountMinorMax,
			OpenedAt: f.now.Add(time.Duration(n) * time.Millisecond), AuthorizedAt: f.now.Add(time.Duration(n) * time.Second),
		})
	}
	for n := range ledger.RefundsMax {
		states := []ledger.RefundState{ledger.RefundOwed, ledger.RefundDone, ledger.RefundFailed}
		refund := ledger.Refund{
			Number: n + 1, Attempt: ledger.AttemptNumber(n%ledger.AttemptsMax + 1), AmountMinor: ledger.AmountMinorMax / ledger.RefundsMax,
			Reason: ledger.ReasonAuthorizationLost, State: states[n%len(states)], OwedAt: f.now.Add(time.Duration(n) * time.Second),
			Again: n, ByHand: states[n%len(states)] == ledger.RefundDone,
		}
		if refund.State != ledger.RefundOwed {
			refund.EndedAt = refund.OwedAt.Add(time.Millisecond)
		}
		r.Refunds = append(r.Refunds, refund)
	}
	return r
}

func largestReservationIsStoredExactly(f *fixture) {
	next := f.largestReservation()
	var slots []ledger.SlotID
	var movements []ledger.Movement
	for n := range ledger.LinesMax {
		slot := f.slot(ledger.SlotID(fmt.Sprintf("wallet-%02d", n)), definition(0, 1))
		slots = append(slots, slot.ID)
		next.Grants = append(next.Grants, ledger.Grant{Slot: slot.ID, Quantity: ledger.QuantityPerLineMax})
		movements = append(movements, ledger.Movement{Slot: slot.ID, From: ledger.BucketOutside, To: ledger.BucketAvailable, Quantity: ledger.QuantityPerLineMax})
	}
	first := ledger.ReservationStep(ledger.Reservation{}, next, ledger.EventReservationAuthorized, movements, f.origin(ledger.CommandDriveReservation), f.now)
	f.commit(first)
	stored := f.storedReservation(next.ID)
	f.equal("reservation", stored, first.Reservations[0].Next)
	at, listed := f.lookAt(next.ID)
	f.equal("is in the due index", listed, true)
	f.equal("time of the next look", at, next.LookAt)

	f.now = f.now.Add(time.Minute)
	next = stored.Clone()
	next.LookAt = time.Time{}
	second := f.step(stored, next, ledger.EventReservationPaymentNoticed, f.origin(ledger.CommandDriveReservation))
	f.commit(second)
	stored = f.storedReservation(next.ID)
	f.equal("reservation", stored, second.Reservations[0].Next)
	f.equal("made", stored.CreatedAt, noon)
	f.equal("changed", stored.UpdatedAt, f.now)
	f.equal("came to its status", stored.StatusSince, noon)
	if _, listed := f.lookAt(next.ID); listed {
		f.Errorf("a reservation that is not looked at again is in the due index")
	}
	events, err := f.store.ReservationEvents(f.ctx, next.ID)
	f.read(err)
	f.equal("events", events, append(first.Events, second.Events...))
	CheckBooks(f.T, f.store, slots, nil, next.ID)
}

func unknownReservationIsNotFound(f *fixture) {
	_, err := f.store.Reservation(f.ctx, f.reservationID())
	f.equal("code", ledger.CodeOf(err), ledger.CodeReservationNotFound)
	events, err := f.store.ReservationEvents(f.ctx, f.reservationID())
	f.read(err)
	f.equal("number of events", len(events), 0)
}

// refusedReservation is the leg of a reservation that refused a change as it is stored.
func (f *fixture) refusedReservation(id ledger.ReservationID) ledger.RefusedLeg {
	f.Helper()
	reservation := f.storedReservation(id)
	return ledger.RefusedLeg{Kind: ledger.LegReservation, Reservation: &reservation}
}

func reservationCreatedTwice(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	_, reservation := f.paying(one(slot, 1))
	events, err := f.store.ReservationEvents(f.ctx, reservation.ID)
	f.read(err)
	again := reservation
	again.Version, again.Owner = 0, "another owner"
	f.refuse(f.step(ledger.Reservation{}, again, ledger.EventReservationPaymentStarted, f.origin(ledger.CommandStartPayment)),
		f.refusedReservation(reservation.ID), ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &events[0]})
}

func missingReservationIsRefused(f *fixture) {
	r := ledger.Reservation{ID: f.reservationID(), Owner: theOwner, Hold: f.holdID(), Status: ledger.ReservationAuthorized, Version: 1}
	f.refuse(f.step(r, r, ledger.EventReservationPaymentNoticed, f.origin(ledger.CommandDriveReservation)),
		ledger.RefusedLeg{Kind: ledger.LegReservation})
}

func staleReservationIsRefused(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	_, reservation := f.paying(one(slot, 1))
	for _, version := range []ledger.Version{reservation.Version + 1, reservation.Version + 2} {
		stale := reservation
		stale.Version = version
		f.refuse(f.step(stale, stale, ledger.EventReservationPaymentNoticed, f.origin(ledger.CommandDriveReservation)),
			f.refusedReservation(reservation.ID))
	}
}

// wrongStatusIsRefused names the right version, so that only the status can refuse it.
func wrongStatusIsRefused(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	_, reservation := f.paying(one(slot, 1))
	pretended, next := reservation, reservation
	pretended.Status, next.Status = ledger.ReservationConfirmed, ledger.ReservationCaptured
	f.refuse(f.step(pretended, next, ledger.EventReservationCaptured, f.origin(ledger.CommandDriveReservation)), f.refusedReservation(reservation.ID))
	f.authorized(reservation)
}

// saleIsOneChange: when the hold or the reservation refuses, neither is sold.
func saleIsOneChange(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold, reservation := f.paying(one(slot, 1))
	pending := f.sold(hold, reservation)
	pending.Reservations[0].From = ledger.ReservationAuthorized
	f.refuse(pending, f.refusedReservation(reservation.ID))
	reservation = f.authorized(reservation)
	sale := f.sold(hold, reservation)
	late := sale
	late.At = hold.ReleaseAt
	f.refuse(late, f.refusedHold(hold.ID))
	f.commit(sale)
	f.equal("hold", f.storedHold(hold.ID), sale.Holds[0].Next)
	f.equal("reservation", f.storedReservation(reservation.ID), sale.Reservations[0].Next)
	f.counters(slot, ledger.Counters{Available: 3, Confirmed: 1, Capacity: 4})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID}, reservation.ID)
}

// repeatedSaleIsRecognised: a change of two events was applied if both are there. One of
// another request, which shares none, was not.
func repeatedSaleIsRecognised(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	start := f.started(f.held(one(slot, 1)))
	f.commit(start)
	after := f.snapshot(start)
	f.commit(start)
	f.equal("everything that can be read, after the second try", f.snapshot(start), after)
	hold, reservation := start.Holds[0].Next, f.authorized(start.Reservations[0].Next)
	sale, other := f.sold(hold, reservation), f.sold(hold, reservation)
	f.commit(sale)
	after = f.snapshot(sale)
	f.commit(sale)
	f.commit(start)
	f.equal("everything that can be read, after late tries", f.snapshot(sale), after)
	if err := f.store.Commit(f.ctx, other); err == nil {
		f.Errorf("the sale of another request was taken for this one")
	}
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID}, reservation.ID)
}

func oneReservationPaysAHold(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	hold := f.held(one(slot, 1))
	first := f.started(hold)
	claim := first.Uniqueness[0]
	f.commit(ledger.Change{At: f.now, Uniqueness: []ledger.Uniqueness{claim}})
	f.refuse(first, ledger.RefusedLeg{Kind: ledger.LegUniqueness, Uniqueness: &claim})
	f.refuse(f.started(hold), ledger.RefusedLeg{Kind: ledger.LegUniqueness, Uniqueness: &claim})
}

func claimedTellsWho(f *fixture) {
	r := ledger.Reservation{ID: f.reservationID(), Hold: f.holdID()}
	claims := []ledger.Uniqueness{
		r.ClaimHold(), r.ClaimPayment("pi_#1/é"), r.ClaimEvent("evt_1"),
		{Kind: ledger.UniquePaymentReference, Value: "evt_1", Hold: f.holdID()},
	}
	f.commit(ledger.Change{At: f.now, Uniqueness: claims})
	for _, claim := range claims {
		stored, found, err := f.store.Claimed(f.ctx, claim.Kind, claim.Value)
		f.read(err)
		f.equal("found", found, true)
		f.equal("claim", stored, claim)
	}
	_, found, err := f.store.Claimed(f.ctx, ledger.UniqueProviderEvent, "pi_#1/é")
	f.read(err)
	f.equal("found what nobody claimed", found, false)
}

func reservationIsKeptApart(f *fixture) {
	next := f.largestReservation()
	change := f.step(ledger.Reservation{}, next, ledger.EventReservationAuthorized, f.origin(ledger.CommandDriveReservation))
	f.commit(change)
	change.Reservations[0].Next.Attempts[0].Payment = "changed by the caller"
	change.Events[0].Reservation.Refunds[0].AmountMinor = 99
	f.storedReservation(next.ID).Attempts[0].Payment = "changed by a reader"
	f.equal("payment", f.storedReservation(next.ID).Attempts[0].Payment, ledger.PaymentID(fmt.Sprintf("pi_%026d", 0)))
	events, err := f.store.ReservationEvents(f.ctx, next.ID)
	f.read(err)
	f.equal("amount in the event", events[0].Reservation.Refunds[0].AmountMinor, int64(ledger.AmountMinorMax/ledger.RefundsMax))
}
