package table

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const conditionFailed = "The conditional request failed"

// Put writes one item. It gives no mutation when the item was there already, just so. Its
// error is a *types.ConditionalCheckFailedException for a false condition, which then has
// the item as it was if the request asks for it; a ValidationException for a request that
// can't be carried out; or it has ErrUnsupported in it.
func (t *Table) Put(in *dynamodb.PutItemInput) ([]Mutation, error) {
	if in.Expected != nil || in.ConditionalOperator != "" || !returnsNothing(in.ReturnValues) {
		return nil, unsupported("PutItem with return values or parameters of old")
	}
	return t.single(&action{
		kind: actionPut, item: in.Item, condition: in.ConditionExpression,
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		returnsOld: asksForOld(in.ReturnValuesOnConditionCheckFailure),
	})
}

// Update changes one item, or makes it if it is not there. Its errors are those of Put.
func (t *Table) Update(in *dynamodb.UpdateItemInput) ([]Mutation, error) {
	if in.Expected != nil || in.AttributeUpdates != nil || in.ConditionalOperator != "" || !returnsNothing(in.ReturnValues) {
		return nil, unsupported("UpdateItem with return values or parameters of old")
	}
	return t.single(&action{
		kind: actionUpdate, item: in.Key, condition: in.ConditionExpression, update: in.UpdateExpression,
		names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues,
		returnsOld: asksForOld(in.ReturnValuesOnConditionCheckFailure),
	})
}

func returnsNothing(r types.ReturnValue) bool { return r == "" || r == types.ReturnValueNone }

func (t *Table) single(a *action) ([]Mutation, error) {
	if a.condition == nil && a.update == nil && (a.names != nil || a.values != nil) {
		return nil, invalid("ExpressionAttributeNames and ExpressionAttributeValues can only be specified when using expressions")
	}
	if f := t.compile(a); f != nil {
		return nil, f.err()
	}
	c, refused, f := t.evaluate(a)
	switch {
	case f != nil:
		return nil, f.err()
	case refused:
		failed := &types.ConditionalCheckFailedException{Message: aws.String(conditionFailed)}
		if a.returnsOld {
			failed.Item = c.before.item
		}
		return nil, failed
	case !c.writes:
		return nil, nil
	}
	return []Mutation{t.write(c.key, c.before.item, c.after)}, nil
}
