package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"holdfast/shared/commands"
	"holdfast/shared/ledger"
	"holdfast/shared/telemetry"
)

const (
	mediaJSON    = "application/json"
	mediaProblem = "application/problem+json"
	// subjectHashBytes is enough of a hash to follow one caller through the logs.
	subjectHashBytes = 8
)

// exchange is one request and its answer, from the first look to the log line.
type exchange struct {
	writer http.ResponseWriter
	caller Caller
	method string
	route  string
	began  time.Time
	body   []byte

	answered bool
	status   int
	code     ledger.Code
	replayed bool
	// keyed says that the request had a key, and has come to its command.
	keyed bool
	// hold, reservation, event and review are what it is about, as far as that is known: for
	// the log.
	hold        ledger.HoldID
	reservation ledger.ReservationID
	event       ledger.EventID
	review      ledger.ReviewID
	// causes are the faults of ours behind the answer. They are logged and never told.
	causes []error
}

// exchangeKey is the context key of an *exchange.
type exchangeKey struct{}

// exchangeOf finds the exchange that ServeHTTP put there.
func exchangeOf(r *http.Request) *exchange {
	x, found := r.Context().Value(exchangeKey{}).(*exchange)
	if !found {
		panic("httpapi: a handler was called outside ServeHTTP")
	}
	return x
}

// note keeps what the request is about. Only what has the form of one of our ids is kept: in a
// path or a body may stand anything, and the log has no secrets.
func (x *exchange) note(ids ...string) {
	for _, id := range ids {
		switch {
		case ledger.ValidHoldID(id):
			x.hold = ledger.HoldID(id)
		case ledger.ValidReservationID(id):
			x.reservation = ledger.ReservationID(id)
		case ledger.ValidEventID(id):
			x.event = ledger.EventID(id)
		case ledger.ValidReviewID(id):
			x.review = ledger.ReviewID(id)
		}
	}
}

// correlation are the ids that lead from the request's log lines to all that is told of the
// same things elsewhere.
func (x *exchange) correlation() []slog.Attr {
	out := []slog.Attr{slog.String(telemetry.KeyRequestID, string(x.caller.RequestID))}
	for _, id := range []struct{ key, value string }{
		{telemetry.KeyHoldID, string(x.hold)},
		{telemetry.KeyReservationID, string(x.reservation)},
		{telemetry.KeyEventID, string(x.event)},
		{telemetry.KeyReviewID, string(x.review)},
	} {
		if id.value != "" {
			out = append(out, slog.String(id.key, id.value))
		}
	}
	return out
}

// answer sends a JSON body. Later answers to the same request are dropped, which can
// only happen after a panic.
func (x *exchange) answer(status int, body []byte) { x.send(status, mediaJSON, body) }

func (x *exchange) send(status int, media string, body []byte) {
	if x.answered {
		return
	}
	x.answered, x.status = true, status
	header := x.writer.Header()
	header.Set("Content-Type", media)
	if header.Get("Cache-Control") == "" {
		header.Set("Cache-Control", "no-store")
	}
	x.writer.WriteHeader(status)
	if _, err := x.writer.Write(body); err != nil {
		x.causes = append(x.causes, fmt.Errorf("write the answer: %w", err))
	}
}

// answerJSON sends a value as JSON.
func (x *exchange) answerJSON(status int, value any) {
	body, err := json.Marshal(value, json.Deterministic(true)) // attributes keep one order
	if err != nil {
		x.fail(fmt.Errorf("write the answer: %w", err))
		return
	}
	x.answer(status, body)
}

// answerCommand sends what a command answered.
func (x *exchange) answerCommand(answer commands.Answer) {
	if answer.Replayed {
		x.replayed = true
		x.writer.Header().Set("Idempotent-Replayed", "true")
	}
	// What was made has its id only here, and what is answered again has it nowhere else.
	var about struct {
		HoldID        string `json:"hold_id"`
		ReservationID string `json:"reservation_id"`
	}
	if err := json.Unmarshal(answer.Response.Body, &about); err != nil {
		x.causes = append(x.causes, fmt.Errorf("read an answer of ours: %w", err))
	}
	x.note(about.HoldID, about.ReservationID)
	x.answer(answer.Response.Status, answer.Response.Body)
}

// fail sends err as a problem.
func (x *exchange) fail(err error) { x.failWith(problemOf(err, x.caller.RequestID), err) }

// failWith sends a problem whose cause is err.
func (x *exchange) failWith(p Problem, err error) {
	x.code = ledger.Code(p.Code)
	if p.Status >= http.StatusInternalServerError {
		x.causes = append(x.causes, err)
	}
	if wait := retryAfter(p, err); wait != "" {
		x.writer.Header().Set("Retry-After", wait)
	}
	body, err := json.Marshal(p)
	if err != nil {
		// A problem is texts and numbers, so this cannot be; an empty body still has the
		// right status.
		x.causes = append(x.causes, fmt.Errorf("write the problem: %w", err))
	}
	x.send(int(p.Status), mediaProblem, body)
}

// subjectHash names a caller in the logs without telling who it is.
func subjectHash(subject ledger.OwnerID) string {
	if subject == "" {
		return "none"
	}
	sum := sha256.Sum256([]byte(subject))
	return hex.EncodeToString(sum[:subjectHashBytes])
}
