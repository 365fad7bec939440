package dynamotest_test

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
)

func key(partition, sort string) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{
		dynamo.AttributePartitionKey: &types.AttributeValueMemberS{Value: partition},
		dynamo.AttributeSortKey:      &types.AttributeValueMemberS{Value: sort},
	}
}
