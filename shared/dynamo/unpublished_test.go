package dynamo_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
	"holdfast/shared/system/systemtest"
)

// mustListAll reads all shards of a list, page by page.
func mustListAll(t *testing.T, pageItems int, list func(shard int, page ledger.Page) ([]ledger.UnpublishedEvent, ledger.Cursor, error)) []ledger.UnpublishedEvent {
	t.Helper()
	var all []ledger.UnpublishedEvent
	for shard := range ledger.UnpublishedShards {
		page := ledger.Page{Limit: pageItems}
		for {
			entries, next, err := list(shard, page)
			if err != nil || len(entries) > pageItems {
				t.Fatalf("shard %d: %d entries, %v", shard, len(entries), err)
			}
			if !slices.IsSortedFunc(entries, func(a, b ledger.UnpublishedEvent) int { return a.OccurredAt.Compare(b.OccurredAt) }) {
				t.Errorf("shard %d is not in the order of time: %v", shard, entries)
			}
			if all = append(all, entries...); next == "" {
				break
			}
			page.After = next
		}
	}
	return all
}

func (l *parkingLot) unpublished(before time.Time, pageItems int) []ledger.UnpublishedEvent {
	return mustListAll(l.T, pageItems, func(shard int, page ledger.Page) ([]ledger.UnpublishedEvent, ledger.Cursor, error) {
		return l.store.Unpublished(l.Context(), shard, before, page)
	})
}

func (l *parkingLot) quarantined() []ledger.UnpublishedEvent {
	return mustListAll(l.T, 1, func(shard int, page ledger.Page) ([]ledger.UnpublishedEvent, ledger.Cursor, error) {
		return l.store.Quarantined(l.Context(), shard, page)
	})
}

func (l *parkingLot) events(items ...ledger.EventItem) []ledger.StoredEvent {
	l.Helper()
	found, err := l.store.UnpublishedEvents(l.Context(), items)
	if err != nil {
		l.Fatal(err)
	}
	return found
}

func itemsOf(entries []ledger.UnpublishedEvent) []ledger.EventItem {
	items := make([]ledger.EventItem, len(entries))
	for i, e := range entries {
		items[i] = e.Item
	}
	return items
}

