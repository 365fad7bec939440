package main

import (
	"crypto/md5"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/reconcile"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry/telemetrytest"
	"holdfast/shared/topology"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// The addresses of the queues; nobody listens there.
const (
	sagaQueueURL = "http://127.0.0.1:1/saga"
	dueQueueURL  = "http://127.0.0.1:1/due"
)

// cloud speaks the one call of EventBridge that a redrive makes, and the one of SQS.
type cloud struct {
	mutex    sync.Mutex
	status   int // of the answers of the bus
	calls    int // of the bus
	told     []string
	messages map[string][]string // by the address of the queue
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	var answer map[string]any
	switch r.Header.Get("X-Amz-Target") {
	case "AWSEvents.PutEvents":
		if c.calls++; c.status != http.StatusOK {
			w.WriteHeader(c.status)
			return
		}
		var call struct{ Entries []struct{ DetailType string } }
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
			http.Error(w, "not a PutEvents", http.StatusBadRequest)
			return
		}
		var accepted []map[string]string
		for _, entry := range call.Entries {
			c.told = append(c.told, entry.DetailType)
			accepted = append(accepted, map[string]string{"EventId": "envelope"})
		}
		answer = map[string]any{"FailedEntryCount": 0, "Entries": accepted}
	case "AmazonSQS.SendMessageBatch":
		var call struct {
			QueueURL string `json:"QueueUrl"`
			Entries  []struct {
				ID   string `json:"Id"`
				Body string `json:"MessageBody"`
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
			http.Error(w, "not a SendMessageBatch", http.StatusBadRequest)
			return
		}
		var taken []map[string]string
		for _, m := range call.Entries {
			c.messages[call.QueueURL] = append(c.messages[call.QueueURL], m.Body)
			taken = append(taken, map[string]string{"Id": m.ID, "MessageId": "message", "MD5OfMessageBody": fmt.Sprintf("%x", md5.Sum([]byte(m.Body)))})
		}
		answer = map[string]any{"Successful": taken}
	default:
		http.Error(w, "no such call", http.StatusBadRequest)
		return
	}
	_ = json.NewEncoder(w).Encode(answer) //nolint:errchkjson // the client sees a broken answer
}

func environment(t *testing.T, table, dynamoDB, endpoint string) {
	t.Helper()
	t.Setenv("HOLDFAST_STAGE", "local")
	t.Setenv("HOLDFAST_TABLE_NAME", table)
	t.Setenv("HOLDFAST_EVENT_BUS_NAME", "holdfast-events")
	t.Setenv("HOLDFAST_SAGA_QUEUE_URL", sagaQueueURL)
	t.Setenv("HOLDFAST_DUE_QUEUE_URL", dueQueueURL)
	t.Setenv("HOLDFAST_LOCAL_DYNAMODB_ENDPOINT", dynamoDB)
	t.Setenv("HOLDFAST_LOCAL_EVENTBRIDGE_ENDPOINT", endpoint)
	t.Setenv("HOLDFAST_LOCAL_SQS_ENDPOINT", endpoint)
}

// ledgerOfYesterday has a slot and a hold that expired yesterday, and a hold that was made
// so long ago. It returns the latter's id.
func ledgerOfYesterday(t *testing.T, client *dynamodb.Client, table string, ago time.Duration) ledger.HoldID {
	t.Helper()
	clock, random := systemtest.NewClock(time.Now().UTC().Add(-24*time.Hour).Truncate(time.Millisecond)), systemtest.NewRandom(7)
	c := commands.New(dynamo.NewStore(client, table, clock, random), clock, random)
	request := commands.Request{Actor: "owner:U-17", Owner: "U-17", RequestID: "request_test"}
	_, err := c.PutSlot(t.Context(), request, "seat", ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: "KE0901", Capacity: 5, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: 2},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Second)
	hold := func() ledger.Hold {
		var made ledger.Hold
		_, err := c.CreateHold(t.Context(), request, commands.HoldWish{Quotes: []ledger.Quote{{Slot: "seat", Quantity: 1, UnitAmount: 1000}}},
			func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
				made = h
				return ledger.Response{}, nil
			})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	first := hold()
	clock.Set(first.ReleaseAt)
	if _, err := c.ExpireHold(t.Context(), first.ID, "request_expire"); err != nil {
		t.Fatal(err)
	}
	clock.Set(time.Now().UTC().Add(-ago).Truncate(time.Millisecond))
	return hold().ID
}

