package webhook_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
	"holdfast/shared/webhook"
)

const (
	reservation ledger.ReservationID = "rsv_6vgqk3t9m2x4n8r5c7w1z0hjsd"
	tolerance                        = 300 * time.Second
	secret                           = "webhook-secret-marker"
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// world is an inbox between a provider of the test's making and a saga that records what
// it is told. Its verifier has a scheme of its own: seconds, a dot, and an HMAC over both.
type world struct {
	tb    testing.TB
	clock *systemtest.Clock
	inbox *webhook.Inbox

	mutex    sync.Mutex
	queue    []string // bodies that wait
	sent     int
	recorded map[ledger.ProviderEventID]bool
	effects  map[ledger.ProviderEventID]int
	// before and after are called around the effect of each port, by its name.
	before, after func(port string) error

	metrics, logs bytes.Buffer
}

func newWorld(tb testing.TB) *world {
	tb.Helper()
	none := func(string) error { return nil }
	w := &world{
		tb: tb, clock: systemtest.NewClock(start), before: none, after: none,
		recorded: map[ledger.ProviderEventID]bool{}, effects: map[ledger.ProviderEventID]int{},
	}
	source := telemetry.Source{Stage: "dev", Function: "webhook"}
	inbox, err := webhook.NewInbox(webhook.Ports{
		Verify: w.verify, Recorded: w.isRecorded, Queue: w, Metrics: telemetry.NewEmitter(&w.metrics, w.clock, source),
		Clock: w.clock, Logger: telemetry.NewLogger(&w.logs, source),
	}, webhook.Settings{SignatureHeader: "Provider-Signature", SagaQueueURL: "https://queue.example/saga"})
	if err != nil {
		tb.Fatal(err)
	}
	w.inbox = inbox
	return w
}

// around does a port's work between the orders of the test.
func around[T any](w *world, port string, work func() (T, error)) (T, error) {
	var none T
	if err := w.before(port); err != nil {
		return none, err
	}
	result, err := work()
	if err == nil {
		err = w.after(port)
	}
	if err != nil {
		return none, err
	}
	return result, nil
}

func (w *world) verify(ctx context.Context, body []byte, signature string, now time.Time) (payment.Notice, error) {
	return around(w, "verify", func() (payment.Notice, error) {
		w.mustBeBounded(ctx, "verify")
		stamp, _, _ := strings.Cut(signature, ".")
		seconds, err := strconv.ParseInt(stamp, 10, 64)
		off := now.Sub(time.Unix(seconds, 0))
		if err != nil || off > tolerance || off < -tolerance || !hmac.Equal([]byte(sign(body, seconds)), []byte(signature)) {
			return payment.Notice{}, fmt.Errorf("fake: %w", payment.ErrSignature)
		}
		var n payment.Notice
		if json.Unmarshal(body, &n) != nil {
			return n, fmt.Errorf("fake: %w", payment.ErrMalformed)
		}
		if n.Reservation == "" {
			return n, fmt.Errorf("fake: %w", payment.ErrNotOurs)
		}
		return n, nil
	})
}

func (w *world) isRecorded(ctx context.Context, id ledger.ProviderEventID) (bool, error) {
	return around(w, "recorded", func() (bool, error) {
		w.mustBeBounded(ctx, "recorded")
		w.mutex.Lock()
		defer w.mutex.Unlock()
		return w.recorded[id], nil
	})
}

func (w *world) SendMessage(ctx context.Context, in *sqs.SendMessageInput, _ ...func(*sqs.Options)) (*sqs.SendMessageOutput, error) {
	return around(w, "send", func() (*sqs.SendMessageOutput, error) {
		w.mustBeBounded(ctx, "send")
		w.mutex.Lock()
		defer w.mutex.Unlock()
		if url := aws.ToString(in.QueueUrl); url != "https://queue.example/saga" {
			w.tb.Errorf("sent to %q", url)
		}
		w.sent++
		w.queue = append(w.queue, aws.ToString(in.MessageBody))
		return &sqs.SendMessageOutput{MessageId: aws.String("m")}, nil
	})
}

func (w *world) mustBeBounded(ctx context.Context, port string) {
	if _, bounded := ctx.Deadline(); !bounded {
		w.tb.Errorf("%s is called without a deadline", port)
	}
}

// saga takes the messages from the queue, and gives each event one effect, which it
// records with the event.
func (w *world) saga() {
	w.tb.Helper()
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, body := range w.queue {
		m, err := payment.DecodeMessage(body)
		if err != nil || m.Notice == nil {
			w.tb.Fatalf("the queue holds %s: %v", body, err)
		}
		if !w.recorded[m.Notice.ID] {
			w.recorded[m.Notice.ID] = true
			w.effects[m.Notice.ID]++
		}
	}
	w.queue = nil
}

// sign is the signature of a body at a second.
func sign(body []byte, seconds int64) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "%d.%s", seconds, body)
	return fmt.Sprintf("%d.%s", seconds, hex.EncodeToString(mac.Sum(nil)))
}

