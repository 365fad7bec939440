package dynamo_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/commands"
	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/expiry"
	"holdfast/shared/expiry/expirytest"
	"holdfast/shared/ledger"
	"holdfast/shared/ledger/ledgertest"
	"holdfast/shared/system/systemtest"
)

// gatedClient is a client that a sweeper of a crew can be killed at. The calls that no
// sweep makes are not gated.
type gatedClient struct {
	dynamo.Client
	gate *expirytest.Gate
}

// answered is what a call gives.
type answered[T any] struct {
	out *T
	err error
}

func gated[In, Out any](ctx context.Context, gate *expirytest.Gate, in *In, options []func(*dynamodb.Options), call func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)) (*Out, error) {
	got := expirytest.Pass(gate, func() (a answered[Out]) {
		a.out, a.err = call(ctx, in, options...)
		return a
	})
	return got.out, got.err
}

func (c gatedClient) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return gated(ctx, c.gate, in, options, c.Client.TransactWriteItems)
}

func (c gatedClient) GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return gated(ctx, c.gate, in, options, c.Client.GetItem)
}

func (c gatedClient) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return gated(ctx, c.gate, in, options, c.Client.Query)
}

func (c gatedClient) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return gated(ctx, c.gate, in, options, c.Client.UpdateItem)
}

// Case B2 at its worst, on the real engine: two sweepers are killed again and again, before
// and after any call. Each hold ends once, with one event, and the stock is exact.
func TestCaseB2_KilledSweepersEndEachHoldOnceInTheTable(t *testing.T) {
	const holds, kills, seed = 300, 10, 3
	client, table := dynamotest.NewTable(t)
	clock := systemtest.NewClock(time.Date(2026, 9, 1, 10, 0, 0, 0, time.UTC))
	store := dynamo.NewStore(client, table, clock, systemtest.NewRandom(seed))
	c := &counter{t: t, clock: clock, store: store, commands: commands.New(store, clock, systemtest.NewRandom(seed))}
	if _, err := c.putSlot(holds); err != nil {
		t.Fatal(err)
	}
	var ids []ledger.HoldID
	for range holds {
		answer, err := c.buy()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, ledger.HoldID(answer.Response.Body))
	}
	clock.Advance(time.Hour)
	runs := uint64(seed)
	expirytest.NewCrew(t, seed, clock, kills).Work(2, func(gate *expirytest.Gate) *expiry.Sweep {
		runs++
		random := systemtest.NewRandom(runs)
		killed := dynamo.NewStore(gatedClient{client, gate}, table, clock, random)
		return expirytest.MustSweep(t, expirytest.Parts{
			Store: killed, Parking: killed, Leases: killed, Releaser: commands.New(killed, clock, random), Clock: clock,
		}, ledger.PageItemsMax)
	})
	c.wantStock(holds, 0, 0)
	for _, id := range ids {
		events, err := store.HoldEvents(t.Context(), id)
		if err != nil || len(events) != 2 || events[1].Type != ledger.EventHoldExpired {
			t.Errorf("hold %s has %d events, %v", id, len(events), err)
		}
	}
	ledgertest.CheckBooks(t, store, []ledger.SlotID{soldSlot}, ids)
}
