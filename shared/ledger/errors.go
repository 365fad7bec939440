package ledger

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Code says what kind of answer an error is. Codes are part of the API: callers act
// on them, so they are never renamed.
type Code string

// The codes. The first group refuses a command for a reason that the caller can
// understand; the last group says that the ledger itself could not answer.
const (
	CodeInvalid              Code = "invalid_request"              // the request can never be carried out as it is
	CodeSlotNotFound         Code = "slot_not_found"               // no such slot
	CodeSlotClosed           Code = "slot_closed"                  // the slot does not take holds now
	CodeSlotFixed            Code = "slot_fixed"                   // a part of the slot that can't be changed
	CodeCapacityInUse        Code = "capacity_in_use"              // the capacity would fall below held + confirmed
	CodeHoldNotFound         Code = "hold_not_found"               // no such hold, or not the caller's
	CodeHoldNotActive        Code = "hold_not_active"              // the hold has ended or is over
	CodeHoldNotDue           Code = "hold_not_due"                 // an expiry came before the hold's release time
	CodeInsufficientStock    Code = "insufficient_stock"           // less is available than asked for
	CodePriceChanged         Code = "price_changed"                // the quoted price is not the price
	CodeQuantityOverLimit    Code = "quantity_over_limit"          // more than the slot's policy, or one transaction, allows in one hold
	CodeLimitReached         Code = "limit_reached"                // more than one owner may have
	CodeCoolingDown          Code = "cooling_down"                 // too many of the owner's holds expired one after the other
	CodeSaleNotOpen          Code = "sale_not_open"                // the sale begins later
	CodeSaleOver             Code = "sale_over"                    // the sale has ended
	CodeHoldAtMaximum        Code = "hold_at_maximum"              // the hold has its longest life already
	CodeSlotOversold         Code = "slot_oversold"                // more is promised than there is, so the slot stays closed
	CodeHasReservation       Code = "has_reservation"              // it is done through the hold's reservation
	CodePaymentInProgress    Code = "payment_in_progress"          // a payment attempt is open; end it first
	CodeReservationNotFound  Code = "reservation_not_found"        // no such reservation, or not the caller's
	CodeReservationNotActive Code = "reservation_not_active"       // the reservation has no payment to go on with
	CodeTooLateToCancel      Code = "too_late_to_cancel"           // the policy allows no return any more
	CodeReturnOverSale       Code = "return_over_sale"             // more is given back than was bought and is left
	CodeAlreadyUsed          Code = "already_used"                 // what was granted is not there any more
	CodeHoldArchived         Code = "hold_archived"                // the hold lies in the archive; nothing changes it
	CodeReservationArchived  Code = "reservation_archived"         // the reservation lies in the archive; nothing changes it
	CodeNotArchivable        Code = "not_archivable"               // it is still in use, so it stays in the table
	CodeReviewNotFound       Code = "review_not_found"             // no such case
	CodeReviewClaimed        Code = "review_claimed"               // somebody else works on the case
	CodeReviewDecided        Code = "review_decided"               // the case was decided
	CodeDecisionNotPossible  Code = "decision_not_possible"        // as things stand now the case can't be decided so
	CodeReferenceUsed        Code = "payment_reference_used"       // the payment has confirmed another hold
	CodePaymentUnavailable   Code = "payment_provider_unavailable" // the payment provider could not be asked; nothing was written
	CodeKeyInProgress        Code = "idempotency_in_progress"      // the same request is being carried out
	CodeKeyReused            Code = "idempotency_key_reused"       // the key was used for another request
	CodeBusy                 Code = "busy"                         // lost too many races; nothing was written
	CodeUnavailable          Code = "unavailable"                  // the store could not be reached; nothing was written
	CodeOutcomeUnknown       Code = "outcome_unknown"              // it may have been written; ask again with the same key
	CodeInternal             Code = "internal"                     // a fault of ours
)

// Error is an answer that is not a success. Nothing was written, except where Code is
// CodeOutcomeUnknown.
type Error struct {
	Code    Code
	Message string // for people; says what to do
	// Shortages names every short line when Code is CodeInsufficientStock.
	Shortages []Shortage
	// Prices names every slot whose price differs when Code is CodePriceChanged.
	Prices []SlotPrice
	// RetryAfter is when to ask again, where the answer says that.
	RetryAfter time.Duration
	// OpensAt is when the sale begins when Code is CodeSaleNotOpen.
	OpensAt time.Time
	// Slots names the slots that an answer is about, where neither of the above does.
	Slots []SlotID
	// Limits names what the owner has reached when Code is CodeLimitReached.
	Limits []Limit
	Cause  error
}

// Shortage is one slot that has less than was asked for. What is left is not part of
// it: the answer goes to callers who may not learn exact numbers.
type Shortage struct {
	Slot      SlotID
	Requested Units
}

// Limit is a limit that an owner would go beyond. It is the owner's own, so the number is
// no secret.
type Limit struct {
	Key QuotaKey
	Max Units
}

// SlotPrice is the price that a slot has now.
type SlotPrice struct {
	Slot  SlotID
	Price Money
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", e.Code, e.Message)
	if e.Cause != nil {
		fmt.Fprintf(&b, ": %v", e.Cause)
	}
	return b.String()
}

// Unwrap gives the cause, if there is one.
func (e *Error) Unwrap() error { return e.Cause }

// CodeOf is the code of err, or CodeInternal for an error without one. It is "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// HoldNotFound is the one answer for a hold that does not exist and for a hold that is
// not the caller's, so that the two cannot be told apart (promise P11).
func HoldNotFound() *Error {
	return errorf(CodeHoldNotFound, "no hold of this id is yours; check the id")
}

// ReservationNotFound is the one answer for a reservation that does not exist and for
// one that is not the caller's (promise P11).
func ReservationNotFound() *Error {
	return errorf(CodeReservationNotFound, "no reservation of this id is yours; check the id")
}

// ReviewNotFound is the one answer for a case that does not exist, and for what does not wait
// for a person and never did.
func ReviewNotFound() *Error {
	return errorf(CodeReviewNotFound, "nothing of this id waits for a person; list the cases, it may have settled itself")
}

// HoldArchived is the answer for a change of a hold that lies in the archive.
func HoldArchived() *Error {
	return errorf(CodeHoldArchived, "the hold lies in the archive and can't be changed; ask the operator")
}

// ReservationArchived is the answer for a change of a reservation that lies in the archive.
func ReservationArchived() *Error {
	return errorf(CodeReservationArchived, "the reservation lies in the archive and can't be changed; ask the operator")
}

func paymentInProgress() *Error {
	return errorf(CodePaymentInProgress, "a payment of this hold is under way; cancel its reservation, or wait for it")
}

// SlotNotFound is the answer for a slot that does not exist.
func SlotNotFound(id SlotID) *Error {
	return &Error{Code: CodeSlotNotFound, Slots: []SlotID{id}, Message: "no slot of this id exists; check the id"}
}

func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
