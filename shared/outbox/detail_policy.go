package outbox

import (
	"time"

	"holdfast/shared/ledger"
)

// scopePolicyDetail is what is said for all slots of a resource type, or with resource_id
// for those of one resource, as consumers get it.
type scopePolicyDetail struct {
	ResourceType ledger.ResourceType `json:"resource_type"`
	ResourceID   ledger.ResourceID   `json:"resource_id,omitempty"`
	Layer        policyDetail        `json:"layer"`
	Version      ledger.Version      `json:"version"`
	CreatedAt    string              `json:"created_at"`
	UpdatedAt    string              `json:"updated_at"`
}

func newScopePolicyDetail(p ledger.ScopePolicy) *scopePolicyDetail {
	return &scopePolicyDetail{
		ResourceType: p.Scope.ResourceType, ResourceID: p.Scope.ResourceID, Layer: newPolicyDetail(p.Layer),
		Version: p.Version, CreatedAt: formatTime(p.CreatedAt), UpdatedAt: formatTime(p.UpdatedAt),
	}
}

// policyDetail is what one place says of a policy: the parts that it has itself, under the
// names of the API, and the names of those that it inherits. A part is in one of the two.
// Of what can be unset, such as the begin of a sale, nothing is there when it is unset.
type policyDetail struct {
	HoldSeconds                   *int64              `json:"hold_seconds,omitempty"`
	GraceSeconds                  *int64              `json:"grace_seconds,omitempty"`
	HoldMaxSeconds                *int64              `json:"hold_max_seconds,omitempty"`
	QuantityMaxPerHold            *ledger.Units       `json:"quantity_max_per_hold,omitempty"`
	OnDecline                     ledger.OnDecline    `json:"on_decline,omitempty"`
	LatePayment                   ledger.LatePayment  `json:"late_payment,omitempty"`
	LateByProvider                *bool               `json:"late_payment_by_provider,omitempty"`
	UnknownMaxSeconds             *int64              `json:"unknown_max_seconds,omitempty"`
	Delivery                      ledger.DeliveryKind `json:"delivery,omitempty"`
	CancelUntilSeconds            *int64              `json:"cancel_until_seconds,omitempty"`
	Restock                       *bool               `json:"restock,omitempty"`
	GrantTo                       string              `json:"grant_to_slot_id,omitempty"`
	QuantityMaxPerOwner           *ledger.Units       `json:"quantity_max_per_owner,omitempty"`
	QuantityMaxPerOwnerOfResource *ledger.Units       `json:"quantity_max_per_owner_of_resource,omitempty"`
	HoldsMaxPerOwner              *ledger.Units       `json:"holds_max_per_owner,omitempty"`
	ExpiriesMax                   *ledger.Units       `json:"expiries_max,omitempty"`
	CooldownSeconds               *int64              `json:"cooldown_seconds,omitempty"`
	HoldsMaxPerSignal             *ledger.Units       `json:"holds_max_per_signal,omitempty"`
	SaleFrom                      string              `json:"sale_from,omitempty"`
	SaleUntil                     string              `json:"sale_until,omitempty"`
	SaleEndsSecondsBeforeStart    *int64              `json:"sale_ends_seconds_before_start,omitempty"`
	SaleTimeZone                  string              `json:"sale_time_zone,omitempty"`
	Scarce                        *bool               `json:"scarce,omitempty"`
	Inherits                      []string            `json:"inherits,omitempty"`
}

// newPolicyDetail has the parts that the layer does not inherit.
func newPolicyDetail(l ledger.PolicyLayer) policyDetail {
	p, own := l.Policy, ownParts(ledger.AllPolicyParts&^l.Inherits)
	detail := policyDetail{
		HoldSeconds: own.seconds(ledger.PartHold, p.HoldFor), GraceSeconds: own.seconds(ledger.PartGrace, p.GraceFor),
		HoldMaxSeconds:     own.seconds(ledger.PartHoldMax, p.HoldForMax),
		QuantityMaxPerHold: ownPart(own, ledger.PartQuantityPerHold, p.QuantityPerHoldMax),
		OnDecline:          ownText(own, ledger.PartOnDecline, p.Payment.OnDecline),
		LatePayment:        ownText(own, ledger.PartLatePayment, p.Payment.LatePayment),
		LateByProvider:     ownPart(own, ledger.PartLateByProvider, p.Payment.LateByProvider),
		UnknownMaxSeconds:  own.seconds(ledger.PartUnknown, p.Payment.UnknownFor),
		Delivery:           ownText(own, ledger.PartDelivery, p.Payment.Delivery),
		CancelUntilSeconds: own.seconds(ledger.PartCancel, p.CancelFor),
		Restock:            ownPart(own, ledger.PartRestock, !p.NoRestock),
		GrantTo:            ownText(own, ledger.PartGrantTo, p.GrantTo),

		QuantityMaxPerOwner:           ownPart(own, ledger.PartQuantityPerOwner, p.QuantityPerOwnerMax),
		QuantityMaxPerOwnerOfResource: ownPart(own, ledger.PartQuantityPerOwnerOfResource, p.QuantityPerOwnerOfResourceMax),
		HoldsMaxPerOwner:              ownPart(own, ledger.PartHoldsPerOwner, p.HoldsPerOwnerMax),
		ExpiriesMax:                   ownPart(own, ledger.PartExpiries, p.ExpiriesMax),
		CooldownSeconds:               own.seconds(ledger.PartCooldown, p.CooldownFor),
		HoldsMaxPerSignal:             ownPart(own, ledger.PartHoldsPerSignal, p.HoldsPerSignalMax),
		SaleFrom:                      ownText(own, ledger.PartSaleFrom, formatTime(p.SaleFrom)),
		SaleUntil:                     ownText(own, ledger.PartSaleUntil, formatTime(p.SaleUntil)),
		SaleTimeZone:                  ownText(own, ledger.PartSaleTimeZone, p.SaleTimeZone),
		Scarce:                        ownPart(own, ledger.PartScarce, p.Scarce),
		Inherits:                      l.Inherits.Names(),
	}
	if p.SaleEnds {
		detail.SaleEndsSecondsBeforeStart = own.seconds(ledger.PartSaleEnds, p.SaleEndsFor)
	}
	return detail
}

// ownParts are the parts that a place says itself.
type ownParts ledger.PolicyParts

func (o ownParts) has(part ledger.PolicyParts) bool { return ledger.PolicyParts(o)&part != 0 }

func (o ownParts) seconds(part ledger.PolicyParts, d time.Duration) *int64 {
	return ownPart(o, part, seconds(d))
}

// ownPart is the value of a part that the place says itself, and nil for one that it
// inherits.
func ownPart[T any](own ownParts, part ledger.PolicyParts, value T) *T {
	if !own.has(part) {
		return nil
	}
	return &value
}

// ownText is ownPart for what is never the empty text where it is said.
func ownText[T ~string](own ownParts, part ledger.PolicyParts, value T) T {
	if !own.has(part) {
		return ""
	}
	return value
}
