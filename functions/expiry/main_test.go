package main

import (
	"context"
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

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/commands"
	"holdfast/shared/due"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry/telemetrytest"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

const slotID ledger.SlotID = "seat"

// The addresses of the queues; nobody listens there.
const (
	dueQueueURL    = "http://127.0.0.1:1/due"
	failedQueueURL = "http://127.0.0.1:1/expiry-failed"
)

// queues speak the one call of SQS that the function makes.
type queues struct {
	mutex sync.Mutex
	sent  []sentMessage
}

type sentMessage struct {
	QueueURL     string `json:"QueueUrl"`
	Body         string `json:"MessageBody"`
	DelaySeconds int
}

func (q *queues) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var message sentMessage
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil || r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessage" {
		http.Error(w, "not a SendMessage", http.StatusBadRequest)
		return
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.sent = append(q.sent, message)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_, _ = fmt.Fprintf(w, `{"MessageId":"m","MD5OfMessageBody":"%x"}`, md5.Sum([]byte(message.Body)))
}

// environment is what the function finds in a local run.
func environment(t *testing.T, table, endpoint string) *queues {
	t.Helper()
	q := &queues{}
	server := httptest.NewServer(q)
	t.Cleanup(server.Close)
	t.Setenv("HOLDFAST_STAGE", "local")
	t.Setenv("HOLDFAST_TABLE_NAME", table)
	t.Setenv("HOLDFAST_SWEEP_PAGE_ITEMS", "100")
	t.Setenv("HOLDFAST_DUE_QUEUE_URL", dueQueueURL)
	t.Setenv("HOLDFAST_EXPIRY_FAILED_QUEUE_URL", failedQueueURL)
	t.Setenv("HOLDFAST_LOCAL_DYNAMODB_ENDPOINT", endpoint)
	t.Setenv("HOLDFAST_LOCAL_SQS_ENDPOINT", server.URL)
	return q
}

