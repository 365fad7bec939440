package ledger

import (
	"slices"
	"time"
)

// Restock says whether units that are given back are sold again.
type Restock string

// The ways.
const (
	// RestockByPolicy does as the slot's policy said when the hold was made.
	RestockByPolicy Restock = ""
	RestockAlways   Restock = "restock"
	RestockNever    Restock = "no_restock" // they are broken, or expired
)

func (r Restock) never(l Line) bool {
	return r == RestockNever || r == RestockByPolicy && l.NoRestock
}

// ReturnLine is a part of a sale that is given back.
type ReturnLine struct {
	Slot     SlotID
	Quantity Units
	Restock  Restock
}

// ReturnUnpaid is Return for a hold that a trusted service has sold on its own, by the same
// errors. A hold with a reservation is refused with CodeHasReservation: its money must go
// back with its units, which the cancellation of the reservation does.
func ReturnUnpaid(h Hold, lines []ReturnLine, origin Origin, now time.Time) (Change, error) {
	if h.Reservation != "" {
		return Change{}, errorf(CodeHasReservation, "the hold was paid through its reservation; cancel that, or lines of it")
	}
	return Return(h, lines, origin, now)
}

// Return gives back a part of what h sold, or all of it with no lines. When nothing is
// left, the hold is RETURNED; otherwise it stays CONFIRMED. It returns
// CodeHoldNotActive for a hold that is not CONFIRMED, CodeReturnOverSale for more than
// is left of a line, CodeInvalid for a line that is not there or is named twice, and
// CodeHoldArchived for a hold that lies in the archive.
func Return(h Hold, lines []ReturnLine, origin Origin, now time.Time) (Change, error) {
	if h.ArchivedIn != "" {
		return Change{}, HoldArchived()
	}
	if h.Status != StatusConfirmed {
		return Change{}, errorf(CodeHoldNotActive, "the hold is %s; only a CONFIRMED hold can be returned", h.Status)
	}
	if len(lines) == 0 {
		lines = h.Unreturned()
	}
	next := h
	next.Lines = slices.Clone(h.Lines)
	next.Version++
	var movements []Movement
	named := make(map[SlotID]bool, len(lines))
	for _, wanted := range lines {
		i := slices.IndexFunc(next.Lines, func(l Line) bool { return l.Slot == wanted.Slot })
		if i < 0 || named[wanted.Slot] || wanted.Quantity < 1 {
			return Change{}, errorf(CodeInvalid, "slot %s must be a line of the hold, named once, with a quantity of 1 or more", wanted.Slot)
		}
		named[wanted.Slot] = true
		back, ok := next.Lines[i].giveBack(wanted.Quantity)
		if !ok {
			return Change{}, errorf(CodeReturnOverSale, "fewer units of slot %s are left than are given back", wanted.Slot)
		}
		to := BucketAvailable
		if wanted.Restock.never(next.Lines[i]) {
			to = BucketOutside
		}
		movements = append(movements, Line{Slot: wanted.Slot, Shards: back}.movements(BucketConfirmed, to)...)
	}
	if len(next.Unreturned()) == 0 {
		next.Status = StatusReturned
	}
	return Change{
		At: now, Stock: stockWrites(movements, nil),
		Holds:  []HoldWrite{{Next: next, Replaces: h.Version, From: StatusConfirmed}},
		Quotas: quotaWrites(h, next, nil),
		Events: []Event{holdEvent(EventHoldReturned, next, origin, movements, now)},
	}, nil
}

// Unreturned is what is left of each line.
func (h Hold) Unreturned() []ReturnLine {
	var out []ReturnLine
	for _, line := range h.Lines {
		if left := line.Quantity - line.ReturnedQuantity(); left > 0 {
			out = append(out, ReturnLine{Slot: line.Slot, Quantity: left})
		}
	}
	return out
}
