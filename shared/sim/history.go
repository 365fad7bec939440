package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
)

// contextOfHistory has no deadline: time-outs of a history are of its own time.
var contextOfHistory = context.Background()

// Options say what to leave out of a history, and whether to keep its trace.
type Options struct {
	// Skip are numbers of planned requests that are left out.
	Skip map[int]bool
	// Without are kinds of faults that are turned off.
	Without []string
	// Trace keeps the trace.
	Trace bool
	// Contract is the API's contract, loaded once for all histories.
	Contract *httpapi.Contract

	// suspect is for tests of the simulation itself: it calls a violation what is none.
	suspect func(sent []int) bool
}

// Result is what came of one history.
type Result struct {
	Seed       uint64
	Steps      int
	Requests   int // planned requests that were sent
	Tries      int
	Holds      int
	Parked     int                              // how often a hold was parked
	GivenUp    int                              // events that the stream gave up
	Prompt     int                              // holds that had to end by their due message, and did
	Archived   int                              // holds and reservations
	Audits     int                              // that ran beside the traffic, to their end
	Planted    int                              // corruptions that were planted at the end
	Ends       map[ledger.ReservationStatus]int // reservations by the status in which they ended
	Undecided  int                              // slots whose history porcupine could not decide in its time
	Faults     string
	Violations []Violation
	Trace      string
	Plans      []string // what was planned and not left out
}

// Run plays the history of a seed. The same seed and options give the same result, to
// the byte.
func Run(seed uint64, o Options) Result {
	d := newDice(seed, "history")
	faults := drawFaults(d).without(o.Without)
	load := drawWorkload(d)
	w := newWorld(seed, faults, o.Contract, o.Trace)
	defer w.kernel.stop()
	w.trace.add("seed %d, %s", seed, faults)
	w.define(load.slots)
	r := Result{Seed: seed, Faults: faults.String()}
	end := historyStart.Add(workloadFor + settleFor)
	w.startTicks(historyStart, end)
	w.startReconciler(historyStart, end)
	w.startAudits(historyStart, end)
	w.kernel.at(historyStart.Add(faultsFor), w.settle)
	for _, p := range load.plans {
		if !o.Skip[p.number] {
			r.Plans = append(r.Plans, p.String())
			w.schedule(p)
		}
	}
	w.kernel.run(end)
	w.lastTries()
	w.lastLooks()
	w.close()
	if load.archived {
		w.archive(faults)
		w.close()
	}
	if load.late {
		end = historyStart.Add(lateRepeatAfter + 2*time.Minute + settleFor)
		w.startTicks(historyStart.Add(lateRepeatAfter), end)
		w.startReconciler(historyStart.Add(lateRepeatAfter), end)
		w.kernel.spawn(historyStart.Add(lateRepeatAfter-time.Minute), "time to live", w.dice("time to live"), func(t *task) {
			for _, key := range w.database.expired(w.kernel.now) {
				if t.dice.chance(faults.Purge) {
					w.database.purge(t, key)
				}
			}
		})
		w.kernel.run(end)
		w.close()
	}
	if load.archived {
		w.purgeAndRestore()
	}
	r.Undecided = w.linearize()
	w.plant()
	if o.suspect != nil && o.suspect(w.sent()) {
		w.violated("suspect", "the test wanted a violation")
	}
	r.Steps, r.Requests, r.Holds, r.Violations = w.kernel.steps, len(w.requests), len(w.books.holds), w.violations
	r.Ends = map[ledger.ReservationStatus]int{}
	for _, book := range w.books.reservations {
		r.Ends[book.now.Status]++
	}
	r.Parked, r.GivenUp, r.Prompt, r.Archived = w.books.seen()
	r.Audits, r.Planted = w.audits, w.planted
	for _, sent := range w.requests {
		r.Tries += len(sent.tries)
	}
	if o.Trace {
		r.Trace = w.trace.String()
	}
	return r
}

// sent are the numbers of the planned requests that were sent.
func (w *world) sent() []int {
	var numbers []int
	for _, r := range w.requests {
		numbers = append(numbers, r.number)
	}
	return numbers
}

