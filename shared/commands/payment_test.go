package commands_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/system/systemtest"
)

// till is a bench with a payment provider.
type till struct {
	*bench
	inner    *memory.Store
	bank     *paymenttest.Bank
	provider *paymenttest.Provider
	payments *commands.Payments
	dice     *systemtest.Random // of the saga
}

func newTill(t testing.TB) *till {
	t.Helper()
	inner := memory.New()
	b := &bench{t: t, clock: systemtest.NewClock(noon), store: &hooks{Store: inner}}
	b.commands = commands.New(b.store, b.clock, systemtest.NewRandom(1))
	b.others = commands.New(inner, b.clock, systemtest.NewRandom(2))
	bank := paymenttest.NewBank(b.clock.Now)
	provider := paymenttest.NewProvider(bank)
	return &till{bench: b, inner: inner, bank: bank, provider: provider, payments: commands.NewPayments(b.commands, provider), dice: systemtest.NewRandom(3)}
}

// tillWithHold is a till with one slot, and a hold of one of its two units.
func tillWithHold(t testing.TB, policy func(*ledger.Policy)) (*till, ledger.Hold) {
	t.Helper()
	b := newTill(t)
	d := definition(2, 1)
	if policy != nil {
		policy(&d.Policy)
	}
	b.define("S", d)
	return b, b.mustHold("S", 1)
}

func keep(p *ledger.Policy) { p.Payment.OnDecline = ledger.OnDeclineKeep }

// renderReservation says what there is of the reservation, at the moment.
func renderReservation(r ledger.Reservation, h ledger.Hold, now time.Time) (ledger.Response, error) {
	return ledger.Response{Status: 202, Body: fmt.Appendf(nil, "%s %s of %s %s, attempt %d, %s", r.ID, r.Status, h.ID, h.Status, len(r.Attempts), now.Format("15:04:05.000"))}, nil
}

func (b *till) start(r commands.Request, hold ledger.HoldID) (commands.Answer, payment.Secret, error) {
	return b.payments.Start(b.t.Context(), r, hold, renderReservation)
}

func (b *till) mustStart(r commands.Request, hold ledger.HoldID) (commands.Answer, payment.Secret) {
	b.t.Helper()
	answer, secret, err := b.start(r, hold)
	if err != nil {
		b.t.Fatal(err)
	}
	return answer, secret
}

