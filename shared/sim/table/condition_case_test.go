package table_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

// unconditional is a client on which a write of stock goes through whatever its condition
// says, as if somebody had taken the condition away.
type unconditional struct{ *client }

func (c unconditional) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	changed := *in
	changed.TransactItems = make([]types.TransactWriteItem, len(in.TransactItems))
	for i, leg := range in.TransactItems {
		changed.TransactItems[i] = leg
		if leg.Update == nil {
			continue
		}
		key, _ := leg.Update.Key[dynamo.AttributePartitionKey].(*types.AttributeValueMemberS)
		if key == nil || !strings.HasPrefix(key.Value, "STOCK#") {
			continue
		}
		update := *leg.Update
		update.ConditionExpression = aws.String("(" + aws.ToString(update.ConditionExpression) + ") OR attribute_exists(#always)")
		update.ExpressionAttributeNames = maps.Clone(update.ExpressionAttributeNames)
		update.ExpressionAttributeNames["#always"] = dynamo.AttributePartitionKey
		changed.TransactItems[i].Update = &update
	}
	return c.client.TransactWriteItems(ctx, &changed, options...)
}

// twoUsersOneUnit is a round of case A6: two users ask for the one unit of a fresh slot at
// the same instant. It returns how many got it, and the counters afterwards.
func twoUsersOneUnit(t *testing.T, store *dynamo.Store, round int) (int, ledger.Counters) {
	t.Helper()
	id, now := ledger.SlotID(fmt.Sprintf("seat-%d", round)), time.Date(2026, time.March, 1, 9, 0, 0, 0, time.UTC)
	origin := func(n byte) ledger.Origin {
		return ledger.Origin{Actor: "A6", RequestID: "request_a6", EventID: ledger.NewEventID([16]byte{n, byte(round), byte(round >> 8), 6})}
	}
	made, err := ledger.NewSlot(id, ledger.SlotDefinition{
		ResourceType: "show", ResourceID: "R-1", Capacity: 1, Policy: ledger.DefaultPolicy(),
		Terms: ledger.Terms{Open: true, Price: ledger.Money{AmountMinor: 500, Currency: "USD"}, Shards: 1},
	}, origin(0), now)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Commit(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	outcomes := make([]error, 2)
	var users sync.WaitGroup
	for n := range outcomes {
		change, err := ledger.NewHold(ledger.HoldPlan{
			ID: ledger.NewHoldID([16]byte{byte(n), byte(round), byte(round >> 8)}), Owner: ledger.OwnerID(fmt.Sprintf("U-%d", n)),
			Quotes: []ledger.Quote{{Slot: id, Quantity: 1, UnitAmount: 500}}, Slots: map[ledger.SlotID]ledger.Slot{id: made.Slots[0].Next},
			Allocations: map[ledger.SlotID][]ledger.Allocation{id: {{Shard: 0, Quantity: 1}}},
		}, origin(byte(n+1)), now)
		if err != nil {
			t.Fatal(err)
		}
		users.Go(func() { outcomes[n] = store.Commit(t.Context(), change) })
	}
	users.Wait()
	got := 0
	for _, err := range outcomes {
		if refused := (*ledger.Refused)(nil); err == nil {
			got++
		} else if !errors.As(err, &refused) {
			t.Fatal(err)
		}
	}
	stock, err := store.StockAtOneMoment(t.Context(), made.Slots[0].Next)
	if err != nil {
		t.Fatal(err)
	}
	return got, stock[0].Counters
}

// Case A6: the lock was different for each user, so it protected nothing. It is the condition
// of the write that protects: with it one of two users gets the unit in every round, and
// without it both do.
func TestCaseA6_OnlyTheConditionOfTheWriteProtects(t *testing.T) {
	const rounds = 500
	for name, test := range map[string]struct {
		client   dynamo.Client
		got      int
		counters ledger.Counters
	}{
		"with the condition":    {mustClient(t), 1, ledger.Counters{Held: 1, Capacity: 1}},
		"without the condition": {unconditional{mustClient(t)}, 2, ledger.Counters{Available: -1, Held: 2, Capacity: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			store := dynamo.NewStore(test.client, "table", system.RealClock{}, system.RealRandom{})
			for round := range rounds {
				if got, counters := twoUsersOneUnit(t, store, round); got != test.got || counters != test.counters {
					t.Fatalf("round %d: %d users got the unit, and the counters are %+v; want %d and %+v", round, got, counters, test.got, test.counters)
				}
			}
		})
	}
}
