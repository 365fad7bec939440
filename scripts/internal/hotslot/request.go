package hotslot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"holdfast/shared/dynamo"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/topology"
)

const (
	// triesMax bounds how often a buyer who is turned away asks again. A single stock item
	// at 50 transactions a second, with every worker waiting for it, needs a few.
	triesMax = 50
	// retryPauseMin and retryPauseMax bound the random pause between two tries: about the
	// second that a 503 asks for.
	retryPauseMin, retryPauseMax = 500 * time.Millisecond, 1500 * time.Millisecond
)

// newAPI is the API as functions/api wires it, on the counting client.
func newAPI(client dynamo.Client, ports Ports, contract *httpapi.Contract) (*httpapi.API, error) {
	return httpapi.New(httpapi.Options{
		Store: dynamo.NewStore(client, ports.Table, ports.Clock, ports.Random), Clock: ports.Clock, Random: ports.Random,
		OperatorGroup: "ops", Logger: slog.New(slog.DiscardHandler), Contract: contract,
	})
}

// got is what a buyer was told in the end: accepted, or that too little is left.
type got struct {
	accepted   bool
	hold       ledger.HoldID
	turnedAway int
	calls      Calls // of all tries
}

// ask asks for units until there is a final answer.
func (w *worker) ask(ctx context.Context, quantity ledger.Units) (got, error) {
	w.buyers++
	name := fmt.Sprintf("%s-%d-%d", w.sale.plan.Slot, w.number, w.buyers)
	body := fmt.Sprintf(`{"lines":[{"slot_id":%q,"quantity":%d,"unit_amount":%d}]}`, w.sale.plan.Slot, quantity, unitAmount)
	s := &purchase{quantity: quantity}
	a, turnedAway, err := w.send(withPurchase(ctx, s), caller(name, topology.ScopeHolds), "/v1/holds", name, body)
	out := got{turnedAway: turnedAway, calls: s.calls}
	switch {
	case err != nil:
		return out, err
	case a.status == http.StatusCreated:
		out.accepted, out.hold = true, a.HoldID
		return out, nil
	case a.Code == ledger.CodeInsufficientStock:
		return out, nil
	}
	return out, fmt.Errorf("a hold of %d units was answered with %d %s", quantity, a.status, a.Code)
}

// confirm sells what the hold promises, as a shop that charges on its own does.
func (w *worker) confirm(ctx context.Context, id ledger.HoldID) error {
	a, _, err := w.send(ctx, caller("shop", topology.ScopeConfirm), "/v1/holds/"+string(id)+"/confirm", "confirm-"+string(id), "{}")
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("a confirm was answered with %d %s", a.status, a.Code)
	}
	return err
}

func caller(name string, scope topology.Scope) httpapi.Caller {
	return httpapi.Caller{Principal: httpapi.Principal{Subject: ledger.OwnerID(name), Scopes: []topology.Scope{scope}}}
}

// answer is the part of an answer that a buyer reads.
type answer struct {
	status int
	HoldID ledger.HoldID `json:"hold_id"`
	Code   ledger.Code   `json:"code"`
}

// send posts a request, and again under the same key while it is turned away: by a busy
// table, or by an answer that got lost.
func (w *worker) send(ctx context.Context, c httpapi.Caller, path, key, body string) (a answer, turnedAway int, err error) {
	for try := range triesMax {
		if try > 0 {
			pause := retryPauseMin + time.Duration(w.sale.random.Below(int64(retryPauseMax-retryPauseMin)))
			if err := w.sale.clock.Sleep(ctx, pause); err != nil {
				return answer{}, try, err
			}
		}
		if a, err = w.post(ctx, c, path, key, body); err != nil || a.status != http.StatusServiceUnavailable {
			return a, try, err
		}
	}
	return a, triesMax, fmt.Errorf("a buyer was turned away %d times, last with %s", triesMax, a.Code)
}

// post makes one request to the worker's handler.
func (w *worker) post(ctx context.Context, c httpapi.Caller, path, key, body string) (answer, error) {
	r, err := http.NewRequestWithContext(httpapi.WithCaller(ctx, c), http.MethodPost, path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	written := &written{header: make(http.Header)}
	w.api.ServeHTTP(written, r)
	a := answer{status: written.status}
	if err := json.Unmarshal(written.body.Bytes(), &a); err != nil {
		return a, fmt.Errorf("read an answer of status %d: %w", a.status, err)
	}
	return a, nil
}

// written is an http.ResponseWriter that keeps what is written.
type written struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header is what is sent before the body.
func (w *written) Header() http.Header { return w.header }

// WriteHeader keeps the status.
func (w *written) WriteHeader(status int) { w.status = status }

// Write keeps a part of the body.
func (w *written) Write(b []byte) (int, error) { return w.body.Write(b) }
