package sim

import (
	"reflect"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// policyMoment is what is said for a scope from a time on.
type policyMoment struct {
	at  time.Time
	was ledger.ScopePolicy
}

// writePolicies checks the steps of policies: somebody asked for each of them, and each has
// its event.
func (s *step) writePolicies() {
	for _, policy := range s.after.Policies {
		moments := s.policies[policy.Scope]
		var before ledger.ScopePolicy
		if len(moments) > 0 {
			before = moments[len(moments)-1].was
		}
		event, told := s.event(ledger.Event{Policy: &policy}.Subject(), policy.Version)
		if policy.Version != before.Version+1 || !told || !reflect.DeepEqual(*event.Policy, policy) {
			s.violated("P5", "took the policy of %v from version %d to %d, with its event: %t", policy.Scope, before.Version, policy.Version, told)
		}
		first := s.by == nil && policy.Version == 1 && policy.Layer.Policy.HoldFor == lifeAtFirst
		if first {
			s.policies[policy.Scope] = append(moments, policyMoment{s.world.kernel.now, policy})
			continue
		}
		if s.by == nil || s.by.kind != askPolicy || s.by.policyScope() != policy.Scope || policy.Layer.Policy.HoldFor != s.by.holdFor {
			s.violated("edits", "made the policy of %v %+v, which nobody asked for", policy.Scope, policy.Layer)
		}
		s.policies[policy.Scope] = append(moments, policyMoment{s.world.kernel.now, policy})
	}
}

// lifeAtFirst is how long holds live by the policy of the resource type when a history
// begins.
const lifeAtFirst = 25 * time.Second

// policyKnownFor is for how long an instance may still go by a policy that has changed: twice
// as long as definitions are cached, by a clock that may jump, and for the slowest write.
const policyKnownFor = 2*5*time.Second + 2*clockJumpMax + 30*time.Second

// checkLife: a new hold lives as long as the shortest of what its slots say, or what their
// resource says for those that say nothing, at a moment that is not long ago.
func (s *step) checkLife(made ledger.Hold) {
	shortest, fits := time.Duration(1<<62), false
	for _, line := range made.Lines {
		lives := s.livesOf(s.slots[line.Slot].now)
		shortest = min(shortest, slices.Max(lives))
		fits = fits || slices.Contains(lives, made.HoldFor)
	}
	if !fits || made.HoldFor > shortest || !made.ExpiresAt.Equal(made.CreatedAt.Add(made.HoldFor)) {
		s.violated("policy", "made %s for %s until %s, which no policy of its slots says", made.ID, made.HoldFor, made.ExpiresAt)
	}
}

// livesOf are how long a hold of the slot may live by what was said lately: not longer than
// its longest life.
func (s *step) livesOf(slot ledger.Slot) []time.Duration {
	lives := s.livesSaidOf(slot)
	for i, life := range lives {
		lives[i] = min(life, slot.Policy.HoldForMax)
	}
	return lives
}

func (s *step) livesSaidOf(slot ledger.Slot) []time.Duration {
	if slot.Inherits&ledger.PartHold == 0 {
		return []time.Duration{slot.Policy.HoldFor}
	}
	since := s.world.kernel.now.Add(-policyKnownFor)
	lives := s.livesSince(ledger.PolicyScope{ResourceType: resourceType, ResourceID: resourceID}, since)
	if len(s.policies[ledger.PolicyScope{ResourceType: resourceType, ResourceID: resourceID}]) > 0 && !slices.Contains(lives, 0) {
		return lives
	}
	wide := s.livesSince(ledger.PolicyScope{ResourceType: resourceType}, since)
	lives = append(lives, wide...)
	for i, life := range lives {
		if life == 0 {
			lives[i] = ledger.HoldForDefault
		}
	}
	return lives
}

// livesSince are the lives that were said for a scope at any moment since a time, zero for
// a moment at which nothing was said.
func (s *step) livesSince(scope ledger.PolicyScope, since time.Time) []time.Duration {
	lives := []time.Duration{}
	until := s.world.kernel.now
	moments := s.policies[scope]
	for i := len(moments) - 1; i >= 0; i-- {
		if !until.Before(since) {
			lives = append(lives, moments[i].was.Layer.Policy.HoldFor)
		}
		until = moments[i].at
	}
	if !until.Before(since) {
		lives = append(lives, 0)
	}
	return lives
}
