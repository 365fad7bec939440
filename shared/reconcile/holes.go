package reconcile

import "holdfast/shared/ledger"

// Hole says what is wrong with the place of a hold in the due index, or "". A HELD hold
// that is not listed is never swept, and one that is listed too late is swept too late; an
// ended one that is listed is looked at by every sweep (case B8).
func Hole(h ledger.IndexedHold) string {
	listed := h.InDue || h.Parked || h.Misplaced
	switch {
	case h.Status != ledger.StatusHeld && listed:
		return "it is not HELD, and listed"
	case h.Status != ledger.StatusHeld:
		return ""
	case !listed:
		return "it is HELD, and not listed"
	case h.Misplaced:
		return "it is HELD, and listed in the wrong shard"
	case h.InDue && !h.ListedAt.Equal(h.DueAt):
		return "it is HELD, and listed under a time at which it is not due"
	}
	return ""
}
