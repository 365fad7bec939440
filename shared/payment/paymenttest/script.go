package paymenttest

import (
	"time"

	"holdfast/shared/ledger"
)

// Script is how the bank misbehaves with a payment. The zero Script is an honest bank.
type Script struct {
	// AmountMinor and Currency, when not zero, replace what was asked for at the moment
	// when the buyer pays: the authorization is about other money than the quote.
	AmountMinor int64
	Currency    ledger.Currency
	// VoidLies: a void answers "voided", and the payment can still succeed by LateSuccess.
	VoidLies bool
	// CreateRefused, CaptureRefused and RefundRefused: the call is refused for good.
	CreateRefused, CaptureRefused, RefundRefused bool
	// AuthorizationLasts replaces the usual time, if it is not zero.
	AuthorizationLasts time.Duration
}

// SetScript makes s the script of that attempt of the reservation. It may be set before
// the payment is created, and again at any time; it counts from then on.
func (b *Bank) SetScript(r ledger.ReservationID, a ledger.AttemptNumber, s Script) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.scripts[reference{r, a}] = s
	b.lapseNext = time.Time{}
}

// SetDefaultScript makes s the script of all payments that have none of their own.
func (b *Bank) SetDefaultScript(s Script) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.standard = s
	b.lapseNext = time.Time{}
}

func (b *Bank) script(p *Payment) Script {
	if s, found := b.scripts[reference{p.Reservation, p.Attempt}]; found {
		return s
	}
	return b.standard
}
