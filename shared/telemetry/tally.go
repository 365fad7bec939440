package telemetry

import (
	"sync"
	"time"

	"holdfast/shared/ledger"
)

// Tally adds up counts of one process until they are reported: a line for each of them would
// cost more than it tells. Its zero value is empty. It is safe for concurrent use.
//
// What it holds when Lambda ends the process is lost, so nothing that must be exact may be
// counted this way.
type Tally struct {
	mutex  sync.Mutex
	counts map[MetricName]int
}

// Add counts n more of the metric.
func (t *Tally) Add(metric MetricName, n int) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if t.counts == nil {
		t.counts = make(map[MetricName]int)
	}
	t.counts[metric] += n
}

// Empty reports whether nothing was counted since the last Take.
func (t *Tally) Empty() bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return len(t.counts) == 0
}

// Take returns what was counted of the metrics, zero where nothing was, in their order, and
// begins all of the tally anew.
func (t *Tally) Take(metrics ...MetricName) []Measurement {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	out := make([]Measurement, len(metrics))
	for i, metric := range metrics {
		out[i] = Count(metric, t.counts[metric])
	}
	t.counts = nil
	return out
}

// CommandTally keeps what packages commands and dynamo tell their counters: what is counted in
// the Tally, and how long reservations were in a status in the Spread.
type CommandTally struct {
	Tally  *Tally
	Spread *Spread
}

// NewCommandTally returns an empty CommandTally.
func NewCommandTally() CommandTally { return CommandTally{Tally: &Tally{}, Spread: &Spread{}} }

// Take returns what was counted and gathered since the last time, of these counts, for one line
// after the other, and begins anew. The counts are in the first line; there is none where there
// is nothing to tell.
func (c CommandTally) Take(counts ...MetricName) [][]Measurement {
	lines := c.Spread.Take()
	if c.Tally.Empty() && len(lines) == 0 {
		return nil
	}
	if len(lines) == 0 {
		lines = [][]Measurement{nil}
	}
	lines[0] = append(lines[0], c.Tally.Take(counts...)...)
	return lines
}

// Empty reports whether there is nothing to tell.
func (c CommandTally) Empty() bool { return c.Tally.Empty() && c.Spread.Empty() }

// DecidedAnew counts a decision that was made again.
func (c CommandTally) DecidedAnew() { c.Tally.Add(MetricConflictRetries, 1) }

// Conflicted counts a call to the database that met a running transaction.
func (c CommandTally) Conflicted() { c.Tally.Add(MetricConflictRetries, 1) }

// Probed counts slots whose stock items were read to find units.
func (c CommandTally) Probed(slots int) { c.Tally.Add(MetricShardProbes, slots) }

// Split counts a line that is taken from more than one stock item.
func (c CommandTally) Split() { c.Tally.Add(MetricShardSplits, 1) }

// ConfirmedLate counts a confirm that was refused because the hold was over.
func (c CommandTally) ConfirmedLate() { c.Tally.Add(MetricConfirmsLate, 1) }

// Short counts a command that was refused because less was left than it wanted.
func (c CommandTally) Short() { c.Tally.Add(MetricOversellPrevented, 1) }

// Left keeps how long a reservation was in the status that it left.
func (c CommandTally) Left(status ledger.ReservationStatus, after time.Duration) {
	AddDwell(c.Spread, status, after)
}
