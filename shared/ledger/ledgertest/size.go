package ledgertest

import (
	"fmt"
	"strings"

	"holdfast/shared/ledger"
)

var sizeRules = []rule{
	{"F5_LargestHoldEndsInEachWay", largestHoldEndsInEachWay},
	{"F5_MostLinesEndInEachWay", mostLinesEndInEachWay},
	{"F5_LargestHoldIsPaidAndReturned", largestHoldIsPaidAndReturned},
	{"F5_MostGrants", mostGrants},
	{"F5_LargestHoldIsReacquired", largestHoldIsReacquired},
	{"F5_MostCountsEndInEachWay", mostCountsEndInEachWay},
	{"F5_MostCountsAreExchanged", mostCountsAreExchanged},
	{"MostShards", mostShards},
	{"MostShardsAreRepaired", mostShardsAreRepaired},
	{"LargestCase", largestCase},
	{"LargestNumbers", largestNumbers},
	{"MostActions", mostActions},
}

// largestHoldEndsInEachWay takes from the most stock items that one hold may.
func largestHoldEndsInEachWay(f *fixture) {
	for _, end := range f.endings() {
		f.now = noon
		takes, ids := f.largestTakes(string(end.status))
		create := f.hold(theOwner, takes...)
		f.equal("number of stock actions", len(create.Stock), ledger.StockActionsMax)
		create.Idempotency = f.record(ledger.IdempotencyKey("create " + end.status))
		f.endLargest(create, end, ids)
	}
}

func mostLinesEndInEachWay(f *fixture) {
	for _, end := range f.endings() {
		f.now = noon
		var takes []take
		var ids []ledger.SlotID
		for i := range ledger.LinesMax {
			id := ledger.SlotID(fmt.Sprintf("%s-%02d", end.status, i))
			takes, ids = append(takes, one(f.slot(id, definition(1, 1)), 1)), append(ids, id)
		}
		f.endLargest(f.hold(theOwner, takes...), end, ids)
	}
}

func (f *fixture) endLargest(create ledger.Change, end ending, slots []ledger.SlotID) {
	f.Helper()
	f.commit(create)
	hold := f.storedHold(create.Holds[0].Next.ID)
	f.equal("hold", hold, create.Holds[0].Next)
	CheckBooks(f.T, f.store, slots, []ledger.HoldID{hold.ID})
	ended := end.build(hold)
	ended.Idempotency = f.record(ledger.IdempotencyKey("end " + end.status))
	f.commit(ended)
	f.equal("status", f.storedHold(hold.ID).Status, end.status)
	CheckBooks(f.T, f.store, slots, []ledger.HoldID{hold.ID})
}

func mostShards(f *fixture) {
	slot := f.slot("A", definition(ledger.ShardsMax*3, ledger.ShardsMax))
	shards := make([]ledger.Allocation, ledger.ShardsMax)
	for i := range shards {
		shards[i] = ledger.Allocation{Shard: ledger.Shard(i), Quantity: 2}
	}
	hold := f.held(take{slot, shards})
	for i, s := range f.stock(slot) {
		f.equal("shard", s.Shard, ledger.Shard(i))
		f.equal("counters", s.Counters, ledger.Counters{Available: 1, Held: 2, Capacity: 3})
	}
	f.commit(f.confirm(hold, "pay"))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

// mostShardsAreRepaired: all stock items of a slot in one write, with numbers of many digits.
func mostShardsAreRepaired(f *fixture) {
	slot := f.slot("A", definition(ledger.CapacityMax, ledger.ShardsMax))
	right, wrong := make(map[ledger.Shard]ledger.Counters), make(map[ledger.Shard]ledger.Counters)
	for _, s := range f.stock(slot) {
		right[s.Shard] = s.Counters
		wrong[s.Shard] = ledger.Counters{Held: s.Counters.Capacity - 1, Confirmed: 1, Capacity: s.Counters.Capacity}
	}
	f.commit(f.repairedStock(slot, wrong))
	broken := f.storedSlot("A")
	for _, s := range f.stock(broken) {
		f.equal("counters", s.Counters, wrong[s.Shard])
	}
	repair := f.repairedStock(broken, right)
	f.equal("number of repairs", len(repair.StockRepairs), ledger.ShardsMax)
	f.commit(repair)
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, nil)
}

// largestCase: the evidence and the reason are as long as they may be, of characters that
// take the most bytes, and are kept whole.
func largestCase(f *fixture) {
	long := func(characters int) string { return strings.Repeat("\U0001F3AB", characters) }
	finding := ledger.NewReview(ledger.ReviewFinding, "stock_mismatch/"+strings.Repeat("s", 128), f.now)
	finding.Finding, finding.Evidence = "stock_mismatch", long(ledger.EvidenceCharactersMax)
	opened := ledger.OpenReview(ledger.Review{}, finding, f.origin(ledger.CommandOpenReview), f.now)
	f.commit(opened)
	origin := f.operator("lee", ledger.CommandDecideReview)
	origin.Why = long(ledger.WhyCharactersMax)
	f.commit(f.built(ledger.DecideReview(opened.Reviews[0].Next, ledger.DecisionDismiss, origin, f.now)))
	stored := f.reviews(finding.ID)[0]
	f.equal("evidence", stored.Evidence, finding.Evidence)
	f.equal("reason", stored.Why, origin.Why)
	f.reviewEvents(finding.ID, ledger.EventReviewOpened, ledger.EventReviewDecided)
}

func largestNumbers(f *fixture) {
	d := definition(ledger.CapacityMax, 1)
	d.Terms.Price.AmountMinor = ledger.AmountMinorMax - 1
	slot := f.slot("A", d)
	hold := f.held(one(slot, ledger.QuantityPerLineMax))
	f.commit(f.confirm(hold, ""))
	stored := f.storedHold(hold.ID)
	f.equal("unit price", stored.Lines[0].UnitPrice.AmountMinor, int64(ledger.AmountMinorMax-1))
	f.equal("total", stored.Total().AmountMinor, int64(9_999_999_999_990_000))
	f.counters(slot, ledger.Counters{Available: 999_990_000, Confirmed: 10_000, Capacity: 1_000_000_000})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}

func mostActions(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	change := f.hold(theOwner, one(slot, 1))
	for i := change.Actions(); i < ledger.ActionsMax; i++ {
		change.Uniqueness = append(change.Uniqueness, ledger.Uniqueness{
			Kind: ledger.UniquePaymentReference, Value: fmt.Sprintf("pay-%d", i), Hold: change.Holds[0].Next.ID,
		})
	}
	over := change
	over.Idempotency = f.record("one too many")
	f.fail(over, ledger.CodeInternal)
	f.commit(change)
	f.counters(slot, ledger.Counters{Available: 3, Held: 1, Capacity: 4})
}
