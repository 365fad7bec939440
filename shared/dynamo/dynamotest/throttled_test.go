package dynamotest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/system/systemtest"
)

// accepting is a client that accepts every write and counts them: what a limit does has
// nothing to do with a table.
type accepting struct {
	dynamo.Client
	writes int
}

func (a *accepting) TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	a.writes++
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

func (a *accepting) UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	a.writes++
	return &dynamodb.UpdateItemOutput{}, nil
}

func (a *accepting) PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	a.writes++
	return &dynamodb.PutItemOutput{}, nil
}

var throttledFrom = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

// newThrottled is a client whose partitions take 100 units a second, 10 of them at once.
func newThrottled() (*dynamotest.Throttled, *accepting, *systemtest.Clock) {
	clock, table := systemtest.NewClock(throttledFrom), &accepting{}
	limit := dynamotest.PartitionLimit{WriteUnitsPerSecond: 100, BurstFor: 100 * time.Millisecond}
	return dynamotest.NewThrottled(table, limit, clock), table, clock
}

// reasonsOf are the reasons of a cancelled transaction, in its order.
func reasonsOf(err error) string {
	var canceled *types.TransactionCanceledException
	var wrapped *smithy.OperationError
	switch {
	case err == nil:
		return "applied"
	case !errors.As(err, &canceled) || !errors.As(err, &wrapped):
		return err.Error()
	}
	codes := make([]string, len(canceled.CancellationReasons))
	for i, reason := range canceled.CancellationReasons {
		codes[i] = aws.ToString(reason.Code)
	}
	return strings.Join(codes, " ")
}

func send(client dynamo.Client, partitions ...string) string {
	_, err := client.TransactWriteItems(context.Background(), transaction("table", partitions...))
	return reasonsOf(err)
}

// A partition takes its burst at once and then its rate, at two units for each item of a
// transaction: 5 at once, and 50 a second.
func TestThrottledPartitionTakesItsRate(t *testing.T) {
	client, table, clock := newThrottled()
	const ticks, tick = 1000, 5 * time.Millisecond
	for range ticks {
		send(client, "hot")
		clock.Advance(tick)
	}
	// 5 of the burst; then one for each 20 ms.
	if want := 5 + int(ticks*tick/(20*time.Millisecond)) - 1; table.writes < want-1 || table.writes > want+1 {
		t.Errorf("%d of %d transactions in 5 s were let through, want %d", table.writes, ticks, want)
	}
	if counts := client.Counts(); counts.Admitted != table.writes || counts.Throttled != ticks-table.writes {
		t.Errorf("counted %+v, and the table has seen %d of %d", counts, table.writes, ticks)
	}
	before := table.writes
	clock.Advance(time.Hour)
	for range 20 {
		send(client, "hot")
	}
	if burst := table.writes - before; burst != 5 {
		t.Errorf("%d at once after an hour of rest, want the 5 of the burst", burst)
	}
}

// A transaction is refused as a whole, its reasons name the partitions over their limit,
// and the others have given nothing.
func TestThrottledTransactionIsRefusedAsAWhole(t *testing.T) {
	client, table, clock := newThrottled()
	for range 5 {
		send(client, "hot")
	}
	for range 100 {
		if got := send(client, "cold", "hot", "other"); got != "None ThrottlingError None" {
			t.Fatalf("reasons %q, want the throttle on the hot leg alone", got)
		}
	}
	if table.writes != 5 {
		t.Errorf("%d transactions reached the table, want 5", table.writes)
	}
	for range 5 {
		if got := send(client, "cold"); got != "applied" {
			t.Errorf("the refused transactions took from a partition that had capacity: %s", got)
		}
	}
	clock.Advance(20 * time.Millisecond)
	if got := send(client, "hot", "other"); got != "applied" {
		t.Errorf("20 ms later the hot partition has two units again: %s", got)
	}
	if got := send(client, "hot"); got != "ThrottlingError" {
		t.Errorf("and no more: %s", got)
	}
}

