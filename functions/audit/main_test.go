package main

import (
	"crypto/md5"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/shared/archive/archivetest"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/objects"
	"holdfast/shared/reconcile"
	"holdfast/shared/system"
	"holdfast/shared/telemetry/telemetrytest"
	"holdfast/shared/topology"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

const bucketName = "holdfast-audit"

// queue speaks the one call of SQS that the function makes.
type queue struct {
	mutex  sync.Mutex
	bodies []string
}

func (q *queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var call struct {
		Entries []struct {
			ID   string `json:"Id"`
			Body string `json:"MessageBody"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil || r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessageBatch" {
		http.Error(w, "not a SendMessageBatch", http.StatusBadRequest)
		return
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	var taken []map[string]string
	for _, m := range call.Entries {
		q.bodies = append(q.bodies, m.Body)
		taken = append(taken, map[string]string{"Id": m.ID, "MessageId": "message", "MD5OfMessageBody": fmt.Sprintf("%x", md5.Sum([]byte(m.Body)))})
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(map[string]any{"Successful": taken}) //nolint:errchkjson // the client sees a broken answer
}

// take takes the first message, as an event of the queue.
func (q *queue) take(t *testing.T) (event json.RawMessage, found bool) {
	t.Helper()
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if len(q.bodies) == 0 {
		return nil, false
	}
	event, err := json.Marshal(map[string]any{"Records": []map[string]string{{"messageId": "m-1", "body": q.bodies[0]}}})
	if err != nil {
		t.Fatal(err)
	}
	q.bodies = q.bodies[1:]
	return event, true
}

// environment is what the function finds in a local run.
func environment(t *testing.T, table, dynamoDB string) (*archivetest.Bucket, *queue) {
	t.Helper()
	bucket, messages := archivetest.NewBucket(bucketName), &queue{}
	buckets, queues := httptest.NewServer(bucket), httptest.NewServer(messages)
	t.Cleanup(buckets.Close)
	t.Cleanup(queues.Close)
	for name, value := range map[string]string{
		"HOLDFAST_STAGE": "local", "HOLDFAST_TABLE_NAME": table, "HOLDFAST_PAYMENT_SECRET_ID": "payment-secret",
		"HOLDFAST_AUDIT_QUEUE_URL": queues.URL + "/audit", "HOLDFAST_AUDIT_BUCKET_NAME": bucketName,
		"HOLDFAST_AUDIT_EVERY_SECONDS": "3600", "HOLDFAST_AUDIT_REPAIR": "certain",
		"HOLDFAST_LOCAL_DYNAMODB_ENDPOINT": dynamoDB, "HOLDFAST_LOCAL_SQS_ENDPOINT": queues.URL, "HOLDFAST_LOCAL_S3_ENDPOINT": buckets.URL,
		"HOLDFAST_LOCAL_SECRETS_ENDPOINT": "http://127.0.0.1:1", "HOLDFAST_LOCAL_STRIPE_ENDPOINT": "http://127.0.0.1:1",
	} {
		t.Setenv(name, value)
	}
	return bucket, messages
}

// The real wiring, against a real table and over HTTP: the sample tick begins an audit, its
// messages bring it to its end, and a second tick has nothing to do. That the payment
// provider does not answer keeps nothing else from being told.
func TestTheWiringWorks(t *testing.T) {
	tick, err := os.ReadFile("../../events/lambda/audit_tick.json")
	if err != nil {
		t.Fatal(err)
	}
	client, table := dynamotest.NewTable(t)
	bucket, messages := environment(t, table, *client.Options().BaseEndpoint)
	output := telemetrytest.Output(t)
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if answer, err := handle(t.Context(), tick); err != nil || answer != nil {
			t.Fatalf("%v, %v", answer, err)
		}
		for event, found := messages.take(t); found; event, found = messages.take(t) {
			answer, err := handle(t.Context(), event)
			if text, _ := json.Marshal(answer); err != nil || string(text) != `{"batchItemFailures":[]}` { //nolint:errchkjson // an empty text is no such answer
				t.Fatalf("%s: %s, %v; log %s", event, text, err, output())
			}
		}
	}
	shelf := reconcile.NewShelf(objects.NewBucket(bucket, bucketName, system.RealClock{}, system.RealRandom{}))
	report, settlement, found, err := shelf.Last(t.Context(), time.Now())
	if err != nil || !found || settlement == nil || len(report.Report.Findings) > 0 || report.Segments != reconcile.FanoutSegments {
		t.Errorf("report %+v, settlement %v, %v", report, settlement, err)
	}
	if report.Report.Uncompared == "" || report.Report.Unsettled != 1 {
		t.Errorf("nothing tells that the provider was not asked: %+v", report.Report)
	}
	if log := output(); strings.Count(log, `"audit_heartbeat":1`) != 1 || strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("log %s", log)
	}
	if violations := bucket.Violations(); len(violations) > 0 {
		t.Error(violations)
	}
}

// A part may take as long as Lambda allows, and has ended when the next tick looks what is
// missing.
func TestTheTimesFitTogether(t *testing.T) {
	f, found := topology.FunctionNamed(topology.FunctionAudit)
	if !found || reconcile.TaskFor+reconcile.MarginBeforeTaskDeadline > f.Timeout || f.Timeout >= f.Schedule.Every {
		t.Errorf("tasks of %s, a time-out of %s, ticks every %s", reconcile.TaskFor, f.Timeout, f.Schedule.Every)
	}
	if f.MemoryMiB > 512 {
		t.Errorf("a worker has %d MiB", f.MemoryMiB)
	}
}

// A local run that might reach a real service does not start, and neither does a function
// whose environment is not complete.
func TestAnIncompleteEnvironmentStopsTheStart(t *testing.T) {
	for _, name := range []string{
		"HOLDFAST_LOCAL_SQS_ENDPOINT", "HOLDFAST_LOCAL_S3_ENDPOINT", "HOLDFAST_LOCAL_SECRETS_ENDPOINT", "HOLDFAST_LOCAL_STRIPE_ENDPOINT",
		"HOLDFAST_AUDIT_QUEUE_URL", "HOLDFAST_AUDIT_REPAIR",
	} {
		environment(t, "holdfast", "http://127.0.0.1:1")
		t.Setenv(name, "")
		if _, err := compose(t.Context()); err == nil {
			t.Errorf("it starts without %s", name)
		}
	}
}
