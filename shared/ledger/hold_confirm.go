package ledger

import (
	"slices"
	"time"
)

// Confirm sells what h promises. It is refused with CodeHoldNotActive once h has ended
// or now has reached h.ReleaseAt, swept or not (promise P4). Confirming again what the
// same payment has confirmed returns an empty Change and no error, because a shop that
// lost the answer asks again.
func Confirm(h Hold, reference PaymentReference, origin Origin, now time.Time) (Change, error) {
	if len(reference) > PaymentReferenceCharactersMax {
		return Change{}, errorf(CodeInvalid, "payment_reference must be at most %d characters", PaymentReferenceCharactersMax)
	}
	if h.Status == StatusConfirmed && h.PaymentReference == reference {
		return Change{}, nil
	}
	if h.StatusAt(now) != StatusHeld {
		return Change{}, notActive(h, now)
	}
	if h.Reservation != "" {
		return Change{}, paymentInProgress()
	}
	next := ended(h, StatusConfirmed, now)
	next.PaymentReference = reference
	change := endHold(h, next, EventHoldConfirmed, BucketConfirmed, origin, now)
	return confirmedBy(change, reference), nil
}

// ConfirmPart sells the named quantities of what h promises and gives back the rest, in one
// Change. The hold then consists of what was sold. Of the lines only slot and quantity
// count. Its errors are those of Confirm, and CodeInvalid for no line at all, and for one that
// is not there, is named twice, or is named with more than it has. Confirming the same part
// again by the same payment returns an empty Change.
func ConfirmPart(h Hold, sold []ReturnLine, reference PaymentReference, origin Origin, now time.Time) (Change, error) {
	if err := checkNamedOnce(sold); err != nil {
		return Change{}, err
	}
	if h.Status == StatusConfirmed && h.PaymentReference == reference && !consistsOf(h, sold) {
		return Change{}, notActive(h, now) // the same payment has bought something else
	}
	whole, err := Confirm(h, reference, origin, now)
	if err != nil || whole.Empty() {
		return Change{}, err
	}
	next := whole.Holds[0].Next
	lines, movements, err := sellPart(h, sold)
	if err != nil {
		return Change{}, err
	}
	next.Lines = lines
	change := Change{
		At: now, Holds: []HoldWrite{{Next: next, Replaces: h.Version}}, Stock: stockWrites(movements, nil),
		Quotas: quotaWrites(h, next, nil),
		Events: []Event{holdEvent(EventHoldConfirmed, next, origin, movements, now)},
	}
	change.forgetAfterSale(next)
	return confirmedBy(change, reference), nil
}

// checkNamedOnce returns CodeInvalid for no line, for a quantity of none, and for a slot that
// is named twice.
func checkNamedOnce(sold []ReturnLine) error {
	named := make(map[SlotID]bool, len(sold))
	for _, line := range sold {
		if named[line.Slot] || line.Quantity < 1 {
			return errorf(CodeInvalid, "slot %s must be named once, with a quantity of 1 or more", line.Slot)
		}
		named[line.Slot] = true
	}
	if len(sold) == 0 {
		return errorf(CodeInvalid, "name at least one line of the hold; cancel it to buy nothing")
	}
	return nil
}

// consistsOf reports whether the lines, each named once, are all that h has.
func consistsOf(h Hold, lines []ReturnLine) bool {
	return len(h.Lines) == len(lines) && !slices.ContainsFunc(lines, func(l ReturnLine) bool {
		return h.line(l.Slot).Quantity != l.Quantity
	})
}

// sellPart gives the lines of h that are left when only sold is sold, and what moves then.
func sellPart(h Hold, sold []ReturnLine) ([]Line, []Movement, error) {
	quantities := make(map[SlotID]Units, len(sold))
	for _, line := range sold {
		held := h.line(line.Slot).Quantity
		if line.Quantity > held {
			return nil, nil, errorf(CodeInvalid, "%d units of slot %s are held; confirm at most so many, or leave it out", held, line.Slot)
		}
		quantities[line.Slot] = line.Quantity
	}
	var lines []Line
	var movements []Movement
	for _, held := range h.Lines {
		left, back := held.shrink(held.Quantity - quantities[held.Slot])
		movements = append(movements, left.movements(BucketHeld, BucketConfirmed)...)
		movements = append(movements, Line{Slot: held.Slot, Shards: back}.movements(BucketHeld, BucketAvailable)...)
		if left.Quantity > 0 {
			lines = append(lines, left)
		}
	}
	return lines, movements, nil
}

// confirmedBy adds what every confirm by a trusted service requires.
func confirmedBy(change Change, reference PaymentReference) Change {
	change.Holds[0].When = BeforeRelease
	change.Holds[0].Of = noReservation()
	if reference != "" {
		change.Uniqueness = []Uniqueness{{Kind: UniquePaymentReference, Value: string(reference), Hold: change.Holds[0].Next.ID}}
	}
	return change
}