// reservationOf is the reservation that the hold has, as stored.
func (b *till) reservationOf(hold ledger.HoldID) ledger.Reservation {
	b.t.Helper()
	h, err := b.inner.Hold(b.t.Context(), hold)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := b.inner.Reservation(b.t.Context(), h.Reservation)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// wantPayments compares what the bank has begun with the attempts, one for one.
func (b *till) wantPayments(hold ledger.HoldID, statuses ...payment.Status) {
	b.t.Helper()
	payments, attempts := b.bank.Payments(), b.reservationOf(hold).Attempts
	if len(payments) != len(statuses) || len(attempts) != len(statuses) {
		b.t.Fatalf("%d payments and %d attempts, want %d: %+v", len(payments), len(attempts), len(statuses), payments)
	}
	for i, want := range statuses {
		if payments[i].Status != want || attempts[i].Payment != payments[i].ID {
			b.t.Errorf("payment %d is %s of %s, want %s; its attempt is %+v", i+1, payments[i].Status, payments[i].ID, want, attempts[i])
		}
	}
}

// Case E9: the provider takes 8 seconds for a payment. The same request in between is told
// to wait, another one under the key is refused, and the same request afterwards gets the
// first answer again.
func TestCaseE9_TheProviderTakesEightSeconds(t *testing.T) {
	for _, policy := range []func(*ledger.Policy){nil, keep} {
		b, hold := tillWithHold(t, policy)
		other := request("K")
		other.Fingerprint = "other"
		b.provider.After = func(_ context.Context, c paymenttest.Call) error {
			if c.Method != paymenttest.MethodCreate {
				return nil
			}
			for second := 1; second <= 3; second++ {
				b.clock.Set(noon.Add(time.Duration(second) * time.Second))
				if second == 3 {
					_, _, err := b.start(other, hold.ID)
					b.wantCode(err, ledger.CodeKeyReused)
					continue
				}
				_, _, err := b.start(request("K"), hold.ID)
				b.wantCode(err, ledger.CodeKeyInProgress)
				var refusal *ledger.Error
				if !errors.As(err, &refusal) || refusal.RetryAfter <= 0 {
					t.Errorf("the refusal does not say when to ask again: %v", err)
				}
			}
			b.clock.Set(noon.Add(8 * time.Second))
			return nil
		}
		first, secret := b.mustStart(request("K"), hold.ID)
		b.clock.Set(noon.Add(9 * time.Second))
		again, fresh := b.mustStart(request("K"), hold.ID)
		if first.Replayed || !again.Replayed || first.Response.Status != 202 || string(again.Response.Body) != string(first.Response.Body) {
			t.Errorf("the answers are %+v and %+v", first, again)
		}
		if secret.Empty() || fresh.Reveal() != secret.Reveal() {
			t.Error("the replay carries no secret, or another one")
		}
		b.wantPayments(hold.ID, payment.StatusPending)
		if r := b.reservationOf(hold.ID); r.Status != ledger.ReservationPaymentPending {
			t.Errorf("the reservation is %+v", r)
		}
		b.balanced()
	}
}

// P12: the secret is fetched for each answer, and is in nothing that is stored.
func TestP12_ASecretIsFetchedAndNotStored(t *testing.T) {
	b, hold := tillWithHold(t, nil)
	var stored string
	b.store.beforeCommit = func(_ int, c ledger.Change) error {
		written, err := json.Marshal(c)
		if err != nil {
			return err
		}
		stored += string(written)
		if c.Idempotency != nil {
			stored += string(c.Idempotency.Response.Body)
		}
		return nil
	}
	_, secret := b.mustStart(request("K"), hold.ID)
	lookUps := len(b.provider.Calls())
	_, fresh := b.mustStart(request("K"), hold.ID)
	if fresh.Reveal() != secret.Reveal() || len(b.provider.Calls()) != lookUps+1 {
		t.Errorf("the replay made %d calls", len(b.provider.Calls())-lookUps)
	}
	r := b.reservationOf(hold.ID)
	_, _, session, err := b.payments.Session(t.Context(), "U", r.ID)
	if err != nil || session.Reveal() != secret.Reveal() {
		t.Errorf("the session has no secret: %v", err)
	}
	if stored == "" || strings.Contains(stored, secret.Reveal()) {
		t.Errorf("the secret is stored: %s", stored)
	}
	_, err = b.bank.Pay(secret.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	b.provider.Before = func(context.Context, paymenttest.Call) error { return errors.New("no answer") }
	replayed, none := b.mustStart(request("K"), hold.ID)
	if !replayed.Replayed || !none.Empty() {
		t.Errorf("without the provider the replay is %+v", replayed)
	}
	_, _, _, err = b.payments.Session(t.Context(), "U", r.ID)
	b.wantCode(err, ledger.CodePaymentUnavailable)
}

// The provider is down when a payment is started: the request is completed without a
// secret, and whoever asks next creates the same payment under the same key.
func TestStartWithoutAProvider(t *testing.T) {
	lost := errors.New("no answer")
	hookOf := map[string]func(*paymenttest.Provider, func(context.Context, paymenttest.Call) error){
		"the request is lost": func(p *paymenttest.Provider, h func(context.Context, paymenttest.Call) error) { p.Before = h },
		"the answer is lost":  func(p *paymenttest.Provider, h func(context.Context, paymenttest.Call) error) { p.After = h },
	}
	for name, hook := range hookOf {
		t.Run(name, func(t *testing.T) {
			b, hold := tillWithHold(t, nil)
			hook(b.provider, func(context.Context, paymenttest.Call) error { return lost })
			first, secret := b.mustStart(request("K"), hold.ID)
			if first.Response.Status != 202 || !secret.Empty() {
				t.Errorf("the answer is %+v", first)
			}
			r := b.reservationOf(hold.ID)
			if a, _ := r.Current(); a.Payment != "" || a.State != ledger.AttemptOpen || r.LookAt.IsZero() {
				t.Errorf("the saga has nothing to go on with: %+v", r)
			}
			hook(b.provider, nil)
			again, fresh := b.mustStart(request("K"), hold.ID)
			if !again.Replayed || fresh.Empty() {
				t.Errorf("the replay is %+v", again)
			}
			for _, c := range b.provider.Calls() {
				if c.Key != payment.CreateKey(r.ID, 1) || c.Creation.Amount != (ledger.Money{AmountMinor: 1000, Currency: "KRW"}) {
					t.Errorf("a call of %s under %q for %+v", c.Method, c.Key, c.Creation)
				}
			}
			if n := len(b.bank.Payments()); n != 1 {
				t.Errorf("%d payments", n)
			}
			b.balanced()
		})
	}
}

// lostCaller starts a payment whose caller is lost while it waits for the provider: what
// is left is the claim. carriedOut says whether the provider got the request.
func (b *till) lostCaller(hold ledger.HoldID, carriedOut bool) {
	b.t.Helper()
	die := func(context.Context, paymenttest.Call) error { panic("the process ends") }
	if carriedOut {
		b.provider.After = die
	} else {
		b.provider.Before = die
	}
	defer func() {
		if recover() == nil {
			b.t.Fatal("the caller was not lost")
		}
		b.provider.Before, b.provider.After = nil, nil
	}()
	_, _, err := b.start(request("K"), hold)
	b.t.Fatalf("the lost caller got %v", err)
}

// P6: a claim whose caller was lost keeps others waiting until it lapses; then the same
// request goes on where it was, and makes the same payment.
func TestP6_AnAbandonedClaimIsTakenOver(t *testing.T) {
	for _, carriedOut := range []bool{false, true} {
		for _, policy := range []func(*ledger.Policy){nil, keep} {
			b, hold := tillWithHold(t, policy)
			b.lostCaller(hold.ID, carriedOut)
			b.clock.Set(noon.Add(commands.ClaimFor - time.Millisecond))
			_, _, err := b.start(request("K"), hold.ID)
			b.wantCode(err, ledger.CodeKeyInProgress)
			b.clock.Set(noon.Add(commands.ClaimFor))
			other := request("K")
			other.Fingerprint = "other"
			_, _, err = b.start(other, hold.ID)
			b.wantCode(err, ledger.CodeKeyReused)

			taken, secret := b.mustStart(request("K"), hold.ID)
			if taken.Replayed || taken.Response.Status != 202 || secret.Empty() {
				t.Errorf("who takes over is answered %+v", taken)
			}
			replayed, fresh := b.mustStart(request("K"), hold.ID)
			if !replayed.Replayed || string(replayed.Response.Body) != string(taken.Response.Body) || fresh.Reveal() != secret.Reveal() {
				t.Errorf("the replay is %+v, want %+v", replayed, taken)
			}
			b.wantPayments(hold.ID, payment.StatusPending)
			b.balanced()
		}
	}
}

// P6: of two who take over at once one does, and the other is told to wait; the first
// caller, should it live after all, does no harm.
func TestP6_TwoTakeOverAtOnce(t *testing.T) {
	b, hold := tillWithHold(t, nil)
	b.lostCaller(hold.ID, false)
	b.clock.Set(noon.Add(commands.ClaimFor))
	met := false
	b.store.beforeCommit = func(_ int, c ledger.Change) error {
		if met || c.Idempotency == nil || c.Idempotency.Takes == "" {
			return nil
		}
		met = true
		b.store.beforeCommit = nil
		b.mustStart(request("K"), hold.ID)
		return nil
	}
	_, _, err := b.start(request("K"), hold.ID)
	b.wantCode(err, ledger.CodeKeyInProgress)
	if !met {
		t.Fatal("nobody met")
	}
	replayed, _ := b.mustStart(request("K"), hold.ID)
	if !replayed.Replayed {
		t.Errorf("the answer is %+v", replayed)
	}
	b.wantPayments(hold.ID, payment.StatusPending)
	b.balanced()
}

// A caller that waits so long that another one takes its claim over gives that one's
// answer, and not one of its own.
func TestP6_AClaimIsTakenOverFromALivingCaller(t *testing.T) {
	b, hold := tillWithHold(t, nil)
	var taken commands.Answer
	b.provider.After = func(context.Context, paymenttest.Call) error {
		b.provider.After = nil
		b.clock.Advance(commands.ClaimFor)
		taken, _ = b.mustStart(request("K"), hold.ID)
		b.clock.Advance(time.Second)
		return nil
	}
	late, secret := b.mustStart(request("K"), hold.ID)
	if string(late.Response.Body) != string(taken.Response.Body) || secret.Empty() {
		t.Errorf("the answers are %+v and %+v", taken, late)
	}
	b.wantPayments(hold.ID, payment.StatusPending)
	b.balanced()
}

// Case B6: with the policy to keep, a second attempt voids the first one before it opens,
// and a repeated request voids nothing.
func TestCaseB6_ASecondAttempt(t *testing.T) {
	b, hold := tillWithHold(t, keep)
	_, secret := b.mustStart(request("first"), hold.ID)
	if _, err := b.bank.Decline(secret.Reveal()); err != nil {
		t.Fatal(err)
	}
	_, second := b.mustStart(request("second"), hold.ID)
	b.wantPayments(hold.ID, payment.StatusVoided, payment.StatusPending)
	if _, err := b.bank.Pay(secret.Reveal()); err == nil {
		t.Error("the first attempt can still be paid")
	}
	for _, key := range []string{"second", "first", "second"} {
		if again, _ := b.mustStart(request(key), hold.ID); !again.Replayed {
			t.Errorf("the repeated %s is %+v", key, again)
		}
	}
	b.wantPayments(hold.ID, payment.StatusVoided, payment.StatusPending)
	if _, err := b.bank.Pay(second.Reveal()); err != nil {
		t.Fatal(err)
	}
	_, _, err := b.start(request("third"), hold.ID)
	b.wantCode(err, ledger.CodePaymentInProgress)
	b.wantPayments(hold.ID, payment.StatusVoided, payment.StatusAuthorized)
	b.balanced()
}

// A second attempt is refused, and changes nothing, where the first can't be voided.
func TestASecondAttemptIsRefused(t *testing.T) {
	tests := []struct {
		name   string
		policy func(*ledger.Policy)
		before func(b *till, secret payment.Secret, h ledger.Hold)
		code   ledger.Code
	}{
		{"by the policy to release", nil, func(*till, payment.Secret, ledger.Hold) {}, ledger.CodePaymentInProgress},
		{"while the buyer must do something", keep, func(b *till, s payment.Secret, _ ledger.Hold) { _, _ = b.bank.RequireAction(s.Reveal()) }, ledger.CodePaymentInProgress},
		{"when the first is paid", keep, func(b *till, s payment.Secret, _ ledger.Hold) { _, _ = b.bank.Pay(s.Reveal()) }, ledger.CodePaymentInProgress},
		{"without the provider", keep, func(b *till, _ payment.Secret, _ ledger.Hold) {
			b.provider.Before = func(context.Context, paymenttest.Call) error { return errors.New("no answer") }
		}, ledger.CodePaymentUnavailable},
		{"when the time is over", keep, func(b *till, _ payment.Secret, h ledger.Hold) { b.clock.Set(h.ExpiresAt) }, ledger.CodePaymentInProgress},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b, hold := tillWithHold(t, test.policy)
			_, secret := b.mustStart(request("first"), hold.ID)
			test.before(b, secret, hold)
			before := b.reservationOf(hold.ID)
			_, _, err := b.start(request("second"), hold.ID)
			b.wantCode(err, test.code)
			if after := b.reservationOf(hold.ID); after.Version != before.Version {
				t.Errorf("%+v became %+v", before, after)
			}
			if n := len(b.bank.Payments()); n != 1 || b.bank.Payments()[0].Status == payment.StatusVoided {
				t.Errorf("the bank has %+v", b.bank.Payments())
			}
			b.balanced()
		})
	}
}

