package expirytest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"holdfast/shared/expiry"
	"holdfast/shared/ledger"
	"holdfast/shared/system/systemtest"
)

const (
	// turnsMax bounds the turns of a crew, so that one which never ends fails.
	turnsMax = 2_000_000
	// turnsBetweenKills is how many turns there are between two kills, on average.
	turnsBetweenKills = 250
	// startsWithin bounds the time from one run of a sweeper to its next.
	startsWithin = 10 * time.Second
)

// Crew is sweepers that run at the same time and are killed again and again. They take
// turns, of one half of a call each, in an order that follows from the seed; so a kill
// falls before a call or after it, when its answer is lost. A killed sweeper begins anew,
// under another name.
type Crew struct {
	tb     testing.TB
	random *rand.Rand
	clock  *systemtest.Clock
	kills  int
	runs   int
}

// NewCrew returns a crew that is killed so many times. It is driven by the clock of its
// sweepers, which moves when one of them sleeps or begins.
func NewCrew(tb testing.TB, seed uint64, clock *systemtest.Clock, kills int) *Crew {
	return &Crew{tb: tb, random: rand.New(rand.NewPCG(seed, seed)), clock: clock, kills: kills} //nolint:gosec // repeatable on purpose
}

// Gate is where one sweeper waits for its turn. Every call that its sweep makes has to go
// through it, see Pass.
type Gate struct {
	resume  chan bool // true kills
	yielded chan struct{}
	killed  bool
	over    bool
	idle    bool // its last run came to its end and found nothing to do
}

// Pass makes a call in two turns: one until before the call, and one from its answer on.
func Pass[T any](g *Gate, call func() T) T {
	g.wait()
	answer := call()
	g.wait()
	return answer
}

// wait ends the turn. A sweeper that is killed ends here, as it does in a crash: no code
// of it sees an error or a panic.
func (g *Gate) wait() {
	if !g.killed {
		g.yielded <- struct{}{}
		g.killed = <-g.resume
	}
	if g.killed {
		runtime.Goexit()
	}
}

// Work lets so many sweepers run, whose sweeps open makes, until all kills are made and
// nothing is left to do.
func (c *Crew) Work(sweepers int, open func(gate *Gate) *expiry.Sweep) {
	c.tb.Helper()
	gates := make([]*Gate, sweepers)
	for i := range gates {
		gates[i] = c.start(open)
	}
	for range turnsMax {
		busy := false
		for _, g := range gates {
			busy = busy || !g.idle || !g.over
		}
		if !busy {
			if c.kills > 0 {
				c.tb.Errorf("everything was done with %d kills left", c.kills)
			}
			return
		}
		i := c.random.IntN(sweepers)
		if gates[i].over {
			gates[i] = c.start(open)
			continue
		}
		kill := c.kills > 0 && c.random.IntN(turnsBetweenKills) == 0
		if kill {
			c.kills--
		}
		gates[i].resume <- kill
		<-gates[i].yielded
	}
	c.tb.Fatalf("the crew has not come to an end after %d turns", turnsMax)
}

// start begins a run, which waits for its first turn.
func (c *Crew) start(open func(gate *Gate) *expiry.Sweep) *Gate {
	g := &Gate{resume: make(chan bool), yielded: make(chan struct{})}
	c.clock.Advance(time.Duration(c.random.Int64N(int64(startsWithin))))
	c.runs++
	name := ledger.RequestID(fmt.Sprintf("request_%d", c.runs))
	go func() {
		defer func() {
			g.over = true
			g.yielded <- struct{}{}
		}()
		g.wait()
		report, err := open(g).Run(context.Background(), name)
		if err != nil || report.Failed+report.Parked > 0 {
			c.tb.Errorf("%s: %+v, %v", name, report, err)
		}
		g.idle = report.Released+report.AlreadyEnded+report.LeftToOthers == 0 && !report.Truncated
	}()
	<-g.yielded
	return g
}
