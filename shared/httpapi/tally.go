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

// tallyEvery is how often one process reports what it has counted.
//
// A line for each request would cost more than it tells: at 1,000 creates a second it is
// some 30 GB of log a day, and the numbers are only ever read as sums of minutes. So a
// process adds up and reports with the first request that counts, and then with the first
// request of any kind after this time. What it has added up since is lost when Lambda ends
// it: up to ten seconds of its traffic, and on a quiet container, which no request comes to
// any more, all that came after its last report. That is a share of a few seconds in a life
// of hours, and the same share of all these numbers, so their ratios, which is what they are
// for, stay right. Nothing that must be exact may be counted this way: how many holds were
// made and sold is told by the ledger's events, and what does not add up by the audit.
const tallyEvery = 10 * time.Second

// tallied are the metrics of one report. All of them are told, also those of which nothing
// was counted: a quotient of a number that is there and one that is missing is nothing.
func tallied() []telemetry.MetricName {
	return []telemetry.MetricName{
		telemetry.MetricHoldRequests, telemetry.MetricHoldRequestsMade, telemetry.MetricHoldRequestsShort,
		telemetry.MetricHoldRequestsClosed, telemetry.MetricHoldRequestsPriceChanged, telemetry.MetricHoldRequestsOverLimit,
		telemetry.MetricHoldRequestsOffSale, telemetry.MetricHoldRequestsFailed,
		telemetry.MetricCommandRequests, telemetry.MetricCommandReplays,
		telemetry.MetricConfirmsLate, telemetry.MetricOversellPrevented,
		telemetry.MetricConflictRetries, telemetry.MetricShardProbes, telemetry.MetricShardSplits,
	}
}

// tally adds up what became of the requests of one process, and how its commands fared. It is
// safe for concurrent use.
type tally struct {
	telemetry.CommandTally
	mutex sync.Mutex
	last  time.Time // of the last report
}

// due reports whether there is something to report at now and it is time, and then takes it
// for reported. A clock that was set back does not silence it.
func (t *tally) due(now time.Time) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	passed := now.Sub(t.last)
	if t.Empty() || (!t.last.IsZero() && passed >= 0 && passed < tallyEvery) {
		return false
	}
	t.last = now
	return true
}

// count adds the exchange.
func (t *tally) count(x *exchange) {
	if x.keyed {
		t.Tally.Add(telemetry.MetricCommandRequests, 1)
	}
	if x.replayed {
		t.Tally.Add(telemetry.MetricCommandReplays, 1)
	}
	switch kind, counted := kindOfCreate(x); {
	case !counted:
	case kind == telemetry.MetricHoldRequestsFailed:
		t.Tally.Add(kind, 1)
	default:
		t.Tally.Add(kind, 1)
		t.Tally.Add(telemetry.MetricHoldRequests, 1)
	}
}

// kindOfCreate says what became of a create, and false of what is none. What was made before
// and is only answered again, and what could not be understood, says nothing about whether a
// buyer found what they wanted.
func kindOfCreate(x *exchange) (telemetry.MetricName, bool) {
	if x.method != http.MethodPost || x.route != "/v1/holds" || x.replayed {
		return "", false
	}
	switch x.code {
	case "":
		return telemetry.MetricHoldRequestsMade, x.status == http.StatusCreated
	case ledger.CodeInsufficientStock:
		return telemetry.MetricHoldRequestsShort, true
	case ledger.CodeSlotClosed:
		return telemetry.MetricHoldRequestsClosed, true
	case ledger.CodePriceChanged:
		return telemetry.MetricHoldRequestsPriceChanged, true
	case ledger.CodeQuantityOverLimit, ledger.CodeLimitReached, ledger.CodeCoolingDown:
		return telemetry.MetricHoldRequestsOverLimit, true
	case ledger.CodeSaleNotOpen, ledger.CodeSaleOver:
		return telemetry.MetricHoldRequestsOffSale, true
	default:
		return telemetry.MetricHoldRequestsFailed, x.status >= http.StatusInternalServerError
	}
}

// reportTally counts the exchange, and reports what was counted if it is time.
func (a *API) reportTally(x *exchange) error {
	if a.metrics == nil {
		return nil
	}
	a.tally.count(x)
	if !a.tally.due(system.Millisecond(a.clock)) {
		return nil
	}
	for _, line := range a.tally.Take(tallied()...) {
		if err := a.metrics.Emit(nil, line...); err != nil {
			return fmt.Errorf("report what was counted: %w", err)
		}
	}
	return nil
}
