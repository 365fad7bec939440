package httpapi

import (
	"context"
	"fmt"
	"sync"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/skew"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

const (
	// clockRetryAfter is what a machine whose clock is unreliable asks a client to wait.
	// The next request will mostly reach another machine.
	clockRetryAfter = 5 * time.Second
	// skewReportEvery is how often one process reports that its clock is off. Every
	// request would say the same.
	skewReportEvery = time.Minute
)

// refuseByClock returns codeClockUnreliable when this machine's clock is too wrong to
// make a promise by: a hold would end minutes from when it says. It is nil otherwise, and
// for an API without a gauge.
//
// What is known comes from answers of the database. Where that is too little, and before
// a refusal, slot is read to learn more: a machine that refuses everything asks nothing
// any more, and would never notice that its clock was put right. What is read is not
// looked at, and no time is corrected by what is learned.
func (a *API) refuseByClock(ctx context.Context, slot ledger.SlotID) error {
	if a.gauge == nil {
		return nil
	}
	reads := 0
	for ; reads < skew.Observations && !a.gauge.Known(); reads++ {
		if err := a.observeClock(ctx, slot); err != nil {
			return err
		}
	}
	if reads == 0 && a.gauge.Unreliable() {
		if err := a.observeClock(ctx, slot); err != nil {
			return err
		}
	}
	if off := a.gauge.Skew(); off.Abs() > skew.UnreliableOver {
		return &ledger.Error{
			Code: codeClockUnreliable, RetryAfter: clockRetryAfter,
			Message: "the clock of the machine that got this request is wrong, so nothing was held; ask again after Retry-After, with the same Idempotency-Key",
			Cause:   fmt.Errorf("the clock is off by %s at least", off),
		}
	}
	return nil
}

// observeClock makes one read whose answer the gauge sees.
func (a *API) observeClock(ctx context.Context, slot ledger.SlotID) error {
	if _, err := a.store.Slots(ctx, []ledger.SlotID{slot}); err != nil {
		return fmt.Errorf("ask the database for its time: %w", err)
	}
	return nil
}

// skewReport is when a process last told that its clock is off. It is safe for concurrent
// use.
type skewReport struct {
	mutex sync.Mutex
	last  time.Time
}

// due reports whether to tell it at now, at most once in skewReportEvery. A clock that was
// set back is told at once.
func (s *skewReport) due(now time.Time) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if passed := now.Sub(s.last); !s.last.IsZero() && passed >= 0 && passed < skewReportEvery {
		return false
	}
	s.last = now
	return true
}

// reportSkew tells how far the clock is off, when it is notable.
func (a *API) reportSkew(requestID ledger.RequestID) error {
	if a.gauge == nil || a.metrics == nil || !a.gauge.Notable() || !a.skewReport.due(system.Millisecond(a.clock)) {
		return nil
	}
	err := a.metrics.Emit(telemetry.Properties{telemetry.KeyRequestID: string(requestID)},
		telemetry.Measurement{Metric: telemetry.MetricClockSkewSecondsMax, Value: a.gauge.Skew().Abs().Seconds()})
	if err != nil {
		return fmt.Errorf("report the clock's skew: %w", err)
	}
	return nil
}
