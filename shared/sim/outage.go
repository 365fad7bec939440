package sim

import "time"

// outage is a time in which something does not work.
type outage struct{ from, to time.Time }

// drawOutage draws when something is away, for most at the most; never for zero. The calm
// ends an outage.
func (w *world) drawOutage(name string, most time.Duration) outage {
	if most == 0 {
		return outage{}
	}
	d := w.dice("outage of " + name)
	from := historyStart.Add(d.between(0, faultsFor))
	to := from.Add(d.between(0, most))
	if calm := historyStart.Add(faultsFor); to.After(calm) {
		to = calm
	}
	return outage{from, to}
}

// covers reports whether it is an outage at that time.
func (o outage) covers(at time.Time) bool { return !at.Before(o.from) && at.Before(o.to) }
