package dynamotest_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
)

func item(partition string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: partition},
		"sk": &types.AttributeValueMemberS{Value: "ITEM"},
	}
}

func getInput(table, partition string) *dynamodb.GetItemInput {
	return &dynamodb.GetItemInput{TableName: &table, Key: item(partition), ConsistentRead: aws.Bool(true)}
}

func putInput(table, partition string) *dynamodb.PutItemInput {
	return &dynamodb.PutItemInput{TableName: &table, Item: item(partition)}
}

func mustPut(tb testing.TB, client dynamo.Client, table, partition string) {
	tb.Helper()
	if _, err := client.PutItem(context.Background(), putInput(table, partition)); err != nil {
		tb.Fatalf("put item %s: %v", partition, err)
	}
}

func exists(tb testing.TB, client dynamo.Client, table, partition string) bool {
	tb.Helper()
	out, err := client.GetItem(context.Background(), getInput(table, partition))
	if err != nil {
		tb.Fatalf("get item %s: %v", partition, err)
	}
	return out.Item != nil
}
