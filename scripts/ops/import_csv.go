package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"holdfast/shared/httpapi"
)

// rowType says what a row of CSV does to its slot.
type rowType string

// The types of rows.
const (
	rowPut   rowType = "put"   // defines the slot, or redefines it whole
	rowPatch rowType = "patch" // changes what the row names
)

const (
	slotIDColumn     = "slot_id"
	attributesColumn = "attributes"
	openColumn       = "open"
	policyMember     = "policy"
	listSeparator    = ";"
)

// schemaNames are the bodies of the contract whose members are the columns.
var schemaNames = map[rowType]string{rowPut: "SlotDefinition", rowPatch: "SlotPatch"}

// integerPattern is an integer as JSON writes it.
var integerPattern = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// column is a column that a file may have: a member of the contract's body, or of its
// policy.
type column struct {
	ofPolicy bool
	schema   *openapi3.Schema
}

// columnsOf are the columns of the type, by their names. They follow from the contract, so
// that whatever a slot can be told, a file can tell.
func columnsOf(document *openapi3.T, t rowType) map[string]column {
	body := document.Components.Schemas[schemaNames[t]].Value
	out := map[string]column{}
	for name, member := range body.Properties {
		if name != policyMember {
			out[name] = column{schema: member.Value}
		}
	}
	for name, member := range body.Properties[policyMember].Value.Properties {
		out[name] = column{ofPolicy: true, schema: member.Value}
	}
	return out
}

// csvRows turns lines of CSV into rows of the batch route.
type csvRows struct {
	rowType rowType
	header  []string
	columns map[string]column
	// attributeNames are what the parts of the column attributes mean; nil when the parts
	// say so themselves.
	attributeNames []string
}

// newCSVRows reads the header of a file. Its error says what is wrong with the header: then
// no row can be read.
func newCSVRows(header line, t rowType, attributeNames []string) (*csvRows, error) {
	if header.err != nil {
		return nil, fmt.Errorf("the header: %w", header.err)
	}
	document, err := httpapi.GetSpec()
	if err != nil {
		return nil, fmt.Errorf("read the contract: %w", err)
	}
	names, err := fieldsOf(header.text)
	if err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	c := &csvRows{t, names, columnsOf(document, t), attributeNames}
	required := document.Components.Schemas[schemaNames[t]].Value.Required
	return c, c.checkHeader(slices.DeleteFunc(slices.Clone(required), func(name string) bool { return name == openColumn }))
}

func (c *csvRows) checkHeader(required []string) error {
	seen := map[string]bool{}
	for _, name := range c.header {
		if _, known := c.columns[name]; !known && name != slotIDColumn {
			return fmt.Errorf("the header has %q, which is no column of a %s; the columns are %s, %s",
				name, c.rowType, slotIDColumn, strings.Join(slices.Sorted(maps.Keys(c.columns)), ", "))
		}
		if seen[name] {
			return fmt.Errorf("the header has the column %s twice", name)
		}
		seen[name] = true
	}
	for _, name := range append([]string{slotIDColumn}, required...) {
		if !seen[name] {
			return fmt.Errorf("the header lacks the column %s; the first line must name the columns", name)
		}
	}
	if c.attributeNames != nil && !seen[attributesColumn] {
		return fmt.Errorf("-attributes names the parts of the column %s, which the file does not have", attributesColumn)
	}
	return nil
}

// fieldsOf reads one line. A row is one line: a field can't have a line break in it, so that
// one broken quote spoils one row and not the rest of the file.
func fieldsOf(text []byte) ([]string, error) {
	fields, err := csv.NewReader(bytes.NewReader(text)).Read()
	if broken := (*csv.ParseError)(nil); errors.As(err, &broken) {
		return nil, fmt.Errorf("%w, at character %d", broken.Err, broken.Column)
	}
	return fields, err
}

// json is the row of the batch route that the line says, and the slot that it is of as far
// as that can be told.
func (c *csvRows) json(text []byte) (row []byte, slotID string, err error) {
	fields, err := fieldsOf(text)
	if err != nil {
		return nil, "", err
	}
	at := slices.Index(c.header, slotIDColumn)
	if at < len(fields) {
		slotID = fields[at]
	}
	if len(fields) != len(c.header) {
		return nil, slotID, fmt.Errorf("the row has %d fields, and the header has %d columns", len(fields), len(c.header))
	}
	body, policy := map[string]any{}, map[string]any{}
	if c.rowType == rowPut {
		body[openColumn] = true // what is imported is to be sold, unless it says otherwise
	}
	for i, name := range c.header {
		if name == slotIDColumn || fields[i] == "" {
			continue // an empty field says nothing of its column
		}
		value, err := c.value(name, fields[i])
		if err != nil {
			return nil, slotID, err
		}
		if c.columns[name].ofPolicy {
			policy[name] = value
		} else {
			body[name] = value
		}
	}
	if len(policy) > 0 {
		body[policyMember] = policy
	}
	row, err = json.Marshal(map[string]any{slotIDColumn: slotID, string(c.rowType): body})
	return row, slotID, err
}

// value is a field as the contract writes it. Only what JSON could not say is an error here:
// the contract checks the rest.
func (c *csvRows) value(name, field string) (any, error) {
	if name == attributesColumn {
		return c.attributes(field)
	}
	switch schema := c.columns[name].schema; {
	case schema.Type.Is(openapi3.TypeInteger):
		if !integerPattern.MatchString(field) {
			return nil, fmt.Errorf("%s: %q is no whole number", name, shortened(field))
		}
		return json.Number(field), nil
	case schema.Type.Is(openapi3.TypeBoolean):
		if field != "true" && field != "false" {
			return nil, fmt.Errorf("%s: %q is neither true nor false", name, shortened(field))
		}
		return field == "true", nil
	case schema.Type.Is(openapi3.TypeArray):
		return strings.Split(field, listSeparator), nil
	default:
		return field, nil
	}
}

func (c *csvRows) attributes(field string) (map[string]string, error) {
	parts := strings.Split(field, listSeparator)
	out := make(map[string]string, len(parts))
	if c.attributeNames != nil {
		if len(parts) != len(c.attributeNames) {
			return nil, fmt.Errorf("%s: %q has %d parts, and -attributes names %d", attributesColumn, shortened(field), len(parts), len(c.attributeNames))
		}
		for i, name := range c.attributeNames {
			out[name] = parts[i]
		}
		return out, nil
	}
	for _, part := range parts {
		name, value, found := strings.Cut(part, "=")
		if _, twice := out[name]; !found || twice {
			return nil, fmt.Errorf("%s: %q must be name=value;name=value, each name once", attributesColumn, shortened(field))
		}
		out[name] = value
	}
	return out, nil
}

// shownCharactersMax bounds what an error repeats of a file.
const shownCharactersMax = 80

func shortened(text string) string {
	if characters := []rune(text); len(characters) > shownCharactersMax {
		return string(characters[:shownCharactersMax]) + "…"
	}
	return text
}
