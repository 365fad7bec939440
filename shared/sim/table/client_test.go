package table_test

import (
	"context"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/dynamo"
	"holdfast/shared/sim/table"
)

// client is the smallest client of a table: one call at a time, indexes never behind.
type client struct {
	mu    sync.Mutex
	table *table.Table
	views map[string]*table.IndexView
}

var _ dynamo.Client = (*client)(nil)

func mustClient(tb testing.TB) *client {
	tb.Helper()
	schema := dynamo.TableSchema()
	c := &client{table: table.New(schema), views: make(map[string]*table.IndexView)}
	for _, index := range schema.Indexes {
		view, err := c.table.NewView(index.Name)
		if err != nil {
			tb.Fatal(err)
		}
		c.views[index.Name] = view
	}
	return c
}

func (c *client) spread(mutations []table.Mutation) {
	for _, m := range mutations {
		for _, view := range c.views {
			view.Apply(m)
		}
	}
}

// begin locks the table, unless the caller has given up, as in the SDK.
func (c *client) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	return nil
}

func (c *client) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	mutations, err := c.table.WriteTransaction(in)
	if err != nil {
		return nil, err
	}
	c.spread(mutations)
	return &dynamodb.TransactWriteItemsOutput{}, nil
}

func (c *client) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	mutations, err := c.table.Put(in)
	if err != nil {
		return nil, err
	}
	c.spread(mutations)
	return &dynamodb.PutItemOutput{}, nil
}

func (c *client) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	mutations, err := c.table.Update(in)
	if err != nil {
		return nil, err
	}
	c.spread(mutations)
	return &dynamodb.UpdateItemOutput{}, nil
}

func (c *client) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	return c.table.Get(in)
}

func (c *client) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	return c.table.BatchGet(in)
}

func (c *client) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	return c.table.TransactGet(in)
}

func (c *client) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	if in.IndexName == nil {
		return c.table.Query(in)
	}
	return c.views[*in.IndexName].Query(in)
}

func (c *client) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	if err := c.begin(ctx); err != nil {
		return nil, err
	}
	defer c.mu.Unlock()
	return c.table.Scan(in)
}
