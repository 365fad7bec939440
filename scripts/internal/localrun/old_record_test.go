package localrun_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"holdfast/shared/commands"
	"holdfast/shared/due"
	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/system/systemtest"
	"holdfast/shared/topology"
)

// pastRetention is older than what a local run keeps in its table.
const pastRetention = 40 * 24 * time.Hour

// invoke starts a function once, as its schedule does.
func (w *world) invoke(function topology.FunctionName) {
	w.t.Helper()
	if _, err := w.system.Invoke(w.t.Context(), function, []byte(`{}`)); err != nil {
		w.t.Errorf("%s: %v", function, err)
	}
}

// entries returns the keys in an index of the table, with those of the index.
func (w *world) entries(index string) []map[string]types.AttributeValue {
	w.t.Helper()
	var all []map[string]types.AttributeValue
	pages := dynamodb.NewScanPaginator(w.system.Database(), &dynamodb.ScanInput{
		TableName: aws.String(w.system.Table), IndexName: aws.String(index),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, page.Items...)
	}
	return all
}

// set changes one attribute of an item, behind the back of the ledger.
func (w *world) set(entry map[string]types.AttributeValue, attribute string, value types.AttributeValue) {
	w.t.Helper()
	_, err := w.system.Database().UpdateItem(w.t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(w.system.Table), Key: keyOf(entry),
		UpdateExpression:          aws.String("SET #a = :v"),
		ExpressionAttributeNames:  map[string]string{"#a": attribute},
		ExpressionAttributeValues: map[string]types.AttributeValue{":v": value},
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// get reads one attribute of an item.
func (w *world) get(entry map[string]types.AttributeValue, attribute string) types.AttributeValue {
	w.t.Helper()
	out, err := w.system.Database().GetItem(w.t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(w.system.Table), ConsistentRead: aws.Bool(true), Key: keyOf(entry),
	})
	if err != nil || out.Item[attribute] == nil {
		w.t.Fatalf("the item has no %s, %v", attribute, err)
	}
	return out.Item[attribute]
}

func keyOf(entry map[string]types.AttributeValue) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		dynamo.AttributePartitionKey: entry[dynamo.AttributePartitionKey], dynamo.AttributeSortKey: entry[dynamo.AttributeSortKey],
	}
}

func stringOf(value types.AttributeValue) string {
	text, _ := value.(*types.AttributeValueMemberS)
	if text == nil {
		return ""
	}
	return text.Value
}

// ageUnpublished makes all unpublished events old, as the reconciler sees it.
func (w *world) ageUnpublished() {
	w.t.Helper()
	const anOldTime = "2020-01-01T00:00:00.000Z"
	for _, entry := range w.entries(dynamo.IndexUnpublished) {
		order := stringOf(entry[dynamo.AttributeUnpublishedOrder])
		aged := anOldTime + order[len(anOldTime):]
		w.set(entry, dynamo.AttributeUnpublishedOrder, &types.AttributeValueMemberS{Value: aged})
	}
}

// oldHold is a hold that was made, and cancelled, before the retention began.
func (w *world) oldHold() ledger.HoldID {
	w.t.Helper()
	slot := ledger.SlotID(w.slot(2, ""))
	store := dynamo.NewStore(w.system.Database(), w.system.Table, system.RealClock{}, system.RealRandom{})
	then := commands.New(store, systemtest.NewClock(time.Now().UTC().Truncate(time.Millisecond).Add(-pastRetention)), system.RealRandom{})
	render := func(hold ledger.Hold, _ time.Time) (ledger.Response, error) {
		return ledger.Response{Status: http.StatusOK, Body: []byte(hold.ID)}, nil
	}
	request := commands.Request{Actor: "test", Owner: ledger.OwnerID(newName("owner"))}
	made, err := then.CreateHold(w.t.Context(), request, commands.HoldWish{Quotes: []ledger.Quote{{Slot: slot, Quantity: 1, UnitAmount: unitAmount}}}, render)
	if err != nil {
		w.t.Fatal(err)
	}
	hold := ledger.HoldID(made.Response.Body)
	if _, err := then.CancelHold(w.t.Context(), request, hold, render); err != nil {
		w.t.Fatal(err)
	}
	return hold
}

