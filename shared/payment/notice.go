package payment

import (
	"errors"
	"time"

	"holdfast/shared/ledger"
)

// Notice is what is kept of an event that the provider sent, and nothing more: the event
// itself holds secrets. It is a hint that something has happened; how the payment stands
// is looked up.
type Notice struct {
	ID      ledger.ProviderEventID `json:"id"`
	Type    string                 `json:"type"` // the provider's own name of it
	Payment ledger.PaymentID       `json:"payment_id"`
	// Reservation and Attempt are our own reference, which the payment carries. They let
	// a notice that is faster than our own write find its reservation (case D9).
	Reservation ledger.ReservationID `json:"reservation_id"`
	Attempt     ledger.AttemptNumber `json:"attempt"`
	OccurredAt  time.Time            `json:"occurred_at"`
	AmountMinor int64                `json:"amount_minor"`
	Currency    ledger.Currency      `json:"currency"`
	Status      Status               `json:"status"`
}

// Why a delivery of the provider gives no notice. Whatever checks one wraps these; every
// other error means that it could not be checked now.
var (
	// ErrSignature: nobody who knows the secret has signed these bytes, or not lately.
	ErrSignature = errors.New("payment: the signature is not good")
	// ErrNotOurs: it is signed, and it is about nothing of ours. The answer is a success, or
	// the provider would send it for days.
	ErrNotOurs = errors.New("payment: it is about nothing of ours")
	// ErrMalformed: it is signed, and it can't be read.
	ErrMalformed = errors.New("payment: it can't be read")
)
