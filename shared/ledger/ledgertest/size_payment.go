package ledgertest

import (
	"fmt"

	"holdfast/shared/ledger"
)

// largestTakes are the lines of a hold that takes from the most stock items that one hold
// may, all of them of slots with that prefix.
func (f *fixture) largestTakes(prefix string) ([]take, []ledger.SlotID) {
	f.Helper()
	const twoShards = ledger.StockActionsMax - ledger.LinesMax
	var takes []take
	var ids []ledger.SlotID
	for i := range ledger.LinesMax {
		slot := f.slot(ledger.SlotID(fmt.Sprintf("%s-%02d", prefix, i)), definition(8, 2))
		shards := []ledger.Allocation{{Shard: 1, Quantity: 2}}
		if i < twoShards {
			shards = append([]ledger.Allocation{{Shard: 0, Quantity: 3}}, shards...)
		}
		takes, ids = append(takes, take{slot, shards}), append(ids, slot.ID)
	}
	return takes, ids
}

// largestHoldIsPaidAndReturned ends the largest hold together with its reservation and a
// request's record, and gives all of it back in the same company.
func largestHoldIsPaidAndReturned(f *fixture) {
	takes, slots := f.largestTakes("A")
	hold, reservation := f.paying(takes...)
	sale := f.sold(hold, f.authorized(reservation))
	sale.Idempotency = f.record("sale")
	sale.Uniqueness = []ledger.Uniqueness{reservation.ClaimEvent("evt_1")}
	f.equal("number of actions of the sale", sale.Actions(), ledger.StockActionsMax+6)
	f.commit(sale)
	f.equal("hold", f.storedHold(hold.ID), sale.Holds[0].Next)
	CheckBooks(f.T, f.store, slots, []ledger.HoldID{hold.ID}, reservation.ID)

	sold := f.storedReservation(reservation.ID)
	next := sold.Clone()
	next.Status, next.Attempts[0].Unwanted = ledger.ReservationCompensating, true
	origin := f.origin(ledger.CommandCancelReservation)
	back := ledger.Together(
		f.built(ledger.Return(f.storedHold(hold.ID), nil, origin.Beside("hold"), f.now)),
		f.step(sold, next, ledger.EventReservationCompensating, origin))
	back.Idempotency = f.record("back")
	f.commit(back)
	f.equal("hold", f.storedHold(hold.ID), back.Holds[0].Next)
	f.equal("status", back.Holds[0].Next.Status, ledger.StatusReturned)
	CheckBooks(f.T, f.store, slots, []ledger.HoldID{hold.ID}, reservation.ID)
}

// mostGrants sells and credits as many slots as one hold may: a slot that credits another
// counts as two stock items, because a cancellation writes both.
func mostGrants(f *fixture) {
	const lines = ledger.StockActionsMax / 2
	var takes []take
	var slots []ledger.SlotID
	var stock []ledger.Stock
	for i := range lines {
		wallet := f.slot(ledger.SlotID(fmt.Sprintf("wallet-%02d", i)), definition(0, 4))
		d := definition(4, 1)
		d.Policy.GrantTo = string(wallet.ID)
		sold := f.slot(ledger.SlotID(fmt.Sprintf("pack-%02d", i)), d)
		takes, slots = append(takes, one(sold, 3)), append(slots, wallet.ID, sold.ID)
		stock = append(stock, f.stock(wallet)...)
	}
	hold, reservation := f.paying(takes...)
	f.commit(f.sold(hold, f.authorized(reservation)))
	paid := f.storedReservation(reservation.ID)
	movements, grants, err := ledger.GrantSteps(paid, f.storedHold(hold.ID), stock)
	if err != nil {
		f.Fatalf("grants: %v", err)
	}
	next := paid.Clone()
	next.Status, next.Grants = ledger.ReservationCaptured, grants
	next.Attempts[0].State, next.Attempts[0].CapturedMinor = ledger.AttemptCaptured, next.Amount.AmountMinor
	change := ledger.ReservationStep(paid, next, ledger.EventReservationCaptured, movements, f.origin(ledger.CommandDriveReservation), f.now)
	f.equal("number of stock actions", len(change.Stock), lines)
	f.commit(change)
	f.equal("reservation", f.storedReservation(paid.ID), change.Reservations[0].Next)
	CheckBooks(f.T, f.store, slots, []ledger.HoldID{hold.ID}, reservation.ID)
}

// largestHoldIsReacquired ends the largest hold and sells its units to the same
// reservation in one step.
func largestHoldIsReacquired(f *fixture) {
	takes, slots := f.largestTakes("A")
	hold, reservation := f.paying(takes...)
	reservation = f.authorized(reservation)
	f.now = hold.ReleaseAt
	next := reservation.Clone()
	next.Status, next.SoldHold, next.Reason = ledger.ReservationConfirmed, ledger.ReacquiredID(hold), ledger.ReasonLate
	change := ledger.Together(f.reacquired(hold, nil),
		f.step(reservation, next, ledger.EventReservationConfirmed, f.origin(ledger.CommandDriveReservation)))
	change.Idempotency = f.record("late")
	f.equal("number of actions", change.Actions(), ledger.StockActionsMax+7)
	f.commit(change)
	CheckBooks(f.T, f.store, slots, []ledger.HoldID{hold.ID, ledger.ReacquiredID(hold)}, reservation.ID)
}
