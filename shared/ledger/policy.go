package ledger

import (
	"strings"
	"time"
)

// Limits of a policy.
const (
	// HoldForDefault is how long a hold lives when nothing says otherwise.
	HoldForDefault = 10 * time.Minute
	// GraceForDefault is how much longer a started payment may take.
	GraceForDefault = 2 * time.Minute
	// HoldForMaxDefault is the longest total life of a hold when nothing says otherwise.
	HoldForMaxDefault = time.Hour
	// HoldForLimit bounds every time of a policy.
	HoldForLimit = 7 * 24 * time.Hour
	// QuantityPerLineMax bounds the quantity of one slot in one hold.
	QuantityPerLineMax Units = 10_000
	// CancelForLimit bounds how long before a start the last return is, and the sale ends.
	CancelForLimit = 366 * 24 * time.Hour
	// OwnerLimitMax bounds every limit that a policy sets to one owner.
	OwnerLimitMax Units = 1_000_000
	// TimeZoneCharactersMax bounds the name of a time zone.
	TimeZoneCharactersMax = 64
	// ownerPlaceholder stands for the buyer in Policy.GrantTo.
	ownerPlaceholder = "{owner}"
)

// Policy is how a slot is promised. Changes apply to new holds only, and to what a hold
// takes newly when it is edited. A limit of zero is no limit.
type Policy struct {
	HoldFor            time.Duration // from creation to expires_at
	GraceFor           time.Duration // added once when a payment starts
	HoldForMax         time.Duration // the longest total life
	QuantityPerHoldMax Units
	Payment            PaymentTerms
	// CancelFor is how long before the slot's start a sold unit can be given back for the
	// last time. It means nothing for a slot without a start.
	CancelFor time.Duration
	// NoRestock says that a unit that is given back after the sale is not sold again.
	NoRestock bool
	// GrantTo names the slot whose stock grows by what is sold here, once it is paid. The
	// text {owner} in it stands for the buyer. It is "" for no grant. The catalogue says
	// it and never the buyer, who could otherwise make stock of anything.
	GrantTo string

	// QuantityPerOwnerMax bounds the units of the slot that one owner has in HELD holds and
	// has bought and not given back.
	QuantityPerOwnerMax Units
	// QuantityPerOwnerOfResourceMax bounds the same over all slots of the resource that have
	// such a limit.
	QuantityPerOwnerOfResourceMax Units
	// HoldsPerOwnerMax bounds how many HELD holds an owner has who makes one with the slot.
	// Only holds of slots with such a limit are counted.
	HoldsPerOwnerMax Units
	// ExpiriesMax is how many holds with such slots an owner may let expire, one after the
	// other without buying in between, before CooldownFor begins with the last of them. A
	// cool-down keeps from new holds, and from exchanging a hold of other slots for one with
	// such a slot. A hold with such a slot that the owner still has can be edited.
	ExpiriesMax Units
	CooldownFor time.Duration
	// HoldsPerSignalMax bounds how many holds are made in one SignalWindow from one device,
	// and with one means of payment, as far as the caller tells them apart.
	HoldsPerSignalMax Units

	// SaleFrom and SaleUntil bound when a hold can be made; zero is no bound.
	SaleFrom, SaleUntil time.Time
	// SaleEndsFor is how long before the slot's start the sale ends. It counts only where
	// SaleEnds is set, and means nothing for a slot without a start.
	SaleEnds    bool
	SaleEndsFor time.Duration
	// SaleTimeZone is the IANA name of the zone in which people read those times; "" for UTC.
	SaleTimeZone string
	// Scarce marks what is hard to get: a hold of it that is stuck is worth waking somebody.
	Scarce bool
}

// DefaultPolicy is the policy where nothing says otherwise.
func DefaultPolicy() Policy {
	return Policy{
		HoldFor: HoldForDefault, GraceFor: GraceForDefault, HoldForMax: HoldForMaxDefault,
		QuantityPerHoldMax: QuantityPerLineMax, Payment: DefaultPaymentTerms(),
	}
}

// Equal reports whether p and q say the same. Policies have times, which == compares by
// their form and not by their moment.
func (p Policy) Equal(q Policy) bool {
	if !p.SaleFrom.Equal(q.SaleFrom) || !p.SaleUntil.Equal(q.SaleUntil) {
		return false
	}
	p.SaleFrom, p.SaleUntil, q.SaleFrom, q.SaleUntil = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	return p == q
}

func (p Policy) validate() error {
	switch {
	case p.HoldForMax < time.Second || p.HoldForMax > HoldForLimit:
		return errorf(CodeInvalid, "hold_max_seconds must be 1 to %d", int(HoldForLimit.Seconds()))
	case p.HoldFor < time.Second || p.HoldFor > HoldForLimit:
		return errorf(CodeInvalid, "hold_seconds must be 1 to %d", int(HoldForLimit.Seconds()))
	case p.GraceFor < 0 || p.GraceFor > HoldForLimit:
		return errorf(CodeInvalid, "grace_seconds must be 0 to %d", int(HoldForLimit.Seconds()))
	case p.HoldForMax < p.HoldFor:
		return errorf(CodeInvalid, "hold_max_seconds must be at least hold_seconds")
	case p.QuantityPerHoldMax < 1 || p.QuantityPerHoldMax > QuantityPerLineMax:
		return errorf(CodeInvalid, "quantity_max_per_hold must be 1 to %d", QuantityPerLineMax)
	case p.CancelFor < 0 || p.CancelFor > CancelForLimit:
		return errorf(CodeInvalid, "cancel_until_seconds must be 0 to %d", int(CancelForLimit.Seconds()))
	}
	if _, err := p.grantTo("owner"); err != nil {
		return err
	}
	if err := p.validateLimits(); err != nil {
		return err
	}
	if err := p.validateSale(); err != nil {
		return err
	}
	return p.Payment.validate()
}

func (p Policy) validateLimits() error {
	limits := []struct {
		name  string
		units Units
	}{
		{"quantity_max_per_owner", p.QuantityPerOwnerMax},
		{"quantity_max_per_owner_of_resource", p.QuantityPerOwnerOfResourceMax},
		{"holds_max_per_owner", p.HoldsPerOwnerMax},
		{"expiries_max", p.ExpiriesMax},
		{"holds_max_per_signal", p.HoldsPerSignalMax},
	}
	for _, limit := range limits {
		if limit.units < 0 || limit.units > OwnerLimitMax {
			return errorf(CodeInvalid, "%s must be 0 to %d; 0 is no limit", limit.name, OwnerLimitMax)
		}
	}
	switch {
	case p.CooldownFor < 0 || p.CooldownFor > HoldForLimit:
		return errorf(CodeInvalid, "cooldown_seconds must be 0 to %d", int(HoldForLimit.Seconds()))
	case p.ExpiriesMax > 0 && p.CooldownFor == 0:
		return errorf(CodeInvalid, "expiries_max needs a cooldown_seconds of 1 or more")
	}
	return nil
}

// grantTo is the slot that a sale to the owner credits, or "" for none.
func (p Policy) grantTo(owner OwnerID) (SlotID, error) {
	if p.GrantTo == "" {
		return "", nil
	}
	id := strings.ReplaceAll(p.GrantTo, ownerPlaceholder, string(owner))
	if !ValidName(id) {
		return "", errorf(CodeInvalid, "grant_to_slot_id must make a slot id of 1 to %d characters of A-Z a-z 0-9 . _ : - for this owner", NameCharactersMax)
	}
	return SlotID(id), nil
}
