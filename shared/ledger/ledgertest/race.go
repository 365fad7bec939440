package ledgertest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"holdfast/shared/ledger"
)

var raceRules = []rule{
	{"P1_LastUnit", raceForTheLastUnit},
	{"P6_SameKey", raceWithOneKey},
	{"P3_ConfirmCancelExpire", raceToEndOneHold},
	{"SameChange", raceWithOneChange},
	{"P10_StockAtOneMoment", readersSeeOneMoment},
}

const (
	raceRounds  = 10
	raceCallers = 16
)

// race commits all changes at the same instant and returns their errors in order.
func (f *fixture) race(changes []ledger.Change) []error {
	outcomes := make([]error, len(changes))
	start := make(chan struct{})
	var callers sync.WaitGroup
	for i, change := range changes {
		callers.Go(func() {
			<-start
			outcomes[i] = f.store.Commit(f.ctx, change)
		})
	}
	close(start)
	callers.Wait()
	return outcomes
}

// winner requires that exactly one outcome is a success and every other a refusal that
// names a leg of the kind, and returns the place of the success.
func (f *fixture) winner(outcomes []error, kind ledger.LegKind) int {
	f.Helper()
	won := -1
	for i, err := range outcomes {
		var refused *ledger.Refused
		switch {
		case err == nil && won >= 0:
			f.Fatalf("changes %d and %d were both applied", won, i)
		case err == nil:
			won = i
		case !errors.As(err, &refused) || len(refused.LegsOf(kind)) == 0:
			f.Fatalf("change %d: %v, want it refused by its %s leg", i, err, kind)
		}
	}
	if won < 0 {
		f.Fatalf("none of %d changes was applied", len(outcomes))
	}
	return won
}

func isRefused(err error) bool {
	var refused *ledger.Refused
	return errors.As(err, &refused)
}

func raceForTheLastUnit(f *fixture) {
	for round := range raceRounds {
		slot := f.slot(ledger.SlotID(fmt.Sprintf("round-%d", round)), definition(1, 1))
		var changes []ledger.Change
		var ids []ledger.HoldID
		for i := range raceCallers {
			change := f.hold(ledger.OwnerID(fmt.Sprintf("owner-%d", i)), one(slot, 1))
			changes, ids = append(changes, change), append(ids, change.Holds[0].Next.ID)
		}
		won := f.winner(f.race(changes), ledger.LegStock)
		f.equal("hold of the winner", f.storedHold(ids[won]), changes[won].Holds[0].Next)
		f.counters(slot, ledger.Counters{Held: 1, Capacity: 1})
		CheckBooks(f.T, f.store, []ledger.SlotID{slot.ID}, ids)
	}
}

func raceWithOneKey(f *fixture) {
	slot := f.slot("A", definition(raceRounds*raceCallers, 1))
	var ids []ledger.HoldID
	for round := range raceRounds {
		var changes []ledger.Change
		for i := range raceCallers {
			change := f.hold(theOwner, one(slot, 1))
			change.Idempotency = f.record(ledger.IdempotencyKey(fmt.Sprintf("round-%d", round)))
			change.Idempotency.Response.Body = fmt.Appendf(nil, `{"caller":%d}`, i)
			changes, ids = append(changes, change), append(ids, change.Holds[0].Next.ID)
		}
		outcomes := f.race(changes)
		won := f.winner(outcomes, ledger.LegIdempotency)
		for _, err := range outcomes {
			var refused *ledger.Refused
			if errors.As(err, &refused) {
				record, found := refused.IdempotencyRecord()
				f.equal("refusal has the winner's record", found, true)
				f.equal("record", record, *changes[won].Idempotency)
			}
		}
	}
	f.counters(slot, ledger.Counters{Available: raceRounds * (raceCallers - 1), Held: raceRounds, Capacity: raceRounds * raceCallers})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, ids)
}

// raceToEndOneHold is C3 and J4: the clocks of the three callers differ, so that each
// condition about time is true for its caller, and only the hold itself can decide.
func raceToEndOneHold(f *fixture) {
	slot := f.slot("A", definition(raceRounds, 1))
	var ids []ledger.HoldID
	sold := ledger.Units(0)
	for range raceRounds {
		f.now = noon
		hold := f.held(one(slot, 1))
		ids = append(ids, hold.ID)
		var changes []ledger.Change
		for range raceCallers / 4 {
			f.now = hold.ReleaseAt.Add(-time.Millisecond)
			changes = append(changes, f.confirm(hold, ""), f.cancel(hold))
			f.now = hold.ReleaseAt
			changes = append(changes, f.expire(hold))
		}
		won := f.winner(f.race(changes), ledger.LegHold)
		want := changes[won].Holds[0].Next
		f.equal("hold", f.storedHold(hold.ID), want)
		if want.Status == ledger.StatusConfirmed {
			sold++
		}
		f.counters(slot, ledger.Counters{Available: raceRounds - sold, Confirmed: sold, Capacity: raceRounds})
	}
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, ids)
}

func raceWithOneChange(f *fixture) {
	slot := f.slot("A", definition(raceRounds*2, 1))
	for range raceRounds {
		change := f.hold(theOwner, one(slot, 1))
		changes := make([]ledger.Change, raceCallers)
		for i := range changes {
			changes[i] = change
		}
		for i, err := range f.race(changes) {
			if err != nil {
				f.Fatalf("try %d of one change: %v", i, err)
			}
		}
	}
	f.counters(slot, ledger.Counters{Available: raceRounds, Held: raceRounds, Capacity: raceRounds * 2})
}

// readersSeeOneMoment moves the only held unit between two shards, in one change each
// time, while others read. There is always exactly one unit available, so a reader that
// finds none, or two, has not read one moment.
func readersSeeOneMoment(f *fixture) {
	const moves, readers, reads = 40, 2, 40
	slot := f.slot("A", definition(2, 2))
	hold := f.held(one(slot, 1))
	ids := []ledger.HoldID{hold.ID}
	var changes []ledger.Change
	for i := range moves {
		create := f.hold(theOwner, take{slot, []ledger.Allocation{{Shard: ledger.Shard((i + 1) % 2), Quantity: 1}}})
		move := f.cancel(hold)
		move.Holds = append(move.Holds, create.Holds...)
		move.Stock = append(move.Stock, create.Stock...)
		move.Events = append(move.Events, create.Events...)
		changes, hold = append(changes, move), create.Holds[0].Next
		ids = append(ids, hold.ID)
	}

	var everybody sync.WaitGroup
	everybody.Go(func() {
		for i, change := range changes {
			if err := f.store.Commit(f.ctx, change); err != nil {
				f.Errorf("move %d: %v", i, err)
				return
			}
		}
	})
	for range readers {
		everybody.Go(func() {
			for range reads {
				stock, err := f.store.StockAtOneMoment(f.ctx, slot)
				if err != nil || len(stock) != 2 || stock[0].Counters.Available+stock[1].Counters.Available != 1 {
					f.Errorf("stock at one moment: error %v, %s", err, text(stock))
					return
				}
			}
		})
	}
	everybody.Wait()
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, ids)
}
