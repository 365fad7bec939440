package ledger

import (
	"fmt"
	"slices"
	"time"
)

const (
	// AttemptsMax bounds the payment attempts of one reservation, so that its record stays
	// small: a buyer whose card is declined this often makes a new hold.
	AttemptsMax = 20
	// PartsMax bounds in how many parts a sale is given back, so that its record stays
	// small: each line of the largest sale may be one. What is left is given back whole.
	PartsMax = LinesMax
	// RefundsMax bounds the refunds of one reservation: one for each part, and one for each
	// attempt, for what is left of it or was not wanted.
	RefundsMax = PartsMax + AttemptsMax
)

// ReservationStatus is where a reservation is in its life.
type ReservationStatus string

// The statuses.
const (
	// ReservationPaymentPending: the buyer has not paid yet, as far as we know.
	ReservationPaymentPending ReservationStatus = "PAYMENT_PENDING"
	// ReservationAuthorized: the money is there, and the hold is not sold yet.
	ReservationAuthorized ReservationStatus = "AUTHORIZED"
	// ReservationConfirmed: the hold is sold, and the money is to be captured.
	ReservationConfirmed ReservationStatus = "CONFIRMED"
	// ReservationCaptured: the money is ours, and what was bought is to be delivered.
	ReservationCaptured ReservationStatus = "CAPTURED"
	// ReservationCompleted: captured and delivered.
	ReservationCompleted ReservationStatus = "COMPLETED"
	// ReservationCompensating: no sale will come of it, or the sale is taken back. Every
	// attempt's money is being voided or refunded.
	ReservationCompensating ReservationStatus = "COMPENSATING"
	// ReservationCanceled: ended without money. Money that arrives all the same opens it
	// again.
	ReservationCanceled ReservationStatus = "CANCELED"
	// ReservationRefunded: ended, and all money was given back.
	ReservationRefunded ReservationStatus = "REFUNDED"
	// ReservationRefundRequired: money is owed and the provider will not give it back by
	// itself. A person must see to it.
	ReservationRefundRequired ReservationStatus = "REFUND_REQUIRED"
	// ReservationReview: a person must decide.
	ReservationReview ReservationStatus = "REVIEW"
)

// reservationMoves lists where each status may go. A step to the same status is always
// allowed: it records something beside it.
var reservationMoves = map[ReservationStatus][]ReservationStatus{
	"": {ReservationPaymentPending, ReservationAuthorized},
	ReservationPaymentPending: {
		ReservationAuthorized, ReservationCompensating, ReservationCanceled, ReservationReview,
	},
	ReservationAuthorized: {
		ReservationConfirmed, ReservationCompensating, ReservationReview,
	},
	ReservationConfirmed:      {ReservationCaptured, ReservationCompensating, ReservationReview},
	ReservationCaptured:       {ReservationCompleted, ReservationCompensating, ReservationReview},
	ReservationCompleted:      {ReservationCompensating, ReservationReview},
	ReservationCompensating:   {ReservationAuthorized, ReservationCanceled, ReservationRefunded, ReservationRefundRequired, ReservationReview},
	ReservationCanceled:       {ReservationAuthorized, ReservationCompensating, ReservationRefundRequired},
	ReservationRefunded:       {ReservationCompensating, ReservationRefundRequired},
	ReservationRefundRequired: {ReservationRefunded, ReservationCanceled, ReservationCompensating},
	ReservationReview:         {ReservationAuthorized, ReservationCaptured, ReservationCompensating},
}

// Ended reports whether nothing more happens to a reservation of this status by itself.
func (s ReservationStatus) Ended() bool {
	switch s {
	case ReservationCompleted, ReservationCanceled, ReservationRefunded, ReservationReview:
		return true
	default:
		return false
	}
}

// Reason says why a reservation is not simply paid. It is part of the API.
type Reason string

