package telemetry

// The metrics of the outbox relay. It reports all of them after every batch; the lag
// only if something was published.
const (
	MetricOutboxPublished     MetricName = "outbox_published"
	MetricOutboxFailed        MetricName = "outbox_failed"
	MetricOutboxSetAside      MetricName = "outbox_set_aside"
	MetricOutboxTruncated     MetricName = "outbox_truncated"
	MetricOutboxDueUnsent     MetricName = "outbox_due_unsent"
	MetricOutboxLagSecondsMax MetricName = "outbox_lag_seconds_max"
	// MetricOutboxRecoverySeconds is reported when a backlog has come to its end.
	MetricOutboxRecoverySeconds MetricName = "outbox_recovery_seconds"
)

// The metrics of what becomes of holds, as the relay sees it go by: every transition has an
// event, and every event passes here, so they cost no read and no line of their own. A batch
// reports all of them.
const (
	MetricHoldsCreated   MetricName = "holds_created"
	MetricHoldsConfirmed MetricName = "holds_confirmed"
	MetricHoldsCanceled  MetricName = "holds_canceled"
	MetricHoldsExpired   MetricName = "holds_expired"
)

func outboxMetrics() []Metric {
	return []Metric{
		counted(MetricOutboxDueUnsent, "Due messages that the queue did not take; the sweep ends their holds a little later."),
		counted(MetricOutboxPublished, "Events that the bus accepted and that were marked as published."),
		counted(MetricOutboxFailed, "Stream records that could not be read, published or marked; each comes again."),
		counted(MetricOutboxSetAside, "Events that no retry can publish: unreadable, too large, or refused for good. Each goes into quarantine for a person to look at."),
		counted(MetricOutboxTruncated, "Batches whose time ended before all was published; the rest comes again."),
		inSeconds(MetricOutboxLagSecondsMax, "The longest time from an event's transition to its publication, in one batch."),
		inSeconds(MetricOutboxRecoverySeconds, "How long a backlog of events took, from the oldest event that was published later than telemetry.BacklogOver to the first batch without one. Reported once, at its end, by each process that has seen such an event."),
		counted(MetricHoldsCreated, "Holds that were made, as far as the stream has published it. The ledger's own events are counted, so it is the same whoever made them; a record that comes twice is counted twice, and what only the reconciler publishes is left out."),
		counted(MetricHoldsConfirmed, "Holds that were sold, counted like those that were made; also those that a late payment has bought anew. Their share of the holds that were made is the conversion."),
		counted(MetricHoldsCanceled, "Holds that were given up, counted like those that were made."),
		counted(MetricHoldsExpired, "Holds whose time ended, counted like those that were made; also those that a late payment has bought anew. Their share of the holds that were made is the expiry rate."),
	}
}
