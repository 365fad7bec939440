package paymenttest

import (
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

// The types of events, as Stripe names them.
const (
	EventCreated        = "payment_intent.created"
	EventAuthorized     = "payment_intent.amount_capturable_updated"
	EventSucceeded      = "payment_intent.succeeded"
	EventCanceled       = "payment_intent.canceled"
	EventDeclined       = "payment_intent.payment_failed"
	EventRequiresAction = "payment_intent.requires_action"
	EventRefunded       = "charge.refunded"
	EventRefundFailed   = "refund.failed"
)

// Event is something that the bank tells about a payment.
type Event struct {
	ID   ledger.ProviderEventID
	Type string
	At   time.Time
	// Payment is the payment as it was just after the event.
	Payment Payment
	// Refund is the refund that the event is about; zero for an event about the payment.
	Refund Refund
}

// Notice is what Holdfast keeps of the event: what stripe.Verify makes of its webhook.
func (e Event) Notice() payment.Notice {
	n := payment.Notice{
		ID: e.ID, Type: e.Type, Payment: e.Payment.ID, Reservation: e.Payment.Reservation, Attempt: e.Payment.Attempt,
		OccurredAt: e.At, AmountMinor: e.Payment.Amount.AmountMinor, Currency: e.Payment.Amount.Currency, Status: e.Payment.Status,
	}
	switch e.Type {
	case EventRefunded:
		n.AmountMinor = e.Payment.RefundedMinor
	case EventRefundFailed:
		n.AmountMinor = e.Refund.AmountMinor
	}
	return n
}

func (b *Bank) emit(kind string, p *Payment, r *Refund) {
	e := Event{ID: ledger.ProviderEventID(b.newID("evt")), Type: kind, At: b.second(), Payment: p.snapshot()}
	if r != nil {
		e.Refund = *r
	}
	b.events = append(b.events, e)
}

// TakeEvents gives the events since the last call, the oldest first.
func (b *Bank) TakeEvents() []Event {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.lapse()
	events := b.events
	b.events = nil
	return events
}
