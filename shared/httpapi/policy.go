package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
)

// PutTypePolicy says how all slots of a resource type are promised.
func (a *API) PutTypePolicy(_ http.ResponseWriter, r *http.Request, resourceType ResourceType) {
	a.putPolicy(r, ledger.PolicyScope{ResourceType: ledger.ResourceType(resourceType)})
}

// PutResourcePolicy says how all slots of one resource are promised.
func (a *API) PutResourcePolicy(_ http.ResponseWriter, r *http.Request, resourceType ResourceType, resourceID ResourceID) {
	a.putPolicy(r, ledger.PolicyScope{ResourceType: ledger.ResourceType(resourceType), ResourceID: ledger.ResourceID(resourceID)})
}

// GetTypePolicy answers with what is said for a resource type.
func (a *API) GetTypePolicy(_ http.ResponseWriter, r *http.Request, resourceType ResourceType) {
	a.getPolicy(r, ledger.PolicyScope{ResourceType: ledger.ResourceType(resourceType)})
}

// GetResourcePolicy answers with what is said for one resource.
func (a *API) GetResourcePolicy(_ http.ResponseWriter, r *http.Request, resourceType ResourceType, resourceID ResourceID) {
	a.getPolicy(r, ledger.PolicyScope{ResourceType: ledger.ResourceType(resourceType), ResourceID: ledger.ResourceID(resourceID)})
}

func (a *API) putPolicy(r *http.Request, scope ledger.PolicyScope) {
	x := exchangeOf(r)
	var body PolicyChoice
	if err := decode(x.body, &body); err != nil {
		x.fail(err)
		return
	}
	patch, err := policyPatchOf("", &body)
	if err != nil {
		x.fail(err)
		return
	}
	// A PUT is repeatable by nature, so it has no key and no fingerprint.
	request := commands.Request{Actor: x.actor("catalog"), RequestID: x.caller.RequestID, Owner: x.caller.Principal.Subject}
	answer, err := a.commands.PutPolicy(r.Context(), request, scope, patch.Apply(ledger.InheritAll()), renderPolicy)
	if err != nil {
		x.fail(err)
		return
	}
	x.answerCommand(answer)
}

func (a *API) getPolicy(r *http.Request, scope ledger.PolicyScope) {
	x := exchangeOf(r)
	policies, err := a.store.Policies(r.Context(), []ledger.PolicyScope{scope})
	if err == nil && len(policies) == 0 {
		err = &refusal{code: codePolicyNotFound, detail: "nothing is said for this scope, so the one above it decides; PUT a policy to say something"}
	}
	if err != nil {
		x.fail(err)
		return
	}
	response, err := renderPolicy(policies[0], false)
	if err != nil {
		x.fail(fmt.Errorf("write the policy: %w", err))
		return
	}
	x.answer(response.Status, response.Body)
}

// renderPolicy makes the answer that a command gives. A part that is said to be empty is
// told as such.
func renderPolicy(p ledger.ScopePolicy, created bool) (ledger.Response, error) {
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	body, err := json.Marshal(scopePolicyOf(p), keepEmpty)
	return ledger.Response{Status: status, Body: body}, err
}

