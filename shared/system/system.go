// Package system is the machine's time and chance, behind two small interfaces.
//
// The problem it solves: a promise that ends at a millisecond can only be tested if the
// test owns the clock, and a race can only be replayed if the test owns the dice. So
// nothing in Holdfast asks the machine directly: whoever needs the time, a pause or a
// random number is handed a Clock or a Random. Functions hand in the real ones below;
// tests and the simulation hand in their own.
package system

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"
)

// Clock tells the time and waits.
type Clock interface {
	// Now is the present moment.
	Now() time.Time
	// Sleep waits for d, or until ctx ends, whose error it then returns.
	Sleep(ctx context.Context, d time.Duration) error
}

// Random draws random bits.
type Random interface {
	// Bits128 is enough for an id that is never drawn twice.
	Bits128() [16]byte
	// Below is a number in [0, n). It panics unless n > 0.
	Below(n int64) int64
}

// Millisecond is now in UTC and whole milliseconds: the precision of every time that
// the ledger stores, so that what is compared is what is kept.
func Millisecond(c Clock) time.Time { return c.Now().UTC().Truncate(time.Millisecond) }

// RealClock is the machine's clock.
type RealClock struct{}

// Now is the wall clock's time.
func (RealClock) Now() time.Time { return time.Now() }

// Sleep waits for d or until ctx ends.
func (RealClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RealRandom draws from the operating system. crypto/rand never fails on the platforms
// that Go supports: it ends the program instead.
type RealRandom struct{}

// Bits128 draws 128 bits.
func (RealRandom) Bits128() [16]byte {
	var bits [16]byte
	rand.Read(bits[:])
	return bits
}

// Below draws a number in [0, n). The bias of the remainder is below 2^-32 for every
// bound that is used here.
func (r RealRandom) Below(n int64) int64 {
	bits := r.Bits128()
	return int64(binary.BigEndian.Uint64(bits[:8]) % uint64(n))
}

// Parallel does several things at the same time.
type Parallel interface {
	// Do calls step with 0 to n-1, at most width of them at the same time, and returns when
	// all have returned. A step must not panic. width below 1 counts as 1.
	Do(n, width int, step func(i int))
}

// RealParallel uses goroutines.
type RealParallel struct{}

// Do calls every step, at most width of them at the same time.
func (RealParallel) Do(n, width int, step func(i int)) {
	width = max(1, width)
	slots := make(chan struct{}, width)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			step(i)
		})
	}
	all.Wait()
}
