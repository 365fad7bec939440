package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/shared/ledger"
)

// attributePair is one attribute that a slot must have.
type attributePair struct{ name, value string }

// attributePairs are attributes that a slot must have all of.
type attributePairs []attributePair

// attributePairsOf reads pairs of the form name:value, joined by commas. Nil is no pair.
//
// It is one parameter and not one that is repeated, because a gateway joins repeated
// values with a comma (case H4). Joined, they mean the same here: each pair is asked for,
// and a name that comes twice is refused, so that no half of a question is ever answered.
func attributePairsOf(text *string) (attributePairs, error) {
	if text == nil {
		return nil, nil
	}
	var pairs attributePairs
	for pair := range strings.SplitSeq(*text, ",") {
		name, value, _ := strings.Cut(pair, ":") // a second colon is an odd character of the value
		switch {
		case !askable(name) || !askable(value):
			return nil, invalid("query", "attributes", fmt.Sprintf("must be name:value pairs joined by commas, such as size:L,color:red; "+
				"a name or value has 1 to %d letters, digits, spaces and . _ / + -, and begins and ends with none of the spaces", ledger.AttributeCharactersMax))
		case slices.ContainsFunc(pairs, func(p attributePair) bool { return p.name == name }):
			return nil, invalid("query", "attributes", "an attribute is named more than once; name each once")
		case len(pairs) == ledger.AttributesMax:
			return nil, invalid("query", "attributes", fmt.Sprintf("at most %d attributes can be asked for", ledger.AttributesMax))
		}
		pairs = append(pairs, attributePair{name, value})
	}
	return pairs, nil
}

// askable reports whether an attribute's name or value can be asked for. Letters and
// digits may be of any script: options are words of the shop's language.
func askable(text string) bool {
	if text == "" || len(text) > ledger.AttributeCharactersMax || !utf8.ValidString(text) || strings.TrimSpace(text) != text {
		return false
	}
	odd := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune(" ._/+-", r)
	}
	return !strings.ContainsFunc(text, odd)
}

// of reports whether the slot has all of the attributes.
func (p attributePairs) of(slot ledger.Slot) bool {
	for _, pair := range p {
		if value, has := slot.Attributes[pair.name]; !has || value != pair.value {
			return false
		}
	}
	return true
}
