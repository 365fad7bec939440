package ledger

import "time"

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
	// Inherit are the parts that are left to the place above from now on, also where they are
	// named.
	Inherit PolicyParts
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
