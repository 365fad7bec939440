package ledger

import "time"

// SlotPatch names the parts of a slot to change; nil leaves a part as it is.
type SlotPatch struct {
	StartsAt      *time.Time
	EndsAt        *time.Time
	Attributes    map[string]string // nil leaves them; otherwise replaces all
	UnitAmount    *int64
	Currency      *Currency
	Open          *bool
	Policy        PolicyPatch
	Capacity      *Units
	CapacityDelta *Units // added to the capacity that the slot has at the write
}

// PolicyPatch names the parts of a policy to change; nil leaves a part as it is.
type PolicyPatch struct {
	HoldFor            *time.Duration
	GraceFor           *time.Duration
	HoldForMax         *time.Duration
	QuantityPerHoldMax *Units
	OnDecline          *OnDecline
	LatePayment        *LatePayment
	LateByProvider     *bool
	UnknownFor         *time.Duration
	Delivery           *DeliveryKind
	CancelFor          *time.Duration
	NoRestock          *bool
	GrantTo            *string
}

// Apply returns d with the named parts changed. It returns CodeInvalid when capacity
// and capacity_delta are both named, or the delta leads out of bounds; other parts are
// checked by SlotDefinition.Validate.
func (p SlotPatch) Apply(d SlotDefinition) (SlotDefinition, error) {
	if p.Capacity != nil && p.CapacityDelta != nil {
		return d, errorf(CodeInvalid, "name capacity or capacity_delta, not both")
	}
	replace(&d.StartsAt, p.StartsAt)
	replace(&d.EndsAt, p.EndsAt)
	if p.Attributes != nil {
		d.Attributes = p.Attributes
	}
	replace(&d.Terms.Price.AmountMinor, p.UnitAmount)
	replace(&d.Terms.Price.Currency, p.Currency)
	replace(&d.Terms.Open, p.Open)
	replace(&d.Capacity, p.Capacity)
	if p.CapacityDelta != nil {
		if *p.CapacityDelta < -CapacityMax || *p.CapacityDelta > CapacityMax {
			return d, errorf(CodeInvalid, "capacity_delta must be -%d to %d", CapacityMax, CapacityMax)
		}
		d.Capacity += *p.CapacityDelta
		if d.Capacity < 0 {
			return d, errorf(CodeCapacityInUse, "the capacity would fall below zero")
		}
	}
	d.Policy = p.Policy.Apply(d.Policy)
	return d, nil
}

// Apply returns d with the named parts changed.
func (p PolicyPatch) Apply(d Policy) Policy {
	replace(&d.HoldFor, p.HoldFor)
	replace(&d.GraceFor, p.GraceFor)
	replace(&d.HoldForMax, p.HoldForMax)
	replace(&d.QuantityPerHoldMax, p.QuantityPerHoldMax)
	replace(&d.Payment.OnDecline, p.OnDecline)
	replace(&d.Payment.LatePayment, p.LatePayment)
	replace(&d.Payment.LateByProvider, p.LateByProvider)
	replace(&d.Payment.UnknownFor, p.UnknownFor)
	replace(&d.Payment.Delivery, p.Delivery)
	replace(&d.CancelFor, p.CancelFor)
	replace(&d.NoRestock, p.NoRestock)
	replace(&d.GrantTo, p.GrantTo)
	return d
}

func replace[T any](target *T, value *T) {
	if value != nil {
		*target = *value
	}
}
