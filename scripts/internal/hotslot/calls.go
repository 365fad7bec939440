package hotslot

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
	"holdfast/shared/ledger"
)

// stockPrefix begins the partition key of every stock item. A sale whose transactions
// move no stock item by this name is an error of [Outcome.Check], so it can't be outdated.
const stockPrefix = "STOCK#"

// Calls are the calls to the table that requests made.
type Calls struct {
	StockReads   int // batch reads of stock items, not of one moment
	Proofs       int // reads of all stock items at one moment
	OtherReads   int // of definitions, holds, idempotency records, and lists of an index
	Transactions int // writes that were sent, whatever became of them
	Refused      int // of them: a condition was false
	Throttled    int // of them: a partition was over its limit
	// StockItems is how many stock items the transactions that were applied have changed.
	StockItems int
}

func (c *Calls) add(d Calls) {
	c.StockReads += d.StockReads
	c.Proofs += d.Proofs
	c.OtherReads += d.OtherReads
	c.Transactions += d.Transactions
	c.Refused += d.Refused
	c.Throttled += d.Throttled
	c.StockItems += d.StockItems
}

// purchase is one request to hold units, and what it cost so far.
type purchase struct {
	quantity ledger.Units
	calls    Calls
}

// purchaseKey is the context key of a *purchase.
type purchaseKey struct{}

func withPurchase(ctx context.Context, p *purchase) context.Context {
	return context.WithValue(ctx, purchaseKey{}, p)
}

// purchaseOf is the purchase whose request makes a call; one that nobody looks at for calls of no
// purchase. A handler answers a request in one goroutine, so a purchase needs no lock.
func purchaseOf(ctx context.Context) *purchase {
	if p, ok := ctx.Value(purchaseKey{}).(*purchase); ok {
		return p
	}
	return &purchase{}
}

// counter is a dynamo.Client that counts the calls of each purchase, and enters its
// transactions in the book.
type counter struct {
	dynamo.Client
	book *book
}

// TransactWriteItems is part of dynamo.Client.
func (c *counter) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	s := purchaseOf(ctx)
	s.calls.Transactions++
	entry := c.book.begin(s.quantity)
	out, err := c.Client.TransactWriteItems(ctx, in, options...)
	c.book.end(entry, err == nil)
	if err == nil {
		s.calls.StockItems += stockItemsOf(in)
		return out, nil
	}
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) {
		return out, err
	}
	has := func(reason dynamotest.Reason) int {
		for _, r := range canceled.CancellationReasons {
			if aws.ToString(r.Code) == string(reason) {
				return 1
			}
		}
		return 0
	}
	s.calls.Refused += has(dynamotest.ReasonConditionalCheckFailed)
	s.calls.Throttled += has(dynamotest.ReasonThrottlingError)
	return out, err
}

// TransactGetItems is part of dynamo.Client.
func (c *counter) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	purchaseOf(ctx).calls.Proofs++
	return c.Client.TransactGetItems(ctx, in, options...)
}

// BatchGetItem is part of dynamo.Client.
func (c *counter) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	s := purchaseOf(ctx)
	ofStock := false
	for _, keys := range in.RequestItems {
		for _, key := range keys.Keys {
			ofStock = ofStock || isStock(key)
		}
	}
	if ofStock {
		s.calls.StockReads++
	} else {
		s.calls.OtherReads++
	}
	return c.Client.BatchGetItem(ctx, in, options...)
}

// GetItem is part of dynamo.Client.
func (c *counter) GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	purchaseOf(ctx).calls.OtherReads++
	return c.Client.GetItem(ctx, in, options...)
}

// Query is part of dynamo.Client.
func (c *counter) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	purchaseOf(ctx).calls.OtherReads++
	return c.Client.Query(ctx, in, options...)
}

func stockItemsOf(in *dynamodb.TransactWriteItemsInput) int {
	items := 0
	for _, action := range in.TransactItems {
		if action.Update != nil && isStock(action.Update.Key) {
			items++
		}
	}
	return items
}

func isStock(key map[string]types.AttributeValue) bool {
	partition, ok := key[dynamo.AttributePartitionKey].(*types.AttributeValueMemberS)
	return ok && strings.HasPrefix(partition.Value, stockPrefix)
}
