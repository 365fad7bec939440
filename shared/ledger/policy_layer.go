package ledger

import (
	"slices"
	"time"
)

// PolicyLayer is what one place says of a policy: everything but the parts that it
// inherits from the place above it.
type PolicyLayer struct {
	Policy   Policy
	Inherits PolicyParts
}

// InheritAll is a layer that says nothing itself.
func InheritAll() PolicyLayer { return PolicyLayer{DefaultPolicy(), AllPolicyParts} }

// says reports whether the layer says the part itself.
func (l PolicyLayer) says(part PolicyParts) bool { return l.Inherits&part == 0 }

// Validate returns a CodeInvalid error for a part that can't be. The parts that are
// inherited are not looked at. A limit of expired holds means nothing without its cool-down,
// so that a layer says both or neither.
func (l PolicyLayer) Validate() error {
	if l.Inherits&^AllPolicyParts != 0 {
		return errorf(CodeInvalid, "the policy inherits parts that no policy has")
	}
	if l.says(PartExpiries) && l.Policy.ExpiriesMax > 0 && !l.says(PartCooldown) {
		return errorf(CodeInvalid, "expiries_max needs a cooldown_seconds of 1 or more beside it")
	}
	return wholePolicy([]PolicyLayer{l}).validate()
}

// leave gives parts back to the place above.
func (l *PolicyLayer) leave(parts PolicyParts) {
	l.Inherits |= parts
	*l = l.normalized()
}

// normalized is l with the default in place of the parts that it inherits, which mean
// nothing, so that two layers that say the same are the same.
func (l PolicyLayer) normalized() PolicyLayer {
	unsaid := DefaultPolicy()
	for _, part := range policyParts() {
		if !l.says(part.part) {
			part.copy(&l.Policy, &unsaid)
		}
	}
	return l
}

// equal reports whether l and o say the same.
func (l PolicyLayer) equal(o PolicyLayer) bool {
	return l.Inherits == o.Inherits && l.normalized().Policy.Equal(o.normalized().Policy)
}

// wholePolicy takes each part of a policy from the nearest layer that says it, and from the
// default where none does. The nearest layer is the last one.
//
// Two parts of different layers may contradict each other although each layer is right. Then
// the nearer one stands, and the other gives way no more than it must: a life and the longest
// life become the same, the far bound of a sale window is dropped, and without a time of
// cool-down nobody cools down.
func wholePolicy(layers []PolicyLayer) Policy {
	whole := DefaultPolicy()
	saidBy := make(map[PolicyParts]int) // the number of the layer, from 1
	for i, layer := range layers {
		for _, part := range policyParts() {
			if layer.says(part.part) {
				part.copy(&whole, &layer.Policy)
				saidBy[part.part] = i + 1
			}
		}
	}
	nearer := func(a, b PolicyParts) bool { return saidBy[a] > saidBy[b] }
	if whole.HoldFor > whole.HoldForMax {
		switch {
		case nearer(PartHold, PartHoldMax):
			whole.HoldForMax = whole.HoldFor
		case nearer(PartHoldMax, PartHold):
			whole.HoldFor = whole.HoldForMax
		}
	}
	if whole.saleNeverOpens() {
		switch {
		case nearer(PartSaleFrom, PartSaleUntil):
			whole.SaleUntil = time.Time{}
		case nearer(PartSaleUntil, PartSaleFrom):
			whole.SaleFrom = time.Time{}
		}
	}
	if whole.CooldownFor == 0 && nearer(PartCooldown, PartExpiries) {
		whole.ExpiriesMax = 0
	}
	return whole
}

// PolicyScope is what a policy is of: all slots of a resource type, or with ResourceID set
// those of one resource.
type PolicyScope struct {
	ResourceType ResourceType
	ResourceID   ResourceID
}

// Scopes are the scopes above a slot of the resource, the widest first.
func Scopes(t ResourceType, id ResourceID) []PolicyScope {
	return []PolicyScope{{ResourceType: t}, {ResourceType: t, ResourceID: id}}
}

// ScopePolicy is what is said for all slots of a scope.
type ScopePolicy struct {
	Scope     PolicyScope
	Layer     PolicyLayer
	Version   Version
	CreatedAt time.Time
	UpdatedAt time.Time
}

// PolicyWrite puts Next in place of the policy of its scope at version Replaces, or
// creates it.
type PolicyWrite struct {
	Next     ScopePolicy
	Replaces Version
}

// SetPolicy says layer for all slots of the scope. Stored is what is said so far, zero for
// nothing. Saying the same again returns an empty Change.
func SetPolicy(scope PolicyScope, stored ScopePolicy, layer PolicyLayer, origin Origin, now time.Time) (Change, error) {
	switch {
	case !ValidName(string(scope.ResourceType)):
		return Change{}, errorf(CodeInvalid, "resource_type must be 1 to %d characters of A-Z a-z 0-9 . _ : -", NameCharactersMax)
	case scope.ResourceID != "" && !ValidName(string(scope.ResourceID)):
		return Change{}, errorf(CodeInvalid, "resource_id must be 1 to %d characters of A-Z a-z 0-9 . _ : -", NameCharactersMax)
	}
	if err := layer.Validate(); err != nil {
		return Change{}, err
	}
	if stored.Version > 0 && stored.Layer.equal(layer) {
		return Change{}, nil
	}
	next := ScopePolicy{Scope: scope, Layer: layer.normalized(), Version: stored.Version + 1, CreatedAt: stored.CreatedAt, UpdatedAt: now}
	if stored.Version == 0 {
		next.CreatedAt = now
	}
	return Change{
		At: now, Policies: []PolicyWrite{{Next: next, Replaces: stored.Version}},
		Events: []Event{{
			ID: origin.EventID, Type: EventPolicyChanged, Version: next.Version, OccurredAt: now, Origin: origin, Policy: &next,
		}},
	}, nil
}

// Resolve is the slot with the whole of its policy: its own parts over those of its
// resource, over those of its resource type, over the default. Policies of other scopes
// are ignored.
func (s Slot) Resolve(policies []ScopePolicy) Slot {
	var layers []PolicyLayer
	for _, scope := range Scopes(s.ResourceType, s.ResourceID) {
		if i := slices.IndexFunc(policies, func(p ScopePolicy) bool { return p.Scope == scope }); i >= 0 {
			layers = append(layers, policies[i].Layer)
		}
	}
	s.Policy = wholePolicy(append(layers, PolicyLayer{s.Policy, s.Inherits}))
	s.Inherits = 0
	return s
}
