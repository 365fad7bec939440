package dynamo

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

// HoldsOfOwner lists the owner's holds, the newest first.
func (s *Store) HoldsOfOwner(ctx context.Context, owner ledger.OwnerID, page ledger.Page) ([]ledger.Hold, ledger.Cursor, error) {
	found, err := s.ofOwner(ctx, kindHold, owner, page, func(id string) itemKey { return holdKey(ledger.HoldID(id)) })
	if err != nil {
		return nil, "", err
	}
	holds, err := readInOrder(ctx, s, found, decodeHold, func(h ledger.Hold) itemKey { return holdKey(h.ID) })
	return holds, found.cursor(AttributeOwnerOrder), err
}

// ReservationsOfOwner lists the owner's reservations, the newest first.
func (s *Store) ReservationsOfOwner(ctx context.Context, owner ledger.OwnerID, page ledger.Page) ([]ledger.Reservation, ledger.Cursor, error) {
	found, err := s.ofOwner(ctx, kindReservation, owner, page, func(id string) itemKey { return reservationKey(ledger.ReservationID(id)) })
	if err != nil {
		return nil, "", err
	}
	reservations, err := readInOrder(ctx, s, found, decodeReservation, func(r ledger.Reservation) itemKey { return reservationKey(r.ID) })
	return reservations, found.cursor(AttributeOwnerOrder), err
}

// ofOwner reads one page of what the owner has of one kind, the newest first.
func (s *Store) ofOwner(ctx context.Context, kind string, owner ledger.OwnerID, page ledger.Page, keyOf func(id string) itemKey) (found, error) {
	var start item
	if page.After != "" {
		order, err := decodeCursor(page.After)
		if err != nil || !validOrder(order, kind) {
			return found{}, badCursor()
		}
		start = startKey(keyOf(lastPart(order)), item{
			AttributeOwner: text(string(owner)), AttributeOwnerOrder: text(order),
		})
	}
	return s.query(ctx, queryOf{
		index: IndexOwner, newestFirst: true, limit: page.Limit, start: start,
		condition: expression.Key(AttributeOwner).Equal(expression.Value(string(owner))).
			And(expression.Key(AttributeOwnerOrder).BeginsWith(kind)),
	})
}

// readInOrder reads the items that an index named, and keeps the index's order.
func readInOrder[T any](ctx context.Context, s *Store, page found, decode func(item) (T, error), keyOf func(T) itemKey) ([]T, error) {
	keys := make([]itemKey, len(page.items))
	for i, entry := range page.items {
		keys[i] = itemKey{stringOf(entry, AttributePartitionKey), stringOf(entry, AttributeSortKey)}
	}
	items, err := s.batchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	values, err := decodeAll(s.unpurged(items), decode)
	return inOrder(keys, values, keyOf), err
}

// SlotsOfResource lists a resource's slots in the order of their start.
func (s *Store) SlotsOfResource(ctx context.Context, t ledger.ResourceType, id ledger.ResourceID, from, to time.Time, page ledger.Page) ([]ledger.Slot, ledger.Cursor, error) {
	resource := resourceKey(t, id)
	condition := expression.Key(AttributeResource).Equal(expression.Value(resource))
	bounded := !from.IsZero() || !to.IsZero()
	first, last := "0", afterAllNames
	if !from.IsZero() {
		first = from.UTC().Format(orderTimeLayout)
	}
	if !to.IsZero() {
		last = to.UTC().Format(orderTimeLayout) + separator + afterAllNames
	}
	if bounded {
		if first > last {
			return nil, "", nil
		}
		condition = condition.And(expression.Key(AttributeResourceOrder).Between(expression.Value(first), expression.Value(last)))
	}
	var start item
	if page.After != "" {
		order, err := decodeCursor(page.After)
		// DynamoDB refuses a start key outside the bounds of the question. A list within
		// them never gave such a cursor; the same list asked with other bounds did.
		if err != nil || !validOrder(order, "") || (bounded && (order < first || order > last)) {
			return nil, "", badCursor()
		}
		start = startKey(slotKey(ledger.SlotID(lastPart(order))), item{
			AttributeResource: text(resource), AttributeResourceOrder: text(order),
		})
	}
	found, err := s.query(ctx, queryOf{index: IndexResource, limit: page.Limit, start: start, condition: condition})
	if err != nil {
		return nil, "", err
	}
	ids := make([]ledger.SlotID, len(found.items))
	for i, entry := range found.items {
		ids[i] = ledger.SlotID(lastPart(stringOf(entry, AttributeResourceOrder)))
	}
	slots, err := s.Slots(ctx, ids)
	return inOrder(ids, slots, func(s ledger.Slot) ledger.SlotID { return s.ID }), found.cursor(AttributeResourceOrder), err
}

