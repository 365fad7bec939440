package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"holdfast/scripts/internal/localrun"
	"holdfast/scripts/local/flights"
	"holdfast/shared/topology"
)

const (
	// demoSweepEvery is short, because the holds of the demo live for seconds.
	demoSweepEvery = time.Second
	// demoWaitMax bounds each wait of the demo for something that must come.
	demoWaitMax = time.Minute
	demoPoll    = 100 * time.Millisecond
)

// story is the demo while it is told.
type story struct {
	system  *localrun.System
	out     io.Writer
	catalog *localrun.Caller
	shop    *localrun.Caller // confirms what it has been paid for
	// keys makes idempotency keys.
	keys int
}

// runDemo tells the story on a system of its own, so that it never touches the user's data.
// It returns an error if anything is not as it must be.
func runDemo(ctx context.Context, out io.Writer) (err error) {
	system, err := localrun.Start(ctx, localrun.Options{SweepEvery: demoSweepEvery, Progress: out})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, system.Close()) }()
	s := &story{system: system, out: out}
	if s.catalog, err = system.Caller("catalogue", topology.ScopeCatalog); err != nil {
		return err
	}
	if s.shop, err = system.Caller("shop", topology.ScopeConfirm); err != nil {
		return err
	}
	return s.tell(ctx)
}

func (s *story) tell(ctx context.Context) error {
	all, err := flights.Day()
	if err != nil {
		return err
	}
	loaded, err := loadFlights(ctx, s.catalog, all)
	if err != nil {
		return err
	}
	s.say("loaded %d flights of 2013-01-01 from New York", loaded)
	small, next := twoSmallest(all)
	if err := s.lastSeat(ctx, small); err != nil {
		return err
	}
	if err := s.leftToExpire(ctx, next); err != nil {
		return err
	}
	if err := s.eventsArrive(ctx); err != nil {
		return err
	}
	return s.closeBooks(ctx)
}

// twoSmallest returns the two flights with the fewest seats.
func twoSmallest(all []flights.Flight) (smallest, next flights.Flight) {
	smallest, next = all[0], all[1]
	if next.Capacity < smallest.Capacity {
		smallest, next = next, smallest
	}
	for _, flight := range all[2:] {
		switch {
		case flight.Capacity < smallest.Capacity:
			smallest, next = flight, smallest
		case flight.Capacity < next.Capacity:
			next = flight
		}
	}
	return smallest, next
}

func (s *story) say(format string, arguments ...any) {
	fmt.Fprintf(s.out, format+"\n", arguments...)
}

func (s *story) key() string {
	s.keys++
	return fmt.Sprintf("demo-%d", s.keys)
}

// waitUntil asks until the answer is yes, for a bounded time.
func (s *story) waitUntil(ctx context.Context, what string, isTrue func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, demoWaitMax)
	defer cancel()
	for {
		yes, err := isTrue()
		if err != nil {
			return fmt.Errorf("wait until %s: %w", what, err)
		}
		if yes {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w", what, ctx.Err())
		case err := <-s.system.Failed():
			return err
		case <-time.After(demoPoll):
		}
	}
}

// eventsArrive waits until every event of the table came out of the bus and is marked.
func (s *story) eventsArrive(ctx context.Context) error {
	report, err := s.system.Audit(ctx)
	if err != nil {
		return err
	}
	total, unpublished := report.Events, 0
	err = s.waitUntil(ctx, "all events have arrived", func() (bool, error) {
		if unpublished, err = s.system.Unpublished(ctx); err != nil {
			return false, err
		}
		arrived, _ := s.system.Events()
		return len(arrived) >= total && unpublished == 0, nil
	})
	arrived, again := s.system.Events()
	if err != nil {
		return fmt.Errorf("%d of %d events have arrived, %d are not marked as published: %w", len(arrived), total, unpublished, err)
	}
	if len(arrived) != total {
		return fmt.Errorf("%d events arrived, the table has %d", len(arrived), total)
	}
	byType := make(map[string]int)
	for _, event := range arrived {
		byType[string(event.Type)]++
	}
	s.say("the event bus delivered each of the %d events of the table (%s), %d of them more than once", total, counted(byType), again)
	return nil
}

// closeBooks audits the whole table. Its line is the last one.
func (s *story) closeBooks(ctx context.Context) error {
	report, err := s.system.Audit(ctx)
	if err != nil {
		return err
	}
	for _, violation := range report.Violations {
		s.say("%s", violation)
	}
	s.say("books balance: slots=%d holds=%d events=%d violations=%d",
		report.Slots, report.Holds, report.Events, len(report.Violations))
	if len(report.Violations) > 0 {
		return fmt.Errorf("the books do not balance: %d violations", len(report.Violations))
	}
	return nil
}
