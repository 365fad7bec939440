package table

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// batchKeysMax is the limit of one BatchGetItem.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
const batchKeysMax = 100

// Get reads one item as it is now.
func (t *Table) Get(in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
	if in.ProjectionExpression != nil || in.AttributesToGet != nil {
		return nil, unsupported("GetItem with a projection")
	}
	key, f := t.exactKey(in.Key)
	if f != nil {
		return nil, f.err()
	}
	return &dynamodb.GetItemOutput{Item: t.Item(key)}, nil
}

// BatchGet reads items as they are now, in the order of their keys in the request;
// DynamoDB promises no order. It never leaves a key unprocessed.
func (t *Table) BatchGet(in *dynamodb.BatchGetItemInput) (*dynamodb.BatchGetItemOutput, error) {
	if len(in.RequestItems) != 1 {
		return nil, unsupported("BatchGetItem of none or several tables")
	}
	out := &dynamodb.BatchGetItemOutput{
		Responses:       make(map[string][]map[string]types.AttributeValue, 1),
		UnprocessedKeys: make(map[string]types.KeysAndAttributes),
	}
	for name, request := range in.RequestItems {
		if request.ProjectionExpression != nil || request.AttributesToGet != nil {
			return nil, unsupported("BatchGetItem with a projection")
		}
		if n := len(request.Keys); n < 1 || n > batchKeysMax {
			return nil, invalid("Too many items requested for the BatchGetItem call, or none")
		}
		found := make([]map[string]types.AttributeValue, 0, len(request.Keys))
		seen := make(map[Key]bool, len(request.Keys))
		for _, attributes := range request.Keys {
			key, f := t.exactKey(attributes)
			if f != nil {
				return nil, f.err()
			}
			if seen[key] {
				return nil, invalid("Provided list of item keys contains duplicates")
			}
			seen[key] = true
			if item := t.Item(key); item != nil {
				found = append(found, item)
			}
		}
		out.Responses[name] = found
	}
	return out, nil
}

// TransactGet reads items as they are together now. The response to a key without an item
// is empty. A key that is none gives a *types.TransactionCanceledException, which comes
// before the refusal of an item that is named twice.
func (t *Table) TransactGet(in *dynamodb.TransactGetItemsInput) (*dynamodb.TransactGetItemsOutput, error) {
	n := len(in.TransactItems)
	if n < 1 || n > transactionActionsMax {
		return nil, invalid("1 validation error detected: 'transactItems' must have 1 to %d members", transactionActionsMax)
	}
	out := &dynamodb.TransactGetItemsOutput{Responses: make([]types.ItemResponse, n)}
	seen, twice := make(map[Key]bool, n), false
	var reasons []types.CancellationReason
	for i := range in.TransactItems {
		get := in.TransactItems[i].Get
		if get == nil {
			return nil, invalid("1 validation error detected: 'get' must not be null")
		}
		if get.ProjectionExpression != nil {
			return nil, unsupported("TransactGetItems with a projection")
		}
		key, f := t.exactKey(get.Key)
		if f != nil {
			if reasons == nil {
				reasons = noReasons(n)
			}
			code, message := reasonValidation, f.message
			reasons[i] = types.CancellationReason{Code: &code, Message: &message}
			continue
		}
		twice = twice || seen[key]
		seen[key] = true
		out.Responses[i].Item = t.Item(key)
	}
	switch {
	case reasons != nil:
		return nil, Canceled(reasons)
	case twice:
		return nil, invalid("Transaction request cannot include multiple operations on one item")
	}
	return out, nil
}

// GetKeys returns the items that a TransactGetItems reads, in order, so that a caller can
// find those which a running transaction has locked. What is no proper key is left out.
func (t *Table) GetKeys(in *dynamodb.TransactGetItemsInput) []Key {
	keys := make([]Key, 0, len(in.TransactItems))
	for i := range in.TransactItems {
		if get := in.TransactItems[i].Get; get != nil {
			if key, f := t.exactKey(get.Key); f == nil {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// keyAttributes is an item's key alone.
func (t *Table) keyAttributes(item Item) Item {
	return only(item, t.schema.PartitionKey.Attribute, t.schema.SortKey.Attribute)
}

func only(item Item, attributes ...string) Item {
	some := make(Item, len(attributes))
	for _, attribute := range attributes {
		some[attribute] = item[attribute]
	}
	return some
}
