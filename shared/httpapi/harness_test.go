package httpapi_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/shared/commands"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/ledger/memory"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
)

// noon is when every test begins.
var noon = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

const operatorGroup = "ops"

// fixture is an API on a store in memory, driven by the events that API Gateway sends.
type fixture struct {
	t       testing.TB
	store   ledger.Store
	clock   *systemtest.Clock
	api     *httpapi.API
	sweeper *commands.Commands // carries out what has no route
	logs    *lockedBuffer
	metrics *lockedBuffer
	// provider is the payment provider that the API asks; its Bank is the other side.
	provider     *paymenttest.Provider
	mutex        sync.Mutex
	slots        []ledger.SlotID
	holds        []ledger.HoldID
	reservations []ledger.ReservationID
	counter      int
}

// lockedBuffer is a bytes.Buffer for several writers.
type lockedBuffer struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.buffer.String()
}

func newFixture(t testing.TB) *fixture { return newFixtureOn(t, memory.New()) }

func newFixtureOn(t testing.TB, store ledger.Store) *fixture {
	t.Helper()
	f := &fixture{t: t, store: store, clock: systemtest.NewClock(noon), logs: &lockedBuffer{}, metrics: &lockedBuffer{}}
	f.provider = paymenttest.NewProvider(paymenttest.NewBank(f.clock.Now))
	f.sweeper = commands.New(store, f.clock, systemtest.NewRandom(11))
	f.api = mustAPI(t, f.options(store))
	return f
}

// options are those of an API on store with the fixture's clock, log and metrics.
func (f *fixture) options(store ledger.Store) httpapi.Options {
	return httpapi.Options{
		Store: store, Clock: f.clock, Random: systemtest.NewRandom(7), OperatorGroup: operatorGroup,
		Provider: f.provider,
		Logger:   slog.New(slog.NewJSONHandler(f.logs, nil)),
		Metrics:  telemetry.NewEmitter(f.metrics, f.clock, telemetry.Source{Stage: "local", Function: "api"}),
	}
}