// The reasons.
const (
	ReasonDeclined          Reason = "declined"           // the payment was declined
	ReasonRefused           Reason = "payment_refused"    // the provider would not begin the payment
	ReasonExpired           Reason = "expired"            // the hold was over before it was paid
	ReasonHoldCanceled      Reason = "hold_canceled"      // the owner gave the hold up
	ReasonOwnerCanceled     Reason = "owner_canceled"     // the owner cancelled the reservation
	ReasonOperatorCanceled  Reason = "operator_canceled"  // an operator did
	ReasonPaymentUnknown    Reason = "payment_unknown"    // the provider did not say in time whether it was paid
	ReasonLate              Reason = "late"               // the payment came after the hold was over
	ReasonSoldOut           Reason = "sold_out"           // it came late, and the units were gone
	ReasonMismatch          Reason = "payment_mismatch"   // amount, currency or reference are not what was asked for
	ReasonAuthorizationLost Reason = "authorization_lost" // the authorized money could not be captured
	ReasonDeliveryFailed    Reason = "delivery_failed"    // what was paid could not be delivered
	ReasonSurplus           Reason = "surplus"            // paid a second time
	ReasonReturned          Reason = "returned"           // lines were given back after the sale
)

// Reservation is the payment of one hold, from its first attempt to its end.
type Reservation struct {
	ID    ReservationID
	Owner OwnerID
	// Hold is what is paid for. SoldHold is the hold that was sold to it: the same one, or
	// the one that a late payment made; "" while there is none.
	Hold     HoldID
	SoldHold HoldID
	Status   ReservationStatus
	// Reason says why it is not simply paid; "" when it is.
	Reason Reason
	// Amount is the hold's quote: what is authorized and captured, no more and no less.
	Amount   Money
	Attempts []Attempt // in their order; the last one is the current one
	Refunds  []Refund  // in their order, each owed before the provider is asked for it
	// Grants are the units that the delivery put into other slots, and that were not
	// taken back.
	Grants    []Grant
	CreatedAt time.Time
	UpdatedAt time.Time
	// StatusSince is when it came to its status: a step to the same status records something
	// beside it, and says nothing about how long it has been waited for.
	StatusSince time.Time
	DeliveredAt time.Time // zero before
	// ApprovedAt is when a person let a payment count that had to be looked at; zero for
	// never. One that came late buys the units from then on, whatever the policy.
	ApprovedAt time.Time
	// LookAt is when it is looked at again; zero when nothing is to be done.
	LookAt time.Time
	// Tries counts the looks since the last step. It is kept beside the steps, not by them.
	Tries int
	// HoldsArchived counts the holds of it that lie in the archive, and may have left the
	// table. It is kept beside the steps, not by them.
	HoldsArchived int
	// ArchivedIn is the batch of the archive that it lies in; "" while it is in use.
	ArchivedIn BatchID
	Version    Version
}

// AttemptState is what is known of a payment attempt.
type AttemptState string

// The states.
const (
	// AttemptOpen: it may still succeed.
	AttemptOpen AttemptState = "open"
	// AttemptAuthorized: its money is reserved.
	AttemptAuthorized AttemptState = "authorized"
	// AttemptCaptured: its money was taken.
	AttemptCaptured AttemptState = "captured"
	// AttemptVoided: the provider said that it can't succeed any more.
	AttemptVoided AttemptState = "voided"
)

// Attempt is one try of the buyer to pay.
type Attempt struct {
	Number AttemptNumber
	// Payment is the provider's id of it; "" until the provider has answered.
	Payment PaymentID
	State   AttemptState
	// Unwanted says that its money must not stay: it is voided, or refunded.
	Unwanted bool
	// CapturedMinor is what was taken, in minor units.
	CapturedMinor int64
	OpenedAt      time.Time
	// AuthorizedAt is when the money was reserved, by the provider's clock; zero before.
	AuthorizedAt time.Time
}

