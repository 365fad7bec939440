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
		above("OutboxSetAside", metric(telemetry.MetricOutboxSetAside, "Sum", trafficPeriod), 0, 1, ticket("status",
			"An event can't be published as it is: it is unreadable, too large, or refused for good. It is in quarantine, with the reason, and consumers have not heard of it.")),
		above("OutboxQuarantine", metric(telemetry.MetricOutboxQuarantineSize, "Maximum", trafficPeriod), 0, 1, ticket("status",
			"Events are in quarantine: consumers have never heard of them, and no retry publishes them. Nothing is lost: the event is the item.")),
		above("OutboxFailed", metric(telemetry.MetricOutboxFailed, "Sum", minutePeriod), 0, repeatedPeriods, ticket("status",
			"Batches of events are handed back again and again: nothing is lost yet, but consumers hear late.")),
		above("OutboxTruncated", metric(telemetry.MetricOutboxTruncated, "Sum", minutePeriod), 0, repeatedPeriods, ticket("status",
			"Batches of events do not fit into the time-out of the outbox function: events come faster than they are published.")),
		above("OutboxLag", metric(telemetry.MetricOutboxLagSecondsMax, "Maximum", minutePeriod), publishLagMax.Seconds(), repeatedPeriods, ticket("status",
			fmt.Sprintf("Events are published more than %.0f seconds after what they tell: consumers hear late.", publishLagMax.Seconds()))),
		aboveOrSilent("OutboxUnpublishedLag", metric(telemetry.MetricOutboxUnpublishedLagSecondsMax, "Maximum", trafficPeriod), unpublishedLagMax.Seconds(), reconcilesMissed, ticket("status",
			fmt.Sprintf("Events are not published after more than %.0f seconds, neither by the outbox nor by the reconciler, or the reconciler could not tell.", unpublishedLagMax.Seconds()))),
		heartbeat("ReconcileHeartbeat", metric(telemetry.MetricReconcileHeartbeat, "Sum", trafficPeriod), reconcilesMissed, ticket("status",
			"The reconciler has not read the unpublished index for ten minutes or more: an event that the stream lost would stay unheard.")),
	}
}
