package dynamo

import (
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

const (
	attributeAvailable  = "available"
	attributeHeld       = "held"
	attributeConfirmed  = "confirmed"
	attributeCapacity   = "capacity"
	attributeOpen       = "open"
	attributeUnitAmount = "unit_amount"
	attributeCurrency   = "currency"
	attributeShards     = "shards"
	attributeRetired    = "shards_retired"

	attributeAvailableArchived = "available_archived"
	attributeHeldArchived      = "held_archived"
	attributeConfirmedArchived = "confirmed_archived"
	attributeCapacityArchived  = "capacity_archived"
)

// stockRecord is one shard of a slot's stock. DynamoDB conditions can compare
// attributes with values but not add them, which is why available is stored.
type stockRecord struct {
	itemKey
	termsFields
	Slot      ledger.SlotID  `dynamodbav:"slot_id"`
	Shard     ledger.Shard   `dynamodbav:"shard"`
	Available ledger.Units   `dynamodbav:"available"`
	Held      ledger.Units   `dynamodbav:"held"`
	Confirmed ledger.Units   `dynamodbav:"confirmed"`
	Capacity  ledger.Units   `dynamodbav:"capacity"`
	Version   ledger.Version `dynamodbav:"version"`

	AvailableArchived ledger.Units `dynamodbav:"available_archived,omitempty"`
	HeldArchived      ledger.Units `dynamodbav:"held_archived,omitempty"`
	ConfirmedArchived ledger.Units `dynamodbav:"confirmed_archived,omitempty"`
	CapacityArchived  ledger.Units `dynamodbav:"capacity_archived,omitempty"`
}

func decodeStock(item map[string]types.AttributeValue) (ledger.Stock, error) {
	var r stockRecord
	err := attributevalue.UnmarshalMap(item, &r)
	return ledger.Stock{
		Slot: r.Slot, Shard: r.Shard, Terms: r.terms(), Version: r.Version,
		Counters: ledger.Counters{Available: r.Available, Held: r.Held, Confirmed: r.Confirmed, Capacity: r.Capacity},
		Archived: ledger.Counters{
			Available: r.AvailableArchived, Held: r.HeldArchived, Confirmed: r.ConfirmedArchived, Capacity: r.CapacityArchived,
		},
	}, err
}

func newStockLeg(s ledger.Stock) (leg, error) {
	record := stockRecord{
		itemKey: stockKey(s.Slot, s.Shard), termsFields: newTermsFields(s.Terms), Slot: s.Slot, Shard: s.Shard,
		Available: s.Counters.Available, Held: s.Counters.Held, Confirmed: s.Counters.Confirmed,
		Capacity: s.Counters.Capacity, Version: s.Version,
	}
	return putLeg(record, notThere(), refusedStock(s.Slot, s.Shard))
}

// stockLeg changes the counters of one stock item. The condition names every counter
// that falls, and for a sale what the sale depends on: nothing about stock is decided
// by an earlier read.
func stockLeg(w ledger.StockWrite) (leg, error) {
	condition := expression.AttributeExists(expression.Name(AttributePartitionKey))
	update := expression.Set(expression.Name(attributeVersion), expression.Name(attributeVersion).Plus(expression.Value(1)))
	for _, counter := range []struct {
		name  string
		delta ledger.Units
	}{
		{attributeAvailable, w.Delta.Available}, {attributeHeld, w.Delta.Held},
		{attributeConfirmed, w.Delta.Confirmed}, {attributeCapacity, w.Delta.Capacity},
	} {
		name := expression.Name(counter.name)
		if counter.delta != 0 {
			update = update.Set(name, name.Plus(expression.Value(counter.delta)))
		}
		if counter.delta < 0 {
			condition = condition.And(name.GreaterThanEqual(expression.Value(-counter.delta)))
		}
	}
	update = archivedCounters(update, w.Archived)
	if w.Sale != nil {
		condition = condition.
			And(expression.Name(attributeOpen).Equal(expression.Value(w.Sale.Open))).
			And(expression.Name(attributeUnitAmount).Equal(expression.Value(w.Sale.Price.AmountMinor))).
			And(expression.Name(attributeCurrency).Equal(expression.Value(w.Sale.Price.Currency))).
			And(expression.Name(attributeShards).Equal(expression.Value(w.Sale.Shards))).
			And(retiredShards(w.Sale.Retired))
	}
	if w.Open {
		condition = condition.And(expression.Name(attributeOpen).Equal(expression.Value(true)))
	}
	if w.SetTerms != nil {
		update = setTerms(update, *w.SetTerms)
	}
	return updateLeg(stockKey(w.Slot, w.Shard), condition, update, refusedStock(w.Slot, w.Shard))
}

// stockRepairLeg sets the counters and the terms of one stock item, and takes away a time to
// live that it may not have.
func stockRepairLeg(r ledger.StockRepair) (leg, error) {
	condition := expression.Name(attributeVersion).Equal(expression.Value(r.Replaces))
	update := expression.Set(expression.Name(attributeVersion), expression.Value(r.Replaces+1)).
		Set(expression.Name(attributeAvailable), expression.Value(r.Counters.Available)).
		Set(expression.Name(attributeHeld), expression.Value(r.Counters.Held)).
		Set(expression.Name(attributeConfirmed), expression.Value(r.Counters.Confirmed)).
		Set(expression.Name(attributeCapacity), expression.Value(r.Counters.Capacity)).
		Remove(expression.Name(AttributeTimeToLive))
	return updateLeg(stockKey(r.Slot, r.Shard), condition, setTerms(update, r.Terms), refusedStock(r.Slot, r.Shard))
}

// setTerms replaces the terms of a stock item.
func setTerms(update expression.UpdateBuilder, t ledger.Terms) expression.UpdateBuilder {
	update = update.
		Set(expression.Name(attributeOpen), expression.Value(t.Open)).
		Set(expression.Name(attributeUnitAmount), expression.Value(t.Price.AmountMinor)).
		Set(expression.Name(attributeCurrency), expression.Value(t.Price.Currency)).
		Set(expression.Name(attributeShards), expression.Value(t.Shards))
	if t.Retired > 0 {
		return update.Set(expression.Name(attributeRetired), expression.Value(t.Retired))
	}
	return update.Remove(expression.Name(attributeRetired))
}

// retiredShards is the condition that the slot has so many retired stock items. A slot that
// was never given fewer shards has no such attribute.
func retiredShards(retired int) expression.ConditionBuilder {
	name := expression.Name(attributeRetired)
	if retired == 0 {
		return expression.AttributeNotExists(name)
	}
	return name.Equal(expression.Value(retired))
}

// archivedCounters adds to the archived counters of a stock item, which are absent until
// the first of its events is archived.
func archivedCounters(update expression.UpdateBuilder, archived ledger.Counters) expression.UpdateBuilder {
	for _, counter := range []struct {
		name  string
		delta ledger.Units
	}{
		{attributeAvailableArchived, archived.Available}, {attributeHeldArchived, archived.Held},
		{attributeConfirmedArchived, archived.Confirmed}, {attributeCapacityArchived, archived.Capacity},
	} {
		if counter.delta != 0 {
			update = update.Add(expression.Name(counter.name), expression.Value(counter.delta))
		}
	}
	return update
}

func refusedStock(slot ledger.SlotID, shard ledger.Shard) decodeRefused {
	return func(item map[string]types.AttributeValue) (ledger.RefusedLeg, error) {
		refused := ledger.RefusedLeg{Kind: ledger.LegStock, Slot: slot, Shard: shard}
		if len(item) == 0 {
			return refused, nil
		}
		stock, err := decodeStock(item)
		refused.Stock = &stock
		return refused, err
	}
}