// A failed condition costs its write all the same, and every kind of action has a cost.
func TestThrottledCountsEveryKindOfAction(t *testing.T) {
	table := aws.String("table")
	for name, action := range map[string]types.TransactWriteItem{
		"put":       {Put: &types.Put{TableName: table, Item: item("hot")}},
		"update":    {Update: &types.Update{TableName: table, Key: item("hot")}},
		"delete":    {Delete: &types.Delete{TableName: table, Key: item("hot")}},
		"condition": {ConditionCheck: &types.ConditionCheck{TableName: table, Key: item("hot")}},
	} {
		client, inner, _ := newThrottled()
		for range 6 {
			_, err := client.TransactWriteItems(context.Background(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{action}})
			if got := reasonsOf(err); got != "applied" && got != "ThrottlingError" {
				t.Errorf("%s: %s", name, got)
			}
		}
		if inner.writes != 5 {
			t.Errorf("%s: %d of 6 were let through, want the 5 of the burst", name, inner.writes)
		}
	}
}

// A single write costs half of one in a transaction, and is refused in its own way.
func TestThrottledSingleWrites(t *testing.T) {
	for name, write := range map[string]func(dynamo.Client) error{
		"put": func(c dynamo.Client) error {
			_, err := c.PutItem(context.Background(), putInput("table", "hot"))
			return err
		},
		"update": func(c dynamo.Client) error {
			_, err := c.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{TableName: aws.String("table"), Key: item("hot")})
			return err
		},
	} {
		client, table, _ := newThrottled()
		var last error
		for range 11 {
			last = write(client)
		}
		var throttled *types.ThrottlingException
		if table.writes != 10 || !errors.As(last, &throttled) || len(throttled.ThrottlingReasons) != 1 {
			t.Errorf("%s: %d writes and then %v, want 10 and a ThrottlingException with its reason", name, table.writes, last)
		}
	}
}

// An item costs by its size. One that costs more than a whole burst is let through by a
// partition at rest, and what it took too much is owed.
func TestThrottledCountsKilobytes(t *testing.T) {
	for _, test := range []struct {
		bytes, want int // transactions before the first throttle
	}{{10, 5}, {1000, 5}, {1100, 2}, {2100, 1}, {40_000, 1}} {
		client, table, clock := newThrottled()
		in := transaction("table", "hot")
		in.TransactItems[0].Put.Item["data"] = &types.AttributeValueMemberS{Value: strings.Repeat("x", test.bytes)}
		for range 10 {
			if _, err := client.TransactWriteItems(context.Background(), in); err != nil {
				break
			}
		}
		if table.writes != test.want {
			t.Errorf("%d bytes: %d transactions at once, want %d", test.bytes, table.writes, test.want)
		}
		if test.bytes == 40_000 { // 80 units, of which 70 are owed: 700 ms, and two more units
			clock.Advance(710 * time.Millisecond)
			if got := send(client, "hot"); got != "ThrottlingError" {
				t.Errorf("what is owed was forgotten: %s", got)
			}
			clock.Advance(20 * time.Millisecond)
			if got := send(client, "hot"); got != "applied" {
				t.Errorf("what is owed is never paid: %s", got)
			}
		}
	}
}

// An index keyed by few values is a hot partition too, and throttles the table.
func TestThrottledIndexPartition(t *testing.T) {
	client, table, _ := newThrottled()
	write := func(i int, dueShard string) string {
		in := transaction("table", fmt.Sprintf("hold-%d", i))
		in.TransactItems[0].Put.Item[dynamo.AttributeDueShard] = &types.AttributeValueMemberS{Value: dueShard}
		in.TransactItems[0].Put.Item[dynamo.AttributeDueAtMs] = &types.AttributeValueMemberN{Value: "1764504000000"}
		_, err := client.TransactWriteItems(context.Background(), in)
		return reasonsOf(err)
	}
	for i := range 20 {
		write(i, "hold#00")
	}
	if table.writes != 10 {
		t.Errorf("%d entries of one index partition, want the 10 of its burst", table.writes)
	}
	if got := write(20, "hold#01"); got != "applied" {
		t.Errorf("another partition of the index: %s", got)
	}
}

// Partitions that are at rest again are forgotten, and those that are not keep what they
// have given, so that a long run needs neither memory nor luck.
func TestThrottledForgetsNothingThatCounts(t *testing.T) {
	client, _, clock := newThrottled()
	for i := range 25_000 {
		send(client, fmt.Sprintf("hold-%d", i))
		if i%2500 == 0 {
			clock.Advance(time.Second)
		}
	}
	for range 5 {
		send(client, "hot")
	}
	clock.Advance(time.Millisecond)
	for i := range 25_000 {
		send(client, fmt.Sprintf("later-%d", i))
	}
	if got := send(client, "hot"); got != "ThrottlingError" {
		t.Errorf("a partition over its limit was forgotten: %s", got)
	}
}
