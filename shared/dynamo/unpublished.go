package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

const (
	attributeQuarantinedReason = "quarantined_reason"
	attributeQuarantinedAtMs   = "quarantined_at_ms"
	// prefixQuarantine stands before the shards of the quarantine. They are in the same index
	// as the unpublished events, so that one index tells of all that is not out.
	prefixQuarantine = "quarantine-"
	// unknownEvent is the id in the order of an item that had none when it was quarantined.
	unknownEvent = "unknown"
	// itemCursorSeparator occurs in no part of a key.
	itemCursorSeparator = " "
)

func quarantineShardKey(shard int) string { return prefixQuarantine + unpublishedShardKey(shard) }

// shardOfItem is the shard that an item waits in after it was quarantined or requeued. It
// goes by the key, because the item may lack the id that the first shard came from. Nobody
// looks for one event in one shard: who lists them lists them all.
func shardOfItem(i ledger.EventItem) int {
	return ledger.UnpublishedShard(ledger.EventID(i.String()))
}

// Unpublished lists the entries of one shard of the unpublished index whose events
// occurred before a time, the oldest first. The quarantined ones are not in it.
func (s *Store) Unpublished(ctx context.Context, shard int, before time.Time, page ledger.Page) ([]ledger.UnpublishedEvent, ledger.Cursor, error) {
	return s.unpublished(ctx, unpublishedShardKey(shard), page,
		expression.Key(AttributeUnpublishedOrder).LessThan(expression.Value(before.UTC().Format(orderTimeLayout))))
}

// Quarantined lists the entries of one shard of the quarantine, the oldest event first.
func (s *Store) Quarantined(ctx context.Context, shard int, page ledger.Page) ([]ledger.UnpublishedEvent, ledger.Cursor, error) {
	return s.unpublished(ctx, quarantineShardKey(shard), page, expression.KeyConditionBuilder{})
}

func (s *Store) unpublished(ctx context.Context, shard string, page ledger.Page, among expression.KeyConditionBuilder) ([]ledger.UnpublishedEvent, ledger.Cursor, error) {
	condition := expression.Key(AttributeUnpublishedShard).Equal(expression.Value(shard))
	if among.IsSet() {
		condition = condition.And(among)
	}
	var start item
	if page.After != "" {
		after, err := decodeCursor(page.After)
		if err != nil {
			return nil, "", err
		}
		parts := strings.Split(after, itemCursorSeparator)
		if len(parts) != 3 || parts[0] == "" || !strings.HasPrefix(parts[1], sortEventPrefix) || !validOrder(parts[2], "") {
			return nil, "", badCursor()
		}
		start = startKey(itemKey{parts[0], parts[1]}, item{
			AttributeUnpublishedShard: text(shard), AttributeUnpublishedOrder: text(parts[2]),
		})
	}
	found, err := s.query(ctx, queryOf{index: IndexUnpublished, limit: page.Limit, start: start, condition: condition})
	if err != nil {
		return nil, "", err
	}
	entries := make([]ledger.UnpublishedEvent, len(found.items))
	for i, entry := range found.items {
		entries[i] = newUnpublishedEvent(entry)
	}
	var next ledger.Cursor
	if last := found.last; len(last) > 0 {
		next = encodeCursor(strings.Join([]string{
			stringOf(last, AttributePartitionKey), stringOf(last, AttributeSortKey), stringOf(last, AttributeUnpublishedOrder),
		}, itemCursorSeparator))
	}
	return entries, next, nil
}

func newUnpublishedEvent(i item) ledger.UnpublishedEvent {
	order := stringOf(i, AttributeUnpublishedOrder)
	entry := ledger.UnpublishedEvent{Item: eventItem(i), ID: ledger.EventID(lastPart(order))}
	at, _, _ := strings.Cut(order, separator)
	if occurredAt, err := time.Parse(orderTimeLayout, at); err == nil {
		entry.OccurredAt = occurredAt
	}
	return entry
}

func eventItem(i item) ledger.EventItem {
	return ledger.EventItem{PartitionKey: stringOf(i, AttributePartitionKey), SortKey: stringOf(i, AttributeSortKey)}
}

