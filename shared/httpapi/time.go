package httpapi

import (
	"errors"
	"time"
)

// timeLayout is RFC 3339 in UTC with exactly three decimals. time.RFC3339Nano drops
// zeros at the end, so two of its texts do not sort like their times.
const timeLayout = "2006-01-02T15:04:05.000Z"

// The years that a time may lie in. Later ones have no RFC 3339 text. Of the first year
// its first millisecond is left out: stored as a number it is 0, which stands for "no time".
const yearMin, yearMax = 1970, 9999

// Time is a time as the API reads and writes it: UTC, in whole milliseconds.
type Time time.Time

// MarshalText writes t with exactly three decimals.
func (t Time) MarshalText() ([]byte, error) {
	return time.Time(t).UTC().AppendFormat(nil, timeLayout), nil
}

// UnmarshalText reads RFC 3339 with any offset and number of decimals. What is finer
// than a millisecond is cut off.
func (t *Time) UnmarshalText(text []byte) error {
	parsed, err := time.Parse(time.RFC3339, string(text))
	if err != nil {
		return errors.New("must be an RFC 3339 time")
	}
	if parsed, err = kept(parsed); err != nil {
		return err
	}
	*t = Time(parsed)
	return nil
}

// kept is t as it is stored, in UTC and whole milliseconds, or an error for a time that
// can't be.
func kept(t time.Time) (time.Time, error) {
	t = t.UTC().Truncate(time.Millisecond)
	if t.Year() < yearMin || t.Year() > yearMax || t.UnixMilli() == 0 {
		return time.Time{}, errors.New("must lie in the years 1970 to 9999, after their first millisecond")
	}
	return t, nil
}

// timeOrNil is nil for the zero time, which stands for "no time".
func timeOrNil(t time.Time) *Time {
	if t.IsZero() {
		return nil
	}
	out := Time(t)
	return &out
}

// timeOrZero is the zero time for nil.
func timeOrZero(t *Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return time.Time(*t)
}
