package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/topology"
)

const (
	// demoSweepEvery is short, because the holds of the demo live for seconds.
	demoSweepEvery = time.Second
	// demoWaitMax bounds each wait of the demo for something that must come.
	demoWaitMax = time.Minute
	demoPoll    = 100 * time.Millisecond
	// demoCurrency is the currency of every flight's price.
	demoCurrency = "USD"
)

// story is what demos are told with.
type story struct {
	system  *localrun.System
	out     io.Writer
	catalog *localrun.Caller
	shop    *localrun.Caller // confirms what it has been paid for
	// keys makes idempotency keys.
	keys int
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

// eventsArrive waits until every event of the table came out of the bus and is marked, and
// nothing is on its way that could make another one.
func (s *story) eventsArrive(ctx context.Context) error {
	total, unpublished := 0, 0
	err := s.waitUntil(ctx, "all events have arrived", func() (bool, error) {
		before := total
		report, err := s.system.Audit(ctx)
		if err != nil {
			return false, err
		}
		total = report.Events
		if unpublished, err = s.system.Unpublished(ctx); err != nil {
			return false, err
		}
		messages, err := s.system.Waiting(ctx, topology.ResourceSagaQueue)
		arrived, _ := s.system.Events()
		quiet := messages == 0 && len(s.system.Payments.Queue()) == 0
		return quiet && total == before && len(arrived) >= total && unpublished == 0, err
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

// closeBooks audits the whole table, and compares its money with the provider's own books.
// Its line is the last one.
func (s *story) closeBooks(ctx context.Context) error {
	report, err := s.system.Audit(ctx)
	if err != nil {
		return err
	}
	for _, finding := range report.Findings {
		s.say("%s", finding)
	}
	money := report.Money[demoCurrency]
	captured, refunded := s.providerBooks()
	if captured != money.Captured || refunded != money.Refunded || len(report.Money) > 1 {
		return fmt.Errorf("the provider has captured %d and refunded %d %s, the table says %+v", captured, refunded, demoCurrency, report.Money)
	}
	s.say("the provider's own books say the same of the money, in cents of %s", demoCurrency)
	oversold := ""
	if n := len(report.Oversold); n > 0 {
		oversold = fmt.Sprintf(" oversold=%d", n)
	}
	s.say("books balance: slots=%d holds=%d reservations=%d events=%d money: captured=%d refunded=%d owed=%d violations=%d%s",
		report.Slots, report.Holds, report.Reservations, report.Events, money.Captured, money.Refunded, money.Owed, len(report.Findings), oversold)
	if len(report.Findings) > 0 || money.Owed != 0 {
		return fmt.Errorf("the books do not balance: %d violations, %d owed", len(report.Findings), money.Owed)
	}
	return nil
}

// providerBooks is what the provider has taken and given back, by its own account.
func (s *story) providerBooks() (captured, refunded int64) {
	for _, book := range s.system.Payments.Bank().Books() {
		captured, refunded = captured+book.CapturedMinor, refunded+book.RefundedMinor
	}
	return captured, refunded
}

// counted writes counts in the order of their names.
func counted(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d × %s", counts[name], name))
	}
	return strings.Join(parts, ", ")
}
