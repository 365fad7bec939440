package main

import (
	"cmp"
	"context"
	"slices"

	"holdfast/scripts/local/flights"
)

// flights tells of a day of real flights.
func (s *story) flights(ctx context.Context) error {
	all, err := flights.Day()
	if err != nil {
		return err
	}
	loaded, err := loadFlights(ctx, s.catalog, all)
	if err != nil {
		return err
	}
	s.say("loaded %d flights of 2013-01-01 from New York", loaded)
	small, next, middling := pickFlights(all)
	if err := s.lastSeat(ctx, small); err != nil {
		return err
	}
	if err := s.leftToExpire(ctx, next); err != nil {
		return err
	}
	return s.payments(ctx, middling, next)
}

// pickFlights returns the two flights with the fewest seats, and one of middling size.
func pickFlights(all []flights.Flight) (smallest, next, middling flights.Flight) {
	bySeats := slices.Clone(all)
	slices.SortStableFunc(bySeats, func(a, b flights.Flight) int { return cmp.Compare(a.Capacity, b.Capacity) })
	return bySeats[0], bySeats[1], bySeats[len(bySeats)/2]
}