// The real wiring, against a real table: what is unpublished since yesterday goes out over
// HTTP and is marked, what is new is left to the stream, the lag is told, and so is a bus
// that is down. The sample tick starts it.
func TestTheWiringWorks(t *testing.T) {
	tick, err := os.ReadFile("../../events/lambda/reconcile.json")
	if err != nil {
		t.Fatal(err)
	}
	client, table := dynamotest.NewTable(t)
	c := &cloud{status: http.StatusInternalServerError, messages: map[string][]string{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	environment(t, table, *client.Options().BaseEndpoint, server.URL)
	output := telemetrytest.Output(t)
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	young := ledgerOfYesterday(t, client, table, time.Minute)
	if err := handle(t.Context(), tick); err != nil {
		t.Errorf("with the bus down: %v", err)
	}
	if log := output(); len(c.told) > 0 || !strings.Contains(log, `"outbox_republished":0`) || !strings.Contains(log, `"outbox_unpublished_lag_seconds_max":864`) {
		t.Errorf("with the bus down: published %v, log %s", c.told, log)
	}
	if c.calls != outbox.TriesMax {
		t.Errorf("the bus was called %d times, want %d", c.calls, outbox.TriesMax)
	}
	c.mutex.Lock()
	c.status = http.StatusOK
	c.mutex.Unlock()
	for range 2 { // the second one finds nothing old
		if err := handle(t.Context(), tick); err != nil {
			t.Error(err)
		}
	}
	if want := []string{"slot.created", "hold.created", "hold.expired"}; !slices.Equal(c.told, want) || len(c.messages) > 0 {
		t.Errorf("published %v, want %v; messages %v", c.told, want, c.messages)
	}
	store := dynamo.NewStore(client, table, systemtest.NewClock(time.Now()), systemtest.NewRandom(1))
	item := ledger.EventItem{PartitionKey: "HOLD#" + string(young), SortKey: "EVENT#0000000001"}
	if left, err := store.UnpublishedEvents(t.Context(), []ledger.EventItem{item}); err != nil || len(left) != 1 {
		t.Errorf("the young event: %v, %v", left, err)
	}
	if log := output(); strings.Count(log, `"reconcile_heartbeat":1`) != 3 || strings.Count(log, `"outbox_quarantine_size":0`) != 3 {
		t.Errorf("log %s", log)
	}
}

// What is waiting gets its due message from a redrive too.
func TestARedriveSendsDueMessages(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	c := &cloud{status: http.StatusOK, messages: map[string][]string{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	environment(t, table, *client.Options().BaseEndpoint, server.URL)
	telemetrytest.Output(t) // what is logged is not looked at
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// A hold lives for ten minutes, so this one is over, and the sweep may be about to look.
	id := ledgerOfYesterday(t, client, table, reconcile.RedriveAge+10*time.Second)
	if err := handle(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if due := c.messages[dueQueueURL]; len(due) != 1 || !strings.Contains(due[0], string(id)) {
		t.Errorf("messages %v", c.messages)
	}
}

// The time-out leaves time to count the quarantine after the longest redrive.
func TestTheTimeOutIsLongEnough(t *testing.T) {
	f, found := topology.FunctionNamed(topology.FunctionReconcile)
	if !found || f.Timeout < reconcile.RedriveFor+outbox.MarginBeforeDeadline+reconcile.LookFor+reconcile.MarginBeforeDeadline {
		t.Errorf("a time-out of %s", f.Timeout)
	}
}

func TestAWrongEnvironmentStopsTheStart(t *testing.T) {
	environment(t, "holdfast", "", "")
	t.Setenv("HOLDFAST_DUE_QUEUE_URL", "no address")
	if _, err := compose(t.Context()); err == nil || !strings.Contains(err.Error(), "HOLDFAST_DUE_QUEUE_URL") {
		t.Errorf("compose: %v", err)
	}
}
