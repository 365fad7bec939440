package commands

import (
	"context"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// RenderPolicy turns what is said for a scope into the answer that is given and kept.
// created says that nothing was said for it before.
type RenderPolicy func(p ledger.ScopePolicy, created bool) (ledger.Response, error)

// PutPolicy says layer for all slots of the scope. New holds go by it at the latest after
// two times slotCacheFor; holds that are there stay as they are. It is repeatable by
// nature: a second PUT of the same layer writes nothing.
//
// Errors: CodeInvalid, and those of the store.
func (c *Commands) PutPolicy(ctx context.Context, r Request, scope ledger.PolicyScope, layer ledger.PolicyLayer, render RenderPolicy) (Answer, error) {
	// This process goes by it at once, and the others when their caches are old.
	defer c.slots.forgetScope(scope)
	return c.carryOut(ctx, job{
		command: ledger.CommandPutPolicy, request: r,
		decide: func(ctx context.Context, origin ledger.Origin, now time.Time) (decision, error) {
			stored, err := c.scopePolicy(ctx, scope)
			if err != nil {
				return decision{}, err
			}
			change, err := ledger.SetPolicy(scope, stored, layer, origin, now)
			if err != nil {
				return decision{}, err
			}
			created := stored.Version == 0
			for _, w := range change.Policies {
				stored = w.Next
			}
			response, err := render(stored, created)
			return decision{change: change, response: response}, err
		},
	})
}

// scopePolicy reads what is said for the scope, zero for nothing.
func (c *Commands) scopePolicy(ctx context.Context, scope ledger.PolicyScope) (ledger.ScopePolicy, error) {
	read, err := c.store.Policies(ctx, []ledger.PolicyScope{scope})
	if err != nil || len(read) == 0 {
		return ledger.ScopePolicy{}, err
	}
	return read[0], nil
}

// Resolved returns the slots with the whole of their policies, for who shows them. What is
// said for resources and their types may be slotCacheFor old.
func (c *Commands) Resolved(ctx context.Context, slots []ledger.Slot) ([]ledger.Slot, error) {
	return c.slots.resolve(ctx, c.store, slots, system.Millisecond(c.clock))
}
