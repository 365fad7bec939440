package flights_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"strings"
	"testing"

	"holdfast/scripts/local/flights"
	"holdfast/shared/ledger"
)

// One day is the file itself, and the days after it are the same flights at the same time
// of day, each a slot of its own.
func TestWriteDays(t *testing.T) {
	shipped, err := flights.Day()
	if err != nil {
		t.Fatal(err)
	}
	var one, many bytes.Buffer
	if err := errors.Join(flights.WriteDays(&one, 1), flights.WriteDays(&many, 408)); err != nil {
		t.Fatal(err)
	}
	again, err := flights.Parse(&one)
	if err != nil || len(again) != len(shipped) || again[0].SlotID != shipped[0].SlotID || !again[695].StartsAt.Equal(shipped[695].StartsAt) {
		t.Fatalf("one day has %d flights, %v", len(again), err)
	}
	rows, err := csv.NewReader(&many).ReadAll()
	if err != nil || len(rows) != 1+408*696 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	seen := make(map[string]bool, len(rows))
	for _, row := range rows[1:] {
		if seen[row[0]] || !ledger.ValidName(row[0]) {
			t.Fatalf("the slot id %s is not valid or there twice", row[0])
		}
		seen[row[0]] = true
	}
	first, last := rows[1+59*696], rows[1+407*696]
	if first[0] != "flight-20130301-UA1545-EWR-IAH" || first[3] != "2013-03-01T10:15:00Z" {
		t.Errorf("the 60th day begins with %v", first)
	}
	if last[0] != "flight-20140212-UA1545-EWR-IAH" || last[3] != "2014-02-12T10:15:00Z" || last[4] != "149" {
		t.Errorf("the last day begins with %v", last)
	}
}

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestDaysThatCannotBe(t *testing.T) {
	for _, days := range []int{0, -1, flights.DaysMax + 1} {
		var out strings.Builder
		if err := flights.WriteDays(&out, days); err == nil || out.Len() > 0 {
			t.Errorf("%d days: %v and %d characters", days, err, out.Len())
		}
	}
	if err := flights.WriteDays(full{}, 1); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("a full disk: %v", err)
	}
}
