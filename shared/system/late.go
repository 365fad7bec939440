package system

import (
	"context"
	"time"
)

// StopAt is when a run that begins now begins nothing more: after longest, or margin
// before the deadline of ctx, whichever comes first.
func StopAt(ctx context.Context, clock Clock, longest, margin time.Duration) time.Time {
	stopAt := clock.Now().Add(longest)
	if deadline, bounded := ctx.Deadline(); bounded && deadline.Add(-margin).Before(stopAt) {
		stopAt = deadline.Add(-margin)
	}
	return stopAt
}

// Late reports whether a run that stops at stopAt may begin nothing more: the time has
// come, or ctx has ended.
func Late(ctx context.Context, clock Clock, stopAt time.Time) bool {
	return ctx.Err() != nil || !clock.Now().Before(stopAt)
}