// The last attempt that there may be is not voided for one that may not be: the buyer can
// still pay it.
func TestTheLastAttemptStaysOpen(t *testing.T) {
	b, hold := tillWithHold(t, keep)
	var secret payment.Secret
	for n := range ledger.AttemptsMax {
		_, secret = b.mustStart(request(fmt.Sprint("attempt ", n)), hold.ID)
	}
	_, _, err := b.start(request("one too many"), hold.ID)
	b.wantCode(err, ledger.CodeInvalid)
	if paid, err := b.bank.Pay(secret.Reveal()); err != nil || paid.Status != payment.StatusAuthorized {
		t.Errorf("the last attempt is %+v, error %v", paid, err)
	}
	b.balanced()
}

// A payment is started in the hold's time only.
func TestStartEndsWithTheHoldsTime(t *testing.T) {
	b, hold := tillWithHold(t, nil)
	b.clock.Set(hold.ExpiresAt)
	_, _, err := b.start(request("late"), hold.ID)
	b.wantCode(err, ledger.CodeHoldNotActive)
	b.clock.Set(hold.ExpiresAt.Add(-time.Millisecond))
	b.mustStart(request("in time"), hold.ID)
	b.wantPayments(hold.ID, payment.StatusPending)
	b.balanced()
}

// P11: a hold and a reservation of another owner are answered as unknown ones, and nobody
// asks the provider.
func TestP11_AForeignPaymentIsUnknown(t *testing.T) {
	b, hold := tillWithHold(t, nil)
	b.mustStart(request("K"), hold.ID)
	r := b.reservationOf(hold.ID)
	calls := len(b.provider.Calls())
	foreign := request("K")
	foreign.Owner = "V"
	_, _, err := b.start(foreign, hold.ID)
	_, _, unknown := b.start(foreign, "hold_unknown")
	b.wantCode(err, ledger.CodeHoldNotFound)
	if err.Error() != unknown.Error() {
		t.Errorf("told apart: %v and %v", err, unknown)
	}
	_, _, _, err = b.payments.Session(t.Context(), "V", r.ID)
	_, _, _, unknown = b.payments.Session(t.Context(), "V", "rsv_unknown")
	b.wantCode(err, ledger.CodeReservationNotFound)
	if err.Error() != unknown.Error() {
		t.Errorf("told apart: %v and %v", err, unknown)
	}
	if len(b.provider.Calls()) != calls {
		t.Error("the provider was asked")
	}
}