// Every event waits in the index until it is marked; pages of any size give the same list,
// and the bound in time is exclusive.
func TestUnpublishedListsWhatIsNotMarked(t *testing.T) {
	lot := newParkingLot(t)
	for range 40 {
		lot.clock.Advance(time.Second)
		lot.hold()
	}
	later := lot.clock.Now().Add(time.Second)
	all := lot.unpublished(later, 100)
	if len(all) != 41 || !slices.Equal(all, lot.unpublished(later, 1)) || !slices.Equal(all, lot.unpublished(later, 2)) {
		t.Fatalf("%d events wait, want 41, whatever the page", len(all))
	}
	if n := len(lot.unpublished(lot.clock.Now(), 100)); n != 40 {
		t.Errorf("%d events are before the last one's time, want 40", n)
	}
	stored := lot.events(itemsOf(all)...)
	if len(stored) != len(all) {
		t.Fatalf("%d events can be read", len(stored))
	}
	for i, e := range stored {
		if entry := all[i]; e.Item != entry.Item || e.Event.ID != entry.ID || !e.Event.OccurredAt.Equal(entry.OccurredAt) || e.Unreadable != nil || e.Quarantine != nil {
			t.Errorf("%+v stands for %+v", entry, e)
		}
	}
	for _, e := range stored[:3] {
		if err := lot.store.MarkPublished(t.Context(), e.Event, later); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(lot.unpublished(later, 7)); n != 38 {
		t.Errorf("%d events wait after three marks", n)
	}
	// The list was read before the marks: what is published meanwhile is left out, and so is
	// what is not there. Naming one twice is no mistake.
	items := append(itemsOf(all), all[5].Item, ledger.EventItem{PartitionKey: "HOLD#nobody", SortKey: "EVENT#0000000001"})
	if got := lot.events(items...); len(got) != 38 || got[0].Item != all[3].Item {
		t.Errorf("%d events are read", len(got))
	}
	if _, err := lot.store.UnpublishedEvents(t.Context(), make([]ledger.EventItem, ledger.PageItemsMax+1)); ledger.CodeOf(err) != ledger.CodeInvalid {
		t.Errorf("too many: %v", err)
	}
}

// A cursor of another list, or of nobody, is refused.
func TestUnpublishedRefusesAForeignCursor(t *testing.T) {
	lot := newParkingLot(t)
	lot.hold()
	for _, cursor := range []ledger.Cursor{"?", "QUJD", "SE9MRCN4IEhPTEQgMg"} { // none, "ABC", "HOLD#x HOLD 2"
		if _, _, err := lot.store.Unpublished(t.Context(), 0, lot.clock.Now(), ledger.Page{Limit: 1, After: cursor}); ledger.CodeOf(err) != ledger.CodeInvalid {
			t.Errorf("cursor %q: %v", cursor, err)
		}
	}
}

// The event of a later version names the item of the version before it.
func TestAStoredEventNamesTheOneBefore(t *testing.T) {
	lot := newParkingLot(t)
	hold := lot.hold()
	lot.clock.Set(hold.ReleaseAt)
	lot.mustExpire(hold.ID)
	partition := "HOLD#" + string(hold.ID)
	first, second := ledger.EventItem{PartitionKey: partition, SortKey: "EVENT#0000000001"}, ledger.EventItem{PartitionKey: partition, SortKey: "EVENT#0000000002"}
	stored := lot.events(second, first)
	if len(stored) != 2 || stored[0].Before != first || stored[1].Before != (ledger.EventItem{}) {
		t.Errorf("%+v", stored)
	}
}

// What is quarantined is in the one list and not in the other, keeps all that is needed to
// publish it, and comes back when it is requeued. Everything may be repeated.
func TestQuarantineAndRequeue(t *testing.T) {
	lot := newParkingLot(t)
	for range 5 {
		lot.hold()
	}
	later := lot.clock.Now().Add(time.Hour)
	all := lot.unpublished(later, 100)
	poison := all[2]
	whole := lot.events(poison.Item)[0]
	at := lot.clock.Now().UTC().Truncate(time.Millisecond)
	for range 2 {
		if err := lot.store.Quarantine(t.Context(), poison.Item, "too_large", at); err != nil {
			t.Fatal(err)
		}
	}
	if got := lot.quarantined(); len(got) != 1 || got[0] != poison || len(lot.unpublished(later, 100)) != 5 {
		t.Fatalf("in quarantine: %+v", got)
	}
	stored := lot.events(poison.Item)
	if len(stored) != 1 || stored[0].Quarantine == nil || *stored[0].Quarantine != (ledger.Quarantine{Reason: "too_large", At: at}) || stored[0].Event.ID != whole.Event.ID {
		t.Fatalf("%+v", stored)
	}
	for i, want := range []bool{true, false} {
		if done, err := lot.store.Requeue(t.Context(), poison.Item); err != nil || done != want {
			t.Errorf("requeued for the %d. time: %t, %v", i+1, done, err)
		}
	}
	back := lot.events(poison.Item)
	if len(back) != 1 || back[0].Quarantine != nil || len(lot.unpublished(later, 100)) != 6 || len(lot.quarantined()) != 0 {
		t.Errorf("after the requeue: %+v", back)
	}
	for attribute := range lot.item(poison.Item) {
		if strings.HasPrefix(attribute, "quarantined") {
			t.Errorf("%s is left", attribute)
		}
	}
}

// A late record of the stream takes nothing out of its state: a published event is not
// quarantined, and one that is published in spite of its quarantine leaves it. Nothing
// makes an event that is not there.
func TestQuarantineTouchesNoPublishedEvent(t *testing.T) {
	lot := newParkingLot(t)
	lot.hold()
	all := lot.unpublished(lot.clock.Now().Add(time.Hour), 100)
	one, other := lot.events(all[0].Item)[0], lot.events(all[1].Item)[0]
	at := lot.clock.Now()
	steps := []error{
		lot.store.MarkPublished(t.Context(), one.Event, at), lot.store.Quarantine(t.Context(), one.Item, "unreadable", at),
		lot.store.Quarantine(t.Context(), other.Item, "unreadable", at), lot.store.MarkPublished(t.Context(), other.Event, at),
		lot.store.Quarantine(t.Context(), ledger.EventItem{PartitionKey: "HOLD#nobody", SortKey: "EVENT#0000000001"}, "unreadable", at),
	}
	if err := errors.Join(steps...); err != nil {
		t.Fatal(err)
	}
	if got := lot.quarantined(); len(got) != 0 || len(lot.events(one.Item, other.Item)) != 0 {
		t.Errorf("in quarantine: %+v", got)
	}
	if done, err := lot.store.Requeue(t.Context(), one.Item); done || err != nil {
		t.Errorf("a published event is requeued: %t, %v", done, err)
	}
}

// An item that can't be read hides no other, and can be quarantined even when it has lost
// its place in the index.
func TestADamagedEventIsReportedAlone(t *testing.T) {
	lot := newParkingLot(t)
	for range 4 {
		lot.hold()
	}
	later := lot.clock.Now().Add(time.Hour)
	all := itemsOf(lot.unpublished(later, 100))
	lot.damage(all[0], "SET #a = :v", "occurred_at_ms", &types.AttributeValueMemberN{Value: "0.5"})
	lot.damage(all[1], "SET #a = :v", "version", &types.AttributeValueMemberN{Value: "7"}) // another event's number
	lot.damage(all[2], "SET #a = :v", "type", &types.AttributeValueMemberBOOL{Value: true})
	stored := lot.events(all...)
	if len(stored) != 5 {
		t.Fatalf("%d events", len(stored))
	}
	for i, e := range stored {
		if (e.Unreadable != nil) != (i < 3) || e.Item != all[i] || i < 3 && e.Before != (ledger.EventItem{}) {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	lot.damage(all[2], "REMOVE #a", "unpublished_order", nil)
	for _, item := range all[:3] {
		if err := lot.store.Quarantine(t.Context(), item, "unreadable", lot.clock.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if got := lot.quarantined(); len(got) != 3 {
		t.Errorf("in quarantine: %+v", got)
	}
}

// A table that can't be reached is an error of all three, which may be repeated.
func TestQuarantineOfAnUnreachableTable(t *testing.T) {
	lot := newParkingLot(t)
	lot.hold()
	one := lot.unpublished(lot.clock.Now().Add(time.Hour), 100)[0]
	faults := dynamotest.NewFaults(t, lot.client)
	store := dynamo.NewStore(faults, lot.table, lot.clock, systemtest.NewRandom(1))
	faults.Drop(dynamotest.UpdateItem, 2)
	if err := store.Quarantine(t.Context(), one.Item, "unreadable", lot.clock.Now()); ledger.CodeOf(err) != ledger.CodeUnavailable {
		t.Errorf("quarantine: %v", err)
	}
	if done, err := store.Requeue(t.Context(), one.Item); done || ledger.CodeOf(err) != ledger.CodeUnavailable {
		t.Errorf("requeue: %t, %v", done, err)
	}
	faults.Drop(dynamotest.BatchGetItem, 1)
	if _, err := store.UnpublishedEvents(t.Context(), []ledger.EventItem{one.Item}); ledger.CodeOf(err) != ledger.CodeUnavailable {
		t.Errorf("read: %v", err)
	}
}

func (l *parkingLot) mustExpire(id ledger.HoldID) {
	l.Helper()
	if _, err := l.commands.ExpireHold(l.Context(), id, "request_expire"); err != nil {
		l.Fatal(err)
	}
}

func keyOf(i ledger.EventItem) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: i.PartitionKey},
		dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: i.SortKey},
	}
}

// damage changes one attribute of an item by hand.
func (l *parkingLot) damage(i ledger.EventItem, update, attribute string, value types.AttributeValue) {
	l.Helper()
	in := &dynamodb.UpdateItemInput{
		TableName: &l.table, Key: keyOf(i), UpdateExpression: &update, ExpressionAttributeNames: map[string]string{"#a": attribute},
	}
	if value != nil {
		in.ExpressionAttributeValues = map[string]types.AttributeValue{":v": value}
	}
	if _, err := l.client.UpdateItem(l.Context(), in); err != nil {
		l.Fatal(fmt.Errorf("damage %s: %w", i, err))
	}
}

func (l *parkingLot) item(i ledger.EventItem) map[string]types.AttributeValue {
	l.Helper()
	out, err := l.client.GetItem(l.Context(), &dynamodb.GetItemInput{TableName: &l.table, Key: keyOf(i)})
	if err != nil {
		l.Fatal(err)
	}
	return out.Item
}
