package main

import (
	"fmt"
	"time"

	"holdfast/shared/telemetry"
)

const (
	publishLagMax = 60 * time.Second
	// unpublishedLagMax: the reconciler publishes what is ten minutes old, every five minutes.
	// What is older than two such runs is not published by anybody.
	unpublishedLagMax = 20 * time.Minute
	// reconcilesMissed: one run may be late by its period, two are a dead reconciler.
	reconcilesMissed = 2
)

// eventAlarms watch that every event gets out. The silence of the reconciler is bad news:
// it is the one that finds what the stream has lost.
func eventAlarms(metric metricOf) []alarm {
	return []alarm{
		above("OutboxSetAside", metric(telemetry.MetricOutboxSetAside, "Sum", trafficPeriod), 0, 1,
			"An event can't be published as it is: it is unreadable, too large, or refused for good. It is in quarantine, with the reason. "+
				"Look at the log of the outbox function for the item, and at what was deployed last."),
		above("OutboxQuarantine", metric(telemetry.MetricOutboxQuarantineSize, "Maximum", trafficPeriod), 0, 1,
			"Events are in quarantine: consumers have never heard of them, and no retry publishes them. Nothing is lost: the event is the item. "+
				"Read the reasons with scripts/ops status, repair the cause, then run scripts/ops redrive -quarantined."),
		above("OutboxFailed", metric(telemetry.MetricOutboxFailed, "Sum", minutePeriod), 0, repeatedPeriods,
			"Batches of events are handed back again and again: nothing is lost yet, but consumers hear late. "+
				"Look at the log of the outbox function, and at the limits and the throttling of the event bus."),
		above("OutboxTruncated", metric(telemetry.MetricOutboxTruncated, "Sum", minutePeriod), 0, repeatedPeriods,
			"Batches of events do not fit into the time-out of the outbox function: events come faster than they are published. "+
				"Look at the duration of that function, and at the latency of the event bus."),
		above("OutboxLag", metric(telemetry.MetricOutboxLagSecondsMax, "Maximum", minutePeriod), publishLagMax.Seconds(), repeatedPeriods,
			fmt.Sprintf("Events are published more than %.0f seconds after what they tell. "+
				"Look at the iterator age and the errors of the outbox function.", publishLagMax.Seconds())),
		aboveOrSilent("OutboxUnpublishedLag", metric(telemetry.MetricOutboxUnpublishedLagSecondsMax, "Maximum", trafficPeriod), unpublishedLagMax.Seconds(), reconcilesMissed,
			fmt.Sprintf("Events are not published after more than %.0f seconds, neither by the outbox nor by the reconciler, or the reconciler could not tell. "+
				"Look at the log of the outbox and reconcile functions, and at the event bus; when the cause is repaired, scripts/ops redrive publishes the rest at once.", unpublishedLagMax.Seconds())),
		heartbeat("ReconcileHeartbeat", metric(telemetry.MetricReconcileHeartbeat, "Sum", trafficPeriod), reconcilesMissed,
			"The reconciler has not read the unpublished index in ten minutes: an event that the stream lost would stay unheard. "+
				"Look at the schedule of the reconcile function, its dead letters, and its log."),
	}
}
