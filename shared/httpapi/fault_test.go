package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// brokenStore is a store that can be told to fail.
type brokenStore struct {
	*memory.Store
	err    error
	panics bool
	wait   bool
}

func (s *brokenStore) fail(ctx context.Context) error {
	switch {
	case s.panics:
		panic("the store is on fire: marker-secret")
	case s.wait:
		<-ctx.Done()
		return &ledger.Error{Code: ledger.CodeUnavailable, Message: "no answer in time", Cause: ctx.Err()}
	}
	return s.err
}

func (s *brokenStore) Commit(ctx context.Context, c ledger.Change) error {
	if err := s.fail(ctx); err != nil {
		return err
	}
	return s.Store.Commit(ctx, c)
}

func (s *brokenStore) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	if err := s.fail(ctx); err != nil {
		return ledger.Hold{}, err
	}
	return s.Store.Hold(ctx, id)
}

// SlotsOfResource fails like the others; alternatives are looked up with it.
func (s *brokenStore) SlotsOfResource(ctx context.Context, t ledger.ResourceType, id ledger.ResourceID, from, to time.Time, page ledger.Page) ([]ledger.Slot, ledger.Cursor, error) {
	if err := s.fail(ctx); err != nil {
		return nil, "", err
	}
	return s.Store.SlotsOfResource(ctx, t, id, from, to, page)
}

// faults adds up the faults of ours that were counted, each of which has to name its
// request. Lines that count something else are passed over.
func (f *fixture) faults() int {
	f.t.Helper()
	sum := 0
	for text := range strings.Lines(f.metrics.String()) {
		var line struct {
			Faults    int    `json:"api_internal_faults"`
			Keyed     int    `json:"command_requests"`
			RequestID string `json:"request_id"`
		}
		err := json.Unmarshal([]byte(text), &line)
		if fault := line.Faults == 1 && line.RequestID != ""; err != nil || fault == (line.Keyed > 0) {
			f.t.Errorf("a line of metrics is %s, %v", text, err)
		}
		sum += line.Faults
	}
	return sum
}

// Each fault has its answer. Those that are faults of ours are counted, which rings an
// alarm (case G1), and no other answer costs a line of metrics.
func TestFaultsOfTheStore(t *testing.T) {
	faults := map[string]struct {
		err    error
		status int
		code   string
	}{
		"unavailable":     {&ledger.Error{Code: ledger.CodeUnavailable, Message: "try again", Cause: errors.New("marker-cause")}, 503, "unavailable"},
		"outcome unknown": {&ledger.Error{Code: ledger.CodeOutcomeUnknown, Message: "try again"}, 503, "outcome_unknown"},
		"busy":            {&ledger.Error{Code: ledger.CodeBusy, Message: "try again"}, 503, "busy"},
		"internal":        {&ledger.Error{Code: ledger.CodeInternal, Message: "marker-message", Cause: errors.New("marker-cause")}, 500, "internal"},
		"no code":         {errors.New("marker-cause"), 500, "internal"},
		"a strange code":  {&ledger.Error{Code: "something_new", Message: "marker-message"}, 500, "internal"},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			store := &brokenStore{Store: memory.New()}
			f := newFixtureOn(t, store)
			f.define("seat", 5)
			hold := f.mustHold(owner("U"), "seat", 1)
			store.err = fmt.Errorf("commit: %w", fault.err)
			for _, a := range []answer{
				f.create(owner("U"), line("seat", 1), f.key()),
				f.get("/v1/holds/"+hold, "", owner("U")),
				f.post("/v1/holds/"+hold+"/cancel", "", owner("U"), f.key()),
			} {
				a.wantProblem(fault.status, fault.code)
				if strings.Contains(a.body, "marker") {
					t.Errorf("the answer tells the cause: %s", a.body)
				}
			}
			if strings.Contains(fault.err.Error(), "marker-cause") && !strings.Contains(f.logs.String(), "marker-cause") {
				t.Errorf("the cause is not logged: %s", f.logs.String())
			}
			if got, want := f.faults(), map[bool]int{true: 3}[fault.status == http.StatusInternalServerError]; got != want {
				t.Errorf("%d faults of ours are counted, want %d:\n%s", got, want, f.metrics.String())
			}
			store.err = nil
			f.counters("seat", 4, 1, 0, 5)
			f.balanced()
		})
	}
}

