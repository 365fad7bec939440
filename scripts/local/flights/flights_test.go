package flights_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/scripts/local/flights"
	"holdfast/shared/ledger"
)

const (
	head = "slot_id,resource_type,resource_id,starts_at,capacity,unit_amount,currency,attributes\n"
	row  = "flight-1,flight,UA1545,2013-01-01T10:15:00Z,149,17900,USD,EWR;IAH;N14228\n"
)

// The day as its README tells it.
func TestDay(t *testing.T) {
	day, err := flights.Day()
	if err != nil {
		t.Fatal(err)
	}
	var seats ledger.Units
	small := 0
	for _, flight := range day {
		seats += flight.Capacity
		if flight.Capacity < 19 {
			small++
		}
	}
	if len(day) != 696 || seats != 97_618 || small != 13 {
		t.Errorf("%d flights, %d seats, %d small ones; want 696, 97618, 13", len(day), seats, small)
	}
	first := day[0]
	if first.SlotID != "flight-20130101-UA1545-EWR-IAH" || first.ResourceID != "UA1545" || first.ResourceType != "flight" ||
		!first.StartsAt.Equal(time.Date(2013, 1, 1, 10, 15, 0, 0, time.UTC)) || first.Capacity != 149 ||
		first.Terms.Price != (ledger.Money{AmountMinor: 17900, Currency: "USD"}) || !first.Terms.Open ||
		first.Attributes["origin"] != "EWR" || first.Attributes["destination"] != "IAH" || first.Attributes["tail_number"] != "N14228" {
		t.Errorf("the first flight is %+v", first)
	}
}

// Every wrong row is told with its own line, and nothing of the file is used.
func TestWrongRowsAreTold(t *testing.T) {
	for _, test := range []struct{ old, replacement, want string }{
		{"flight-1", "flight 1", "slot_id"},
		{"flight,", ",", "resource_type"},
		{"UA1545", "", "resource_id"},
		{"2013-01-01T10:15:00Z", "2013-01-01 10:15", "starts_at"},
		{"149", "149.5", "capacity"},
		{"149", "-1", "capacity"},
		{"17900", "179.00", "unit_amount"},
		{"17900", "-1", "unit_amount"},
		{"USD", "usd", "currency"},
		{"EWR;IAH;N14228", "EWR;IAH", "attributes"},
		{",USD", "", "wrong number of fields"},
		{"UA1545", `"UA`, "quote"},
	} {
		wrong := strings.Replace(row, test.old, test.replacement, 1)
		all, err := flights.Parse(strings.NewReader(head + strings.Replace(row, "flight-1", "flight-0", 1) + wrong))
		var told *flights.RowError
		if all != nil || !errors.As(err, &told) || told.Line != 3 || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q for %q: %v, %v; want line 3 and %q", test.replacement, test.old, all, err, test.want)
		}
	}
}

func TestWrongFilesAreRefused(t *testing.T) {
	many := strings.Builder{}
	many.WriteString(head)
	for n := range 10_001 {
		many.WriteString(strings.Replace(row, "flight-1", fmt.Sprintf("flight-%d", n), 1))
	}
	for _, test := range []struct{ text, want string }{
		{"", "head"},
		{head, "no row"},
		{strings.Replace(head, "capacity", "seats", 1) + row, "columns"},
		{head + row + row, "line 3: slot_id flight-1 is in line 2 already"},
		{many.String(), "more than 10000 rows"},
	} {
		all, err := flights.Parse(strings.NewReader(test.text))
		if all != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40q: %d flights, %v; want %q", test.text, len(all), err, test.want)
		}
	}
}

func TestOnlyTheFirstWrongRowsAreTold(t *testing.T) {
	_, err := flights.Parse(strings.NewReader(head + strings.Repeat("wrong\n", 1000)))
	if err == nil || strings.Count(err.Error(), "line ") != 10 {
		t.Errorf("%v; want 10 lines", err)
	}
}
