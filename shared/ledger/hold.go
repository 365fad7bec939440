package ledger

import (
	"fmt"
	"time"
)

// Limits of a hold.
const (
	// LinesMax bounds the lines of a hold, after lines of the same slot are added up.
	LinesMax = 50
	// StockActionsMax bounds the stock items that one hold takes from. With the hold,
	// its event, its idempotency record and room for quotas and uniqueness records, a
	// transaction stays under 100 actions, also when the hold ends (case F5).
	StockActionsMax = 80
)

// Status is where a hold is in its life.
type Status string

// The statuses. A hold leaves HELD once, to CONFIRMED, CANCELED or EXPIRED, and a
// CONFIRMED one may become RETURNED. None of them ever goes back.
const (
	StatusHeld      Status = "HELD"      // promised; the units are out of available
	StatusConfirmed Status = "CONFIRMED" // sold
	StatusCanceled  Status = "CANCELED"  // given up; the units are available again
	StatusExpired   Status = "EXPIRED"   // over; the units are available again
	StatusReturned  Status = "RETURNED"  // sold and given back; nothing of it is left
)

// StatusPaymentChecking is what a reader is shown of a HELD hold that is over while a
// payment may still arrive for it. It is never stored.
const StatusPaymentChecking Status = "PAYMENT_CHECKING"

// Hold is a promise of units to one owner until ReleaseAt.
type Hold struct {
	ID        HoldID
	Owner     OwnerID
	Status    Status
	Lines     []Line // one per slot, ordered by slot
	CreatedAt time.Time
	// ExpiresAt is what the user sees.
	ExpiresAt time.Time
	// ReleaseAt is when the hold is over: at ReleaseAt or later no confirm succeeds.
	ReleaseAt time.Time
	// HoldFor is how long from its moment on an extension promises it, and HoldForMax how
	// long after its creation extensions end. Both are fixed at creation, like GraceFor and
	// Terms; slots that an edit adds may make them stricter, and nothing makes them kinder.
	HoldFor, HoldForMax time.Duration
	// GraceFor is how much a started payment moves ReleaseAt.
	GraceFor time.Duration
	// Terms say what a payment does to the hold.
	Terms PaymentTerms
	// Reservation is the payment that was started for the hold; "" before.
	Reservation ReservationID
	// AttemptOpen is the payment attempt that may still succeed, zero for none. While it
	// is set nobody releases the hold but the reservation itself.
	AttemptOpen AttemptNumber
	// Reacquires is the hold in whose place this one was born CONFIRMED, because its
	// payment came late; "" for every other hold.
	Reacquires HoldID
	// PaymentReference is what a confirm rested on, if the shop named it.
	PaymentReference PaymentReference
	// CountsIn are the counts of its owner that the hold is part of while it is HELD. What
	// was counted is written down, so that a limit that changes later strands nothing.
	CountsIn []QuotaKey
	// CountsExpiry says that the hold is counted if it expires.
	CountsExpiry bool
	// Scarce says that one of its slots is hard to get, or was before an edit.
	Scarce bool
	// EndedAt is when the hold left HELD; zero before.
	EndedAt time.Time
	// ArchivedIn is the batch of the archive that it lies in; "" while it is in use. An
	// archived hold never changes again.
	ArchivedIn BatchID
	Version    Version
}

// DueAt is when the sweep looks at the hold, and false once it has ended. While a
// payment attempt is open that is later than ReleaseAt: first the reservation must make
// sure that no money can come.
func (h Hold) DueAt() (time.Time, bool) {
	due := h.ReleaseAt
	if h.AttemptOpen != 0 {
		due = due.Add(h.Terms.UnknownFor)
	}
	return due, h.Status == StatusHeld
}

