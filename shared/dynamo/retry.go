package dynamo

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	// triesMax bounds how often one call is tried.
	triesMax = 10
	// retryBudget bounds the time that one call may spend on tries and pauses together.
	// It is below topology.DatabaseBudget, so a request can still read once more.
	retryBudget = 5 * time.Second
	// conflictPause is the first bound of the random pause after a conflict. A
	// transaction takes a few milliseconds, so the first pause is about one of them.
	conflictPause = 10 * time.Millisecond
	// throttlePause is the least pause after a throttle, and doubles each time.
	throttlePause = 50 * time.Millisecond
	// pauseMax bounds every pause.
	pauseMax = time.Second
)

// retry counts the tries of one call and paces them.
type retry struct {
	store   *Store
	started time.Time
	tries   int
}

func (s *Store) newRetry() *retry { return &retry{store: s, started: s.clock.Now()} }

// again waits before the next try: a random time after a conflict (full jitter, so that
// the two do not meet again), and at least throttlePause after a throttle. It reports
// false when the tries, the budget or ctx are used up.
func (r *retry) again(ctx context.Context, throttled bool) bool {
	r.tries++
	if r.tries >= triesMax {
		return false
	}
	var pause time.Duration
	if throttled {
		pause = min(throttlePause<<(r.tries-1), pauseMax)
		pause += time.Duration(r.store.random.Below(int64(throttlePause)))
	} else {
		pause = time.Duration(r.store.random.Below(int64(min(conflictPause<<(r.tries-1), pauseMax))))
	}
	if r.store.clock.Now().Add(pause).Sub(r.started) > retryBudget || r.store.clock.Sleep(ctx, pause) != nil {
		return false
	}
	if !throttled {
		r.store.counter.Conflicted()
	}
	return true
}

// update makes a single write of one item, and again while it meets a transaction on it.
// The SDK's own retries see to throttles, and not to that. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
func (s *Store) update(ctx context.Context, in *dynamodb.UpdateItemInput) error {
	pace := s.newRetry()
	for {
		_, err := s.client.UpdateItem(ctx, in)
		if met := (*types.TransactionConflictException)(nil); !errors.As(err, &met) || !pace.again(ctx, false) {
			return err
		}
	}
}
