package stripe_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/payment/stripe"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/system/systemtest"
)

var (
	start       = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)
	reservation = ledger.NewReservationID([16]byte{7})
	apiKey      = payment.NewSecret("sk_test_canaryApiKey5f1d")
)

// world is the adapter with a server in place of Stripe.
type world struct {
	clock    *systemtest.Clock
	server   *stripetest.Server
	provider *stripe.Provider
}

func mustWorld(tb testing.TB) world {
	tb.Helper()
	w := world{clock: systemtest.NewClock(start)}
	server, err := stripetest.Start(stripetest.Options{APIKey: apiKey, Clock: w.clock})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := server.Close(); err != nil {
			tb.Error(err)
		}
	})
	w.server = server
	w.provider = mustProvider(tb, server.URL(), w.clock)
	return w
}

func mustProvider(tb testing.TB, url string, clock *systemtest.Clock) *stripe.Provider {
	tb.Helper()
	transport := &http.Transport{}
	tb.Cleanup(transport.CloseIdleConnections)
	p, err := stripe.New(stripe.Options{APIKey: apiKey, BaseURL: url, Transport: transport, Clock: clock})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func usd(minor int64) ledger.Money { return ledger.Money{AmountMinor: minor, Currency: "USD"} }

func creation(attempt ledger.AttemptNumber, amount ledger.Money) payment.Creation {
	return payment.Creation{Key: payment.CreateKey(reservation, attempt), Amount: amount, Reservation: reservation, Attempt: attempt}
}

func (w world) mustCreate(tb testing.TB, attempt ledger.AttemptNumber, amount ledger.Money) payment.Payment {
	tb.Helper()
	p, err := w.provider.Create(context.Background(), creation(attempt, amount))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func (w world) mustPay(tb testing.TB, p payment.Payment) {
	tb.Helper()
	if _, err := w.server.Bank().Pay(p.Secret.Reveal()); err != nil {
		tb.Fatal(err)
	}
}

func wantKind(tb testing.TB, err error, kind payment.ErrorKind, code string) {
	tb.Helper()
	var refusal *payment.Error
	if !errors.As(err, &refusal) || refusal.Kind != kind || refusal.Code != code {
		tb.Errorf("got %v, want %s (%s)", err, kind, code)
	}
}

// K1: amounts reach Stripe as the quote says. The table below is the test's own; a
// decimal amount is compared so that a factor of ten, a hundred or a thousand shows.
func TestCaseK1_AmountsReachTheProviderInTheCurrencysOwnUnits(t *testing.T) {
	decimals := map[string]int{"jpy": 0, "krw": 0, "usd": 2, "kwd": 3}
	tests := []struct {
		amount   ledger.Money
		received string // by the server, in its form
		price    string // what the buyer is asked for, in whole units
	}{
		{ledger.Money{AmountMinor: 500, Currency: "JPY"}, "500", "500"},
		{ledger.Money{AmountMinor: 1000, Currency: "KRW"}, "1000", "1000"},
		{ledger.Money{AmountMinor: 500, Currency: "USD"}, "500", "5.00"},
		{ledger.Money{AmountMinor: 1234, Currency: "KWD"}, "1234", "1.234"},
	}
	w := mustWorld(t)
	for i, test := range tests {
		p := w.mustCreate(t, ledger.AttemptNumber(i+1), test.amount)
		requests := w.server.Requests()
		form := requests[len(requests)-1].Form
		if got := form.Get("amount"); got != test.received {
			t.Errorf("%v: the server received %s, want %s", test.amount, got, test.received)
		}
		if got := whole(t, form.Get("amount"), decimals[form.Get("currency")]); got != test.price {
			t.Errorf("%v: the buyer pays %s %s, want %s", test.amount, got, form.Get("currency"), test.price)
		}
		w.mustPay(t, p)
		captured, err := w.provider.Capture(context.Background(), payment.CaptureKey(reservation, ledger.AttemptNumber(i+1)), p.ID, test.amount.AmountMinor)
		if err != nil || captured.Amount != test.amount || captured.CapturedMinor != test.amount.AmountMinor {
			t.Errorf("%v: captured %+v, %v", test.amount, captured, err)
		}
	}
}

// whole puts the decimal point into an amount in minor units, by moving characters.
func whole(tb testing.TB, minor string, decimals int) string {
	tb.Helper()
	if decimals == 0 {
		return minor
	}
	if len(minor) <= decimals {
		tb.Fatalf("%s has no whole unit", minor)
	}
	return minor[:len(minor)-decimals] + "." + minor[len(minor)-decimals:]
}

func TestCaseK1_CurrencyThatStripeCountsOtherwiseIsRefusedUnsent(t *testing.T) {
	w := mustWorld(t)
	for _, currency := range []ledger.Currency{"ISK", "UGX", "MGA"} {
		_, err := w.provider.Create(context.Background(), creation(1, ledger.Money{AmountMinor: 500, Currency: currency}))
		wantKind(t, err, payment.KindRefused, stripe.CodeForeignUnit)
	}
	if got := w.server.Requests(); len(got) != 0 {
		t.Errorf("%d requests were sent", len(got))
	}
}

// K3, the provider's part: what the provider authorized is told as it is, so that the
// caller can see that it is not what was quoted.
func TestCaseK3_WrongMoneyIsToldAsItIs(t *testing.T) {
	w := mustWorld(t)
	for attempt, wrong := range []ledger.Money{usd(999), usd(1001), {AmountMinor: 1000, Currency: "JPY"}} {
		number := ledger.AttemptNumber(attempt + 1)
		w.server.Bank().SetScript(reservation, number, paymenttest.Script{AmountMinor: wrong.AmountMinor, Currency: wrong.Currency})
		p := w.mustCreate(t, number, usd(1000))
		w.mustPay(t, p)
		got, err := w.provider.LookUp(context.Background(), p.ID)
		if err != nil || got.Status != payment.StatusAuthorized || got.Amount != wrong || got.AuthorizedMinor != wrong.AmountMinor {
			t.Errorf("looked up %+v, %v, want %v", got, err, wrong)
		}
		queue := w.server.Queue()
		last := queue[len(queue)-1]
		notice, err := stripe.Verify(last.Body, stripetest.SignatureHeader(last.Body, start, webhookSecret), []payment.Secret{webhookSecret}, start)
		if err != nil || notice.AmountMinor != wrong.AmountMinor || notice.Currency != wrong.Currency || notice.Status != payment.StatusAuthorized {
			t.Errorf("noticed %+v, %v, want %v", notice, err, wrong)
		}
	}
}

func TestRequestsHaveWhatStripeNeeds(t *testing.T) {
	w := mustWorld(t)
	w.mustCreate(t, 3, usd(500))
	r := w.server.Requests()[0]
	want := map[string]string{
		"amount": "500", "currency": "usd", "capture_method": "manual", "payment_method_types[0]": "card",
		"metadata[holdfast_reservation]": string(reservation), "metadata[holdfast_attempt]": "3", "expand[0]": "latest_charge",
	}
	got := map[string]string{}
	for name := range r.Form {
		got[name] = r.Form.Get(name)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
	if r.Key != payment.CreateKey(reservation, 3) {
		t.Errorf("key %q", r.Key)
	}
}

// The adapter over HTTP and the provider without a wire must be the same provider. Random
// histories are played on both, and every answer compared.
func TestAdapterAnswersLikeTheBank(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, err := newPair(t)
		if err != nil {
			t.Fatal(err)
		}
		defer w.close(t)
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			w.step(t)
		}
	})
}

