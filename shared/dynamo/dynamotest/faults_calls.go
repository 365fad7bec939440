package dynamotest

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// perform does to one call what is planned for it. A call whose context has ended is
// no call, as with the SDK: it fails at once and meets no fault.
func perform[Output any](ctx context.Context, f *Faults, operation Operation, legs []leg, send func(planned fault) (*Output, error)) (*Output, error) {
	if err := ctx.Err(); err != nil {
		return nil, operationError(operation, &smithy.CanceledError{Err: err})
	}
	planned := f.next(operation)
	if planned.before != nil {
		planned.before()
	}
	var out *Output
	var err error
	if !planned.drop {
		out, err = send(planned)
	}
	if planned.err != nil {
		return nil, operationError(operation, planned.err(legs))
	}
	return out, err
}

func operationError(operation Operation, err error) error {
	return &smithy.OperationError{ServiceID: dynamodb.ServiceID, OperationName: string(operation), Err: err}
}

// TransactWriteItems is part of dynamo.Client.
func (f *Faults) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return perform(ctx, f, TransactWriteItems, writeLegs(in.TransactItems), func(fault) (*dynamodb.TransactWriteItemsOutput, error) {
		return f.client.TransactWriteItems(ctx, in, options...)
	})
}

// TransactGetItems is part of dynamo.Client.
func (f *Faults) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	return perform(ctx, f, TransactGetItems, make([]leg, len(in.TransactItems)), func(fault) (*dynamodb.TransactGetItemsOutput, error) {
		return f.client.TransactGetItems(ctx, in, options...)
	})
}

// GetItem is part of dynamo.Client.
func (f *Faults) GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return perform(ctx, f, GetItem, nil, func(fault) (*dynamodb.GetItemOutput, error) {
		return f.client.GetItem(ctx, in, options...)
	})
}

// BatchGetItem is part of dynamo.Client.
func (f *Faults) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return perform(ctx, f, BatchGetItem, nil, func(planned fault) (*dynamodb.BatchGetItemOutput, error) {
		if planned.itemsMax == 0 {
			return f.client.BatchGetItem(ctx, in, options...)
		}
		shortened := *in
		var left map[string]types.KeysAndAttributes
		shortened.RequestItems, left = splitKeys(in.RequestItems, planned.itemsMax)
		out, err := f.client.BatchGetItem(ctx, &shortened, options...)
		if err != nil {
			return nil, err
		}
		for table, keys := range left {
			keys.Keys = slices.Concat(out.UnprocessedKeys[table].Keys, keys.Keys)
			if out.UnprocessedKeys == nil {
				out.UnprocessedKeys = make(map[string]types.KeysAndAttributes)
			}
			out.UnprocessedKeys[table] = keys
		}
		return out, nil
	})
}

// Query is part of dynamo.Client.
func (f *Faults) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return perform(ctx, f, Query, nil, func(planned fault) (*dynamodb.QueryOutput, error) {
		if planned.itemsMax == 0 {
			return f.client.Query(ctx, in, options...)
		}
		shortened := *in
		shortened.Limit = aws.Int32(int32(planned.itemsMax))
		if in.Limit != nil {
			shortened.Limit = aws.Int32(min(*in.Limit, *shortened.Limit))
		}
		return f.client.Query(ctx, &shortened, options...)
	})
}

// UpdateItem is part of dynamo.Client.
func (f *Faults) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return perform(ctx, f, UpdateItem, nil, func(fault) (*dynamodb.UpdateItemOutput, error) {
		return f.client.UpdateItem(ctx, in, options...)
	})
}

// PutItem is part of dynamo.Client.
func (f *Faults) PutItem(ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return perform(ctx, f, PutItem, nil, func(fault) (*dynamodb.PutItemOutput, error) {
		return f.client.PutItem(ctx, in, options...)
	})
}

// splitKeys divides a batch into its first itemsMax keys and the rest, table by table.
func splitKeys(requested map[string]types.KeysAndAttributes, itemsMax int) (first, rest map[string]types.KeysAndAttributes) {
	first = make(map[string]types.KeysAndAttributes)
	rest = make(map[string]types.KeysAndAttributes)
	for _, table := range slices.Sorted(maps.Keys(requested)) {
		now, later := requested[table], requested[table]
		cut := min(itemsMax, len(now.Keys))
		now.Keys, later.Keys = now.Keys[:cut], later.Keys[cut:]
		itemsMax -= cut
		if len(now.Keys) > 0 {
			first[table] = now
		}
		if len(later.Keys) > 0 {
			rest[table] = later
		}
	}
	return first, rest
}
