package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

// termsFields are a slot's terms: on the slot, and copied on each of its stock items.
type termsFields struct {
	Open       bool            `dynamodbav:"open"`
	UnitAmount int64           `dynamodbav:"unit_amount"`
	Currency   ledger.Currency `dynamodbav:"currency"`
	Shards     int             `dynamodbav:"shards"`
	Retired    int             `dynamodbav:"shards_retired,omitempty"`
}

func newTermsFields(t ledger.Terms) termsFields {
	return termsFields{t.Open, t.Price.AmountMinor, t.Price.Currency, t.Shards, t.Retired}
}

func (f termsFields) terms() ledger.Terms {
	return ledger.Terms{
		Open: f.Open, Price: ledger.Money{AmountMinor: f.UnitAmount, Currency: f.Currency}, Shards: f.Shards, Retired: f.Retired,
	}
}

// slotFields is a slot without its keys: the body of a slot item, and the copy of the
// slot in an event.
type slotFields struct {
	termsFields
	ID           ledger.SlotID       `dynamodbav:"slot_id"`
	ResourceType ledger.ResourceType `dynamodbav:"resource_type"`
	ResourceID   ledger.ResourceID   `dynamodbav:"resource_id"`
	StartsAtMs   int64               `dynamodbav:"starts_at_ms,omitempty"`
	EndsAtMs     int64               `dynamodbav:"ends_at_ms,omitempty"`
	Attributes   map[string]string   `dynamodbav:"attributes,omitempty"`
	PriceVersion ledger.Version      `dynamodbav:"price_version"`
	layerFields
	Oversold    ledger.Units   `dynamodbav:"oversold,omitempty"`
	Version     ledger.Version `dynamodbav:"version"`
	CreatedAtMs int64          `dynamodbav:"created_at_ms"`
	UpdatedAtMs int64          `dynamodbav:"updated_at_ms"`
}

type slotRecord struct {
	itemKey
	slotFields
	Resource      string `dynamodbav:"resource"`
	ResourceOrder string `dynamodbav:"resource_order"`
}

func newSlotFields(s ledger.Slot) slotFields {
	return slotFields{
		termsFields: newTermsFields(s.Terms), ID: s.ID, ResourceType: s.ResourceType, ResourceID: s.ResourceID,
		StartsAtMs: milliseconds(s.StartsAt), EndsAtMs: milliseconds(s.EndsAt), Attributes: s.Attributes,
		PriceVersion: s.PriceVersion,
		layerFields:  newLayerFields(ledger.PolicyLayer{Policy: s.Policy, Inherits: s.Inherits}), Oversold: s.Oversold,
		Version: s.Version, CreatedAtMs: milliseconds(s.CreatedAt), UpdatedAtMs: milliseconds(s.UpdatedAt),
	}
}

func (f slotFields) slot() ledger.Slot {
	layer := f.layer()
	return ledger.Slot{
		ID: f.ID, ResourceType: f.ResourceType, ResourceID: f.ResourceID,
		StartsAt: fromMilliseconds(f.StartsAtMs), EndsAt: fromMilliseconds(f.EndsAtMs), Attributes: f.Attributes,
		Terms: f.terms(), PriceVersion: f.PriceVersion, Policy: layer.Policy, Inherits: layer.Inherits, Oversold: f.Oversold,
		Version: f.Version, CreatedAt: fromMilliseconds(f.CreatedAtMs), UpdatedAt: fromMilliseconds(f.UpdatedAtMs),
	}
}

func decodeSlot(item map[string]types.AttributeValue) (ledger.Slot, error) {
	var r slotRecord
	err := attributevalue.UnmarshalMap(item, &r)
	return r.slot(), err
}

func slotLeg(w ledger.SlotWrite) (leg, error) {
	condition := notThere()
	if w.Replaces > 0 {
		condition = expression.Name(attributeVersion).Equal(expression.Value(w.Replaces))
	}
	record := slotRecord{
		itemKey: slotKey(w.Next.ID), slotFields: newSlotFields(w.Next),
		Resource:      resourceKey(w.Next.ResourceType, w.Next.ResourceID),
		ResourceOrder: resourceOrder(w.Next.StartsAt, w.Next.ID),
	}
	return putLeg(record, condition, func(item map[string]types.AttributeValue) (ledger.RefusedLeg, error) {
		refused := ledger.RefusedLeg{Kind: ledger.LegSlot}
		if len(item) == 0 {
			return refused, nil
		}
		slot, err := decodeSlot(item)
		refused.StoredSlot = &slot
		return refused, err
	})
}
