package stripetest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
)

const (
	// WebhookTriesMax is how often a webhook is sent by itself before it is given up.
	WebhookTriesMax = 6
	// webhookPause is the pause after the first failed try; each next one is doubled, so
	// that six tries take about 15 seconds.
	webhookPause = 500 * time.Millisecond
	// webhookFor is how long one try may take.
	webhookFor = 10 * time.Second
	// webhooksKept bounds the queue of a server whose webhooks nobody takes.
	webhooksKept = 10_000
	// webhookAnswerBytesMax bounds what is read of an answer, which is not looked at.
	webhookAnswerBytesMax = 64 << 10
)

// Webhook is one event on its way.
type Webhook struct {
	Event paymenttest.Event
	Body  []byte
}

// WebhookFaults are what goes wrong with webhooks that are delivered by themselves.
type WebhookFaults struct {
	Never  bool // they are thrown away
	Twice  bool // each is sent two times
	Paused bool // they wait in the queue
}

// sender is where webhooks wait and go out.
type sender struct {
	client *http.Client
	done   chan struct{} // closed when nothing is delivered by itself any more; nil if nothing is
	wake   chan struct{} // holds a token when there may be something to do

	mutex   sync.Mutex
	url     string
	secrets []payment.Secret
	queue   []Webhook
	faults  WebhookFaults
	givenUp int
}

func newSender(o Options) sender {
	return sender{
		client: &http.Client{Timeout: webhookFor, Transport: &http.Transport{}}, wake: make(chan struct{}, 1),
		url: o.WebhookURL, secrets: slices.Clone(o.WebhookSecrets),
	}
}

// SetWebhook says where webhooks go and which secrets sign them from now on. During a
// rotation there are two.
func (s *Server) SetWebhook(url string, secrets ...payment.Secret) {
	s.sender.mutex.Lock()
	defer s.sender.mutex.Unlock()
	s.sender.url, s.sender.secrets = url, slices.Clone(secrets)
}

// SetWebhookFaults replaces the faults of webhooks that are delivered by themselves.
func (s *Server) SetWebhookFaults(f WebhookFaults) {
	s.sender.mutex.Lock()
	s.sender.faults = f
	s.sender.mutex.Unlock()
	s.sender.alarm()
}

// GivenUp is how many webhooks were thrown away: not taken after WebhookTriesMax tries, or
// too many for the queue.
func (s *Server) GivenUp() int {
	s.sender.mutex.Lock()
	defer s.sender.mutex.Unlock()
	return s.sender.givenUp
}

// Collect puts the webhooks of what has happened in the bank into the queue. Calls of the
// API do so themselves; only who acts on Bank needs it, and only if webhooks are
// delivered by themselves.
func (s *Server) Collect() {
	s.sender.mutex.Lock()
	for _, e := range s.bank.TakeEvents() {
		if len(s.sender.queue) == webhooksKept {
			s.sender.queue = slices.Delete(s.sender.queue, 0, 1)
			s.sender.givenUp++
		}
		s.sender.queue = append(s.sender.queue, Webhook{Event: e, Body: WebhookBody(e)})
	}
	s.sender.mutex.Unlock()
	s.sender.alarm()
}

func (s *sender) alarm() {
	select {
	case s.wake <- struct{}{}:
	default: // it is awake already
	}
}

// Queue is what waits to be delivered, the oldest first.
func (s *Server) Queue() []Webhook {
	s.Collect()
	s.sender.mutex.Lock()
	defer s.sender.mutex.Unlock()
	return slices.Clone(s.sender.queue)
}

// Take takes the webhook at place i out of the queue, without sending it.
func (s *Server) Take(i int) (Webhook, error) {
	s.Collect()
	s.sender.mutex.Lock()
	defer s.sender.mutex.Unlock()
	if i < 0 || i >= len(s.sender.queue) {
		return Webhook{}, fmt.Errorf("stripetest: no webhook %d in a queue of %d", i, len(s.sender.queue))
	}
	w := s.sender.queue[i]
	s.sender.queue = slices.Delete(s.sender.queue, i, i+1)
	return w, nil
}

// Deliver takes the webhook at place i out of the queue and sends it. It returns the HTTP
// status of the answer. A webhook that was not taken with a 2xx is not put back.
func (s *Server) Deliver(ctx context.Context, i int) (int, error) {
	w, err := s.Take(i)
	if err != nil {
		return 0, err
	}
	return s.Send(ctx, w)
}