// StatusAt is the status that a reader is shown at now: a HELD hold whose time is over
// reads as EXPIRED, swept or not, or as PAYMENT_CHECKING while an attempt is open.
func (h Hold) StatusAt(now time.Time) Status {
	switch {
	case h.Status != StatusHeld || now.Before(h.ReleaseAt):
		return h.Status
	case h.AttemptOpen != 0:
		return StatusPaymentChecking
	}
	return StatusExpired
}

// Total is the sum over the lines at the quoted prices.
func (h Hold) Total() Money {
	var total Money
	for _, line := range h.Lines {
		total.Currency = line.UnitPrice.Currency
		total.AmountMinor += line.UnitPrice.Times(line.Quantity).AmountMinor
	}
	return total
}

// HoldPlan is one try at a hold: the normalized quotes, the resolved definition of each
// slot as it was last read, and the shards to take each line from.
type HoldPlan struct {
	ID          HoldID
	Owner       OwnerID
	Quotes      []Quote
	Slots       map[SlotID]Slot
	Allocations map[SlotID][]Allocation
	// Signals are what the caller's device and means of payment are known by.
	Signals []Signal
	// CooledDown says that the owner's last expired hold is longer ago than the cool-down.
	// The write makes sure of it.
	CooledDown bool
}

// NewHold promises what plan says from now on. Whether the slots are open, at the
// quoted price, in that many shards and with enough available, and whether the owner is
// within the limits, is not looked at here: the Change carries it as conditions of the
// write. The hold lives as long as the shortest of its slots' policies, and so do its
// grace and its longest life.
//
// Errors: CodeSlotNotFound, CodeQuantityOverLimit, CodeSaleNotOpen, CodeSaleOver,
// CodeLimitReached for more than a limit allows whatever the owner has, CodeInvalid.
func NewHold(plan HoldPlan, origin Origin, now time.Time) (Change, error) {
	hold := Hold{ID: plan.ID, Owner: plan.Owner, Status: StatusHeld, CreatedAt: now, Version: 1}
	offer, err := offerOf(plan.Quotes, plan.Slots, now)
	if err != nil {
		return Change{}, err
	}
	var movements []Movement
	for _, q := range plan.Quotes {
		line, err := offer.line(q, plan.Owner, plan.Allocations[q.Slot])
		if err != nil {
			return Change{}, err
		}
		hold.Lines = append(hold.Lines, line)
		movements = append(movements, line.movements(BucketAvailable, BucketHeld)...)
	}
	if err := hold.fits(movements); err != nil {
		return Change{}, err
	}
	hold.HoldFor, hold.HoldForMax = offer.lives()
	hold.GraceFor, hold.Terms = strictest(offer.policies)
	hold.ExpiresAt = now.Add(hold.HoldFor)
	hold.ReleaseAt = hold.ExpiresAt
	offer.count(&hold)
	change := Change{
		At:      now,
		Holds:   []HoldWrite{{Next: hold}},
		Stock:   stockWrites(movements, offer.sale),
		Quotas:  quotaWrites(Hold{}, hold, offer.limits.most),
		Signals: offer.limits.signalWrites(plan.Signals, now),
		Events:  []Event{holdEvent(EventHoldCreated, hold, origin, movements, now)},
	}
	offer.limits.coolDown(&change, plan.Owner, plan.CooledDown)
	if err := withinLimits(change.Quotas); err != nil {
		return Change{}, err
	}
	return change, nil
}

// Cancel gives back what h promises, on the owner's wish. A hold that has ended is
// refused with CodeHoldNotActive, and with CodeHoldArchived once it lies in the archive; one
// that is over but not yet swept may still be cancelled, which ends it just as well. While a
// payment attempt is open it is refused with CodePaymentInProgress: money could arrive for
// units that are somebody else's.
func Cancel(h Hold, origin Origin, now time.Time) (Change, error) {
	switch {
	case h.Status != StatusHeld:
		return Change{}, notActive(h, now)
	case h.AttemptOpen != 0:
		return Change{}, paymentInProgress()
	}
	change := endHold(h, ended(h, StatusCanceled, now), EventHoldCanceled, BucketAvailable, origin, now)
	change.Holds[0].NoOpenAttempt = true
	return change, nil
}

