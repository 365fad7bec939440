package ledger_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/shared/ledger"
)

// largestHold is a hold of LinesMax slots over as many stock items as a hold may have, each
// slot limited in every way, with two signals.
func largestHold(t testing.TB, grants int) (ledger.HoldPlan, []ledger.Slot) {
	t.Helper()
	plan := ledger.HoldPlan{
		ID: holdID("H"), Owner: "U-1", Slots: make(map[ledger.SlotID]ledger.Slot), Allocations: make(map[ledger.SlotID][]ledger.Allocation),
		Signals: []ledger.Signal{{Kind: ledger.SignalDevice, Hash: hashOf('a')}, {Kind: ledger.SignalPaymentMeans, Hash: hashOf('b')}},
	}
	var slots []ledger.Slot
	for i := range ledger.LinesMax {
		slot := limited(t, ledger.SlotID(fmt.Sprintf("S-%02d", i)), func(p *ledger.Policy) {
			p.QuantityPerOwnerMax, p.QuantityPerOwnerOfResourceMax, p.HoldsPerOwnerMax = 100, 1000, 10
			p.ExpiriesMax, p.CooldownFor, p.HoldsPerSignalMax = 3, time.Minute, 5
		})
		slot.Terms.Shards, slot.ResourceID = 4, ledger.ResourceID(fmt.Sprint("R", i))
		if i < grants {
			slot.Policy.GrantTo = fmt.Sprint("wallet:", i)
		}
		from := []ledger.Allocation{{Shard: 0, Quantity: 1}}
		if i < ledger.StockActionsMax-ledger.LinesMax-grants {
			from = append(from, ledger.Allocation{Shard: 1, Quantity: 1})
		}
		plan.Slots[slot.ID], plan.Allocations[slot.ID] = slot, from
		plan.Quotes = append(plan.Quotes, quote(slot.ID, ledger.Units(len(from))))
		slots = append(slots, slot)
	}
	return plan, slots
}

// Case F5: the largest hold that can be made fits into one transaction in every step of its life,
// with the idempotency record of each, and one stock item more is refused when it is made.
func TestCaseF5_LargestHoldFitsInEveryStep(t *testing.T) {
	for _, grants := range []int{0, 10} {
		plan, slots := largestHold(t, grants)
		fits := func(name string, change ledger.Change, err error) ledger.Hold {
			t.Helper()
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			change.Idempotency = &ledger.IdempotencyRecord{ID: "id"}
			if err := change.Validate(); err != nil {
				t.Fatalf("%s of %d actions: %v", name, change.Actions(), err)
			}
			return change.Holds[len(change.Holds)-1].Next
		}
		created, err := ledger.NewHold(plan, originOf("hold"), noon)
		hold := fits("create", created, err)
		if items := ledger.StockActionsMax - grants; len(created.Stock) != items || len(created.Signals) != 2 || len(created.Quotas) != 1 || len(created.Quotas[0].Deltas) != 2*ledger.LinesMax+1 {
			t.Fatalf("the largest hold takes from %d stock items, with %d signals and the counts %+v", len(created.Stock), len(created.Signals), created.Quotas)
		}
		var exchange, half []ledger.Quote
		var sold []ledger.ReturnLine
		edit := ledger.HoldEdit{Slots: plan.Slots, Allocations: make(map[ledger.SlotID][]ledger.Allocation)}
		for i, q := range plan.Quotes {
			// Every line grows on a shard that it has already, so that nothing but counts comes.
			edit.Allocations[q.Slot] = []ledger.Allocation{{Shard: 0, Quantity: 1}}
			exchange = append(exchange, quote(q.Slot, q.Quantity+1))
			sold = append(sold, lineOf(q.Slot, q.Quantity))
			if i%2 == 0 {
				half = append(half, q)
			}
		}
		edit.Quotes = exchange
		change, err := ledger.EditHold(hold, edit, originOf("edit"), noon)
		edited := fits("grow", change, err)
		change, err = ledger.EditHold(edited, ledger.HoldEdit{Quotes: half}, originOf("edit"), noon)
		fits("give half back", change, err)
		for _, h := range []ledger.Hold{hold, edited} {
			change, err = ledger.Confirm(h, "pay", originOf("end"), noon)
			confirmed := fits("confirm", change, err)
			change, err = ledger.ConfirmPart(h, sold, "pay", originOf("end"), noon)
			fits("confirm a part", change, err)
			change, err = ledger.Cancel(h, originOf("end"), noon)
			fits("cancel", change, err)
			change, err = ledger.Expire(h, originOf("end"), h.ReleaseAt)
			fits("expire", change, err)
			change, err = ledger.Reacquire(h, nil, originOf("end"), h.ReleaseAt)
			fits("reacquire", change, err)
			change, err = ledger.ReturnUnpaid(confirmed, nil, originOf("end"), noon)
			fits("return", change, err)
		}
		last := slots[ledger.LinesMax-1].ID
		plan.Allocations[last] = append(plan.Allocations[last], ledger.Allocation{Shard: 2, Quantity: 1}, ledger.Allocation{Shard: 3, Quantity: 1})
		plan.Quotes[ledger.LinesMax-1].Quantity += 2
		if _, err := ledger.NewHold(plan, originOf("hold"), noon); err == nil {
			t.Error("one stock item too many is taken")
		}
	}
}

// The largest slot fits into one transaction too, resharded from and to the most shards.
func TestLargestSlotFitsInEveryStep(t *testing.T) {
	slot, created := mustNewSlot(t, "S", 100*ledger.ShardsMax, ledger.ShardsMax)
	d := slot.Definition(100 * ledger.ShardsMax)
	d.Terms.Shards, d.Capacity = 1, 7
	down, err := ledger.EditSlot(slot, created.NewStock, d, originOf("down"), noon)
	small, _ := mustNewSlot(t, "S", 7, 1)
	d.Terms.Shards, d.Capacity = ledger.ShardsMax, 100*ledger.ShardsMax
	up, upErr := ledger.EditSlot(small, stockOf(7), d, originOf("up"), noon)
	for name, change := range map[string]ledger.Change{"created": created, "down": down, "up": up} {
		change.Idempotency = &ledger.IdempotencyRecord{ID: "id"}
		if change.Validate() != nil || err != nil || upErr != nil || len(change.Stock)+len(change.NewStock) != ledger.ShardsMax {
			t.Errorf("%s: %d actions, errors %v, %v, %v", name, change.Actions(), change.Validate(), err, upErr)
		}
	}
}
