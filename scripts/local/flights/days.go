package flights

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"time"
)

// DaysMax bounds the days that are written: ten years of them.
const DaysMax = 3660

const (
	// shippedDate is the date in every slot id of the file that is part of the program.
	shippedDate = "20130101"
	dateLayout  = "20060102"
	// The places of the columns that differ from day to day.
	slotIDColumn, startsAtColumn = 0, 3
)

// WriteDays writes the flights of the file that is part of the program as if they left on
// each of so many days, from their own one on: CSV with the same columns, 696 rows a day.
// 408 days are 283,968 slots, as many as a year of all flights from one city.
func WriteDays(out io.Writer, days int) error {
	if days < 1 || days > DaysMax {
		return fmt.Errorf("flights: the days must be 1 to %d", DaysMax)
	}
	rows, err := csv.NewReader(strings.NewReader(day)).ReadAll()
	if err != nil {
		return fmt.Errorf("flights: %w", err)
	}
	first, err := time.Parse(dateLayout, shippedDate)
	if err != nil {
		return fmt.Errorf("flights: %w", err)
	}
	writer := csv.NewWriter(out)
	if err := writer.Write(rows[0]); err != nil {
		return fmt.Errorf("flights: %w", err)
	}
	for n := range days {
		date := first.AddDate(0, 0, n).Format(dateLayout)
		for _, row := range rows[1:] {
			later, err := laterBy(row, n, date)
			if err == nil {
				err = writer.Write(later)
			}
			if err != nil {
				return fmt.Errorf("flights: %w", err)
			}
		}
	}
	writer.Flush()
	if err := writer.Error(); err != nil {
		return fmt.Errorf("flights: %w", err)
	}
	return nil
}

// laterBy is the row of a flight that leaves so many days later, on date.
func laterBy(row []string, days int, date string) ([]string, error) {
	startsAt, err := time.Parse(time.RFC3339, row[startsAtColumn])
	if err != nil {
		return nil, err
	}
	out := append([]string(nil), row...)
	out[slotIDColumn] = strings.Replace(row[slotIDColumn], shippedDate, date, 1)
	out[startsAtColumn] = startsAt.AddDate(0, 0, days).Format(time.RFC3339)
	return out, nil
}