func TestAPanicIsAFaultOfOurs(t *testing.T) {
	store := &brokenStore{Store: memory.New()}
	f := newFixtureOn(t, store)
	f.define("seat", 5)
	store.panics = true
	a := f.create(owner("U"), line("seat", 1), f.key())
	a.wantProblem(http.StatusInternalServerError, "internal")
	if strings.Contains(a.body, "marker") || !strings.Contains(f.logs.String(), "the store is on fire") || !strings.Contains(f.logs.String(), "fault_test.go") {
		t.Errorf("answer %s, logs %s", a.body, f.logs.String())
	}
	store.panics = false
	f.create(owner("U"), line("seat", 1), f.key()).want(http.StatusCreated)
	if got := f.faults(); got != 1 {
		t.Errorf("%d faults are counted for one panic", got)
	}
}

// brokenMetrics takes no number.
type brokenMetrics struct{}

func (brokenMetrics) Emit(telemetry.Properties, ...telemetry.Measurement) error {
	return errors.New("the pipe is broken")
}

// A fault that cannot be counted, or is counted by nobody, has the same answer.
func TestFaultsAreAnsweredWithoutMetrics(t *testing.T) {
	f := newFixtureOn(t, &brokenStore{Store: memory.New(), err: errors.New("on fire")})
	options := f.options(f.store)
	for name, metrics := range map[string]httpapi.Metrics{"none": nil, "broken": brokenMetrics{}} {
		options.Metrics = metrics
		f.api = mustAPI(t, options)
		f.get("/v1/holds/hold_1", "", owner("U")).wantProblem(http.StatusInternalServerError, "internal")
		if told := strings.Contains(f.logs.String(), "the pipe is broken"); told != (metrics != nil) {
			t.Errorf("%s: the log says %s", name, f.logs.String())
		}
		f.logs.buffer.Reset()
	}
}

// A shortage is told even when no alternatives can be looked up.
func TestNoAlternativesIsNoFault(t *testing.T) {
	store := &brokenStore{Store: memory.New()}
	f := newFixtureOn(t, store)
	f.define("seat", 1)
	broken := &onlySearch{brokenStore: store}
	broken.err = errors.New("the index is away")
	f.api = mustAPI(t, f.options(broken))
	f.create(owner("U"), line("seat", 2), f.key()).wantProblem(http.StatusConflict, "insufficient_stock")
	if !strings.Contains(f.logs.String(), "the index is away") {
		t.Error("nobody learns that the index is away")
	}
}

// onlySearch fails in SlotsOfResource only.
type onlySearch struct{ *brokenStore }

func (s *onlySearch) Commit(ctx context.Context, c ledger.Change) error {
	return s.Store.Commit(ctx, c)
}

// A request is given topology.DatabaseBudget and no more: the store's context has that
// deadline.
func TestCaseH8_TheDatabaseBudgetIsADeadline(t *testing.T) {
	store := &deadlineStore{Store: memory.New()}
	f := newFixtureOn(t, store)
	earliest := time.Now().Add(topology.DatabaseBudget)
	f.define("seat", 5)
	latest := time.Now().Add(topology.DatabaseBudget)
	if store.deadline.Before(earliest) || store.deadline.After(latest) {
		t.Errorf("the deadline is %s, want one from %s to %s", store.deadline, earliest, latest)
	}
}

// deadlineStore notes the deadline of the last commit.
type deadlineStore struct {
	*memory.Store
	deadline time.Time
}

func (s *deadlineStore) Commit(ctx context.Context, c ledger.Change) error {
	s.deadline, _ = ctx.Deadline()
	return s.Store.Commit(ctx, c)
}

