// Package systemtest is a clock and dice that a test owns.
//
// The problem it solves: a test that waits for real time is slow and sometimes wrong,
// and one that draws real random numbers cannot be repeated. The Clock here moves only
// when it is told to, or when somebody sleeps on it; the Random draws the same numbers
// for the same seed.
package systemtest

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"holdfast/shared/system"
)

// Clock is a system.Clock that stands still. It is safe for concurrent use.
type Clock struct {
	mutex  sync.Mutex
	now    time.Time
	sleeps []time.Duration
}

var _ system.Clock = (*Clock)(nil)

// NewClock returns a clock that shows now.
func NewClock(now time.Time) *Clock { return &Clock{now: now} }

// Now is what the clock shows.
func (c *Clock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.now
}

// Set makes the clock show now, which may be earlier than before.
func (c *Clock) Set(now time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = now
}

// Advance moves the clock by d.
func (c *Clock) Advance(d time.Duration) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(d)
}

// Sleep moves the clock by d and returns at once, or returns the error of a ctx that
// has ended.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.now = c.now.Add(d)
	c.sleeps = append(c.sleeps, d)
	return nil
}

// Sleeps are the pauses that were slept, the oldest first.
func (c *Clock) Sleeps() []time.Duration {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return slices.Clone(c.sleeps)
}

// Random is a system.Random that draws the same numbers for the same seed. It is safe
// for concurrent use; callers at the same time share its numbers in no fixed order.
type Random struct {
	mutex  sync.Mutex
	source *rand.Rand
}

var _ system.Random = (*Random)(nil)

// NewRandom returns a Random for seed.
func NewRandom(seed uint64) *Random {
	return &Random{source: rand.New(rand.NewPCG(seed, seed))} //nolint:gosec // repeatable on purpose
}

// Bits128 draws 128 bits.
func (r *Random) Bits128() [16]byte {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	var bits [16]byte
	binary.BigEndian.PutUint64(bits[:8], r.source.Uint64())
	binary.BigEndian.PutUint64(bits[8:], r.source.Uint64())
	return bits
}

// Below draws a number in [0, n).
func (r *Random) Below(n int64) int64 {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.source.Int64N(n)
}
