package httpapi

import (
	"context"
	"slices"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// existingHoldsMax bounds how many of the caller's newest holds are looked at for one that
// has the units. It is one page, and few owners have more holds alive at once.
const existingHoldsMax = 50

// findExistingHold gives the id of a hold of the owner's that is alive and has units of a
// slot that is short, or nil. A buyer who went back in the checkout would otherwise be told
// that the units which are theirs are sold out (case B12). The hold that is being edited, if
// one is, is no other hold: its owner is just working on it.
func (a *API) findExistingHold(ctx context.Context, owner ledger.OwnerID, shortages []ledger.Shortage, edited ledger.HoldID) (*string, error) {
	holds, _, err := a.store.HoldsOfOwner(ctx, owner, ledger.Page{Limit: existingHoldsMax})
	if err != nil {
		return nil, err
	}
	now := system.Millisecond(a.clock)
	for _, h := range holds {
		if h.ID != edited && h.StatusAt(now) == ledger.StatusHeld && slices.ContainsFunc(shortages, func(s ledger.Shortage) bool {
			return slices.ContainsFunc(h.Lines, func(l ledger.Line) bool { return l.Slot == s.Slot })
		}) {
			id := string(h.ID)
			return &id, nil
		}
	}
	return nil, nil
}
