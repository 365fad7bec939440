package dynamo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/lease"
	"holdfast/shared/ledger"
)

const (
	prefixLease      = "LEASE" + separator
	sortLease        = "LEASE"
	attributeWorker  = "worker"
	attributeFence   = "fence"
	attributeUntilMs = "until_ms"
	// fenceStep is by how much the fencing number grows with each taking.
	fenceStep = 1
)

var _ lease.Leases = (*Store)(nil)

// leaseRecord is a lease item. There is one for each shard that was ever worked on, so it
// needs no time to live.
type leaseRecord struct {
	Worker  lease.Worker `dynamodbav:"worker"`
	Fence   lease.Fence  `dynamodbav:"fence"`
	UntilMs int64        `dynamodbav:"until_ms"`
}

func leaseKey(kind lease.Kind, shard int) itemKey {
	return itemKey{fmt.Sprintf("%s%s%s%02d", prefixLease, kind, separator, shard), sortLease}
}

// TakeLease implements lease.Leases. The fencing number is read after the write: whoever
// has taken the lease in between is in the item too.
func (s *Store) TakeLease(ctx context.Context, kind lease.Kind, shard int, worker lease.Worker, now, until time.Time) (lease.Lease, bool, error) {
	free := notThere().
		Or(expression.Name(attributeUntilMs).LessThanEqual(expression.Value(milliseconds(now)))).
		Or(expression.Name(attributeWorker).Equal(expression.Value(worker)))
	_, err := s.updateLease(ctx, leaseKey(kind, shard), free, expression.
		Set(expression.Name(attributeWorker), expression.Value(worker)).
		Set(expression.Name(attributeUntilMs), expression.Value(milliseconds(until))).
		Add(expression.Name(attributeFence), expression.Value(fenceStep)))
	if err != nil {
		return lease.Lease{}, false, err
	}
	stored, err := s.get(ctx, leaseKey(kind, shard))
	if err != nil {
		return lease.Lease{}, false, err
	}
	var record leaseRecord
	if err := attributevalue.UnmarshalMap(stored, &record); err != nil {
		return lease.Lease{}, false, internal("decoding a lease", err)
	}
	got := lease.Lease{Kind: kind, Shard: shard, Worker: record.Worker, Fence: record.Fence, Until: fromMilliseconds(record.UntilMs)}
	return got, got.Worker == worker, nil
}

// RenewLease implements lease.Leases.
func (s *Store) RenewLease(ctx context.Context, held lease.Lease, until time.Time) (lease.Lease, bool, error) {
	renewed, err := s.updateLease(ctx, leaseKey(held.Kind, held.Shard), isStill(held),
		expression.Set(expression.Name(attributeUntilMs), expression.Value(milliseconds(until))))
	if renewed {
		held.Until = until
	}
	return held, renewed, err
}

// ReturnLease implements lease.Leases. One that has ended already is left as it is, so
// that it does not last longer for those whose clock is behind.
func (s *Store) ReturnLease(ctx context.Context, held lease.Lease, now time.Time) error {
	_, err := s.updateLease(ctx, leaseKey(held.Kind, held.Shard),
		isStill(held).And(expression.Name(attributeUntilMs).GreaterThan(expression.Value(milliseconds(now)))),
		expression.Set(expression.Name(attributeUntilMs), expression.Value(milliseconds(now))))
	return err
}

// isStill is the condition that nobody has taken the lease since.
func isStill(held lease.Lease) expression.ConditionBuilder {
	return expression.Name(attributeWorker).Equal(expression.Value(held.Worker)).
		And(expression.Name(attributeFence).Equal(expression.Value(held.Fence)))
}

// updateLease writes a lease item and reports whether its condition was true. Each of the
// writes above leaves its condition true, or may be made twice, so that an answer that is
// lost and asked for again says the same.
func (s *Store) updateLease(ctx context.Context, key itemKey, condition expression.ConditionBuilder, update expression.UpdateBuilder) (bool, error) {
	built, err := expression.NewBuilder().WithCondition(condition).WithUpdate(update).Build()
	if err != nil {
		return false, internal("building the write of a lease", err)
	}
	err = s.update(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(s.table), Key: key.attributes(),
		ConditionExpression: built.Condition(), UpdateExpression: built.Update(),
		ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
	})
	if another := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &another) {
		return false, nil
	}
	if err != nil {
		return false, readFailed("writing a lease", err)
	}
	return true, nil
}

// leaseLeg requires that nobody has taken the lease since.
func leaseLeg(held ledger.LeaseHeld) (leg, error) {
	return checkLeg(leaseKey(lease.Kind(held.Kind), held.Shard), expression.Name(attributeFence).Equal(expression.Value(held.Fence)),
		func(map[string]types.AttributeValue) (ledger.RefusedLeg, error) {
			return ledger.RefusedLeg{Kind: ledger.LegLease}, nil
		})
}
