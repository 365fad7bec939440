package sim

import (
	"container/heap"
	"context"
	"runtime"
	"time"
)

// kernel is the one scheduler of a history. It has a list of what happens when, takes
// the earliest, and lets it run until it waits again. Real time plays no part, and only
// one task runs at any moment, so the order of everything follows from the seed.
type kernel struct {
	now     time.Time
	agenda  agenda
	entries int // how many were ever put on the agenda; breaks ties in their order
	running *task
	alive   map[*task]bool
	yielded chan struct{}
	steps   int
}

func newKernel(start time.Time) *kernel {
	return &kernel{now: start, alive: make(map[*task]bool), yielded: make(chan struct{})}
}

// at puts a callback on the agenda. A time in the past stands for now.
func (k *kernel) at(when time.Time, do func()) {
	if when.Before(k.now) {
		when = k.now
	}
	k.entries++
	heap.Push(&k.agenda, entry{when: when, number: k.entries, do: do})
}

// after puts a callback on the agenda, d from now.
func (k *kernel) after(d time.Duration, do func()) { k.at(k.now.Add(d), do) }

// run takes entries off the agenda until none is left at or before end.
func (k *kernel) run(end time.Time) {
	for len(k.agenda) > 0 && !k.agenda[0].when.After(end) {
		e := heap.Pop(&k.agenda).(entry)
		k.now = e.when
		k.steps++
		e.do()
	}
	k.now = end
}

// stop ends all tasks, so that a history leaves no goroutine behind.
func (k *kernel) stop() {
	for t := range k.alive {
		t.killed = true
		t.end()
	}
}

// task is a piece of real code that runs under the kernel: a goroutine that runs only
// while the kernel waits for it.
type task struct {
	kernel *kernel
	name   string
	dice   *dice
	resume chan struct{}
	pauses int // how often the task has paused; tells a late wake-up from the right one
	paused bool
	killed bool
	done   bool
	// lanes are what works for the task while it waits for them; they end with it.
	lanes []*task
}

// spawn starts a task at a time. The body must wait through the task only.
func (k *kernel) spawn(when time.Time, name string, d *dice, body func(t *task)) *task {
	t := &task{kernel: k, name: name, dice: d, resume: make(chan struct{})}
	k.alive[t] = true
	k.at(when, func() {
		if t.killed {
			return
		}
		go func() {
			defer func() {
				t.done = true
				k.yielded <- struct{}{}
			}()
			<-t.resume
			body(t)
		}()
		t.step()
	})
	return t
}

// step lets the task run until it pauses or ends.
func (t *task) step() {
	if t.kernel.running != nil {
		panic("sim: " + t.kernel.running.name + " resumes " + t.name + "; only the kernel may")
	}
	t.kernel.running = t
	t.resume <- struct{}{}
	<-t.kernel.yielded
	t.kernel.running = nil
	if t.done {
		delete(t.kernel.alive, t)
	}
}

// wait pauses the task for d.
func (t *task) wait(d time.Duration) {
	t.kernel.after(d, t.waker())
	t.pause()
}

// waker returns what ends the task's next pause, and no other one.
func (t *task) waker() func() {
	number := t.pauses + 1
	return func() {
		if t.paused && t.pauses == number {
			t.step()
		}
	}
}

// pause gives control back until the waker that was made before is called. A task that
// was killed ends here. Its deferred calls run, which they would not in a real crash, so
// nothing may listen to a killed task.
func (t *task) pause() {
	t.exitIfKilled()
	t.pauses++
	t.paused = true
	t.kernel.yielded <- struct{}{}
	<-t.resume
	t.paused = false
	t.exitIfKilled()
}

func (t *task) exitIfKilled() {
	if t.killed {
		runtime.Goexit()
	}
}

// kill ends the task where it pauses. It may be called by another task, so the ending
// itself is left to the kernel, which is the only one to resume a task.
func (t *task) kill() {
	if t.done || t.killed {
		return
	}
	t.killed = true
	t.kernel.after(0, t.end)
	for _, lane := range t.lanes {
		lane.kill()
	}
}

// end lets a killed task run to its end.
func (t *task) end() {
	if t.paused {
		t.step()
	}
	delete(t.kernel.alive, t)
}

// entry is something that happens at a time.
type entry struct {
	when   time.Time
	number int
	do     func()
}

// agenda is a heap of entries, the earliest first, and those of one time in the order
// in which they were put there.
type agenda []entry

func (a agenda) Len() int { return len(a) }

func (a agenda) Less(i, j int) bool {
	if a[i].when.Equal(a[j].when) {
		return a[i].number < a[j].number
	}
	return a[i].when.Before(a[j].when)
}

func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push is for package heap.
func (a *agenda) Push(x any) {
	*a = append(*a, x.(entry))
}

// Pop is for package heap.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	*a = (*a)[:last]
	return e
}

// nodeClock is the clock of one function instance: the true time with an error, which
// may change.
type nodeClock struct {
	kernel *kernel
	skew   time.Duration
	// skewMin and skewMax are the smallest and the largest error that it has had.
	skewMin, skewMax time.Duration
}

// set gives the clock another error.
func (c *nodeClock) set(skew time.Duration) {
	c.skew, c.skewMin, c.skewMax = skew, min(c.skewMin, skew), max(c.skewMax, skew)
}

// Now is the time as the instance has it.
func (c *nodeClock) Now() time.Time { return c.kernel.now.Add(c.skew) }

// Sleep pauses the task that asks.
func (c *nodeClock) Sleep(ctx context.Context, d time.Duration) error {
	c.kernel.running.wait(d)
	return ctx.Err()
}
