package dynamotest

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/system"
)

const (
	// keyRangeExceeded is the reason of a throttle by one hot partition of a table on
	// demand. Source:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/throttling-key-range-limit-exceeded-mitigation.html
	keyRangeExceeded = "TableWriteKeyRangeThroughputExceeded"
	// partitionsMin is from how many partitions on those that are at rest are forgotten.
	partitionsMin = 10_000
)

// PartitionLimit is what one partition takes. DynamoDB's own is 1,000 write units a
// second, far more than the local engine can do, so a test sets a lower one. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
type PartitionLimit struct {
	// WriteUnitsPerSecond must be positive.
	WriteUnitsPerSecond float64
	// BurstFor is for how long a partition at rest saves up what nobody takes. It must be
	// positive; DynamoDB promises nothing, and more than a second would hide the limit.
	BurstFor time.Duration
}

// Throttled is a dynamo.Client whose table behaves as if every partition key, of the
// table and of its indexes, were a partition of its own with a limit. It counts write
// units as DynamoDB does: one for each started KB of an item and two in a transaction,
// also if a condition is false, and one for an entry of an index. Reads go through.
//
// A transaction that meets a partition over its limit is refused as a whole, takes
// nothing from the other partitions, and says ThrottlingError for each action that was
// too much. A single write gets a ThrottlingException.
//
// It does not know what an update makes of an item: it counts one KB and no index, which
// is right for stock items. An entry that leaves an index is not counted either.
//
// Like Faults it stands where the SDK's client stands, after the SDK's own retries. It
// may be used by several goroutines.
type Throttled struct {
	dynamo.Client
	limit  PartitionLimit
	clock  system.Clock
	schema dynamo.Schema

	mu         sync.Mutex
	partitions map[string]*partition
	forgetFrom int // how many partitions there are when those at rest are forgotten next
	counts     ThrottleCounts
}

var _ dynamo.Client = (*Throttled)(nil)

// ThrottleCounts is what became of the writes so far.
type ThrottleCounts struct {
	Admitted  int // went on to the table, whatever it answered
	Throttled int // never reached it
}

// NewThrottled returns a client in front of client whose partitions are all at rest. Time
// is the clock's.
func NewThrottled(client dynamo.Client, limit PartitionLimit, clock system.Clock) *Throttled {
	return &Throttled{
		Client: client, limit: limit, clock: clock, schema: dynamo.TableSchema(),
		partitions: make(map[string]*partition), forgetFrom: partitionsMin,
	}
}

// Counts returns what became of the writes so far.
func (t *Throttled) Counts() ThrottleCounts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// TransactWriteItems is part of dynamo.Client.
func (t *Throttled) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, operationError(TransactWriteItems, err)
	}
	legs := make([][]charge, len(in.TransactItems))
	for i, action := range in.TransactItems {
		legs[i] = t.chargesOf(action)
	}
	if over := t.take(legs); len(over) > 0 {
		reasons := make([]types.CancellationReason, len(legs))
		for i := range reasons {
			reasons[i].Code = aws.String(string(reasonNone))
			if over[i] {
				reasons[i].Code = aws.String(string(ReasonThrottlingError))
				reasons[i].Message = aws.String(reasonMessages[ReasonThrottlingError])
			}
		}
		return nil, operationError(TransactWriteItems, canceled(reasons))
	}
	return t.Client.TransactWriteItems(ctx, in, options...)
}

// UpdateItem is part of dynamo.Client.
func (t *Throttled) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := t.takeOne(ctx, UpdateItem, t.updateCharge(in.TableName, in.Key, singleWrite)); err != nil {
		return nil, err
	}
	return t.Client.UpdateItem(ctx, in, options...)
}

// PutItem is part of dynamo.Client.
func (t *Throttled) PutItem(ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if err := t.takeOne(ctx, PutItem, t.putCharges(in.TableName, in.Item, singleWrite)); err != nil {
		return nil, err
	}
	return t.Client.PutItem(ctx, in, options...)
}

// takeOne takes what a single write costs.
func (t *Throttled) takeOne(ctx context.Context, operation Operation, charges []charge) error {
	if err := ctx.Err(); err != nil {
		return operationError(operation, err)
	}
	if over := t.take([][]charge{charges}); len(over) == 0 {
		return nil
	}
	return operationError(operation, &types.ThrottlingException{
		Message:           aws.String(reasonMessages[ReasonThrottlingError]),
		ThrottlingReasons: []types.ThrottlingReason{{Reason: aws.String(keyRangeExceeded)}},
	})
}

// take takes what all legs cost from their partitions, or nothing. It returns the legs
// that touch a partition which has too little for all that is asked of it.
func (t *Throttled) take(legs [][]charge) map[int]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	asked := make(map[string]float64)
	for _, charges := range legs {
		for _, c := range charges {
			asked[c.partition] += c.units
		}
	}
	full := t.limit.WriteUnitsPerSecond * t.limit.BurstFor.Seconds()
	over := make(map[int]bool)
	for i, charges := range legs {
		for _, c := range charges {
			// More than a full partition has is let through by a full one, and owed
			// afterwards: else it could never be written.
			if t.at(c.partition, full, now).units < min(asked[c.partition], full) {
				over[i] = true
			}
		}
	}
	if len(over) > 0 {
		t.counts.Throttled++
		return over
	}
	t.counts.Admitted++
	for name, units := range asked {
		t.partitions[name].units -= units
	}
	return nil
}

// partition is what one partition can take, at a moment.
type partition struct {
	units float64 // negative for what is owed
	at    time.Time
}

// at returns the partition as it is now.
func (t *Throttled) at(name string, full float64, now time.Time) *partition {
	p, known := t.partitions[name]
	if !known {
		if len(t.partitions) >= t.forgetFrom {
			t.forgetFull(full, now)
		}
		p = &partition{units: full, at: now}
		t.partitions[name] = p
	}
	t.refill(p, full, now)
	return p
}

func (t *Throttled) refill(p *partition, full float64, now time.Time) {
	if passed := now.Sub(p.at); passed > 0 {
		p.units = min(full, p.units+passed.Seconds()*t.limit.WriteUnitsPerSecond)
		p.at = now
	}
}

// forgetFull forgets partitions that are as if nobody had ever written to them, but for
// those of this moment, which a transaction may be looking at.
func (t *Throttled) forgetFull(full float64, now time.Time) {
	for name, p := range t.partitions {
		if !p.at.Before(now) {
			continue
		}
		if t.refill(p, full, now); p.units >= full {
			delete(t.partitions, name)
		}
	}
	t.forgetFrom = max(partitionsMin, 2*len(t.partitions)) // so that looking at all stays cheap
}
