package sim

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// dice draws everything that a history leaves to chance. Each task has dice of its own,
// named after what it does: taking one task out of a history leaves the draws of all
// others as they were, and that is what makes a failing history easy to shrink.
type dice struct{ *rand.Rand }

// newDice returns the dice of this name under the seed.
func newDice(seed uint64, name string) *dice {
	h := fnv.New64a()
	h.Write([]byte(name))
	return &dice{rand.New(rand.NewPCG(seed, h.Sum64()))} //nolint:gosec // repeatable on purpose
}

// chance is true in one of n draws. It is never true for n = 0.
func (d *dice) chance(n int) bool { return n > 0 && d.IntN(n) == 0 }

// between draws a duration in [low, high], in whole microseconds.
func (d *dice) between(low, high time.Duration) time.Duration {
	return low + time.Duration(d.Int64N(int64((high-low)/time.Microsecond)+1))*time.Microsecond
}

// taskRandom is the system.Random of the functions: it draws from the dice of whichever
// task runs.
type taskRandom struct{ kernel *kernel }

// Bits128 draws 128 bits.
func (r taskRandom) Bits128() [16]byte {
	d := r.kernel.running.dice
	var bits [16]byte
	binary.BigEndian.PutUint64(bits[:8], d.Uint64())
	binary.BigEndian.PutUint64(bits[8:], d.Uint64())
	return bits
}

// Below draws a number in [0, n).
func (r taskRandom) Below(n int64) int64 { return r.kernel.running.dice.Int64N(n) }

// pick returns one of the choices.
func pick[T any](d *dice, choices []T) T { return choices[d.IntN(len(choices))] }
