package paymenttest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

const (
	// KeysKept is how long a result is saved under its key. Stripe removes keys once
	// they are at least 24 hours old.
	KeysKept = 24 * time.Hour
	// AuthorizationLasts is how long reserved money stays reserved: seven days for a
	// card payment at Stripe.
	AuthorizationLasts = 7 * 24 * time.Hour
)

// Codes of the refusals, as Stripe names them. CodeIdempotency is the type of an error
// that has no code at Stripe.
const (
	CodeMissing         = "resource_missing"
	CodeUnexpectedState = "payment_intent_unexpected_state"
	CodeAlreadyRefunded = "charge_already_refunded"
	CodeAmountTooLarge  = "amount_too_large"
	CodeInvalidInteger  = "parameter_invalid_integer"
	CodeIdempotency     = "idempotency_error"
	CodeProcessing      = "processing_error"
)

// Payment is a payment as the bank knows it.
type Payment struct {
	payment.Payment
	CreatedAt time.Time
	// Asked is what the creation asked for. Amount differs from it when the script says so.
	Asked ledger.Money
	// Declines counts the tries that were declined.
	Declines int
	// Captures counts the captures. More than one would be the bank's own fault.
	Captures int
	Refunds  []Refund // the oldest first
}

// Refund is one refund of a payment.
type Refund struct {
	ID          RefundID
	Payment     ledger.PaymentID
	Key         payment.Key
	AmountMinor int64
	Status      RefundStatus
	CreatedAt   time.Time
}

// RefundID is the bank's name of a refund.
type RefundID string

// RefundStatus is how a refund stands.
type RefundStatus string

// The statuses of a refund. One that succeeded may fail later, when the buyer's bank
// sends the money back.
const (
	RefundSucceeded RefundStatus = "succeeded"
	RefundFailed    RefundStatus = "failed"
)

// Answer is what the bank answers a call with a key.
type Answer struct {
	Payment Payment
	Refund  Refund // only of a refund
	// Replayed says that this is the saved answer of an earlier call with the key. It
	// shows the payment as it was then.
	Replayed bool
}

// Bank is the provider's side. It is safe for concurrent use; calls from one goroutine
// have the same outcome each time that they are made in the same order.
type Bank struct {
	mutex    sync.Mutex
	now      func() time.Time
	payments []*Payment // in order of creation
	byID     map[ledger.PaymentID]*Payment
	bySecret map[string]*Payment
	// lapseNext is not after the first end of an authorization. Looks before it need not
	// go through all payments.
	lapseNext time.Time
	scripts   map[reference]Script
	standard  Script
	saved     map[payment.Key]saved
	events    []Event
	made      map[string]int // how many ids of each kind were given
	run       string         // is in every id
}

type reference struct {
	reservation ledger.ReservationID
	attempt     ledger.AttemptNumber
}

type saved struct {
	request string
	answer  Answer
	err     error
	at      time.Time
}

// NewBank returns a bank without payments, whose clock is now.
func NewBank(now func() time.Time) *Bank {
	return &Bank{
		now: now, byID: map[ledger.PaymentID]*Payment{}, bySecret: map[string]*Payment{},
		scripts: map[reference]Script{}, saved: map[payment.Key]saved{}, made: map[string]int{},
	}
}

// second is the bank's time: whole seconds in UTC, as Stripe tells times.
func (b *Bank) second() time.Time { return b.now().UTC().Truncate(time.Second) }

// SetRun puts run into every id that the bank gives from now on. A bank forgets everything
// at its end, but its ids may be kept, and a real provider never gives one twice.
func (b *Bank) SetRun(run string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.run = run
}

func (b *Bank) newID(kind string) string {
	b.made[kind]++
	return fmt.Sprintf("%s_%s%08d", kind, b.run, b.made[kind])
}

// once carries a call out once per key. What a call answers is saved, refusals included,
// as Stripe does; only a payment that is not there is not saved, because Stripe finds
// that out before the call begins.
func (b *Bank) once(key payment.Key, request string, carryOut func() (Answer, error)) (Answer, error) {
	b.lapse()
	if before, found := b.saved[key]; found && b.now().Sub(before.at) < KeysKept {
		if before.request != request {
			return Answer{}, &payment.Error{Kind: payment.KindRefused, Code: CodeIdempotency, Cause: errOtherRequest}
		}
		answer := before.answer
		answer.Replayed = true
		return answer, before.err
	}
	answer, err := carryOut()
	if key != "" && !missing(err) {
		b.saved[key] = saved{request: request, answer: answer, err: err, at: b.now()}
	}
	return answer, err
}

func (b *Bank) find(id ledger.PaymentID) (*Payment, error) {
	if p := b.byID[id]; p != nil {
		return p, nil
	}
	return nil, &payment.Error{Kind: payment.KindNotFound, Code: CodeMissing, Cause: errNoPayment}
}

// snapshot is a copy that later changes do not reach.
func (p *Payment) snapshot() Payment {
	c := *p
	c.Refunds = slices.Clone(p.Refunds)
	return c
}

// lapse ends every authorization that is over. It runs before each look at the payments,
// so that no timer is needed.
func (b *Bank) lapse() {
	now := b.now()
	if now.Before(b.lapseNext) {
		return
	}
	b.lapseNext = now.Add(AuthorizationLasts)
	for _, p := range b.payments {
		if p.Status != payment.StatusAuthorized {
			continue
		}
		if end := b.lapseAt(p); now.Before(end) {
			b.lapseNext = earlier(b.lapseNext, end)
		} else {
			b.cancel(p)
		}
	}
}

func (b *Bank) lapseAt(p *Payment) time.Time {
	lasts := b.script(p).AuthorizationLasts
	if lasts == 0 {
		lasts = AuthorizationLasts
	}
	return p.AuthorizedAt.Add(lasts)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func (b *Bank) cancel(p *Payment) {
	p.Status, p.AuthorizedMinor = payment.StatusVoided, 0
	b.emit(EventCanceled, p, nil)
}
