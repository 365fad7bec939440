package httpapi

import (
	"time"
)

// localLayouts are the forms of a time without offset. Where there are seconds the parser
// takes a fraction of one as well.
var localLayouts = []string{"2006-01-02T15:04:05", "2006-01-02T15:04"}

// offsetAround is how far before and after a local time its zone is asked for its offset:
// longer than any offset, and much shorter than from one change of the clocks to the next.
const offsetAround = 24 * time.Hour

// locationOf finds a time zone by its IANA name. It is nil where none is named, which says
// UTC to who reads the times, and nothing to who writes a local one. pointer is where the
// name stands in the body.
func locationOf(pointer string, name *string) (*time.Location, error) {
	if name == nil || *name == "" {
		return nil, nil
	}
	location, err := time.LoadLocation(*name)
	if err != nil || location == time.Local { // "Local" is this machine's own zone, which no client can mean
		return nil, invalid("body", pointer, zoneDetail)
	}
	return location, nil
}

// saleTimeOf reads one time of a sale: RFC 3339, or a local time of the zone, or the empty
// text, which is the zero time and stands for no bound. It is nil for nil. pointer is where
// the text stands in the body.
func saleTimeOf(pointer string, text *SaleTime, zone *time.Location) (*time.Time, error) {
	if text == nil {
		return nil, nil
	}
	if *text == "" {
		return &time.Time{}, nil
	}
	moment, err := time.Parse(time.RFC3339, *text)
	if err != nil {
		if moment, err = localSaleTime(pointer, *text, zone); err != nil {
			return nil, err
		}
	}
	if moment, err = kept(moment); err != nil {
		return nil, invalid("body", pointer, err.Error())
	}
	return &moment, nil
}

func localSaleTime(pointer, text string, zone *time.Location) (time.Time, error) {
	var wall time.Time
	var err error
	for _, layout := range localLayouts {
		if wall, err = time.Parse(layout, text); err == nil {
			break
		}
	}
	switch {
	case err != nil:
		return time.Time{}, invalid("body", pointer, saleTimeDetail)
	case zone == nil:
		return time.Time{}, invalid("body", pointer, "must have an offset, or a sale_time_zone beside it that says whose local time it is")
	}
	moment, shown := localTime(wall, zone)
	if !shown {
		return time.Time{}, invalid("body", pointer, "must be a time that the clocks of its zone show; they are set past this one")
	}
	return moment, nil
}

// localTime is the moment at which the clocks of the zone show the date and time of wall,
// the first one where they show it twice. It reports false where they never do. time.Date
// gives some moment in both cases and does not say which.
func localTime(wall time.Time, zone *time.Location) (time.Time, bool) {
	var first time.Time
	for _, near := range []time.Duration{-offsetAround, offsetAround} {
		_, offset := wall.Add(near).In(zone).Zone()
		moment := wall.Add(-time.Duration(offset) * time.Second)
		if _, actual := moment.In(zone).Zone(); actual == offset && (first.IsZero() || moment.Before(first)) {
			first = moment
		}
	}
	return first, !first.IsZero()
}
