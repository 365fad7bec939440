package dynamotest_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/dynamo/dynamotest"
)

func BenchmarkNewTable(b *testing.B) {
	for b.Loop() {
		dynamotest.NewTable(b)
	}
}

func BenchmarkGetItem(b *testing.B) {
	client, table := dynamotest.NewTable(b)
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			_, err := client.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &table, Key: key("a", "b")})
			if err != nil {
				b.Error(err)
			}
		}
	})
}
