package dynamo

import (
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

// leg is one action of a transaction, and how to read the item that refused it.
type leg struct {
	item     types.TransactWriteItem
	setTable func(item *types.TransactWriteItem, table string)
	refused  decodeRefused
}

// decodeRefused reads the item as it was when its condition was false. The item is
// empty when there was none.
type decodeRefused func(item map[string]types.AttributeValue) (ledger.RefusedLeg, error)

// notThere is the condition that no item of this key exists.
func notThere() expression.ConditionBuilder {
	return expression.AttributeNotExists(expression.Name(AttributePartitionKey))
}

// putLeg writes a whole item under a condition on what it replaces.
func putLeg(record any, condition expression.ConditionBuilder, refused decodeRefused) (leg, error) {
	item, err := attributevalue.MarshalMap(record)
	if err != nil {
		return leg{}, err
	}
	built, err := expression.NewBuilder().WithCondition(condition).Build()
	if err != nil {
		return leg{}, err
	}
	return leg{
		item: types.TransactWriteItem{Put: &types.Put{
			Item:                                item,
			ConditionExpression:                 built.Condition(),
			ExpressionAttributeNames:            built.Names(),
			ExpressionAttributeValues:           built.Values(),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}},
		setTable: func(item *types.TransactWriteItem, table string) { item.Put.TableName = aws.String(table) },
		refused:  refused,
	}, nil
}

// updateLeg changes some attributes of an item under a condition.
func updateLeg(key itemKey, condition expression.ConditionBuilder, update expression.UpdateBuilder, refused decodeRefused) (leg, error) {
	built, err := expression.NewBuilder().WithCondition(condition).WithUpdate(update).Build()
	if err != nil {
		return leg{}, err
	}
	return leg{
		item: types.TransactWriteItem{Update: &types.Update{
			Key:                                 key.attributes(),
			ConditionExpression:                 built.Condition(),
			UpdateExpression:                    built.Update(),
			ExpressionAttributeNames:            built.Names(),
			ExpressionAttributeValues:           built.Values(),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}},
		setTable: func(item *types.TransactWriteItem, table string) { item.Update.TableName = aws.String(table) },
		refused:  refused,
	}, nil
}

// unconditionalLeg changes some attributes of an item whatever they are.
func unconditionalLeg(key itemKey, update expression.UpdateBuilder) (leg, error) {
	built, err := expression.NewBuilder().WithUpdate(update).Build()
	if err != nil {
		return leg{}, err
	}
	return leg{
		item: types.TransactWriteItem{Update: &types.Update{
			Key:                       key.attributes(),
			UpdateExpression:          built.Update(),
			ExpressionAttributeNames:  built.Names(),
			ExpressionAttributeValues: built.Values(),
		}},
		setTable: func(item *types.TransactWriteItem, table string) { item.Update.TableName = aws.String(table) },
		refused: func(map[string]types.AttributeValue) (ledger.RefusedLeg, error) {
			return ledger.RefusedLeg{}, errors.New("an action without a condition was refused by its condition")
		},
	}, nil
}

// checkLeg requires something of an item and leaves it as it is.
func checkLeg(key itemKey, condition expression.ConditionBuilder, refused decodeRefused) (leg, error) {
	built, err := expression.NewBuilder().WithCondition(condition).Build()
	if err != nil {
		return leg{}, err
	}
	return leg{
		item: types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			Key:                                 key.attributes(),
			ConditionExpression:                 built.Condition(),
			ExpressionAttributeNames:            built.Names(),
			ExpressionAttributeValues:           built.Values(),
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}},
		setTable: func(item *types.TransactWriteItem, table string) { item.ConditionCheck.TableName = aws.String(table) },
		refused:  refused,
	}, nil
}

// legs turns a change into its actions, in a fixed order.
func legs(c ledger.Change) ([]leg, error) {
	all := make([]leg, 0, c.Actions())
	var failure error
	add := func(l leg, err error) {
		if err != nil && failure == nil {
			failure = err
		}
		all = append(all, l)
	}
	for _, w := range c.Holds {
		add(holdLeg(w, c.At))
	}
	for _, w := range c.Reservations {
		add(reservationLeg(w))
	}
	for _, w := range c.Slots {
		add(slotLeg(w))
	}
	for _, w := range c.Policies {
		add(policyLeg(w))
	}
	for _, s := range c.NewStock {
		add(newStockLeg(s))
	}
	for _, w := range c.Stock {
		add(stockLeg(w))
	}
	for _, r := range c.StockRepairs {
		add(stockRepairLeg(r))
	}
	for _, w := range c.Reviews {
		add(reviewLeg(w))
	}
	for _, w := range c.Quotas {
		add(quotaLeg(w, milliseconds(c.At)))
	}
	for _, w := range c.Signals {
		add(signalLeg(w))
	}
	for _, e := range c.Events {
		add(eventLeg(e))
	}
	if c.Idempotency != nil {
		add(idempotencyLeg(*c.Idempotency, c.At))
	}
	for _, u := range c.Uniqueness {
		add(uniquenessLeg(u))
	}
	for _, m := range c.Archives {
		add(archiveMarkLeg(m))
	}
	for _, r := range c.AtRest {
		add(atRestLeg(r))
	}
	if c.Lease != nil {
		add(leaseLeg(*c.Lease))
	}
	return all, failure
}
