package ledger

import (
	"slices"
	"time"
)

// offer is what the slots of a hold are offered at, at one moment.
type offer struct {
	slots    map[SlotID]Slot
	policies []Policy
	sale     map[SlotID]Terms // the terms that the write requires
	limits   limits
}

// offerOf looks the quotes up in slots, which must be resolved. It returns
// CodeSlotNotFound, CodeQuantityOverLimit, CodeSaleNotOpen or CodeSaleOver where a slot is
// not offered like that.
func offerOf(quotes []Quote, slots map[SlotID]Slot, now time.Time) (offer, error) {
	o := offer{slots: slots, sale: make(map[SlotID]Terms, len(quotes))}
	named := make([]Slot, 0, len(quotes))
	for _, q := range quotes {
		slot, known := slots[q.Slot]
		if !known {
			return offer{}, SlotNotFound(q.Slot)
		}
		if q.Quantity > slot.Policy.QuantityPerHoldMax {
			return offer{}, &Error{Code: CodeQuantityOverLimit, Slots: []SlotID{q.Slot},
				Message: "one hold may take fewer of this slot; ask for a smaller quantity"}
		}
		if err := slot.OnSale(now); err != nil {
			return offer{}, err
		}
		price := Money{q.UnitAmount, slot.Terms.Price.Currency}
		o.sale[q.Slot] = Terms{Open: true, Price: price, Shards: slot.Terms.Shards, Retired: slot.Terms.Retired}
		o.policies = append(o.policies, slot.Policy)
		named = append(named, slot)
	}
	o.limits = limitsOf(named)
	return o, nil
}

// line is the quote as a line of a hold of the owner.
func (o offer) line(q Quote, owner OwnerID, shards []Allocation) (Line, error) {
	slot := o.slots[q.Slot]
	grantTo, err := slot.Policy.grantTo(owner)
	if err != nil {
		return Line{}, err
	}
	return Line{
		Slot: q.Slot, Quantity: q.Quantity, UnitPrice: o.sale[q.Slot].Price, Shards: shards,
		CancelUntil: slot.cancelUntil(), OverAt: slot.overAt(), NoRestock: slot.Policy.NoRestock, GrantTo: grantTo,
		CountsIn: countsInOf(slot),
	}, nil
}

// lives are the shortest life and the shortest longest life of the policies.
func (o offer) lives() (holdFor, holdForMax time.Duration) {
	holdFor, holdForMax = o.policies[0].HoldFor, o.policies[0].HoldForMax
	for _, p := range o.policies[1:] {
		holdFor, holdForMax = min(holdFor, p.HoldFor), min(holdForMax, p.HoldForMax)
	}
	return min(holdFor, holdForMax), holdForMax
}

// count writes down in the hold what it is counted as beside its lines. What it is counted
// as already stays.
func (o offer) count(h *Hold) {
	if o.limits.most[QuotaHolds] > 0 && !slices.Contains(h.CountsIn, QuotaHolds) {
		h.CountsIn = append(slices.Clone(h.CountsIn), QuotaHolds)
	}
	h.CountsExpiry = h.CountsExpiry || o.limits.expiries > 0
	h.Scarce = h.Scarce || slices.ContainsFunc(o.policies, func(p Policy) bool { return p.Scarce })
}

// fits returns an error for a hold without lines, for one whose end, or whose taking of
// movements, would not fit into one transaction, and for lines that are not of one currency.
func (h Hold) fits(movements []Movement) error {
	if len(h.Lines) == 0 {
		return errorf(CodeInvalid, "a hold needs at least one line; cancel it to give back all")
	}
	items := 0
	for _, line := range h.Lines {
		items += len(line.Shards)
		if line.UnitPrice.Currency != h.Lines[0].UnitPrice.Currency {
			return errorf(CodeInvalid, "all slots of a hold must be priced in one currency; make a hold for each")
		}
	}
	switch items = max(items, len(movements)); {
	case len(movements) > StockActionsMax && h.Version > 1:
		return errorf(CodeInvalid, "the change would move more than %d stock items; change fewer slots at once", StockActionsMax)
	case items > StockActionsMax:
		// What is left of the slots lies in small parts. That is nobody's fault, but asking
		// again for the same does not help as long as nothing comes back.
		return errorf(CodeQuantityOverLimit, "the units that are left lie on more than the %d stock items that one hold can take from; make a hold for each slot, or ask for fewer units", StockActionsMax)
	case items+h.grantedSlots() > StockActionsMax:
		return errorf(CodeInvalid, "a slot that credits another counts as two, and a hold may have at most %d; ask for fewer slots at once", StockActionsMax)
	}
	return nil
}
