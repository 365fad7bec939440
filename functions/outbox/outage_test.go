package main

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/outbox"
	"holdfast/shared/outbox/outboxtest"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
)

// outage is a ledger in a real table, with a relay whose clock, bus and queue are the
// test's.
type outage struct {
	*testing.T
	client   *dynamodb.Client
	table    string
	clock    *systemtest.Clock
	store    *dynamo.Store
	commands *commands.Commands
	bus      *outboxtest.Bus
	queue    *outboxtest.Queue
	relay    *outbox.Relay
}

type unmeasured struct{}

func (unmeasured) Emit(telemetry.Properties, ...telemetry.Measurement) error { return nil }

func newOutage(t *testing.T) *outage {
	t.Helper()
	client, table := dynamotest.NewTable(t)
	clock, random := systemtest.NewClock(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)), systemtest.NewRandom(1)
	store := dynamo.NewStore(client, table, clock, random)
	o := &outage{
		T: t, client: client, table: table, clock: clock, store: store, commands: commands.New(store, clock, random),
		bus: outboxtest.NewBus(outbox.CallBytesMaxDefault), queue: &outboxtest.Queue{},
	}
	relay, err := outbox.NewRelay(outbox.Ports{
		Publisher: o.bus, Queue: o.queue, Marker: store, Decode: dynamo.DecodeEventImage, Metrics: unmeasured{},
		Clock: clock, Random: random, Logger: slog.New(slog.DiscardHandler),
	}, outbox.Settings{
		Bus: "events", Stage: "dev", CallBytesMax: outbox.CallBytesMaxDefault, SagaQueueURL: sagaQueueURL, DueQueueURL: dueQueueURL,
	})
	if err != nil {
		t.Fatal(err)
	}
	o.relay = relay
	_, err = o.commands.PutSlot(t.Context(), o.request(), "seat", ledger.SlotDefinition{
		ResourceType: "flight", ResourceID: "KE0901", Capacity: 1000, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 1000, Currency: "KRW"}, Shards: 1},
	}, func(ledger.Slot, ledger.Policy, ledger.Counters, bool) (ledger.Response, error) {
		return ledger.Response{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (o *outage) request() commands.Request {
	return commands.Request{Actor: "owner:U-17", Owner: "U-17", RequestID: "request_test"}
}

func (o *outage) hold() ledger.HoldID {
	o.Helper()
	var id ledger.HoldID
	_, err := o.commands.CreateHold(o.Context(), o.request(), commands.HoldWish{Quotes: []ledger.Quote{{Slot: "seat", Quantity: 1, UnitAmount: 1000}}},
		func(h ledger.Hold, _ time.Time) (ledger.Response, error) {
			id = h.ID
			return ledger.Response{}, nil
		})
	if err != nil {
		o.Fatal(err)
	}
	return id
}

func (o *outage) cancel(id ledger.HoldID) {
	o.Helper()
	_, err := o.commands.CancelHold(o.Context(), o.request(), id, func(ledger.Hold, time.Time) (ledger.Response, error) { return ledger.Response{}, nil })
	if err != nil {
		o.Fatal(err)
	}
}

// poison writes an event that no relay can read: a copy of another hold's, whose time is
// no whole number. It returns its key, and the number that would make it right.
func (o *outage) poison(of ledger.HoldID) (map[string]types.AttributeValue, types.AttributeValue) {
	o.Helper()
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	got, err := o.client.GetItem(o.Context(), &dynamodb.GetItemInput{
		TableName: &o.table, Key: map[string]types.AttributeValue{"pk": text("HOLD#" + string(of)), "sk": text("EVENT#0000000001")},
	})
	if err != nil || len(got.Item) == 0 {
		o.Fatalf("the event of %s: %v, %v", of, got, err)
	}
	item := maps.Clone(got.Item)
	const id = "hold_00000000000000000000000000"
	item["pk"], item["event_id"] = text("HOLD#"+id), text("event_poison")
	item["unpublished_order"] = text("2026-03-01T09:00:00.000Z#event_poison")
	hold := maps.Clone(item["hold"].(*types.AttributeValueMemberM).Value)
	hold["hold_id"] = text(id)
	item["hold"] = &types.AttributeValueMemberM{Value: hold}
	right := item["occurred_at_ms"]
	item["occurred_at_ms"] = &types.AttributeValueMemberN{Value: "0.5"}
	if _, err := o.client.PutItem(o.Context(), &dynamodb.PutItemInput{TableName: &o.table, Item: item}); err != nil {
		o.Fatal(err)
	}
	return map[string]types.AttributeValue{"pk": item["pk"], "sk": item["sk"]}, right
}

// newEvents are the records of new events in the stream.
func (o *outage) newEvents() events.DynamoDBEvent {
	o.Helper()
	batch := mustReadStream(o.T, o.client, o.table)
	batch.Records = slices.DeleteFunc(batch.Records, func(r events.DynamoDBEventRecord) bool {
		return r.EventName != "INSERT" || r.Change.Keys["sk"].String() < outbox.EventSortKeyPrefix || r.Change.Keys["sk"].String() > outbox.EventSortKeyPrefix+"~"
	})
	return batch
}

// consumer is one that counts each event once, by its id, and each thing's events in the
// order of their versions.
type consumer struct {
	counted  map[ledger.EventID]int // how often it came
	versions map[string]ledger.Version
	gaps     []ledger.EventID // that came before their turn
}

func (o *outage) consume() consumer {
	o.Helper()
	c := consumer{map[ledger.EventID]int{}, map[string]ledger.Version{}, nil}
	for _, d := range o.bus.Deliveries() {
		var detail struct {
			EventID ledger.EventID `json:"event_id"`
			Version ledger.Version `json:"version"`
		}
		if err := json.Unmarshal([]byte(aws.ToString(d.Entry.Detail)), &detail); err != nil || detail.EventID == "" || detail.Version == 0 {
			o.Fatalf("the detail %s: %v", aws.ToString(d.Entry.Detail), err)
		}
		if c.counted[detail.EventID]++; c.counted[detail.EventID] > 1 {
			continue
		}
		of := d.Entry.Resources[0]
		if detail.Version != c.versions[of]+1 {
			c.gaps = append(c.gaps, detail.EventID)
		}
		c.versions[of] = detail.Version
	}
	return c
}

// waiting counts what is listed as unpublished, and what is in quarantine.
func (o *outage) waiting() (unpublished int, quarantined []ledger.UnpublishedEvent) {
	o.Helper()
	for shard := range ledger.UnpublishedShards {
		open, _, err := o.store.Unpublished(o.Context(), shard, o.clock.Now().Add(time.Hour), ledger.Page{Limit: ledger.PageItemsMax})
		if err != nil {
			o.Fatal(err)
		}
		aside, _, err := o.store.Quarantined(o.Context(), shard, ledger.Page{Limit: ledger.PageItemsMax})
		if err != nil {
			o.Fatal(err)
		}
		unpublished, quarantined = unpublished+len(open), append(quarantined, aside...)
	}
	return unpublished, quarantined
}

func (o *outage) mustRedrive() outbox.RedriveReport {
	o.Helper()
	o.clock.Advance(time.Second)
	report, err := outbox.NewRedrive(o.relay, o.store).Run(o.Context(), 0, time.Hour)
	if err != nil {
		o.Fatal(err)
	}
	return report
}

// Cases G14 and I1, on a real table and its stream: of 100 records one is poison. 99 are
// published and the one is in quarantine after one delivery, and once its cause is gone a
// requeue and a redrive publish it from the table.
func TestCaseI1_OnePoisonRecordOfAHundred(t *testing.T) {
	o := newOutage(t)
	for range 49 {
		o.hold()
	}
	key, right := o.poison(o.hold())
	for range 48 {
		o.hold()
	}
	batch := o.newEvents()
	if len(batch.Records) != 100 {
		t.Fatalf("%d records", len(batch.Records))
	}
	response, err := o.relay.Handle(t.Context(), batch)
	if err != nil || len(response.BatchItemFailures) > 0 {
		t.Fatalf("handed back %v, %v", response.BatchItemFailures, err)
	}
	c := o.consume()
	unpublished, quarantined := o.waiting()
	if len(c.counted) != 99 || len(c.gaps) > 0 || unpublished != 0 || len(quarantined) != 1 || quarantined[0].ID != "event_poison" {
		t.Fatalf("published %d, gaps %v; %d unpublished, in quarantine %v", len(c.counted), c.gaps, unpublished, quarantined)
	}
	if report := o.mustRedrive(); report.Republished+report.Quarantined+report.Failed > 0 {
		t.Errorf("a redrive takes up what is in quarantine: %+v", report)
	}
	// Requeued as it is, it goes back by itself.
	requeue := func() {
		if done, err := o.store.Requeue(t.Context(), quarantined[0].Item); !done || err != nil {
			t.Fatalf("requeue: %t, %v", done, err)
		}
	}
	requeue()
	if report := o.mustRedrive(); report.Quarantined != 1 {
		t.Errorf("requeued as it is: %+v", report)
	}
	_, err = o.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &o.table, Key: key, UpdateExpression: aws.String("SET occurred_at_ms = :right"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":right": right},
	})
	if err != nil {
		t.Fatal(err)
	}
	requeue()
	if report := o.mustRedrive(); report.Republished != 1 {
		t.Errorf("repaired: %+v", report)
	}
	c = o.consume()
	unpublished, quarantined = o.waiting()
	if len(c.counted) != 100 || c.counted["event_poison"] != 1 || unpublished+len(quarantined) != 0 {
		t.Errorf("published %d; %d unpublished, in quarantine %v", len(c.counted), unpublished, quarantined)
	}
}