func makeHold(t *testing.T, c *commands.Commands) ledger.HoldID {
	t.Helper()
	var id ledger.HoldID
	_, err := c.CreateHold(t.Context(), commands.Request{Actor: "owner:U-17", Owner: "U-17", RequestID: "request_test"},
		commands.HoldWish{Quotes: []ledger.Quote{{Slot: slotID, Quantity: 1, UnitAmount: 1000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			id = h.ID
			return ledger.Response{Status: 201}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// putSlot opens a slot of five units an hour ago, and returns the commands of that time.
func putSlot(t *testing.T, store *dynamo.Store) *commands.Commands {
	t.Helper()
	past := commands.New(store, systemtest.NewClock(time.Now().Add(-time.Hour)), system.RealRandom{})
	_, err := past.PutSlot(t.Context(), commands.Request{Actor: "service:catalog", RequestID: "request_test"}, slotID, ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: "KE0901", Capacity: 5, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: 2},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return past
}

// The real wiring, against a real table: one tick ends what is over, leaves what is not,
// and reports both.
func TestTheWiringWorks(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	environment(t, table, *client.Options().BaseEndpoint)
	output := telemetrytest.Output(t)
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})
	past := putSlot(t, store)
	want := map[ledger.HoldID]ledger.Status{}
	for range 3 {
		want[makeHold(t, past)] = ledger.StatusExpired
	}
	want[makeHold(t, commands.New(store, system.RealClock{}, system.RealRandom{}))] = ledger.StatusHeld

	tick, err := os.ReadFile("../../events/lambda/expiry.json")
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := handle(t.Context(), tick); err != nil || answer != nil {
		t.Fatalf("%v, %v", answer, err)
	}
	for id, status := range want {
		if hold, err := store.Hold(t.Context(), id); err != nil || hold.Status != status {
			t.Errorf("hold %s is %s, %v; want %s", id, hold.Status, err, status)
		}
	}
	stock, err := store.Stock(t.Context(), []ledger.Slot{{ID: slotID, Terms: ledger.Terms{Shards: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	var total ledger.Counters
	for _, s := range stock {
		total = total.Plus(s.Counters)
	}
	if total != (ledger.Counters{Available: 4, Held: 1, Capacity: 5}) {
		t.Errorf("stock: %+v", total)
	}
	mustReport(t, output())
}

// mustReport requires one line of metrics, with the lag of holds that were over for 50
// minutes.
func mustReport(t *testing.T, output string) {
	t.Helper()
	var lines []map[string]any
	for line := range strings.SplitSeq(strings.TrimSpace(output), "\n") {
		var members map[string]any
		if err := json.Unmarshal([]byte(line), &members); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if _, metrics := members["_aws"]; metrics {
			lines = append(lines, members)
		}
	}
	if len(lines) != 1 {
		t.Fatalf("%d lines of metrics: %s", len(lines), output)
	}
	lag, _ := lines[0]["expiry_lag_seconds_max"].(float64)
	if lag < 3000 || lag > 3060 || lines[0]["expiry_released"] != 3.0 || lines[0]["expiry_heartbeat"] != 1.0 || lines[0]["stage"] != "local" {
		t.Errorf("reported %v", lines[0])
	}
}

// A table that can't be read is an error, never a sweep that had nothing to do.
func TestAnUnreachableTableIsAnError(t *testing.T) {
	environment(t, "no-such-table", *dynamotest.Engine(t).Client().Options().BaseEndpoint)
	output := telemetrytest.Output(t)
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := handle(ctx, json.RawMessage(`{}`)); err == nil {
		t.Error("the sweep of a table that does not exist succeeds")
	}
	if got := output(); strings.Contains(got, `"expiry_lag_seconds_max":`) || !strings.Contains(got, `"expiry_heartbeat":0`) {
		t.Errorf("reported %s", got)
	}
}

func TestAWrongEnvironmentStopsTheStart(t *testing.T) {
	t.Setenv("HOLDFAST_STAGE", "prod")
	t.Setenv("HOLDFAST_TABLE_NAME", "holdfast")
	t.Setenv("HOLDFAST_SWEEP_PAGE_ITEMS", "5000")
	if _, err := compose(t.Context()); err == nil || !strings.Contains(err.Error(), "HOLDFAST_SWEEP_PAGE_ITEMS") {
		t.Errorf("compose: %v", err)
	}
}

// A local run that does not name its server of queues must not reach the real ones.
func TestALocalRunNamesItsQueues(t *testing.T) {
	environment(t, "holdfast", "http://127.0.0.1:1")
	t.Setenv("HOLDFAST_LOCAL_SQS_ENDPOINT", "")
	if _, err := compose(t.Context()); err == nil || !strings.Contains(err.Error(), "queues") {
		t.Errorf("compose: %v", err)
	}
}

// A due message ends its hold on the real table, and one before its time goes back into
// the real queue's call with the time that is left.
func TestDueMessagesAreWiredToo(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	q := environment(t, table, *client.Options().BaseEndpoint)
	output := telemetrytest.Output(t)
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})
	over := makeHold(t, putSlot(t, store))
	young := makeHold(t, commands.New(store, system.RealClock{}, system.RealRandom{}))
	var batch events.SQSEvent
	for _, id := range []ledger.HoldID{over, young} {
		batch.Records = append(batch.Records, events.SQSMessage{MessageId: string(id), Body: mustMessage(t, store, id)})
	}
	event, err := json.Marshal(batch)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := handle(t.Context(), event)
	if response, is := answer.(events.SQSEventResponse); err != nil || !is || len(response.BatchItemFailures) != 0 {
		t.Errorf("%#v, %v", answer, err)
	}
	for id, status := range map[ledger.HoldID]ledger.Status{over: ledger.StatusExpired, young: ledger.StatusHeld} {
		if hold, err := store.Hold(t.Context(), id); err != nil || hold.Status != status {
			t.Errorf("hold %s is %s, %v; want %s", id, hold.Status, err, status)
		}
	}
	if len(q.sent) != 1 || q.sent[0].QueueURL != dueQueueURL || q.sent[0].Body != batch.Records[1].Body || q.sent[0].DelaySeconds < 590 {
		t.Errorf("sent %+v", q.sent)
	}
	if got := output(); !strings.Contains(got, `"due_released":1`) || !strings.Contains(got, `"due_forwarded":1`) {
		t.Errorf("reported %s", got)
	}
}

func mustMessage(t *testing.T, store *dynamo.Store, id ledger.HoldID) string {
	t.Helper()
	hold, err := store.Hold(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	dueAt, _ := hold.DueAt()
	body, err := due.Message{Hold: id, DueAt: dueAt}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// A hold whose item can't be read fails three ticks, is parked at the third, and is told to
// people; all along its neighbour ends. Once the item is repaired, the hold ends too.
func TestAnUnreadableHoldIsParked(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	q := environment(t, table, *client.Options().BaseEndpoint)
	output := telemetrytest.Output(t)
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store := dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})
	past := putSlot(t, store)
	bad := makeHold(t, past)
	dueAt := mustHold(t, store, bad).ReleaseAt
	lines := spoil(t, client, table, bad, &types.AttributeValueMemberS{Value: "not a list"})
	for i := range 3 {
		neighbour := makeHold(t, past)
		if _, err := handle(t.Context(), json.RawMessage(`{}`)); err != nil {
			t.Fatalf("tick %d: %v", i+1, err)
		}
		if hold := mustHold(t, store, neighbour); hold.Status != ledger.StatusExpired {
			t.Errorf("tick %d left a neighbour %s", i+1, hold.Status)
		}
		if len(q.sent) != i/2 {
			t.Errorf("after tick %d: sent %+v", i+1, q.sent)
		}
	}
	told := fmt.Sprintf(`{"hold_id":%q,"due_at":%q,"failures":3,"code":"internal"}`, bad, dueAt.Format("2006-01-02T15:04:05.000Z"))
	if len(q.sent) != 1 || q.sent[0] != (sentMessage{QueueURL: failedQueueURL, Body: told}) {
		t.Errorf("sent %+v, want %s", q.sent, told)
	}
	shard := ledger.DueShard(bad)
	parked, _, err := store.Parked(t.Context(), shard, ledger.Page{Limit: 10})
	if err != nil || len(parked) != 1 || parked[0].ID != bad {
		t.Fatalf("parked %+v, %v", parked, err)
	}
	if _, err := handle(t.Context(), json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if again, _, err := store.Parked(t.Context(), shard, ledger.Page{Limit: 10}); err != nil || !slices.Equal(again, parked) {
		t.Errorf("a tick before its time moved %+v to %+v, %v", parked, again, err)
	}
	if got := output(); !strings.Contains(got, `"expiry_parked":1`) || !strings.Contains(got, `"expiry_ghosts":1`) {
		t.Errorf("reported %s", got)
	}
	spoil(t, client, table, bad, lines)
	if done, err := store.Unpark(t.Context(), parked[0]); !done || err != nil {
		t.Fatalf("unparked %t, %v", done, err)
	}
	if _, err := handle(t.Context(), json.RawMessage(`{}`)); err != nil {
		t.Fatal(err)
	}
	if hold := mustHold(t, store, bad); hold.Status != ledger.StatusExpired {
		t.Errorf("the repaired hold is %s", hold.Status)
	}
}

func mustHold(t *testing.T, store *dynamo.Store, id ledger.HoldID) ledger.Hold {
	t.Helper()
	hold, err := store.Hold(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return hold
}

// spoil puts other lines into the hold's item, and returns those that it had.
func spoil(t *testing.T, client *dynamodb.Client, table string, id ledger.HoldID, lines types.AttributeValue) types.AttributeValue {
	t.Helper()
	out, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &table,
		Key: map[string]types.AttributeValue{
			dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: "HOLD#" + string(id)},
			dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: "HOLD"},
		},
		UpdateExpression:          new("SET #l = :l"),
		ExpressionAttributeNames:  map[string]string{"#l": "lines"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":l": lines},
		ReturnValues:              types.ReturnValueUpdatedOld,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes["lines"]
}
