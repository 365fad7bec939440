package sim

import (
	"context"
	"errors"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
)

const (
	// providerForMin and providerForMax are how long a healthy call of the provider takes.
	providerForMin, providerForMax = 40 * time.Millisecond, 300 * time.Millisecond
	// providerSlowMax is how long a slow call takes at most: it arrives, and is carried out,
	// long after its caller has given it up.
	providerSlowMax = 25 * time.Second
	// providerGivenUpAfter is what a caller waits: the adapter's time-out and the buyer's.
	providerGivenUpAfter = commands.ProviderFor
)

var errProviderFault = errors.New("the provider has a fault of its own (simulated)")

// provider is the payment provider as one function instance meets it. The bank behind it
// is the history's only one.
type provider struct {
	world    *world
	instance *instance
}

var _ payment.Provider = (*provider)(nil)

// call sends one request, and returns what its caller sees. As with the database, the
// request may be lost, late, turned away or unanswered, the caller's process may end at
// any point of it, and what arrives is carried out whether anybody waits for it or not.
func (p *provider) call(name string, carryOut func() (payment.Payment, error)) (payment.Payment, error) {
	w, t := p.world, p.world.kernel.running
	k, f := w.kernel, w.faults
	t.exitIfKilled()
	crashes, sentBefore := t.dice.chance(f.Crash), t.dice.chance(2)
	total := t.dice.between(providerForMin, providerForMax)
	if t.dice.chance(f.ProviderSlow) {
		total = t.dice.between(providerForMax, providerSlowMax)
	}
	lostRequest, lostAnswer, refused := t.dice.chance(f.ProviderLostRequest), t.dice.chance(f.ProviderLostAnswer), t.dice.chance(f.ProviderRefused)
	if crashes {
		if sentBefore {
			k.after(total/2, func() { _, _ = w.bank.carryOut(t.name, name, carryOut) }) // nobody waits for the answer
		}
		p.instance.crash()
		t.exitIfKilled()
	}
	var answer payment.Payment
	result := error(&payment.Error{Kind: payment.KindUnreachable, Cause: errNoAnswer})
	wake := t.waker()
	if !lostRequest {
		k.after(total/2, func() {
			away := refused || w.bank.away()
			said, err := payment.Payment{}, error(&payment.Error{Kind: payment.KindUnreachable, Cause: errProviderFault})
			if !away {
				said, err = w.bank.carryOut(t.name, name, carryOut)
			}
			if lostAnswer {
				return
			}
			k.after(total/2, func() {
				answer, result = said, err
				wake()
			})
		})
	}
	k.after(providerGivenUpAfter, wake)
	t.pause()
	w.trace.add("%s: the provider's answer to %s is %s, %v", t.name, name, answer.Status, result)
	return answer, result
}

// over is the port without a wire: it knows the rules of keys and refunds.
func (p *provider) over() *paymenttest.Provider { return p.world.bank.port }

// Create begins a payment.
func (p *provider) Create(_ context.Context, c payment.Creation) (payment.Payment, error) {
	p.world.bank.script(c)
	return p.call("create for "+string(c.Key), func() (payment.Payment, error) {
		return p.over().Create(contextOfHistory, c)
	})
}

// LookUp says how a payment stands.
func (p *provider) LookUp(_ context.Context, id ledger.PaymentID) (payment.Payment, error) {
	return p.call("look up "+string(id), func() (payment.Payment, error) {
		return p.over().LookUp(contextOfHistory, id)
	})
}

// Capture takes what is authorized.
func (p *provider) Capture(_ context.Context, key payment.Key, id ledger.PaymentID, amountMinor int64) (payment.Payment, error) {
	return p.call("capture of "+string(id), func() (payment.Payment, error) {
		return p.world.books.captures(id, amountMinor, func() (payment.Payment, error) {
			return p.over().Capture(contextOfHistory, key, id, amountMinor)
		})
	})
}

// Void cancels a payment.
func (p *provider) Void(_ context.Context, key payment.Key, id ledger.PaymentID) (payment.Payment, error) {
	return p.call("void of "+string(id), func() (payment.Payment, error) {
		return p.over().Void(contextOfHistory, key, id)
	})
}

// Refund gives back what was captured.
func (p *provider) Refund(_ context.Context, key payment.Key, id ledger.PaymentID, amountMinor int64) (payment.Payment, error) {
	return p.call("refund of "+string(id), func() (payment.Payment, error) {
		p.world.books.refunds(id, key, amountMinor)
		return p.over().Refund(contextOfHistory, key, id, amountMinor)
	})
}
