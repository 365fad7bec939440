package sim

import (
	"fmt"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/saga"
)

// tickEvery is the rate of the Scheduler, as the topology has it.
const tickEvery = time.Minute

// startTicks lets the Scheduler tick from one time to another: at its rate, but late,
// twice, or not at all.
func (w *world) startTicks(from, to time.Time) {
	for at := from.Add(tickEvery); !at.After(to); at = at.Add(tickEvery) {
		name := fmt.Sprintf("tick %d", at.Sub(historyStart)/tickEvery)
		w.kernel.at(at, func() {
			if w.sweepOutage.covers(at) {
				w.trace.add("%s does not reach the sweep", name)
			} else {
				w.tick(name, w.tickExpiry)
			}
			w.tick(name+" of the saga", w.tickSaga)
		})
	}
}

// tick starts a worker at a tick of its own schedule.
func (w *world) tick(name string, start func(name string)) {
	d := w.dice("chance of " + name)
	if d.chance(w.faults.TickSkipped) {
		w.trace.add("%s is skipped", name)
		return
	}
	w.kernel.after(d.between(0, w.faults.TickLateMax), func() { start(name) })
	if d.chance(w.faults.TickDoubled) {
		w.kernel.after(d.between(0, tickEvery), func() { start(name + " again") })
	}
}

// lastTries lets the sweep tick on while a hold is parked that could not be ended in time.
// The ticks before its next try do nothing about it, so they are left out.
func (w *world) lastTries() {
	until := w.kernel.now.Add(parkedForMax)
	for {
		next := time.Time{}
		for _, book := range w.books.holds {
			if book.now.Status == ledger.StatusHeld && !book.parkedUntil.IsZero() && (next.IsZero() || book.parkedUntil.Before(next)) {
				next = book.parkedUntil
			}
		}
		if next.IsZero() || w.kernel.now.After(until) {
			return
		}
		at := maxTime(next, w.kernel.now).Truncate(tickEvery).Add(tickEvery)
		w.startTicks(at.Add(-tickEvery), at)
		w.kernel.run(at.Add(tickEvery - time.Millisecond))
	}
}

// lastLooks lets the saga tick on while there is a reservation that it looks at once more.
// A tick for which nothing is due does nothing, so the many in between are left out.
func (w *world) lastLooks() {
	until := w.kernel.now.Add(saga.LastLookAfter)
	for {
		next := until
		for _, book := range w.books.reservations {
			if at := book.now.LookAt; !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		if !next.Before(until) || !w.kernel.now.Before(until) {
			return // nothing is due any more, or what is due stays so
		}
		at := maxTime(next, w.kernel.now).Truncate(tickEvery).Add(tickEvery)
		w.kernel.at(at, func() { w.tickSaga(fmt.Sprintf("tick %d of the saga", at.Sub(historyStart)/tickEvery)) })
		w.kernel.run(at.Add(tickEvery - time.Millisecond))
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
