package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

const (
	attributeExpiryFailures = "expiry_failures"
	attributeParkedDueAtMs  = "parked_due_at_ms"
)

// parkingFields is what a hold item has besides the hold when it could not be ended. They
// are no part of the hold: its next step writes the item anew without them.
type parkingFields struct {
	ExpiryFailures int   `dynamodbav:"expiry_failures,omitempty"`
	ParkedDueAtMs  int64 `dynamodbav:"parked_due_at_ms,omitempty"`
}

// Failures says how often ending the hold has failed since its last step, and since when a
// parked one is due. It works on an item that is no readable hold too, because such a one
// is what can't be ended.
func (s *Store) Failures(ctx context.Context, id ledger.HoldID) (ledger.EndFailures, error) {
	found, err := s.get(ctx, holdKey(id))
	if err != nil {
		return ledger.EndFailures{}, err
	}
	var fields parkingFields
	if err := attributevalue.UnmarshalMap(found, &fields); err != nil {
		return ledger.EndFailures{}, internal("reading the failures of hold "+string(id), err)
	}
	return ledger.EndFailures{Count: fields.ExpiryFailures, DueAt: fromMilliseconds(fields.ParkedDueAtMs)}, nil
}

// CountFailure notes how often ending the hold has failed. It reports false, and does
// nothing, when the due index does not list the hold as the entry says.
func (s *Store) CountFailure(ctx context.Context, entry ledger.DueHold, failures int) (bool, error) {
	return s.updateListed(ctx, entry, expression.Set(expression.Name(attributeExpiryFailures), expression.Value(failures)))
}

// Park notes how often ending the hold has failed, and lists it among the parked ones
// until tryAt. It reports false, and does nothing, when the due index does not list the
// hold as the entry says.
func (s *Store) Park(ctx context.Context, entry ledger.DueHold, failures int, tryAt time.Time) (bool, error) {
	parkedDueAt := expression.Name(attributeParkedDueAtMs)
	return s.updateListed(ctx, entry, expression.
		Set(expression.Name(attributeExpiryFailures), expression.Value(failures)).
		Set(parkedDueAt, expression.IfNotExists(parkedDueAt, expression.Value(milliseconds(entry.ListedAt())))).
		Set(expression.Name(AttributeDueShard), expression.Value(dueShardKey(kindParked, ledger.DueShard(entry.ID)))).
		Set(expression.Name(AttributeDueAtMs), expression.Value(milliseconds(tryAt))))
}

// Unpark puts a parked hold back among those that are due, at its due time and without
// failures. It reports false, and does nothing, when the due index does not list the hold
// as the entry says, or when the entry is of no parked hold.
func (s *Store) Unpark(ctx context.Context, entry ledger.DueHold) (bool, error) {
	if entry.TryAt.IsZero() {
		return false, nil
	}
	return s.updateListed(ctx, entry, expression.
		Set(expression.Name(AttributeDueShard), expression.Value(dueShardKey(kindHold, ledger.DueShard(entry.ID)))).
		Set(expression.Name(AttributeDueAtMs), expression.Name(attributeParkedDueAtMs)).
		Remove(expression.Name(attributeParkedDueAtMs)).
		Remove(expression.Name(attributeExpiryFailures)))
}

// updateListed updates the hold's item while the due index lists it as the entry says. That
// is the lock of these updates, and not the version, so that they work on an item that
// can't be read.
func (s *Store) updateListed(ctx context.Context, entry ledger.DueHold, update expression.UpdateBuilder) (bool, error) {
	kind := kindHold
	if !entry.TryAt.IsZero() {
		kind = kindParked
	}
	built, err := expression.NewBuilder().
		WithCondition(expression.Name(AttributeDueShard).Equal(expression.Value(dueShardKey(kind, ledger.DueShard(entry.ID)))).
			And(expression.Name(AttributeDueAtMs).Equal(expression.Value(milliseconds(entry.ListedAt()))))).
		WithUpdate(update).Build()
	if err != nil {
		return false, internal("building the parking of a hold", err)
	}
	err = s.update(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(s.table), Key: holdKey(entry.ID).attributes(),
		ConditionExpression: built.Condition(), UpdateExpression: built.Update(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
	})
	if movedOn := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &movedOn) {
		return false, nil
	}
	if err != nil {
		return false, readFailed("parking hold "+string(entry.ID), err)
	}
	return true, nil
}

// parkedUntilMax is after every time at which a parked hold is tried again.
var parkedUntilMax = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// Parked lists the parked holds of one shard, those that are tried next first, as entries
// whose DueAt is not known.
func (s *Store) Parked(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error) {
	entries, next, err := s.due(ctx, dueShardKey(kindParked, shard), parkedUntilMax, page, ledger.ValidHoldID,
		func(id string) itemKey { return holdKey(ledger.HoldID(id)) })
	if err != nil {
		return nil, "", err
	}
	parked := make([]ledger.DueHold, len(entries))
	for i, entry := range entries {
		parked[i] = ledger.DueHold{ID: ledger.HoldID(entry.id), TryAt: entry.dueAt}
	}
	return parked, next, nil
}

// isParked reports whether the item is among the parked holds, and remembers that the hold
// is due at dueAt. A sweep looks at those too.
func isParked(i item, id ledger.HoldID, dueAt time.Time) bool {
	return !dueAt.IsZero() && stringOf(i, AttributeDueShard) == dueShardKey(kindParked, ledger.DueShard(id)) &&
		numberOf(i, AttributeDueAtMs) > 0 && numberOf(i, attributeParkedDueAtMs) == milliseconds(dueAt)
}
