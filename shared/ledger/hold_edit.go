package ledger

import (
	"slices"
	"time"
)

// HoldEdit is one try at changing a hold: what its lines shall be, and how long it shall
// live. What is not named stays.
type HoldEdit struct {
	// Quotes are all lines as they shall be, normalized; nil leaves the lines. A line that
	// keeps its quantity or gets smaller keeps the price that was quoted, which its quote
	// repeats. A line that grows, and one that is new, is quoted at today's price, all of it.
	Quotes []Quote
	// Slots are the resolved definitions of the slots that grow or are new, and Allocations
	// where the units that come to each are taken from.
	Slots       map[SlotID]Slot
	Allocations map[SlotID][]Allocation
	// ExtendFor is how long the hold shall live from now on; zero leaves its time. It lives
	// at most as long as its slots' policies said at its creation.
	ExtendFor time.Duration
	// CooledDown says that the owner's last expired hold is longer ago than the cool-down.
	// The write makes sure of it.
	CooledDown bool
}

// Growth is what of quotes h does not have: of each slot the quote as it shall be, for the
// slots that grow or are new.
func (h Hold) Growth(quotes []Quote) []Quote {
	var out []Quote
	for _, q := range quotes {
		if q.Quantity > h.line(q.Slot).Quantity {
			out = append(out, q)
		}
	}
	return out
}

// EditHold changes what h promises, at its owner's wish: quantities, slots and time,
// together or not at all. It takes units and gives units back in one Change.
//
// Errors: CodeHoldNotActive from h.ExpiresAt on, CodePaymentInProgress once a payment was
// started, CodePriceChanged for a line that is kept and quoted at another price,
// CodeHoldAtMaximum for an extension of a hold that has its longest life, and those of
// NewHold. An edit that changes nothing returns an empty Change.
func EditHold(h Hold, edit HoldEdit, origin Origin, now time.Time) (Change, error) {
	switch {
	case h.ArchivedIn != "":
		return Change{}, HoldArchived()
	case h.Status != StatusHeld || !now.Before(h.ExpiresAt):
		return Change{}, errorf(CodeHoldNotActive, "the hold is %s or its time is over; make a new hold", h.StatusAt(now))
	case h.Reservation != "":
		return Change{}, paymentInProgress()
	}
	next := h
	next.Version++
	relined, err := reline(&next, h, edit, now)
	if err != nil {
		return Change{}, err
	}
	if edit.ExtendFor != 0 {
		if err := extend(&next, edit.ExtendFor, now); err != nil {
			return Change{}, err
		}
	}
	if !relined.changed && next.ExpiresAt.Equal(h.ExpiresAt) {
		return Change{}, nil
	}
	change := Change{
		At: now, Stock: stockWrites(relined.movements, relined.offer.sale),
		Holds:  []HoldWrite{{Next: next, Replaces: h.Version, When: BeforeExpiry, NoOpenAttempt: true, Of: noReservation()}},
		Quotas: quotaWrites(h, next, relined.offer.limits.most),
		Events: []Event{holdEvent(EventHoldChanged, next, origin, relined.movements, now)},
	}
	if !h.CountsExpiry {
		// It is the owner's first time with such a slot in this hold, like a new hold of it.
		relined.offer.limits.coolDown(&change, h.Owner, edit.CooledDown)
	}
	if err := withinLimits(change.Quotas); err != nil {
		return Change{}, err
	}
	return change, nil
}

// relining is what new lines of a hold come to.
type relining struct {
	changed   bool
	movements []Movement
	offer     offer // of the slots that grow or are new
}

// reline gives next the lines that the edit names.
func reline(next *Hold, h Hold, edit HoldEdit, now time.Time) (relining, error) {
	if edit.Quotes == nil {
		return relining{}, nil
	}
	r := relining{}
	grown := h.Growth(edit.Quotes)
	var err error
	if r.offer, err = offerOf(grown, edit.Slots, now); err != nil {
		return relining{}, err
	}
	next.Lines = nil
	var prices []SlotPrice
	for _, q := range edit.Quotes {
		old := h.line(q.Slot)
		line, moved, err := r.editLine(old, q, h.Owner, edit.Allocations[q.Slot])
		if err != nil {
			return relining{}, err
		}
		if q.UnitAmount != line.UnitPrice.AmountMinor {
			prices = append(prices, SlotPrice{q.Slot, line.UnitPrice})
		}
		next.Lines = append(next.Lines, line)
		r.movements = append(r.movements, moved...)
	}
	if len(prices) > 0 {
		return relining{}, &Error{Code: CodePriceChanged, Prices: prices, Message: "what you keep was quoted at another price; ask again with that"}
	}
	for _, old := range h.Lines {
		if !slices.ContainsFunc(edit.Quotes, func(q Quote) bool { return q.Slot == old.Slot }) {
			r.movements = append(r.movements, old.movements(BucketHeld, BucketAvailable)...)
		}
	}
	// Growth without an allocation moves nothing, but it is no edit of nothing: Validate
	// finds the line that takes less than it promises.
	r.changed = len(grown) > 0 || len(r.movements) > 0
	if err := next.fits(r.movements); err != nil {
		return relining{}, err
	}
	r.tighten(next, now)
	return r, nil
}

// editLine is the line of the quote, and what moves for it.
func (r *relining) editLine(old Line, q Quote, owner OwnerID, more []Allocation) (Line, []Movement, error) {
	if q.Quantity <= old.Quantity {
		left, back := old.shrink(old.Quantity - q.Quantity)
		return left, Line{Slot: q.Slot, Shards: back}.movements(BucketHeld, BucketAvailable), nil
	}
	line, err := r.offer.line(q, owner, addAllocations(old.Shards, more))
	return line, Line{Slot: q.Slot, Shards: more}.movements(BucketAvailable, BucketHeld), err
}

// tighten lets the slots that came make the hold shorter and stricter. What goes makes it
// no longer: nobody gets time by exchanging slots. The hold ends at the latest when a new
// hold of the slots that came would, so that none of them is held longer than its policy
// says.
func (r *relining) tighten(next *Hold, now time.Time) {
	if len(r.offer.policies) == 0 {
		return
	}
	holdFor, holdForMax := r.offer.lives()
	next.HoldFor, next.HoldForMax = min(next.HoldFor, holdFor), min(next.HoldForMax, holdForMax)
	next.GraceFor, next.Terms = strictest(append([]Policy{{GraceFor: next.GraceFor, Payment: next.Terms}}, r.offer.policies...))
	if until := now.Add(next.HoldFor); until.Before(next.ExpiresAt) {
		next.ExpiresAt = until
	}
	next.ReleaseAt = next.ExpiresAt
	r.offer.count(next)
}

// extend moves the end of the hold to holdFor from now, as far as its longest life goes. A
// hold that ends later than that already stays as it is.
func extend(next *Hold, holdFor time.Duration, now time.Time) error {
	if holdFor < time.Second || holdFor > next.HoldFor {
		return errorf(CodeInvalid, "hold_seconds must be 1 to %d, which is how long this hold is promised at a time", int(next.HoldFor.Seconds()))
	}
	longest := next.CreatedAt.Add(next.HoldForMax)
	until := now.Add(holdFor)
	if until.After(longest) {
		until = longest
	}
	switch {
	case until.After(next.ExpiresAt):
		next.ExpiresAt, next.ReleaseAt = until, until
	case !next.ExpiresAt.Before(longest):
		return errorf(CodeHoldAtMaximum, "the hold has its longest life; confirm it, or make a new one")
	}
	return nil
}
