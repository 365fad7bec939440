package archive_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"holdfast/shared/archive/archivetest"
	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
	"holdfast/shared/objects"
	"holdfast/shared/sim/table"
)

// watched are the table and the bucket in memory, with somebody who may step in before and
// after every call: a test that ends the worker there, or lets another one run.
type watched struct {
	table  *table.Table
	views  map[string]*table.IndexView
	bucket *archivetest.Bucket
	// step is called before each call, and after it with done; nil for nobody.
	step func(call string, done bool)
	// refused is the answer to each query of the table itself; nil for none.
	refused error
}

var (
	_ dynamo.Client     = (*watched)(nil)
	_ dynamo.ScanClient = (*watched)(nil)
	_ objects.Client    = (*watched)(nil)
)

func newWatched(tb testing.TB) *watched {
	tb.Helper()
	schema := dynamo.TableSchema()
	w := &watched{table: table.New(schema), views: make(map[string]*table.IndexView), bucket: archivetest.NewBucket(bucketName)}
	for _, index := range schema.Indexes {
		view, err := w.table.NewView(index.Name)
		if err != nil {
			tb.Fatal(err)
		}
		w.views[index.Name] = view
	}
	return w
}

// around makes a call between the two steps of the watcher.
func around[T any](ctx context.Context, w *watched, call string, do func() (T, error)) (T, error) {
	if err := ctx.Err(); err != nil {
		var none T
		return none, err
	}
	if w.step != nil {
		w.step(call, false)
	}
	out, err := do()
	if w.step != nil {
		w.step(call, true)
	}
	return out, err
}

func (w *watched) spread(mutations []table.Mutation) {
	for _, m := range mutations {
		for _, view := range w.views {
			view.Apply(m)
		}
	}
}

func (w *watched) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return around(ctx, w, "TransactWriteItems", func() (*dynamodb.TransactWriteItemsOutput, error) {
		mutations, err := w.table.WriteTransaction(in)
		w.spread(mutations)
		return &dynamodb.TransactWriteItemsOutput{}, err
	})
}

func (w *watched) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return around(ctx, w, "PutItem", func() (*dynamodb.PutItemOutput, error) {
		mutations, err := w.table.Put(in)
		w.spread(mutations)
		return &dynamodb.PutItemOutput{}, err
	})
}

func (w *watched) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return around(ctx, w, "UpdateItem", func() (*dynamodb.UpdateItemOutput, error) {
		mutations, err := w.table.Update(in)
		w.spread(mutations)
		return &dynamodb.UpdateItemOutput{}, err
	})
}

func (w *watched) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return around(ctx, w, "GetItem", func() (*dynamodb.GetItemOutput, error) { return w.table.Get(in) })
}

func (w *watched) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return around(ctx, w, "BatchGetItem", func() (*dynamodb.BatchGetItemOutput, error) { return w.table.BatchGet(in) })
}

func (w *watched) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	return around(ctx, w, "TransactGetItems", func() (*dynamodb.TransactGetItemsOutput, error) { return w.table.TransactGet(in) })
}

func (w *watched) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return around(ctx, w, "Query", func() (*dynamodb.QueryOutput, error) {
		if in.IndexName == nil && w.refused != nil {
			return nil, w.refused
		}
		if in.IndexName == nil {
			return w.table.Query(in)
		}
		return w.views[*in.IndexName].Query(in)
	})
}

func (w *watched) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return around(ctx, w, "Scan", func() (*dynamodb.ScanOutput, error) { return w.table.Scan(in) })
}

func (w *watched) PutObject(ctx context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return around(ctx, w, "PutObject", func() (*s3.PutObjectOutput, error) { return w.bucket.PutObject(ctx, in) })
}

func (w *watched) GetObject(ctx context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	return around(ctx, w, "GetObject", func() (*s3.GetObjectOutput, error) { return w.bucket.GetObject(ctx, in) })
}

func (w *watched) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	return around(ctx, w, "ListObjectsV2", func() (*s3.ListObjectsV2Output, error) { return w.bucket.ListObjectsV2(ctx, in) })
}

// breakItem makes the item of a hold unreadable, as no writer of ours does.
func (w *watched) breakItem(tb testing.TB, id ledger.HoldID) {
	tb.Helper()
	_, err := w.UpdateItem(context.Background(), &dynamodb.UpdateItemInput{
		TableName: aws.String("table"), Key: map[string]types.AttributeValue{
			dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: "HOLD#" + string(id)},
			dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: "HOLD"},
		},
		UpdateExpression:          aws.String("SET #v = :v"),
		ExpressionAttributeNames:  map[string]string{"#v": "version"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberS{Value: "two"}},
	})
	if err != nil {
		tb.Fatal(err)
	}
}