type pair struct {
	clock    *systemtest.Clock
	server   *stripetest.Server
	banks    [2]*paymenttest.Bank
	both     [2]payment.Provider
	ids      []ledger.PaymentID
	attempts ledger.AttemptNumber
	close    func(*rapid.T)
}

func newPair(t *rapid.T) (*pair, error) {
	clock := systemtest.NewClock(start)
	server, err := stripetest.Start(stripetest.Options{APIKey: apiKey, Clock: clock})
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{}
	adapter, err := stripe.New(stripe.Options{APIKey: apiKey, BaseURL: server.URL(), Transport: transport, Clock: clock})
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	bank := paymenttest.NewBank(clock.Now)
	p := &pair{
		clock: clock, server: server, banks: [2]*paymenttest.Bank{bank, server.Bank()},
		both: [2]payment.Provider{paymenttest.NewProvider(bank), adapter},
	}
	p.ids = []ledger.PaymentID{"pi_unheard"}
	script := paymenttest.Script{
		CaptureRefused: rapid.Bool().Draw(t, "capture refused"), RefundRefused: rapid.Bool().Draw(t, "refund refused"),
		VoidLies: rapid.Bool().Draw(t, "void lies"), AmountMinor: rapid.SampledFrom([]int64{0, 0, 999}).Draw(t, "authorized"),
	}
	for _, b := range p.banks {
		b.SetDefaultScript(script)
	}
	p.close = func(t *rapid.T) {
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
	return p, nil
}

func (w *pair) step(t *rapid.T) {
	ctx := context.Background()
	id := rapid.SampledFrom(w.ids).Draw(t, "payment")
	key := payment.Key(fmt.Sprintf("key-%d", rapid.IntRange(1, 6).Draw(t, "key")))
	amount := rapid.SampledFrom([]int64{-5, 0, 1, 300, 999, 1000, 1001}).Draw(t, "amount")
	act := rapid.IntRange(0, 12).Draw(t, "act")
	var results [2]string
	for i, p := range w.both {
		var got payment.Payment
		var err error
		switch act {
		case 0:
			got, err = p.Create(ctx, creation(w.attempts+1, usd(amount)))
			if err == nil && i == 0 {
				w.ids = append(w.ids, got.ID)
			}
		case 1, 2:
			got, err = p.Capture(ctx, key, id, amount)
		case 3:
			got, err = p.Void(ctx, key, id)
		case 4, 5:
			got, err = p.Refund(ctx, key, id, amount)
		case 6:
			got, err = p.LookUp(ctx, id)
		default:
			err = w.buyer(w.banks[i], act, id)
		}
		results[i] = fmt.Sprintf("%+v %s", got, got.Secret.Reveal()) + outcome(err)
	}
	if act == 0 && rapid.Bool().Draw(t, "next attempt") {
		w.attempts++
	}
	if act == 12 {
		w.clock.Advance(rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 25 * time.Hour, 8 * 24 * time.Hour}).Draw(t, "later"))
	}
	if results[0] != results[1] {
		t.Fatalf("act %d on %s with %s, %d:\nbank    %s\nadapter %s", act, id, key, amount, results[0], results[1])
	}
}

