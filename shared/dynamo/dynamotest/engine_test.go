package dynamotest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo/dynamotest"
)

func TestEachTestHasItsOwnTable(t *testing.T) {
	client, first := dynamotest.NewTable(t)
	_, second := dynamotest.NewTable(t)
	mustPut(t, client, first, "only in the first")
	if !exists(t, client, first, "only in the first") {
		t.Error("the item is not in the table it was put into")
	}
	if exists(t, client, second, "only in the first") {
		t.Error("the item is in the other table as well")
	}
}

func TestTableGoesAtTheEndOfItsTest(t *testing.T) {
	var gone string
	// The name has more than DynamoDB's 255 characters, and some that it refuses.
	t.Run("누구의 표 "+strings.Repeat("long/", 60), func(t *testing.T) {
		_, gone = dynamotest.NewTable(t)
	})
	_, err := dynamotest.Engine(t).Client().DescribeTable(context.Background(), &dynamodb.DescribeTableInput{TableName: &gone})
	var notFound *types.ResourceNotFoundException
	if !errors.As(err, &notFound) {
		t.Errorf("describe the table after its test: %v, want ResourceNotFoundException", err)
	}
}

func TestOneEngineForThePackage(t *testing.T) {
	if first, second := dynamotest.Engine(t), dynamotest.Engine(t); first != second {
		t.Errorf("two engines, %s and %s", first.Endpoint(), second.Endpoint())
	}
}

func BenchmarkNewTable(b *testing.B) {
	for b.Loop() {
		dynamotest.NewTable(b)
	}
}

func BenchmarkGetItem(b *testing.B) {
	client, table := dynamotest.NewTable(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := client.GetItem(context.Background(), getInput(table, "absent")); err != nil {
				b.Error(err)
			}
		}
	})
}
