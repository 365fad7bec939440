package table

import "strings"

// expressionBytesMax is DynamoDB's limit of one expression. It also bounds how deep an
// expression can nest.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const expressionBytesMax = 4096

// tokenKind says what a token is.
type tokenKind int

const (
	tokenEnd    tokenKind = iota
	tokenWord             // an attribute, a function, or a keyword
	tokenName             // #name
	tokenValue            // :value
	tokenIndex            // a whole number
	tokenSymbol           // an operator or punctuation
)

type token struct {
	kind tokenKind
	text string
}

// is reports whether the token is this symbol, or this keyword in any case.
func (t token) is(text string) bool {
	return t.kind == tokenSymbol && t.text == text || t.kind == tokenWord && strings.EqualFold(t.text, text)
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// tokens splits an expression; a last token of kind tokenEnd ends it.
func tokens(text string) ([]token, *fault) {
	if text == "" {
		return nil, requestFaultf("Invalid expression: The expression can not be empty;")
	}
	if len(text) > expressionBytesMax {
		return nil, requestFaultf("Invalid expression: Expression size has exceeded the maximum allowed size;")
	}
	var all []token
	for at := 0; at < len(text); {
		c := text[at]
		kind, end := tokenSymbol, at+1
		switch {
		case strings.IndexByte(" \t\r\n\f", c) >= 0:
			at++
			continue
		case letter(c):
			kind, end = tokenWord, wordEnd(text, end)
		case c == '#', c == ':':
			kind = map[byte]tokenKind{'#': tokenName, ':': tokenValue}[c]
			if end = wordEnd(text, end); end == at+1 {
				return nil, syntaxFault(text[at:])
			}
		case digit(c):
			kind = tokenIndex
			for end < len(text) && digit(text[end]) {
				end++
			}
		case strings.HasPrefix(text[at:], "<>"), strings.HasPrefix(text[at:], "<="), strings.HasPrefix(text[at:], ">="):
			end = at + 2
		case strings.IndexByte("=<>+-()[].,", c) < 0:
			return nil, syntaxFault(text[at:])
		}
		all = append(all, token{kind, text[at:end]})
		at = end
	}
	return append(all, token{kind: tokenEnd}), nil
}

func wordEnd(text string, at int) int {
	for at < len(text) && (letter(text[at]) || digit(text[at])) {
		at++
	}
	return at
}

func syntaxFault(near string) *fault {
	if near == "" {
		near = "<EOF>"
	}
	return requestFaultf("Invalid expression: Syntax error; near: %q", near)
}