// Due lists the holds of one due shard that are due at or before now, the oldest first.
func (s *Store) Due(ctx context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
	entries, next, err := s.due(ctx, dueShardKey(kindHold, shard), now, page, ledger.ValidHoldID,
		func(id string) itemKey { return holdKey(ledger.HoldID(id)) })
	if err != nil {
		return nil, "", err
	}
	due := make([]ledger.DueHold, len(entries))
	for i, entry := range entries {
		due[i] = ledger.DueHold{ID: ledger.HoldID(entry.id), DueAt: entry.dueAt}
	}
	return due, next, nil
}

// DueReservations lists the reservations of one due shard that are to be looked at at or
// before now, the oldest first.
func (s *Store) DueReservations(ctx context.Context, shard int, now time.Time, page ledger.Page) ([]ledger.DueReservation, ledger.Cursor, error) {
	entries, next, err := s.due(ctx, dueShardKey(kindReservation, shard), now, page, ledger.ValidReservationID,
		func(id string) itemKey { return reservationKey(ledger.ReservationID(id)) })
	if err != nil {
		return nil, "", err
	}
	due := make([]ledger.DueReservation, len(entries))
	for i, entry := range entries {
		due[i] = ledger.DueReservation{ID: ledger.ReservationID(entry.id), DueAt: entry.dueAt}
	}
	return due, next, nil
}

// dueEntry is an entry of the due index.
type dueEntry struct {
	id    string
	dueAt time.Time
}

func newDueEntry(i item) dueEntry {
	return dueEntry{lastPart(stringOf(i, AttributePartitionKey)), fromMilliseconds(numberOf(i, AttributeDueAtMs))}
}

// due reads one page of one due shard.
func (s *Store) due(ctx context.Context, dueShard string, now time.Time, page ledger.Page, validID func(string) bool, keyOf func(id string) itemKey) ([]dueEntry, ledger.Cursor, error) {
	var start item
	if page.After != "" {
		order, err := decodeCursor(page.After)
		if err != nil {
			return nil, "", err
		}
		dueAtMs, id, err := parseDueOrder(order, validID)
		if err != nil {
			return nil, "", err
		}
		start = startKey(keyOf(id), item{AttributeDueShard: text(dueShard), AttributeDueAtMs: number(dueAtMs)})
	}
	found, err := s.query(ctx, queryOf{
		index: IndexDue, limit: page.Limit, start: start,
		condition: expression.Key(AttributeDueShard).Equal(expression.Value(dueShard)).
			And(expression.Key(AttributeDueAtMs).LessThanEqual(expression.Value(milliseconds(now)))),
	})
	if err != nil {
		return nil, "", err
	}
	entries := make([]dueEntry, len(found.items))
	for i, entry := range found.items {
		entries[i] = newDueEntry(entry)
	}
	var next ledger.Cursor
	if len(found.last) > 0 {
		last := newDueEntry(found.last)
		next = encodeCursor(dueOrder(milliseconds(last.dueAt), last.id))
	}
	return entries, next, nil
}

// HoldEvents returns the hold's events, the oldest first.
func (s *Store) HoldEvents(ctx context.Context, id ledger.HoldID) ([]ledger.Event, error) {
	return s.events(ctx, holdKey(id))
}