// RefundState is how far a refund is.
type RefundState string

// The states.
const (
	RefundOwed   RefundState = "owed"   // recorded, and not yet given
	RefundDone   RefundState = "done"   // given back
	RefundFailed RefundState = "failed" // the provider will not; a person must see to it
)

// Refund is money that goes back to the buyer.
type Refund struct {
	Number      int // from 1
	Attempt     AttemptNumber
	AmountMinor int64
	Reason      Reason
	State       RefundState
	OwedAt      time.Time
	EndedAt     time.Time // zero while it is owed
	// Again counts how often a person had the provider asked again after it would not. Each
	// time is another act, under another key.
	Again int
	// ByHand says that a person has given it back on another way than by the provider, whose
	// own sum does not have it.
	ByHand bool
}

// Grant is units of a slot that a delivery made.
type Grant struct {
	Slot     SlotID
	Shard    Shard
	Quantity Units
}

// Current is the attempt that can confirm, and false when there is none.
func (r Reservation) Current() (Attempt, bool) {
	if len(r.Attempts) == 0 {
		return Attempt{}, false
	}
	return r.Attempts[len(r.Attempts)-1], true
}

// Clone is a copy that shares nothing with r.
func (r Reservation) Clone() Reservation {
	r.Attempts, r.Refunds, r.Grants = slices.Clone(r.Attempts), slices.Clone(r.Refunds), slices.Clone(r.Grants)
	return r
}

// Attempt is the attempt of that number, to be changed in place; nil if there is none.
func (r Reservation) Attempt(n AttemptNumber) *Attempt {
	if n < 1 || int(n) > len(r.Attempts) {
		return nil
	}
	return &r.Attempts[n-1]
}

// RefundedMinor is the sum of the attempt's refunds in one of these states.
func (r Reservation) RefundedMinor(n AttemptNumber, states ...RefundState) int64 {
	var total int64
	for _, refund := range r.Refunds {
		if refund.Attempt == n && slices.Contains(states, refund.State) {
			total += refund.AmountMinor
		}
	}
	return total
}

// OwedMinor is the sum of the refunds that are recorded and not yet given, also of those
// that a person must see to: what the buyer may still ask for.
func (r Reservation) OwedMinor() int64 {
	var total int64
	for _, refund := range r.Refunds {
		if refund.State != RefundDone {
			total += refund.AmountMinor
		}
	}
	return total
}

// Owe adds a refund. The caller has checked that the attempt holds that much.
func (r *Reservation) Owe(n AttemptNumber, amountMinor int64, reason Reason, now time.Time) {
	r.Refunds = append(slices.Clone(r.Refunds), Refund{
		Number: len(r.Refunds) + 1, Attempt: n, AmountMinor: amountMinor, Reason: reason, State: RefundOwed, OwedAt: now,
	})
}

// WantNoMoney says of every attempt that its money must not stay.
func (r *Reservation) WantNoMoney() {
	for i := range r.Attempts {
		r.Attempts[i].Unwanted = true
	}
}

// Claims of a reservation: each value belongs to one reservation for ever.

// ClaimHold keeps a hold from being paid by two reservations.
func (r Reservation) ClaimHold() Uniqueness {
	return Uniqueness{Kind: UniqueHoldReservation, Value: string(r.Hold), Reservation: r.ID}
}

// ClaimPayment leads from a provider's payment to the reservation.
func (r Reservation) ClaimPayment(id PaymentID) Uniqueness {
	return Uniqueness{Kind: UniqueProviderPayment, Value: string(id), Reservation: r.ID}
}

// ClaimEvent keeps a provider's event from being taken up twice.
func (r Reservation) ClaimEvent(id ProviderEventID) Uniqueness {
	return Uniqueness{Kind: UniqueProviderEvent, Value: string(id), Reservation: r.ID}
}

