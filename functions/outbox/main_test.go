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

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// The addresses of the queues; nobody listens there.
const (
	sagaQueueURL = "http://127.0.0.1:1/saga"
	dueQueueURL  = "http://127.0.0.1:1/due"
)

// bus speaks the one call of EventBridge that the relay makes, and the one of SQS.
type bus struct {
	mutex    sync.Mutex
	calls    int
	status   int // of the next answers of the bus
	entries  []entry
	messages map[string][]string // by the address of the queue
	delays   []int               // of the due messages, in seconds
}

type entry struct {
	Source, DetailType, Detail, EventBusName string
	Resources                                []string
}

func (b *bus) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if r.Header.Get("X-Amz-Target") == "AmazonSQS.SendMessageBatch" {
		b.serveQueue(w, r)
		return
	}
	b.calls++
	if b.status != http.StatusOK {
		w.WriteHeader(b.status)
		return
	}
	var call struct{ Entries []entry }
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil || r.Header.Get("X-Amz-Target") != "AWSEvents.PutEvents" {
		http.Error(w, "not a PutEvents", http.StatusBadRequest)
		return
	}
	b.entries = append(b.entries, call.Entries...)
	answer := struct {
		FailedEntryCount int
		Entries          []map[string]string
	}{}
	for range call.Entries {
		answer.Entries = append(answer.Entries, map[string]string{"EventId": "envelope"})
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(answer) //nolint:errchkjson // the client sees a broken answer
}

func (b *bus) serveQueue(w http.ResponseWriter, r *http.Request) {
	var call struct {
		QueueURL string `json:"QueueUrl"`
		Entries  []struct {
			ID   string `json:"Id"`
			Body string `json:"MessageBody"`
			// DelaySeconds is how long the queue keeps the message back.
			DelaySeconds int
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
		http.Error(w, "not a SendMessageBatch", http.StatusBadRequest)
		return
	}
	if b.messages == nil {
		b.messages = map[string][]string{}
	}
	var taken []map[string]string
	for _, message := range call.Entries {
		b.messages[call.QueueURL] = append(b.messages[call.QueueURL], message.Body)
		if call.QueueURL == dueQueueURL {
			b.delays = append(b.delays, message.DelaySeconds)
		}
		taken = append(taken, map[string]string{
			"Id": message.ID, "MessageId": "message", "MD5OfMessageBody": fmt.Sprintf("%x", md5.Sum([]byte(message.Body))),
		})
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(map[string]any{"Successful": taken}) //nolint:errchkjson // the client sees a broken answer
}

func mustServe(t *testing.T) (*bus, string) {
	t.Helper()
	b := &bus{status: http.StatusOK}
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	return b, server.URL
}

func mustCompose(t *testing.T, table, dynamoDB, eventBridge string) handler {
	t.Helper()
	t.Setenv("HOLDFAST_STAGE", "local")
	t.Setenv("HOLDFAST_TABLE_NAME", table)
	t.Setenv("HOLDFAST_EVENT_BUS_NAME", "holdfast-events")
	t.Setenv("HOLDFAST_SAGA_QUEUE_URL", sagaQueueURL)
	t.Setenv("HOLDFAST_DUE_QUEUE_URL", dueQueueURL)
	t.Setenv("HOLDFAST_LOCAL_DYNAMODB_ENDPOINT", dynamoDB)
	t.Setenv("HOLDFAST_LOCAL_EVENTBRIDGE_ENDPOINT", eventBridge)
	t.Setenv("HOLDFAST_LOCAL_SQS_ENDPOINT", eventBridge)
	handle, err := compose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return handle
}

// recordsMax bounds what is read from the stream of one test.
const recordsMax = 1000

// mustReadStream is everything in the table's stream, as Lambda would hand it over.
func mustReadStream(t *testing.T, client *dynamodb.Client, table string) events.DynamoDBEvent {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	described, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &table})
	check(err)
	streams := dynamodbstreams.New(dynamodbstreams.Options{
		Region: client.Options().Region, Credentials: client.Options().Credentials, BaseEndpoint: client.Options().BaseEndpoint,
	})
	arn := described.Table.LatestStreamArn
	stream, err := streams.DescribeStream(t.Context(), &dynamodbstreams.DescribeStreamInput{StreamArn: arn})
	check(err)
	var batch events.DynamoDBEvent
	for _, shard := range stream.StreamDescription.Shards {
		iterator, err := streams.GetShardIterator(t.Context(), &dynamodbstreams.GetShardIteratorInput{
			StreamArn: arn, ShardId: shard.ShardId, ShardIteratorType: streamtypes.ShardIteratorTypeTrimHorizon,
		})
		check(err)
		page, err := streams.GetRecords(t.Context(), &dynamodbstreams.GetRecordsInput{
			ShardIterator: iterator.ShardIterator, Limit: aws.Int32(recordsMax),
		})
		check(err)
		for _, r := range page.Records {
			batch.Records = append(batch.Records, events.DynamoDBEventRecord{
				EventID: aws.ToString(r.EventID), EventName: string(r.EventName), EventSource: "aws:dynamodb", EventVersion: aws.ToString(r.EventVersion),
				EventSourceArn: aws.ToString(arn), AWSRegion: aws.ToString(r.AwsRegion),
				Change: events.DynamoDBStreamRecord{
					SequenceNumber: aws.ToString(r.Dynamodb.SequenceNumber), StreamViewType: string(r.Dynamodb.StreamViewType),
					SizeBytes: aws.ToInt64(r.Dynamodb.SizeBytes),
					Keys:      lambdaImage(t, r.Dynamodb.Keys), NewImage: lambdaImage(t, r.Dynamodb.NewImage),
				},
			})
		}
	}
	return batch
}

