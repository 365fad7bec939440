package reconcile

import (
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// FindingKind names what is wrong. The names are part of the contract with operators:
// runbooks and cases use them.
type FindingKind string

// The kinds.
const (
	// FindingStockMismatch: the counters of a stock item are not what the holds, the
	// reservations and the slot's own events say of it.
	FindingStockMismatch FindingKind = "stock_mismatch"
	// FindingStockImpossible: a counter is negative, or they do not add up to the capacity.
	FindingStockImpossible FindingKind = "stock_impossible"
	// FindingStockTerms: a stock item sells under other terms than its slot, or is missing,
	// or is one too many.
	FindingStockTerms FindingKind = "stock_terms"
	// FindingTerminalStock: the counters still have the units of a hold that has ended.
	FindingTerminalStock FindingKind = "terminal_live_stock"
	// FindingGhostHold: a hold is HELD long after it was due.
	FindingGhostHold FindingKind = "ghost_hold"
	// FindingDueIndexHole: the due index, or the archive's list, and the item do not say the
	// same.
	FindingDueIndexHole FindingKind = "due_index_hole"
	// FindingEventMissing: a version of something has no event, or several, or an event is of
	// nothing that there is.
	FindingEventMissing FindingKind = "event_missing"
	// FindingEventMismatch: what a hold or a reservation has, and what its events moved, differ.
	FindingEventMismatch FindingKind = "event_mismatch"
	// FindingEventUnpublished: an event is long overdue to be published.
	FindingEventUnpublished FindingKind = "event_unpublished"
	// FindingQuotaMismatch: what is counted of an owner is not what the owner has.
	FindingQuotaMismatch FindingKind = "quota_mismatch"
	// FindingAuthorizedTooLong: money is reserved for long, and nothing was sold for it.
	FindingAuthorizedTooLong FindingKind = "authorized_too_long"
	// FindingCaptureMissing: something was sold long ago, and its money was not taken.
	FindingCaptureMissing FindingKind = "capture_missing"
	// FindingDeliveryMissing: money was taken long ago, and nothing was delivered.
	FindingDeliveryMissing FindingKind = "delivery_missing"
	// FindingCompensationOwed: money is owed back for long.
	FindingCompensationOwed FindingKind = "compensation_owed"
	// FindingMoneyMismatch: what was taken, given back and kept does not add up.
	FindingMoneyMismatch FindingKind = "money_mismatch"
	// FindingPaymentUnknown: the provider has a payment that no reservation knows.
	FindingPaymentUnknown FindingKind = "payment_without_reservation"
	// FindingPaymentMissing: a reservation has money by a payment that the provider does not
	// have, or has otherwise.
	FindingPaymentMissing FindingKind = "reservation_without_payment"
	// FindingLinkBroken: a hold and a reservation do not know each other.
	FindingLinkBroken FindingKind = "link_broken"
	// FindingTimeToLive: an item that is in use will be deleted by itself.
	FindingTimeToLive FindingKind = "ttl_on_live"
	// FindingArchiveMismatch: what is in the archive was not at rest, or is noted wrong.
	FindingArchiveMismatch FindingKind = "archive_mismatch"
	// FindingOversold: a slot that is oversold is open.
	FindingOversold FindingKind = "oversold_open"
	// FindingUnreadable: an item can't be read as what it is to be.
	FindingUnreadable FindingKind = "item_unreadable"
)

// Finding is something that is wrong and was wrong at a moment at which nothing about it
// was under way.
type Finding struct {
	Kind    FindingKind `json:"kind"`
	Promise string      `json:"promise"` // "P1" … "P12": the one that it breaks
	// Subject is what it is about, for people; the ids below say the same to programs. Those
	// that the kind does not concern are zero.
	Subject     string               `json:"subject"`
	Hold        ledger.HoldID        `json:"hold_id,omitempty"`
	Reservation ledger.ReservationID `json:"reservation_id,omitempty"`
	Slot        ledger.SlotID        `json:"slot_id,omitempty"`
	Shard       ledger.Shard         `json:"shard,omitempty"`
	Owner       ledger.OwnerID       `json:"owner,omitempty"`
	Count       ledger.QuotaKey      `json:"count,omitempty"`
	Payment     ledger.PaymentID     `json:"payment_id,omitempty"`
	Event       ledger.EventItem     `json:"event,omitzero"`
	// Evidence is what was seen, with the numbers; Cause is what must have happened, as far
	// as that follows from the evidence.
	Evidence string `json:"evidence"`
	Cause    string `json:"cause"`
	// Proof is what a repair goes by. The examination fills it in for the kinds for which Plan
	// has a repair; a finding without one goes to a person.
	Proof Proof `json:"proof,omitzero"`
}

// Proof is how a thing was at the stable moment at which it was found to be wrong, and by how
// much. Every later step of the ledger changes a number and what it should be alike, so the
// difference stays true while the thing is busy; only another repair, or an edit of the slot,
// ends that, and Version and At tell of them.
type Proof struct {
	// At is the moment, by the clock of who looked.
	At time.Time `json:"at"`
	// Certain says that all that adds to the number was seen, and agrees with itself: the
	// events of each hold have no gap, and its own lines are what they moved.
	Certain bool `json:"certain,omitempty"`
	// Version is that of the slot, for what is wrong about its stock, and else that of the hold
	// or the reservation.
	Version ledger.Version `json:"version,omitempty"`
	// Excess is by how much the counters of the stock item are above what they should be.
	Excess ledger.Counters `json:"excess,omitzero"`
	// Was is what was counted of the owner, and Want what should be.
	Was  ledger.Units `json:"was,omitempty"`
	Want ledger.Units `json:"want,omitempty"`
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s (%s): %s", f.Kind, f.Subject, f.Promise, f.Evidence)
}
