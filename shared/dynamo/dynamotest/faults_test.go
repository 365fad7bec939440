package dynamotest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/dynamotest"
)

// callOf makes one valid call of each operation.
var callOf = map[dynamotest.Operation]func(ctx context.Context, client dynamo.Client, table string) error{
	dynamotest.TransactWriteItems: func(ctx context.Context, client dynamo.Client, table string) error {
		_, err := client.TransactWriteItems(ctx, transaction(table, "a"))
		return err
	},
	dynamotest.TransactGetItems: func(ctx context.Context, client dynamo.Client, table string) error {
		_, err := client.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
			{Get: &types.Get{TableName: &table, Key: item("a")}},
		}})
		return err
	},
	dynamotest.GetItem: func(ctx context.Context, client dynamo.Client, table string) error {
		_, err := client.GetItem(ctx, getInput(table, "a"))
		return err
	},
	dynamotest.BatchGetItem: func(ctx context.Context, client dynamo.Client, table string) error {
		_, err := client.BatchGetItem(ctx, batch(table, "a"))
		return err
	},
	dynamotest.Query: func(ctx context.Context, client dynamo.Client, table string) error {
		_, err := client.Query(ctx, query(table, "a"))
		return err
	},
	dynamotest.UpdateItem: func(ctx context.Context, client dynamo.Client, table string) error {
		_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: &table, Key: item("a")})
		return err
	},
	dynamotest.PutItem: func(ctx context.Context, client dynamo.Client, table string) error {
		_, err := client.PutItem(ctx, putInput(table, "a"))
		return err
	},
}

func transaction(table string, partitions ...string) *dynamodb.TransactWriteItemsInput {
	in := &dynamodb.TransactWriteItemsInput{}
	for _, partition := range partitions {
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Put: &types.Put{
			TableName:                           &table,
			Item:                                item(partition),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}})
	}
	return in
}

func batch(table string, partitions ...string) *dynamodb.BatchGetItemInput {
	keys := make([]map[string]types.AttributeValue, len(partitions))
	for i, partition := range partitions {
		keys[i] = item(partition)
	}
	return &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: {Keys: keys}}}
}

func query(table, partition string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName:                 &table,
		KeyConditionExpression:    aws.String("pk = :pk"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":pk": &types.AttributeValueMemberS{Value: partition}},
	}
}

func TestEachOperationMeetsItsFaultsInOrder(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	for operation, call := range callOf {
		t.Run(string(operation), func(t *testing.T) {
			faults := dynamotest.NewFaults(t, client)
			faults.Fail(operation, 2, dynamotest.Throttle())
			faults.Pass(operation, 1)
			faults.LoseAnswer(operation, 1)
			var got []string
			for range 5 {
				got = append(got, kindOf(call(context.Background(), faults, table), operation))
			}
			want := "[throttled throttled answered timed out answered]"
			if fmt.Sprint(got) != want {
				t.Errorf("calls: %v, want %v", got, want)
			}
			if calls := faults.Calls(operation); calls != 5 {
				t.Errorf("Calls: %d, want 5", calls)
			}
		})
	}
}

// kindOf also checks that an error is wrapped as the SDK wraps it, because code that
// compares errors without errors.As works in a test and fails on AWS.
func kindOf(err error, operation dynamotest.Operation) string {
	if err == nil {
		return "answered"
	}
	var wrapped *smithy.OperationError
	if !errors.As(err, &wrapped) || wrapped.OperationName != string(operation) {
		return "not wrapped: " + err.Error()
	}
	var throttled *types.ProvisionedThroughputExceededException
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &throttled):
		return "throttled"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timed out"
	default:
		return err.Error()
	}
}

func TestOperationsDoNotMeetEachOthersFaults(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	faults := dynamotest.NewFaults(t, client)
	faults.Fail(dynamotest.PutItem, 1, dynamotest.Conflict())
	if err := callOf[dynamotest.UpdateItem](context.Background(), faults, table); err != nil {
		t.Errorf("UpdateItem met the fault of PutItem: %v", err)
	}
	var conflict *types.TransactionConflictException
	if err := callOf[dynamotest.PutItem](context.Background(), faults, table); !errors.As(err, &conflict) {
		t.Errorf("PutItem: %v, want TransactionConflictException", err)
	}
}