func (w *world) signature(body string) string { return sign([]byte(body), w.clock.Now().Unix()) }

// told is an event of the provider about our reservation.
func told(id ledger.ProviderEventID) string {
	body, err := json.Marshal(payment.Notice{
		ID: id, Type: "payment.authorized", Payment: "pay_1", Reservation: reservation, Attempt: 1, OccurredAt: start,
		AmountMinor: 1000, Currency: "USD", Status: payment.StatusAuthorized,
	})
	if err != nil {
		panic(err)
	}
	return string(body)
}

// delivery is an event of API Gateway.
type delivery struct {
	headers map[string]string
	body    string
	base64  bool
}

func (w *world) signed(body string) delivery {
	return delivery{headers: map[string]string{"provider-signature": w.signature(body)}, body: body}
}

func (d delivery) inBase64() delivery {
	d.body, d.base64 = base64.StdEncoding.EncodeToString([]byte(d.body)), true
	return d
}

func (d delivery) event() json.RawMessage {
	event, err := json.Marshal(map[string]any{
		"version": "2.0", "routeKey": "POST /v1/webhooks/provider", "rawPath": "/v1/webhooks/provider",
		"headers": d.headers, "body": d.body, "isBase64Encoded": d.base64,
		"requestContext": map[string]any{"requestId": "JKJaXmPLvHcESHA=", "http": map[string]any{"method": "POST"}},
	})
	if err != nil {
		panic(err)
	}
	return event
}

// deliver hands the delivery over, and requires an answer of that status in its form.
func (w *world) deliver(d delivery, status int) events.APIGatewayV2HTTPResponse {
	w.tb.Helper()
	answer, err := w.inbox.Handle(context.Background(), d.event())
	if err != nil {
		w.tb.Fatalf("handle: %v", err)
	}
	if answer.StatusCode != status {
		w.tb.Errorf("answered %d %s, want %d", answer.StatusCode, answer.Body, status)
	}
	w.checkForm(answer)
	return answer
}

func (w *world) checkForm(answer events.APIGatewayV2HTTPResponse) {
	w.tb.Helper()
	var body struct {
		Type, Title, Code, Detail string
		Status                    int
		RequestID                 string `json:"request_id"`
		Result                    string
	}
	if err := json.Unmarshal([]byte(answer.Body), &body); err != nil {
		w.tb.Fatalf("the answer %q: %v", answer.Body, err)
	}
	if answer.StatusCode == 200 {
		if body.Result == "" || answer.Headers["Content-Type"] != "application/json" {
			w.tb.Errorf("a success is told as %s", answer.Body)
		}
		return
	}
	if body.Type != "urn:holdfast:problem:"+body.Code || body.Code == "" || body.Title == "" || body.Detail == "" ||
		body.Status != answer.StatusCode || body.RequestID != "JKJaXmPLvHcESHA=" || answer.Headers["Content-Type"] != "application/problem+json" {
		w.tb.Errorf("no problem: %s", answer.Body)
	}
	if _, waits := answer.Headers["Retry-After"]; waits != (answer.StatusCode == 503) {
		w.tb.Errorf("%d with Retry-After: %t", answer.StatusCode, waits)
	}
}

// counted is how often each metric was reported, since the last call.
func (w *world) counted() map[telemetry.MetricName]float64 {
	w.tb.Helper()
	out := map[telemetry.MetricName]float64{}
	for line := range strings.SplitSeq(strings.TrimSpace(w.metrics.String()), "\n") {
		var members map[string]any
		if err := json.Unmarshal([]byte(line), &members); err != nil {
			w.tb.Fatalf("%v: %q", err, line)
		}
		for name, value := range members {
			if metric, is := telemetry.MetricNamed(telemetry.MetricName(name)); is {
				out[metric.Name] += value.(float64)
			}
		}
	}
	w.metrics.Reset()
	return out
}
