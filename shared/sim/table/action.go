package table

import (
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// actionKind says what an action does to its item.
type actionKind int

const (
	actionPut actionKind = iota
	actionUpdate
	actionDelete
	actionConditionCheck
)

// action is one write of one item, alone or in a transaction.
type action struct {
	kind       actionKind
	item       Item // the new item of a put, the key of everything else
	condition  *string
	update     *string
	names      map[string]string
	values     Item
	returnsOld bool

	parsedCondition *parsedCondition
	parsedUpdate    *parsedUpdate
}

// change is what an evaluated action will do.
type change struct {
	key     Key
	before  entry // as it was when the action was evaluated
	present bool  // whether there was an item
	after   Item  // nil for no item
	writes  bool  // false for a condition check and for a change of nothing
}

// compile parses the expressions and refuses what is wrong with the action whatever the
// item is. All of its faults are of the whole request.
func (t *Table) compile(a *action) *fault {
	var used []*references
	if a.update != nil {
		a.parsedUpdate = t.parsed.update(*a.update)
		if a.parsedUpdate.fault != nil {
			return a.parsedUpdate.fault
		}
		used = append(used, &a.parsedUpdate.used)
	}
	if a.condition != nil {
		a.parsedCondition = t.parsed.condition(*a.condition)
		if a.parsedCondition.fault != nil {
			return a.parsedCondition.fault
		}
		used = append(used, &a.parsedCondition.used)
	}
	if f := checkReferences(a.names, a.values, used...); f != nil {
		return f
	}
	if a.parsedUpdate != nil {
		if f := a.parsedUpdate.check(a.names, a.values); f != nil {
			return f
		}
	}
	if a.parsedCondition != nil {
		if f := a.parsedCondition.root.check(a.values); f != nil {
			return f
		}
	}
	return nil
}

// checkReferences refuses names and values that an expression uses and the request does
// not give, and those that it gives and no expression uses. Without any expression the
// latter is left alone, as DynamoDB does in a transaction.
func checkReferences(names map[string]string, values Item, used ...*references) *fault {
	if len(used) == 0 {
		return nil
	}
	namesUsed, valuesUsed := 0, 0
	for i, r := range used {
		for _, name := range r.names {
			if _, given := names[name]; !given {
				return requestFaultf("Invalid expression: An expression attribute name used in the document path is not defined; attribute name: %s", name)
			}
			if i == 0 || !slices.Contains(used[0].names, name) {
				namesUsed++
			}
		}
		for _, value := range r.values {
			if _, given := values[value]; !given {
				return requestFaultf("Invalid expression: An expression attribute value used in expression is not defined; attribute value: %s", value)
			}
			if i == 0 || !slices.Contains(used[0].values, value) {
				valuesUsed++
			}
		}
	}
	switch {
	case len(names) > namesUsed:
		return unusedFault("ExpressionAttributeNames", slices.Collect(maps.Keys(names)))
	case len(values) > valuesUsed:
		return unusedFault("ExpressionAttributeValues", slices.Collect(maps.Keys(values)))
	case names != nil && len(names) == 0:
		return requestFaultf("ExpressionAttributeNames must not be empty")
	case values != nil && len(values) == 0:
		return requestFaultf("ExpressionAttributeValues must not be empty")
	}
	for _, value := range values {
		if _, _, f := normalizedValue(value, 1); f != nil {
			return f
		}
	}
	return nil
}

func unusedFault(what string, given []string) *fault {
	slices.Sort(given)
	return requestFaultf("Value provided in %s unused in expressions; given: %v", what, given)
}

// keyOfAction reads the key of the action's item.
func (t *Table) keyOfAction(a *action) (Key, *fault) {
	if a.kind == actionPut {
		return t.keyOf(a.item)
	}
	return t.exactKey(a.item)
}

// evaluate works out what the action does to the table as it is. refused is true when its
// condition is false; the change then still has the item as it was.
func (t *Table) evaluate(a *action) (c change, refused bool, f *fault) {
	if c.key, f = t.keyOfAction(a); f != nil {
		return c, false, f
	}
	if a.kind == actionPut {
		if c.after, f = normalized(a.item); f != nil {
			return c, false, f
		}
		if f = t.checkIndexKeys(c.after); f != nil {
			return c, false, f
		}
	}
	c.before, c.present = t.stored(c.key)
	s := scope{item: c.before.item, names: a.names, values: a.values}
	if a.parsedCondition != nil && !a.parsedCondition.root.holds(&s) {
		return c, true, nil
	}
	if a.kind == actionUpdate {
		if c.after, f = t.updated(a, &s); f != nil {
			return c, false, f
		}
	}
	switch {
	case a.kind == actionConditionCheck:
	case c.present && c.after != nil:
		c.writes = !equalItems(c.before.item, c.after)
	default:
		c.writes = c.present || c.after != nil
	}
	return c, false, nil
}

// updated is the item after the action's update. An update of an item that is not there
// begins with its key.
func (t *Table) updated(a *action, s *scope) (Item, *fault) {
	if s.item == nil {
		s.item = a.item
	}
	if a.parsedUpdate == nil {
		return normalized(s.item)
	}
	for _, target := range a.parsedUpdate.targets(a.names) {
		if target == t.schema.PartitionKey.Attribute || target == t.schema.SortKey.Attribute {
			return nil, faultf("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", target)
		}
	}
	after, f := a.parsedUpdate.apply(s)
	if f != nil {
		return nil, f
	}
	if after, f = normalized(after); f != nil {
		return nil, f
	}
	return after, t.checkIndexKeys(after)
}

func asksForOld(r types.ReturnValuesOnConditionCheckFailure) bool {
	return r == types.ReturnValuesOnConditionCheckFailureAllOld
}