// ReservationStep builds the Change that puts next in place of r, with its event and the
// movements that only this step makes. A zero r begins a reservation. LookAt is next's;
// a step resets the tries.
func ReservationStep(r, next Reservation, t EventType, movements []Movement, origin Origin, now time.Time) Change {
	next.Version = r.Version + 1
	next.UpdatedAt = now
	next.Tries = 0
	if r.Version == 0 {
		next.CreatedAt = now
	}
	if next.Status != r.Status {
		next.StatusSince = now
	}
	return Change{
		At:           now,
		Reservations: []ReservationWrite{{Next: next, Replaces: r.Version, From: r.Status, Since: r.StatusSince}},
		Stock:        stockWrites(movements, nil),
		Events: []Event{{
			ID: origin.EventID, Type: t, Version: next.Version, OccurredAt: now,
			Origin: origin, Reservation: &next, Movements: movements,
		}},
	}
}

// GrantSteps are the movements that credit the lines' grants of the sold hold, spread by
// the reservation's id over the stock that was read as given. It returns
// CodeSlotNotFound when a slot that is to be credited has no stock.
func GrantSteps(r Reservation, sold Hold, stock []Stock) ([]Movement, []Grant, error) {
	var movements []Movement
	var grants []Grant
	for _, line := range sold.Lines {
		left := line.Quantity - line.ReturnedQuantity()
		if line.GrantTo == "" || left == 0 {
			continue
		}
		shards := 0
		for _, s := range stock {
			if s.Slot == line.GrantTo {
				shards++
			}
		}
		if shards == 0 {
			return nil, nil, SlotNotFound(line.GrantTo)
		}
		shard := PickShard(HoldID(r.ID), line.GrantTo, shards)
		movements = append(movements, Movement{line.GrantTo, shard, BucketOutside, BucketAvailable, left})
		grants = append(grants, Grant{line.GrantTo, shard, left})
	}
	return movements, grants, nil
}

// GiveUp ends a hold that has waited for its payment for as long as its terms keep it,
// and records in the same Change that whatever money still comes is to be given back.
// It returns CodeHoldNotDue before that time, and an empty Change for a hold that has
// ended.
func GiveUp(h Hold, r Reservation, origin Origin, now time.Time) (Change, error) {
	if h.Status != StatusHeld {
		return Change{}, nil
	}
	released, err := ExpireUnknown(h, origin.Beside("hold"), now)
	if err != nil {
		return Change{}, err
	}
	next := r.Clone()
	if r.Status == ReservationPaymentPending || r.Status == ReservationAuthorized {
		next.Status, next.Reason = ReservationCompensating, ReasonPaymentUnknown
	}
	if next.LookAt.IsZero() {
		next.LookAt = now
	}
	return Together(released, ReservationStep(r, next, EventReservationCompensating, nil, origin, now)), nil
}

// check returns an error for a reservation that no step can have made.
func (r Reservation) check() error {
	if len(r.Attempts) > AttemptsMax || len(r.Refunds) > RefundsMax {
		return fmt.Errorf("reservation %s has %d attempts and %d refunds", r.ID, len(r.Attempts), len(r.Refunds))
	}
	captured := 0
	for i, a := range r.Attempts {
		if int(a.Number) != i+1 {
			return fmt.Errorf("reservation %s: attempt %d is numbered %d", r.ID, i+1, a.Number)
		}
		if a.State == AttemptCaptured && !a.Unwanted {
			captured++
		}
		if given := r.RefundedMinor(a.Number, RefundOwed, RefundDone, RefundFailed); given > a.CapturedMinor {
			return fmt.Errorf("reservation %s: attempt %d took %d and owes %d back", r.ID, a.Number, a.CapturedMinor, given)
		}
	}
	if captured > 1 {
		return fmt.Errorf("reservation %s keeps the money of %d attempts", r.ID, captured)
	}
	if err := r.checkRefunds(); err != nil {
		return err
	}
	return nil
}
