package memory

import (
	"context"
	"fmt"

	"holdfast/shared/ledger"
)

// Policies implements ledger.Store.
func (s *Store) Policies(ctx context.Context, scopes []ledger.PolicyScope) ([]ledger.ScopePolicy, error) {
	if len(scopes) > ledger.PageItemsMax {
		return nil, invalid(fmt.Sprintf("%d policies are more than %d; ask for fewer at once", len(scopes), ledger.PageItemsMax))
	}
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mutex.Unlock()
	var out []ledger.ScopePolicy
	seen := make(map[ledger.PolicyScope]bool, len(scopes))
	for _, scope := range scopes {
		if stored, exists := s.policies[scope]; exists && !seen[scope] {
			out = append(out, stored)
		}
		seen[scope] = true
	}
	return out, nil
}

// PolicyEvents implements ledger.Store.
func (s *Store) PolicyEvents(ctx context.Context, scope ledger.PolicyScope) ([]ledger.Event, error) {
	return s.eventsOf(ctx, ledger.Event{Policy: &ledger.ScopePolicy{Scope: scope}}.Subject())
}

func (s *Store) refusedPolicy(write ledger.PolicyWrite) []ledger.RefusedLeg {
	stored, exists := s.policies[write.Next.Scope]
	if stored.Version == write.Replaces {
		return nil
	}
	leg := ledger.RefusedLeg{Kind: ledger.LegPolicy}
	if exists {
		leg.Policy = &stored
	}
	return []ledger.RefusedLeg{leg}
}