func lambdaImage(t *testing.T, image map[string]streamtypes.AttributeValue) map[string]events.DynamoDBAttributeValue {
	t.Helper()
	out := make(map[string]events.DynamoDBAttributeValue, len(image))
	for name, value := range image {
		out[name] = lambdaValue(t, value)
	}
	return out
}

func lambdaValue(t *testing.T, value streamtypes.AttributeValue) events.DynamoDBAttributeValue {
	t.Helper()
	switch v := value.(type) {
	case *streamtypes.AttributeValueMemberS:
		return events.NewStringAttribute(v.Value)
	case *streamtypes.AttributeValueMemberN:
		return events.NewNumberAttribute(v.Value)
	case *streamtypes.AttributeValueMemberBOOL:
		return events.NewBooleanAttribute(v.Value)
	case *streamtypes.AttributeValueMemberB:
		return events.NewBinaryAttribute(v.Value)
	case *streamtypes.AttributeValueMemberM:
		return events.NewMapAttribute(lambdaImage(t, v.Value))
	case *streamtypes.AttributeValueMemberL:
		list := make([]events.DynamoDBAttributeValue, 0, len(v.Value))
		for _, element := range v.Value {
			list = append(list, lambdaValue(t, element))
		}
		return events.NewListAttribute(list)
	default:
		t.Fatalf("the table holds a %T", value)
		return events.DynamoDBAttributeValue{}
	}
}