// A hold that costs nothing starts without a provider.
func TestStartOfWhatCostsNothing(t *testing.T) {
	b := newTill(t)
	d := definition(5, 1)
	d.Terms.Price.AmountMinor = 0
	b.define("S", d)
	var made ledger.Hold
	_, err := b.others.CreateHold(t.Context(), request(""), commands.HoldWish{Quotes: []ledger.Quote{{Slot: "S", Quantity: 2}}}, func(h ledger.Hold, now time.Time) (ledger.Response, error) {
		made = h
		return b.render(h, now)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, secret := b.mustStart(request("K"), made.ID)
	again, _ := b.mustStart(request("K"), made.ID)
	if r := b.reservationOf(made.ID); r.Status != ledger.ReservationAuthorized || len(r.Attempts) != 0 || !secret.Empty() || !again.Replayed {
		t.Errorf("the reservation is %+v", r)
	}
	if len(b.provider.Calls()) != 0 {
		t.Error("the provider was asked")
	}
	_, _, _, err = b.payments.Session(t.Context(), "U", b.reservationOf(made.ID).ID)
	b.wantCode(err, ledger.CodeReservationNotActive)
	b.balanced()
}

// The first attempt is voided by another, or paid, between the look at it and the void of
// it: the provider answers, so it is looked at again, and the buyer is not told that the
// provider is away.
func TestAFirstAttemptThatMovesBetweenLookAndVoid(t *testing.T) {
	for name, test := range map[string]struct {
		move func(b *till) error
		code ledger.Code
	}{
		"voided": {func(b *till) error {
			_, err := b.bank.Void("another key", b.bank.Payments()[0].ID)
			return err
		}, ""},
		"paid and captured": {func(b *till) error {
			p, err := b.bank.Pay(string(b.bank.Payments()[0].ID))
			if err == nil {
				_, err = b.bank.Capture("capture", p.ID, p.AuthorizedMinor)
			}
			return err
		}, ledger.CodePaymentInProgress},
	} {
		t.Run(name, func(t *testing.T) {
			b, hold := tillWithHold(t, keep)
			b.mustStart(request("first"), hold.ID)
			b.provider.Before = func(_ context.Context, c paymenttest.Call) error {
				if c.Method != paymenttest.MethodVoid {
					return nil
				}
				b.provider.Before = nil
				if err := test.move(b); err != nil {
					t.Error(err)
				}
				return nil
			}
			_, _, err := b.start(request("second"), hold.ID)
			b.wantCode(err, test.code)
			b.balanced()
		})
	}
}
