package sim

import (
	"fmt"

	"holdfast/shared/system"
)

// parallel is the system.Parallel of the functions: it does things at the same time, as
// far as a history has a same time. Each lane of it is a task beside the one that called,
// which waits until all lanes have ended. What a lane writes counts as its caller's, and
// when the process ends, its lanes end with it.
type parallel struct{ kernel *kernel }

var _ system.Parallel = parallel{}

// Do calls every step, at most width of them at the same time. Each step draws from dice
// of its own, so its course does not depend on the lane that takes it.
func (p parallel) Do(n, width int, step func(i int)) {
	width = min(width, n)
	if width <= 1 {
		for i := range n {
			step(i)
		}
		return
	}
	caller := p.kernel.running
	caller.exitIfKilled()
	seed, next, busy := caller.dice.Uint64(), 0, width
	wake := caller.waker()
	caller.lanes = make([]*task, width)
	for at := range caller.lanes {
		caller.lanes[at] = p.kernel.spawn(p.kernel.now, caller.name, nil, func(lane *task) {
			for next < n {
				i := next
				next++
				lane.dice = newDice(seed, fmt.Sprintf("step %d", i))
				step(i)
			}
			if busy--; busy == 0 {
				// A task must not resume another.
				p.kernel.after(0, wake)
			}
		})
	}
	caller.pause()
	caller.lanes = nil
}
