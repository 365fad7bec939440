package hotslot

import (
	"errors"
	"fmt"
	"time"

	"holdfast/shared/ledger"
)

// Outcome is what a sale came to.
type Outcome struct {
	Units  ledger.Units
	Shards int
	// Took is the time from the first request to the last one that was accepted.
	Took time.Duration
	// Accepted counts the requests that got their units, AcceptedUnits those units.
	Accepted      int
	AcceptedUnits ledger.Units
	Confirmed     ledger.Units
	// Probed counts the accepted requests that had to read stock, Split those that took
	// from more than one stock item.
	Probed, Split int
	// Refused counts the buyers who were told during the sale that too little is left:
	// RefusedRight when that was surely true, RefusedWrong when it surely was not.
	Refused, RefusedRight, RefusedWrong int
	// TurnedAway counts the tries that were told to come again.
	TurnedAway int
	// SoldCalls are the calls of all accepted requests, their tries included.
	SoldCalls Calls
	// Losers asked after the last unit was sold, each right after another one of the same
	// worker; LoserCalls is what they cost together. FirstLosers were the first ones of their
	// workers.
	Losers, FirstLosers         int
	LoserCalls, FirstLoserCalls Calls
	// Stock is every stock item at one moment at the end.
	Stock []ledger.Stock
	// sold is what the applied transactions took.
	sold ledger.Units
}

// PerSecond is how many requests were accepted in a second.
func (o Outcome) PerSecond() float64 { return float64(o.Accepted) / o.Took.Seconds() }

// Check returns an error for each promise that the sale did not keep: exactly all units are
// sold, nobody was told too early that they are (promise P10), and no counter is impossible
// (promise P1).
func (o Outcome) Check() error {
	var failures []error
	fail := func(format string, values ...any) { failures = append(failures, fmt.Errorf(format, values...)) }
	var total ledger.Counters
	for _, s := range o.Stock {
		if err := s.Counters.Check(); err != nil {
			fail("shard %s: %w", s.Shard, err)
		}
		total = total.Plus(s.Counters)
	}
	if len(o.Stock) != o.Shards {
		fail("%d stock items, want %d", len(o.Stock), o.Shards)
	}
	want := ledger.Counters{Held: o.Units - o.Confirmed, Confirmed: o.Confirmed, Capacity: o.Units}
	if total != want {
		fail("the stock is %+v, want %+v: all sold, no unit left behind", total, want)
	}
	if o.AcceptedUnits != o.Units {
		fail("buyers were promised %d of %d units", o.AcceptedUnits, o.Units)
	}
	if o.sold != o.AcceptedUnits {
		fail("transactions took %d units, and buyers were promised %d", o.sold, o.AcceptedUnits)
	}
	if o.SoldCalls.StockItems < o.Accepted {
		fail("%d stock items were seen to change by %d sales", o.SoldCalls.StockItems, o.Accepted)
	}
	if o.RefusedWrong > 0 {
		fail("%d of %d refusals came while there was as much as they asked for", o.RefusedWrong, o.Refused)
	}
	if o.Refused == 0 {
		fail("nobody was refused: there were no more buyers than units")
	}
	return errors.Join(failures...)
}
