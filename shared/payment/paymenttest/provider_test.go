package paymenttest_test

import (
	"context"
	"errors"
	"testing"

	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
)

func TestHooksLoseRequestsAndAnswers(t *testing.T) {
	b, _ := newBank()
	p := paymenttest.NewProvider(b)
	ctx := context.Background()
	lost := errors.New("lost")
	p.Before = func(context.Context, paymenttest.Call) error { return lost }
	_, err := p.Create(ctx, creation(1, tenDollars))
	wantKind(t, err, payment.KindUnreachable, "")
	if !errors.Is(err, lost) || len(b.Payments()) != 0 {
		t.Errorf("a lost request: %v, and %d payments", err, len(b.Payments()))
	}
	p.Before, p.After = nil, func(_ context.Context, c paymenttest.Call) error {
		if c.Method == paymenttest.MethodCreate {
			return lost
		}
		return nil
	}
	_, err = p.Create(ctx, creation(1, tenDollars))
	wantKind(t, err, payment.KindUnreachable, "")
	if len(b.Payments()) != 1 {
		t.Fatalf("a lost answer left %d payments", len(b.Payments()))
	}
	p.After = nil
	created, err := p.Create(ctx, creation(1, tenDollars))
	if err != nil || created.ID != b.Payments()[0].ID || len(b.Payments()) != 1 {
		t.Errorf("the repeated call gave %+v, %v", created, err)
	}
	p.Before = func(context.Context, paymenttest.Call) error {
		return &payment.Error{Kind: payment.KindNotFound, Cause: lost}
	}
	_, err = p.LookUp(ctx, created.ID)
	wantKind(t, err, payment.KindNotFound, "")
	calls := p.Calls()
	if len(calls) != 4 || calls[3].Number != 4 || calls[3].Payment != created.ID || calls[0].Creation != creation(1, tenDollars) {
		t.Errorf("calls %+v", calls)
	}
}

func TestCallerWhoHasLeftReachesNoBank(t *testing.T) {
	b, _ := newBank()
	ctx, cancel := context.WithCancel(context.Background())
	p := paymenttest.NewProvider(b)
	p.Before = func(context.Context, paymenttest.Call) error { cancel(); return nil }
	_, err := p.Create(ctx, creation(1, tenDollars))
	wantKind(t, err, payment.KindUnreachable, "")
	if !errors.Is(err, context.Canceled) || len(b.Payments()) != 0 {
		t.Errorf("%v, and %d payments", err, len(b.Payments()))
	}
}
