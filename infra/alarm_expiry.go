package main

import (
	"fmt"
	"time"

	"holdfast/shared/telemetry"
)

const (
	// sweepsMissed: one tick may be late by a minute, two are a dead sweep.
	sweepsMissed = 2
	// ghostPeriods: a hold that a sweep leaves is met again by the next one, and parked
	// after its third failure. What is there for five minutes is not a matter of one race,
	// and is what the ledger's owners call an incident of the first class.
	ghostPeriods = 5
	// lagOfPage is the lag from which on somebody is woken: five minutes, in which a buyer who
	// waits for a seat to come back has gone elsewhere. The published bound is lower, and is
	// the threshold of the ticket.
	lagOfPage = 300 * time.Second
	// releaseDelayMax is far above what the due queue takes, which is seconds, and below what
	// the sweep alone does, of which 95 in 100 take up to 57 s.
	releaseDelayMax = 30 * time.Second
	// skewWarning is when a wrong clock is told of, and skewMax when no hold is made and none
	// is ended any more.
	skewWarning, skewMax = time.Second, 30 * time.Second
)

// expiryAlarms watch that holds end. The first three are the promise itself. Their silence is
// bad news: a sweep that says nothing does not run (case B1).
func expiryAlarms(chosen stage, metric metricOf) []alarm {
	lag := metric(telemetry.MetricExpiryLagSecondsMax, "Maximum", minutePeriod)
	return []alarm{
		aboveOrSilent("ExpiryLag", lag, chosen.LagThreshold.Seconds(), sweepsMissed, ticket("status",
			fmt.Sprintf("Holds that are over have not been released for more than %.0f seconds, or the sweep could not tell: "+
				"stock is locked, but no late confirm can succeed.", chosen.LagThreshold.Seconds()))),
		aboveOrSilent("ExpiryLagLong", lag, lagOfPage.Seconds(), sweepsMissed, page("status",
			fmt.Sprintf("Holds that are over have not been released for more than %.0f seconds, or the sweep could not tell: "+
				"buyers see as sold out what nobody has. No late confirm can succeed.", lagOfPage.Seconds()))),
		heartbeat("ExpiryHeartbeat", metric(telemetry.MetricExpiryHeartbeat, "Sum", minutePeriod), sweepsMissed, ticket("status",
			"No sweep has run to its end for some minutes: holds will not be released on time. A page follows if it stays so.")),
		above("ExpiryGhosts", metric(telemetry.MetricExpiryGhosts, "Maximum", minutePeriod), 0, ghostPeriods, page("status",
			"Overdue holds have stayed HELD over five sweeps: their stock is locked, and somebody else can't have it.")),
		above("ExpiryParked", metric(telemetry.MetricExpiryParked, "Maximum", minutePeriod), 0, 1, ticket("reviews -kind expiry",
			"Holds could not be ended three times, and are tried only every few minutes now. No other hold waits for them.")),
		above("ExpiryHoldsFailed", metric(telemetry.MetricExpiryFailed, "Sum", minutePeriod), 0, repeatedPeriods, ticket("status",
			"Every sweep meets holds that it cannot end: their stock stays locked.")),
		above("ExpiryTruncated", metric(telemetry.MetricExpiryTruncated, "Sum", minutePeriod), 0, repeatedPeriods, ticket("status",
			"Sweeps run out of time with work left: holds end faster than they are released.")),
		above("ExpiryReleaseDelay", metric(telemetry.MetricExpiryReleaseDelaySecondsP95, "Maximum", trafficPeriod), releaseDelayMax.Seconds(), repeatedPeriods, ticket("status",
			fmt.Sprintf("Holds end more than %.0f seconds after their time: the sweep ends them, and the due queue does not.", releaseDelayMax.Seconds()))),
		above("DueFailed", metric(telemetry.MetricDueFailed, "Sum", minutePeriod), 0, repeatedPeriods, ticket("status",
			"Due messages can't be worked on, again and again: holds end only by the sweep, up to a minute late.")),
		above("OutboxDueUnsent", metric(telemetry.MetricOutboxDueUnsent, "Sum", minutePeriod), 0, repeatedPeriods, ticket("status",
			"The due queue does not take messages: holds end only by the sweep, up to a minute late.")),
		above("ClockSkew", metric(telemetry.MetricClockSkewSecondsMax, "Maximum", minutePeriod), skewWarning.Seconds(), repeatedPeriods, ticket("status",
			fmt.Sprintf("The clock of a function is off by more than %.0f second, for three minutes. Holds still end once, and earlier or later by that much.", skewWarning.Seconds()))),
		above("ClockUnreliable", metric(telemetry.MetricClockSkewSecondsMax, "Maximum", minutePeriod), skewMax.Seconds(), 1, page("status",
			fmt.Sprintf("The clock of a function is off by more than %.0f seconds: it makes no hold (503 clock_unreliable) and ends none until the clock is right.", skewMax.Seconds()))),
		above("ExpiryIndexHoles", metric(telemetry.MetricExpiryIndexHoles, "Maximum", auditPeriod), 0, 1, ticket("audit",
			"The due index and the table do not say the same: a hold is HELD and no sweep can see it, or is listed and over. It is a mistake in the code.")),
	}
}
