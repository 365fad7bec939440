package table

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Item is an item, a key, or an index entry. It is never changed once the table has it,
// by nobody: readers are given the stored map itself.
type Item = map[string]types.AttributeValue

// The limits of an item.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const (
	itemBytesMax   = 400 << 10
	nestingMax     = 32
	containerBytes = 3 // what a list or map costs besides its elements
	elementBytes   = 1 // what each element of one costs
)

func typeName(v types.AttributeValue) string {
	switch v.(type) {
	case *types.AttributeValueMemberS:
		return "S"
	case *types.AttributeValueMemberN:
		return "N"
	case *types.AttributeValueMemberB:
		return "B"
	case *types.AttributeValueMemberBOOL:
		return "BOOL"
	case *types.AttributeValueMemberNULL:
		return "NULL"
	case *types.AttributeValueMemberSS:
		return "SS"
	case *types.AttributeValueMemberNS:
		return "NS"
	case *types.AttributeValueMemberBS:
		return "BS"
	case *types.AttributeValueMemberL:
		return "L"
	case *types.AttributeValueMemberM:
		return "M"
	}
	return ""
}

// ordered reports whether values of v's type have an order.
func ordered(v types.AttributeValue) bool {
	switch v.(type) {
	case *types.AttributeValueMemberS, *types.AttributeValueMemberN, *types.AttributeValueMemberB:
		return true
	}
	return false
}

// compareValues orders two values of one ordered type; comparable is false for all else.
func compareValues(a, b types.AttributeValue) (order int, comparable bool) {
	switch left := a.(type) {
	case *types.AttributeValueMemberS:
		if right, same := b.(*types.AttributeValueMemberS); same {
			return strings.Compare(left.Value, right.Value), true
		}
	case *types.AttributeValueMemberN:
		if right, same := b.(*types.AttributeValueMemberN); same {
			return compareNumbers(left.Value, right.Value), true
		}
	case *types.AttributeValueMemberB:
		if right, same := b.(*types.AttributeValueMemberB); same {
			return bytes.Compare(left.Value, right.Value), true
		}
	}
	return 0, false
}

// equalValues compares by type and value: numbers by their value, sets without order,
// documents deeply.
func equalValues(a, b types.AttributeValue) bool {
	if order, comparable := compareValues(a, b); comparable {
		return order == 0
	}
	switch left := a.(type) {
	case *types.AttributeValueMemberBOOL:
		right, same := b.(*types.AttributeValueMemberBOOL)
		return same && left.Value == right.Value
	case *types.AttributeValueMemberNULL:
		_, same := b.(*types.AttributeValueMemberNULL)
		return same
	case *types.AttributeValueMemberL:
		right, same := b.(*types.AttributeValueMemberL)
		return same && slices.EqualFunc(left.Value, right.Value, equalValues)
	case *types.AttributeValueMemberM:
		right, same := b.(*types.AttributeValueMemberM)
		return same && equalItems(left.Value, right.Value)
	case *types.AttributeValueMemberSS:
		right, same := b.(*types.AttributeValueMemberSS)
		return same && equalSets(left.Value, right.Value, func(a, b string) bool { return a == b })
	case *types.AttributeValueMemberNS:
		right, same := b.(*types.AttributeValueMemberNS)
		return same && equalSets(left.Value, right.Value, func(a, b string) bool { return compareNumbers(a, b) == 0 })
	case *types.AttributeValueMemberBS:
		right, same := b.(*types.AttributeValueMemberBS)
		return same && equalSets(left.Value, right.Value, bytes.Equal)
	}
	return false
}

func equalItems(a, b Item) bool { return maps.EqualFunc(a, b, equalValues) }

// equalSets compares sets, whose members are all different.
func equalSets[T any](a, b []T, equal func(T, T) bool) bool {
	if len(a) != len(b) {
		return false
	}
	for _, member := range a {
		if !slices.ContainsFunc(b, func(other T) bool { return equal(member, other) }) {
			return false
		}
	}
	return true
}

