package table

import (
	"slices"
	"strconv"
	"strings"
)

// inChoicesMax is DynamoDB's limit of an IN.
const inChoicesMax = 100

// references are the #names and :values that an expression uses, each once, in the order
// of their first use.
type references struct {
	names, values []string
}

func (r *references) add(t token) {
	list := &r.names
	if t.kind == tokenValue {
		list = &r.values
	}
	if !slices.Contains(*list, t.text) {
		*list = append(*list, t.text)
	}
}

// parser reads one expression by recursive descent. The first fault stays, and every
// later step does nothing that matters.
type parser struct {
	tokens []token
	at     int
	used   references
	fault  *fault
	// group is the last part that was in parentheses, as positions of its tokens.
	group struct{ open, close int }
}

func newParser(text string) *parser {
	all, f := tokens(text)
	if f != nil {
		return &parser{tokens: []token{{kind: tokenEnd}}, fault: f}
	}
	return &parser{tokens: all}
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != tokenEnd {
		p.at++
	}
	return t
}

// accept takes the next token if it is this symbol or keyword.
func (p *parser) accept(text string) bool {
	if p.fault != nil || !p.peek().is(text) {
		return false
	}
	p.at++
	return true
}

func (p *parser) expect(text string) {
	if !p.accept(text) {
		p.fail(syntaxFault(p.peek().text))
	}
}

func (p *parser) fail(f *fault) {
	if p.fault == nil {
		p.fault = f
	}
}

// parsedCondition is a condition or a key condition, ready to be evaluated.
type parsedCondition struct {
	root  condition
	used  references
	fault *fault
}

func parseCondition(text string) *parsedCondition {
	p := newParser(text)
	root := p.disjunction()
	if p.peek().kind != tokenEnd {
		p.fail(syntaxFault(p.peek().text))
	}
	return &parsedCondition{root, p.used, p.fault}
}

func (p *parser) disjunction() condition {
	left := p.conjunction()
	for p.accept("OR") {
		left = &or{left, p.conjunction()}
	}
	return left
}

func (p *parser) conjunction() condition {
	left := p.negation()
	for p.accept("AND") {
		left = &and{left, p.negation()}
	}
	return left
}

func (p *parser) negation() condition {
	switch {
	case p.fault != nil:
		return nil // nothing is read after a fault, so going on would never end
	case p.accept("NOT"):
		return &not{p.negation()}
	}
	if p.peek().is("(") {
		return p.parenthesized()
	}
	if function := p.function(); function != "" {
		return p.call(function)
	}
	return p.comparison()
}

// parenthesized refuses ((x)), as DynamoDB does.
func (p *parser) parenthesized() condition {
	open := p.at
	p.expect("(")
	inner := p.disjunction()
	if p.group.open == open+1 && p.group.close == p.at-1 {
		p.fail(requestFaultf("Invalid expression: The expression has redundant parentheses;"))
	}
	p.expect(")")
	p.group.open, p.group.close = open, p.at-1
	return inner
}

// function is the name of the function that is called next, "" for none. Size does not
// count: it is an operand.
func (p *parser) function() string {
	t := p.peek()
	if t.kind != tokenWord || p.tokens[p.at+1].text != "(" || t.is("size") {
		return ""
	}
	return t.text
}

func (p *parser) call(function string) condition {
	p.at++
	p.expect("(")
	var c condition
	switch function {
	case "attribute_exists", "attribute_not_exists":
		c = &exists{p.path(), function == "attribute_not_exists"}
	case "begins_with":
		first := p.operand()
		p.expect(",")
		c = &beginsWith{first, p.operand()}
	case "contains", "attribute_type":
		p.fail(unsupportedFault("the function " + function))
	default:
		p.fail(requestFaultf("Invalid expression: Invalid function name; function: %s", function))
	}
	p.expect(")")
	return c
}

func (p *parser) comparison() condition {
	left := p.operand()
	switch {
	case p.accept("BETWEEN"):
		low := p.operand()
		p.expect("AND")
		return &between{left, low, p.operand()}
	case p.accept("IN"):
		p.expect("(")
		choices := []operand{p.operand()}
		for p.accept(",") {
			choices = append(choices, p.operand())
		}
		if len(choices) > inChoicesMax {
			p.fail(requestFaultf("Invalid expression: The IN operator is provided with too many operands"))
		}
		p.expect(")")
		return &in{left, choices}
	}
	operator := p.next()
	if !slices.Contains([]string{"=", "<>", "<", "<=", ">", ">="}, operator.text) {
		p.fail(syntaxFault(operator.text))
	}
	return &comparison{operator.text, left, p.operand()}
}

func (p *parser) operand() operand {
	t := p.peek()
	switch {
	case t.kind == tokenValue:
		p.at++
		p.used.add(t)
		return operand{value: t.text}
	case t.is("size") && p.tokens[p.at+1].text == "(":
		p.at++
		p.expect("(")
		of := p.path()
		p.expect(")")
		return operand{path: of, size: true}
	}
	return operand{path: p.path()}
}

// keywords may not stand where an attribute is meant. DynamoDB reserves some 570 words
// more; expressions made by the SDK's builder never have a bare word.
var keywords = []string{"AND", "OR", "NOT", "BETWEEN", "IN", "SET", "REMOVE", "ADD", "DELETE"}

func (p *parser) path() path {
	steps := path{p.name()}
	for p.fault == nil {
		switch {
		case p.accept("."):
			steps = append(steps, p.name())
		case p.accept("["):
			t := p.next()
			index, err := strconv.Atoi(t.text)
			if t.kind != tokenIndex || err != nil {
				p.fail(syntaxFault(t.text))
			}
			p.expect("]")
			steps = append(steps, step{index: index, indexed: true})
		default:
			return steps
		}
	}
	return steps
}

func (p *parser) name() step {
	t := p.next()
	switch {
	case t.kind == tokenName:
		p.used.add(t)
	case t.kind != tokenWord, slices.Contains(keywords, strings.ToUpper(t.text)):
		p.fail(syntaxFault(t.text))
	}
	return step{name: t.text}
}
