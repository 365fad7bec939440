package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"holdfast/shared/ledger"
)

// recordsItemsMax bounds the items of one thing. A slot has an event for each of its edits.
const recordsItemsMax = 100_000

// Records returns all that is stored of one thing, itself with its places in the lists and its
// events, strongly consistent. A thing that is not there has no records. What a step changes
// in between may be seen in part: the versions tell. An item that can't be read is named.
func (s *Store) Records(ctx context.Context, of ledger.RecordsOf) (ledger.Records, error) {
	key, err := keyOfRecords(of)
	if err != nil {
		return ledger.Records{}, err
	}
	var items []item
	var start item
	for {
		page, err := s.query(ctx, queryOf{
			limit: ledger.PageItemsMax, start: start,
			condition: expression.Key(AttributePartitionKey).Equal(expression.Value(key.PartitionKey)),
		})
		if err != nil {
			return ledger.Records{}, err
		}
		items = append(items, s.unpurged(page.items)...)
		if len(items) > recordsItemsMax {
			return ledger.Records{}, internal("reading "+key.PartitionKey, fmt.Errorf("it has more than %d items", recordsItemsMax))
		}
		if start = page.last; len(start) == 0 {
			return readRecords(items), nil
		}
	}
}

func keyOfRecords(of ledger.RecordsOf) (itemKey, error) {
	switch {
	case of.Item != (ledger.EventItem{}):
		return itemKey(of.Item), nil
	case of.Hold != "":
		return holdKey(of.Hold), nil
	case of.Reservation != "":
		return reservationKey(of.Reservation), nil
	case of.Slot != "" && of.OfStock:
		return stockKey(of.Slot, of.Shard), nil
	case of.Slot != "":
		return slotKey(of.Slot), nil
	case of.Policy.ResourceType != "":
		return policyKey(of.Policy), nil
	case of.Review != "":
		return reviewKey(of.Review), nil
	}
	return itemKey{}, internal("reading records", errors.New("of nothing"))
}

// EndedHolds lists the holds of one due shard that have ended, and whose retention counts from
// since or later: also those that ended long ago, while their slots are not over. A hold
// that lies in the archive is not among them.
func (s *Store) EndedHolds(ctx context.Context, shard int, since time.Time, page ledger.Page) ([]ledger.HoldID, ledger.Cursor, error) {
	list := dueShardKey(kindArchiveHold, shard)
	var start item
	if page.After != "" {
		order, err := decodeCursor(page.After)
		if err != nil {
			return nil, "", err
		}
		dueAtMs, id, err := parseDueOrder(order, ledger.ValidHoldID)
		if err != nil {
			return nil, "", err
		}
		start = startKey(holdKey(ledger.HoldID(id)), item{AttributeDueShard: text(list), AttributeDueAtMs: number(dueAtMs)})
	}
	found, err := s.query(ctx, queryOf{
		index: IndexDue, limit: page.Limit, start: start,
		condition: expression.Key(AttributeDueShard).Equal(expression.Value(list)).
			And(expression.Key(AttributeDueAtMs).GreaterThanEqual(expression.Value(milliseconds(since)))),
	})
	if err != nil {
		return nil, "", err
	}
	ids := make([]ledger.HoldID, len(found.items))
	for i, entry := range found.items {
		ids[i] = ledger.HoldID(newDueEntry(entry).id)
	}
	var next ledger.Cursor
	if len(found.last) > 0 {
		last := newDueEntry(found.last)
		next = encodeCursor(dueOrder(milliseconds(last.dueAt), last.id))
	}
	return ids, next, nil
}