// DeliverAll delivers all that waits, in order, and reports the first that was not taken.
func (s *Server) DeliverAll(ctx context.Context) error {
	for range s.Queue() {
		status, err := s.Deliver(ctx, 0)
		if err != nil {
			return err
		}
		if status/100 != 2 {
			return fmt.Errorf("stripetest: a webhook was answered with %d", status)
		}
	}
	return nil
}

// Send signs w with the time of now and sends it, as often as it is called.
func (s *Server) Send(ctx context.Context, w Webhook) (status int, err error) {
	s.sender.mutex.Lock()
	url, secrets := s.sender.url, s.sender.secrets
	s.sender.mutex.Unlock()
	if url == "" {
		return 0, errors.New("stripetest: there is no address for webhooks")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(w.Body))
	if err != nil {
		return 0, fmt.Errorf("stripetest: %w", err)
	}
	request.Header.Set("Content-Type", "application/json; charset=utf-8")
	request.Header.Set("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")
	request.Header.Set("Stripe-Signature", SignatureHeader(w.Body, s.clock.Now(), secrets...))
	answered, err := s.sender.client.Do(request)
	if err != nil {
		return 0, fmt.Errorf("stripetest: %w", err)
	}
	defer func() { err = errors.Join(err, answered.Body.Close()) }()
	if _, err := io.Copy(io.Discard, io.LimitReader(answered.Body, webhookAnswerBytesMax)); err != nil {
		return 0, fmt.Errorf("stripetest: %w", err)
	}
	return answered.StatusCode, nil
}

// SignatureHeader is the value of Stripe-Signature for body at that time, with one
// signature for each secret. It follows Stripe's description of the scheme and not the
// library that the adapter checks with.
func SignatureHeader(body []byte, at time.Time, secrets ...payment.Secret) string {
	parts := []string{fmt.Sprintf("t=%d", at.Unix())}
	for _, secret := range secrets {
		sum := hmac.New(sha256.New, []byte(secret.Reveal()))
		_, _ = fmt.Fprintf(sum, "%d.%s", at.Unix(), body) // a hash takes every write
		parts = append(parts, "v1="+hex.EncodeToString(sum.Sum(nil)))
	}
	return strings.Join(parts, ",")
}

// WebhookBody is the JSON that Stripe sends about e.
func WebhookBody(e paymenttest.Event) []byte {
	object := paymentJSON(e.Payment, false)
	switch e.Type {
	case paymenttest.EventRefunded:
		object = chargeJSON(e.Payment)
	case paymenttest.EventRefundFailed:
		object = refundJSON(e.Payment, e.Refund)
	}
	body, err := json.MarshalIndent(map[string]any{
		"id": string(e.ID), "object": "event", "api_version": "2026-03-25.dahlia", "created": e.At.Unix(), "type": e.Type,
		"livemode": false, "pending_webhooks": 1, "request": map[string]any{"id": nil, "idempotency_key": nil},
		"data": map[string]any{"object": object},
	}, "", "  ")
	if err != nil {
		panic(err) // maps of texts and numbers always have a JSON form
	}
	return body
}

// deliverAll sends webhooks by itself until the server ends.
func (s *Server) deliverAll() {
	defer close(s.sender.done)
	for {
		select {
		case <-s.ending.Done():
			return
		case <-s.sender.wake:
		}
		for s.ending.Err() == nil {
			w, times := s.sender.next()
			if times == 0 {
				break
			}
			for range times {
				s.persist(w)
			}
		}
	}
}

// next takes the next webhook to send and says how often; zero if there is none now.
func (s *sender) next() (Webhook, int) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.faults.Never {
		s.queue = nil
	}
	if s.faults.Paused || len(s.queue) == 0 {
		return Webhook{}, 0
	}
	w := s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	if s.faults.Twice {
		return w, 2
	}
	return w, 1
}

// persist sends w until it is taken, up to WebhookTriesMax times.
func (s *Server) persist(w Webhook) {
	pause := webhookPause
	for try := range WebhookTriesMax {
		if status, err := s.Send(s.ending, w); err == nil && status/100 == 2 {
			return
		}
		if try == WebhookTriesMax-1 || s.clock.Sleep(s.ending, pause) != nil {
			break
		}
		pause *= 2
	}
	s.sender.mutex.Lock()
	defer s.sender.mutex.Unlock()
	s.sender.givenUp++
}
