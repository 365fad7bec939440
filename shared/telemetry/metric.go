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
		{MetricReservationsReview, UnitCount, "Reservations that a person must decide on: a payment that is not what was asked for, a late one under the policy review, or a delivery that can't be made."},
		{MetricReservationsRefundRequired, UnitCount, "Reservations whose money the provider will not give back by itself: a person must."},
		{MetricReservationsCompensating, UnitCount, "Reservations whose money began to be voided or refunded."},
		{MetricAPIInternalFaults, UnitCount, "Requests that ended in a fault of ours, which the caller was told as the code internal. Left out when there was none."},
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
