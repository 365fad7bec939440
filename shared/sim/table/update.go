package table

import (
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// parsedUpdate is an update expression, ready to be applied.
type parsedUpdate struct {
	sets    []assignment
	removes []path
	adds    []addition
	used    references
	fault   *fault
}

// assignment is SET target = value.
type assignment struct {
	target path
	value  sum
}

// sum is one term, or two with + or - between them.
type sum struct {
	left, right term
	operator    string // "", "+" or "-"
}

// term is an operand, or if_not_exists(operand's path, otherwise).
type term struct {
	operand   operand
	otherwise *term
}

// addition is ADD target :value.
type addition struct {
	target path
	value  operand
}

func parseUpdate(text string) *parsedUpdate {
	p := newParser(text)
	u := &parsedUpdate{}
	seen := make(map[string]bool)
	for p.fault == nil && p.peek().kind != tokenEnd {
		section := p.peek()
		switch {
		case p.accept("SET"):
			list(p, &u.sets, p.assignment)
		case p.accept("REMOVE"):
			list(p, &u.removes, p.topLevelPath)
		case p.accept("ADD"):
			list(p, &u.adds, p.addition)
		case p.accept("DELETE"):
			p.fail(unsupportedFault("DELETE in an update expression"))
		default:
			p.fail(syntaxFault(section.text))
		}
		// A section's name is compared in lower case.
		name := strings.ToLower(section.text)
		if seen[name] {
			p.fail(requestFaultf("Invalid UpdateExpression: The %q section can only be used once in an update expression;", section.text))
		}
		seen[name] = true
	}
	u.used, u.fault = p.used, p.fault
	return u
}

func list[T any](p *parser, into *[]T, element func() T) {
	*into = append(*into, element())
	for p.accept(",") {
		*into = append(*into, element())
	}
}

// topLevelPath is the target of a change. Writing into documents is not supported.
func (p *parser) topLevelPath() path {
	target := p.path()
	if len(target) > 1 {
		p.fail(unsupportedFault("an update of a nested path"))
	}
	return target
}

func (p *parser) assignment() assignment {
	target := p.topLevelPath()
	p.expect("=")
	value := sum{left: p.term()}
	for _, operator := range []string{"+", "-"} {
		if value.operator == "" && p.accept(operator) {
			value.operator, value.right = operator, p.term()
		}
	}
	return assignment{target, value}
}

func (p *parser) term() term {
	function := p.function()
	switch {
	case function == "if_not_exists":
		p.at++
		p.expect("(")
		of := p.path()
		p.expect(",")
		otherwise := p.term()
		p.expect(")")
		return term{operand{path: of}, &otherwise}
	case function != "" || p.peek().is("("):
		p.fail(unsupportedFault("the function " + function + " or parentheses in an update expression"))
	case p.peek().is("size") && p.tokens[p.at+1].text == "(":
		p.fail(requestFaultf("Invalid UpdateExpression: The function is not allowed in an update expression; function: size"))
	}
	return term{operand: p.operand()}
}

func (p *parser) addition() addition {
	target := p.topLevelPath()
	if p.peek().kind != tokenValue {
		p.fail(syntaxFault(p.peek().text))
	}
	return addition{target, p.operand()}
}

// targets are the attributes that the update changes.
func (u *parsedUpdate) targets(names map[string]string) []string {
	s := scope{names: names}
	var all []string
	for i := range u.sets {
		all = append(all, s.name(u.sets[i].target[0].name))
	}
	for i := range u.adds {
		all = append(all, s.name(u.adds[i].target[0].name))
	}
	for i := range u.removes {
		all = append(all, s.name(u.removes[i][0].name))
	}
	return all
}

// check refuses what is wrong with the request whatever the item is.
func (u *parsedUpdate) check(names map[string]string, values Item) *fault {
	targets := u.targets(names)
	for i, target := range targets {
		for _, other := range targets[:i] {
			if target == other {
				return requestFaultf("Invalid UpdateExpression: Two document paths overlap with each other; path: [%s]", target)
			}
		}
	}
	for i := range u.sets {
		value := &u.sets[i].value
		if value.operator == "" {
			continue
		}
		for _, t := range []*term{&value.left, &value.right} {
			if literal := t.operand.literal(values); literal != nil && typeName(literal) != keyTypeNumber {
				return incorrectOperand(value.operator, literal)
			}
		}
	}
	for i := range u.adds {
		switch literal := u.adds[i].value.literal(values).(type) {
		case *types.AttributeValueMemberN:
		case *types.AttributeValueMemberSS, *types.AttributeValueMemberNS, *types.AttributeValueMemberBS:
			return unsupportedFault("ADD of a set")
		default:
			return incorrectOperand("ADD", literal)
		}
	}
	return nil
}

// apply gives the item after the update. All values are those of the item before it.
func (u *parsedUpdate) apply(s *scope) (Item, *fault) {
	after := maps.Clone(s.item)
	for i := range u.sets {
		value, f := u.sets[i].value.evaluate(s)
		if f != nil {
			return nil, f
		}
		after[s.name(u.sets[i].target[0].name)] = value
	}
	for i := range u.adds {
		value, f := u.adds[i].evaluate(s)
		if f != nil {
			return nil, f
		}
		after[s.name(u.adds[i].target[0].name)] = value
	}
	for _, target := range u.removes {
		delete(after, s.name(target[0].name))
	}
	return after, nil
}

func (v *sum) evaluate(s *scope) (types.AttributeValue, *fault) {
	left, f := v.left.evaluate(s)
	if f != nil || v.operator == "" {
		return left, f
	}
	right, f := v.right.evaluate(s)
	if f != nil {
		return nil, f
	}
	return addValues(left, right, v.operator == "-")
}

func (t *term) evaluate(s *scope) (types.AttributeValue, *fault) {
	value := t.operand.resolve(s)
	switch {
	case value != nil:
		return value, nil
	case t.otherwise != nil:
		return t.otherwise.evaluate(s)
	}
	return nil, faultf("The provided expression refers to an attribute that does not exist in the item")
}

func (a *addition) evaluate(s *scope) (types.AttributeValue, *fault) {
	stored := a.target.resolve(s)
	if stored == nil {
		return a.value.resolve(s), nil
	}
	return addValues(stored, a.value.resolve(s), false)
}

func addValues(a, b types.AttributeValue, subtract bool) (types.AttributeValue, *fault) {
	left, leftIsNumber := a.(*types.AttributeValueMemberN)
	right, rightIsNumber := b.(*types.AttributeValueMemberN)
	if !leftIsNumber || !rightIsNumber {
		return nil, faultf("An operand in the update expression has an incorrect data type")
	}
	result, f := addNumbers(left.Value, right.Value, subtract)
	if f != nil {
		// The request is right in itself; it is this item that it does not fit.
		return nil, faultf("%s", f.message)
	}
	return &types.AttributeValueMemberN{Value: result}, nil
}
