package paymenttest

import (
	"errors"
	"fmt"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

var (
	errOtherRequest = errors.New("the key was used for another request")
	errNoPayment    = errors.New("no such payment")
	errRefundFailed = errors.New("the refund was made and has failed since")
)

func missing(err error) bool {
	var refusal *payment.Error
	return errors.As(err, &refusal) && refusal.Kind == payment.KindNotFound
}

func refused(code, text string) error {
	return &payment.Error{Kind: payment.KindRefused, Code: code, Cause: errors.New(text)}
}

func conflict(code string, p *Payment) error {
	return &payment.Error{Kind: payment.KindConflict, Code: code, Cause: fmt.Errorf("the payment is %s", p.Status)}
}

// Create begins a payment.
func (b *Bank) Create(c payment.Creation) (Answer, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	request := fmt.Sprintf("create %d %s %s %d", c.Amount.AmountMinor, c.Amount.Currency, c.Reservation, c.Attempt)
	return b.once(c.Key, request, func() (Answer, error) {
		if c.Amount.AmountMinor <= 0 {
			return Answer{}, refused(CodeInvalidInteger, "the amount is not above zero")
		}
		p := &Payment{CreatedAt: b.second(), Asked: c.Amount}
		p.Payment = payment.Payment{
			ID: ledger.PaymentID(b.newID("pi")), Status: payment.StatusPending, Amount: c.Amount,
			Reservation: c.Reservation, Attempt: c.Attempt,
		}
		if b.script(p).CreateRefused {
			return Answer{}, refused(CodeProcessing, "the payment can not be begun")
		}
		p.Secret = payment.NewSecret(fmt.Sprintf("%s_secret_%08d", p.ID, len(b.payments)+1))
		b.payments = append(b.payments, p)
		b.byID[p.ID], b.bySecret[p.Secret.Reveal()] = p, p
		b.emit(EventCreated, p, nil)
		return Answer{Payment: p.snapshot()}, nil
	})
}

// LookUp says how a payment stands.
func (b *Bank) LookUp(id ledger.PaymentID) (Payment, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.lapse()
	p, err := b.find(id)
	if err != nil {
		return Payment{}, err
	}
	return p.snapshot(), nil
}

// Capture takes amountMinor of what is authorized, and lets go of the rest.
func (b *Bank) Capture(key payment.Key, id ledger.PaymentID, amountMinor int64) (Answer, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.once(key, fmt.Sprintf("capture %s %d", id, amountMinor), func() (Answer, error) {
		p, err := b.find(id)
		switch {
		case err != nil:
			return Answer{}, err
		case p.Status != payment.StatusAuthorized:
			return Answer{}, conflict(CodeUnexpectedState, p)
		case amountMinor <= 0:
			return Answer{}, refused(CodeInvalidInteger, "the amount is not above zero")
		case amountMinor > p.AuthorizedMinor:
			return Answer{}, refused(CodeAmountTooLarge, "the amount is more than is authorized")
		case b.script(p).CaptureRefused:
			return Answer{}, refused(CodeProcessing, "the capture was refused")
		}
		b.take(p, amountMinor)
		return Answer{Payment: p.snapshot()}, nil
	})
}

func (b *Bank) take(p *Payment, amountMinor int64) {
	p.Status = payment.StatusCaptured
	p.CapturedMinor += amountMinor
	p.Captures++
	b.emit(EventSucceeded, p, nil)
}

// Void cancels a payment that is not captured. A payment whose script lies is said to be
// voided, and LateSuccess can still be called on it.
func (b *Bank) Void(key payment.Key, id ledger.PaymentID) (Answer, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.once(key, fmt.Sprintf("void %s", id), func() (Answer, error) {
		p, err := b.find(id)
		switch {
		case err != nil:
			return Answer{}, err
		case p.Status == payment.StatusCaptured || p.Status == payment.StatusVoided:
			return Answer{}, conflict(CodeUnexpectedState, p)
		}
		b.cancel(p)
		return Answer{Payment: p.snapshot()}, nil
	})
}

// Refund gives amountMinor of what was captured back.
func (b *Bank) Refund(key payment.Key, id ledger.PaymentID, amountMinor int64) (Answer, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.once(key, fmt.Sprintf("refund %s %d", id, amountMinor), func() (Answer, error) {
		p, err := b.find(id)
		switch {
		case err != nil:
			return Answer{}, err
		case p.Status != payment.StatusCaptured:
			return Answer{}, conflict(CodeUnexpectedState, p)
		case amountMinor <= 0:
			return Answer{}, refused(CodeInvalidInteger, "the amount is not above zero")
		case p.RefundedMinor == p.CapturedMinor:
			return Answer{}, conflict(CodeAlreadyRefunded, p)
		case amountMinor > p.CapturedMinor-p.RefundedMinor:
			return Answer{}, refused(CodeAmountTooLarge, "the amount is more than is left to refund")
		case b.script(p).RefundRefused:
			return Answer{}, refused(CodeProcessing, "the refund was refused")
		}
		r := Refund{
			ID: RefundID(b.newID("re")), Payment: p.ID, Key: key, AmountMinor: amountMinor,
			Status: RefundSucceeded, CreatedAt: b.second(),
		}
		p.Refunds = append(p.Refunds, r)
		p.RefundedMinor += amountMinor
		b.emit(EventRefunded, p, &r)
		return Answer{Payment: p.snapshot(), Refund: r}, nil
	})
}