// policyPatchOf reads the parts of a policy that the body names, and puts the body into its
// normal form: times in UTC, and each name once and in order, so that two bodies that mean
// the same have the same fingerprint. pointer is where the policy stands in the request.
func policyPatchOf(pointer string, body *PolicyChoice) (ledger.PolicyPatch, error) {
	if body == nil {
		return ledger.PolicyPatch{}, nil
	}
	patch := ledger.PolicyPatch{
		HoldFor: duration(body.HoldSeconds), GraceFor: duration(body.GraceSeconds),
		HoldForMax: duration(body.HoldMaxSeconds), QuantityPerHoldMax: units(body.QuantityMaxPerHold),
		OnDecline:   converted[ledger.OnDecline](body.OnDecline),
		LatePayment: converted[ledger.LatePayment](body.LatePayment), LateByProvider: body.LatePaymentByProvider,
		UnknownFor: duration(body.UnknownMaxSeconds), Delivery: converted[ledger.DeliveryKind](body.Delivery),
		CancelFor: duration(body.CancelUntilSeconds), NoRestock: negated(body.Restock),
		GrantTo:             body.GrantToSlotID,
		QuantityPerOwnerMax: units(body.QuantityMaxPerOwner), QuantityPerOwnerOfResourceMax: units(body.QuantityMaxPerOwnerOfResource),
		HoldsPerOwnerMax: units(body.HoldsMaxPerOwner), HoldsPerSignalMax: units(body.HoldsMaxPerSignal),
		ExpiriesMax: units(body.ExpiriesMax), CooldownFor: duration(body.CooldownSeconds),
		SaleEndsFor: duration(body.SaleEndsSecondsBeforeStart), SaleTimeZone: body.SaleTimeZone,
		Scarce: body.Scarce,
	}
	zone, err := locationOf(pointer+"/sale_time_zone", body.SaleTimeZone)
	if err != nil {
		return patch, err
	}
	if patch.SaleFrom, err = saleTimeOf(pointer+"/sale_from", body.SaleFrom, zone); err != nil {
		return patch, err
	}
	if patch.SaleUntil, err = saleTimeOf(pointer+"/sale_until", body.SaleUntil, zone); err != nil {
		return patch, err
	}
	body.SaleFrom, body.SaleUntil = saleText(patch.SaleFrom), saleText(patch.SaleUntil)
	named := ledger.AllPolicyParts &^ patch.Apply(ledger.InheritAll()).Inherits
	if patch.Inherit, err = inheritedParts(body); err != nil {
		return patch, err
	}
	if named&patch.Inherit != 0 {
		return patch, invalid("body", pointer+"/inherit", "must not name a part that the same body sets")
	}
	return patch, nil
}

// inheritedParts reads the parts that are left to the place above.
func inheritedParts(body *PolicyChoice) (ledger.PolicyParts, error) {
	slices.Sort(body.Inherit)
	body.Inherit = slices.Compact(body.Inherit)
	names := make([]string, len(body.Inherit))
	for i, name := range body.Inherit {
		names[i] = string(name)
	}
	return ledger.PolicyPartsNamed(names)
}

// saleText is a time of a sale as the contract writes it, and empty for no bound.
func saleText(t *time.Time) *SaleTime {
	if t == nil {
		return nil
	}
	text := ""
	if !t.IsZero() {
		text = t.UTC().Format(timeLayout)
	}
	return &text
}

func scopePolicyOf(p ledger.ScopePolicy) ScopePolicy {
	return ScopePolicy{
		ResourceType: string(p.Scope.ResourceType), ResourceID: textOrNil[string](p.Scope.ResourceID),
		Policy: policyChoiceOf(p.Layer), PolicyInherits: partNames(p.Layer.Inherits),
		Version: int64(p.Version), CreatedAt: Time(p.CreatedAt), UpdatedAt: Time(p.UpdatedAt),
	}
}

