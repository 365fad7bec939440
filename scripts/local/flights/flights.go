package flights

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/shared/ledger"
)

//go:embed flights-2013-01-01.csv
var day string

const (
	// rowsMax bounds a file. The busiest day of a big airport has some thousand flights.
	rowsMax = 10_000
	// rowErrorsMax bounds how many wrong rows are told at once.
	rowErrorsMax = 10
)

// columns are the columns of a file, in their order.
var columns = []string{
	"slot_id", "resource_type", "resource_id", "starts_at", "capacity", "unit_amount", "currency", "attributes",
}

// attributeNames are what the parts of the column attributes mean.
var attributeNames = []string{"origin", "destination", "tail_number"}

// Flight is one departure to sell.
type Flight struct {
	SlotID ledger.SlotID
	ledger.SlotDefinition
}

// Day returns the flights of the file that is part of the program, in the order of their
// departure.
func Day() ([]Flight, error) { return Parse(strings.NewReader(day)) }

// RowError says what is wrong with one row.
type RowError struct {
	// Line counts the lines of the file from 1, its head included.
	Line  int
	Cause error
}

func (e *RowError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Cause) }

func (e *RowError) Unwrap() error { return e.Cause }

// Parse reads flights from CSV with the columns of the file in this folder. It reads to
// the end, and its error has a RowError for each of the first rows that are wrong. No
// flight is returned then: half a day must not be sold as a whole one.
func Parse(source io.Reader) ([]Flight, error) {
	reader := csv.NewReader(source)
	reader.FieldsPerRecord = len(columns)
	head, err := reader.Read()
	if err != nil {
		return nil, fmt.Errorf("flights: read the head: %w", err)
	}
	if !slices.Equal(head, columns) {
		return nil, fmt.Errorf("flights: the columns must be %s", strings.Join(columns, ","))
	}
	var all []Flight
	var failures []error
	firstLineOf := make(map[ledger.SlotID]int)
	for len(all) < rowsMax && len(failures) < rowErrorsMax {
		fields, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return finish(all, failures)
		}
		line, _ := reader.FieldPos(0)
		var flight Flight
		if err == nil {
			flight, err = parseRow(fields)
		}
		if broken := (*csv.ParseError)(nil); errors.As(err, &broken) {
			line, err = broken.Line, broken.Err
		}
		if first, isKnown := firstLineOf[flight.SlotID]; err == nil && isKnown {
			err = fmt.Errorf("slot_id %s is in line %d already", flight.SlotID, first)
		}
		if err != nil {
			failures = append(failures, &RowError{Line: line, Cause: err})
			continue
		}
		firstLineOf[flight.SlotID] = line
		all = append(all, flight)
	}
	if len(failures) == 0 {
		return nil, fmt.Errorf("flights: more than %d rows", rowsMax)
	}
	return finish(nil, failures)
}

func finish(all []Flight, failures []error) ([]Flight, error) {
	if len(failures) > 0 {
		return nil, fmt.Errorf("flights: %w", errors.Join(failures...))
	}
	if len(all) == 0 {
		return nil, errors.New("flights: there is no row")
	}
	return all, nil
}

func parseRow(fields []string) (Flight, error) {
	startsAt, err := time.Parse(time.RFC3339, fields[3])
	if err != nil {
		return Flight{}, fmt.Errorf("starts_at %q is no RFC 3339 time", fields[3])
	}
	capacity, err := strconv.ParseInt(fields[4], 10, 64)
	if err != nil {
		return Flight{}, fmt.Errorf("capacity %q is no whole number", fields[4])
	}
	unitAmount, err := strconv.ParseInt(fields[5], 10, 64)
	if err != nil {
		return Flight{}, fmt.Errorf("unit_amount %q is no whole number", fields[5])
	}
	attributes, err := parseAttributes(fields[7])
	if err != nil {
		return Flight{}, err
	}
	flight := Flight{SlotID: ledger.SlotID(fields[0]), SlotDefinition: ledger.SlotDefinition{
		ResourceType: ledger.ResourceType(fields[1]),
		ResourceID:   ledger.ResourceID(fields[2]),
		StartsAt:     startsAt.UTC(),
		Attributes:   attributes,
		Capacity:     ledger.Units(capacity),
		Terms: ledger.Terms{
			Open: true, Shards: 1,
			Price: ledger.Money{AmountMinor: unitAmount, Currency: ledger.Currency(fields[6])},
		},
		Policy: ledger.DefaultPolicy(),
	}}
	if !ledger.ValidName(fields[0]) {
		return Flight{}, fmt.Errorf("slot_id %q is no valid name", fields[0])
	}
	return flight, flight.Validate()
}

func parseAttributes(text string) (map[string]string, error) {
	parts := strings.Split(text, ";")
	if len(parts) != len(attributeNames) {
		return nil, fmt.Errorf("attributes %q must be %s", text, strings.Join(attributeNames, ";"))
	}
	attributes := make(map[string]string, len(parts))
	for i, name := range attributeNames {
		attributes[name] = parts[i]
	}
	return attributes, nil
}
