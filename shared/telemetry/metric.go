package telemetry

import "slices"

// Namespace is the CloudWatch namespace of every metric of Holdfast.
const Namespace = "Holdfast"

// DimensionStage is the one dimension that every metric carries. Its value is the
// stage: dev, staging, prod or local. No metric has an id as a dimension, because
// CloudWatch bills each combination of dimension values as a series of its own.
const DimensionStage = "stage"

// MetricName names a metric. The names are part of the contract with the alarms and
// with people's dashboards: do not rename them casually.
type MetricName string

// Unit is CloudWatch's name of a unit. Source:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html
type Unit string

// The units in use.
const (
	UnitCount   Unit = "Count"
	UnitSeconds Unit = "Seconds"
)

// The metrics of the sweep. It reports all of them after every run, also when there was
// nothing to do.
const (
	MetricExpiryLagSecondsMax MetricName = "expiry_lag_seconds_max"
	MetricExpiryHeartbeat     MetricName = "expiry_heartbeat"
	MetricExpiryReleased      MetricName = "expiry_released"
	MetricExpiryAlreadyEnded  MetricName = "expiry_already_ended"
	MetricExpiryFailed        MetricName = "expiry_failed"
	MetricExpiryTruncated     MetricName = "expiry_truncated"
	MetricExpiryRemainingMin  MetricName = "expiry_remaining_min"
	MetricExpiryGhosts        MetricName = "expiry_ghosts"
	MetricExpiryParked        MetricName = "expiry_parked"
	MetricExpiryWorkers       MetricName = "expiry_workers"
	// MetricExpiryReleaseDelaySecondsP95 is reported by who has released something.
	MetricExpiryReleaseDelaySecondsP95 MetricName = "expiry_release_delay_seconds_p95"
)

// The metrics of due messages. A batch reports all of them.
const (
	MetricDueReleased  MetricName = "due_released"
	MetricDueEnded     MetricName = "due_ended"
	MetricDueForwarded MetricName = "due_forwarded"
	MetricDueFailed    MetricName = "due_failed"
)

// MetricClockSkewSecondsMax is reported by a function whose clock is off by more than a
// second, and by every sweep.
const MetricClockSkewSecondsMax MetricName = "clock_skew_seconds_max"

// The metrics of the reconciler. It reports all of them after every run; the lag only if
// all of the unpublished index could be read.
const (
	MetricReconcileHeartbeat             MetricName = "reconcile_heartbeat"
	MetricOutboxUnpublishedLagSecondsMax MetricName = "outbox_unpublished_lag_seconds_max"
	MetricOutboxRepublished              MetricName = "outbox_republished"
	MetricOutboxQuarantineSize           MetricName = "outbox_quarantine_size"
	MetricExpiryIndexHoles               MetricName = "expiry_index_holes"
)

// The metrics of the archive. It reports all of them after every run.
const (
	MetricArchiveHeartbeat MetricName = "archive_heartbeat"
	MetricArchiveArchived  MetricName = "archive_archived"
	MetricArchivePutOff    MetricName = "archive_put_off"
	MetricArchiveFailed    MetricName = "archive_failed"
	MetricArchiveTruncated MetricName = "archive_truncated"
)

// The metrics of the outbox relay. It reports all of them after every batch; the lag
// only if something was published.
const (
	MetricOutboxPublished     MetricName = "outbox_published"
	MetricOutboxFailed        MetricName = "outbox_failed"
	MetricOutboxSetAside      MetricName = "outbox_set_aside"
	MetricOutboxTruncated     MetricName = "outbox_truncated"
	MetricOutboxDueUnsent     MetricName = "outbox_due_unsent"
	MetricOutboxLagSecondsMax MetricName = "outbox_lag_seconds_max"
)

// The metrics of the money. Each is reported by the step that it counts, and left out
// otherwise.
const (
	MetricReservationsReview         MetricName = "reservations_review"
	MetricReservationsRefundRequired MetricName = "reservations_refund_required"
	MetricReservationsCompensating   MetricName = "reservations_compensating"
)

// MetricAPIInternalFaults is the metric of the HTTP API. It is reported only when there is
// something to report, because a line for each request would cost more than the request.
const MetricAPIInternalFaults MetricName = "api_internal_faults"

