package dynamo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

const (
	attributeTerms       = "terms"
	attributeUnknownInMs = "unknown_ms"
)

// ScanHoldsSegment reads one page of one of total segments of the table, and returns what
// the holds in it say of their place in the due index. A page may be empty and not be the
// last. The item itself has the keys of the index, so nothing here can lag; a read that is
// not consistent costs half, and what it sees of an item was true together.
func (s *Scan) ScanHoldsSegment(ctx context.Context, segment, total int, after ledger.Cursor) ([]ledger.IndexedHold, ledger.Cursor, error) {
	start, err := scanStart(after)
	if err != nil {
		return nil, "", err
	}
	built, err := expression.NewBuilder().
		WithFilter(expression.Name(AttributeSortKey).Equal(expression.Value(sortHold))).
		WithProjection(expression.NamesList(expression.Name(AttributePartitionKey), expression.Name(AttributeSortKey),
			expression.Name(attributeStatus), expression.Name(attributeReleaseAtMs), expression.Name(attributeAttemptOpen),
			expression.Name(attributeTerms), expression.Name(AttributeDueShard), expression.Name(AttributeDueAtMs))).
		Build()
	if err != nil {
		return nil, "", internal("building a scan", err)
	}
	out, err := s.client.Scan(ctx, &dynamodb.ScanInput{
		TableName: aws.String(s.table), Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(total)),
		FilterExpression: built.Filter(), ProjectionExpression: built.Projection(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(), ExclusiveStartKey: start,
	})
	if err != nil {
		return nil, "", readFailed(fmt.Sprintf("scanning segment %d of %d", segment, total), err)
	}
	holds := make([]ledger.IndexedHold, len(out.Items))
	for i, found := range out.Items {
		holds[i] = newIndexedHold(found)
	}
	return holds, scanNext(out.LastEvaluatedKey), nil
}

// newIndexedHold takes what it needs attribute by attribute: a hold that can't be decoded
// as a whole must be in the index as well.
func newIndexedHold(i item) ledger.IndexedHold {
	h := ledger.Hold{
		ReleaseAt:   fromMilliseconds(numberOf(i, attributeReleaseAtMs)),
		AttemptOpen: ledger.AttemptNumber(numberOf(i, attributeAttemptOpen)),
	}
	if terms, is := i[attributeTerms].(*types.AttributeValueMemberM); is {
		h.Terms.UnknownFor = time.Duration(numberOf(terms.Value, attributeUnknownInMs)) * time.Millisecond
	}
	id := ledger.HoldID(strings.TrimPrefix(stringOf(i, AttributePartitionKey), prefixHold))
	dueAt, _ := h.DueAt()
	found := ledger.IndexedHold{Hold: id, Status: ledger.Status(stringOf(i, attributeStatus)), DueAt: dueAt}
	listedAt := fromMilliseconds(numberOf(i, AttributeDueAtMs))
	if listedAt.IsZero() {
		return found // an item is in the index only while it has both keys
	}
	switch shard := stringOf(i, AttributeDueShard); {
	case shard == dueShardKey(kindHold, ledger.DueShard(id)):
		found.InDue = true
	case shard == dueShardKey(kindParked, ledger.DueShard(id)):
		found.Parked = true
	case strings.HasPrefix(shard, kindHold) || strings.HasPrefix(shard, kindParked):
		found.Misplaced = true
	default:
		return found // of another list, or of none
	}
	found.ListedAt = listedAt
	return found
}
