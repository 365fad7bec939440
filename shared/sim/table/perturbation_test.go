package table_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// fromTemplate is a request of the real store, half of the time with something in it
// changed: a value, an operator, an action too many or too few.
func (g *generator) fromTemplate() any {
	input := forTable(pick(g, g.templates).input, g.tableName)
	in, is := input.(*dynamodb.TransactWriteItemsInput)
	if !is || g.oneIn(2) {
		return input
	}
	at := g.IntN(len(in.TransactItems))
	switch g.IntN(5) {
	case 0:
		in.TransactItems = slices.Delete(in.TransactItems, at, at+1)
		if len(in.TransactItems) == 0 {
			return g.next()
		}
	case 1:
		g.Shuffle(len(in.TransactItems), func(i, j int) {
			in.TransactItems[i], in.TransactItems[j] = in.TransactItems[j], in.TransactItems[i]
		})
	case 2:
		other, isWrite := forTable(pick(g, g.templates).input, g.tableName).(*dynamodb.TransactWriteItemsInput)
		if isWrite {
			in.TransactItems = append(in.TransactItems, other.TransactItems...)
		}
	case 3:
		in.TransactItems[at] = g.withOtherValue(in.TransactItems[at])
	case 4:
		in.TransactItems[at] = g.withOtherCondition(in.TransactItems[at])
	}
	return in
}

// withOtherValue moves one whole number that the expressions refer to by one.
func (g *generator) withOtherValue(action types.TransactWriteItem) types.TransactWriteItem {
	change := func(values item) item {
		changed := maps.Clone(values)
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if n, is := values[name].(*types.AttributeValueMemberN); is && g.oneIn(2) {
				whole, err := strconv.ParseInt(n.Value, 10, 64)
				if err != nil {
					continue
				}
				changed[name] = number(fmt.Sprint(whole + int64(g.IntN(3)) - 1))
			}
		}
		return changed
	}
	switch {
	case action.Put != nil:
		action.Put.ExpressionAttributeValues = change(action.Put.ExpressionAttributeValues)
	case action.Update != nil:
		action.Update.ExpressionAttributeValues = change(action.Update.ExpressionAttributeValues)
	case action.ConditionCheck != nil:
		action.ConditionCheck.ExpressionAttributeValues = change(action.ConditionCheck.ExpressionAttributeValues)
	}
	return action
}

// withOtherCondition turns one kind of operator of the condition into another.
func (g *generator) withOtherCondition(action types.TransactWriteItem) types.TransactWriteItem {
	turn := pick(g, [][2]string{
		{" = ", " <> "}, {" >= ", " > "}, {" >= ", " < "}, {" <= ", " < "}, {" > ", " >= "}, {" AND ", " OR "}, {" OR ", " AND "},
		{"attribute_not_exists", "attribute_exists"}, {"attribute_exists", "attribute_not_exists"},
	})
	change := func(condition *string) *string {
		if condition == nil {
			return nil
		}
		return aws.String(strings.ReplaceAll(*condition, turn[0], turn[1]))
	}
	switch {
	case action.Put != nil:
		action.Put.ConditionExpression = change(action.Put.ConditionExpression)
	case action.Update != nil:
		action.Update.ConditionExpression = change(action.Update.ConditionExpression)
	case action.ConditionCheck != nil:
		action.ConditionCheck.ConditionExpression = change(action.ConditionCheck.ConditionExpression)
	}
	return action
}

// forTable is a copy of a recorded request that can be changed, for this table.
func forTable(input any, tableName string) any {
	switch in := input.(type) {
	case *dynamodb.TransactWriteItemsInput:
		copied := &dynamodb.TransactWriteItemsInput{}
		for _, action := range in.TransactItems {
			if action.Put != nil {
				put := *action.Put
				put.TableName = &tableName
				action.Put = &put
			}
			if action.Update != nil {
				update := *action.Update
				update.TableName = &tableName
				action.Update = &update
			}
			if action.ConditionCheck != nil {
				check := *action.ConditionCheck
				check.TableName = &tableName
				action.ConditionCheck = &check
			}
			copied.TransactItems = append(copied.TransactItems, action)
		}
		return copied
	case *dynamodb.UpdateItemInput:
		copied := *in
		copied.TableName = &tableName
		return &copied
	case *dynamodb.GetItemInput:
		copied := *in
		copied.TableName = &tableName
		return &copied
	case *dynamodb.QueryInput:
		copied := *in
		copied.TableName = &tableName
		return &copied
	case *dynamodb.TransactGetItemsInput:
		copied := &dynamodb.TransactGetItemsInput{}
		for _, action := range in.TransactItems {
			get := *action.Get
			get.TableName = &tableName
			copied.TransactItems = append(copied.TransactItems, types.TransactGetItem{Get: &get})
		}
		return copied
	case *dynamodb.BatchGetItemInput:
		copied := &dynamodb.BatchGetItemInput{RequestItems: make(map[string]types.KeysAndAttributes)}
		for _, keys := range in.RequestItems {
			copied.RequestItems[tableName] = keys
		}
		return copied
	}
	panic(fmt.Sprintf("the store has made a %T", input))
}
