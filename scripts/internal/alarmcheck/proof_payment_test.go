package alarmcheck_test

import (
	"context"
	"errors"
	"net/http"
	"time"

	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/topology"
)

var errProviderAway = errors.New("no route to the provider")

// away makes the provider lose every request of the methods.
func (p *plant) away(methods ...paymenttest.Method) {
	p.provider.Before = func(_ context.Context, c paymenttest.Call) error {
		for _, m := range methods {
			if c.Method == m {
				return errProviderAway
			}
		}
		return nil
	}
}

// soldAndCanceled buys one unit and cancels it again, as its owner does.
func (p *plant) soldAndCanceled() {
	p.tb.Helper()
	reservation, secret := p.begin()
	if _, err := p.bank.Pay(secret); err != nil {
		p.tb.Fatal(err)
	}
	buyer := p.requests
	p.run(2 * time.Minute)
	p.requests = buyer
	if status, body := p.request(http.MethodPost, "/v1/reservations/"+reservation+"/cancel", "holds", ""); status >= http.StatusBadRequest {
		p.tb.Fatalf("cancel the sale: %d %v", status, body)
	}
}

// paymentProofs are faults of the money.
func paymentProofs() map[string]proof {
	powerless := func(d time.Duration) proof {
		return proof{fault: func(p *plant) {
			p.refusing(topology.FunctionSaga, errDenied, writes()...)
			p.run(d)
		}}
	}
	return map[string]proof{
		"WebhookFailed": {fault: func(p *plant) { p.queues.down[topology.ResourceSagaQueue] = true; p.run(4 * time.Minute) }},
		"WebhookRefused": {fault: func(p *plant) {
			for range 11 {
				p.webhook([]byte(`{"id":"evt_1"}`), "t=1,v1=00")
			}
			p.run(time.Minute)
		}},
		"WebhookMalformed": {fault: func(p *plant) {
			body := []byte(`{"id":"evt_1","object":"event","type":"payment_intent.succeeded","created":1,"data":{"object":"a text"}}`)
			p.webhook(body, stripetest.SignatureHeader(body, p.clock.Now(), webhookSecret))
			p.run(time.Minute)
		}},
		"SagaLag":     powerless(20 * time.Minute),
		"SagaLagLong": powerless(30 * time.Minute),
		"SagaFailed":  powerless(7 * time.Minute),
		"SagaHeartbeat": {fault: func(p *plant) {
			p.refusing(topology.FunctionSaga, errDenied, "Query")
			p.run(3 * time.Minute)
		}},
		// The provider takes a minute for each answer.
		"SagaTruncated": {fault: func(p *plant) {
			p.queueHeld[topology.ResourceSagaQueue] = true
			for range 20 {
				p.begin()
			}
			p.provider.Before = func(context.Context, paymenttest.Call) error { p.clock.Advance(time.Minute); return nil }
			p.noTraffic = true
			p.run(8 * time.Minute)
		}},
		"ReservationsReview": {fault: func(p *plant) {
			p.bank.SetDefaultScript(paymenttest.Script{AmountMinor: 1})
			p.run(3 * time.Minute)
		}},
		"ReservationsRefundRequired": {fault: func(p *plant) {
			p.bank.SetDefaultScript(paymenttest.Script{RefundRefused: true})
			p.soldAndCanceled()
			p.run(3 * time.Minute)
		}},
		// The money is written down, and the sale, which moves stock, is refused.
		"SagaAuthorizedLong": {fault: func(p *plant) {
			p.database.refuse = func(by topology.FunctionName, call dbCall) error {
				if by == topology.FunctionSaga && call.movesStock() {
					return errDenied
				}
				return nil
			}
			// While each step fails, the alarm on failures rings; how long it took is told by the step
			// that succeeds.
			p.run(17 * time.Minute)
			p.database.refuse = nil
			p.run(4 * time.Minute)
		}},
		"SagaCaptureLate": {fault: func(p *plant) { p.away(paymenttest.MethodCapture); p.run(25 * time.Minute) }},
		"SagaCompensationLate": {fault: func(p *plant) {
			p.away(paymenttest.MethodRefund)
			p.soldAndCanceled()
			p.run(25 * time.Minute)
		}},
	}
}