// policyChoiceOf is what the layer says itself. As the body of a PUT it says the same again.
func policyChoiceOf(l ledger.PolicyLayer) PolicyChoice {
	own := func(part ledger.PolicyParts) bool { return l.Inherits&part == 0 }
	p := policyOf(l.Policy)
	choice := PolicyChoice{
		HoldSeconds: said(own(ledger.PartHold), p.HoldSeconds), GraceSeconds: said(own(ledger.PartGrace), p.GraceSeconds),
		HoldMaxSeconds: said(own(ledger.PartHoldMax), p.HoldMaxSeconds), QuantityMaxPerHold: said(own(ledger.PartQuantityPerHold), p.QuantityMaxPerHold),
		OnDecline: said(own(ledger.PartOnDecline), p.OnDecline), LatePayment: said(own(ledger.PartLatePayment), p.LatePayment),
		LatePaymentByProvider: said(own(ledger.PartLateByProvider), p.LatePaymentByProvider),
		UnknownMaxSeconds:     said(own(ledger.PartUnknown), p.UnknownMaxSeconds), Delivery: said(own(ledger.PartDelivery), p.Delivery),
		CancelUntilSeconds: said(own(ledger.PartCancel), p.CancelUntilSeconds), Restock: said(own(ledger.PartRestock), p.Restock),
		GrantToSlotID:                 said(own(ledger.PartGrantTo), l.Policy.GrantTo),
		QuantityMaxPerOwner:           said(own(ledger.PartQuantityPerOwner), p.QuantityMaxPerOwner),
		QuantityMaxPerOwnerOfResource: said(own(ledger.PartQuantityPerOwnerOfResource), p.QuantityMaxPerOwnerOfResource),
		HoldsMaxPerOwner:              said(own(ledger.PartHoldsPerOwner), p.HoldsMaxPerOwner),
		ExpiriesMax:                   said(own(ledger.PartExpiries), p.ExpiriesMax), CooldownSeconds: said(own(ledger.PartCooldown), p.CooldownSeconds),
		HoldsMaxPerSignal: said(own(ledger.PartHoldsPerSignal), p.HoldsMaxPerSignal),
		SaleTimeZone:      said(own(ledger.PartSaleTimeZone), p.SaleTimeZone), Scarce: said(own(ledger.PartScarce), p.Scarce),
	}
	if own(ledger.PartSaleFrom) {
		choice.SaleFrom = saleText(&l.Policy.SaleFrom)
	}
	if own(ledger.PartSaleUntil) {
		choice.SaleUntil = saleText(&l.Policy.SaleUntil)
	}
	if own(ledger.PartSaleEnds) {
		choice.SaleEndsSecondsBeforeStart = p.SaleEndsSecondsBeforeStart
	}
	return choice
}

// said is nil for a part that is not the layer's own.
func said[T any](own bool, value T) *T {
	if !own {
		return nil
	}
	return &value
}

// policyOf is a whole policy.
func policyOf(p ledger.Policy) Policy {
	out := Policy{
		HoldSeconds: seconds(p.HoldFor), GraceSeconds: seconds(p.GraceFor),
		HoldMaxSeconds: seconds(p.HoldForMax), QuantityMaxPerHold: int64(p.QuantityPerHoldMax),
		OnDecline: OnDecline(p.Payment.OnDecline), LatePayment: LatePayment(p.Payment.LatePayment),
		LatePaymentByProvider: p.Payment.LateByProvider, UnknownMaxSeconds: seconds(p.Payment.UnknownFor),
		Delivery: Delivery(p.Payment.Delivery), CancelUntilSeconds: seconds(p.CancelFor),
		Restock: !p.NoRestock, GrantToSlotID: textOrNil[string](p.GrantTo),
		QuantityMaxPerOwner: int64(p.QuantityPerOwnerMax), QuantityMaxPerOwnerOfResource: int64(p.QuantityPerOwnerOfResourceMax),
		HoldsMaxPerOwner: int64(p.HoldsPerOwnerMax), HoldsMaxPerSignal: int64(p.HoldsPerSignalMax),
		ExpiriesMax: int64(p.ExpiriesMax), CooldownSeconds: seconds(p.CooldownFor),
		SaleFrom: timeOrNil(p.SaleFrom), SaleUntil: timeOrNil(p.SaleUntil), SaleTimeZone: p.SaleTimeZone,
		Scarce: p.Scarce,
	}
	if p.SaleEnds {
		ends := seconds(p.SaleEndsFor)
		out.SaleEndsSecondsBeforeStart = &ends
	}
	return out
}

// partNames are the names of the parts, in a fixed order.
func partNames(parts ledger.PolicyParts) []PolicyPart {
	out := []PolicyPart{}
	for _, name := range parts.Names() {
		out = append(out, PolicyPart(name))
	}
	return out
}
