package paymenttest_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/system/systemtest"
)

var (
	start       = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	reservation = ledger.NewReservationID([16]byte{1})
	tenDollars  = ledger.Money{AmountMinor: 1000, Currency: "USD"}
)

func newBank() (*paymenttest.Bank, *systemtest.Clock) {
	clock := systemtest.NewClock(start)
	return paymenttest.NewBank(clock.Now), clock
}

func creation(attempt ledger.AttemptNumber, amount ledger.Money) payment.Creation {
	return payment.Creation{Key: payment.CreateKey(reservation, attempt), Amount: amount, Reservation: reservation, Attempt: attempt}
}

func mustCreate(tb testing.TB, b *paymenttest.Bank, c payment.Creation) paymenttest.Payment {
	tb.Helper()
	answer, err := b.Create(c)
	if err != nil {
		tb.Fatal(err)
	}
	return answer.Payment
}

func mustPay(tb testing.TB, b *paymenttest.Bank, id ledger.PaymentID) paymenttest.Payment {
	tb.Helper()
	p, err := b.Pay(string(id))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func wantKind(tb testing.TB, err error, kind payment.ErrorKind, code string) {
	tb.Helper()
	var refusal *payment.Error
	if !errors.As(err, &refusal) || refusal.Kind != kind || refusal.Code != code {
		tb.Errorf("got %v, want %s (%s)", err, kind, code)
	}
}

func TestPaymentGoesFromPendingToRefunded(t *testing.T) {
	b, clock := newBank()
	created := mustCreate(t, b, creation(1, tenDollars))
	if created.Status != payment.StatusPending || created.Secret.Empty() || created.Reservation != reservation || created.Attempt != 1 {
		t.Fatalf("created %+v", created)
	}
	declined, err := b.Decline(created.Secret.Reveal())
	if err != nil || declined.Status != payment.StatusDeclined {
		t.Fatalf("declined: %+v, %v", declined, err)
	}
	asked, err := b.RequireAction(created.Secret.Reveal())
	if err != nil || asked.Status != payment.StatusRequiresAction {
		t.Fatalf("asked: %+v, %v", asked, err)
	}
	clock.Advance(1500 * time.Millisecond)
	paid, err := b.CompleteAction(created.Secret.Reveal())
	if err != nil || paid.Status != payment.StatusAuthorized || paid.AuthorizedMinor != 1000 || !paid.AuthorizedAt.Equal(start.Add(time.Second)) {
		t.Fatalf("paid: %+v, %v", paid, err)
	}
	captured, err := b.Capture(payment.CaptureKey(reservation, 1), paid.ID, 1000)
	if err != nil || captured.Payment.Status != payment.StatusCaptured || captured.Payment.CapturedMinor != 1000 {
		t.Fatalf("captured: %+v, %v", captured, err)
	}
	first, err := b.Refund(payment.RefundKey(reservation, 1, 1), paid.ID, 300)
	if err != nil || first.Payment.RefundedMinor != 300 || first.Payment.Status != payment.StatusCaptured {
		t.Fatalf("refunded: %+v, %v", first, err)
	}
	_, err = b.Refund(payment.RefundKey(reservation, 1, 2), paid.ID, 701)
	wantKind(t, err, payment.KindRefused, paymenttest.CodeAmountTooLarge)
	if _, err := b.Refund(payment.RefundKey(reservation, 1, 3), paid.ID, 700); err != nil {
		t.Fatal(err)
	}
	_, err = b.Refund(payment.RefundKey(reservation, 1, 4), paid.ID, 1)
	wantKind(t, err, payment.KindConflict, paymenttest.CodeAlreadyRefunded)
	failed, err := b.FailRefund(first.Refund.ID)
	if err != nil || failed.RefundedMinor != 700 {
		t.Fatalf("failed refund: %+v, %v", failed, err)
	}
	want := paymenttest.Book{Reservation: reservation, Currency: "USD", CapturedMinor: 1000, RefundedMinor: 700, Payments: 1, Captures: 1}
	if got := b.Book(reservation, "USD"); got != want {
		t.Errorf("book %+v, want %+v", got, want)
	}
	var types []string
	for _, e := range b.TakeEvents() {
		types = append(types, e.Type)
	}
	wantTypes := []string{
		paymenttest.EventCreated, paymenttest.EventDeclined, paymenttest.EventRequiresAction, paymenttest.EventAuthorized,
		paymenttest.EventSucceeded, paymenttest.EventRefunded, paymenttest.EventRefunded, paymenttest.EventRefundFailed,
	}
	if !reflect.DeepEqual(types, wantTypes) {
		t.Errorf("events %v, want %v", types, wantTypes)
	}
	if again := b.TakeEvents(); len(again) != 0 {
		t.Errorf("events were given twice: %v", again)
	}
}

func TestRefusalsByStatus(t *testing.T) {
	b, _ := newBank()
	p := mustCreate(t, b, creation(1, tenDollars))
	_, err := b.Capture("early", p.ID, 1000)
	wantKind(t, err, payment.KindConflict, paymenttest.CodeUnexpectedState)
	_, err = b.Refund("early-refund", p.ID, 1000)
	wantKind(t, err, payment.KindConflict, paymenttest.CodeUnexpectedState)
	mustPay(t, b, p.ID)
	_, err = b.Pay(string(p.ID))
	wantKind(t, err, payment.KindConflict, paymenttest.CodeUnexpectedState)
	_, err = b.Capture("too-much", p.ID, 1001)
	wantKind(t, err, payment.KindRefused, paymenttest.CodeAmountTooLarge)
	if _, err := b.Capture("right", p.ID, 1000); err != nil {
		t.Fatal(err)
	}
	_, err = b.Void("late", p.ID)
	wantKind(t, err, payment.KindConflict, paymenttest.CodeUnexpectedState)
	_, err = b.Capture("second", p.ID, 1000)
	wantKind(t, err, payment.KindConflict, paymenttest.CodeUnexpectedState)
	other := mustCreate(t, b, creation(2, tenDollars))
	if _, err := b.Void("void", other.ID); err != nil {
		t.Fatal(err)
	}
	_, err = b.Void("void-again", other.ID)
	wantKind(t, err, payment.KindConflict, paymenttest.CodeUnexpectedState)
	_, err = b.LookUp("pi_unheard")
	wantKind(t, err, payment.KindNotFound, paymenttest.CodeMissing)
	_, err = b.LateSuccess(string(other.ID), true)
	wantKind(t, err, payment.KindConflict, paymenttest.CodeUnexpectedState)
}

func TestKeyIsSavedForADayRefusalsIncluded(t *testing.T) {
	b, clock := newBank()
	first := mustCreate(t, b, creation(1, tenDollars))
	mustPay(t, b, first.ID)
	again, err := b.Create(creation(1, tenDollars))
	if err != nil || !again.Replayed || !reflect.DeepEqual(again.Payment, first) {
		t.Errorf("the same creation gave %+v, %v, want the first answer", again, err)
	}
	_, err = b.Create(payment.Creation{Key: payment.CreateKey(reservation, 1), Amount: ledger.Money{AmountMinor: 1001, Currency: "USD"}, Reservation: reservation, Attempt: 1})
	wantKind(t, err, payment.KindRefused, paymenttest.CodeIdempotency)

	second := mustCreate(t, b, creation(2, tenDollars))
	_, err = b.Capture("early", second.ID, 1000)
	wantKind(t, err, payment.KindConflict, paymenttest.CodeUnexpectedState)
	mustPay(t, b, second.ID)
	saved, err := b.Capture("early", second.ID, 1000)
	wantKind(t, err, payment.KindConflict, paymenttest.CodeUnexpectedState)
	if !saved.Replayed {
		t.Error("a saved refusal was not told as one")
	}
	clock.Advance(paymenttest.KeysKept)
	if _, err := b.Capture("early", second.ID, 1000); err != nil {
		t.Errorf("after a day the key is new, but: %v", err)
	}
	third, err := b.Create(creation(1, tenDollars))
	if err != nil || third.Replayed || third.Payment.ID == first.ID {
		t.Errorf("after a day the creation gave %+v, %v, want a second payment", third, err)
	}
}

func TestAuthorizationLapses(t *testing.T) {
	b, clock := newBank()
	b.SetScript(reservation, 2, paymenttest.Script{AuthorizationLasts: time.Minute})
	usual, short := mustCreate(t, b, creation(1, tenDollars)), mustCreate(t, b, creation(2, tenDollars))
	mustPay(t, b, usual.ID)
	mustPay(t, b, short.ID)
	clock.Advance(time.Minute - time.Nanosecond)
	if p, _ := b.LookUp(short.ID); p.Status != payment.StatusAuthorized {
		t.Errorf("just before its end it is %s", p.Status)
	}
	clock.Advance(time.Nanosecond)
	if p, _ := b.LookUp(short.ID); p.Status != payment.StatusVoided || p.AuthorizedMinor != 0 {
		t.Errorf("at its end it is %+v", p)
	}
	_, err := b.Capture("late", short.ID, 1000)
	wantKind(t, err, payment.KindConflict, paymenttest.CodeUnexpectedState)
	if p, _ := b.LookUp(usual.ID); p.Status != payment.StatusAuthorized {
		t.Errorf("the other one is %s", p.Status)
	}
	clock.Advance(paymenttest.AuthorizationLasts)
	events := b.TakeEvents()
	if last := events[len(events)-1]; last.Type != paymenttest.EventCanceled || last.Payment.ID != usual.ID {
		t.Errorf("the last event is %+v", last)
	}
}

func TestScripts(t *testing.T) {
	b, _ := newBank()
	b.SetDefaultScript(paymenttest.Script{CreateRefused: true})
	_, err := b.Create(creation(9, tenDollars))
	wantKind(t, err, payment.KindRefused, paymenttest.CodeProcessing)

	b.SetScript(reservation, 1, paymenttest.Script{AmountMinor: 999})
	b.SetScript(reservation, 2, paymenttest.Script{Currency: "JPY"})
	b.SetScript(reservation, 3, paymenttest.Script{CaptureRefused: true})
	b.SetScript(reservation, 4, paymenttest.Script{RefundRefused: true})
	b.SetScript(reservation, 5, paymenttest.Script{VoidLies: true})
	amount := mustPay(t, b, mustCreate(t, b, creation(1, tenDollars)).ID)
	if amount.Amount.AmountMinor != 999 || amount.AuthorizedMinor != 999 || amount.Asked != tenDollars {
		t.Errorf("wrong amount: %+v", amount)
	}
	if p := mustPay(t, b, mustCreate(t, b, creation(2, tenDollars)).ID); p.Amount.Currency != "JPY" {
		t.Errorf("wrong currency: %+v", p)
	}
	capture := mustPay(t, b, mustCreate(t, b, creation(3, tenDollars)).ID)
	_, err = b.Capture("c3", capture.ID, 1000)
	wantKind(t, err, payment.KindRefused, paymenttest.CodeProcessing)
	refund := mustPay(t, b, mustCreate(t, b, creation(4, tenDollars)).ID)
	if _, err := b.Capture("c4", refund.ID, 1000); err != nil {
		t.Fatal(err)
	}
	_, err = b.Refund("r4", refund.ID, 1000)
	wantKind(t, err, payment.KindRefused, paymenttest.CodeProcessing)
	lie := mustCreate(t, b, creation(5, tenDollars))
	if answer, err := b.Void("v5", lie.ID); err != nil || answer.Payment.Status != payment.StatusVoided {
		t.Fatalf("void: %+v, %v", answer, err)
	}
	if p, err := b.LateSuccess(string(lie.ID), true); err != nil || p.Status != payment.StatusCaptured || p.CapturedMinor != 1000 {
		t.Errorf("late success: %+v, %v", p, err)
	}
}

// TestBankNeverTakesMoreThanWasReserved draws histories of calls and buyers. A bank that
// broke these rules itself could not show that Holdfast breaks them.
func TestBankNeverTakesMoreThanWasReserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, clock := newBank()
		b.SetDefaultScript(paymenttest.Script{VoidLies: rapid.Bool().Draw(t, "void lies")})
		for attempt := range ledger.AttemptNumber(3) {
			mustCreateIn(t, b, creation(attempt+1, tenDollars))
		}
		before := b.Payments()
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			p := before[rapid.IntRange(0, len(before)-1).Draw(t, "payment")]
			amount := rapid.Int64Range(-1, 1200).Draw(t, "amount")
			key := payment.Key(fmt.Sprintf("key-%d", rapid.IntRange(0, step).Draw(t, "key")))
			perform(b, clock, rapid.IntRange(0, 9).Draw(t, "act"), p, key, amount)
			after := b.Payments()
			for i := range after {
				checkStep(t, before[i], after[i])
			}
			before = after
		}
		checkEvents(t, b)
	})
}

