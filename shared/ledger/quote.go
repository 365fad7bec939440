package ledger

import (
	"cmp"
	"slices"
)

// Quote is one line as a caller asks for it: so many units at this unit amount. The
// currency is the slot's own, never the caller's (case K3).
type Quote struct {
	Slot       SlotID
	Quantity   Units
	UnitAmount int64
}

// NormalizeQuotes adds up quotes of the same slot and orders them by slot, so that two
// requests that mean the same are the same (cases F1 and E4). It returns CodeInvalid
// for a quantity or amount out of bounds, for two prices of one slot, and for none or
// too many slots.
func NormalizeQuotes(quotes []Quote) ([]Quote, error) {
	bySlot := make(map[SlotID]Quote, len(quotes))
	for _, q := range quotes {
		switch {
		case !ValidName(string(q.Slot)):
			return nil, errorf(CodeInvalid, "slot_id must be 1 to %d characters of A-Z a-z 0-9 . _ : -", NameCharactersMax)
		case q.Quantity < 1 || q.Quantity > QuantityPerLineMax:
			return nil, errorf(CodeInvalid, "quantity must be 1 to %d", QuantityPerLineMax)
		case q.UnitAmount < 0 || q.UnitAmount > AmountMinorMax:
			return nil, errorf(CodeInvalid, "unit_amount must be 0 to %d", int64(AmountMinorMax))
		}
		sum, seen := bySlot[q.Slot]
		if seen && sum.UnitAmount != q.UnitAmount {
			return nil, errorf(CodeInvalid, "slot %s is quoted at two prices; quote one", q.Slot)
		}
		q.Quantity += sum.Quantity
		if q.Quantity > QuantityPerLineMax {
			return nil, errorf(CodeInvalid, "the quantity of slot %s adds up to more than %d", q.Slot, QuantityPerLineMax)
		}
		bySlot[q.Slot] = q
		if len(bySlot) > LinesMax {
			return nil, errorf(CodeInvalid, "a hold may have at most %d slots", LinesMax)
		}
	}
	if len(bySlot) == 0 {
		return nil, errorf(CodeInvalid, "a hold needs at least one line")
	}
	out := make([]Quote, 0, len(bySlot))
	for _, q := range bySlot {
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b Quote) int { return cmp.Compare(a.Slot, b.Slot) })
	return out, nil
}
