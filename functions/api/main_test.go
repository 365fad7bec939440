package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/shared/config"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// event is a request in payload format 2.0.
func event(t *testing.T, method, path, body, scope string) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"version": "2.0", "rawPath": path, "body": body,
		"headers": map[string]string{"content-type": "application/json", "idempotency-key": "key-1"},
		"requestContext": map[string]any{
			"requestId": "request-1", "stage": "$default", "http": map[string]string{"method": method},
			"authorizer": map[string]any{"jwt": map[string]any{"claims": map[string]string{"sub": "U-17", "scope": scope, "groups": "[ops]"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// sender composes the function on a new table and sends it requests, whose status must be
// the one that is named.
func sender(t *testing.T) func(method, path, body, scope string, status int) map[string]any {
	t.Helper()
	client, table := dynamotest.NewTable(t)
	return senderTo(t, table, *client.Options().BaseEndpoint)
}

// senderTo composes the function on a table at endpoint.
func senderTo(t *testing.T, table, endpoint string) func(method, path, body, scope string, status int) map[string]any {
	t.Helper()
	t.Setenv("HOLDFAST_STAGE", "local")
	t.Setenv("HOLDFAST_TABLE_NAME", table)
	t.Setenv("HOLDFAST_OPERATOR_GROUP", "ops")
	t.Setenv("HOLDFAST_PAYMENT_SECRET_ID", "payment")
	t.Setenv("HOLDFAST_LOCAL_DYNAMODB_ENDPOINT", endpoint)
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func(method, path, body, scope string, status int) map[string]any {
		t.Helper()
		response, err := handle(t.Context(), event(t, method, path, body, scope))
		if err != nil || response.StatusCode != status {
			t.Fatalf("%s %s: %d %s, %v; want %d", method, path, response.StatusCode, response.Body, err, status)
		}
		var value map[string]any
		if err := json.Unmarshal([]byte(response.Body), &value); err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// The real wiring, against a real table: a slot is defined, held and confirmed, and the
// same create is answered the same again.
func TestTheWiringWorks(t *testing.T) {
	send := sender(t)
	send(http.MethodGet, "/v1/health", "", "", http.StatusOK)
	send(http.MethodPut, "/v1/slots/seat", `{"resource_type":"flight","resource_id":"KE0901","capacity":3,"unit_amount":1000,"currency":"KRW","open":true,"shards":2}`,
		"catalog", http.StatusCreated)
	const body = `{"slot_ids":["seat"],"quantity":3,"quoted_price":1000}`
	hold := send(http.MethodPost, "/v1/holds", body, "holds", http.StatusCreated)
	if again := send(http.MethodPost, "/v1/holds", body, "holds", http.StatusCreated); fmt.Sprint(again) != fmt.Sprint(hold) {
		t.Errorf("asked again: %v, want %v", again, hold)
	}
	path := fmt.Sprintf("/v1/holds/%s", hold["hold_id"])
	if got := send(http.MethodPost, path+"/confirm", `{"payment_reference":"pay-1"}`, "confirm", http.StatusOK); got["status"] != "CONFIRMED" {
		t.Errorf("confirmed: %v", got)
	}
	slot := send(http.MethodGet, "/v1/slots/seat", "", "catalog", http.StatusOK)
	if slot["confirmed"] != 3.0 || slot["available"] != 0.0 || slot["held"] != 0.0 {
		t.Errorf("slot: %v", slot)
	}
	send(http.MethodPost, "/v1/holds", strings.Replace(body, `"quantity":3`, `"quantity":1`, 1), "holds", http.StatusUnprocessableEntity)
}

// The queue of what waits for a person is wired to the parked holds and the quarantined
// events of the real table.
func TestTheReviewQueueIsWired(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	send := senderTo(t, table, *client.Options().BaseEndpoint)
	send(http.MethodPut, "/v1/slots/seat", `{"resource_type":"flight","resource_id":"KE0901","capacity":3,"unit_amount":1000,"currency":"KRW","open":true}`,
		"catalog", http.StatusCreated)
	made := send(http.MethodPost, "/v1/holds", `{"slot_ids":["seat"],"quantity":1,"quoted_price":1000}`, "holds", http.StatusCreated)
	store := dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})
	hold, err := store.Hold(t.Context(), ledger.HoldID(fmt.Sprint(made["hold_id"])))
	if err != nil {
		t.Fatal(err)
	}
	if parked, err := store.Park(t.Context(), ledger.DueHold{ID: hold.ID, DueAt: hold.ReleaseAt}, 3, hold.ReleaseAt); err != nil || !parked {
		t.Fatalf("parked %t, %v", parked, err)
	}
	item := ledger.EventItem{PartitionKey: "HOLD#" + string(hold.ID), SortKey: "EVENT#0000000001"}
	if err := store.Quarantine(t.Context(), item, "too_large", time.Now()); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, c := range send(http.MethodGet, "/v1/reviews", "", "operate", http.StatusOK)["reviews"].([]any) {
		kinds = append(kinds, fmt.Sprint(c.(map[string]any)["kind"]))
	}
	if fmt.Sprint(kinds) != "[expiry event]" {
		t.Errorf("listed are %v", kinds)
	}
}

// The real clients measure the real clock: in front of the table is a server whose date is
// an hour ahead, and no hold is made until it tells the truth.
func TestAWrongClockMakesNoHold(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	target, err := url.Parse(*client.Options().BaseEndpoint)
	if err != nil {
		t.Fatal(err)
	}
	var ahead atomic.Int64
	ahead.Store(int64(time.Hour))
	liar := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(r *http.Response) error {
			r.Header.Set("Date", time.Now().UTC().Add(time.Duration(ahead.Load())).Format(http.TimeFormat))
			return nil
		},
	})
	t.Cleanup(liar.Close)
	send := senderTo(t, table, liar.URL)
	send(http.MethodPut, "/v1/slots/seat", `{"resource_type":"flight","resource_id":"KE0901","capacity":3,"unit_amount":1000,"currency":"KRW","open":true}`,
		"catalog", http.StatusCreated)
	const body = `{"slot_ids":["seat"],"quantity":3,"quoted_price":1000}`
	if p := send(http.MethodPost, "/v1/holds", body, "holds", http.StatusServiceUnavailable); p["code"] != "clock_unreliable" {
		t.Errorf("refused with %v", p["code"])
	}
	if slot := send(http.MethodGet, "/v1/slots/seat", "", "catalog", http.StatusOK); slot["available"] != 3.0 {
		t.Errorf("slot: %v", slot)
	}
	ahead.Store(0)
	send(http.MethodPost, "/v1/holds", body, "holds", http.StatusCreated)
}

// Case G1: a fault of ours leaves a line that CloudWatch counts, and other answers none.
func TestCaseG1_AFaultIsCounted(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	stdout := os.Stdout
	os.Stdout = out
	t.Cleanup(func() {
		os.Stdout = stdout
		if err := out.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("HOLDFAST_STAGE", "local")
	t.Setenv("HOLDFAST_TABLE_NAME", "holdfast")
	t.Setenv("HOLDFAST_OPERATOR_GROUP", "ops")
	t.Setenv("HOLDFAST_PAYMENT_SECRET_ID", "payment")
	t.Setenv("HOLDFAST_LOCAL_DYNAMODB_ENDPOINT", "http://127.0.0.1:1")
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		event  json.RawMessage
		status int
		faults int
	}{
		{event(t, http.MethodGet, "/v1/health", "", ""), http.StatusOK, 0},
		{event(t, http.MethodGet, "/v1/slots/seat", "", "catalog"), http.StatusServiceUnavailable, 0},
		{json.RawMessage(`"no event of a gateway"`), http.StatusInternalServerError, 1},
	} {
		response, err := handle(t.Context(), c.event)
		if err != nil || response.StatusCode != c.status {
			t.Errorf("%.60s: %d %s, %v; want %d", c.event, response.StatusCode, response.Body, err, c.status)
		}
		written, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(string(written), `"api_internal_faults":1`); got != c.faults {
			t.Errorf("%.60s: %d faults are counted, want %d:\n%s", c.event, got, c.faults, written)
		}
	}
}

// When the database cannot be reached the answer is 503, and nothing hangs.
func TestNoDatabaseIsUnavailable(t *testing.T) {
	t.Setenv("HOLDFAST_STAGE", "local")
	t.Setenv("HOLDFAST_TABLE_NAME", "holdfast")
	t.Setenv("HOLDFAST_OPERATOR_GROUP", "ops")
	t.Setenv("HOLDFAST_PAYMENT_SECRET_ID", "payment")
	t.Setenv("HOLDFAST_LOCAL_DYNAMODB_ENDPOINT", "http://127.0.0.1:1")
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	response, err := handle(t.Context(), event(t, http.MethodGet, "/v1/slots/seat", "", "catalog"))
	if err != nil || response.StatusCode != http.StatusServiceUnavailable || response.Headers["Retry-After"] == "" {
		t.Errorf("%d %s, %v", response.StatusCode, response.Body, err)
	}
}

func TestAWrongEnvironmentStopsTheStart(t *testing.T) {
	for _, name := range []string{"HOLDFAST_STAGE", "HOLDFAST_TABLE_NAME", "HOLDFAST_OPERATOR_GROUP"} {
		t.Setenv(name, "")
	}
	if _, err := compose(t.Context()); err == nil || !strings.Contains(err.Error(), "HOLDFAST_TABLE_NAME") {
		t.Errorf("compose says %v", err)
	}
}

// A deployed function brakes owners; a local run, where one owner stands for all, does not.
func TestOwnersAreLimitedWhereItIsDeployed(t *testing.T) {
	if got := ownerRate(config.Config{Stage: config.StageProd}); got != httpapi.DefaultOwnerRate() || got.PerSecond < 1 || got.Burst < 1 {
		t.Errorf("a deployed function has the rate %+v", got)
	}
	if got := ownerRate(config.Config{Stage: config.StageLocal, LocalDynamoDBEndpoint: "http://127.0.0.1:1"}); got != (httpapi.OwnerRate{}) {
		t.Errorf("a local run has the rate %+v", got)
	}
}

// The machine of a deployed function has no list of time zones, so the binary brings one.
func TestTheBinaryBringsTimeZones(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "main.go", nil, parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"time/tzdata"` }) {
		t.Error("main.go does not import time/tzdata")
	}
}
