package ledger

import (
	"slices"
	"strings"
)

// PolicyParts is a set of parts of a policy.
type PolicyParts uint32

// The parts. They are stored by name, so that their numbers may change.
const (
	PartHold PolicyParts = 1 << iota
	PartGrace
	PartHoldMax
	PartQuantityPerHold
	PartOnDecline
	PartLatePayment
	PartLateByProvider
	PartUnknown
	PartDelivery
	PartCancel
	PartRestock
	PartGrantTo
	PartQuantityPerOwner
	PartQuantityPerOwnerOfResource
	PartHoldsPerOwner
	PartExpiries
	PartCooldown
	PartHoldsPerSignal
	PartSaleFrom
	PartSaleUntil
	PartSaleEnds
	PartSaleTimeZone
	PartScarce
	partsEnd
	// AllPolicyParts is the set of all parts.
	AllPolicyParts = partsEnd - 1
)

// policyPart is one part: its name, which is that of the API, and how it is copied.
type policyPart struct {
	part PolicyParts
	name string
	copy func(to, from *Policy)
}

// policyParts lists the parts in the order of their numbers.
func policyParts() []policyPart {
	return []policyPart{
		{PartHold, "hold_seconds", func(to, from *Policy) { to.HoldFor = from.HoldFor }},
		{PartGrace, "grace_seconds", func(to, from *Policy) { to.GraceFor = from.GraceFor }},
		{PartHoldMax, "hold_max_seconds", func(to, from *Policy) { to.HoldForMax = from.HoldForMax }},
		{PartQuantityPerHold, "quantity_max_per_hold", func(to, from *Policy) { to.QuantityPerHoldMax = from.QuantityPerHoldMax }},
		{PartOnDecline, "on_decline", func(to, from *Policy) { to.Payment.OnDecline = from.Payment.OnDecline }},
		{PartLatePayment, "late_payment", func(to, from *Policy) { to.Payment.LatePayment = from.Payment.LatePayment }},
		{PartLateByProvider, "late_payment_by_provider", func(to, from *Policy) { to.Payment.LateByProvider = from.Payment.LateByProvider }},
		{PartUnknown, "unknown_max_seconds", func(to, from *Policy) { to.Payment.UnknownFor = from.Payment.UnknownFor }},
		{PartDelivery, "delivery", func(to, from *Policy) { to.Payment.Delivery = from.Payment.Delivery }},
		{PartCancel, "cancel_until_seconds", func(to, from *Policy) { to.CancelFor = from.CancelFor }},
		{PartRestock, "restock", func(to, from *Policy) { to.NoRestock = from.NoRestock }},
		{PartGrantTo, "grant_to_slot_id", func(to, from *Policy) { to.GrantTo = from.GrantTo }},
		{PartQuantityPerOwner, "quantity_max_per_owner", func(to, from *Policy) { to.QuantityPerOwnerMax = from.QuantityPerOwnerMax }},
		{PartQuantityPerOwnerOfResource, "quantity_max_per_owner_of_resource", func(to, from *Policy) { to.QuantityPerOwnerOfResourceMax = from.QuantityPerOwnerOfResourceMax }},
		{PartHoldsPerOwner, "holds_max_per_owner", func(to, from *Policy) { to.HoldsPerOwnerMax = from.HoldsPerOwnerMax }},
		{PartExpiries, "expiries_max", func(to, from *Policy) { to.ExpiriesMax = from.ExpiriesMax }},
		{PartCooldown, "cooldown_seconds", func(to, from *Policy) { to.CooldownFor = from.CooldownFor }},
		{PartHoldsPerSignal, "holds_max_per_signal", func(to, from *Policy) { to.HoldsPerSignalMax = from.HoldsPerSignalMax }},
		{PartSaleFrom, "sale_from", func(to, from *Policy) { to.SaleFrom = from.SaleFrom }},
		{PartSaleUntil, "sale_until", func(to, from *Policy) { to.SaleUntil = from.SaleUntil }},
		{PartSaleEnds, "sale_ends_seconds_before_start", func(to, from *Policy) { to.SaleEnds, to.SaleEndsFor = from.SaleEnds, from.SaleEndsFor }},
		{PartSaleTimeZone, "sale_time_zone", func(to, from *Policy) { to.SaleTimeZone = from.SaleTimeZone }},
		{PartScarce, "scarce", func(to, from *Policy) { to.Scarce = from.Scarce }},
	}
}

// Names are the names of the parts, in a fixed order: those of the API.
func (p PolicyParts) Names() []string {
	var out []string
	for _, part := range policyParts() {
		if p&part.part != 0 {
			out = append(out, part.name)
		}
	}
	return out
}

// PolicyPartsNamed is the set of the parts of these names. A name that no part has is a
// CodeInvalid error.
func PolicyPartsNamed(names []string) (PolicyParts, error) {
	var out PolicyParts
	all := policyParts()
	for _, name := range names {
		i := slices.IndexFunc(all, func(p policyPart) bool { return p.name == name })
		if i < 0 {
			return 0, errorf(CodeInvalid, "a policy has no part %q; the parts are %s", name, strings.Join(AllPolicyParts.Names(), ", "))
		}
		out |= all[i].part
	}
	return out, nil
}
