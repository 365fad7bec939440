package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/scripts/internal/cloud"
	"holdfast/shared/archive"
	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
)

func TestMain(m *testing.M) { dynamotest.Main(tests{m}) }

// tests are those of this package, with a folder for what all of them need.
type tests struct{ m *testing.M }

// emulator is the program of the emulator, which the first test that wants it builds: linking
// it takes longer than most tests.
var emulator func() (string, error)

// Run runs the tests.
func (t tests) Run() int {
	folder, err := os.MkdirTemp("", "ops")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	emulator = sync.OnceValues(func() (string, error) { return cloud.Build(context.Background(), "../..", folder) })
	return t.m.Run()
}

const (
	slotID     ledger.SlotID = "seat"
	busName                  = "holdfast"
	bucketName               = "holdfast-archive"
	day                      = 24 * time.Hour
	// arrivalMax bounds the wait for an event.
	arrivalMax = time.Minute
)

// world is a stage with all that the tool works on: a table of the real engine, and an
// event bus, queues and a bucket of the emulator.
type world struct {
	t           *testing.T
	client      *dynamodb.Client
	table       string
	cloud       *cloud.Cloud
	told        <-chan string
	due         cloud.Queue
	environment string // the file
	clock       *systemtest.Clock
	store       *dynamo.Store
	shop        *commands.Commands
}

// newWorld is a stage as it was so long ago, with one slot.
func newWorld(t *testing.T, ago time.Duration) *world {
	t.Helper()
	w := &world{t: t, clock: systemtest.NewClock(time.Now().UTC().Truncate(time.Millisecond).Add(-ago))}
	w.client, w.table = dynamotest.NewTable(t)
	program, err := emulator()
	w.check(err)
	w.cloud, err = cloud.Start(t.Context(), program, io.Discard)
	w.check(err)
	t.Cleanup(w.cloud.Close)
	w.check(w.cloud.CreateBus(t.Context(), busName))
	w.check(w.cloud.CreateBucket(t.Context(), bucketName))
	w.due = w.queue("due")
	w.listen()
	endpoint := w.cloud.Endpoint
	w.environment = mustWriteEnvironment(t, map[string]string{
		"HOLDFAST_STAGE": "local", "HOLDFAST_TABLE_NAME": w.table, "HOLDFAST_EVENT_BUS_NAME": busName,
		"HOLDFAST_SAGA_QUEUE_URL": w.queue("saga").URL, "HOLDFAST_DUE_QUEUE_URL": w.due.URL,
		"HOLDFAST_EXPIRY_FAILED_QUEUE_URL": w.queue("failed").URL, "HOLDFAST_SWEEP_PAGE_ITEMS": "100",
		"HOLDFAST_ARCHIVE_BUCKET_NAME": bucketName, "HOLDFAST_ARCHIVE_HOLDS_AFTER_DAYS": "30",
		"HOLDFAST_ARCHIVE_RESERVATIONS_AFTER_DAYS": "400", "HOLDFAST_OPERATOR_GROUP": "ops", "HOLDFAST_PAYMENT_SECRET_ID": "payment",
		"HOLDFAST_LOCAL_DYNAMODB_ENDPOINT":    *w.client.Options().BaseEndpoint,
		"HOLDFAST_LOCAL_EVENTBRIDGE_ENDPOINT": endpoint, "HOLDFAST_LOCAL_SQS_ENDPOINT": endpoint, "HOLDFAST_LOCAL_S3_ENDPOINT": endpoint,
	})
	w.store = dynamo.NewStore(w.client, w.table, w.clock, system.RealRandom{})
	w.shop = commands.New(w.store, w.clock, system.RealRandom{})
	w.define(ledger.DefaultPolicy())
	return w
}

// define makes or changes the slot, to be promised by the policy.
func (w *world) define(policy ledger.Policy) {
	w.t.Helper()
	_, err := w.shop.PutSlot(w.t.Context(), commands.Request{Actor: "service:catalog", RequestID: "request_test"}, slotID, ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: "KE0901", Capacity: 5, Policy: policy,
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: 1},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	w.check(err)
}

func mustWriteEnvironment(t *testing.T, environment map[string]string) string {
	t.Helper()
	text, err := json.Marshal(environment)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "environment.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) queue(name string) cloud.Queue {
	w.t.Helper()
	queue, err := w.cloud.CreateQueue(w.t.Context(), name)
	w.check(err)
	return queue
}

func (w *world) owner() commands.Request {
	return commands.Request{Actor: "owner:U-17", Owner: "U-17", RequestID: "request_test"}
}

// hold holds one unit.
func (w *world) hold() ledger.Hold {
	w.t.Helper()
	made, err := w.tryHold()
	w.check(err)
	return made
}

