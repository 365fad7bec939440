package paymenttest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

// Method names a method of the port.
type Method string

// The methods.
const (
	MethodCreate  Method = "create"
	MethodLookUp  Method = "look_up"
	MethodCapture Method = "capture"
	MethodVoid    Method = "void"
	MethodRefund  Method = "refund"
)

// Call is one call of a Provider.
type Call struct {
	Number      int // from 1, in the order of the calls
	Method      Method
	Key         payment.Key      // not of a look-up
	Payment     ledger.PaymentID // not of a creation
	Creation    payment.Creation // only of a creation
	AmountMinor int64            // of a capture or refund
}

// Provider is the payment port over a Bank, without a wire. It answers what the adapter
// for Stripe answers over HTTP.
//
// Before runs before the bank hears of the call, After once it has carried it out; either
// may be nil. An error of Before is a request that was lost, one of After an answer that
// was lost: both reach the caller as KindUnreachable unless they are a *payment.Error.
// A hook that waits makes the provider slow.
type Provider struct {
	Bank   *Bank
	Before func(context.Context, Call) error
	After  func(context.Context, Call) error

	mutex sync.Mutex
	calls []Call
}

var _ payment.Provider = (*Provider)(nil)

// NewProvider returns a Provider over bank without hooks.
func NewProvider(bank *Bank) *Provider { return &Provider{Bank: bank} }

// Calls are the calls so far, the first one first.
func (p *Provider) Calls() []Call {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.calls)
}

// Create begins a payment.
func (p *Provider) Create(ctx context.Context, c payment.Creation) (payment.Payment, error) {
	call := Call{Method: MethodCreate, Key: c.Key, Creation: c}
	return p.call(ctx, call, func() (payment.Payment, error) {
		answer, err := p.Bank.Create(c)
		return answer.Payment.Payment, err
	})
}

// LookUp says how a payment stands.
func (p *Provider) LookUp(ctx context.Context, id ledger.PaymentID) (payment.Payment, error) {
	return p.call(ctx, Call{Method: MethodLookUp, Payment: id}, func() (payment.Payment, error) {
		found, err := p.Bank.LookUp(id)
		return found.Payment, err
	})
}

// Capture takes amountMinor of what is authorized.
func (p *Provider) Capture(ctx context.Context, key payment.Key, id ledger.PaymentID, amountMinor int64) (payment.Payment, error) {
	call := Call{Method: MethodCapture, Key: key, Payment: id, AmountMinor: amountMinor}
	return p.call(ctx, call, func() (payment.Payment, error) {
		return p.pastSaved(key, func(key payment.Key) (Answer, error) { return p.Bank.Capture(key, id, amountMinor) })
	})
}

// Void cancels a payment.
func (p *Provider) Void(ctx context.Context, key payment.Key, id ledger.PaymentID) (payment.Payment, error) {
	return p.call(ctx, Call{Method: MethodVoid, Key: key, Payment: id}, func() (payment.Payment, error) {
		return p.pastSaved(key, func(key payment.Key) (Answer, error) { return p.Bank.Void(key, id) })
	})
}

// Refund gives amountMinor of what was captured back. Like the adapter, it looks for a
// refund of that key first, because the key itself is forgotten after a day, and answers
// with the payment as it is now.
func (p *Provider) Refund(ctx context.Context, key payment.Key, id ledger.PaymentID, amountMinor int64) (payment.Payment, error) {
	call := Call{Method: MethodRefund, Key: key, Payment: id, AmountMinor: amountMinor}
	return p.call(ctx, call, func() (payment.Payment, error) {
		before, err := p.Bank.LookUp(id)
		if err != nil {
			return payment.Payment{}, err
		}
		made := slices.IndexFunc(before.Refunds, func(r Refund) bool { return r.Key == key })
		switch {
		case made >= 0 && before.Refunds[made].Status == RefundFailed:
			return payment.Payment{}, &payment.Error{Kind: payment.KindRefused, Code: payment.CodeRefundFailed, Cause: errRefundFailed}
		case made < 0:
			if _, err := p.Bank.Refund(key, id, amountMinor); err != nil {
				return payment.Payment{}, err
			}
		}
		after, err := p.Bank.LookUp(id)
		return after.Payment, err
	})
}

// pastSaved makes the call under another key when the answer is a saved refusal: the
// payment may have moved on since. The payment's status sees to it that a capture or a
// void happens once.
func (p *Provider) pastSaved(key payment.Key, call func(payment.Key) (Answer, error)) (payment.Payment, error) {
	answer, err := call(key)
	if err != nil && answer.Replayed {
		answer, err = call(payment.Key(fmt.Sprintf("%s/again/%d", key, p.Bank.now().UnixNano())))
	}
	return answer.Payment.Payment, err
}

func (p *Provider) call(ctx context.Context, call Call, carryOut func() (payment.Payment, error)) (payment.Payment, error) {
	p.mutex.Lock()
	call.Number = len(p.calls) + 1
	p.calls = append(p.calls, call)
	p.mutex.Unlock()
	if p.Before != nil {
		if err := p.Before(ctx, call); err != nil {
			return payment.Payment{}, unreachable(err)
		}
	}
	if err := ctx.Err(); err != nil {
		return payment.Payment{}, unreachable(err)
	}
	answer, err := carryOut()
	if p.After != nil {
		if lost := p.After(ctx, call); lost != nil {
			return payment.Payment{}, unreachable(lost)
		}
	}
	if err != nil {
		return payment.Payment{}, err
	}
	return answer, nil
}

func unreachable(err error) error {
	var known *payment.Error
	if errors.As(err, &known) {
		return known
	}
	return &payment.Error{Kind: payment.KindUnreachable, Cause: err}
}
