package httpapi

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// What a caller is told of a mistake. The validator's own texts are not used: they speak
// of Go types and regular expressions, and write 1000000000000 as 1e+12.
const (
	missingDetail       = "this is missing"
	unknownMemberDetail = "there is no such member"
	noBodyDetail        = "this request takes no body"
	otherFormDetail     = "this value is not of the described form"
	saleTimeDetail      = "must be an RFC 3339 time, or a local time such as 2026-12-01T10:00 with a sale_time_zone, or empty"
	zoneDetail          = "must be the IANA name of a time zone, such as Asia/Seoul, or empty"
)

// patternWords says each pattern of the document in words.
var patternWords = map[string]string{
	`^[A-Za-z0-9._:-]{1,128}$`: "must be 1 to 128 ASCII letters, digits, or any of . _ : -",
	`^[A-Za-z0-9_-]{1,64}$`:    "must be 1 to 64 ASCII letters, digits, or any of _ -",
	`^[!-+\--~]{1,255}$`:       "must be 1 to 255 printable ASCII characters without space or comma",
	`^[!-~]{1,128}$`:           "must be 1 to 128 printable ASCII characters without space",
	`^[!-~]+$`:                 "must be a next_cursor of an earlier answer, as it was given",
	`^[A-Z]{3}$`:               currencyDetail,
	`^[ -~]{1,256}$`:           "must be 1 to 256 printable ASCII characters",
	`^[A-Za-z0-9_+/-]{0,64}$`:  zoneDetail,
	`^([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?(Z|[+-][0-9]{2}:[0-9]{2})?)?$`: saleTimeDetail,
	`^[A-Za-z0-9._:{}-]{0,128}$`: "must be at most 128 ASCII letters, digits, or any of . _ : -, with or without the placeholder of the owner",
}

// formatWords says the formats of texts in words.
var formatWords = map[string]string{
	"date-time": "must be an RFC 3339 time, such as 2026-12-01T09:30:00.000Z",
	"date":      "must be a date, such as 2026-12-01",
}

// wanted says in one phrase all that the schema asks of a value, so that who corrects one
// mistake does not meet the next rule for the same value.
func wanted(s *openapi3.Schema) string {
	switch {
	case s == nil:
		return otherFormDetail
	case len(s.Enum) > 0:
		return "must be one of " + strings.Join(textsOf(s.Enum), ", ")
	case s.Type.Is(openapi3.TypeString):
		return wantedText(s)
	case s.Type.Is(openapi3.TypeInteger):
		return "must be a whole number" + between(" from ", " ", s.Min, s.Max, "")
	case s.Type.Is(openapi3.TypeBoolean):
		return "must be true or false"
	case s.Type.Is(openapi3.TypeArray):
		return "must be a list" + between(" of ", " of ", float(s.MinItems), floatOrNil(s.MaxItems), " items")
	case s.Type.Is(openapi3.TypeObject):
		return "must be an object" + between(" of ", " of ", float(s.MinProps), floatOrNil(s.MaxProps), " members")
	}
	return otherFormDetail
}

func wantedText(s *openapi3.Schema) string {
	if words, known := patternWords[s.Pattern]; known {
		return words
	}
	if words, known := formatWords[s.Format]; known {
		return words
	}
	if s.Pattern != "" {
		return otherFormDetail
	}
	return "must be text" + between(" of ", " of ", float(s.MinLength), floatOrNil(s.MaxLength), " characters")
}

// between says from what to what a number goes, without exponent, and nothing if it has
// no bound. The words before it depend on whether it has both.
func between(beforeBoth, before string, low, high *float64, after string) string {
	plain := func(x *float64) string { return strconv.FormatFloat(*x, 'f', -1, 64) }
	switch {
	case low != nil && high != nil:
		return beforeBoth + plain(low) + " to " + plain(high) + after
	case low != nil:
		if *low == 1 {
			after = strings.TrimSuffix(after, "s")
		}
		return before + "at least " + plain(low) + after
	case high != nil:
		return before + "at most " + plain(high) + after
	}
	return ""
}

// float is nil for a lowest count that excludes nothing.
func float(count uint64) *float64 {
	if count == 0 {
		return nil
	}
	return floatOrNil(&count)
}

func floatOrNil(count *uint64) *float64 {
	if count == nil {
		return nil
	}
	out := float64(*count)
	return &out
}

// unknownMembers are the names in value that the schema does not have, in a fixed order.
func unknownMembers(s *openapi3.Schema, value any) []string {
	object, _ := value.(map[string]any)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if s.Properties[name] == nil {
			out = append(out, name)
		}
	}
	return out
}
