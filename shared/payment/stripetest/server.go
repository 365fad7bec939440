package stripetest

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/system"
)

const (
	// formBytesMax bounds a request. The largest that the adapter sends has under 1 KB.
	formBytesMax = 64 << 10
	// requestsKept bounds what Requests remembers, so that a server may run for days.
	requestsKept = 10_000
	// closeFor is how long Close waits for requests under way.
	closeFor = 5 * time.Second
	// readHeaderFor bounds the wait for a request's header.
	readHeaderFor = 5 * time.Second
)

// Options are what a Server needs.
type Options struct {
	// Address is where to listen; empty is a free port on loopback.
	Address string
	// APIKey is the only key that is let in.
	APIKey payment.Secret
	// WebhookURL is where webhooks go, and WebhookSecrets sign them, each of them. Both
	// may be set later.
	WebhookURL     string
	WebhookSecrets []payment.Secret
	// Automatic delivers webhooks as soon as they are there, in order, each several times
	// if it is not taken. Without it they wait for Deliver.
	Automatic bool
	// Run is in every id that the server gives. It must be another one for each server whose
	// ids are kept together with those of an earlier one; else it may be empty.
	Run   string
	Clock system.Clock
}

// Request is a request that the server got from a client of the API.
type Request struct {
	Method      paymenttest.Method
	HTTPMethod  string
	Path        string // with the query
	Form        url.Values
	Key         payment.Key
	ContentType string
}

// Server is the server. It is safe for concurrent use.
type Server struct {
	bank     *paymenttest.Bank
	clock    system.Clock
	key      payment.Secret
	http     *http.Server
	listener net.Listener
	served   chan struct{} // closed when no more requests are taken
	ending   context.Context
	end      context.CancelFunc
	sender   sender

	mutex    sync.Mutex
	requests []Request
	faults   []*Fault
	saved    map[payment.Key]ErrorAnswer
	closed   bool
}

// Start starts a server with an empty bank.
func Start(o Options) (*Server, error) {
	if o.Clock == nil || o.APIKey.Empty() {
		return nil, errors.New("stripetest: a clock and an API key are needed")
	}
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("stripetest: %w", err)
	}
	s := &Server{
		bank: paymenttest.NewBank(o.Clock.Now), clock: o.Clock, key: o.APIKey, listener: listener,
		served: make(chan struct{}), saved: map[payment.Key]ErrorAnswer{},
	}
	s.bank.SetRun(o.Run)
	s.ending, s.end = context.WithCancel(context.Background())
	s.http = &http.Server{Handler: s.routes(), ReadHeaderTimeout: readHeaderFor}
	s.sender = newSender(o)
	go func() {
		defer close(s.served)
		_ = s.http.Serve(listener) // it always ends with an error, by Close
	}()
	if o.Automatic {
		s.sender.done = make(chan struct{})
		go s.deliverAll()
	}
	return s, nil
}

// URL is the API's address, for stripe.Options.BaseURL.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Bank is what the server knows and keeps. After acting on it directly, Collect puts the
// webhooks of what happened into the queue.
func (s *Server) Bank() *paymenttest.Bank { return s.bank }

// Requests are the requests of the API so far, the oldest first; at most the last 10,000.
func (s *Server) Requests() []Request {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.requests)
}

// Close ends the server and all that it started. What waits on a fault is let go. A
// second call does nothing.
func (s *Server) Close() error {
	s.mutex.Lock()
	if s.closed {
		s.mutex.Unlock()
		return nil
	}
	s.closed = true
	s.mutex.Unlock()
	s.end()
	ctx, cancel := context.WithTimeout(context.Background(), closeFor)
	defer cancel()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.served
	if s.sender.done != nil {
		<-s.sender.done
	}
	s.sender.client.CloseIdleConnections()
	return err
}

// routes are Stripe's paths and the control routes.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range []route{
		{"POST /v1/payment_intents", paymenttest.MethodCreate, createFields, s.create},
		{"GET /v1/payment_intents", MethodListPayments, listFields, s.listPayments},
		{"GET /v1/payment_intents/{id}", paymenttest.MethodLookUp, lookUpFields, s.lookUp},
		{"POST /v1/payment_intents/{id}/confirm", MethodConfirm, confirmFields, s.confirm},
		{"POST /v1/payment_intents/{id}/capture", paymenttest.MethodCapture, captureFields, s.capture},
		{"POST /v1/payment_intents/{id}/cancel", paymenttest.MethodVoid, cancelFields, s.cancel},
		{"POST /v1/refunds", paymenttest.MethodRefund, refundFields, s.refund},
		{"GET /v1/refunds", MethodListRefunds, listRefundsFields, s.listRefunds},
	} {
		mux.Handle(r.pattern, s.handle(r))
	}
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) {
		s.write(w, errorAnswer(http.StatusNotFound, "invalid_request_error", "", "Unrecognized request URL"))
	})
	s.control(mux)
	return mux
}

