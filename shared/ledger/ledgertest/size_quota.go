package ledgertest

import (
	"fmt"

	"holdfast/shared/ledger"
)

// mostCounts are the lines of a hold that takes from the most stock items and is counted in
// the most counts that one hold may: each slot has a limit of its own and one of its
// resource. Ids are as long as they may be.
func (f *fixture) mostCounts(prefix string) ([]take, []ledger.SlotID) {
	f.Helper()
	const twoShards = ledger.StockActionsMax - ledger.LinesMax
	var takes []take
	var ids []ledger.SlotID
	for i := range ledger.LinesMax {
		name := fmt.Sprintf("%s-%02d-%0*d", prefix, i, ledger.NameCharactersMax-len(prefix)-4, 0)
		d := definition(8, 2)
		d.ResourceID = ledger.ResourceID(name)
		allLimits(4)(&d.Policy)
		patient(&d.Policy)
		d.Policy.HoldsPerSignalMax = 4
		slot := f.slot(ledger.SlotID(name), d)
		shards := []ledger.Allocation{{Shard: 1, Quantity: 1}}
		if i < twoShards {
			shards = append([]ledger.Allocation{{Shard: 0, Quantity: 2}}, shards...)
		}
		takes, ids = append(takes, take{slot, shards}), append(ids, slot.ID)
	}
	return takes, ids
}

// withSignals adds both kinds of signals to a hold that is made.
func (f *fixture) withSignals(create ledger.Change, units ledger.Units) ledger.Change {
	for _, signal := range []ledger.Signal{device("a"), means("b")} {
		create.Signals = append(create.Signals, ledger.SignalWrite{
			Signal: signal, Window: create.At.Truncate(ledger.SignalWindow), Max: units,
		})
	}
	return create
}

// mostCountsEndInEachWay makes the largest hold with a quota, signals and the record of its
// request, and ends it.
func mostCountsEndInEachWay(f *fixture) {
	for _, end := range f.endings() {
		f.now = noon
		owner := ledger.OwnerID(end.status)
		takes, ids := f.mostCounts(string(end.status))
		create := f.withSignals(f.hold(owner, takes...), 4)
		create.Idempotency = f.record(ledger.IdempotencyKey("create " + end.status))
		f.equal("number of counts", len(create.Quotas[0].Deltas), 2*ledger.LinesMax+1)
		f.equal("number of actions", create.Actions(), ledger.StockActionsMax+6)
		f.commit(create)
		f.refuse(f.hold(owner, takes...), f.refusedQuota(owner))
		ended := end.build(f.storedHold(create.Holds[0].Next.ID))
		ended.Idempotency = f.record(ledger.IdempotencyKey("end " + end.status))
		f.commit(ended)
		f.equal("hold", f.storedHold(create.Holds[0].Next.ID), ended.Holds[0].Next)
		if end.status == ledger.StatusConfirmed {
			f.commit(f.returned(ended.Holds[0].Next))
		}
		f.counts(owner, map[ledger.QuotaKey]ledger.Units{})
		CheckBooks(f.T, f.store, ids, []ledger.HoldID{create.Holds[0].Next.ID})
	}
}

// mostCountsAreExchanged lets go of as many lines as an edit can take anew, with all of their
// counts.
func mostCountsAreExchanged(f *fixture) {
	const lines = ledger.StockActionsMax / 2
	before, beforeIDs := f.mostCounts("before")
	after, afterIDs := f.mostCounts("x-after")
	var old, fresh []take
	var quotes []ledger.Quote
	for i := range lines {
		old = append(old, take{before[i].slot, before[i].shards[len(before[i].shards)-1:]})
		fresh = append(fresh, take{after[i].slot, after[i].shards[len(after[i].shards)-1:]})
		quotes = append(quotes, quoted(after[i].slot, 1))
	}
	hold := f.held(old...)
	edit := f.relined(hold, quotes, fresh...)
	edit.Idempotency = f.record("exchange")
	f.equal("number of counts", len(edit.Quotas[0].Deltas), 4*lines+1) // and the limit of holds
	f.equal("number of stock actions", len(edit.Stock), ledger.StockActionsMax)
	f.commit(edit)
	f.equal("hold", f.storedHold(hold.ID), edit.Holds[0].Next)
	CheckBooks(f.T, f.store, append(beforeIDs, afterIDs...), []ledger.HoldID{hold.ID})
}
