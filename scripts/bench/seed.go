package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const (
	// batchItemsMax is the limit of one BatchWriteItem. Source:
	// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
	batchItemsMax = 25
	// seedWriters write batches at the same time, as many as keep the engine busy.
	seedWriters = 4
	// batchTriesMax bounds how often what a batch has left over is sent again.
	batchTriesMax = 10
)

// seedHolds puts n HELD holds of one unit each into the table, with their events, and takes
// their units from stock. The items are those that the store itself makes of ledger.NewHold;
// only they go in by batches, because a hundred thousand transactions take minutes. The
// holds are due one after the other from dueAt on, within a second.
func (b *bench) seedHolds(ctx context.Context, n int, dueAt time.Time) ([]ledger.HoldID, error) {
	slots, err := b.slots(ctx)
	if err != nil {
		return nil, err
	}
	random := system.RealRandom{}
	recorded := &recorder{Client: b.client}
	store := dynamo.NewStore(recorded, tableName, system.RealClock{}, random)
	group, writing := errgroup.WithContext(ctx)
	group.SetLimit(seedWriters)
	ids := make([]ledger.HoldID, n)
	var batch []types.WriteRequest
	taken := map[string]int{}
	stockKeys := map[string]map[string]types.AttributeValue{}
	flush := func() {
		full := batch
		batch = nil
		group.Go(func() error { return b.writeBatch(writing, full) })
	}
	for i := range ids {
		ids[i] = ledger.NewHoldID(random.Bits128())
		slot := slots[i%len(slots)]
		at := dueAt.Add(-slot.Policy.HoldFor + time.Duration(i)*time.Second/time.Duration(n)).Truncate(time.Millisecond)
		change, err := ledger.NewHold(ledger.HoldPlan{
			ID: ids[i], Owner: "U-17", Slots: map[ledger.SlotID]ledger.Slot{slot.ID: slot},
			Quotes:      []ledger.Quote{{Slot: slot.ID, Quantity: 1, UnitAmount: unitAmount}},
			Allocations: map[ledger.SlotID][]ledger.Allocation{slot.ID: {{Quantity: 1}}},
		}, ledger.Origin{Actor: "bench", Command: ledger.CommandCreateHold, RequestID: "bench", EventID: ledger.NewEventID(random.Bits128())}, at)
		if err != nil {
			return nil, err
		}
		if err := store.Commit(ctx, change); err != nil {
			return nil, err
		}
		for _, action := range recorded.inputs[0].TransactItems {
			switch {
			case action.Put != nil:
				batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: action.Put.Item}})
			case action.Update != nil: // of the slot's only stock item
				taken[string(slot.ID)]++
				stockKeys[string(slot.ID)] = action.Update.Key
			}
		}
		recorded.inputs = recorded.inputs[:0]
		if len(batch)+2 > batchItemsMax {
			flush()
		}
	}
	if len(batch) > 0 {
		flush()
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for slot, units := range taken {
		if err := b.takeStock(ctx, stockKeys[slot], units); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// slots are the definitions of all slots.
func (b *bench) slots(ctx context.Context) ([]ledger.Slot, error) {
	ids := make([]ledger.SlotID, slotCount)
	for i := range ids {
		ids[i] = slotID(i)
	}
	return dynamo.NewStore(b.client, tableName, system.RealClock{}, system.RealRandom{}).Slots(ctx, ids)
}

// writeBatch writes the requests, and again what the engine leaves over.
func (b *bench) writeBatch(ctx context.Context, requests []types.WriteRequest) error {
	for range batchTriesMax {
		out, err := b.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{tableName: requests},
		})
		if err != nil {
			return fmt.Errorf("seed: %w", err)
		}
		if requests = out.UnprocessedItems[tableName]; len(requests) == 0 {
			return nil
		}
	}
	return fmt.Errorf("seed: %d items are left over after %d tries", len(requests), batchTriesMax)
}

// takeStock moves units from available to held, as the seeded holds have.
func (b *bench) takeStock(ctx context.Context, key map[string]types.AttributeValue, units int) error {
	_, err := b.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(tableName), Key: key,
		UpdateExpression: aws.String("SET available = available - :units, held = held + :units"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":units": &types.AttributeValueMemberN{Value: fmt.Sprint(units)},
		},
	})
	if err != nil {
		return fmt.Errorf("seed stock: %w", err)
	}
	return nil
}