// When the caller's time is over the answer is 503, not silence.
func TestTimeOverIsUnavailable(t *testing.T) {
	store := &brokenStore{Store: memory.New()}
	f := newFixtureOn(t, store)
	f.define("seat", 5)
	store.wait = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := call{method: http.MethodPost, path: "/v1/holds", body: line("seat", 1), claims: owner("U"), headers: f.key()}
	response, err := f.api.Lambda(ctx, c.event(t))
	if err != nil || response.StatusCode != http.StatusServiceUnavailable || response.Headers["Retry-After"] == "" {
		t.Errorf("answer %v, %v", response, err)
	}
}

// P12 and case L5: one line of log for each request, and neither the log nor the body or
// the headers of an answer have anything secret in them.
func TestP12_NothingSecretIsLoggedOrTold(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	f.logs.buffer.Reset()
	const marker = "marker-4111111111111111"
	var told strings.Builder
	do := func(c call) answer {
		a := f.do(c)
		fmt.Fprintln(&told, a.body, a.headers)
		return a
	}
	do(call{
		method: http.MethodPost, path: "/v1/holds", query: "", claims: owner(marker),
		body:    `{"lines":[{"slot_id":"` + marker + `","quantity":"` + marker + `","unit_amount":1}]}`,
		headers: map[string]string{"authorization": "Bearer " + marker, "cookie": marker, "idempotency-key": marker},
	}).wantProblem(http.StatusBadRequest, "invalid_request")
	do(call{method: http.MethodGet, path: "/v1/" + marker, query: marker + "=" + marker}).want(http.StatusNotFound)
	do(call{method: http.MethodGet, path: "/v1/holds/" + marker, claims: owner(marker)}).want(http.StatusNotFound)
	secret := map[string]string{"authorization": "Bearer " + marker, "cookie": marker, "stripe-signature": marker}
	for name, c := range map[string]call{
		"no token's subject":   {method: http.MethodGet, path: "/v1/holds", claims: map[string]any{"scope": marker}, headers: secret},
		"no scope":             {method: http.MethodGet, path: "/v1/holds", claims: map[string]any{"sub": marker, "scope": marker}, headers: secret},
		"an odd key":           {method: http.MethodPost, path: "/v1/holds", body: line("seat", 1), claims: owner("U"), headers: keyed(marker + ",")},
		"no JSON":              {method: http.MethodPost, path: "/v1/holds", body: marker, claims: owner("U"), headers: keyed(marker)},
		"no media type":        {method: http.MethodPost, path: "/v1/holds", body: "{}", claims: owner("U"), headers: map[string]string{"content-type": marker}},
		"an odd value":         {method: http.MethodPost, path: "/v1/holds", body: `{"slot_ids":["` + marker + ` "]}`, claims: owner("U"), headers: keyed(marker)},
		"an odd reference":     {method: http.MethodPost, path: "/v1/holds/hold_1/confirm", body: `{"payment_reference":"` + marker + ` "}`, claims: service(), headers: keyed(marker)},
		"an odd query":         {method: http.MethodGet, path: "/v1/holds", query: "cursor=" + marker + "&status=" + marker, claims: owner(marker)},
		"a query twice":        {method: http.MethodGet, path: "/v1/holds", query: "status=" + marker + "&status=" + marker, claims: owner(marker)},
		"another's list":       {method: http.MethodGet, path: "/v1/holds", query: "owner=" + marker, claims: owner("U")},
		"a confirm of nothing": {method: http.MethodPost, path: "/v1/holds/hold_1/confirm", body: `{"payment_reference":"` + marker + `"}`, claims: service(), headers: keyed(marker)},
	} {
		if a := do(c); a.status < 400 || a.status >= 500 {
			t.Errorf("%s: status %d, %s", name, a.status, a.body)
		}
	}
	logs := f.logs.String()
	for where, text := range map[string]string{"log": logs, "answers": told.String(), "metrics": f.metrics.String()} {
		if strings.Contains(text, strings.TrimPrefix(marker, "marker-")) || strings.Contains(text, "marker") {
			t.Errorf("secrets in the %s:\n%s", where, text)
		}
	}
	lines := strings.Split(strings.TrimSpace(logs), "\n")
	if len(lines) != 14 {
		t.Fatalf("%d lines for 14 requests:\n%s", len(lines), logs)
	}
	for i, want := range []map[string]any{
		{"route": "/v1/holds", "status": 400.0, "code": "invalid_request", "method": "POST"},
		{"route": "none", "status": 404.0, "code": "route_not_found", "subject_hash": "none"},
		{"route": "/v1/holds/{hold_id}", "status": 404.0, "code": "hold_not_found"},
	} {
		var line map[string]any
		if err := json.Unmarshal([]byte(lines[i]), &line); err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			if line[name] != value {
				t.Errorf("line %d: %s is %v, want %v", i, name, line[name], value)
			}
		}
		if line["request_id"] == "" || line["duration_ms"] == nil || line["subject_hash"] == "" {
			t.Errorf("line %d lacks a member: %s", i, lines[i])
		}
	}
}