// ReservationEvents returns the reservation's events, the oldest first.
func (s *Store) ReservationEvents(ctx context.Context, id ledger.ReservationID) ([]ledger.Event, error) {
	return s.events(ctx, reservationKey(id))
}

// SlotEvents returns the slot's events, the oldest first.
func (s *Store) SlotEvents(ctx context.Context, id ledger.SlotID) ([]ledger.Event, error) {
	return s.events(ctx, slotKey(id))
}

// PolicyEvents returns the events of the policy of one scope, the oldest first.
func (s *Store) PolicyEvents(ctx context.Context, scope ledger.PolicyScope) ([]ledger.Event, error) {
	return s.events(ctx, policyKey(scope))
}

func (s *Store) events(ctx context.Context, subject itemKey) ([]ledger.Event, error) {
	var events []ledger.Event
	var start item
	for len(events) < ledger.PageItemsMax {
		found, err := s.query(ctx, queryOf{
			limit: ledger.PageItemsMax - len(events), start: start,
			condition: expression.Key(AttributePartitionKey).Equal(expression.Value(subject.PartitionKey)).
				And(expression.Key(AttributeSortKey).BeginsWith(sortEventPrefix)),
		})
		if err != nil {
			return nil, err
		}
		page, err := decodeAll(s.unpurged(found.items), decodeEvent)
		if err != nil {
			return nil, err
		}
		events = append(events, page...)
		if start = found.last; len(start) == 0 {
			break
		}
	}
	return events, nil
}

// queryOf is one query. An empty index is the table itself, read consistently.
type queryOf struct {
	index       string
	condition   expression.KeyConditionBuilder
	newestFirst bool
	limit       int
	start       item
}

// found is one page: last is where the next one begins, empty after the last page.
type found struct {
	items []item
	last  item
}

func (f found) cursor(order string) ledger.Cursor {
	if len(f.last) == 0 {
		return ""
	}
	return encodeCursor(stringOf(f.last, order))
}

// query reads one page. A limit out of bounds is the caller's fault.
func (s *Store) query(ctx context.Context, q queryOf) (found, error) {
	if q.limit < 1 || q.limit > ledger.PageItemsMax {
		return found{}, &ledger.Error{Code: ledger.CodeInvalid, Message: fmt.Sprintf("a page may have 1 to %d items", ledger.PageItemsMax)}
	}
	built, err := expression.NewBuilder().WithKeyCondition(q.condition).Build()
	if err != nil {
		return found{}, internal("building a query", err)
	}
	in := &dynamodb.QueryInput{
		TableName: aws.String(s.table), KeyConditionExpression: built.KeyCondition(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
		ExclusiveStartKey: q.start, ScanIndexForward: aws.Bool(!q.newestFirst),
		Limit: aws.Int32(int32(q.limit)),
	}
	if q.index == "" {
		in.ConsistentRead = aws.Bool(true)
	} else {
		in.IndexName = aws.String(q.index)
	}
	out, err := s.client.Query(ctx, in)
	if err != nil {
		return found{}, readFailed("querying "+q.index, err)
	}
	return found{out.Items, out.LastEvaluatedKey}, nil
}

// inOrder puts values in the order of their ids and leaves absent ones out.
func inOrder[ID comparable, T any](ids []ID, values []T, idOf func(T) ID) []T {
	byID := make(map[ID]T, len(values))
	for _, value := range values {
		byID[idOf(value)] = value
	}
	out := make([]T, 0, len(values))
	for _, id := range ids {
		if value, present := byID[id]; present {
			out = append(out, value)
		}
	}
	return out
}

func stringOf(i item, attribute string) string {
	value, _ := i[attribute].(*types.AttributeValueMemberS)
	if value == nil {
		return ""
	}
	return value.Value
}

// numberOf reads an index's number, which DynamoDB has checked to be one.
func numberOf(i item, attribute string) int64 {
	value, _ := i[attribute].(*types.AttributeValueMemberN)
	if value == nil {
		return 0
	}
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