// UnpublishedEvents reads the event items, strongly consistent, and returns those that are
// not published, in the order of items. What is published meanwhile, or not there, is left
// out. An item that can't be read as an event is returned as such, so that one of them
// does not hide the others. Items may be named twice; at most PageItemsMax are read.
func (s *Store) UnpublishedEvents(ctx context.Context, items []ledger.EventItem) ([]ledger.StoredEvent, error) {
	if len(items) > ledger.PageItemsMax {
		return nil, &ledger.Error{Code: ledger.CodeInvalid, Message: fmt.Sprintf("at most %d events can be read at once", ledger.PageItemsMax)}
	}
	keys, seen := make([]itemKey, 0, len(items)), make(map[ledger.EventItem]bool, len(items))
	wanted := make([]ledger.EventItem, 0, len(items))
	for _, i := range items {
		// DynamoDB refuses a batch that names an item twice.
		if !seen[i] {
			seen[i] = true
			keys, wanted = append(keys, itemKey(i)), append(wanted, i)
		}
	}
	found, err := s.batchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	events := make([]ledger.StoredEvent, 0, len(found))
	for _, i := range found {
		if stringOf(i, AttributeUnpublishedShard) != "" {
			events = append(events, newStoredEvent(i))
		}
	}
	return inOrder(wanted, events, func(e ledger.StoredEvent) ledger.EventItem { return e.Item }), nil
}

func newStoredEvent(i item) ledger.StoredEvent {
	stored := ledger.StoredEvent{Item: eventItem(i)}
	if strings.HasPrefix(stringOf(i, AttributeUnpublishedShard), prefixQuarantine) {
		stored.Quarantine = &ledger.Quarantine{
			Reason: stringOf(i, attributeQuarantinedReason), At: fromMilliseconds(numberOf(i, attributeQuarantinedAtMs)),
		}
	}
	event, err := decodeWholeEvent(i)
	if err == nil && eventKey(event) != itemKey(stored.Item) {
		err = errors.New("it is not the event of its key") // a mark would go to another item
	}
	if err != nil {
		stored.Unreadable = err
		return stored
	}
	stored.Event = event
	if event.Version > 1 {
		event.Version--
		stored.Before = ledger.EventItem(eventKey(event))
	}
	return stored
}

// Quarantine takes an event that no retry can publish as it is out of the unpublished
// index and into the quarantine, with the reason. The item stays as it is otherwise: it is
// all that is needed to publish the event later. It may be repeated. It does nothing to an
// event that is published, or is not there.
func (s *Store) Quarantine(ctx context.Context, event ledger.EventItem, reason string, at time.Time) error {
	order := expression.Name(AttributeUnpublishedOrder)
	// An item that was damaged may have lost its place in the index.
	orderAtWorst := at.UTC().Format(orderTimeLayout) + separator + unknownEvent
	built, err := expression.NewBuilder().
		WithCondition(expression.AttributeExists(expression.Name(AttributePartitionKey)).
			And(expression.AttributeNotExists(expression.Name(attributePublishedAtMs)))).
		WithUpdate(expression.
			Set(expression.Name(AttributeUnpublishedShard), expression.Value(quarantineShardKey(shardOfItem(event)))).
			Set(order, expression.IfNotExists(order, expression.Value(orderAtWorst))).
			Set(expression.Name(attributeQuarantinedReason), expression.Value(reason)).
			Set(expression.Name(attributeQuarantinedAtMs), expression.Value(milliseconds(at)))).
		Build()
	if err != nil {
		return internal("building a quarantine", err)
	}
	if _, err := s.updateEvent(ctx, event, built); err != nil {
		return unavailable("quarantining the event "+event.String(), err)
	}
	return nil
}

// Requeue takes an event out of the quarantine and back into the unpublished index, once
// its cause is gone. It reports false, and does nothing, if the event is not in quarantine.
func (s *Store) Requeue(ctx context.Context, event ledger.EventItem) (bool, error) {
	shard := expression.Name(AttributeUnpublishedShard)
	built, err := expression.NewBuilder().
		WithCondition(expression.BeginsWith(shard, prefixQuarantine)).
		WithUpdate(expression.
			Set(shard, expression.Value(unpublishedShardKey(shardOfItem(event)))).
			Remove(expression.Name(attributeQuarantinedReason)).
			Remove(expression.Name(attributeQuarantinedAtMs))).
		Build()
	if err != nil {
		return false, internal("building a requeue", err)
	}
	done, err := s.updateEvent(ctx, event, built)
	if err != nil {
		return false, unavailable("requeuing the event "+event.String(), err)
	}
	return done, nil
}

// updateEvent makes one conditional update of an event item, and reports whether its
// condition was true.
func (s *Store) updateEvent(ctx context.Context, event ledger.EventItem, built expression.Expression) (bool, error) {
	err := s.update(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(s.table), Key: itemKey(event).attributes(),
		ConditionExpression: built.Condition(), UpdateExpression: built.Update(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
	})
	if refused := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &refused) {
		return false, nil
	}
	return err == nil, err
}
