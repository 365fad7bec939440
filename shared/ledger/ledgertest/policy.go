package ledgertest

import (
	"fmt"
	"strings"
	"time"

	"holdfast/shared/ledger"
)

var policyRules = []rule{
	{"IsStoredExactly", policyIsStoredExactly},
	{"EachPartIsInheritedOrNot", eachPartIsInheritedOrNot},
	{"ScopesAreApart", scopesAreApart},
	{"DefinedTwice", policyDefinedTwice},
	{"EditReplacesTheVersionItRead", policyEditReplacesItsVersion},
	{"MissingIsRefused", missingPolicyIsRefused},
	{"SlotKeepsWhatItInherits", slotKeepsWhatItInherits},
	{"TooManyScopesAreRefused", tooManyScopesAreRefused},
}

// fullPolicy has another value than the default in each of its parts.
func fullPolicy() ledger.Policy {
	return ledger.Policy{
		HoldFor: time.Second, GraceFor: ledger.HoldForLimit, HoldForMax: ledger.HoldForLimit, QuantityPerHoldMax: 1,
		Payment: ledger.PaymentTerms{
			OnDecline: ledger.OnDeclineKeep, LatePayment: ledger.LatePaymentReview, LateByProvider: true,
			UnknownFor: ledger.HoldForLimit, Delivery: ledger.DeliveryEvent,
		},
		CancelFor: ledger.CancelForLimit, NoRestock: true, GrantTo: "wallet:{owner}:gold",
		QuantityPerOwnerMax: 1, QuantityPerOwnerOfResourceMax: ledger.OwnerLimitMax, HoldsPerOwnerMax: 3,
		ExpiriesMax: 4, CooldownFor: 5 * time.Second, HoldsPerSignalMax: 6,
		SaleFrom:  time.Date(2026, time.May, 4, 23, 59, 59, 999_000_000, time.UTC),
		SaleUntil: time.Date(2026, time.May, 5, 0, 0, 0, 1_000_000, time.UTC),
		SaleEnds:  true, SaleEndsFor: ledger.CancelForLimit, SaleTimeZone: "America/Argentina/ComodRivadavia", Scarce: true,
	}
}

// policy builds the change that says layer for the scope, of which stored is said so far.
func (f *fixture) policy(scope ledger.PolicyScope, stored ledger.ScopePolicy, layer ledger.PolicyLayer) ledger.Change {
	f.Helper()
	return f.built(ledger.SetPolicy(scope, stored, layer, f.origin(ledger.CommandPutPolicy), f.now))
}

// storedPolicies reads what is said for these scopes, by scope.
func (f *fixture) storedPolicies(scopes ...ledger.PolicyScope) map[ledger.PolicyScope]ledger.ScopePolicy {
	f.Helper()
	found, err := f.store.Policies(f.ctx, scopes)
	f.read(err)
	out := make(map[ledger.PolicyScope]ledger.ScopePolicy, len(found))
	for _, policy := range found {
		if _, twice := out[policy.Scope]; twice {
			f.Errorf("the policy of %+v is given twice", policy.Scope)
		}
		out[policy.Scope] = policy
	}
	return out
}

func policyIsStoredExactly(f *fixture) {
	longest := strings.Repeat("A.b_:-9", 18) + "zz"
	scope := ledger.PolicyScope{ResourceType: ledger.ResourceType(longest), ResourceID: ledger.ResourceID(longest)}
	create := f.policy(scope, ledger.ScopePolicy{}, ledger.PolicyLayer{Policy: fullPolicy()})
	f.commit(create)
	f.equal("policy", f.storedPolicies(scope)[scope], create.Policies[0].Next)

	f.now = f.now.Add(time.Millisecond)
	replace := f.policy(scope, create.Policies[0].Next, ledger.InheritAll())
	f.commit(replace)
	stored := f.storedPolicies(scope)[scope]
	f.equal("policy", stored, replace.Policies[0].Next)
	f.equal("time of creation", stored.CreatedAt, noon)
	events, err := f.store.PolicyEvents(f.ctx, scope)
	f.read(err)
	f.equal("events", events, append(create.Events, replace.Events...))
}

// eachPartIsInheritedOrNot leaves one part after the other to the place above.
func eachPartIsInheritedOrNot(f *fixture) {
	var scopes []ledger.PolicyScope
	want := make(map[ledger.PolicyScope]ledger.ScopePolicy)
	for part := ledger.PolicyParts(1); part < ledger.AllPolicyParts; part <<= 1 {
		scope := ledger.PolicyScope{ResourceType: "flight", ResourceID: ledger.ResourceID(part.Names()[0])}
		inherits := part
		if part == ledger.PartCooldown {
			inherits |= ledger.PartExpiries // which needs a cool-down beside it
		}
		change := f.policy(scope, ledger.ScopePolicy{}, ledger.PolicyLayer{Policy: fullPolicy(), Inherits: inherits})
		f.commit(change)
		scopes = append(scopes, scope)
		want[scope] = change.Policies[0].Next
	}
	f.equal("policies", f.storedPolicies(scopes...), want)
}