func mustCreateIn(t *rapid.T, b *paymenttest.Bank, c payment.Creation) {
	if _, err := b.Create(c); err != nil {
		t.Fatal(err)
	}
}

// perform does one act. Refusals are among what is tested, so errors are not looked at.
func perform(b *paymenttest.Bank, clock *systemtest.Clock, act int, p paymenttest.Payment, key payment.Key, amount int64) {
	id := string(p.ID)
	switch act {
	case 0, 1:
		_, _ = b.Pay(id)
	case 2:
		_, _ = b.Decline(id)
	case 3:
		_, _ = b.RequireAction(id)
	case 4, 5:
		_, _ = b.Capture(key, p.ID, amount)
	case 6:
		_, _ = b.Void(key, p.ID)
	case 7:
		_, _ = b.Refund(key, p.ID, amount)
	case 8:
		for _, r := range p.Refunds {
			_, _ = b.FailRefund(r.ID)
		}
		_, _ = b.LateSuccess(id, amount > 600)
	case 9:
		clock.Advance(time.Duration(amount) * 15 * time.Minute)
	}
}

func checkStep(t *rapid.T, before, after paymenttest.Payment) {
	var refunded int64
	for _, r := range after.Refunds {
		if r.Status == paymenttest.RefundSucceeded {
			refunded += r.AmountMinor
		}
	}
	switch {
	case after.Captures > 1:
		t.Fatalf("captured %d times", after.Captures)
	case after.CapturedMinor > after.Asked.AmountMinor || after.CapturedMinor > after.AuthorizedMinor:
		t.Fatalf("captured %d of %d", after.CapturedMinor, after.AuthorizedMinor)
	case after.RefundedMinor < 0 || after.RefundedMinor > after.CapturedMinor || after.RefundedMinor != refunded:
		t.Fatalf("refunded %d of %d; the refunds sum to %d", after.RefundedMinor, after.CapturedMinor, refunded)
	case before.Status == payment.StatusCaptured && after.Status != payment.StatusCaptured:
		t.Fatalf("a captured payment became %s", after.Status)
	case (after.CapturedMinor > 0) != (after.Status == payment.StatusCaptured):
		t.Fatalf("%s with %d captured", after.Status, after.CapturedMinor)
	}
}

// checkEvents requires that the last event of each payment shows it as it is.
func checkEvents(t *rapid.T, b *paymenttest.Bank) {
	last, ids := map[ledger.PaymentID]payment.Status{}, map[ledger.ProviderEventID]bool{}
	for _, e := range b.TakeEvents() {
		if ids[e.ID] {
			t.Fatalf("event id %s came twice", e.ID)
		}
		ids[e.ID] = true
		last[e.Payment.ID] = e.Payment.Status
	}
	for _, p := range b.Payments() {
		if last[p.ID] != p.Status {
			t.Fatalf("payment %s is %s, its last event says %s", p.ID, p.Status, last[p.ID])
		}
	}
}
