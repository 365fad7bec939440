package ledgertest

import "holdfast/shared/ledger"

// auditPolicies requires of what is said for each scope, if anything is, one event for each
// version, the last of which tells it as it is.
func auditPolicies(t TB, store ledger.Store, scopes []ledger.PolicyScope) {
	t.Helper()
	if len(scopes) == 0 {
		return
	}
	policies, err := store.Policies(t.Context(), scopes)
	if err != nil {
		t.Fatalf("books: policies: %v", err)
	}
	said := make(map[ledger.PolicyScope]ledger.ScopePolicy, len(policies))
	for _, policy := range policies {
		said[policy.Scope] = policy
	}
	for _, scope := range scopes {
		policy := said[scope] // at version zero where nothing is said
		events, err := store.PolicyEvents(t.Context(), scope)
		if err != nil {
			t.Fatalf("books: events of the policy of %+v: %v", scope, err)
		}
		auditVersions(t, "the policy of "+string(scope.ResourceType)+"/"+string(scope.ResourceID), events, policy.Version)
		if last := len(events) - 1; last >= 0 && !same(events[last].Policy, &policy) {
			t.Errorf("books: the last event of the policy of %+v tells\n%s\nbut it is\n%s", scope, text(events[last].Policy), text(policy))
		}
	}
}