func (w *pair) buyer(b *paymenttest.Bank, act int, id ledger.PaymentID) error {
	var err error
	switch act {
	case 7, 8:
		_, err = b.Pay(string(id))
	case 9:
		_, err = b.Decline(string(id))
	case 10:
		_, err = b.RequireAction(string(id))
	case 11:
		if p, lookUp := b.LookUp(id); lookUp == nil && len(p.Refunds) > 0 {
			_, err = b.FailRefund(p.Refunds[0].ID)
		} else {
			_, err = b.LateSuccess(string(id), true)
		}
	}
	return err
}

func outcome(err error) string {
	var refusal *payment.Error
	if errors.As(err, &refusal) {
		return fmt.Sprintf(" %s (%s)", refusal.Kind, refusal.Code)
	}
	return fmt.Sprint(" ", err)
}

func TestRefundIsMadeOnceEvenAfterTheKeyIsForgotten(t *testing.T) {
	w := mustWorld(t)
	ctx := context.Background()
	p := w.mustCreate(t, 1, usd(1000))
	w.mustPay(t, p)
	if _, err := w.provider.Capture(ctx, payment.CaptureKey(reservation, 1), p.ID, 1000); err != nil {
		t.Fatal(err)
	}
	key := payment.RefundKey(reservation, 1, 1)
	w.server.AddFault(stripetest.Fault{Method: paymenttest.MethodRefund, Calls: 1, Outcome: stripetest.AnswerLost})
	_, err := w.provider.Refund(ctx, key, p.ID, 400)
	wantKind(t, err, payment.KindUnreachable, "")
	w.clock.Advance(2 * paymenttest.KeysKept)
	got, err := w.provider.Refund(ctx, key, p.ID, 400)
	if err != nil || got.RefundedMinor != 400 {
		t.Fatalf("refunded %+v, %v", got, err)
	}
	refunds := w.server.Bank().Payments()[0].Refunds
	if len(refunds) != 1 {
		t.Fatalf("%d refunds were made", len(refunds))
	}
	if _, err := w.server.Bank().FailRefund(refunds[0].ID); err != nil {
		t.Fatal(err)
	}
	_, err = w.provider.Refund(ctx, key, p.ID, 400)
	wantKind(t, err, payment.KindRefused, payment.CodeRefundFailed)
}

