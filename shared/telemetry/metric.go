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
)

// The metrics of the outbox relay. It reports all of them after every batch; the lag
// only if something was published.
const (
	MetricOutboxPublished     MetricName = "outbox_published"
	MetricOutboxFailed        MetricName = "outbox_failed"
	MetricOutboxSetAside      MetricName = "outbox_set_aside"
	MetricOutboxTruncated     MetricName = "outbox_truncated"
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
		{MetricOutboxPublished, UnitCount, "Events that the bus accepted and that were marked as published."},
		{MetricOutboxFailed, UnitCount, "Stream records that could not be read, published or marked; each comes again."},
		{MetricOutboxSetAside, UnitCount, "Events that no retry can publish: unreadable, too large, or refused for good. Each stays in the unpublished index for a person to look at."},
		{MetricOutboxTruncated, UnitCount, "Batches whose time ended before all was published; the rest comes again."},
		{MetricOutboxLagSecondsMax, UnitSeconds, "The longest time from an event's transition to its publication, in one batch."},
		{MetricReservationsReview, UnitCount, "Reservations that a person must decide on: a payment that is not what was asked for, a late one under the policy review, a delivery that can't be made, or a provider that keeps refusing what is asked."},
		{MetricReservationsRefundRequired, UnitCount, "Reservations whose money the provider will not give back by itself: a person must."},
		{MetricReservationsCompensating, UnitCount, "Reservations whose money began to be voided or refunded."},
		{MetricAPIInternalFaults, UnitCount, "Requests that ended in a fault of ours, which the caller was told as the code internal. Left out when there was none."},
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
