package table

import (
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// scope is what the names in an expression stand for.
type scope struct {
	item   Item
	names  map[string]string
	values Item
}

// step is one step of a document path: into a map by name, or into a list by index.
type step struct {
	name    string // an attribute, or #name
	index   int
	indexed bool
}

type path []step

func (s *scope) name(raw string) string {
	if raw[0] == '#' {
		return s.names[raw]
	}
	return raw
}

// resolve follows the path in the item. Nil means that there is nothing there.
func (p path) resolve(s *scope) types.AttributeValue {
	value := s.item[s.name(p[0].name)]
	for _, next := range p[1:] {
		switch container := value.(type) {
		case *types.AttributeValueMemberM:
			if next.indexed {
				return nil
			}
			value = container.Value[s.name(next.name)]
		case *types.AttributeValueMemberL:
			if !next.indexed || next.index >= len(container.Value) {
				return nil
			}
			value = container.Value[next.index]
		default:
			return nil
		}
	}
	return value
}

// operand is a path, the size of what a path leads to, or a value of the request.
type operand struct {
	path  path
	size  bool
	value string // :value
}

func (o *operand) resolve(s *scope) types.AttributeValue {
	if o.value != "" {
		return s.values[o.value]
	}
	found := o.path.resolve(s)
	if o.size {
		return sizeOf(found)
	}
	return found
}

// literal is the operand's value if the request gives it, nil otherwise. What is wrong
// with a literal is wrong with the request, whatever the item is.
func (o *operand) literal(values Item) types.AttributeValue { return values[o.value] }

// sizeOf is what the function size gives; nil for what has no size.
func sizeOf(v types.AttributeValue) types.AttributeValue {
	var n int
	switch value := v.(type) {
	case *types.AttributeValueMemberS:
		n = len(utf16.Encode([]rune(value.Value)))
	case *types.AttributeValueMemberB:
		n = len(value.Value)
	case *types.AttributeValueMemberSS:
		n = len(value.Value)
	case *types.AttributeValueMemberNS:
		n = len(value.Value)
	case *types.AttributeValueMemberBS:
		n = len(value.Value)
	case *types.AttributeValueMemberL:
		n = len(value.Value)
	case *types.AttributeValueMemberM:
		n = len(value.Value)
	default:
		return nil
	}
	return &types.AttributeValueMemberN{Value: strconv.Itoa(n)}
}

// condition is a part of a condition expression. check looks only at the values of the
// request, holds at an item; a request that passed check can always be evaluated.
type condition interface {
	check(values Item) *fault
	holds(s *scope) bool
}

type and struct{ left, right condition }

func (c *and) holds(s *scope) bool { return c.left.holds(s) && c.right.holds(s) }
func (c *and) check(values Item) *fault {
	if f := c.left.check(values); f != nil {
		return f
	}
	return c.right.check(values)
}

type or struct{ left, right condition }

func (c *or) holds(s *scope) bool { return c.left.holds(s) || c.right.holds(s) }
func (c *or) check(values Item) *fault {
	if f := c.left.check(values); f != nil {
		return f
	}
	return c.right.check(values)
}

type not struct{ inner condition }

func (c *not) holds(s *scope) bool      { return !c.inner.holds(s) }
func (c *not) check(values Item) *fault { return c.inner.check(values) }

// exists is attribute_exists, or attribute_not_exists when absent is set.
type exists struct {
	path   path
	absent bool
}

func (c *exists) holds(s *scope) bool { return (c.path.resolve(s) == nil) == c.absent }
func (c *exists) check(Item) *fault   { return nil }

// comparison is left operator right. With an attribute that is not there every
// comparison is false, but <> is true: what is not there is not equal to anything.
type comparison struct {
	operator    string
	left, right operand
}

func (c *comparison) holds(s *scope) bool {
	left, right := c.left.resolve(s), c.right.resolve(s)
	if left == nil || right == nil {
		return c.operator == "<>"
	}
	switch c.operator {
	case "=":
		return equalValues(left, right)
	case "<>":
		return !equalValues(left, right)
	}
	order, comparable := compareValues(left, right)
	if !comparable {
		return false
	}
	switch c.operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	default: // ">=", the last that the parser lets through
		return order >= 0
	}
}

func (c *comparison) check(values Item) *fault {
	if c.operator == "=" || c.operator == "<>" {
		return nil
	}
	return checkOrdered(c.operator, values, &c.left, &c.right)
}

// checkOrdered refuses a literal that has no order where one is needed.
func checkOrdered(operator string, values Item, operands ...*operand) *fault {
	for _, o := range operands {
		if literal := o.literal(values); literal != nil && !ordered(literal) {
			return incorrectOperand(operator, literal)
		}
	}
	return nil
}

func incorrectOperand(operator string, literal types.AttributeValue) *fault {
	return requestFaultf("Invalid expression: Incorrect operand type for operator or function; operator or function: %s, operand type: %s", operator, typeName(literal))
}

type between struct{ operand, low, high operand }

func (c *between) holds(s *scope) bool {
	value, low, high := c.operand.resolve(s), c.low.resolve(s), c.high.resolve(s)
	if value == nil || low == nil || high == nil {
		return false
	}
	fromLow, lowComparable := compareValues(value, low)
	fromHigh, highComparable := compareValues(value, high)
	return lowComparable && highComparable && fromLow >= 0 && fromHigh <= 0
}

func (c *between) check(values Item) *fault {
	if f := checkOrdered("BETWEEN", values, &c.operand, &c.low, &c.high); f != nil {
		return f
	}
	low, high := c.low.literal(values), c.high.literal(values)
	if low == nil || high == nil {
		return nil
	}
	order, comparable := compareValues(low, high)
	switch {
	case !comparable:
		return requestFaultf("Invalid expression: The BETWEEN operator requires same data type for lower and upper bounds")
	case order > 0:
		return requestFaultf("Invalid expression: The BETWEEN operator requires upper bound to be greater than or equal to lower bound")
	}
	return nil
}

// in is operand IN (choices).
type in struct {
	operand operand
	choices []operand
}

func (c *in) holds(s *scope) bool {
	value := c.operand.resolve(s)
	if value == nil {
		return false
	}
	for i := range c.choices {
		if choice := c.choices[i].resolve(s); choice != nil && equalValues(value, choice) {
			return true
		}
	}
	return false
}

func (c *in) check(Item) *fault { return nil }

type beginsWith struct{ operand, prefix operand }

func (c *beginsWith) holds(s *scope) bool {
	switch prefix := c.prefix.resolve(s).(type) {
	case *types.AttributeValueMemberS:
		text, same := c.operand.resolve(s).(*types.AttributeValueMemberS)
		return same && strings.HasPrefix(text.Value, prefix.Value)
	case *types.AttributeValueMemberB:
		binary, same := c.operand.resolve(s).(*types.AttributeValueMemberB)
		return same && strings.HasPrefix(string(binary.Value), string(prefix.Value))
	}
	return false
}

func (c *beginsWith) check(values Item) *fault {
	switch literal := c.prefix.literal(values).(type) {
	case nil, *types.AttributeValueMemberS, *types.AttributeValueMemberB:
		return nil
	default:
		return incorrectOperand("begins_with", literal)
	}
}