// A look-up that fails after a refund was made must not hide the refund, nor repeat it.
func TestRefundWhoseLookUpFailsIsFoundAgain(t *testing.T) {
	w := mustWorld(t)
	ctx := context.Background()
	p := w.mustCreate(t, 1, usd(1000))
	w.mustPay(t, p)
	if _, err := w.provider.Capture(ctx, payment.CaptureKey(reservation, 1), p.ID, 1000); err != nil {
		t.Fatal(err)
	}
	w.server.AddFault(stripetest.Fault{Method: paymenttest.MethodLookUp, Calls: 1})
	w.server.AddFault(stripetest.Fault{Method: paymenttest.MethodLookUp, Calls: 1, Outcome: stripetest.ErrorInstead})
	key := payment.RefundKey(reservation, 1, 1)
	_, err := w.provider.Refund(ctx, key, p.ID, 1000)
	wantKind(t, err, payment.KindUnreachable, "")
	got, err := w.provider.Refund(ctx, key, p.ID, 1000)
	if err != nil || got.RefundedMinor != 1000 {
		t.Errorf("refunded %+v, %v", got, err)
	}
	if n := len(w.server.Bank().Payments()[0].Refunds); n != 1 {
		t.Errorf("%d refunds were made", n)
	}
}

// A look-up that is refused says nothing about the refund that it was for: the refund must
// not count as one that Stripe will never give.
func TestRefundWhoseLookUpIsRefusedIsNotRefused(t *testing.T) {
	w := mustWorld(t)
	p := w.mustCreate(t, 1, usd(1000))
	w.mustPay(t, p)
	if _, err := w.provider.Capture(context.Background(), payment.CaptureKey(reservation, 1), p.ID, 1000); err != nil {
		t.Fatal(err)
	}
	w.server.AddFault(stripetest.Fault{
		Method: paymenttest.MethodLookUp, Calls: 1, Outcome: stripetest.ErrorInstead,
		Error: stripetest.ErrorAnswer{HTTPStatus: http.StatusBadRequest, Type: "invalid_request_error", Code: "parameter_unknown"},
	})
	_, err := w.provider.Refund(context.Background(), payment.RefundKey(reservation, 1, 1), p.ID, 1000)
	wantKind(t, err, payment.KindUnreachable, "parameter_unknown")
}

// Stripe saves errors under their key, so the repeated call must get past them.
func TestSavedErrorDoesNotStopACaptureOrVoid(t *testing.T) {
	w := mustWorld(t)
	ctx := context.Background()
	early := w.mustCreate(t, 1, usd(1000))
	key := payment.CaptureKey(reservation, 1)
	_, err := w.provider.Capture(ctx, key, early.ID, 1000)
	wantKind(t, err, payment.KindConflict, paymenttest.CodeUnexpectedState)
	w.mustPay(t, early)
	w.clock.Advance(time.Minute)
	if got, err := w.provider.Capture(ctx, key, early.ID, 1000); err != nil || got.Status != payment.StatusCaptured {
		t.Errorf("captured %+v, %v", got, err)
	}

	fault := w.mustCreate(t, 2, usd(1000))
	w.server.AddFault(stripetest.Fault{
		Method: paymenttest.MethodVoid, Calls: 1, Outcome: stripetest.ErrorAfter,
		Error: stripetest.ErrorAnswer{HTTPStatus: http.StatusInternalServerError, Type: "api_error"},
	})
	_, err = w.provider.Void(ctx, payment.VoidKey(reservation, 2), fault.ID)
	wantKind(t, err, payment.KindUnreachable, "")
	_, err = w.provider.Void(ctx, payment.VoidKey(reservation, 2), fault.ID)
	wantKind(t, err, payment.KindConflict, paymenttest.CodeUnexpectedState)
	if got, err := w.provider.LookUp(ctx, fault.ID); err != nil || got.Status != payment.StatusVoided {
		t.Errorf("looked up %+v, %v", got, err)
	}
	if n := w.server.Bank().Book(reservation, "USD").Captures; n != 1 {
		t.Errorf("%d captures", n)
	}
}

