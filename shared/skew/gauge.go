package skew

import (
	"sync"
	"time"

	"holdfast/shared/system"
)

const (
	// NotableOver is the skew from which on people are told. A machine that keeps its time
	// with the Amazon Time Sync Service stays far below.
	NotableOver = time.Second
	// UnreliableOver is the skew over which a machine must decide nothing by its clock. It
	// is small beside the shortest hold, and above what a clock that is being corrected
	// slowly is off for a while.
	UnreliableOver = 30 * time.Second
	// Observations is how many of the last answers a measure takes, and how many it needs. A
	// single odd answer, of a proxy or of a server with a clock that is off, decides nothing.
	Observations = 3
	// FreshFor is how long an answer counts. A function that was frozen for longer wakes up
	// with a clock of which nothing is known.
	FreshFor = 5 * time.Minute
	// dateStep is the precision of a Date header.
	dateStep = time.Second
)

// Gauge knows how far this machine's clock is off AWS's, from the Date headers of answers.
// Use NewGauge; it is safe for concurrent use.
type Gauge struct {
	clock system.Clock

	mutex sync.Mutex
	last  [Observations]observation // a ring; an entry without a time is none
	next  int                       // where the next one goes
}

// observation is what one answer says.
type observation struct {
	received time.Time // by the clock that is measured; zero for none
	skew     time.Duration
}

// NewGauge returns a Gauge of clock that knows nothing yet.
func NewGauge(clock system.Clock) *Gauge { return &Gauge{clock: clock} }

// Now is the time of the clock that is measured: what to take before a question is sent
// and after its answer has come.
func (g *Gauge) Now() time.Time { return g.clock.Now() }

// Observe takes one answer: sent is the latest time known to be before the server wrote
// its date, received the earliest known to be after, both by the clock that is measured;
// date is what the server wrote. A question during which the clock was set back says
// nothing, and is left out.
func (g *Gauge) Observe(sent, received, date time.Time) {
	// Without the monotonic reading, which does not know of a clock that was set.
	sent, received = sent.Round(0), received.Round(0)
	if date.IsZero() || received.Before(sent) {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.last[g.next] = observation{received: received, skew: certain(sent, received, date)}
	g.next = (g.next + 1) % Observations
}

// certain is the least skew that an answer allows. The server's time was in
// [date, date + dateStep) at some moment between sent and received.
func certain(sent, received, date time.Time) time.Duration {
	least, most := sent.Sub(date)-dateStep, received.Sub(date)
	switch {
	case least > 0:
		return least
	case most < 0:
		return most
	default:
		return 0
	}
}

// Skew is this clock minus AWS's, as far as it is certain: positive when this clock is
// ahead, negative when it is behind, and zero while it may be right, or while not Known.
// Of the last answers it is what the one nearest to zero says.
func (g *Gauge) Skew() time.Duration {
	skew, known := g.measure()
	if !known {
		return 0
	}
	return skew
}

// Known reports whether enough answers have come of late to say anything. A gauge that
// nobody feeds is never known.
func (g *Gauge) Known() bool {
	_, known := g.measure()
	return known
}

// Unreliable reports whether the clock is certainly off by more than UnreliableOver, in
// either direction. It is false while not Known.
func (g *Gauge) Unreliable() bool { return g.Skew().Abs() > UnreliableOver }

// Notable reports whether the clock is certainly off by more than NotableOver.
func (g *Gauge) Notable() bool { return g.Skew().Abs() > NotableOver }

func (g *Gauge) measure() (skew time.Duration, known bool) {
	now := g.clock.Now()
	g.mutex.Lock()
	defer g.mutex.Unlock()
	for i, o := range g.last {
		if age := now.Sub(o.received).Abs(); o.received.IsZero() || age > FreshFor {
			return 0, false
		}
		if i == 0 || o.skew.Abs() < skew.Abs() {
			skew = o.skew
		}
	}
	return skew, true
}