// normalized is item in the form in which it is stored: all numbers in their one form.
// It is the same map when nothing needs to change, and a new one otherwise.
func normalized(item Item) (Item, *fault) {
	stored, copied, size := item, false, 0
	for name, value := range item {
		if name == "" {
			return nil, requestFaultf("One or more parameter values were invalid: An attribute name is empty")
		}
		normal, valueSize, f := normalizedValue(value, 1)
		if f != nil {
			return nil, f
		}
		size += len(name) + valueSize
		if normal != value {
			if !copied {
				stored, copied = maps.Clone(item), true
			}
			stored[name] = normal
		}
	}
	if size > itemBytesMax {
		return nil, faultf("Item size has exceeded the maximum allowed size")
	}
	return stored, nil
}

// normalizedValue is v as it is stored, v itself when nothing changes, and its size.
func normalizedValue(v types.AttributeValue, depth int) (types.AttributeValue, int, *fault) {
	if depth > nestingMax {
		return nil, 0, requestFaultf("Nesting Levels have exceeded supported limits")
	}
	switch value := v.(type) {
	case *types.AttributeValueMemberS:
		return v, len(value.Value), nil
	case *types.AttributeValueMemberN:
		canonical, f := canonicalNumber(value.Value)
		if f != nil || canonical == value.Value {
			return v, numberBytes(value.Value), f
		}
		return &types.AttributeValueMemberN{Value: canonical}, numberBytes(canonical), nil
	case *types.AttributeValueMemberB:
		return v, len(value.Value), nil
	case *types.AttributeValueMemberBOOL:
		return v, 1, nil
	case *types.AttributeValueMemberNULL:
		if !value.Value {
			return nil, 0, requestFaultf("One or more parameter values were invalid: Null attribute value types must have the value of true")
		}
		return v, 1, nil
	case *types.AttributeValueMemberL:
		return normalizedList(value, depth)
	case *types.AttributeValueMemberM:
		return normalizedMap(value, depth)
	case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
		return normalizedSet(v)
	}
	return nil, 0, requestFaultf("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
}

// numberBytes is about what a number costs: two digits to the byte, and one more.
func numberBytes(text string) int { return (len(text)+1)/2 + 1 }

func normalizedList(list *types.AttributeValueMemberL, depth int) (types.AttributeValue, int, *fault) {
	elements, copied, size := list.Value, false, containerBytes
	for i, element := range list.Value {
		normal, elementSize, f := normalizedValue(element, depth+1)
		if f != nil {
			return nil, 0, f
		}
		size += elementBytes + elementSize
		if normal != element {
			if !copied {
				elements, copied = slices.Clone(elements), true
			}
			elements[i] = normal
		}
	}
	if !copied {
		return list, size, nil
	}
	return &types.AttributeValueMemberL{Value: elements}, size, nil
}

func normalizedMap(document *types.AttributeValueMemberM, depth int) (types.AttributeValue, int, *fault) {
	members, copied, size := document.Value, false, containerBytes
	for name, member := range document.Value {
		normal, memberSize, f := normalizedValue(member, depth+1)
		if f != nil {
			return nil, 0, f
		}
		size += elementBytes + len(name) + memberSize
		if normal != member {
			if !copied {
				members, copied = maps.Clone(members), true
			}
			members[name] = normal
		}
	}
	if !copied {
		return document, size, nil
	}
	return &types.AttributeValueMemberM{Value: members}, size, nil
}

// normalizedSet refuses a set that is empty or has a member twice.
func normalizedSet(v types.AttributeValue) (types.AttributeValue, int, *fault) {
	var members []string
	stored := v
	switch set := v.(type) {
	case *types.AttributeValueMemberSS:
		members = slices.Clone(set.Value)
	case *types.AttributeValueMemberNS:
		for _, number := range set.Value {
			canonical, f := canonicalNumber(number)
			if f != nil {
				return nil, 0, f
			}
			members = append(members, canonical)
		}
		stored = &types.AttributeValueMemberNS{Value: slices.Clone(members)}
	case *types.AttributeValueMemberBS:
		for _, binary := range set.Value {
			members = append(members, string(binary))
		}
	}
	if len(members) == 0 {
		return nil, 0, requestFaultf("One or more parameter values were invalid: An %s set may not be empty", typeName(v))
	}
	slices.Sort(members)
	size := containerBytes
	for i, member := range members {
		if i > 0 && member == members[i-1] {
			return nil, 0, requestFaultf("One or more parameter values were invalid: Input collection contains duplicates.")
		}
		size += elementBytes + len(member)
	}
	return stored, size, nil
}
