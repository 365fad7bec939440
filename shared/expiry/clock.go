package expiry

import (
	"errors"
	"time"

	"holdfast/shared/skew"
)

// Skew knows how far this machine's clock is off. A skew.Gauge is one. It learns that from
// the answers to reads, so it is asked after the first of them.
type Skew interface {
	// Skew is this clock minus the provider's, as far as it is certain.
	Skew() time.Duration
	// Known reports whether enough is known to say anything.
	Known() bool
	// Unreliable reports whether the clock is so wrong that nothing may be ended by it. It is
	// false while nothing is known.
	Unreliable() bool
}

var _ Skew = (*skew.Gauge)(nil)

// ErrClockUnreliable is the error of a sweep or a batch that has ended nothing, or nothing
// more, because this machine's clock is wrong: it could end a promise that still stands.
var ErrClockUnreliable = errors.New("clock_unreliable: this machine's clock is too far off to end a hold by it")
