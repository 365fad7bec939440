package commands

import (
	"context"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// want is a quote, and how many of its units are to be taken: all of them for a new hold,
// and what comes to a hold that is edited.
type want struct {
	ledger.Quote
	take ledger.Units
}

// allocator finds the stock items that one hold takes its units from, over all tries of
// one command. It begins with the shard that the hold's id picks, which costs no read, and
// learns from what the write, or a look at the stock, says about it.
type allocator struct {
	commands *Commands
	hold     ledger.HoldID
	wants    []want
	// slots are the resolved definitions of the wanted slots, as far as they exist.
	slots map[ledger.SlotID]ledger.Slot
	// allocations are the stock items to take from.
	allocations map[ledger.SlotID][]ledger.Allocation
	// doubtful are the slots that were seen short a moment ago, and for which nothing but
	// the hash speaks.
	doubtful []want
	// alone says that the last refused write has met nobody: the items that it was for had too
	// little, or it did not know of a cool-down that is over.
	alone bool
}

func newAllocator(c *Commands, hold ledger.HoldID) allocator {
	return allocator{commands: c, hold: hold, allocations: make(map[ledger.SlotID][]ledger.Allocation)}
}

// prepare takes in what is wanted now. It reads nothing but definitions that are not cached.
func (a *allocator) prepare(ctx context.Context, wants []want, now time.Time) error {
	a.wants, a.doubtful = wants, nil
	ids := make([]ledger.SlotID, len(wants))
	for i, w := range wants {
		ids[i] = w.Slot
	}
	var err error
	if a.slots, err = a.commands.slots.get(ctx, a.commands.store, ids, now); err != nil {
		return err
	}
	for _, w := range wants {
		slot, known := a.slots[w.Slot]
		if !known || units(a.allocations[w.Slot]) == w.take {
			continue
		}
		a.allocations[w.Slot] = []ledger.Allocation{{Shard: a.pick(slot), Quantity: w.take}}
		if a.commands.stock.doubts(w.Slot, now) {
			a.doubtful = append(a.doubtful, w)
		}
	}
	return nil
}

// look reads the stock of the doubtful slots, all of it at once, before anything is
// written: most of the time nothing has come back, and then one read is all that the
// answer costs. It reports whether there was anything to look at.
func (a *allocator) look(ctx context.Context, now time.Time) (bool, error) {
	if len(a.doubtful) == 0 {
		return false, nil
	}
	hint, err := a.hint(ctx, a.doubtful)
	if err != nil {
		return false, err
	}
	found := a.newFindings()
	for _, w := range a.doubtful {
		for _, item := range hint[w.Slot] {
			found.hear(w, item)
		}
	}
	if err := found.refusal(); err != nil {
		return false, err
	}
	if found.outdated {
		return false, errTwoMoments
	}
	outdated, err := a.search(ctx, a.doubtful, hint, now)
	if err == nil && outdated {
		err = errTwoMoments
	}
	return err == nil, err
}

// learn takes in what refused stock items say. A wrong price or a closed slot is an answer
// at once, because the item itself said so. The slots that are only short are returned.
func (a *allocator) learn(r *ledger.Refused) ([]want, error) {
	a.alone = false
	found := a.newFindings()
	for _, leg := range r.LegsOf(ledger.LegStock) {
		w, wanted := a.want(leg.Slot)
		if !wanted {
			continue // it gives back to the slot, so the hold is not as it was read
		}
		if leg.Stock == nil {
			a.forget(leg.Slot)
			continue
		}
		found.hear(w, *leg.Stock)
	}
	return found.short, found.refusal()
}

// reallocate finds other stock items for every short slot, or proves that there are none.
func (a *allocator) reallocate(ctx context.Context, r *ledger.Refused, short []want, now time.Time) error {
	if len(short) == 0 {
		return nil
	}
	hint := make(map[ledger.SlotID][]ledger.Stock, len(short))
	var unread []want
	for _, w := range short {
		if item, alone := a.onlyItem(r, w.Slot); alone {
			hint[w.Slot] = []ledger.Stock{item}
			continue
		}
		unread = append(unread, w)
	}
	read, err := a.hint(ctx, unread)
	if err != nil {
		return err
	}
	for id, stock := range read {
		hint[id] = stock
	}
	outdated, err := a.search(ctx, short, hint, now)
	a.alone = !outdated && !r.Contended
	return err
}

// metNobody reports whether the last refused write only taught the command what it could have
// known.
func (a *allocator) metNobody() bool { return a.alone }

// onlyItem is the one stock item of a slot that has no more, as it refused the write. It
// can be relied on unless another transaction was running.
func (a *allocator) onlyItem(r *ledger.Refused, id ledger.SlotID) (ledger.Stock, bool) {
	if r.Contended || a.slots[id].Terms.StockItems() != 1 {
		return ledger.Stock{}, false
	}
	legs := r.LegsOf(ledger.LegStock)
	i := slices.IndexFunc(legs, func(l ledger.RefusedLeg) bool { return l.Slot == id })
	return *legs[i].Stock, true
}

// hint reads the stock of all these slots, each item as it is and not all of one moment.
func (a *allocator) hint(ctx context.Context, wants []want) (map[ledger.SlotID][]ledger.Stock, error) {
	if len(wants) == 0 {
		return nil, nil
	}
	slots := make([]ledger.Slot, len(wants))
	for i, w := range wants {
		slots[i] = a.slots[w.Slot]
	}
	a.commands.counter.Probed(len(slots))
	stock, err := a.commands.store.Stock(ctx, slots)
	if err != nil {
		return nil, err
	}
	out := make(map[ledger.SlotID][]ledger.Stock, len(wants))
	for _, item := range stock {
		out[item.Slot] = append(out[item.Slot], item)
	}
	return out, nil
}

// search gives each want an allocation, by a hint and where that is not enough by a proof.
// Those that are proven short are the answer. It reports whether a slot's definition was
// out of date, so that nothing is known about it.
func (a *allocator) search(ctx context.Context, wants []want, hint map[ledger.SlotID][]ledger.Stock, now time.Time) (bool, error) {
	var shortages []ledger.Shortage
	outdated := false
	for _, w := range wants {
		switch found, err := a.searchOne(ctx, w, hint[w.Slot], now); {
		case err != nil:
			return false, err
		case found == slotOutdated:
			outdated = true
		case found == slotShort:
			shortages = append(shortages, ledger.Shortage{Slot: w.Slot, Requested: w.Quantity})
		}
	}
	if len(shortages) > 0 {
		return outdated, &ledger.Error{Code: ledger.CodeInsufficientStock, Shortages: shortages,
			Message: "less is available than was asked for; choose other slots or a smaller quantity"}
	}
	return outdated, nil
}

// searched is what came of looking for the units of one want.
type searched int

const (
	// unitsFound: the want has an allocation that fitted the stock as it was read.
	unitsFound searched = iota
	// slotShort: at one moment, all stock items of the slot together had too little.
	slotShort
	// slotOutdated: the stock is of a slot with other shards than the definition says.
	slotOutdated
)

// searchOne looks where the want fits in the hint. If it does not, that proves nothing yet,
// because units may have moved between the reads of two items. It is proven if the hint is
// of one item, if the hint is known to be of one moment, or by the one read that is.
func (a *allocator) searchOne(ctx context.Context, w want, stock []ledger.Stock, now time.Time) (searched, error) {
	slot := a.slots[w.Slot]
	if found := a.allocate(slot, w, stock); found != slotShort {
		return found, nil
	}
	if len(stock) > 1 && !a.commands.stock.same(w.Slot, stock) {
		var err error
		if stock, err = a.commands.store.StockAtOneMoment(ctx, slot); err != nil {
			return slotShort, err
		}
		if found := a.allocate(slot, w, stock); found != slotShort {
			return found, nil
		}
	}
	a.commands.stock.keep(w.Slot, stock, now)
	return slotShort, nil
}

// allocate divides the want over the stock. Stock that is not all of the slot, or that has
// other shards than the slot was believed to have, says nothing: after a reshard the units
// may lie on items that were not read.
func (a *allocator) allocate(slot ledger.Slot, w want, stock []ledger.Stock) searched {
	agrees := func(item ledger.Stock) bool {
		return item.Terms.Shards == slot.Terms.Shards && item.Terms.Retired == slot.Terms.Retired
	}
	if len(stock) != slot.Terms.StockItems() || slices.ContainsFunc(stock, func(item ledger.Stock) bool { return !agrees(item) }) {
		a.forget(w.Slot)
		return slotOutdated
	}
	allocation, fits := ledger.Allocate(stock, w.take, a.pick(slot))
	if !fits {
		return slotShort
	}
	a.allocations[w.Slot] = allocation
	return unitsFound
}

func (a *allocator) pick(slot ledger.Slot) ledger.Shard {
	return ledger.PickShard(a.hold, slot.ID, slot.Terms.Shards)
}

func (a *allocator) want(id ledger.SlotID) (want, bool) {
	i := slices.IndexFunc(a.wants, func(w want) bool { return w.Slot == id })
	if i < 0 {
		return want{}, false
	}
	return a.wants[i], true
}

// forget drops all that is believed of a slot, so that the next try reads it.
func (a *allocator) forget(id ledger.SlotID) {
	a.commands.slots.forget(id)
	a.commands.stock.forget(id)
	delete(a.allocations, id)
}

func units(allocations []ledger.Allocation) ledger.Units {
	var total ledger.Units
	for _, a := range allocations {
		total += a.Quantity
	}
	return total
}

// findings are what single stock items say about a try.
type findings struct {
	allocator *allocator
	outdated  bool
	closed    []ledger.SlotID
	prices    []ledger.SlotPrice
	short     []want
}

func (a *allocator) newFindings() *findings { return &findings{allocator: a} }

// hear takes in one item of the wanted slot.
func (f *findings) hear(w want, item ledger.Stock) {
	believed := f.allocator.slots[w.Slot].Terms
	switch {
	case item.Terms.Shards != believed.Shards || item.Terms.Retired != believed.Retired,
		item.Terms.Price.Currency != believed.Price.Currency:
		f.allocator.forget(w.Slot)
		f.outdated = true
	case !item.Terms.Open:
		if !slices.Contains(f.closed, w.Slot) {
			f.closed = append(f.closed, w.Slot)
		}
	case item.Terms.Price.AmountMinor != w.UnitAmount:
		if !slices.ContainsFunc(f.prices, func(p ledger.SlotPrice) bool { return p.Slot == w.Slot }) {
			f.prices = append(f.prices, ledger.SlotPrice{Slot: w.Slot, Price: item.Terms.Price})
		}
	default:
		if !slices.Contains(f.short, w) {
			f.short = append(f.short, w)
		}
	}
}

// refusal is the answer where an item says that the slot is not sold like that.
func (f *findings) refusal() error {
	switch {
	case len(f.closed) > 0:
		return &ledger.Error{Code: ledger.CodeSlotClosed, Slots: f.closed, Message: "the slot does not take holds now; choose another"}
	case len(f.prices) > 0:
		return &ledger.Error{Code: ledger.CodePriceChanged, Prices: f.prices, Message: "the price has changed; ask again with the new price"}
	}
	return nil
}