// schedule puts a planned request on the agenda: at its time, or, for one that aims at
// the end of a hold, when that is known.
func (w *world) schedule(p plan) {
	name := fmt.Sprintf("request %d", p.number)
	play := func(t *task) { w.play(t, p) }
	if p.border == "" {
		w.kernel.spawn(historyStart.Add(p.at), name, w.dice(name), play)
		return
	}
	var aim func()
	aim = func() {
		at, known := w.borderOf(p)
		switch {
		case known && !at.After(w.kernel.now):
			w.kernel.spawn(w.kernel.now, name, w.dice(name), play)
		case known:
			w.kernel.at(at, aim) // by then it may have moved
		case w.kernel.now.Before(historyStart.Add(workloadFor)):
			w.kernel.after(time.Second, aim)
		}
	}
	w.kernel.at(historyStart.Add(time.Second), aim)
}

// borderOf is when a request comes that aims at a border, as far as that is known now.
func (w *world) borderOf(p plan) (time.Time, bool) {
	hold := w.books.holds[w.holdOf(p.hold)]
	if hold == nil {
		return time.Time{}, false
	}
	switch p.border {
	case borderExpiry:
		return hold.now.ExpiresAt.Add(p.fromBorder), true
	case borderRelease:
		return hold.now.ReleaseAt.Add(p.fromBorder), true
	default:
	}
	book := w.books.reservations[hold.now.Reservation]
	if book == nil {
		return time.Time{}, false
	}
	for _, m := range book.history {
		if p.border == borderSale && m.was.SoldHold != "" || p.border == borderCapture && m.was.Status == ledger.ReservationCaptured {
			return m.at.Add(p.fromBorder), true
		}
	}
	return time.Time{}, false
}

// close checks what must be true once everything has come to rest.
func (w *world) close() {
	for _, id := range sortedKeys(w.books.holds) {
		hold := w.books.holds[id]
		due := hold.now.ReleaseAt
		if hold.now.AttemptOpen != 0 {
			due = due.Add(hold.now.Terms.UnknownFor)
		}
		due = maxTime(due, hold.parkedUntil)
		if hold.now.Status == ledger.StatusHeld && w.kernel.now.Sub(due) > endsWithin {
			w.violated("P9", "%s was due at %s and is still HELD", id, due)
		}
	}
	w.books.closeReservations()
	for _, url := range sortedKeys(w.queues) {
		w.queues[url].close()
	}
	for _, id := range sortedKeys(w.books.events) {
		e := w.books.events[id]
		if e.delivered == 0 || !e.marked {
			w.violated("P7", "event %s was delivered %d times, marked as published: %t", id, e.delivered, e.marked)
		}
	}
	w.closeAudit()
	for _, r := range w.requests {
		for _, t := range r.tries {
			// Every refusal says that nothing was written, but an unknown outcome, and that the
			// same request is under way.
			if t.answered && t.answer.Code != "" && t.answer.Code != ledger.CodeOutcomeUnknown && t.answer.Code != ledger.CodeKeyInProgress && w.books.writers[t.task] {
				w.violated("answers", "%s was told %s by %s, which has written something", r.name, t.answer.Code, t.task)
			}
		}
		last := r.tries[len(r.tries)-1]
		if w.calmSince.Before(last.begin.Add(-gatewayGivesUpAfter)) && (!last.answered || last.status >= 500) {
			w.violated("liveness", "%s was never answered", r.name)
		}
	}
}

// Validate refuses options that name what there is not.
func (o Options) Validate() error {
	for _, name := range o.Without {
		if !slices.ContainsFunc(faultNames, func(kind faultKind) bool { return kind.name == name }) {
			return fmt.Errorf("there is no kind of fault %q", name)
		}
	}
	for number := range o.Skip {
		if number < 0 || number >= PlansOfOneHistory {
			return fmt.Errorf("there is no request %d; they are 0 to %d", number, PlansOfOneHistory-1)
		}
	}
	return nil
}