// The line of a request leads to the hold and the reservation that it is about, also of what
// it has just made, and of what it is told again.
func TestARequestsLineNamesWhatItIsAbout(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	key := f.key()
	made := f.create(owner("U"), line("seat", 1), key)
	made.want(http.StatusCreated)
	hold := made.text("hold_id")
	lineOf := func() map[string]any {
		t.Helper()
		lines := strings.Split(strings.TrimSpace(f.logs.String()), "\n")
		var last map[string]any
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
			t.Fatal(err)
		}
		return last
	}
	const none, foreign = "hold_0000000000000000000000000", "hold_00000000000000000000000000"
	for _, test := range []struct {
		name string
		ask  func()
		want any
	}{
		{"made", func() {}, hold},
		{"read", func() { f.get("/v1/holds/"+hold, "", owner("U")).want(http.StatusOK) }, hold},
		{"refused", func() { f.get("/v1/holds/"+foreign, "", owner("U")).want(http.StatusNotFound) }, foreign},
		{"no id of ours", func() { f.get("/v1/holds/"+none, "", owner("U")).want(http.StatusNotFound) }, nil},
		{"told again", func() { f.create(owner("U"), line("seat", 1), key).want(http.StatusCreated) }, hold},
		{"about no hold", func() { f.get("/v1/health", "", nil).want(http.StatusOK) }, nil},
	} {
		if test.ask(); lineOf()[telemetry.KeyHoldID] != test.want {
			t.Errorf("%s: the line is %v, want the hold %v", test.name, lineOf(), test.want)
		}
	}
}

// The handler is a plain http.Handler too; there, headers are not joined beforehand and
// bodies may come in chunks of unknown length.
func TestPlainHTTP(t *testing.T) {
	f := newFixture(t)
	f.define("seat", 5)
	send := func(body []byte, chunked bool, keys ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(httpapi.WithCaller(t.Context(), httpapi.Caller{
			Principal: httpapi.Principal{Subject: "U", Scopes: []topology.Scope{topology.ScopeHolds}},
		}), http.MethodPost, "/v1/holds", bytes.NewReader(body))
		if chunked {
			r.ContentLength = -1
		}
		r.Header["Idempotency-Key"] = keys
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		f.api.ServeHTTP(w, r)
		return w
	}
	body := []byte(line("seat", 1))
	padded := append(bytes.Repeat([]byte(" "), httpapi.BodyBytesMax+1-len(body)), body...)
	for name, got := range map[string]struct {
		answer *httptest.ResponseRecorder
		status int
	}{
		"two keys":            {send(body, false, "a", "b"), http.StatusBadRequest},
		"one key":             {send(body, false, "a"), http.StatusCreated},
		"chunked":             {send(body, true, "b"), http.StatusCreated},
		"too large":           {send(padded, false, "c"), http.StatusRequestEntityTooLarge},
		"chunked, too large":  {send(padded, true, "c"), http.StatusRequestEntityTooLarge},
		"chunked, just right": {send(padded[1:], true, "d"), http.StatusCreated},
	} {
		if got.answer.Code != got.status {
			t.Errorf("%s: %d, want %d: %s", name, got.answer.Code, got.status, got.answer.Body)
		}
	}
	f.counters("seat", 2, 3, 0, 5)
}
