package paymenttest

import (
	"fmt"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

// buyerPayment finds the payment that a buyer means: by its secret, which is what a buyer's
// device has, or by its id, for a test.
func (b *Bank) buyerPayment(secretOrID string) (*Payment, error) {
	b.lapse()
	if p := b.bySecret[secretOrID]; p != nil {
		return p, nil
	}
	return b.find(ledger.PaymentID(secretOrID))
}

// canBePaid reports whether a buyer can go on with p.
func (p *Payment) canBePaid() bool {
	switch p.Status {
	case payment.StatusPending, payment.StatusDeclined, payment.StatusRequiresAction:
		return true
	case payment.StatusAuthorized, payment.StatusCaptured, payment.StatusVoided:
		return false
	}
	return false
}

func (b *Bank) act(secretOrID string, do func(*Payment)) (Payment, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	p, err := b.buyerPayment(secretOrID)
	if err != nil {
		return Payment{}, err
	}
	if !p.canBePaid() {
		return Payment{}, conflict(CodeUnexpectedState, p)
	}
	do(p)
	return p.snapshot(), nil
}

// Pay is a buyer whose card is good: the money is reserved. KindConflict comes when the
// payment can't be paid any more.
func (b *Bank) Pay(secretOrID string) (Payment, error) { return b.act(secretOrID, b.authorize) }

func (b *Bank) authorize(p *Payment) {
	s := b.script(p)
	if s.AmountMinor != 0 {
		p.Amount.AmountMinor = s.AmountMinor
	}
	if s.Currency != "" {
		p.Amount.Currency = s.Currency
	}
	p.Status, p.AuthorizedMinor, p.AuthorizedAt = payment.StatusAuthorized, p.Amount.AmountMinor, b.second()
	b.lapseNext = earlier(b.lapseNext, b.lapseAt(p))
	b.emit(EventAuthorized, p, nil)
}

// Decline is a buyer whose card is declined. The payment can be paid again with the same
// secret.
func (b *Bank) Decline(secretOrID string) (Payment, error) {
	return b.act(secretOrID, func(p *Payment) {
		p.Status = payment.StatusDeclined
		p.Declines++
		b.emit(EventDeclined, p, nil)
	})
}

// RequireAction is a buyer who must prove who they are before the money is reserved.
func (b *Bank) RequireAction(secretOrID string) (Payment, error) {
	return b.act(secretOrID, func(p *Payment) {
		p.Status = payment.StatusRequiresAction
		b.emit(EventRequiresAction, p, nil)
	})
}

// CompleteAction is the buyer doing what RequireAction asked for. KindConflict comes when
// nothing was asked.
func (b *Bank) CompleteAction(secretOrID string) (Payment, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	p, err := b.buyerPayment(secretOrID)
	if err != nil {
		return Payment{}, err
	}
	if p.Status != payment.StatusRequiresAction {
		return Payment{}, conflict(CodeUnexpectedState, p)
	}
	b.authorize(p)
	return p.snapshot(), nil
}

// Lapse ends an authorization before its time, as a buyer's bank may. KindConflict comes
// when the payment is not authorized.
func (b *Bank) Lapse(secretOrID string) (Payment, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	p, err := b.buyerPayment(secretOrID)
	if err != nil {
		return Payment{}, err
	}
	if p.Status != payment.StatusAuthorized {
		return Payment{}, conflict(CodeUnexpectedState, p)
	}
	b.cancel(p)
	return p.snapshot(), nil
}

// LateSuccess makes a payment succeed that was said to be voided: authorized, or captured
// in full as well. KindConflict comes when the payment is not voided or its script does
// not lie.
func (b *Bank) LateSuccess(secretOrID string, captured bool) (Payment, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	p, err := b.buyerPayment(secretOrID)
	if err != nil {
		return Payment{}, err
	}
	if p.Status != payment.StatusVoided || !b.script(p).VoidLies {
		return Payment{}, conflict(CodeUnexpectedState, p)
	}
	b.authorize(p)
	if captured {
		b.take(p, p.AuthorizedMinor)
	}
	return p.snapshot(), nil
}

// FailRefund makes a refund fail that was said to have succeeded: the money is the shop's
// again, and still owed.
func (b *Bank) FailRefund(id RefundID) (Payment, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, p := range b.payments {
		for i := range p.Refunds {
			if r := &p.Refunds[i]; r.ID == id && r.Status == RefundSucceeded {
				r.Status = RefundFailed
				p.RefundedMinor -= r.AmountMinor
				b.emit(EventRefundFailed, p, r)
				return p.snapshot(), nil
			}
		}
	}
	return Payment{}, &payment.Error{
		Kind: payment.KindNotFound, Code: CodeMissing, Cause: fmt.Errorf("no refund %s that could fail", id),
	}
}
