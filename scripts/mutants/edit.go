package main

const (
	ledgerHoldEdit    = "shared/ledger/hold_edit.go"
	ledgerHoldConfirm = "shared/ledger/hold_confirm.go"
	ledgerHoldReturn  = "shared/ledger/hold_return.go"
	ledgerSlotEdit    = "shared/ledger/slot_edit.go"
	ledgerStockSpread = "shared/ledger/stock_spread.go"
	ledgerStock       = "shared/ledger/stock.go"
	ledgerHoldLine    = "shared/ledger/hold_line.go"
	ledgerOffer       = "shared/ledger/offer.go"
	ledgerQuote       = "shared/ledger/quote.go"
)

// editMutants mistake how holds are changed, sold and given back in parts.
func editMutants() []mutant {
	return []mutant{
		{
			name:  "edit what has expired",
			edits: []edit{{ledgerHoldEdit, "h.Status != StatusHeld || !now.Before(h.ExpiresAt)", "h.Status != StatusHeld"}, {ledgerHoldEdit, "When: BeforeExpiry, ", ""}},
			harm:  "a buyer gets time back that others were told is over",
			tests: []string{"./shared/ledger"},
		},
		{
			name:  "edit what is being paid",
			edits: []edit{{ledgerHoldEdit, "case h.Reservation != \"\":", "case h.Reservation == \"x\":"}, {ledgerHoldEdit, ", NoOpenAttempt: true, Of: noReservation()", ""}},
			harm:  "a buyer pays for two seats and takes four",
		},
		{
			name:  "extend without an end",
			edits: []edit{{ledgerHoldEdit, "	if until.After(longest) {\n		until = longest\n	}", ""}},
			harm:  "one buyer keeps a seat for ever without buying it",
			tests: []string{"./shared/ledger"},
		},
		{
			name:  "exchanging slots gives time",
			edits: []edit{{ledgerHoldEdit, "if until := now.Add(next.HoldFor); until.Before(next.ExpiresAt) {", "if until := now.Add(next.HoldFor); !until.Equal(next.ExpiresAt) {"}},
			harm:  "a hold lives on by exchanging its slots again and again",
			tests: []string{"./shared/ledger"},
		},
		{
			name:  "what is dropped stays held",
			edits: []edit{{ledgerHoldEdit, "			r.movements = append(r.movements, old.movements(BucketHeld, BucketAvailable)...)\n", "			_ = old\n"}},
			harm:  "the slot that a buyer has put back is sold to nobody any more",
		},
		{
			name:  "more at the price of the first quote",
			edits: []edit{{ledgerHoldEdit, "	line, err := r.offer.line(q, owner, addAllocations(old.Shards, more))\n", "	line, err := r.offer.line(q, owner, addAllocations(old.Shards, more))\n	if old.Quantity > 0 {\n		line.UnitPrice = old.UnitPrice\n	}\n"}},
			harm:  "a buyer with one old ticket buys ten more at yesterday's price, or can't buy any",
			tests: []string{"./shared/ledger"},
		},
		{
			name:  "the rest of a part sale stays held",
			edits: []edit{{ledgerHoldConfirm, "		movements = append(movements, Line{Slot: held.Slot, Shards: back}.movements(BucketHeld, BucketAvailable)...)\n", "		_ = back\n"}},
			harm:  "what a shop did not sell of a hold is stuck for ever",
		},
		{
			name:  "a part sale sells all",
			edits: []edit{{ledgerHoldConfirm, "held.shrink(held.Quantity - quantities[held.Slot])", "held.shrink(0 * quantities[held.Slot])"}},
			harm:  "a buyer who paid for one seat gets three",
		},
		{
			name:  "broken units are sold again",
			edits: []edit{{ledgerHoldReturn, "return r == RestockNever || r == RestockByPolicy && l.NoRestock", "return l.NoRestock"}},
			harm:  "the shop gives back a broken unit, and the next buyer gets it",
			tests: []string{"./shared/ledger"},
		},
	}
}

// slotMutants mistake how a slot's stock is spread, and what is promised beyond it.
func slotMutants() []mutant {
	return []mutant{
		{
			name:  "retired shards are not read",
			edits: []edit{{ledgerStock, "func (t Terms) StockItems() int { return t.Shards + t.Retired }", "func (t Terms) StockItems() int { return t.Shards }"}},
			harm:  "after a slot has got fewer shards, what comes back to the others is never sold",
			tests: []string{"./shared/commands", "./shared/ledger"},
		},
		{
			name:  "a reshard forgets what was available",
			edits: []edit{{ledgerStockSpread, "copy(active, spreadEvenly(units, terms.Shards))", "copy(active, spreadEvenly(units-1, terms.Shards))"}},
			harm:  "each reshard loses units",
			tests: []string{"./shared/ledger"},
		},
		{
			name:  "an oversold slot stays open",
			edits: []edit{{ledgerSlotEdit, "next.Oversold, next.Terms.Open = inUse-d.Capacity, false", "next.Oversold = inUse - d.Capacity"}},
			harm:  "what comes back to an oversold slot is sold once more",
		},
		{
			name:  "an oversold slot is not marked",
			edits: []edit{{ledgerSlotEdit, "next.Oversold, next.Terms.Open = inUse-d.Capacity, false", "next.Terms.Open = false"}},
			harm:  "nobody can see that more was sold than there is",
		},
		{
			name:  "a stale proof of sold out",
			edits: []edit{{commandsStockCache, "return known && slices.Equal(e.versions, versionsOf(stock))", "return known && (len(e.versions) == len(stock) || slices.Equal(e.versions, versionsOf(stock)))"}},
			harm:  "buyers are turned away by what was true a second ago",
			tests: []string{"./shared/commands"},
		},
		{
			name:  "a proof over other shards",
			edits: []edit{{commandsAllocation, "if len(stock) != slot.Terms.StockItems() || slices.ContainsFunc(stock, func(item ledger.Stock) bool { return !agrees(item) }) {", "if len(stock) == 0 && !agrees(ledger.Stock{}) {"}},
			harm:  "after a slot has got more shards, buyers are turned away from what lies on the new ones",
			tests: []string{"./shared/commands"},
		},
	}
}