// everyOldRecord makes the reconciler and the archive do all that they do: an event of a
// hold and of a payment that the stream does not bring, and a hold that is past its
// retention. A first run of the archive is cut off before it has written, so that the second
// one looks for what the first may have left.
func (p *payingWorld) everyOldRecord() {
	p.t.Helper()
	p.system.DisableStream()
	p.oldHold()
	p.purchase(p.slot(1, ""), 1)
	p.ageUnpublished()
	p.invoke(topology.FunctionReconcile)
	if err := p.system.EnableStream(); err != nil {
		p.t.Fatal(err)
	}
	p.untilPublished() // what is not published stays
	end := p.observer.inject(topology.FunctionArchive, func(target string, forward func()) bool {
		if target == objectServicePrefix+"PutObject" {
			return true // nothing is written, and nobody answers
		}
		forward()
		return false
	})
	defer end()
	if _, err := p.system.Invoke(p.t.Context(), topology.FunctionArchive, []byte(`{}`)); err == nil {
		p.t.Error("the archive says success when the bucket does not answer")
	}
	end()
	p.invoke(topology.FunctionArchive)
}

// everyDueMessage makes the expiry function do all that it does with its queues: it sends
// on what comes too early, and tells of a hold that it can't end.
func (w *world) everyDueMessage() {
	w.t.Helper()
	early := w.mustHold(w.owner(), w.slot(1, ""), 1)
	body, err := due.Message{Hold: ledger.HoldID(early), DueAt: time.Now().Add(time.Hour)}.Encode()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.system.SendMessage(w.t.Context(), topology.ResourceDueQueue, body); err != nil {
		w.t.Fatal(err)
	}
	w.until("the message is sent on", func() bool { return w.called(topology.FunctionExpiry, topology.ResourceDueQueue) })
	w.parkOne()
}

// called says whether the function has called the resource.
func (w *world) called(function topology.FunctionName, resource topology.Resource) bool {
	for _, call := range w.observer.called(function) {
		if call.resource == resource {
			return true
		}
	}
	return false
}

// dueEntry returns the entry of the hold in the due index.
func (w *world) dueEntry(hold string) map[string]types.AttributeValue {
	w.t.Helper()
	for _, entry := range w.entries(dynamo.IndexDue) {
		if strings.HasSuffix(stringOf(entry[dynamo.AttributePartitionKey]), hold) {
			return entry
		}
	}
	w.t.Fatalf("hold %s is not in the due index", hold)
	return nil
}

// parkOne breaks the item of a hold that is over until it is parked, and mends it again.
// It returns the messages about parked holds, and the hold.
func (w *world) parkOne() (messages []string, hold string) {
	w.t.Helper()
	w.withoutDueQueue()
	hold = w.mustHold(w.owner(), w.slot(1, shortHold), 1)
	w.untilOver(hold)
	entry := w.dueEntry(hold)
	const failuresUntilParked, broken = 3, "lines"
	whole := w.get(entry, broken)
	w.set(entry, broken, &types.AttributeValueMemberS{Value: "no list"})
	for range failuresUntilParked {
		w.sweepBroken()
	}
	w.set(entry, broken, whole)
	w.until("the queue is told of the parked hold", func() bool {
		taken, err := w.system.TakeMessages(w.t.Context(), topology.ResourceExpiryFailed)
		if err != nil {
			w.t.Fatal(err)
		}
		messages = append(messages, taken...)
		return len(messages) > 0
	})
	return messages, hold
}

// sweepBroken starts a sweep that meets a hold which it can't end.
func (w *world) sweepBroken() {
	w.t.Helper()
	// Whether such a run says that it failed is not the point here.
	_, _ = w.system.Invoke(w.t.Context(), topology.FunctionExpiry, []byte(`{}`))
}

