package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// Client is the part of the DynamoDB client that the store uses. *dynamodb.Client is
// one; dynamotest.Faults is another, and can be told to fail. Creating tables is not in
// it (see TableClient), because no deployed function may do that.
type Client interface {
	TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error)
	GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	PutItem(ctx context.Context, in *dynamodb.PutItemInput, options ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
}

var _ Client = (*dynamodb.Client)(nil)

// tokenMiddleware is the name under which the SDK registers the step that fills in
// an absent ClientRequestToken.
const tokenMiddleware = "OperationIdempotencyTokenAutoFill"

// WithoutClientToken keeps the SDK from making a ClientRequestToken for each
// transaction. It is for clients of the local engine only: the engine reads the tokens
// of the last ten minutes again for every transaction that has one, so that a long
// burst gets slower and slower. Clients of AWS keep the token, which protects the SDK's
// own retries from running a transaction twice.
//
// A token that the caller sets itself is still sent.
func WithoutClientToken(options *dynamodb.Options) {
	options.APIOptions = append(options.APIOptions, func(stack *middleware.Stack) error {
		if _, present := stack.Initialize.Get(tokenMiddleware); !present {
			return nil
		}
		_, err := stack.Initialize.Remove(tokenMiddleware)
		return err
	})
}
