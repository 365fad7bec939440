package expiry

import (
	"context"
	"log/slog"
	"time"

	"holdfast/shared/lease"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const (
	// LeaseFor is how long a sweep has a shard before it must ask again. It is what a crash
	// costs: for so long nobody else takes the shard.
	LeaseFor = 30 * time.Second
	// leaseCallFor bounds one call about a lease. It may cost little, because a sweep does
	// without.
	leaseCallFor = 2 * time.Second
	// leaseReturnFor bounds the return of all leases together. With StepFor it is shorter
	// than MarginBeforeDeadline.
	leaseReturnFor = 500 * time.Millisecond
)

// shardLeases are the shards that one sweep has leased, so that two sweeps do not race for
// the same holds. They save work and no more: when the leases can't be kept, the sweep
// goes on without them.
type shardLeases struct {
	leases lease.Leases
	clock  system.Clock
	logger *slog.Logger
	worker lease.Worker

	held   [ledger.DueShards]*lease.Lease // nil for a shard that is not leased by this sweep
	others [ledger.DueShards]time.Time    // until when another worker has it, as far as is known
	lost   [ledger.DueShards]bool         // another worker has taken it while this one worked on it
	broken bool                           // the leases can't be kept
}

// take takes up to most of the shards, in their order, and passes over those that others
// have.
func (l *shardLeases) take(ctx context.Context, shards []int, most int) []int {
	var taken []int
	for _, shard := range shards {
		if len(taken) == most {
			break
		}
		if l.takeOne(ctx, shard) {
			taken = append(taken, shard)
		}
	}
	return taken
}

func (l *shardLeases) takeOne(ctx context.Context, shard int) bool {
	now := l.clock.Now()
	if !l.broken && l.others[shard].After(now) {
		return false
	}
	if l.broken {
		return true
	}
	call, cancel := context.WithTimeout(ctx, leaseCallFor)
	defer cancel()
	got, taken, err := l.leases.TakeLease(call, lease.KindExpiry, shard, l.worker, now, now.Add(LeaseFor))
	if err != nil {
		l.goWithout(ctx, err)
		return true
	}
	l.lost[shard] = false
	if !taken {
		l.others[shard] = got.Until
		return false
	}
	l.held[shard] = &got
	return true
}

// renew makes the leases of the shards last longer when half of their time is over. A
// shard that another worker has taken is lost.
func (l *shardLeases) renew(ctx context.Context, shards []int) {
	for _, shard := range shards {
		held := l.held[shard]
		now := l.clock.Now()
		if l.broken || held == nil || held.Until.Sub(now) > LeaseFor/2 {
			continue
		}
		renewed, still, err := l.renewOne(ctx, *held, now.Add(LeaseFor))
		switch {
		case err != nil:
			l.goWithout(ctx, err)
		case still:
			l.held[shard] = &renewed
		default:
			l.held[shard], l.lost[shard] = nil, true
			l.others[shard] = now.Add(LeaseFor)
		}
	}
}

func (l *shardLeases) renewOne(ctx context.Context, held lease.Lease, until time.Time) (lease.Lease, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseCallFor)
	defer cancel()
	return l.leases.RenewLease(ctx, held, until)
}

// giveBack returns the leases of the shards, also when the time of the sweep is over. What
// can't be returned ends by itself.
func (l *shardLeases) giveBack(ctx context.Context, shards []int) {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, leaseReturnFor)
	defer cancel()
	failed := false
	for _, shard := range shards {
		held := l.held[shard]
		l.held[shard] = nil
		if failed || held == nil {
			continue
		}
		if err := l.leases.ReturnLease(ctx, *held, l.clock.Now()); err != nil {
			l.goWithout(ctx, err)
			failed = true
		}
	}
}

// othersUntil is when the first of the shards that others have is free again, if nothing
// happens to its lease.
func (l *shardLeases) othersUntil(shards []int) (first time.Time, found bool) {
	now := l.clock.Now()
	for _, shard := range shards {
		if until := l.others[shard]; until.After(now) && (!found || until.Before(first)) {
			first, found = until, true
		}
	}
	return first, found
}

// goWithout notes that leases can't be kept. From now on every shard counts as free, since
// a hold that two workers come to ends once all the same.
func (l *shardLeases) goWithout(ctx context.Context, cause error) {
	if !l.broken {
		l.logger.WarnContext(ctx, "the leases of the shards can't be kept; the sweep goes on without them", slog.Any("error", cause))
	}
	l.broken = true
}
