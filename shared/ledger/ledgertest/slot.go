package ledgertest

import (
	"fmt"
	"strings"
	"time"

	"holdfast/shared/ledger"
)

var slotRules = []rule{
	{"IsStoredExactly", slotIsStoredExactly},
	{"SmallestIsStoredExactly", smallestSlotIsStoredExactly},
	{"UnknownIsLeftOut", unknownSlotIsLeftOut},
	{"DefinedTwice", slotDefinedTwice},
	{"EditReplacesTheVersionItRead", slotEditReplacesItsVersion},
	{"MissingIsRefused", missingSlotIsRefused},
	{"TermsReachEveryShard", termsReachEveryShard},
	{"CapacityMovesBothWays", capacityMovesBothWays},
}

func slotIsStoredExactly(f *fixture) {
	d := definition(ledger.CapacityMax, 3)
	d.StartsAt = time.Date(2026, time.May, 4, 23, 59, 59, 999_000_000, time.UTC)
	d.EndsAt = d.StartsAt.Add(time.Millisecond)
	d.Terms.Price = ledger.Money{AmountMinor: ledger.AmountMinorMax, Currency: "KWD"}
	d.Policy = ledger.Policy{
		HoldFor: time.Second, GraceFor: 0, HoldForMax: ledger.HoldForLimit, QuantityPerHoldMax: 1,
		Payment: ledger.PaymentTerms{
			OnDecline: ledger.OnDeclineKeep, LatePayment: ledger.LatePaymentReview, LateByProvider: true,
			UnknownFor: ledger.HoldForLimit, Delivery: ledger.DeliveryEvent,
		},
		CancelFor: ledger.CancelForLimit, NoRestock: true, GrantTo: "wallet:{owner}:gold",
	}
	d.Attributes = map[string]string{"좌석": "1A", "empty": "", "quote": `"\` + "\x01", "long": strings.Repeat("x", ledger.AttributeCharactersMax)}
	for i := len(d.Attributes); i < ledger.AttributesMax; i++ {
		d.Attributes[fmt.Sprintf("name-%d", i)] = fmt.Sprintf("value-%d", i)
	}
	id := ledger.SlotID(strings.Repeat("A.b_:-9", 18) + "zz")
	f.equal("length of the longest id", len(id), ledger.NameCharactersMax)

	change, err := ledger.NewSlot(id, d, f.origin(ledger.CommandPutSlot), f.now)
	f.commit(f.built(change, err))
	slot := f.storedSlot(id)
	f.equal("slot", slot, change.Slots[0].Next)
	f.equal("stock", f.stock(slot), change.NewStock)
	events, err := f.store.SlotEvents(f.ctx, id)
	f.read(err)
	f.equal("events", events, change.Events)
	CheckBooks(f.T, f.store, []ledger.SlotID{id}, nil)
}

func smallestSlotIsStoredExactly(f *fixture) {
	d := definition(0, 1)
	d.Terms = ledger.Terms{Open: false, Price: ledger.Money{AmountMinor: 0, Currency: "KRW"}, Shards: 1}
	change, err := ledger.NewSlot("0", d, f.origin(ledger.CommandPutSlot), f.now)
	f.commit(f.built(change, err))
	slot := f.storedSlot("0")
	f.equal("slot", slot, change.Slots[0].Next)
	f.equal("stock", f.stock(slot), change.NewStock)
	f.equal("slot has no start and no end", slot.StartsAt.IsZero() && slot.EndsAt.IsZero(), true)
}

func unknownSlotIsLeftOut(f *fixture) {
	f.slot("A", definition(1, 1))
	f.slot("B", definition(1, 1))
	slots, err := f.store.Slots(f.ctx, []ledger.SlotID{"B", "unknown", "A", "B"})
	f.read(err)
	ids := make(map[ledger.SlotID]int)
	for _, slot := range slots {
		ids[slot.ID]++
	}
	f.equal("slots by id", ids, map[ledger.SlotID]int{"A": 1, "B": 1})

	slots, err = f.store.Slots(f.ctx, nil)
	f.read(err)
	f.equal("number of slots of no ids", len(slots), 0)
	events, err := f.store.SlotEvents(f.ctx, "unknown")
	f.read(err)
	f.equal("number of events of an unknown slot", len(events), 0)
}

func slotDefinedTwice(f *fixture) {
	f.slot("A", definition(4, 2))
	stored := f.storedSlot("A")
	stock := f.stock(stored)
	events, err := f.store.SlotEvents(f.ctx, "A")
	f.read(err)

	again, err := ledger.NewSlot("A", definition(9, 2), f.origin(ledger.CommandPutSlot), f.now)
	f.refuse(f.built(again, err),
		ledger.RefusedLeg{Kind: ledger.LegSlot, StoredSlot: &stored},
		ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "A", Shard: 0, Stock: &stock[0]},
		ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "A", Shard: 1, Stock: &stock[1]},
		ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &events[0]})
}

func slotEditReplacesItsVersion(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	first := f.edit(slot, func(d *ledger.SlotDefinition) { d.Attributes = map[string]string{"gate": "7"} })
	second := f.edit(slot, func(d *ledger.SlotDefinition) { d.Attributes = map[string]string{"gate": "8"} })
	f.commit(first)
	f.refuse(second,
		ledger.RefusedLeg{Kind: ledger.LegSlot, StoredSlot: &first.Slots[0].Next},
		ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[0]})

	f.now = f.now.Add(time.Millisecond)
	third := f.edit(f.storedSlot("A"), func(d *ledger.SlotDefinition) { d.Attributes = nil })
	f.commit(third)
	f.equal("slot", f.storedSlot("A"), third.Slots[0].Next)
	events, err := f.store.SlotEvents(f.ctx, "A")
	f.read(err)
	f.equal("events after the creation", events[1:], append(first.Events, third.Events...))
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, nil)
}

func missingSlotIsRefused(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	change := f.edit(slot, func(d *ledger.SlotDefinition) { d.Attributes = map[string]string{"gate": "7"} })
	change.Slots[0].Next.ID, change.Events[0].Slot.ID = "B", "B"
	f.refuse(change, ledger.RefusedLeg{Kind: ledger.LegSlot})
}

func termsReachEveryShard(f *fixture) {
	slot := f.slot("A", definition(ledger.ShardsMax, ledger.ShardsMax))
	f.commit(f.edit(slot, func(d *ledger.SlotDefinition) {
		d.Terms.Price.AmountMinor, d.Terms.Open, d.Capacity = 700, false, ledger.ShardsMax+1
	}))
	slot = f.storedSlot("A")
	f.equal("price version", slot.PriceVersion, ledger.Version(2))
	stock := f.stock(slot)
	f.equal("number of shards", len(stock), ledger.ShardsMax)
	for i, s := range stock {
		f.equal("shards are in order", s.Shard, ledger.Shard(i))
		f.equal("terms of a shard", s.Terms, slot.Terms)
	}
	f.equal("grown shard", stock[0].Counters, ledger.Counters{Available: 2, Capacity: 2})
	f.equal("other shard", stock[1].Counters, ledger.Counters{Available: 1, Capacity: 1})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, nil)
}

// capacityMovesBothWays is A2: a capacity that was decided on stale stock is refused by
// the stock itself.
func capacityMovesBothWays(f *fixture) {
	slot := f.slot("A", definition(5, 1))
	f.commit(f.edit(slot, func(d *ledger.SlotDefinition) { d.Capacity = 9 }))
	slot = f.storedSlot("A")
	shrink := f.edit(slot, func(d *ledger.SlotDefinition) { d.Capacity = 2 })
	hold := f.held(one(slot, 3))
	stock := f.stock(slot)[0]
	f.refuse(shrink, ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "A", Stock: &stock})

	f.commit(f.edit(slot, func(d *ledger.SlotDefinition) { d.Capacity = 3 }))
	f.counters(slot, ledger.Counters{Held: 3, Capacity: 3})
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, []ledger.HoldID{hold.ID})
}
