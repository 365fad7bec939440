package httpapi

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
)

// holdTallyEvery is how often one process reports how many holds were asked for.
//
// A line for each create would cost more than it tells: at 1,000 creates a second it is
// some 30 GB of log a day, and the numbers are only ever read as sums of minutes. So a
// process adds up and reports with the first create, and then with the first request after
// this time. What it has added up since is lost when Lambda ends it: a share of a few
// seconds in its life of hours, and the same share of both numbers, so their ratio, which
// is what they are for, stays right. Nothing that must be exact may be counted this way.
const holdTallyEvery = 10 * time.Second

// holdTally adds up what became of the creates of one process. It is safe for concurrent
// use.
type holdTally struct {
	mutex           sync.Mutex
	requests, short int
	last            time.Time // of the last report
}

// add counts one create.
func (t *holdTally) add(short bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.requests++
	if short {
		t.short++
	}
}

// due gives what was counted since the last report, and begins anew, if there is something
// to report at now and it is time. A clock that was set back does not silence it.
func (t *holdTally) due(now time.Time) (requests, short int, due bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	passed := now.Sub(t.last)
	if t.requests == 0 || (!t.last.IsZero() && passed >= 0 && passed < holdTallyEvery) {
		return 0, 0, false
	}
	requests, short = t.requests, t.short
	t.requests, t.short, t.last = 0, 0, now
	return requests, short, true
}

// createDecided reports whether the exchange is a create that was decided on: made, or
// refused for what there is and what the caller may have. What was made before and is only
// answered again, what could not be understood, and what met a fault says nothing about
// whether a buyer found what they wanted.
func createDecided(x *exchange) bool {
	if x.method != http.MethodPost || x.route != "/v1/holds" || x.replayed {
		return false
	}
	switch x.code {
	case "":
		return x.status == http.StatusCreated
	case ledger.CodeInsufficientStock, ledger.CodeSlotClosed, ledger.CodePriceChanged, ledger.CodeQuantityOverLimit,
		ledger.CodeLimitReached, ledger.CodeCoolingDown, ledger.CodeSaleNotOpen, ledger.CodeSaleOver:
		return true
	default:
		return false
	}
}

// reportHolds counts the exchange if it is a create, and reports what was counted if it is
// time.
func (a *API) reportHolds(x *exchange) error {
	if a.metrics == nil {
		return nil
	}
	if createDecided(x) {
		a.holdTally.add(x.code == ledger.CodeInsufficientStock)
	}
	requests, short, due := a.holdTally.due(system.Millisecond(a.clock))
	if !due {
		return nil
	}
	if err := a.metrics.Emit(nil, telemetry.Count(telemetry.MetricHoldRequests, requests),
		telemetry.Count(telemetry.MetricHoldRequestsShort, short)); err != nil {
		return fmt.Errorf("report how many holds were asked for: %w", err)
	}
	return nil
}