// A hold that can't be ended is told of once, by its id, and does not delay the others. When
// its item is mended and the hold is taken out of parking, the next sweep ends it.
func TestAHoldThatCantBeEndedIsParkedAndToldOf(t *testing.T) {
	w := newWorld(t)
	messages, hold := w.parkOne()
	if len(messages) != 1 || !strings.Contains(messages[0], hold) {
		t.Errorf("the queue was told %q, want one message about hold %s", messages, hold)
	}
	other := w.mustHold(w.owner(), w.slot(1, shortHold), 1)
	w.untilOver(other)
	w.sweep()
	w.wantEnded(other)
	store := dynamo.NewStore(w.system.Database(), w.system.Table, system.RealClock{}, system.RealRandom{})
	parked, _, err := store.Parked(t.Context(), ledger.DueShard(ledger.HoldID(hold)), ledger.Page{Limit: ledger.PageItemsMax})
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range parked {
		if entry.ID == ledger.HoldID(hold) {
			if done, err := store.Unpark(t.Context(), entry); !done || err != nil {
				t.Fatalf("the parked hold was put back: %t, %v", done, err)
			}
		}
	}
	w.sweep()
	w.wantEnded(hold)
}

// wantEnded checks that the hold's item says that it has ended, and not only its time.
func (w *world) wantEnded(hold string) {
	w.t.Helper()
	store := dynamo.NewStore(w.system.Database(), w.system.Table, system.RealClock{}, system.RealRandom{})
	got, err := store.Hold(w.t.Context(), ledger.HoldID(hold))
	if err != nil {
		w.t.Fatal(err)
	}
	if got.Status != ledger.StatusExpired {
		w.t.Errorf("hold %s is %s, want that a sweep has ended it", hold, got.Status)
	}
}

// An hour of the stream's silence is made good: what is not published is found in the table,
// and the bus gets it once it is old enough. What the stream brings later, consumers drop.
func TestTheReconcilerPublishesWhatTheStreamDoesNotBring(t *testing.T) {
	w := newWorld(t)
	w.untilPublished()
	w.system.DisableStream()
	hold := w.mustHold(w.owner(), w.slot(1, ""), 1)
	w.invoke(topology.FunctionReconcile)
	if got := w.eventsOf(hold); len(got) != 0 {
		t.Errorf("the reconciler published %v at once, in the relay's place", got)
	}
	w.ageUnpublished()
	w.invoke(topology.FunctionReconcile)
	w.until("the event has come out of the bus", func() bool { return len(w.eventsOf(hold)) == 1 })
	w.untilPublished()
	if err := w.system.EnableStream(); err != nil {
		t.Fatal(err)
	}
}

// What is past its retention leaves the table for the bucket, and is still known.
func TestAnOldHoldIsArchived(t *testing.T) {
	w := newWorld(t)
	old := w.oldHold()
	fresh := w.mustHold(w.owner(), w.slot(1, ""), 1)
	w.untilPublished() // what is not published stays
	w.invoke(topology.FunctionArchive)
	store := dynamo.NewStore(w.system.Database(), w.system.Table, system.RealClock{}, system.RealRandom{})
	archived, err := store.Hold(t.Context(), old)
	if err != nil || archived.ArchivedIn == "" {
		t.Errorf("the old hold is %+v, %v; want that it names its batch", archived, err)
	}
	if kept, err := store.Hold(t.Context(), ledger.HoldID(fresh)); err != nil || kept.ArchivedIn != "" {
		t.Errorf("the fresh hold is %+v, %v; want that it stays", kept, err)
	}
	client, bucket := w.system.Archive()
	listed, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(bucket)})
	if err != nil || len(listed.Contents) == 0 {
		t.Errorf("the bucket has %d objects, %v", len(listed.Contents), err)
	}
}
