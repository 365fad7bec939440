package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

// uniquenessRecord keeps a value from being claimed twice. It is never deleted.
type uniquenessRecord struct {
	itemKey
	Kind  ledger.UniquenessKind `dynamodbav:"kind"`
	Value string                `dynamodbav:"value"`
	Hold  ledger.HoldID         `dynamodbav:"hold_id"`
}

func uniquenessLeg(u ledger.Uniqueness) (leg, error) {
	record := uniquenessRecord{itemKey: uniquenessKey(u), Kind: u.Kind, Value: u.Value, Hold: u.Hold}
	return putLeg(record, notThere(), func(item map[string]types.AttributeValue) (ledger.RefusedLeg, error) {
		refused := ledger.RefusedLeg{Kind: ledger.LegUniqueness}
		if len(item) == 0 {
			return refused, nil
		}
		var stored uniquenessRecord
		err := attributevalue.UnmarshalMap(item, &stored)
		refused.Uniqueness = &ledger.Uniqueness{Kind: stored.Kind, Value: stored.Value, Hold: stored.Hold}
		return refused, err
	})
}
