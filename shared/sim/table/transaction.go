package table

import (
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// transactionActionsMax is DynamoDB's limit of one transaction.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
const transactionActionsMax = 100

// The reasons of a cancelled transaction that this table itself gives.
const (
	reasonNone       = "None"
	reasonCondition  = "ConditionalCheckFailed"
	reasonValidation = "ValidationError"
)

// Transaction is a transaction whose conditions all held, and what it will write.
type Transaction struct {
	changes []change
}

// Keys are the items that the transaction writes or checks, in the order of its actions.
func (p *Transaction) Keys() []Key {
	keys := make([]Key, len(p.changes))
	for i := range p.changes {
		keys[i] = p.changes[i].key
	}
	return keys
}

// Keys returns the items that a transaction would touch, in the order of its actions, so
// that they can be locked before it is prepared. An action without a proper key is left
// out; preparing tells what is wrong with it.
func (t *Table) Keys(in *dynamodb.TransactWriteItemsInput) []Key {
	keys := make([]Key, 0, len(in.TransactItems))
	for i := range in.TransactItems {
		a, f := actionOf(&in.TransactItems[i])
		if f != nil {
			continue
		}
		if key, f := t.keyOfAction(&a); f == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// WriteTransaction applies all of the transaction or nothing. The mutations are in the
// order of its actions. Its errors are those of Prepare.
func (t *Table) WriteTransaction(in *dynamodb.TransactWriteItemsInput) ([]Mutation, error) {
	prepared, err := t.Prepare(in)
	if err != nil {
		return nil, err
	}
	return t.Apply(prepared)
}

// Prepare evaluates the transaction at the table as it is, and changes nothing. Its error
// is a *types.TransactionCanceledException with one reason per action in order, a
// ValidationException for a request that is wrong in itself, or it has ErrUnsupported in
// it.
func (t *Table) Prepare(in *dynamodb.TransactWriteItemsInput) (*Transaction, error) {
	if n := len(in.TransactItems); n < 1 || n > transactionActionsMax {
		return nil, invalid("1 validation error detected: 'transactItems' must have 1 to %d members", transactionActionsMax)
	}
	actions := make([]action, len(in.TransactItems))
	for i := range actions {
		var f *fault
		if actions[i], f = actionOf(&in.TransactItems[i]); f != nil {
			return nil, f.err()
		}
		if f = t.compile(&actions[i]); f != nil {
			return nil, f.err()
		}
	}
	if f := t.checkDistinct(actions); f != nil {
		return nil, f.err()
	}
	prepared := &Transaction{changes: make([]change, len(actions))}
	var reasons []types.CancellationReason
	for i := range actions {
		c, refused, f := t.evaluate(&actions[i])
		if f != nil && (f.wholeRequest || f.unsupported != nil) {
			return nil, f.err()
		}
		if (f != nil || refused) && reasons == nil {
			reasons = noReasons(len(actions))
		}
		switch {
		case f != nil:
			reasons[i] = types.CancellationReason{Code: aws.String(reasonValidation), Message: aws.String(f.message)}
		case refused:
			reasons[i] = types.CancellationReason{Code: aws.String(reasonCondition), Message: aws.String(conditionFailed)}
			if actions[i].returnsOld {
				reasons[i].Item = c.before.item
			}
		}
		prepared.changes[i] = c
	}
	if reasons != nil {
		return nil, Canceled(reasons)
	}
	return prepared, nil
}

// Apply writes what was prepared. The items must be as they were then: a caller that lets
// steps run in between locks them, and an error says that it did not.
func (t *Table) Apply(prepared *Transaction) ([]Mutation, error) {
	for i := range prepared.changes {
		c := &prepared.changes[i]
		if now, present := t.stored(c.key); present != c.present || now.sequence != c.before.sequence {
			return nil, fmt.Errorf("item %s %s was written between the two phases of a transaction", c.key.Partition, c.key.Sort)
		}
	}
	mutations := make([]Mutation, 0, len(prepared.changes))
	for i := range prepared.changes {
		if c := &prepared.changes[i]; c.writes {
			mutations = append(mutations, t.write(c.key, c.before.item, c.after))
		}
	}
	return mutations, nil
}

// Canceled is the error of a transaction with these reasons, one for each action.
func Canceled(reasons []types.CancellationReason) *types.TransactionCanceledException {
	codes := make([]string, len(reasons))
	for i := range reasons {
		codes[i] = aws.ToString(reasons[i].Code)
	}
	return &types.TransactionCanceledException{
		Message:             aws.String("Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]"),
		CancellationReasons: reasons,
	}
}

func noReasons(n int) []types.CancellationReason {
	reasons := make([]types.CancellationReason, n)
	none := aws.String(reasonNone)
	for i := range reasons {
		reasons[i].Code = none
	}
	return reasons
}

// checkDistinct refuses two actions on one item. A key that can't be read is passed over;
// it is the reason of its own action. One with something besides the key counts.
func (t *Table) checkDistinct(actions []action) *fault {
	seen := make(map[Key]bool, len(actions))
	for i := range actions {
		key, f := t.keyOf(actions[i].item)
		switch {
		case f != nil && f.wholeRequest:
			return f
		case f != nil:
			continue
		case seen[key]:
			return requestFaultf("Transaction request cannot include multiple operations on one item")
		}
		seen[key] = true
	}
	return nil
}

// actionOf reads the one action of an element.
func actionOf(in *types.TransactWriteItem) (action, *fault) {
	var a action
	count := 0
	if put := in.Put; put != nil {
		count++
		a = action{
			kind: actionPut, item: put.Item, condition: put.ConditionExpression,
			names: put.ExpressionAttributeNames, values: put.ExpressionAttributeValues,
			returnsOld: asksForOld(put.ReturnValuesOnConditionCheckFailure),
		}
	}
	if update := in.Update; update != nil {
		count++
		a = action{
			kind: actionUpdate, item: update.Key, condition: update.ConditionExpression, update: update.UpdateExpression,
			names: update.ExpressionAttributeNames, values: update.ExpressionAttributeValues,
			returnsOld: asksForOld(update.ReturnValuesOnConditionCheckFailure),
		}
	}
	if remove := in.Delete; remove != nil {
		count++
		a = action{
			kind: actionDelete, item: remove.Key, condition: remove.ConditionExpression,
			names: remove.ExpressionAttributeNames, values: remove.ExpressionAttributeValues,
			returnsOld: asksForOld(remove.ReturnValuesOnConditionCheckFailure),
		}
	}
	if check := in.ConditionCheck; check != nil {
		count++
		a = action{
			kind: actionConditionCheck, item: check.Key, condition: check.ConditionExpression,
			names: check.ExpressionAttributeNames, values: check.ExpressionAttributeValues,
			returnsOld: asksForOld(check.ReturnValuesOnConditionCheckFailure),
		}
	}
	switch {
	case count != 1:
		return a, requestFaultf("TransactItems can only contain one of Check, Put, Update or Delete")
	case a.kind == actionUpdate && a.update == nil, a.kind == actionConditionCheck && a.condition == nil:
		return a, requestFaultf("1 validation error detected: the expression must not be null")
	}
	return a, nil
}