// Case I4, and an outage of the relay that is twice as long as the stream keeps anything:
// every event is published from the table, in order, and consumers that go by event_id
// count each once, also when answers are lost and what is left of the stream comes after
// all.
func TestCaseI4_TheRelayIsDownForTwoDays(t *testing.T) {
	o := newOutage(t)
	began := o.clock.Now()
	var open []ledger.HoldID
	for range 48 {
		o.clock.Advance(time.Hour)
		for _, id := range open {
			if _, err := o.commands.ExpireHold(t.Context(), id, "request_expire"); err != nil {
				t.Fatal(err)
			}
		}
		canceled := o.hold()
		o.cancel(canceled) // in the same millisecond
		open = []ledger.HoldID{o.hold(), o.hold()}
	}
	const eventsTotal = 1 + 48*4 + 47*2
	o.bus.LoseAnswers(3)
	report := o.mustRedrive()
	if report.Republished != eventsTotal || report.Failed+report.Left+report.Quarantined > 0 || !report.LagKnown || report.Lag < o.clock.Now().Sub(began)-time.Minute {
		t.Errorf("report %+v, want %d republished", report, eventsTotal)
	}
	batch := o.newEvents()
	batch.Records = batch.Records[len(batch.Records)/2:] // the last 24 hours
	for part := range slices.Chunk(batch.Records, 100) {
		response, err := o.relay.Handle(t.Context(), events.DynamoDBEvent{Records: part})
		if err != nil || len(response.BatchItemFailures) > 0 {
			t.Fatalf("handed back %v, %v", response.BatchItemFailures, err)
		}
	}
	c := o.consume()
	if unpublished, quarantined := o.waiting(); len(c.counted) != eventsTotal || len(c.gaps) > 0 || unpublished+len(quarantined) != 0 {
		t.Errorf("published %d of %d, out of turn %v; %d unpublished, in quarantine %v", len(c.counted), eventsTotal, c.gaps, unpublished, quarantined)
	}
	if n := len(o.bus.Deliveries()); n <= eventsTotal+eventsTotal/3 {
		t.Errorf("%d deliveries: nothing came twice, so nothing was shown", n)
	}
	// Only the three holds of the last hour get due messages: those of before have ended.
	dueHolds := map[string]bool{}
	for _, m := range o.queue.Due() {
		dueHolds[m.Body] = true
	}
	if len(dueHolds) != 3 {
		t.Errorf("due messages of %d holds: %v", len(dueHolds), slices.Collect(maps.Keys(dueHolds)))
	}
	for _, violation := range append(o.bus.Violations(), o.queue.Violations()...) {
		t.Error(violation)
	}
}
