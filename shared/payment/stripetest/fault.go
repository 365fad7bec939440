package stripetest

import (
	"context"
	"io"
	"net/http"
	"slices"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/system"
)

// Outcome is what becomes of a call.
type Outcome string

// The outcomes. The zero Outcome is an honest answer.
const (
	// RequestLost: nothing is done, and the connection is closed.
	RequestLost Outcome = "request_lost"
	// AnswerLost: everything is done, and then the connection is closed.
	AnswerLost Outcome = "answer_lost"
	// ErrorInstead: nothing is done, and the fault's error is answered. It is not saved
	// under the call's key.
	ErrorInstead Outcome = "error_instead"
	// ErrorAfter: everything is done, and the fault's error is answered, now and for each
	// later call with that key.
	ErrorAfter Outcome = "error_after"
)

// Fault is something that goes wrong with calls of the API.
type Fault struct {
	Method      paymenttest.Method   // empty: every method
	Reservation ledger.ReservationID // empty: every payment
	Calls       int                  // how many calls it meets; 0: all until ClearFaults
	Outcome     Outcome
	// Error is answered by ErrorInstead and ErrorAfter. The zero one is a plain 503.
	Error ErrorAnswer
	// Delay is how late the answer is, by the server's clock. Everything is done before,
	// so that webhooks are faster than the answer.
	Delay time.Duration
	// Until, if it is not nil, holds the answer back until it is closed.
	Until <-chan struct{}
}

// ErrorAnswer is an error in Stripe's form.
type ErrorAnswer struct {
	HTTPStatus          int
	Type, Code, Message string
}

func (e ErrorAnswer) answer() answer {
	if e.HTTPStatus == 0 {
		e = ErrorAnswer{http.StatusServiceUnavailable, "api_error", "", "Service unavailable"}
	}
	return errorAnswer(e.HTTPStatus, e.Type, e.Code, e.Message)
}

func errorAnswer(status int, kind, code, message string) answer {
	body := map[string]any{"type": kind, "message": message}
	if code != "" {
		body["code"] = code
		body["doc_url"] = "https://stripe.com/docs/error-codes/" + code
	}
	return answer{status: status, body: map[string]any{"error": body}}
}

// AddFault makes f happen from now on. Of several that fit a call the oldest is taken.
func (s *Server) AddFault(f Fault) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.faults = append(s.faults, &f)
}

// ClearFaults ends all faults. Errors that are saved under keys stay.
func (s *Server) ClearFaults() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.faults = nil
}

func (s *Server) takeFault(m paymenttest.Method, r ledger.ReservationID) Fault {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i, f := range s.faults {
		if f.Method != "" && f.Method != m || f.Reservation != "" && f.Reservation != r {
			continue
		}
		taken := *f
		if f.Calls > 0 {
			if f.Calls--; f.Calls == 0 {
				s.faults = slices.Delete(s.faults, i, i+1)
			}
		}
		return taken
	}
	return Fault{}
}

// wait holds the answer back for as long as the fault says, or until the server ends or
// the client is gone.
func (f Fault) wait(ending, request context.Context, clock system.Clock) {
	if f.Delay > 0 {
		ctx, cancel := context.WithCancel(request)
		defer cancel()
		defer context.AfterFunc(ending, cancel)()
		if err := clock.Sleep(ctx, f.Delay); err != nil {
			return
		}
	}
	if f.Until == nil {
		return
	}
	select {
	case <-f.Until:
	case <-ending.Done():
	case <-request.Done():
	}
}

func (s *Server) saveError(key payment.Key, e ErrorAnswer) {
	if key == "" {
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.saved[key] = e
}

func (s *Server) savedError(key payment.Key) (ErrorAnswer, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	e, found := s.saved[key]
	return e, found
}

// hangUp closes the connection after the first half of an answer. Without that half Go's
// own HTTP client would send a request that has an idempotency key again by itself, when
// it had used the connection before.
func hangUp(w http.ResponseWriter) {
	hijacker, can := w.(http.Hijacker)
	if !can {
		panic(http.ErrAbortHandler)
	}
	connection, _, err := hijacker.Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	// There is nobody left to tell when these fail.
	_, _ = io.WriteString(connection, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{")
	_ = connection.Close()
}