// Expire ends h if it is over at now and gives its units back to the shards they came
// from. A hold that has already ended returns an empty Change and no error, because
// the sweep is delivered at least once. It returns CodeHoldNotDue while now is before
// h.ReleaseAt, and CodePaymentInProgress while a payment attempt is open: that hold is
// ended by ExpireUnknown, together with its reservation.
func Expire(h Hold, origin Origin, now time.Time) (Change, error) {
	if h.Status != StatusHeld {
		return Change{}, nil
	}
	if now.Before(h.ReleaseAt) {
		return Change{}, errorf(CodeHoldNotDue, "the hold is not over yet")
	}
	if h.AttemptOpen != 0 {
		return Change{}, paymentInProgress()
	}
	change := endHold(h, ended(h, StatusExpired, now), EventHoldExpired, BucketAvailable, origin, now)
	change.Holds[0].When, change.Holds[0].NoOpenAttempt = FromRelease, true
	if h.CountsExpiry && h.Reservation == "" {
		// Who has tried to pay did not take the units away from others for nothing.
		change.withQuota(h.Owner, func(w *QuotaWrite) { w.Expired = true })
	}
	return change, nil
}

// notActive is the refusal of a step that an ended hold has not.
func notActive(h Hold, now time.Time) *Error {
	if h.ArchivedIn != "" {
		return HoldArchived()
	}
	return errorf(CodeHoldNotActive, "the hold is %s; make a new hold", h.StatusAt(now))
}

func ended(h Hold, status Status, now time.Time) Hold {
	h.Status = status
	h.EndedAt = now
	h.AttemptOpen = 0
	h.Version++
	return h
}

// endHold builds the one Change that moves all of h's units from held to where they go.
func endHold(h, next Hold, t EventType, to Bucket, origin Origin, now time.Time) Change {
	var movements []Movement
	for _, line := range h.Lines {
		movements = append(movements, line.movements(BucketHeld, to)...)
	}
	change := Change{
		At:     now,
		Holds:  []HoldWrite{{Next: next, Replaces: h.Version}},
		Stock:  stockWrites(movements, nil),
		Quotas: quotaWrites(h, next, nil),
		Events: []Event{holdEvent(t, next, origin, movements, now)},
	}
	change.forgetAfterSale(next)
	return change
}

// forgetAfterSale lets the owner who buys begin anew.
func (c *Change) forgetAfterSale(sold Hold) {
	if sold.Status == StatusConfirmed && sold.CountsExpiry {
		c.withQuota(sold.Owner, func(w *QuotaWrite) { w.Forget = true })
	}
}

// grantedSlots is how many stock items a cancellation may have to take grants back from,
// beside those of the lines: one for each slot that is credited.
func (h Hold) grantedSlots() int {
	granted := make(map[SlotID]bool)
	for _, line := range h.Lines {
		if line.GrantTo != "" {
			granted[line.GrantTo] = true
		}
	}
	return len(granted)
}

// checkLines returns an error unless there are lines, each line's quantity is what its shards give, and no
// more was returned than was taken: the line is what the owner is told, the shards are
// what the stock loses.
func (h Hold) checkLines() error {
	if len(h.Lines) == 0 {
		return fmt.Errorf("hold %s promises nothing", h.ID)
	}
	for _, line := range h.Lines {
		if taken := sum(line.Shards); taken != line.Quantity {
			return fmt.Errorf("hold %s promises %d units of slot %s but takes %d", h.ID, line.Quantity, line.Slot, taken)
		}
		for _, back := range line.Returned {
			if back.Quantity < 1 || back.Quantity > line.takenFrom(back.Shard) {
				return fmt.Errorf("hold %s gives back %d units of slot %s to shard %s, which it did not take", h.ID, back.Quantity, line.Slot, back.Shard)
			}
		}
	}
	return nil
}
