package dynamo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

// batchKeysMax is the limit of one BatchGetItem.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
const batchKeysMax = 100

type item = map[string]types.AttributeValue

// Hold returns the hold, or CodeHoldNotFound.
func (s *Store) Hold(ctx context.Context, id ledger.HoldID) (ledger.Hold, error) {
	found, err := s.get(ctx, holdKey(id))
	if err != nil {
		return ledger.Hold{}, err
	}
	if len(found) == 0 || s.purged(found) {
		return ledger.Hold{}, ledger.HoldNotFound()
	}
	return decoded(decodeHold(found))
}

// Reservation returns the reservation, or CodeReservationNotFound.
func (s *Store) Reservation(ctx context.Context, id ledger.ReservationID) (ledger.Reservation, error) {
	found, err := s.get(ctx, reservationKey(id))
	if err != nil {
		return ledger.Reservation{}, err
	}
	if len(found) == 0 || s.purged(found) {
		return ledger.Reservation{}, ledger.ReservationNotFound()
	}
	return decoded(decodeReservation(found))
}

// Claimed returns who claimed the value, and whether anybody has.
func (s *Store) Claimed(ctx context.Context, kind ledger.UniquenessKind, value string) (ledger.Uniqueness, bool, error) {
	found, err := s.get(ctx, uniquenessKey(kind, value))
	if err != nil || len(found) == 0 {
		return ledger.Uniqueness{}, false, err
	}
	claim, err := decoded(decodeUniqueness(found))
	return claim, err == nil, err
}

// IdempotencyRecord returns the record and whether there is one.
func (s *Store) IdempotencyRecord(ctx context.Context, id ledger.IdempotencyID) (ledger.IdempotencyRecord, bool, error) {
	found, err := s.get(ctx, idempotencyKey(id))
	if err != nil || len(found) == 0 {
		return ledger.IdempotencyRecord{}, false, err
	}
	record, err := decoded(decodeIdempotency(found))
	return record, err == nil, err
}

// Slots returns the slots of these ids that exist.
func (s *Store) Slots(ctx context.Context, ids []ledger.SlotID) ([]ledger.Slot, error) {
	if len(ids) > ledger.PageItemsMax {
		return nil, &ledger.Error{Code: ledger.CodeInvalid, Message: fmt.Sprintf("at most %d slots can be read at once", ledger.PageItemsMax)}
	}
	keys := make([]itemKey, 0, len(ids))
	for _, id := range ids {
		// DynamoDB refuses a batch that names an item twice.
		if key := slotKey(id); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	items, err := s.batchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	return decodeAll(items, decodeSlot)
}

// Stock returns all shards of the slots, ordered by slot and shard.
func (s *Store) Stock(ctx context.Context, slots []ledger.Slot) ([]ledger.Stock, error) {
	var keys []itemKey
	for _, slot := range slots {
		for shard := range slot.Terms.StockItems() {
			keys = append(keys, stockKey(slot.ID, ledger.Shard(shard)))
		}
	}
	items, err := s.batchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	stock, err := decodeAll(items, decodeStock)
	slices.SortFunc(stock, func(a, b ledger.Stock) int {
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Shard, b.Shard))
	})
	return stock, err
}

// StockAtOneMoment returns all shards of the slot as they were together at one moment.
func (s *Store) StockAtOneMoment(ctx context.Context, slot ledger.Slot) ([]ledger.Stock, error) {
	gets := make([]types.TransactGetItem, slot.Terms.StockItems())
	for shard := range gets {
		gets[shard].Get = &types.Get{TableName: aws.String(s.table), Key: stockKey(slot.ID, ledger.Shard(shard)).attributes()}
	}
	pace := s.newRetry()
	for {
		out, err := s.client.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets})
		if err == nil {
			stock := make([]ledger.Stock, 0, len(out.Responses))
			for _, response := range out.Responses {
				if len(response.Item) == 0 {
					return nil, internal("reading stock", fmt.Errorf("slot %s has no stock item for one of its shards", slot.ID))
				}
				one, err := decoded(decodeStock(response.Item))
				if err != nil {
					return nil, err
				}
				stock = append(stock, one)
			}
			return stock, nil
		}
		f := classify(err)
		if f.kind == failureFault {
			return nil, internal("reading stock", err)
		}
		if !pace.again(ctx, f.kind == failureThrottle) {
			return nil, unavailable("reading stock", err)
		}
	}
}

// get reads one item, strongly consistent. It is empty when there is none.
func (s *Store) get(ctx context.Context, key itemKey) (item, error) {
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(s.table), Key: key.attributes(), ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, readFailed("reading an item", err)
	}
	return out.Item, nil
}

// Holds returns the holds of these ids in no fixed order. An id without a hold is left out,
// and so is an item that can't be read as one: whoever needs it learns why from Hold. It
// reads more than one chunk of ids one after the other.
func (s *Store) Holds(ctx context.Context, ids []ledger.HoldID) ([]ledger.Hold, error) {
	keys := make([]itemKey, len(ids))
	for i, id := range ids {
		keys[i] = holdKey(id)
	}
	items, err := s.batchGet(ctx, keys)
	if err != nil {
		return nil, err
	}
	holds := make([]ledger.Hold, 0, len(items))
	for _, i := range s.unpurged(items) {
		if hold, err := decodeHold(i); err == nil {
			holds = append(holds, hold)
		}
	}
	return holds, nil
}

// batchGet reads items by key, strongly consistent, in no fixed order. Absent ones are
// left out. What DynamoDB leaves unprocessed is asked for again, with pauses.
func (s *Store) batchGet(ctx context.Context, keys []itemKey) ([]item, error) {
	var found []item
	for chunk := range slices.Chunk(keys, batchKeysMax) {
		ask := make([]item, len(chunk))
		for i, key := range chunk {
			ask[i] = key.attributes()
		}
		pace := s.newRetry()
		for len(ask) > 0 {
			out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{s.table: {Keys: ask, ConsistentRead: aws.Bool(true)}},
			})
			if err != nil {
				return nil, readFailed("reading a batch of items", err)
			}
			found = append(found, out.Responses[s.table]...)
			ask = out.UnprocessedKeys[s.table].Keys
			if len(ask) > 0 && !pace.again(ctx, true) {
				return nil, unavailable("reading a batch of items", errors.New("the table is throttled"))
			}
		}
	}
	return found, nil
}

// readFailed is the error of a read: reads change nothing, so all that matters is
// whether asking again can help. The SDK has already retried.
func readFailed(doing string, err error) error {
	if classify(err).kind == failureFault {
		return internal(doing, err)
	}
	return unavailable(doing, err)
}

func decoded[T any](value T, err error) (T, error) {
	if err != nil {
		return value, internal("decoding an item", err)
	}
	return value, nil
}

func decodeAll[T any](items []item, decode func(item) (T, error)) ([]T, error) {
	out := make([]T, 0, len(items))
	for _, i := range items {
		value, err := decoded(decode(i))
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}
