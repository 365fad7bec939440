package reconcile

import "holdfast/shared/ledger"

// ActionKind is what is done about a finding.
type ActionKind string

// The kinds of actions. Only the last two move nothing in the ledger.
const (
	// ActionRepairStock takes from the counters of a stock item what they have too much, and
	// gives it its slot's terms.
	ActionRepairStock ActionKind = "repair_stock"
	// ActionRepairHold and ActionRepairReservation write the item as it is, so that it is in
	// the lists where it belongs and lives on.
	ActionRepairHold        ActionKind = "repair_hold"
	ActionRepairReservation ActionKind = "repair_reservation"
	// ActionRepairQuota sets what is counted of an owner.
	ActionRepairQuota ActionKind = "repair_quota"
	// ActionExpire ends a hold whose time is over, by the command of the sweep.
	ActionExpire ActionKind = "expire"
	// ActionRedrive publishes what was not published.
	ActionRedrive ActionKind = "redrive"
	// ActionReview opens a case for a person.
	ActionReview ActionKind = "review"
	// ActionNone: a finding of a kind that is not known here.
	ActionNone ActionKind = "none"
)

// Action is what is to be done about one finding, and why that and nothing else.
type Action struct {
	Finding Finding    `json:"finding"`
	Do      ActionKind `json:"do"`
	Why     string     `json:"why"`
}

// Plan decides what is done about a finding. It repairs only what is certain and can be
// undone: numbers and lists that repeat what holds, reservations and events say, once all
// of those were seen and agree. Money, missing history and whatever is in doubt go to a
// person.
func Plan(f Finding) Action {
	do, why := plan(f)
	return Action{Finding: f, Do: do, Why: why}
}

func plan(f Finding) (ActionKind, string) {
	switch f.Kind {
	case FindingStockMismatch, FindingStockImpossible, FindingTerminalStock, FindingStockTerms:
		return planStock(f)
	case FindingGhostHold:
		if f.Hold == "" {
			return ActionReview, "it is not known which hold"
		}
		return ActionExpire, "its time is over, and the command that ends it checks that itself"
	case FindingDueIndexHole, FindingTimeToLive:
		return planRewrite(f)
	case FindingEventUnpublished:
		return ActionRedrive, "the stored event is the truth, and consumers stand one that comes twice"
	case FindingQuotaMismatch:
		if f.Owner == "" || f.Count == "" || !f.Proof.Certain {
			return ActionReview, "not all that is counted was seen, so the right number is in doubt"
		}
		return ActionRepairQuota, "the count only repeats what the owner's holds say"
	case FindingEventMissing, FindingEventMismatch:
		return ActionReview, "history is never written after the fact"
	case FindingAuthorizedTooLong, FindingCaptureMissing, FindingDeliveryMissing, FindingCompensationOwed,
		FindingMoneyMismatch, FindingPaymentUnknown, FindingPaymentMissing:
		return ActionReview, "it is about money"
	case FindingLinkBroken:
		return ActionReview, "which of the two is right is in doubt, and money may be on it"
	case FindingArchiveMismatch:
		return ActionReview, "the object in the archive has to be compared first"
	case FindingUnreadable:
		return ActionReview, "what it said is not known, so nothing about it can be put right"
	case FindingOversold:
		return ActionReview, "whether the slot is closed or its capacity raised is the shop's decision"
	}
	return ActionNone, "no rule is known for findings of this kind"
}

// planStock: the counters follow from the rest of the ledger when all of that was seen.
func planStock(f Finding) (ActionKind, string) {
	switch {
	case f.Slot == "" || f.Proof.Version == 0:
		return ActionReview, "there is no stock item that could be put right"
	case !f.Proof.Certain:
		return ActionReview, "the rest of the ledger does not explain the number, so the right one is in doubt"
	}
	return ActionRepairStock, "the counters and terms of a stock item only repeat what holds, reservations and the slot say"
}

// planRewrite: an item is right in itself, and only its keys or its time to live are not.
func planRewrite(f Finding) (ActionKind, string) {
	const why = "the item itself is right; written anew, it is in the lists where it belongs and has no time to live"
	switch {
	case f.Event != (ledger.EventItem{}), f.Proof.Version == 0:
		return ActionReview, "nothing rewrites an item of this kind"
	case f.Hold != "":
		return ActionRepairHold, why
	case f.Reservation != "":
		return ActionRepairReservation, why
	case f.Slot != "" && f.Kind == FindingTimeToLive && f.Proof.Excess == (ledger.Counters{}):
		return ActionRepairStock, why
	}
	return ActionReview, "nothing rewrites an item of this kind"
}
