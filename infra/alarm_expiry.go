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
	// after its third failure. What is there for five minutes is not a matter of one race.
	ghostPeriods = 5
	// releaseDelayMax is far above what the due queue takes, which is seconds, and below what
	// the sweep alone does, of which 95 in 100 take up to 57 s.
	releaseDelayMax = 30 * time.Second
	// skewWarning is when a wrong clock is told of, and skewMax when no hold is made and none
	// is ended any more.
	skewWarning, skewMax = time.Second, 30 * time.Second
)

// expiryAlarms watch that holds end. The first two are the promise itself. Their silence is
// bad news: a sweep that says nothing does not run (case B1).
func expiryAlarms(chosen stage, metric metricOf) []alarm {
	return []alarm{
		aboveOrSilent("ExpiryLag", metric(telemetry.MetricExpiryLagSecondsMax, "Maximum", minutePeriod), chosen.LagThreshold.Seconds(), sweepsMissed,
			fmt.Sprintf("Holds that are over have not been released for more than %.0f seconds, or the sweep could not tell: "+
				"stock is locked, but no late confirm can succeed. Look at the errors, throttles and log of the expiry function, "+
				"then at throttling of the table's due index.", chosen.LagThreshold.Seconds())),
		heartbeat("ExpiryHeartbeat", metric(telemetry.MetricExpiryHeartbeat, "Sum", minutePeriod), sweepsMissed,
			"No sweep ran to its end in two minutes: holds will not be released on time. "+
				"Look at the schedule of the expiry function, its dead letters, and its log."),
		above("ExpiryGhosts", metric(telemetry.MetricExpiryGhosts, "Maximum", minutePeriod), 0, ghostPeriods,
			"Overdue holds have stayed HELD over five sweeps: their stock is locked, and somebody else can't have it. "+
				"Look at the log of the expiry function for their ids and the errors, and run scripts/ops status."),
		above("ExpiryParked", metric(telemetry.MetricExpiryParked, "Maximum", minutePeriod), 0, 1,
			"Holds could not be ended three times, and are tried only every few minutes now. No other hold waits for them. "+
				"Read the messages in the queue expiry-failed for their ids and the log of the expiry function for the errors; repair the cause, then run scripts/ops retry."),
		above("ExpiryHoldsFailed", metric(telemetry.MetricExpiryFailed, "Sum", minutePeriod), 0, repeatedPeriods,
			"Every sweep meets holds that it cannot end: their stock stays locked. "+
				"Look at the log of the expiry function for their ids and the error."),
		above("ExpiryTruncated", metric(telemetry.MetricExpiryTruncated, "Sum", minutePeriod), 0, repeatedPeriods,
			"Sweeps run out of time with work left: holds end faster than they are released. "+
				"Look at the lag, at the duration of the expiry function, and at throttling of the table."),
		above("ExpiryReleaseDelay", metric(telemetry.MetricExpiryReleaseDelaySecondsP95, "Maximum", trafficPeriod), releaseDelayMax.Seconds(), repeatedPeriods,
			fmt.Sprintf("Holds end more than %.0f seconds after their time: the sweep ends them, and the due queue does not. "+
				"Look at the age of messages in the due queue, at its dead letters, and at the log of the outbox function, which fills it.", releaseDelayMax.Seconds())),
		above("DueFailed", metric(telemetry.MetricDueFailed, "Sum", minutePeriod), 0, repeatedPeriods,
			"Due messages can't be worked on, again and again: holds end only by the sweep, up to a minute late. "+
				"Look at the log of the expiry function for the error, and at throttling of the table."),
		above("OutboxDueUnsent", metric(telemetry.MetricOutboxDueUnsent, "Sum", minutePeriod), 0, repeatedPeriods,
			"The due queue does not take messages: holds end only by the sweep, up to a minute late. "+
				"Look at the log of the outbox function for the error of SQS, and at the policy of the due queue."),
		above("ClockSkew", metric(telemetry.MetricClockSkewSecondsMax, "Maximum", minutePeriod), skewWarning.Seconds(), repeatedPeriods,
			fmt.Sprintf("The clock of a function is off by more than %.0f second, for three minutes. Holds still end once, and earlier or later by that much. "+
				"Look at the log of the function for the skew, and at the state of Lambda in the Region.", skewWarning.Seconds())),
		above("ClockUnreliable", metric(telemetry.MetricClockSkewSecondsMax, "Maximum", minutePeriod), skewMax.Seconds(), 1,
			fmt.Sprintf("The clock of a function is off by more than %.0f seconds: it makes no hold (503 clock_unreliable) and ends none until the clock is right. "+
				"Look at the log for which function it is; if all its runs say so, deploy it anew for fresh machines, and ask AWS.", skewMax.Seconds())),
		above("ExpiryIndexHoles", metric(telemetry.MetricExpiryIndexHoles, "Sum", trafficPeriod), 0, 1,
			"The due index and the table do not say the same: a hold is HELD and no sweep can see it, or is listed and over. It is a mistake in the code. "+
				"Look at the log of the reconcile function for the holds, and at what was deployed last."),
	}
}
