package localrun_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/payment/stripetest"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

const webhookPath = "/v1/webhooks/stripe"

// payingWorld is a world whose webhooks wait until the test delivers them, so that the test
// decides when the provider's news comes, how often and in which order.
type payingWorld struct {
	*world
	provider *stripetest.Server
	bank     *paymenttest.Bank
	store    *dynamo.Store
}

// newPayingWorld returns a payingWorld. At the end of the test the provider is honest
// again, what it still has to tell is delivered, and only then the books are checked.
func newPayingWorld(t *testing.T) *payingWorld {
	t.Helper()
	w := newWorld(t)
	p := &payingWorld{
		world: w, provider: w.system.Payments, bank: w.system.Payments.Bank(),
		store: dynamo.NewStore(w.system.Database(), w.system.Table, system.RealClock{}, system.RealRandom{}),
	}
	p.provider.SetWebhookFaults(stripetest.WebhookFaults{Paused: true})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), comesWithin)
		defer cancel()
		p.provider.ClearFaults()
		p.bank.SetDefaultScript(paymenttest.Script{})
		if err := p.provider.DeliverAll(ctx); err != nil {
			t.Error(err)
		}
		p.untilAtRest(ctx)
		p.provider.SetWebhookFaults(stripetest.WebhookFaults{})
	})
	return p
}

// untilAtRest waits until nothing is on its way that could change a reservation: every
// event is published, no message waits, and a second look finds no further event.
func (p *payingWorld) untilAtRest(ctx context.Context) {
	p.t.Helper()
	last := -1
	seen, isAtRest := "nothing was counted", false
	defer func() {
		if !isAtRest {
			p.t.Logf("still on its way: %s; the last warnings:\n%s", seen, p.warnings())
		}
	}()
	p.until("nothing is on its way", func() bool {
		unpublished, err := p.system.Unpublished(ctx)
		if err != nil {
			p.t.Fatal(err)
		}
		messages, err := p.system.Waiting(ctx, topology.ResourceSagaQueue)
		if err != nil {
			p.t.Fatal(err)
		}
		events, _ := p.system.Events()
		before := last
		last = len(events)
		seen = fmt.Sprintf("%d unpublished events, %d messages to the saga, after %d events", unpublished, messages, last)
		isAtRest = unpublished == 0 && messages == 0 && last == before
		return isAtRest
	})
}

// warnings are the last lines in which the parts around the functions complain.
func (p *payingWorld) warnings() string {
	const linesMax = 10
	log, err := os.ReadFile(filepath.Join(p.system.LogFolder(), "local.log"))
	if err != nil {
		return err.Error()
	}
	lines := slices.DeleteFunc(strings.Split(string(log), "\n"), func(line string) bool { return !strings.Contains(line, `"level":"WARN"`) })
	return strings.Join(lines[max(0, len(lines)-linesMax):], "\n")
}

// rest is untilAtRest within the test.
func (p *payingWorld) rest() {
	p.t.Helper()
	p.untilAtRest(p.t.Context())
}

// tick starts the saga once, as its schedule does.
func (p *payingWorld) tick() {
	p.t.Helper()
	if _, err := p.system.Invoke(p.t.Context(), topology.FunctionSaga, []byte(`{}`)); err != nil {
		p.t.Errorf("tick: %v", err)
	}
}

// purchase is a hold whose payment has begun.
type purchase struct {
	w                *payingWorld
	owner            *localrun.Caller
	slot, hold       string
	reservation      ledger.ReservationID
	secret           string // of the buyer's device
	paymentKey, path string
}

// purchase holds units of the slot and begins their payment.
func (p *payingWorld) purchase(slot string, quantity int) purchase {
	p.t.Helper()
	owner := p.owner()
	return p.begin(owner, slot, p.mustHold(owner, slot, quantity))
}

// begin begins the payment of a hold.
func (p *payingWorld) begin(owner *localrun.Caller, slot, hold string) purchase {
	p.t.Helper()
	b := purchase{w: p, owner: owner, slot: slot, hold: hold, paymentKey: newName("key"), path: "/v1/holds/" + hold + "/payment"}
	begun := p.post(owner, b.path, b.paymentKey, "").want(http.StatusAccepted)
	b.reservation, b.secret = ledger.ReservationID(begun.text("reservation_id")), begun.text("client_secret")
	return b
}

func (b purchase) read() answer {
	b.w.t.Helper()
	return b.w.do(b.owner, localrun.Request{Method: http.MethodGet, Path: "/v1/reservations/" + string(b.reservation)}).want(http.StatusOK)
}

// until waits until the reservation has this status.
func (b purchase) until(status ledger.ReservationStatus) answer {
	b.w.t.Helper()
	var last answer
	b.w.until(fmt.Sprintf("reservation %s is %s", b.reservation, status), func() bool {
		last = b.read()
		return last.text("status") == string(status)
	})
	return last
}