// tryHold asks for one unit.
func (w *world) tryHold() (ledger.Hold, error) {
	var made ledger.Hold
	_, err := w.shop.CreateHold(w.t.Context(), w.owner(), commands.HoldWish{Quotes: []ledger.Quote{{Slot: slotID, Quantity: 1, UnitAmount: 1000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			made = h
			return ledger.Response{Status: 201}, nil
		})
	return made, err
}

// ops runs one command on the stage, and returns what it prints.
func (w *world) ops(name string, arguments ...string) string {
	w.t.Helper()
	var out bytes.Buffer
	if err := run(w.t.Context(), append([]string{name, "-environment", w.environment}, arguments...), &out); err != nil {
		w.t.Fatalf("ops %s %v: %v\n%s", name, arguments, err, out.String())
	}
	return out.String()
}

// opsJSON runs one command, and reads what it prints into value.
func (w *world) opsJSON(value any, name string, arguments ...string) {
	w.t.Helper()
	text := w.ops(name, append([]string{"-json"}, arguments...)...)
	if err := json.Unmarshal([]byte(text), value); err != nil {
		w.t.Fatalf("ops %s %v prints %s: %v", name, arguments, text, err)
	}
}

// status is what waits, by what it is.
func (w *world) status() map[string]waiting {
	w.t.Helper()
	var all []waiting
	w.opsJSON(&all, "status")
	byName := map[string]waiting{}
	for _, each := range all {
		byName[each.What] = each
	}
	return byName
}

// nextTold is the type of the next event that comes out of the bus.
func (w *world) nextTold() string {
	w.t.Helper()
	select {
	case body := <-w.told:
		event, err := cloud.ReadEvent(body)
		w.check(err)
		return event.DetailType
	case <-time.After(arrivalMax):
		return "nothing"
	}
}

// listen hands over what the bus tells, until the test ends.
func (w *world) listen() {
	w.t.Helper()
	queue := w.queue("told")
	w.check(w.cloud.Subscribe(w.t.Context(), busName, queue))
	told := make(chan string, 100)
	w.told = told
	ctx, cancel := context.WithCancel(w.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.cloud.Consume(ctx, queue, slog.New(slog.DiscardHandler), func(_ context.Context, body string) error {
			told <- body
			return nil
		})
	}()
	w.t.Cleanup(func() {
		cancel()
		<-ended
	})
}

// archive moves all that is old enough into the archive, and returns how much that was.
func (w *world) archive() int {
	w.t.Helper()
	worker, err := archive.NewWorker(archive.Ports{
		Store:  w.store,
		Bucket: archive.NewBucket(w.cloud.Objects(), bucketName, system.RealClock{}, system.RealRandom{}),
		Clock:  system.RealClock{}, Random: system.RealRandom{}, Logger: slog.New(slog.DiscardHandler),
	}, archive.Retention{Holds: 30 * day, Reservations: 400 * day})
	w.check(err)
	report, err := worker.Run(w.t.Context(), "worker_test")
	w.check(err)
	return report.Archived
}

// purge deletes what is archived from the table, as its time to live does within days.
func (w *world) purge() {
	w.t.Helper()
	for _, i := range w.items() {
		if i[dynamo.AttributeArchivedIn] != nil {
			_, err := w.client.DeleteItem(w.t.Context(), &dynamodb.DeleteItemInput{TableName: &w.table, Key: map[string]types.AttributeValue{
				dynamo.AttributePartitionKey: i[dynamo.AttributePartitionKey], dynamo.AttributeSortKey: i[dynamo.AttributeSortKey],
			}})
			w.check(err)
		}
	}
}

// items are all items of the table as they are stored.
func (w *world) items() []map[string]types.AttributeValue {
	w.t.Helper()
	var items []map[string]types.AttributeValue
	in := &dynamodb.ScanInput{TableName: &w.table, ConsistentRead: aws.Bool(true)}
	for {
		out, err := w.client.Scan(w.t.Context(), in)
		w.check(err)
		items = append(items, out.Items...)
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return items
		}
	}
}

// set changes one number of an item past the ledger.
func (w *world) set(partition, sort, attribute string, number string) {
	w.t.Helper()
	_, err := w.client.UpdateItem(w.t.Context(), &dynamodb.UpdateItemInput{
		TableName: &w.table, Key: map[string]types.AttributeValue{
			dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: partition},
			dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: sort},
		},
		UpdateExpression: aws.String("SET #attribute = :number"), ExpressionAttributeNames: map[string]string{"#attribute": attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":number": &types.AttributeValueMemberN{Value: number}},
	})
	w.check(err)
}

// fails runs one command that must fail, and returns its error.
func (w *world) fails(name string, arguments ...string) error {
	w.t.Helper()
	var out bytes.Buffer
	err := run(w.t.Context(), append([]string{name, "-environment", w.environment}, arguments...), &out)
	if err == nil {
		w.t.Fatalf("ops %s %v does not fail, and prints\n%s", name, arguments, out.String())
	}
	return err
}
