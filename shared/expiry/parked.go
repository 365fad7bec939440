package expiry

import (
	"context"
	"time"

	"holdfast/shared/ledger"
)

const (
	// FailuresMax is how many tries to end a hold may fail before it is parked: it is then
	// tried more and more seldom, so that it takes no time from others, and people are told.
	FailuresMax = 3
	// BackOffMin is the time from the failure that parks a hold to its next try. It doubles
	// with every failure.
	BackOffMin = time.Minute
	// BackOffMax bounds that time, so that a repaired hold ends soon without anybody's help.
	BackOffMax = 15 * time.Minute
)

// nextTry says when a hold is tried again that could not be ended so many times, and
// whether it is parked until then. One that is not stays where it is, for the next sweep.
func nextTry(failures int, now time.Time) (at time.Time, parked bool) {
	if failures < FailuresMax {
		return time.Time{}, false
	}
	backOff := BackOffMin
	for range failures - FailuresMax {
		if backOff *= 2; backOff >= BackOffMax {
			return now.Add(BackOffMax), true
		}
	}
	return now.Add(backOff), true
}

// Parking keeps what is known of holds that could not be ended. A dynamo.Store is one. It
// changes no promise, so none of it is a Change. Every method may be repeated. Each write
// is made only while the due index lists the hold as the entry says, and reports whether
// it was: an end, a payment or another worker may have been faster. It works on a hold that
// can't be read too.
type Parking interface {
	// Failures is how often ending the hold has failed since its last step. It is zero for a
	// hold that does not exist.
	Failures(ctx context.Context, id ledger.HoldID) (int, error)
	// CountFailure notes how often ending the hold has failed.
	CountFailure(ctx context.Context, entry ledger.DueHold, failures int) (bool, error)
	// Park notes the same, and takes the entry from the due holds to the parked ones, or
	// moves it among those, until tryAt.
	Park(ctx context.Context, entry ledger.DueHold, failures int, tryAt time.Time) (bool, error)
	// Unpark puts a parked entry back to the due holds, at its DueAt and without failures.
	Unpark(ctx context.Context, entry ledger.DueHold) (bool, error)
	// Parked lists the parked holds of one shard, those that are tried next first, as entries
	// whose DueAt is not known.
	Parked(ctx context.Context, shard int, page ledger.Page) ([]ledger.DueHold, ledger.Cursor, error)
}
