package telemetry

import "holdfast/shared/ledger"

// The metrics of the money. Each is reported by the step that it counts, and left out
// otherwise.
const (
	MetricReservationsReview         MetricName = "reservations_review"
	MetricReservationsRefundRequired MetricName = "reservations_refund_required"
	MetricReservationsCompensating   MetricName = "reservations_compensating"
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
	// MetricSagaRecoverySeconds is reported when a backlog has come to its end.
	MetricSagaRecoverySeconds MetricName = "saga_recovery_seconds"
)

// The metrics of how long reservations are in each status that is not an end: one metric
// for each status, whose values CloudWatch makes the maximum and the 95th percentile of. A
// dimension with the status would cost the same, because each value of it is a series too,
// and would take a line for each status where these fit into one.
const (
	MetricSagaDwellPaymentPendingSeconds MetricName = "saga_dwell_payment_pending_seconds"
	MetricSagaDwellAuthorizedSeconds     MetricName = "saga_dwell_authorized_seconds"
	MetricSagaDwellConfirmedSeconds      MetricName = "saga_dwell_confirmed_seconds"
	MetricSagaDwellCapturedSeconds       MetricName = "saga_dwell_captured_seconds"
	MetricSagaDwellCompensatingSeconds   MetricName = "saga_dwell_compensating_seconds"
	MetricSagaDwellRefundRequiredSeconds MetricName = "saga_dwell_refund_required_seconds"
	MetricSagaDwellReviewSeconds         MetricName = "saga_dwell_review_seconds"
)

// dwellMetric is the metric of how long reservations are in the status, and whether there is
// one: where a reservation has come to its end, it stays.
func dwellMetric(status ledger.ReservationStatus) (MetricName, bool) {
	switch status {
	case ledger.ReservationPaymentPending:
		return MetricSagaDwellPaymentPendingSeconds, true
	case ledger.ReservationAuthorized:
		return MetricSagaDwellAuthorizedSeconds, true
	case ledger.ReservationConfirmed:
		return MetricSagaDwellConfirmedSeconds, true
	case ledger.ReservationCaptured:
		return MetricSagaDwellCapturedSeconds, true
	case ledger.ReservationCompensating:
		return MetricSagaDwellCompensatingSeconds, true
	case ledger.ReservationRefundRequired:
		return MetricSagaDwellRefundRequiredSeconds, true
	case ledger.ReservationReview:
		return MetricSagaDwellReviewSeconds, true
	default:
		return "", false
	}
}

func reservationMetrics() []Metric {
	return []Metric{
		counted(MetricReservationsReview, "Reservations that a person must decide on: a payment that is not what was asked for, a late one under the policy review, a delivery that can't be made, or a provider that keeps refusing what is asked."),
		counted(MetricReservationsRefundRequired, "Reservations whose money the provider will not give back by itself: a person must."),
		counted(MetricReservationsCompensating, "Reservations whose money began to be voided or refunded."),
		inSeconds(MetricSagaLagSecondsMax, "At the start of a tick: now minus the due time of the oldest reservation that should have been looked at and has not been; zero when none waits. Left out when not all due shards could be read."),
		counted(MetricSagaHeartbeat, "Ticks that read all due shards, or as far as their time allowed."),
		counted(MetricSagaDriven, "Reservations that were driven as far as they could go, by a message or a tick."),
		counted(MetricSagaUnknown, "Messages of reservations that are not there yet: the provider was faster than our own write. Each comes again."),
		counted(MetricSagaFailed, "Messages and due reservations that could not be worked on; each comes again."),
		counted(MetricSagaTruncated, "Batches and ticks that stopped for lack of time with work left."),
		counted(MetricSagaRemainingMin, "Due reservations that a truncated tick had read and left behind; there may be more."),
		inSeconds(MetricSagaRecoverySeconds, "How long a backlog of reservations took, from the due time of its oldest to the first tick that found none. Reported once, at its end, by a process that has seen a lag over telemetry.BacklogOver; a process that saw only the rest of the backlog tells of that."),
		inSeconds(MetricSagaDwellPaymentPendingSeconds, "How long reservations were PAYMENT_PENDING: from the first attempt to the money, or to the end without it. One value for each that left the status, and one for each that the saga looked at and left in it after more than saga.DwellTold."),
		inSeconds(MetricSagaDwellAuthorizedSeconds, "How long reservations were AUTHORIZED: the money is reserved and nothing is sold for it. One value for each that left the status, and one for each that the saga looked at and left in it after more than saga.DwellTold."),
		inSeconds(MetricSagaDwellConfirmedSeconds, "How long reservations were CONFIRMED: it is sold and not captured. One value for each that left the status, and one for each that the saga looked at and left in it after more than saga.DwellTold."),
		inSeconds(MetricSagaDwellCapturedSeconds, "How long reservations were CAPTURED: it is paid and not delivered. One value for each that left the status, and one for each that the saga looked at and left in it after more than saga.DwellTold."),
		inSeconds(MetricSagaDwellCompensatingSeconds, "How long reservations were COMPENSATING: money is on its way back. One value for each that left the status, and one for each that the saga looked at and left in it after more than saga.DwellTold."),
		inSeconds(MetricSagaDwellRefundRequiredSeconds, "How long reservations were REFUND_REQUIRED: money is owed and a person must see to it. One value for each that left the status, and one for each that the saga looked at and left in it after more than saga.DwellTold."),
		inSeconds(MetricSagaDwellReviewSeconds, "How long reservations were REVIEW: a person must decide. One value for each that left the status, and one for each that the saga looked at and left in it after more than saga.DwellTold."),
	}
}
