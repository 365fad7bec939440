package telemetry

import (
	"sync"
	"time"
)

// BacklogOver is from which lag on work that waits is called a backlog: every worker looks
// once a minute at the least, so what is younger waits for nothing but its turn.
const BacklogOver = time.Minute

// Recovery measures how long backlogs take, by the lags that one process sees. Its zero value
// has seen none. It is safe for concurrent use.
//
// It is kept in the process and not in the table, because a number for people is not worth a
// write in each tick. So a process that ends before the backlog does never tells of it, and
// one that began later reckons from the oldest thing that it found waiting: the end of every
// backlog is told by whoever is there, and its length never too long.
type Recovery struct {
	mutex sync.Mutex
	since time.Time // when the backlog began; zero while there is none
}

// Observe takes in a lag that was seen at now. When it ends a backlog, because it is at most
// over, Observe returns how long that took and true.
func (r *Recovery) Observe(now time.Time, lag, over time.Duration) (time.Duration, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	switch began := now.Add(-lag); {
	case lag > BacklogOver && (r.since.IsZero() || began.Before(r.since)):
		r.since = began
	case lag <= over && !r.since.IsZero():
		took := now.Sub(r.since)
		r.since = time.Time{}
		// A clock that was set back has made nonsense of it.
		return took, took > 0
	}
	return 0, false
}