// A lost request and a lost answer must look the same to the caller, and differ in the
// table.
func TestDropAndLoseAnswer(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	for _, test := range []struct {
		name      string
		plan      func(*dynamotest.Faults, dynamotest.Operation, int)
		performed bool
	}{
		{"dropped", (*dynamotest.Faults).Drop, false},
		{"answer lost", (*dynamotest.Faults).LoseAnswer, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			faults := dynamotest.NewFaults(t, client)
			test.plan(faults, dynamotest.TransactWriteItems, 1)
			_, err := faults.TransactWriteItems(context.Background(), transaction(table, test.name))
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the caller got %v, want a timeout", err)
			}
			if performed := exists(t, client, table, test.name); performed != test.performed {
				t.Errorf("the transaction was performed: %t, want %t", performed, test.performed)
			}
		})
	}
}

func TestInterruptRunsBetweenReadAndWrite(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	faults := dynamotest.NewFaults(t, client)
	faults.Interrupt(dynamotest.PutItem, func() {
		if exists(t, faults, table, "interrupted") {
			t.Error("the interrupted write came first")
		}
		mustPut(t, faults, table, "competitor")
	})
	mustPut(t, faults, table, "interrupted")
	if !exists(t, client, table, "competitor") || !exists(t, client, table, "interrupted") {
		t.Error("one of the two writes is missing")
	}
}

func TestEndedContextIsNoCall(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	faults := dynamotest.NewFaults(t, client)
	faults.LoseAnswer(dynamotest.PutItem, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := faults.PutItem(ctx, putInput(table, "never")); !errors.Is(err, context.Canceled) {
		t.Errorf("a call with an ended context: %v, want context.Canceled", err)
	}
	if exists(t, client, table, "never") || faults.Calls(dynamotest.PutItem) != 0 {
		t.Error("a call with an ended context reached the table")
	}
	if _, err := faults.PutItem(context.Background(), putInput(table, "once")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the next call: %v, want the planned timeout", err)
	}
}

func TestShortenedBatchLeavesKeysUnprocessed(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	partitions := []string{"a", "b", "c"}
	for _, partition := range partitions {
		mustPut(t, client, table, partition)
	}
	faults := dynamotest.NewFaults(t, client)
	faults.Shorten(dynamotest.BatchGetItem, 1, 2)
	first, err := faults.BatchGetItem(context.Background(), batch(table, partitions...))
	if err != nil {
		t.Fatal(err)
	}
	if read, left := len(first.Responses[table]), len(first.UnprocessedKeys[table].Keys); read != 2 || left != 1 {
		t.Fatalf("first call: %d items and %d unprocessed keys, want 2 and 1", read, left)
	}
	second, err := faults.BatchGetItem(context.Background(), &dynamodb.BatchGetItemInput{RequestItems: first.UnprocessedKeys})
	if err != nil {
		t.Fatal(err)
	}
	if read := second.Responses[table]; len(read) != 1 || read[0]["pk"].(*types.AttributeValueMemberS).Value != "c" {
		t.Errorf("second call: %v, want item c", read)
	}
}

func TestShortenedQueryHasAnotherPage(t *testing.T) {
	client, table := dynamotest.NewTable(t)
	for _, sort := range []string{"1", "2", "3"} {
		row := item("a")
		row["sk"] = &types.AttributeValueMemberS{Value: sort}
		if _, err := client.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &table, Item: row}); err != nil {
			t.Fatal(err)
		}
	}
	faults := dynamotest.NewFaults(t, client)
	faults.Shorten(dynamotest.Query, 1, 2)
	in := query(table, "a")
	first, err := faults.Query(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(first.Items) != 2 || first.LastEvaluatedKey == nil || in.Limit != nil {
		t.Fatalf("first page: %d items, last key %v, caller's limit %v; want 2 items and a last key", len(first.Items), first.LastEvaluatedKey, in.Limit)
	}
	in.ExclusiveStartKey = first.LastEvaluatedKey
	second, err := faults.Query(context.Background(), in)
	if err != nil {
		t.Fatal(err)
	}
	if len(second.Items) != 1 || second.LastEvaluatedKey != nil {
		t.Errorf("second page: %d items, last key %v; want 1 item and no key", len(second.Items), second.LastEvaluatedKey)
	}
}