// Of each call the request and the answer are lost once. The repeated call has one effect.
func TestLostRequestsAndAnswersAreRepeatable(t *testing.T) {
	for _, lost := range []stripetest.Outcome{stripetest.RequestLost, stripetest.AnswerLost} {
		t.Run(string(lost), func(t *testing.T) {
			w := mustWorld(t)
			ctx := context.Background()
			twice := func(m paymenttest.Method, call func() (payment.Payment, error)) payment.Payment {
				w.server.AddFault(stripetest.Fault{Method: m, Calls: 1, Outcome: lost})
				_, err := call()
				wantKind(t, err, payment.KindUnreachable, "")
				got, err := call()
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			p := twice(paymenttest.MethodCreate, func() (payment.Payment, error) { return w.provider.Create(ctx, creation(1, usd(1000))) })
			w.mustPay(t, p)
			twice(paymenttest.MethodLookUp, func() (payment.Payment, error) { return w.provider.LookUp(ctx, p.ID) })
			twice(paymenttest.MethodCapture, func() (payment.Payment, error) {
				return w.provider.Capture(ctx, payment.CaptureKey(reservation, 1), p.ID, 1000)
			})
			got := twice(paymenttest.MethodRefund, func() (payment.Payment, error) {
				return w.provider.Refund(ctx, payment.RefundKey(reservation, 1, 1), p.ID, 400)
			})
			if got.RefundedMinor != 400 {
				t.Errorf("refunded %d", got.RefundedMinor)
			}
			other := w.mustCreate(t, 2, usd(1000))
			twice(paymenttest.MethodVoid, func() (payment.Payment, error) {
				return w.provider.Void(ctx, payment.VoidKey(reservation, 2), other.ID)
			})
			want := paymenttest.Book{Reservation: reservation, Currency: "USD", CapturedMinor: 1000, RefundedMinor: 400, Payments: 2, Captures: 1}
			if got := w.server.Bank().Book(reservation, "USD"); got != want {
				t.Errorf("book %+v, want %+v", got, want)
			}
		})
	}
}

func TestKeyWithAnotherRequestIsRefused(t *testing.T) {
	w := mustWorld(t)
	first := w.mustCreate(t, 1, usd(1000))
	again := w.mustCreate(t, 1, usd(1000))
	if first != again {
		t.Errorf("the same creation gave %+v and %+v", first, again)
	}
	_, err := w.provider.Create(context.Background(), creation(1, usd(1001)))
	wantKind(t, err, payment.KindRefused, paymenttest.CodeIdempotency)
	if n := len(w.server.Bank().Payments()); n != 1 {
		t.Errorf("%d payments", n)
	}
}

// leaving is a caller who stops waiting as soon as the request is on its way.
type leaving struct {
	next  http.RoundTripper
	leave context.CancelFunc
}

func (l leaving) RoundTrip(r *http.Request) (*http.Response, error) {
	l.leave()
	return l.next.RoundTrip(r)
}

func TestCallersContextIsKept(t *testing.T) {
	w := mustWorld(t)
	never := make(chan struct{})
	defer close(never)
	w.server.AddFault(stripetest.Fault{Until: never})
	ctx, cancel := context.WithCancel(context.Background())
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	provider, err := stripe.New(stripe.Options{APIKey: apiKey, BaseURL: w.server.URL(), Transport: leaving{transport, cancel}, Clock: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	_, err = provider.Create(ctx, creation(1, usd(1000)))
	wantKind(t, err, payment.KindUnreachable, "")
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the cause is not the caller's: %v", err)
	}
}

// timed is a network that looks at how long each request may take.
type timed struct {
	next http.RoundTripper
	left []time.Duration
}

func (n *timed) RoundTrip(r *http.Request) (*http.Response, error) {
	deadline, has := r.Context().Deadline()
	if !has {
		return nil, errors.New("a request may take for ever")
	}
	n.left = append(n.left, time.Until(deadline))
	return n.next.RoundTrip(r)
}

// All requests of one call share one deadline, also the four of a refund.
func TestEveryCallHasADeadline(t *testing.T) {
	w := mustWorld(t)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	network := &timed{next: transport}
	provider, err := stripe.New(stripe.Options{APIKey: apiKey, BaseURL: w.server.URL(), Transport: network, Clock: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	p := w.mustCreate(t, 1, usd(1000))
	w.mustPay(t, p)
	if _, err := provider.Capture(context.Background(), "c", p.ID, 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := provider.Refund(context.Background(), "r", p.ID, 1000); err != nil {
		t.Fatal(err)
	}
	if len(network.left) != 5 || !slices.IsSortedFunc(network.left[1:], func(a, b time.Duration) int { return cmp.Compare(b, a) }) {
		t.Errorf("the requests have %v left", network.left)
	}
	if longest := slices.Max(network.left); longest > stripe.CallFor {
		t.Errorf("a request may take %v", longest)
	}
}

func TestNewWantsAKeyAndAClock(t *testing.T) {
	clock := systemtest.NewClock(start)
	for _, o := range []stripe.Options{
		{Clock: clock}, {APIKey: payment.NewSecret("sk_test_1\n"), Clock: clock}, {APIKey: apiKey},
	} {
		if _, err := stripe.New(o); err == nil {
			t.Errorf("%+v was taken", o)
		}
	}
}
