package dynamo

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

const (
	attributeRetainUntilMs = "retain_until_ms"
	attributeClaim         = "claim"
)

// idempotencyRecord remembers an answered request, or one that is being carried out. Its
// time to live only purges it: until DynamoDB gets to that, and for as long as it takes,
// code compares retain_until.
type idempotencyRecord struct {
	itemKey
	ID            ledger.IdempotencyID `dynamodbav:"idempotency_id"`
	Fingerprint   ledger.Fingerprint   `dynamodbav:"fingerprint"`
	Status        int                  `dynamodbav:"response_status"`
	Body          []byte               `dynamodbav:"response_body"`
	Claim         ledger.ClaimID       `dynamodbav:"claim,omitempty"`
	ClaimUntilMs  int64                `dynamodbav:"claim_until_ms,omitempty"`
	Reservation   ledger.ReservationID `dynamodbav:"reservation_id,omitempty"`
	CompletedAtMs int64                `dynamodbav:"completed_at_ms,omitempty"`
	RetainUntilMs int64                `dynamodbav:"retain_until_ms"`
	TTLAtSeconds  int64                `dynamodbav:"ttl_at_seconds"`
}

func decodeIdempotency(item map[string]types.AttributeValue) (ledger.IdempotencyRecord, error) {
	var r idempotencyRecord
	err := attributevalue.UnmarshalMap(item, &r)
	return ledger.IdempotencyRecord{
		ID: r.ID, Fingerprint: r.Fingerprint, Response: ledger.Response{Status: r.Status, Body: r.Body},
		Claim: r.Claim, ClaimUntil: fromMilliseconds(r.ClaimUntilMs), Reservation: r.Reservation,
		CompletedAt: fromMilliseconds(r.CompletedAtMs), RetainUntil: fromMilliseconds(r.RetainUntilMs),
	}, err
}

// idempotencyLeg writes the record where there is none, or none that still counts. A
// record that takes over a claim replaces that claim and nothing else.
func idempotencyLeg(r ledger.IdempotencyRecord, at time.Time) (leg, error) {
	record := idempotencyRecord{
		itemKey: idempotencyKey(r.ID), ID: r.ID, Fingerprint: r.Fingerprint,
		Status: r.Response.Status, Body: r.Response.Body,
		Claim: r.Claim, ClaimUntilMs: milliseconds(r.ClaimUntil), Reservation: r.Reservation,
		CompletedAtMs: milliseconds(r.CompletedAt), RetainUntilMs: milliseconds(r.RetainUntil),
		TTLAtSeconds: r.RetainUntil.Unix() + 1,
	}
	condition := notThere().Or(expression.Name(attributeRetainUntilMs).LessThanEqual(expression.Value(milliseconds(at))))
	if r.Takes != "" {
		condition = expression.Name(attributeClaim).Equal(expression.Value(r.Takes))
	}
	return putLeg(record, condition, func(item map[string]types.AttributeValue) (ledger.RefusedLeg, error) {
		refused := ledger.RefusedLeg{Kind: ledger.LegIdempotency}
		if len(item) == 0 {
			return refused, nil
		}
		stored, err := decodeIdempotency(item)
		refused.Idempotency = &stored
		return refused, err
	})
}