func mustAPI(t testing.TB, o httpapi.Options) *httpapi.API {
	t.Helper()
	api, err := httpapi.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// call is one request as the gateway passes it on.
type call struct {
	method, path, query string
	body                string
	isBase64            bool
	headers             map[string]string
	claims              map[string]any // nil without an authorizer
	stage               string
}

// The tokens of the usual callers.
func owner(name string) map[string]any { return map[string]any{"sub": name, "scope": "holds"} }
func service() map[string]any          { return map[string]any{"sub": "checkout", "scope": "confirm"} }
func catalog() map[string]any          { return map[string]any{"sub": "catalogue", "scope": "catalog"} }
func operator() map[string]any {
	return map[string]any{"sub": "olga", "scope": "operate", "groups": "[ops support]"}
}

// answer is what came back.
type answer struct {
	t       testing.TB
	status  int
	headers map[string]string
	body    string
}

// event is c in payload format 2.0.
func (c call) event(t testing.TB) json.RawMessage {
	t.Helper()
	stage := c.stage
	if stage == "" {
		stage = "$default"
	}
	requestContext := map[string]any{
		"requestId": "GaTeWaY-1=", "stage": stage,
		"http": map[string]any{"method": c.method, "path": c.path, "sourceIp": "192.0.2.1"},
	}
	if c.claims != nil {
		requestContext["authorizer"] = map[string]any{"jwt": map[string]any{"claims": c.claims, "scopes": nil}}
	}
	headers := map[string]string{"host": "api.example", "content-type": "application/json", "authorization": "Bearer marker-token"}
	for name, value := range c.headers {
		headers[name] = value
	}
	event, err := json.Marshal(map[string]any{
		"version": "2.0", "routeKey": "$default", "rawPath": c.path, "rawQueryString": c.query,
		"headers": headers, "body": c.body, "isBase64Encoded": c.isBase64, "requestContext": requestContext,
	})
	if err != nil {
		t.Fatal(err)
	}
	return event
}

func (f *fixture) do(c call) answer {
	f.t.Helper()
	response, err := f.api.Lambda(f.t.Context(), c.event(f.t))
	if err != nil {
		f.t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	a := answer{t: f.t, status: response.StatusCode, headers: response.Headers, body: response.Body}
	describedAs(f.t, c, a)
	inPlainWords(f.t, c, a)
	return a
}

// key is a new idempotency key.
func (f *fixture) key() map[string]string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.counter++
	return keyed(fmt.Sprintf("key-%d", f.counter))
}

func keyed(key string) map[string]string { return map[string]string{"idempotency-key": key} }

func (f *fixture) post(path, body string, claims map[string]any, headers map[string]string) answer {
	f.t.Helper()
	return f.do(call{method: http.MethodPost, path: path, body: body, claims: claims, headers: headers})
}

func (f *fixture) get(path, query string, claims map[string]any) answer {
	f.t.Helper()
	return f.do(call{method: http.MethodGet, path: path, query: query, claims: claims})
}

// define makes a slot that costs 1000 KRW. further is members of the body, each in place
// of a default of the same name or beside them.
func (f *fixture) define(id string, capacity int, further ...string) {
	f.t.Helper()
	body := map[string]json.RawMessage{
		"resource_type": []byte(`"flight"`), "resource_id": []byte(`"KE0901"`), "capacity": []byte(strconv.Itoa(capacity)),
		"unit_amount": []byte("1000"), "currency": []byte(`"KRW"`), "open": []byte("true"),
	}
	for _, member := range further {
		if err := json.Unmarshal([]byte("{"+member+"}"), &body); err != nil {
			f.t.Fatal(err)
		}
	}
	text, err := json.Marshal(body)
	if err != nil {
		f.t.Fatal(err)
	}
	f.do(call{method: http.MethodPut, path: "/v1/slots/" + id, claims: catalog(), body: string(text)}).want(http.StatusCreated)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.slots = append(f.slots, ledger.SlotID(id))
}

// line is a request for quantity of one slot at its price.
func line(slot string, quantity int) string {
	return fmt.Sprintf(`{"lines":[{"slot_id":%q,"quantity":%d,"unit_amount":1000}]}`, slot, quantity)
}

// create asks for a hold.
func (f *fixture) create(who map[string]any, body string, headers map[string]string) answer {
	f.t.Helper()
	a := f.post("/v1/holds", body, who, headers)
	if a.status == http.StatusCreated {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		f.holds = append(f.holds, ledger.HoldID(a.text("hold_id")))
	}
	return a
}

// mustHold makes a hold and returns its id.
func (f *fixture) mustHold(who map[string]any, slot string, quantity int) string {
	f.t.Helper()
	a := f.create(who, line(slot, quantity), f.key())
	a.want(http.StatusCreated)
	return a.text("hold_id")
}

// counters checks available/held/confirmed/capacity of a slot.
func (f *fixture) counters(slot string, available, held, confirmed, capacity int) {
	f.t.Helper()
	a := f.get("/v1/slots/"+slot, "", catalog())
	a.want(http.StatusOK)
	got := fmt.Sprintf("%v/%v/%v/%v", a.json()["available"], a.json()["held"], a.json()["confirmed"], a.json()["capacity"])
	if want := fmt.Sprintf("%d/%d/%d/%d", available, held, confirmed, capacity); got != want {
		f.t.Errorf("slot %s is at %s, want %s", slot, got, want)
	}
}

// balanced checks the books over all slots, holds and reservations of the test.
func (f *fixture) balanced() {
	f.t.Helper()
	ledgertest.CheckBooks(f.t, f.store, f.slots, uniqueIDs(f.holds), uniqueIDs(f.reservations)...)
}

func uniqueIDs[ID comparable](ids []ID) []ID {
	seen := make(map[ID]bool, len(ids))
	var out []ID
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// in reports what is wrong with a to a subtest.
func (a answer) in(t testing.TB) answer {
	a.t = t
	return a
}

func (a answer) json() map[string]any {
	a.t.Helper()
	var value map[string]any
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		a.t.Fatalf("status %d, body %q: %v", a.status, a.body, err)
	}
	return value
}

func (a answer) text(member string) string {
	a.t.Helper()
	text, _ := a.json()[member].(string)
	return text
}

func (a answer) want(status int) {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d; body %s", a.status, status, a.body)
	}
}

// wantProblem checks that a is a well-formed problem of this code.
func (a answer) wantProblem(status int, code string) {
	a.t.Helper()
	if a.status != status || a.text("code") != code {
		a.t.Fatalf("status %d, code %q, want %d, %q; body %s", a.status, a.text("code"), status, code, a.body)
	}
	p := a.json()
	if a.headers["Content-Type"] != "application/problem+json" || p["type"] != "urn:holdfast:problem:"+code ||
		p["title"] == "" || p["detail"] == "" || p["request_id"] == "" || fmt.Sprint(p["status"]) != fmt.Sprint(status) {
		a.t.Errorf("not a whole problem: %v %s", a.headers, a.body)
	}
	if code == "sale_not_open" || code == "limit_reached" {
		return // when to ask again is told by some of these only; their own tests look
	}
	askAgain := status == http.StatusServiceUnavailable || code == "idempotency_in_progress" || code == "cooling_down" || code == "rate_limited"
	if retry := a.headers["Retry-After"]; (retry != "") != askAgain {
		a.t.Errorf("Retry-After is %q on %d %s", retry, status, code)
	}
}

// members lists one member of each object in a list of a's body.
func (a answer) members(list, member string) []string {
	a.t.Helper()
	var out []string
	items, _ := a.json()[list].([]any)
	for _, item := range items {
		out = append(out, fmt.Sprint(item.(map[string]any)[member]))
	}
	return out
}

// atOnce runs n callers that all start at the same moment.
func atOnce(n int, do func(i int)) {
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-start
			do(i)
		})
	}
	ready.Wait()
	close(start)
	done.Wait()
}

func encoded(body string) string { return base64.StdEncoding.EncodeToString([]byte(body)) }