// pay is the buyer's device with a good card. The provider's news of it waits.
func (b purchase) pay() {
	b.w.t.Helper()
	if _, err := b.w.bank.Pay(b.secret); err != nil {
		b.w.t.Fatal(err)
	}
	b.w.provider.Collect()
}

// told takes the oldest waiting webhook of this purchase and type.
func (b purchase) told(kind string) stripetest.Webhook {
	b.w.t.Helper()
	var taken stripetest.Webhook
	b.w.until(fmt.Sprintf("the provider tells of %s", kind), func() bool {
		place := slices.IndexFunc(b.w.provider.Queue(), func(w stripetest.Webhook) bool {
			return w.Event.Type == kind && w.Event.Payment.Reservation == b.reservation
		})
		if place < 0 {
			return false
		}
		var err error
		if taken, err = b.w.provider.Take(place); err != nil {
			b.w.t.Fatal(err)
		}
		return true
	})
	return taken
}

// deliver sends a webhook, which must be answered with that status.
func (p *payingWorld) deliver(w stripetest.Webhook, status int) {
	p.t.Helper()
	got, err := p.provider.Send(p.t.Context(), w)
	if err != nil || got != status {
		p.t.Errorf("%s was answered with %d, %v, want %d", w.Event.Type, got, err, status)
	}
}

// complete pays and lets the provider tell of it.
func (b purchase) complete() {
	b.w.t.Helper()
	b.pay()
	b.w.deliver(b.told(paymenttest.EventAuthorized), http.StatusOK)
	b.until(ledger.ReservationCompleted)
}

// money is what the bank has done for the purchase, in the currency of the tests' slots.
func (b purchase) money() paymenttest.Book { return b.w.bank.Book(b.reservation, "KRW") }

// wantMoney checks that there is one payment, captured once at the most, with these sums.
func (b purchase) wantMoney(captured, refunded int64) {
	b.w.t.Helper()
	want := paymenttest.Book{Reservation: b.reservation, Currency: "KRW", CapturedMinor: captured, RefundedMinor: refunded, Payments: 1}
	if captured > 0 {
		want.Captures = 1
	}
	if got := b.money(); got != want {
		b.w.t.Errorf("the bank has %+v, want %+v", got, want)
	}
}

// steps counts the reservation's ledger events by type.
func (b purchase) steps() map[ledger.EventType]int {
	b.w.t.Helper()
	events, err := b.w.store.ReservationEvents(b.w.t.Context(), b.reservation)
	if err != nil {
		b.w.t.Fatal(err)
	}
	counts := make(map[ledger.EventType]int)
	for _, e := range events {
		counts[e.Type]++
	}
	return counts
}

// wantOneSale checks that the reservation went each step of a sale once, and paid once.
func (b purchase) wantOneSale() {
	b.w.t.Helper()
	steps := b.steps()
	for _, step := range []ledger.EventType{
		ledger.EventReservationAuthorized, ledger.EventReservationConfirmed,
		ledger.EventReservationCaptured, ledger.EventReservationCompleted,
	} {
		if steps[step] != 1 {
			b.w.t.Errorf("%d times %s, want once: %v", steps[step], step, steps)
		}
	}
	b.wantMoney(unitAmount, 0)
}

// signed is what a webhook request has beside its body.
type signed struct {
	body        []byte
	signature   string // "" leaves the header out
	contentType string
}

// The gateway passes the first kind of body on as text, and the other one in base64.
const (
	asText   = "application/json; charset=utf-8"
	asBase64 = "application/octet-stream"
)

// sign signs the body with the secret that counts now.
func sign(body []byte, contentType string) signed {
	return signed{body, stripetest.SignatureHeader(body, time.Now(), paymentKeys.Webhook[0]), contentType}
}

// hook sends a webhook of the test's own making.
func (p *payingWorld) hook(s signed) answer {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.system.BaseURL+webhookPath, bytes.NewReader(s.body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Content-Type", s.contentType)
	if s.signature != "" {
		request.Header.Set("Stripe-Signature", s.signature)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	got := localrun.Answer{Status: response.StatusCode, Header: response.Header, Body: body}
	refusals.note(got)
	return answer{got, p.t}
}

// renamed is the webhook's body as an event of another id, which the saga does not know.
func renamed(w stripetest.Webhook) []byte {
	return bytes.ReplaceAll(w.Body, []byte(w.Event.ID), []byte(newName("evt_test")))
}

// logged counts how often a text is in the function's log.
func (p *payingWorld) logged(function topology.FunctionName, text string) int {
	p.t.Helper()
	log, err := os.ReadFile(filepath.Join(p.system.LogFolder(), string(function)+".log"))
	if err != nil {
		p.t.Fatal(err)
	}
	return bytes.Count(log, []byte(text))
}
