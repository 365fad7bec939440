package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

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
				w.tick(name, w.sweep)
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

// sweep invokes the expiry function. A call that fails is not tried again: the next tick
// does its work.
func (w *world) sweep(name string) {
	w.trace.add("%s", name)
	w.sweeper.invoke(name, func() {
		if _, err := w.sweeper.expiry.Handle(context.Background(), json.RawMessage(`{}`)); err != nil {
			w.trace.add("%s: %v", name, err)
		}
	}, func(completed bool) { w.trace.add("%s ended, completed: %t", name, completed) })
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
