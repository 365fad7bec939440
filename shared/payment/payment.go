package payment

import (
	"context"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// Status is how a payment stands with the provider.
type Status string

// The statuses.
const (
	// StatusPending: begun; the buyer has not paid, or the provider is still working.
	StatusPending Status = "pending"
	// StatusRequiresAction: the buyer must do something more, such as prove who they are.
	StatusRequiresAction Status = "requires_action"
	// StatusDeclined: the last try was declined. The buyer may try again with the same
	// secret, so a declined payment can still succeed until it is voided.
	StatusDeclined Status = "declined"
	// StatusAuthorized: the money is reserved and can be captured or voided.
	StatusAuthorized Status = "authorized"
	// StatusCaptured: the money was taken. It stays so when it is refunded.
	StatusCaptured Status = "captured"
	// StatusVoided: the provider says that the payment can't succeed any more.
	StatusVoided Status = "voided"
)

// Payment is one payment as the provider sees it now.
type Payment struct {
	ID     ledger.PaymentID
	Status Status
	// Amount is what the buyer was asked for.
	Amount ledger.Money
	// AuthorizedMinor, CapturedMinor and RefundedMinor are in the minor units of Amount's
	// currency. RefundedMinor counts refunds that are on their way, too; it falls again
	// when one fails.
	AuthorizedMinor, CapturedMinor, RefundedMinor int64
	// Reservation and Attempt are the reference that we gave the payment.
	Reservation ledger.ReservationID
	Attempt     ledger.AttemptNumber
	// AuthorizedAt is when the money was reserved, by the provider's clock; zero before,
	// or when it is not known.
	AuthorizedAt time.Time
	// Secret lets the buyer's device go on with the payment. It is given to the buyer and
	// never stored.
	Secret Secret
}

// Secret is a text that must not be seen in logs, errors or stored things. Printing it
// shows that there is one and not what it is; only Reveal gives the text.
type Secret struct{ text string }

// NewSecret wraps a text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal gives the text, for the one answer or call that needs it.
func (s Secret) Reveal() string { return s.text }

// Empty reports whether there is no text.
func (s Secret) Empty() bool { return s.text == "" }

// String hides the text.
func (Secret) String() string { return "[secret]" }

// GoString hides the text.
func (Secret) GoString() string { return "[secret]" }

// Format hides the text, whatever the verb is.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("[secret]")) }

// MarshalJSON hides the text.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"[secret]"`), nil }

// Key makes a call repeatable: the provider carries out one call per key, and answers
// the same again.
type Key string

// CreateKey is the key of the attempt's creation.
func CreateKey(r ledger.ReservationID, a ledger.AttemptNumber) Key { return key(r, a, "create") }

// CaptureKey is the key of the attempt's capture.
func CaptureKey(r ledger.ReservationID, a ledger.AttemptNumber) Key { return key(r, a, "capture") }

// VoidKey is the key of the attempt's void.
func VoidKey(r ledger.ReservationID, a ledger.AttemptNumber) Key { return key(r, a, "void") }

// RefundKey is the key of the refund of that number in the reservation.
func RefundKey(r ledger.ReservationID, a ledger.AttemptNumber, refund int) Key {
	return key(r, a, fmt.Sprintf("refund-%d", refund))
}

// RefundAgainKey is the key of the same refund when a person has had it asked for again so
// often: RefundKey at first. Under the old key the provider would only repeat its refusal.
func RefundAgainKey(r ledger.ReservationID, a ledger.AttemptNumber, refund, again int) Key {
	if again == 0 {
		return RefundKey(r, a, refund)
	}
	return key(r, a, fmt.Sprintf("refund-%d-again-%d", refund, again))
}

func key(r ledger.ReservationID, a ledger.AttemptNumber, step string) Key {
	return Key(fmt.Sprintf("%s/%d/%s", r, a, step))
}

// Creation is a payment to begin.
type Creation struct {
	Key         Key
	Amount      ledger.Money
	Reservation ledger.ReservationID
	Attempt     ledger.AttemptNumber
}

// NewCreation is the payment that an attempt of the reservation begins with, under the one
// key that makes beginning it repeatable.
func NewCreation(r ledger.ReservationID, a ledger.AttemptNumber, amount ledger.Money) Creation {
	return Creation{Key: CreateKey(r, a), Amount: amount, Reservation: r, Attempt: a}
}

// Provider is a payment provider. Every method may be repeated with the same arguments.
// Its error is an *Error. An error of KindUnreachable says nothing about whether the
// call was carried out.
type Provider interface {
	// Create begins a payment whose money is first authorized and captured later.
	// KindRefused means that there is no payment and the same call can never make one.
	Create(ctx context.Context, c Creation) (Payment, error)
	// LookUp says how a payment stands. KindNotFound means that the provider knows none
	// of that id.
	LookUp(ctx context.Context, id ledger.PaymentID) (Payment, error)
	// Capture takes amountMinor of what is authorized. KindConflict means that the payment
	// is not in a state to be captured, and must be looked up: it may have been captured.
	Capture(ctx context.Context, key Key, id ledger.PaymentID, amountMinor int64) (Payment, error)
	// Void makes sure that the payment can't succeed any more. KindConflict usually means
	// that it has succeeded, and must be looked up.
	Void(ctx context.Context, key Key, id ledger.PaymentID) (Payment, error)
	// Refund gives amountMinor of what was captured back. KindRefused means that the
	// provider will not. With CodeRefundFailed the refund of this key was made and has
	// failed since: the money is still owed, and only a refund with another key can pay it.
	Refund(ctx context.Context, key Key, id ledger.PaymentID, amountMinor int64) (Payment, error)
}

// ErrorKind says what an error of a provider means for its caller.
type ErrorKind string

// The kinds.
const (
	// KindUnreachable: no answer, or none that says anything: a time-out, an overload, a
	// fault of the provider, or a login of ours that it does not take. What was asked may
	// have been carried out. Ask again later.
	KindUnreachable ErrorKind = "unreachable"
	// KindNotFound: the provider knows no such payment. A provider's own copies lag, so a
	// single such answer proves nothing.
	KindNotFound ErrorKind = "not_found"
	// KindConflict: the payment is not in a state for this. Look it up.
	KindConflict ErrorKind = "conflict"
	// KindRefused: the provider will never do it. Repeating is of no use.
	KindRefused ErrorKind = "refused"
)

// CodeRefundFailed is the Code of a KindRefused error for a refund that was made and has
// failed since. It is our own word; the other codes are the provider's.
const CodeRefundFailed = "holdfast_refund_failed"

// Error is why a provider did not do what was asked. Its text has no secret.
type Error struct {
	Kind  ErrorKind
	Code  string // the provider's own code, if it gave one
	Cause error
}

func (e *Error) Error() string {
	return fmt.Sprintf("payment provider: %s (%s): %v", e.Kind, e.Code, e.Cause)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }
