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

// Validate returns a CodeInvalid error for a part that can't be. The parts that are
// inherited are not looked at.
func (l PolicyLayer) Validate() error {
	if l.Inherits&^AllPolicyParts != 0 {
		return errorf(CodeInvalid, "the policy inherits parts that no policy has")
	}
	return l.over(DefaultPolicy()).validate()
}

// over is what holds where l stands on base. A life that the layer names is not bounded by
// a longest life that it does not name, and the other way round: the one that is named
// moves the one that is not.
func (l PolicyLayer) over(base Policy) Policy {
	out := base
	for _, part := range policyParts() {
		if l.Inherits&part.part == 0 {
			part.copy(&out, &l.Policy)
		}
	}
	switch {
	case l.Inherits&PartHold != 0 && l.Inherits&PartHoldMax == 0:
		out.HoldFor = min(out.HoldFor, out.HoldForMax)
	case l.Inherits&PartHoldMax != 0:
		out.HoldForMax = max(out.HoldForMax, out.HoldFor)
	}
	if out.ExpiriesMax > 0 && out.CooldownFor == 0 {
		out.ExpiriesMax = 0 // a cool-down of no time is none
	}
	if !out.SaleFrom.IsZero() && !out.SaleUntil.IsZero() && !out.SaleFrom.Before(out.SaleUntil) && l.Inherits&PartSaleUntil != 0 {
		out.SaleUntil = time.Time{} // the window of the layer begins after the one above has ended
	}
	return out
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
	if stored.Version > 0 && stored.Layer.Inherits == layer.Inherits && stored.Layer.Policy.Equal(layer.Policy) {
		return Change{}, nil
	}
	next := ScopePolicy{Scope: scope, Layer: layer, Version: stored.Version + 1, CreatedAt: stored.CreatedAt, UpdatedAt: now}
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
	whole := DefaultPolicy()
	for _, scope := range Scopes(s.ResourceType, s.ResourceID) {
		if i := slices.IndexFunc(policies, func(p ScopePolicy) bool { return p.Scope == scope }); i >= 0 {
			whole = policies[i].Layer.over(whole)
		}
	}
	s.Policy = PolicyLayer{s.Policy, s.Inherits}.over(whole)
	s.Inherits = 0
	return s
}
