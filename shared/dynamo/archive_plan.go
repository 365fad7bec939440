package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"holdfast/shared/lease"
	"holdfast/shared/ledger"
)

const (
	attributeBatch  = "batch"
	attributeSealed = "sealed"
)

// planRecord is the plan of one shard of the archive. One that is carried out stays
// without its batch: its fence still keeps out a worker that has lost its lease.
type planRecord struct {
	itemKey
	Kind      ledger.ArchiveKind     `dynamodbav:"kind"`
	Shard     int                    `dynamodbav:"shard"`
	Fence     lease.Fence            `dynamodbav:"fence"`
	Batch     ledger.BatchID         `dynamodbav:"batch,omitempty"`
	BegunAtMs int64                  `dynamodbav:"begun_at_ms,omitempty"`
	Subjects  []plannedSubjectFields `dynamodbav:"subjects,omitempty"`
	Sealed    bool                   `dynamodbav:"sealed,omitempty"`
}

type plannedSubjectFields struct {
	Hold        ledger.HoldID        `dynamodbav:"hold_id,omitempty"`
	Reservation ledger.ReservationID `dynamodbav:"reservation_id,omitempty"`
	Version     ledger.Version       `dynamodbav:"version"`
}

func planKey(kind ledger.ArchiveKind, shard int) itemKey {
	return itemKey{fmt.Sprintf("%s%s%s%02d", prefixArchive, kind, separator, shard), sortArchivePlan}
}

// SavePlan writes down what the batch archives. It reports false, and writes nothing, if a
// worker with a later lease has written there, or the batch that is written there is
// another one and not done, or is sealed and plan is not. It may be repeated. More than ledger.PlanSubjectsMax subjects
// are a CodeInvalid error.
func (s *Store) SavePlan(ctx context.Context, plan ledger.ArchivePlan, fence lease.Fence) (bool, error) {
	if len(plan.Subjects) == 0 || len(plan.Subjects) > ledger.PlanSubjectsMax || plan.Batch == "" {
		return false, &ledger.Error{Code: ledger.CodeInvalid, Message: fmt.Sprintf("a plan needs a batch with 1 to %d subjects", ledger.PlanSubjectsMax)}
	}
	record := planRecord{Batch: plan.Batch, BegunAtMs: milliseconds(plan.Begun), Sealed: plan.Sealed}
	for _, p := range plan.Subjects {
		record.Subjects = append(record.Subjects, plannedSubjectFields{p.Subject.Hold, p.Subject.Reservation, p.Version})
	}
	ours := expression.Name(attributeBatch).Equal(expression.Value(plan.Batch))
	if !plan.Sealed {
		ours = ours.And(expression.AttributeNotExists(expression.Name(attributeSealed)))
	}
	free := expression.AttributeNotExists(expression.Name(attributeBatch)).Or(ours)
	return s.putPlan(ctx, plan, record, fence, notThere().Or(fenceUpTo(fence).And(free)))
}

// ClearPlan says that the plan's batch is done. It reports false, and does nothing, if a
// worker with a later lease has written there, or another batch is there. It may be
// repeated.
func (s *Store) ClearPlan(ctx context.Context, plan ledger.ArchivePlan, fence lease.Fence) (bool, error) {
	done := expression.AttributeNotExists(expression.Name(attributeBatch)).
		Or(expression.Name(attributeBatch).Equal(expression.Value(plan.Batch)))
	return s.putPlan(ctx, plan, planRecord{}, fence, fenceUpTo(fence).And(done))
}

// fenceUpTo is the condition that no worker with a later lease has written the plan.
func fenceUpTo(fence lease.Fence) expression.ConditionBuilder {
	return expression.Name(attributeFence).LessThanEqual(expression.Value(fence))
}

func (s *Store) putPlan(ctx context.Context, plan ledger.ArchivePlan, record planRecord, fence lease.Fence, condition expression.ConditionBuilder) (bool, error) {
	record.itemKey, record.Kind, record.Shard, record.Fence = planKey(plan.Kind, plan.Shard), plan.Kind, plan.Shard, fence
	i, err := attributevalue.MarshalMap(record)
	if err != nil {
		return false, internal("encoding an archive plan", err)
	}
	put, err := s.putIf(ctx, i, condition)
	if err != nil {
		return false, readFailed("writing an archive plan", err)
	}
	return put, nil
}

// Plan reads the plan of a shard that is not done, and whether there is one.
func (s *Store) Plan(ctx context.Context, kind ledger.ArchiveKind, shard int) (ledger.ArchivePlan, bool, error) {
	found, err := s.get(ctx, planKey(kind, shard))
	if err != nil {
		return ledger.ArchivePlan{}, false, err
	}
	var record planRecord
	if err := attributevalue.UnmarshalMap(found, &record); err != nil {
		return ledger.ArchivePlan{}, false, internal("decoding an archive plan", err)
	}
	if record.Batch == "" {
		return ledger.ArchivePlan{}, false, nil
	}
	plan := ledger.ArchivePlan{Kind: kind, Shard: shard, Batch: record.Batch, Begun: fromMilliseconds(record.BegunAtMs), Sealed: record.Sealed}
	for _, p := range record.Subjects {
		plan.Subjects = append(plan.Subjects, ledger.PlannedSubject{
			Subject: ledger.ArchiveSubject{Hold: p.Hold, Reservation: p.Reservation}, Version: p.Version,
		})
	}
	return plan, true, nil
}
