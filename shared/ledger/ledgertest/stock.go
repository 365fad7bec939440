package ledgertest

import "holdfast/shared/ledger"

var stockRules = []rule{
	{"P1_LastUnitIsSoldOnce", lastUnitIsSoldOnce},
	{"MissingItemIsRefused", missingStockIsRefused},
	{"SaleRequiresTheTerms", saleRequiresTheTerms},
	{"EndingDoesNotRequireTheTerms", endingIgnoresTheTerms},
	{"P5_EveryShortLegIsNamed", everyShortLegIsNamed},
	{"IsReadForSeveralSlots", stockIsReadForSeveralSlots},
}

func lastUnitIsSoldOnce(f *fixture) {
	slot := f.slot("A", definition(1, 1))
	first, second := f.hold(theOwner, one(slot, 1)), f.hold(theOwner, one(slot, 1))
	f.commit(first)
	stock := f.stock(slot)[0]
	f.refuse(second, ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "A", Stock: &stock})
	f.counters(slot, ledger.Counters{Held: 1, Capacity: 1})
}

func missingStockIsRefused(f *fixture) {
	slot := f.slot("A", definition(4, 1))
	f.refuse(f.hold(theOwner, take{slot, []ledger.Allocation{{Shard: 1, Quantity: 1}}}),
		ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "A", Shard: 1})
}

func saleRequiresTheTerms(f *fixture) {
	alterations := map[ledger.SlotID]func(*ledger.Terms){
		"closed":          func(t *ledger.Terms) { t.Open = false },
		"other-amount":    func(t *ledger.Terms) { t.Price.AmountMinor = 501 },
		"other-currency":  func(t *ledger.Terms) { t.Price.Currency = "JPY" },
		"amount-from-max": func(t *ledger.Terms) { t.Price.AmountMinor = ledger.AmountMinorMax },
	}
	for id, alter := range alterations {
		slot := f.slot(id, definition(4, 1))
		sale := f.hold(theOwner, one(slot, 1))
		f.commit(f.edit(slot, func(d *ledger.SlotDefinition) { alter(&d.Terms) }))
		stock := f.stock(slot)[0]
		f.refuse(sale, ledger.RefusedLeg{Kind: ledger.LegStock, Slot: id, Stock: &stock})
	}

	slot := f.slot("resharded", definition(4, 2))
	slot.Terms.Shards = 1
	sale := f.hold(theOwner, one(slot, 1))
	slot.Terms.Shards = 2
	stock := f.stock(slot)[0]
	f.refuse(sale, ledger.RefusedLeg{Kind: ledger.LegStock, Slot: slot.ID, Stock: &stock})
}

// endingIgnoresTheTerms is K5: a promise is kept at its price, whatever the price is now.
func endingIgnoresTheTerms(f *fixture) {
	for _, end := range f.endings() {
		f.now = noon
		slot := f.slot(ledger.SlotID(end.status), definition(4, 1))
		hold := f.held(one(slot, 1))
		f.commit(f.edit(slot, func(d *ledger.SlotDefinition) { d.Terms.Open, d.Terms.Price.AmountMinor = false, 900 }))
		f.commit(end.build(hold))
		f.counters(slot, end.after)
		f.equal("quoted price", f.storedHold(hold.ID).Lines[0].UnitPrice, ledger.Money{AmountMinor: 500, Currency: dollar})
	}
}

func everyShortLegIsNamed(f *fixture) {
	a := f.slot("A", definition(10, 1))
	b := f.slot("B", definition(1, 1))
	c := f.slot("C", definition(4, 2))
	stockB, stockC := f.stock(b)[0], f.stock(c)[1]
	change := f.hold(theOwner, one(a, 2), one(b, 5), take{c, []ledger.Allocation{{Shard: 0, Quantity: 2}, {Shard: 1, Quantity: 3}}})
	change.Idempotency = f.record("basket")
	f.refuse(change,
		ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "B", Shard: 0, Stock: &stockB},
		ledger.RefusedLeg{Kind: ledger.LegStock, Slot: "C", Shard: 1, Stock: &stockC})
}

func stockIsReadForSeveralSlots(f *fixture) {
	b := f.slot("B", definition(5, 3))
	a := f.slot("A", definition(3, 2))
	got, err := f.store.Stock(f.ctx, []ledger.Slot{b, a})
	f.read(err)
	f.equal("stock", got, append(f.stock(a), f.stock(b)...))
	got, err = f.store.Stock(f.ctx, nil)
	f.read(err)
	f.equal("number of stock items of no slots", len(got), 0)
}
