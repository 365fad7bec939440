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
	// Hold or Reservation is who claimed it.
	Hold        ledger.HoldID        `dynamodbav:"hold_id,omitempty"`
	Reservation ledger.ReservationID `dynamodbav:"reservation_id,omitempty"`
}

func decodeUniqueness(item map[string]types.AttributeValue) (ledger.Uniqueness, error) {
	var r uniquenessRecord
	err := attributevalue.UnmarshalMap(item, &r)
	return ledger.Uniqueness{Kind: r.Kind, Value: r.Value, Hold: r.Hold, Reservation: r.Reservation}, err
}

func uniquenessLeg(u ledger.Uniqueness) (leg, error) {
	record := uniquenessRecord{
		itemKey: uniquenessKey(u.Kind, u.Value), Kind: u.Kind, Value: u.Value, Hold: u.Hold, Reservation: u.Reservation,
	}
	return putLeg(record, notThere(), func(item map[string]types.AttributeValue) (ledger.RefusedLeg, error) {
		refused := ledger.RefusedLeg{Kind: ledger.LegUniqueness}
		if len(item) == 0 {
			return refused, nil
		}
		stored, err := decodeUniqueness(item)
		refused.Uniqueness = &stored
		return refused, err
	})
}