func scopesAreApart(f *fixture) {
	ofType := ledger.PolicyScope{ResourceType: "flight"}
	ofOne := ledger.PolicyScope{ResourceType: "flight", ResourceID: "OZ-102"}
	ofNone := ledger.PolicyScope{ResourceType: "flight", ResourceID: "OZ-103"}
	first, second := ledger.InheritAll(), ledger.InheritAll()
	first.Policy.GraceFor, first.Inherits = time.Minute, ledger.AllPolicyParts&^ledger.PartGrace
	second.Policy.HoldFor, second.Inherits = time.Minute, ledger.AllPolicyParts&^ledger.PartHold
	a, b := f.policy(ofType, ledger.ScopePolicy{}, first), f.policy(ofOne, ledger.ScopePolicy{}, second)
	f.commit(a)
	f.commit(b)
	f.equal("policies", f.storedPolicies(ofType, ofOne, ofNone, ofOne), map[ledger.PolicyScope]ledger.ScopePolicy{
		ofType: a.Policies[0].Next, ofOne: b.Policies[0].Next,
	})
	f.equal("policies of no scopes", len(f.storedPolicies()), 0)
	events, err := f.store.PolicyEvents(f.ctx, ofOne)
	f.read(err)
	f.equal("events of the resource's policy", events, b.Events)
	events, err = f.store.PolicyEvents(f.ctx, ofNone)
	f.read(err)
	f.equal("number of events of no policy", len(events), 0)
	slot := f.slot("A", definition(1, 1))
	events, err = f.store.SlotEvents(f.ctx, slot.ID)
	f.read(err)
	f.equal("number of events of a slot of the resource", len(events), 1)
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, nil)
}

func policyDefinedTwice(f *fixture) {
	scope := ledger.PolicyScope{ResourceType: "flight"}
	first := f.policy(scope, ledger.ScopePolicy{}, ledger.InheritAll())
	second := f.policy(scope, ledger.ScopePolicy{}, ledger.PolicyLayer{Policy: fullPolicy()})
	f.commit(first)
	f.commit(first) // it may be repeated after a lost answer
	f.refuse(second,
		ledger.RefusedLeg{Kind: ledger.LegPolicy, Policy: &first.Policies[0].Next},
		ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[0]})
}

func policyEditReplacesItsVersion(f *fixture) {
	scope := ledger.PolicyScope{ResourceType: "flight", ResourceID: "OZ-102"}
	create := f.policy(scope, ledger.ScopePolicy{}, ledger.InheritAll())
	f.commit(create)
	stored := f.storedPolicies(scope)[scope]
	first := f.policy(scope, stored, ledger.PolicyLayer{Policy: fullPolicy()})
	second := f.policy(scope, stored, ledger.PolicyLayer{Policy: ledger.DefaultPolicy()})
	f.commit(first)
	f.refuse(second,
		ledger.RefusedLeg{Kind: ledger.LegPolicy, Policy: &first.Policies[0].Next},
		ledger.RefusedLeg{Kind: ledger.LegEvent, Event: &first.Events[0]})
	f.equal("policy", f.storedPolicies(scope)[scope], first.Policies[0].Next)
}

func missingPolicyIsRefused(f *fixture) {
	scope := ledger.PolicyScope{ResourceType: "flight"}
	never := f.policy(scope, ledger.ScopePolicy{}, ledger.InheritAll()).Policies[0].Next
	f.refuse(f.policy(scope, never, ledger.PolicyLayer{Policy: fullPolicy()}), ledger.RefusedLeg{Kind: ledger.LegPolicy})
}

func slotKeepsWhatItInherits(f *fixture) {
	d := definition(1, 1)
	d.Policy, d.Inherits = fullPolicy(), ledger.PartHold|ledger.PartScarce|ledger.PartSaleEnds
	slot := f.slot("A", d)
	f.equal("slot", f.storedSlot("A"), slot)
	f.commit(f.edit(slot, func(d *ledger.SlotDefinition) { d.Inherits = ledger.AllPolicyParts }))
	f.equal("inherited parts", f.storedSlot("A").Inherits, ledger.AllPolicyParts)
	CheckBooks(f.T, f.store, []ledger.SlotID{"A"}, nil)
}

func tooManyScopesAreRefused(f *fixture) {
	scopes := make([]ledger.PolicyScope, ledger.PageItemsMax+1)
	for i := range scopes {
		scopes[i] = ledger.PolicyScope{ResourceType: "flight", ResourceID: ledger.ResourceID(fmt.Sprint(i))}
	}
	_, err := f.store.Policies(f.ctx, scopes)
	f.equal("code", ledger.CodeOf(err), ledger.CodeInvalid)
	policies, err := f.store.Policies(f.ctx, scopes[1:])
	f.read(err)
	f.equal("number of policies", len(policies), 0)
}
