package dynamo

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

const (
	attributeVersion     = "version"
	attributeStatus      = "status"
	attributeReleaseAtMs = "release_at_ms"
)

// holdFields is a hold without its keys: the body of a hold item, and the copy of the
// hold in an event.
type holdFields struct {
	ID               ledger.HoldID           `dynamodbav:"hold_id"`
	Owner            ledger.OwnerID          `dynamodbav:"owner"`
	Status           ledger.Status           `dynamodbav:"status"`
	Lines            []lineFields            `dynamodbav:"lines"`
	CreatedAtMs      int64                   `dynamodbav:"created_at_ms"`
	ExpiresAtMs      int64                   `dynamodbav:"expires_at_ms"`
	ReleaseAtMs      int64                   `dynamodbav:"release_at_ms"`
	GraceMs          int64                   `dynamodbav:"grace_ms"`
	PaymentReference ledger.PaymentReference `dynamodbav:"payment_reference,omitempty"`
	EndedAtMs        int64                   `dynamodbav:"ended_at_ms,omitempty"`
	Version          ledger.Version          `dynamodbav:"version"`
}

type lineFields struct {
	Slot       ledger.SlotID      `dynamodbav:"slot_id"`
	Quantity   ledger.Units       `dynamodbav:"quantity"`
	UnitAmount int64              `dynamodbav:"unit_amount"`
	Currency   ledger.Currency    `dynamodbav:"currency"`
	Shards     []allocationFields `dynamodbav:"shards"`
}

type allocationFields struct {
	Shard    ledger.Shard `dynamodbav:"shard"`
	Quantity ledger.Units `dynamodbav:"quantity"`
}

// holdRecord is a hold item. It is in the due index only while the hold is HELD.
type holdRecord struct {
	itemKey
	holdFields
	OwnerOrder string `dynamodbav:"owner_order"`
	DueShard   string `dynamodbav:"due_shard,omitempty"`
	DueAtMs    int64  `dynamodbav:"due_at_ms,omitempty"`
}

func newHoldFields(h ledger.Hold) holdFields {
	f := holdFields{
		ID: h.ID, Owner: h.Owner, Status: h.Status, CreatedAtMs: milliseconds(h.CreatedAt),
		ExpiresAtMs: milliseconds(h.ExpiresAt), ReleaseAtMs: milliseconds(h.ReleaseAt),
		GraceMs: h.GraceFor.Milliseconds(), PaymentReference: h.PaymentReference,
		EndedAtMs: milliseconds(h.EndedAt), Version: h.Version,
	}
	for _, l := range h.Lines {
		line := lineFields{Slot: l.Slot, Quantity: l.Quantity, UnitAmount: l.UnitPrice.AmountMinor, Currency: l.UnitPrice.Currency}
		for _, a := range l.Shards {
			line.Shards = append(line.Shards, allocationFields{a.Shard, a.Quantity})
		}
		f.Lines = append(f.Lines, line)
	}
	return f
}

func (f holdFields) hold() ledger.Hold {
	h := ledger.Hold{
		ID: f.ID, Owner: f.Owner, Status: f.Status, CreatedAt: fromMilliseconds(f.CreatedAtMs),
		ExpiresAt: fromMilliseconds(f.ExpiresAtMs), ReleaseAt: fromMilliseconds(f.ReleaseAtMs),
		GraceFor: time.Duration(f.GraceMs) * time.Millisecond, PaymentReference: f.PaymentReference,
		EndedAt: fromMilliseconds(f.EndedAtMs), Version: f.Version,
	}
	for _, l := range f.Lines {
		line := ledger.Line{Slot: l.Slot, Quantity: l.Quantity, UnitPrice: ledger.Money{AmountMinor: l.UnitAmount, Currency: l.Currency}}
		for _, a := range l.Shards {
			line.Shards = append(line.Shards, ledger.Allocation{Shard: a.Shard, Quantity: a.Quantity})
		}
		h.Lines = append(h.Lines, line)
	}
	return h
}

func newHoldRecord(h ledger.Hold) holdRecord {
	r := holdRecord{itemKey: holdKey(h.ID), holdFields: newHoldFields(h), OwnerOrder: ownerOrder(h.CreatedAt, h.ID)}
	if due, waiting := h.DueAt(); waiting {
		r.DueShard = dueShardKey(ledger.DueShard(h.ID))
		r.DueAtMs = milliseconds(due)
	}
	return r
}

func decodeHold(item map[string]types.AttributeValue) (ledger.Hold, error) {
	var r holdRecord
	err := attributevalue.UnmarshalMap(item, &r)
	return r.hold(), err
}

// holdLeg writes the next state of a hold under the rules of ledger.HoldWrite.
func holdLeg(w ledger.HoldWrite, at time.Time) (leg, error) {
	condition := notThere()
	if w.Replaces > 0 {
		condition = expression.Name(attributeVersion).Equal(expression.Value(w.Replaces)).
			And(expression.Name(attributeStatus).Equal(expression.Value(ledger.StatusHeld)))
		release := expression.Name(attributeReleaseAtMs)
		switch w.When {
		case ledger.BeforeRelease:
			condition = condition.And(release.GreaterThan(expression.Value(milliseconds(at))))
		case ledger.FromRelease:
			condition = condition.And(release.LessThanEqual(expression.Value(milliseconds(at))))
		case ledger.AnyTime:
		}
	}
	return putLeg(newHoldRecord(w.Next), condition, func(item map[string]types.AttributeValue) (ledger.RefusedLeg, error) {
		refused := ledger.RefusedLeg{Kind: ledger.LegHold}
		if len(item) == 0 {
			return refused, nil
		}
		hold, err := decodeHold(item)
		refused.Hold = &hold
		return refused, err
	})
}