// makeHistory defines a slot, holds one unit of it and cancels that: three events.
func makeHistory(t *testing.T, client *dynamodb.Client, table string) (*dynamo.Store, ledger.HoldID) {
	t.Helper()
	store := dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})
	c := commands.New(store, system.RealClock{}, system.RealRandom{})
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
	var id ledger.HoldID
	_, err = c.CreateHold(t.Context(), request, commands.HoldWish{Quotes: []ledger.Quote{{Slot: "seat", Quantity: 1, UnitAmount: 1000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			id = h.ID
			return ledger.Response{}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.CancelHold(t.Context(), request, id, func(ledger.Hold, time.Time) (ledger.Response, error) { return ledger.Response{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return store, id
}

// mustCountUnpublished is how many events wait in the index of what is not published.
func mustCountUnpublished(t *testing.T, client *dynamodb.Client, table string) int {
	t.Helper()
	count := 0
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table, IndexName: aws.String(dynamo.IndexUnpublished)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		count += int(page.Count)
	}
	return count
}

// The real wiring: what a real table's stream carries is published to a bus over HTTP,
// with all that it tells, and marked in the table. The stream has the slot, its stock and
// the hold as well, and afterwards the marks themselves; none of them is an event.
func TestTheWiringWorks(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	b, url := mustServe(t)
	handle := mustCompose(t, table, *client.Options().BaseEndpoint, url)
	store, id := makeHistory(t, client, table)
	if n := mustCountUnpublished(t, client, table); n != 3 {
		t.Fatalf("%d events wait before the relay, want 3", n)
	}
	for range 2 { // the second delivery has the marks in it, and publishes all again
		response, err := handle(t.Context(), mustReadStream(t, client, table))
		if err != nil || len(response.BatchItemFailures) > 0 {
			t.Fatalf("handed back %v, %v", response.BatchItemFailures, err)
		}
	}
	var told []string
	for _, e := range b.entries {
		told = append(told, e.DetailType)
		if e.Source != "holdfast" || e.EventBusName != "holdfast-events" {
			t.Errorf("entry %+v", e)
		}
	}
	if got, want := strings.Join(told, " "), "slot.created hold.created hold.canceled"; got != want+" "+want {
		t.Fatalf("published %s", got)
	}
	events, err := store.HoldEvents(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		var detail struct {
			EventID   ledger.EventID `json:"event_id"`
			Hold      struct{ Owner string }
			Movements []struct{ From, To string }
		}
		if err := json.Unmarshal([]byte(b.entries[i+1].Detail), &detail); err != nil {
			t.Fatal(err)
		}
		if detail.EventID != e.ID || detail.Hold.Owner != "U-17" || len(detail.Movements) != 1 || b.entries[i+1].Resources[0] != "hold/"+string(id) {
			t.Errorf("event %d tells %s", i, b.entries[i+1].Detail)
		}
	}
	if n := mustCountUnpublished(t, client, table); n != 0 {
		t.Errorf("%d events wait after the relay", n)
	}
}

// The real wiring of a payment: what its transaction wrote wakes the saga with the
// reservation's id alone, and is published as two events.
func TestAPaymentWakesTheSaga(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	b, url := mustServe(t)
	handle := mustCompose(t, table, *client.Options().BaseEndpoint, url)
	store := dynamo.NewStore(client, table, system.RealClock{}, system.RealRandom{})
	c := commands.New(store, system.RealClock{}, system.RealRandom{})
	request := commands.Request{Actor: "owner:U-17", Owner: "U-17", RequestID: "request_test"}
	_, err := c.PutSlot(t.Context(), request, "seat", ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: "KE0901", Capacity: 5, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: 1},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var hold ledger.Hold
	_, err = c.CreateHold(t.Context(), request, commands.HoldWish{Quotes: []ledger.Quote{{Slot: "seat", Quantity: 1, UnitAmount: 1000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			hold = h
			return ledger.Response{}, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	id := ledger.NewReservationID(system.RealRandom{}.Bits128())
	change, err := ledger.StartReservation(id, hold, ledger.Origin{
		Actor: "owner:U-17", Command: ledger.CommandStartPayment, RequestID: "request_test", EventID: ledger.NewEventID(system.RealRandom{}.Bits128()),
	}, system.Millisecond(system.RealClock{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Commit(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	response, err := handle(t.Context(), mustReadStream(t, client, table))
	if err != nil || len(response.BatchItemFailures) > 0 {
		t.Fatalf("handed back %v, %v", response.BatchItemFailures, err)
	}
	var told []string
	for _, e := range b.entries {
		told = append(told, e.DetailType)
	}
	if !slices.Contains(told, "reservation.payment_started") || !slices.Contains(told, "hold.payment_started") {
		t.Errorf("published %v", told)
	}
	if got := b.messages[sagaQueueURL]; len(got) != 1 || got[0] != `{"reservation_id":"`+string(id)+`"}` {
		t.Errorf("the saga's queue has %v", got)
	}
	// The hold is looked at when it would end unpaid, and, with an attempt open, later.
	var want []string
	for _, step := range []ledger.Hold{hold, change.Holds[0].Next} {
		dueAt, _ := step.DueAt()
		want = append(want, fmt.Sprintf(`{"hold_id":"%s","due_at_ms":%d}`, hold.ID, dueAt.UnixMilli()))
	}
	if got := b.messages[dueQueueURL]; !slices.Equal(got, want) {
		t.Errorf("the due queue has %v, want %v", got, want)
	}
	if len(b.delays) != 2 || b.delays[0] <= 0 || b.delays[1] != 900 {
		t.Errorf("the due messages are kept back for %v s", b.delays)
	}
}

// A bus that is broken is asked as often as the relay says, not that often again by the
// SDK, and nothing is marked.
func TestOnlyTheRelayRetries(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	b, url := mustServe(t)
	b.status = http.StatusInternalServerError
	handle := mustCompose(t, table, *client.Options().BaseEndpoint, url)
	makeHistory(t, client, table)
	response, err := handle(t.Context(), mustReadStream(t, client, table))
	if err != nil || len(response.BatchItemFailures) != 1 {
		t.Errorf("handed back %v, %v", response.BatchItemFailures, err)
	}
	if b.calls != outbox.TriesMax {
		t.Errorf("the bus was called %d times, want %d", b.calls, outbox.TriesMax)
	}
	if n := mustCountUnpublished(t, client, table); n != 3 {
		t.Errorf("%d events wait, want 3", n)
	}
}

// mustReadSample is the sample batch, through the decoder that the Lambda runtime uses.
func mustReadSample(t *testing.T, change func(string) string) events.DynamoDBEvent {
	t.Helper()
	text, err := os.ReadFile("../../events/lambda/outbox.json")
	if err != nil {
		t.Fatal(err)
	}
	changed := change(string(text))
	var batch events.DynamoDBEvent
	if err := json.Unmarshal([]byte(changed), &batch); err != nil {
		t.Fatal(err)
	}
	return batch
}

// mustPutEvents puts the events of the batch into the table, for the marks.
func mustPutEvents(t *testing.T, client *dynamodb.Client, table string, batch events.DynamoDBEvent) {
	t.Helper()
	for _, r := range batch.Records {
		_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: r.Change.Keys["pk"].String()},
			"sk": &types.AttributeValueMemberS{Value: r.Change.Keys["sk"].String()},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheSampleBatchIsPublished(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	b, url := mustServe(t)
	handle := mustCompose(t, table, *client.Options().BaseEndpoint, url)
	batch := mustReadSample(t, func(s string) string { return s })
	mustPutEvents(t, client, table, batch)
	response, err := handle(t.Context(), batch)
	if err != nil || len(response.BatchItemFailures) > 0 || len(b.entries) != 2 {
		t.Errorf("handed back %v, %v; published %d", response.BatchItemFailures, err, len(b.entries))
	}
}

// Case G18: a large number is exact to its last digit, and a fraction where a whole
// number must be is an error of its own record, never cut to 0: the record is set aside,
// neither published nor marked.
func TestCaseG18_NumbersAreExactOrRefused(t *testing.T) {
	const amount = `"unit_amount":{"N":"50000"}`
	client, table := dynamotest.NewTable(t)
	b, url := mustServe(t)
	handle := mustCompose(t, table, *client.Options().BaseEndpoint, url)
	replaced := func(number string) events.DynamoDBEvent {
		return mustReadSample(t, func(s string) string {
			compact := strings.NewReplacer(" ", "", "\n", "").Replace(s)
			if strings.Count(compact, amount) == 0 {
				t.Fatal("the sample has another price now")
			}
			return strings.ReplaceAll(compact, amount, `"unit_amount":{"N":"`+number+`"}`)
		})
	}
	batch := replaced("1570726625494837000")
	mustPutEvents(t, client, table, batch)
	response, err := handle(t.Context(), batch)
	if err != nil || len(response.BatchItemFailures) > 0 {
		t.Fatalf("handed back %v, %v", response.BatchItemFailures, err)
	}
	if len(b.entries) == 0 || !strings.Contains(b.entries[0].Detail, `"unit_amount":1570726625494837000,`) {
		t.Errorf("published %+v", b.entries)
	}
	if marked := mustCountMarked(t, client, table, batch); marked != len(batch.Records) {
		t.Errorf("%d of %d records are marked", marked, len(batch.Records))
	}
	b.entries = nil
	batch = replaced("0.5")
	mustPutEvents(t, client, table, batch) // as if they had never been marked
	response, err = handle(t.Context(), batch)
	if err != nil || len(response.BatchItemFailures) > 0 {
		t.Errorf("handed back %v, %v; no retry can help", response.BatchItemFailures, err)
	}
	if marked := mustCountMarked(t, client, table, batch); marked > 0 || len(b.entries) > 0 {
		t.Errorf("%d marked, published %+v", marked, b.entries)
	}
}

// mustCountMarked is how many events of the batch are marked as published in the table.
func mustCountMarked(t *testing.T, client *dynamodb.Client, table string, batch events.DynamoDBEvent) int {
	t.Helper()
	marked := 0
	for _, r := range batch.Records {
		out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &table, Key: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: r.Change.Keys["pk"].String()},
			"sk": &types.AttributeValueMemberS{Value: r.Change.Keys["sk"].String()},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, found := out.Item["published_at_ms"]; found {
			marked++
		}
	}
	return marked
}

// The names that the relay goes by are those of the table and of the mapping's filter.
func TestTheRelayGoesByTheTablesNames(t *testing.T) {
	schema := dynamo.TableSchema()
	if schema.PartitionKey.Attribute != outbox.PartitionKeyAttribute || schema.SortKey.Attribute != outbox.SortKeyAttribute {
		t.Errorf("the table's key is %s, %s", schema.PartitionKey.Attribute, schema.SortKey.Attribute)
	}
	if dynamo.AttributeArchivedIn != outbox.ArchivedInAttribute {
		t.Errorf("what is archived has the attribute %s", dynamo.AttributeArchivedIn)
	}
	f, _ := topology.FunctionNamed(topology.FunctionOutbox)
	if filters := f.Stream.SortKeyPrefixFilters; len(filters) != 1 || filters[0] != outbox.EventSortKeyPrefix {
		t.Errorf("the mapping filters by %v", filters)
	}
	if f.Timeout <= outbox.MarginBeforeDeadline+outbox.CallFor {
		t.Errorf("a time-out of %s leaves no time before the margin", f.Timeout)
	}
}

func TestAWrongEnvironmentStopsTheStart(t *testing.T) {
	t.Setenv("HOLDFAST_STAGE", "prod")
	t.Setenv("HOLDFAST_TABLE_NAME", "holdfast")
	t.Setenv("HOLDFAST_EVENT_BUS_NAME", "a bus")
	t.Setenv("HOLDFAST_SAGA_QUEUE_URL", "https://sqs.example.com/saga")
	t.Setenv("HOLDFAST_DUE_QUEUE_URL", "https://sqs.example.com/due")
	if _, err := compose(t.Context()); err == nil || !strings.Contains(err.Error(), "HOLDFAST_EVENT_BUS_NAME") {
		t.Errorf("compose: %v", err)
	}
}
