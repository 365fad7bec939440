package ledger

import (
	"cmp"
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
// Change. The hold then consists of what was sold. Its errors are those of Confirm, and
// CodeInvalid for a line that is not there, is named twice, or is named with more than it
// has. Confirming the same part again by the same payment returns an empty Change.
func ConfirmPart(h Hold, sold []ReturnLine, reference PaymentReference, origin Origin, now time.Time) (Change, error) {
	if h.Status == StatusConfirmed && h.PaymentReference == reference && sameLines(h, sold) {
		return Change{}, nil
	}
	whole, err := Confirm(h, reference, origin, now)
	if err != nil || whole.Empty() {
		return Change{}, cmp.Or(err, error(notActive(h, now)))
	}
	next := whole.Holds[0].Next
	next.Lines = nil
	var movements []Movement
	for _, old := range h.Lines {
		i := slices.IndexFunc(sold, func(l ReturnLine) bool { return l.Slot == old.Slot })
		kept := Units(0)
		if i >= 0 {
			kept = sold[i].Quantity
		}
		if kept < 0 || kept > old.Quantity || i >= 0 && kept == 0 {
			return Change{}, errorf(CodeInvalid, "slot %s is held %d times; confirm 1 to that many, or leave it out", old.Slot, old.Quantity)
		}
		left, back := old.shrink(old.Quantity - kept)
		movements = append(movements, Line{Slot: old.Slot, Shards: back}.movements(BucketHeld, BucketAvailable)...)
		movements = append(movements, left.movements(BucketHeld, BucketConfirmed)...)
		if kept > 0 {
			next.Lines = append(next.Lines, left)
		}
	}
	if len(sold) == 0 || len(next.Lines) != len(sold) {
		return Change{}, errorf(CodeInvalid, "name at least one line of the hold, each once")
	}
	change := Change{
		At: now, Holds: []HoldWrite{{Next: next, Replaces: h.Version}}, Stock: stockWrites(movements, nil),
		Quotas: quotaWrites(h, next, nil),
		Events: []Event{holdEvent(EventHoldConfirmed, next, origin, movements, now)},
	}
	change.forgetAfterSale(next)
	return confirmedBy(change, reference), nil
}

func sameLines(h Hold, sold []ReturnLine) bool {
	return len(h.Lines) == len(sold) && !slices.ContainsFunc(sold, func(l ReturnLine) bool { return h.line(l.Slot).Quantity != l.Quantity })
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
