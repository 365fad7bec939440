package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/shared/topology"
)

// work does n steps of a drawn length through parallel, as one call of a function, and
// returns what happened in which order.
func work(t *testing.T, seed uint64, n, width int, during func(i *instance, step int)) (order []string, most int, completed bool) {
	t.Helper()
	w := newWorld(seed, Faults{}, nil, false)
	defer w.kernel.stop()
	open := 0
	i := w.newInstance("expiry", topology.FunctionExpiry)
	i.invoke("work", func() {
		parallel{w.kernel}.Do(n, width, func(step int) {
			open++
			most = max(most, open)
			by := w.kernel.running
			order = append(order, fmt.Sprintf("%d by %s at %s", step, by.name, w.kernel.now.Sub(historyStart)))
			by.wait(by.dice.between(0, time.Second))
			during(i, step)
			open--
		})
		order = append(order, "end at "+w.kernel.now.Sub(historyStart).String())
	}, func(done bool) { completed = done })
	w.kernel.run(historyStart.Add(time.Minute))
	return order, most, completed
}

func nothing(*instance, int) {}

// All steps are done, never more at once than was asked for, all as the caller, and the
// caller goes on when all are done. The seed decides the order.
func TestParallelDoesAllSteps(t *testing.T) {
	for width, want := range map[int]int{-1: 1, 1: 1, 3: 3, 20: 7} {
		order, most, completed := work(t, 5, 7, width, nothing)
		if len(order) != 8 || most != want || !completed {
			t.Errorf("width %d: %v, %d at once, completed: %t", width, order, most, completed)
		}
		if again, _, _ := work(t, 5, 7, width, nothing); !slices.Equal(order, again) {
			t.Errorf("width %d: the same seed gave %v and %v", width, order, again)
		}
	}
	if order, _, completed := work(t, 5, 0, 4, nothing); len(order) != 1 || !completed {
		t.Errorf("no steps: %v, completed: %t", order, completed)
	}
	three, _, _ := work(t, 5, 7, 3, nothing)
	if other, _, _ := work(t, 6, 7, 3, nothing); slices.Equal(three, other) {
		t.Error("two seeds gave one order")
	}
}

// A process that ends ends all that it does, wherever that is.
func TestParallelEndsWithItsProcess(t *testing.T) {
	order, _, completed := work(t, 5, 9, 3, func(i *instance, step int) {
		if step == 4 {
			i.crash()
			i.world.kernel.running.exitIfKilled()
		}
	})
	begun := func(step string) bool {
		return slices.ContainsFunc(order, func(line string) bool { return strings.HasPrefix(line, step) })
	}
	if completed || !begun("4 ") || begun("8 ") || begun("end") {
		t.Errorf("%v, completed: %t", order, completed)
	}
}