// The metrics of what buyers ask for. A process adds them up and reports both together,
// every few seconds at the most and only if something was asked for. Their quotient is the
// share of buyers who saw something and could not have it.
const (
	MetricHoldRequests      MetricName = "hold_requests"
	MetricHoldRequestsShort MetricName = "hold_requests_short"
)

// The metrics of the webhook. Each delivery of the provider is one of them.
const (
	MetricWebhookQueued    MetricName = "webhook_queued"
	MetricWebhookRecorded  MetricName = "webhook_recorded"
	MetricWebhookIgnored   MetricName = "webhook_ignored"
	MetricWebhookRefused   MetricName = "webhook_refused"
	MetricWebhookMalformed MetricName = "webhook_malformed"
	MetricWebhookFailed    MetricName = "webhook_failed"
)

// The metrics of the saga's worker. A tick reports all of them but the unknown, also when
// there was nothing to do; a batch of messages those that count.
const (
	MetricSagaLagSecondsMax MetricName = "saga_lag_seconds_max"
	MetricSagaHeartbeat     MetricName = "saga_heartbeat"
	MetricSagaDriven        MetricName = "saga_driven"
	MetricSagaUnknown       MetricName = "saga_unknown"
	MetricSagaFailed        MetricName = "saga_failed"
	MetricSagaTruncated     MetricName = "saga_truncated"
	MetricSagaRemainingMin  MetricName = "saga_remaining_min"
)

// Metric is what there is to know about a metric.
type Metric struct {
	Name    MetricName
	Unit    Unit
	Meaning string // a whole sentence, for the person who looks at the number
}

