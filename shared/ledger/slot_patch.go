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
	Shards        *int
	Policy        PolicyPatch
	Capacity      *Units
	CapacityDelta *Units // added to the capacity that the slot has at the write
	// AcceptOversold lets Capacity be less than is held and confirmed.
	AcceptOversold bool
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

	QuantityPerOwnerMax           *Units
	QuantityPerOwnerOfResourceMax *Units
	HoldsPerOwnerMax              *Units
	ExpiriesMax                   *Units
	CooldownFor                   *time.Duration
	HoldsPerSignalMax             *Units
	SaleFrom                      *time.Time
	SaleUntil                     *time.Time
	SaleEndsFor                   *time.Duration
	SaleTimeZone                  *string
	Scarce                        *bool
	// Inherit are the parts that are left to the place above from now on.
	Inherit PolicyParts
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
	replace(&d.Terms.Shards, p.Shards)
	replace(&d.Capacity, p.Capacity)
	d.KeepCapacity = d.KeepCapacity && p.Capacity == nil && p.CapacityDelta == nil
	d.AcceptOversold = p.AcceptOversold
	if p.CapacityDelta != nil {
		if *p.CapacityDelta < -CapacityMax || *p.CapacityDelta > CapacityMax {
			return d, errorf(CodeInvalid, "capacity_delta must be -%d to %d", CapacityMax, CapacityMax)
		}
		d.Capacity += *p.CapacityDelta
		if d.Capacity < 0 {
			return d, errorf(CodeCapacityInUse, "the capacity would fall below zero")
		}
	}
	layer := p.Policy.Apply(PolicyLayer{d.Policy, d.Inherits})
	d.Policy, d.Inherits = layer.Policy, layer.Inherits
	return d, nil
}

// Apply returns l with the named parts changed: they are its own from now on.
func (p PolicyPatch) Apply(l PolicyLayer) PolicyLayer {
	own := func(part PolicyParts, named bool) {
		if named {
			l.Inherits &^= part
		}
	}
	d := &l.Policy
	own(PartHold, replace(&d.HoldFor, p.HoldFor))
	own(PartGrace, replace(&d.GraceFor, p.GraceFor))
	own(PartHoldMax, replace(&d.HoldForMax, p.HoldForMax))
	own(PartQuantityPerHold, replace(&d.QuantityPerHoldMax, p.QuantityPerHoldMax))
	own(PartOnDecline, replace(&d.Payment.OnDecline, p.OnDecline))
	own(PartLatePayment, replace(&d.Payment.LatePayment, p.LatePayment))
	own(PartLateByProvider, replace(&d.Payment.LateByProvider, p.LateByProvider))
	own(PartUnknown, replace(&d.Payment.UnknownFor, p.UnknownFor))
	own(PartDelivery, replace(&d.Payment.Delivery, p.Delivery))
	own(PartCancel, replace(&d.CancelFor, p.CancelFor))
	own(PartRestock, replace(&d.NoRestock, p.NoRestock))
	own(PartGrantTo, replace(&d.GrantTo, p.GrantTo))
	own(PartQuantityPerOwner, replace(&d.QuantityPerOwnerMax, p.QuantityPerOwnerMax))
	own(PartQuantityPerOwnerOfResource, replace(&d.QuantityPerOwnerOfResourceMax, p.QuantityPerOwnerOfResourceMax))
	own(PartHoldsPerOwner, replace(&d.HoldsPerOwnerMax, p.HoldsPerOwnerMax))
	own(PartExpiries, replace(&d.ExpiriesMax, p.ExpiriesMax))
	own(PartCooldown, replace(&d.CooldownFor, p.CooldownFor))
	own(PartHoldsPerSignal, replace(&d.HoldsPerSignalMax, p.HoldsPerSignalMax))
	own(PartSaleFrom, replace(&d.SaleFrom, p.SaleFrom))
	own(PartSaleUntil, replace(&d.SaleUntil, p.SaleUntil))
	if replace(&d.SaleEndsFor, p.SaleEndsFor) {
		d.SaleEnds = true
		own(PartSaleEnds, true)
	}
	own(PartSaleTimeZone, replace(&d.SaleTimeZone, p.SaleTimeZone))
	own(PartScarce, replace(&d.Scarce, p.Scarce))
	l.leave(p.Inherit)
	return l
}

// leave gives parts back to the place above. What stood there is set to the default, so
// that two layers that say the same are the same.
func (l *PolicyLayer) leave(parts PolicyParts) {
	unsaid := DefaultPolicy()
	for _, part := range policyParts() {
		if parts&part.part != 0 {
			part.copy(&l.Policy, &unsaid)
		}
	}
	l.Inherits |= parts
}

// InheritAll is a layer that says nothing itself.
func InheritAll() PolicyLayer { return PolicyLayer{DefaultPolicy(), AllPolicyParts} }

// replace reports whether there is a value to put in.
func replace[T any](target *T, value *T) bool {
	if value != nil {
		*target = *value
	}
	return value != nil
}