// The methods of the API that the port has no word for.
const (
	MethodListPayments paymenttest.Method = "list_payments"
	MethodConfirm      paymenttest.Method = "confirm"
	MethodListRefunds  paymenttest.Method = "list_refunds"
)

// route is a path of the API.
type route struct {
	pattern string
	method  paymenttest.Method
	// fields are the parameters that are known, up to the first bracket. Stripe refuses
	// others, and so does this server: a misspelt parameter is not a silent default.
	fields []string
	carry  func(call) answer
}

// call is one request, read.
type call struct {
	id   string // the payment's in the path
	form url.Values
	key  payment.Key
}

// answer is what goes back.
type answer struct {
	status   int
	body     any
	replayed bool
}

func (s *Server) handle(r route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		c, refusal := s.read(r, w, request)
		if refusal != nil {
			s.write(w, *refusal)
			return
		}
		s.remember(r, request, c)
		fault := s.takeFault(r.method, s.reservationOf(r, c))
		if fault.Outcome == RequestLost {
			hangUp(w)
			return
		}
		a := s.work(r, c, fault)
		s.Collect()
		fault.wait(s.ending, request.Context(), s.clock)
		if fault.Outcome == AnswerLost {
			hangUp(w)
			return
		}
		s.write(w, a)
	})
}

// work carries the call out, or answers an error in its place.
func (s *Server) work(r route, c call, fault Fault) answer {
	if saved, found := s.savedError(c.key); found {
		a := saved.answer()
		a.replayed = true
		return a
	}
	switch fault.Outcome {
	case ErrorInstead:
		return fault.Error.answer()
	case ErrorAfter:
		r.carry(c)
		s.saveError(c.key, fault.Error)
		return fault.Error.answer()
	case RequestLost, AnswerLost: // what is lost is lost by the caller of work
	}
	return r.carry(c)
}

// read checks who asks and what was sent.
func (s *Server) read(r route, w http.ResponseWriter, request *http.Request) (call, *answer) {
	request.Body = http.MaxBytesReader(w, request.Body, formBytesMax)
	if err := request.ParseForm(); err != nil {
		a := errorAnswer(http.StatusBadRequest, "invalid_request_error", "", "The form can't be read")
		return call{}, &a
	}
	c := call{id: request.PathValue("id"), form: request.Form, key: payment.Key(request.Header.Get("Idempotency-Key"))}
	if !s.letIn(r, request, c) {
		a := errorAnswer(http.StatusUnauthorized, "invalid_request_error", "", "Invalid API Key provided")
		return call{}, &a
	}
	for name := range c.form {
		base, _, _ := strings.Cut(name, "[")
		if !slices.Contains(r.fields, base) {
			a := errorAnswer(http.StatusBadRequest, "invalid_request_error", "parameter_unknown", "Received unknown parameter: "+base)
			return call{}, &a
		}
	}
	return c, nil
}

// letIn checks the API key. A buyer's device confirms with the payment's own secret.
func (s *Server) letIn(r route, request *http.Request, c call) bool {
	if r.method == MethodConfirm && c.form.Get("client_secret") != "" {
		return true
	}
	given, bearer := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	if user, _, basic := request.BasicAuth(); basic {
		given, bearer = user, true
	}
	return bearer && subtle.ConstantTimeCompare([]byte(given), []byte(s.key.Reveal())) == 1
}

func (s *Server) remember(r route, request *http.Request, c call) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.requests) == requestsKept {
		s.requests = slices.Delete(s.requests, 0, 1)
	}
	s.requests = append(s.requests, Request{
		Method: r.method, HTTPMethod: request.Method, Path: request.URL.RequestURI(), Form: c.form, Key: c.key,
		ContentType: request.Header.Get("Content-Type"),
	})
}

func (s *Server) write(w http.ResponseWriter, a answer) {
	body, err := json.Marshal(a.body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Request-Id", "req_stripetest")
	if a.replayed {
		w.Header().Set("Idempotent-Replayed", "true")
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(body) // the client may have gone, and that is its own loss
}