// Metrics returns every metric, in a fixed order. The caller owns the result.
func Metrics() []Metric {
	return []Metric{
		{MetricExpiryLagSecondsMax, UnitSeconds, "At the start of a sweep: now minus the due time of the oldest hold that should have been released and has not been; zero when nothing is overdue. Left out when not all due shards could be read."},
		{MetricExpiryHeartbeat, UnitCount, "Sweeps that read all due shards, or as far as their time allowed."},
		{MetricExpiryReleased, UnitCount, "Holds that this sweep has ended."},
		{MetricExpiryAlreadyEnded, UnitCount, "Due entries whose hold had ended or moved on before the sweep came to it: the index was late, or another sweep was faster."},
		{MetricExpiryFailed, UnitCount, "Overdue holds that the sweep tried to end and could not."},
		{MetricExpiryTruncated, UnitCount, "Sweeps that stopped for lack of time with work left."},
		{MetricExpiryRemainingMin, UnitCount, "Due entries that a truncated sweep had read and left behind; there may be more."},
		{MetricExpiryGhosts, UnitCount, "Overdue holds that a sweep met, or found parked, and left HELD: their stock stays locked."},
		{MetricExpiryParked, UnitCount, "Holds that could not be ended three times and are tried more seldom, counted over all shards at the start of a sweep."},
		{MetricExpiryWorkers, UnitCount, "Helpers that a sweep with more work than it can do has called."},
		{MetricExpiryReleaseDelaySecondsP95, UnitSeconds, "Of the holds that this run has ended: the time from the due time to the end that 95 % of them stay under. Left out when it has ended none."},
		{MetricDueReleased, UnitCount, "Holds that a due message has ended."},
		{MetricDueEnded, UnitCount, "Due messages of holds that had ended, or are due later than the message says."},
		{MetricDueForwarded, UnitCount, "Due messages that came before their time and were sent on."},
		{MetricDueFailed, UnitCount, "Due messages that could not be worked on; each comes again, and the sweep ends the hold in any case."},
		{MetricClockSkewSecondsMax, UnitSeconds, "How far the clock of a function is off the clock of AWS at the least, in either direction, as the Date headers of the last answers tell."},
		{MetricReconcileHeartbeat, UnitCount, "Runs of the reconciler that read all of the unpublished index, or as far as their time allowed."},
		{MetricOutboxUnpublishedLagSecondsMax, UnitSeconds, "At the start of a run: now minus the time of the oldest event that is not published, the quarantined ones left out; zero when all are."},
		{MetricOutboxRepublished, UnitCount, "Events that the stream did not bring to the bus and the reconciler did."},
		{MetricOutboxQuarantineSize, UnitCount, "Events in quarantine: no retry can publish them as they are."},
		{MetricExpiryIndexHoles, UnitCount, "Holds in the part of the table that this run looked at that are HELD and not in the due index, or in it and not HELD."},
		{MetricArchiveHeartbeat, UnitCount, "Runs of the archive that came to their end, or as far as their time allowed."},
		{MetricArchiveArchived, UnitCount, "Holds and reservations that were moved to the archive, verified."},
		{MetricArchivePutOff, UnitCount, "Records that are old enough and can't be archived yet, as their payment is not at rest; each is looked at again."},
		{MetricArchiveFailed, UnitCount, "Batches of the archive that failed; each is taken up again by a later run."},
		{MetricArchiveTruncated, UnitCount, "Runs of the archive whose time ended with old records left; the next run goes on."},
		{MetricOutboxDueUnsent, UnitCount, "Due messages that the queue did not take; the sweep ends their holds a little later."},
		{MetricOutboxPublished, UnitCount, "Events that the bus accepted and that were marked as published."},
		{MetricOutboxFailed, UnitCount, "Stream records that could not be read, published or marked; each comes again."},
		{MetricOutboxSetAside, UnitCount, "Events that no retry can publish: unreadable, too large, or refused for good. Each goes into quarantine for a person to look at."},
		{MetricOutboxTruncated, UnitCount, "Batches whose time ended before all was published; the rest comes again."},
		{MetricOutboxLagSecondsMax, UnitSeconds, "The longest time from an event's transition to its publication, in one batch."},
		{MetricReservationsReview, UnitCount, "Reservations that a person must decide on: a payment that is not what was asked for, a late one under the policy review, a delivery that can't be made, or a provider that keeps refusing what is asked."},
		{MetricReservationsRefundRequired, UnitCount, "Reservations whose money the provider will not give back by itself: a person must."},
		{MetricReservationsCompensating, UnitCount, "Reservations whose money began to be voided or refunded."},
		{MetricAPIInternalFaults, UnitCount, "Requests that ended in a fault of ours, which the caller was told as the code internal. Left out when there was none."},
		{MetricHoldRequests, UnitCount, "Holds that were asked for and made, or refused for what is left, its price, its sale or the caller's limits; answers that were given again are left out. Added up in each process, so a few are lost when a process ends."},
		{MetricHoldRequestsShort, UnitCount, "Of the holds that were asked for: those that were refused because less was left. Each is an oversell that was prevented, and a buyer who did not find what they wanted."},
		{MetricWebhookQueued, UnitCount, "Deliveries of the payment provider that were queued for the saga."},
		{MetricWebhookRecorded, UnitCount, "Deliveries of an event that the saga has recorded before."},
		{MetricWebhookIgnored, UnitCount, "Deliveries that are signed and about nothing of ours."},
		{MetricWebhookRefused, UnitCount, "Deliveries without a good signature, or too large: the secret is wrong, or somebody else sends them."},
		{MetricWebhookMalformed, UnitCount, "Deliveries that are signed and can't be read."},
		{MetricWebhookFailed, UnitCount, "Deliveries that could not be taken in, because the secret, the table or the queue did not answer; the provider sends them again."},
		{MetricSagaLagSecondsMax, UnitSeconds, "At the start of a tick: now minus the due time of the oldest reservation that should have been looked at and has not been; zero when none waits. Left out when not all due shards could be read."},
		{MetricSagaHeartbeat, UnitCount, "Ticks that read all due shards, or as far as their time allowed."},
		{MetricSagaDriven, UnitCount, "Reservations that were driven as far as they could go, by a message or a tick."},
		{MetricSagaUnknown, UnitCount, "Messages of reservations that are not there yet: the provider was faster than our own write. Each comes again."},
		{MetricSagaFailed, UnitCount, "Messages and due reservations that could not be worked on; each comes again."},
		{MetricSagaTruncated, UnitCount, "Batches and ticks that stopped for lack of time with work left."},
		{MetricSagaRemainingMin, UnitCount, "Due reservations that a truncated tick had read and left behind; there may be more."},
	}
}

// MetricNamed returns the metric of that name, and whether there is one.
func MetricNamed(name MetricName) (Metric, bool) {
	all := Metrics()
	i := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return all[i], true
}
