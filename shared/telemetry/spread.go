package telemetry

import (
	"slices"
	"sync"
	"time"

	"holdfast/shared/ledger"
)

// Spread gathers the single values of metrics until they are reported, so that percentiles
// can be made of them. Its zero value is empty. It is safe for concurrent use.
type Spread struct {
	mutex  sync.Mutex
	values map[MetricName][]float64
}

// Add gathers one value of the metric.
func (s *Spread) Add(metric MetricName, value float64) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.values == nil {
		s.values = make(map[MetricName][]float64)
	}
	s.values[metric] = append(s.values[metric], value)
}

// Empty reports whether nothing was gathered since the last Take.
func (s *Spread) Empty() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.values) == 0
}

// AddDwell gathers how long a reservation was in the status, if that is not an end.
func AddDwell(to *Spread, status ledger.ReservationStatus, dwell time.Duration) {
	if metric, counts := dwellMetric(status); counts {
		to.Add(metric, dwell.Seconds())
	}
}

// Take returns all that was gathered and begins anew: as measurements for one line after the
// other, because a line holds at most ValuesMax of one metric.
func (s *Spread) Take() [][]Measurement {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var lines [][]Measurement
	for _, m := range Metrics() {
		line := 0
		for chunk := range slices.Chunk(s.values[m.Name], ValuesMax) {
			if line == len(lines) {
				lines = append(lines, nil)
			}
			lines[line] = append(lines[line], Measurement{Metric: m.Name, Values: chunk})
			line++
		}
	}
	s.values = nil
	return lines
}
