package main

import (
	"fmt"
	"time"

	"holdfast/shared/telemetry"
)

const (
	// sagaLagMax is the same for due reservations as the published bound is for due holds.
	sagaLagMax = 120 * time.Second
	// refusedMax lets a few deliveries without a good signature pass: anybody can send them.
	// A wrong secret refuses all of them.
	refusedMax = 10
	// dwellMax is how long the money of a buyer may be in between. It is as long as a hold is
	// kept for a payment whose outcome nobody knows.
	dwellMax = 15 * time.Minute
)

// paymentAlarms watch the money: what the provider tells, and what the saga makes of it.
// The tick of the saga is watched as the sweep is.
func paymentAlarms(metric metricOf) []alarm {
	lag := metric(telemetry.MetricSagaLagSecondsMax, "Maximum", minutePeriod)
	return []alarm{
		above("WebhookFailed", metric(telemetry.MetricWebhookFailed, "Sum", minutePeriod), 0, repeatedPeriods, ticket("status",
			"What the payment provider tells can't be taken in: the secret, the table or the queue does not answer. "+
				"The provider tells again, and the saga asks by itself, more slowly.")),
		above("WebhookRefused", metric(telemetry.MetricWebhookRefused, "Sum", trafficPeriod), refusedMax, 1, ticket("status",
			"Many deliveries have no good signature. If payments are slow to be confirmed, the webhook secret is wrong; otherwise somebody else sends them.")),
		above("WebhookMalformed", metric(telemetry.MetricWebhookMalformed, "Sum", trafficPeriod), 0, 1, ticket("status",
			"The provider signed something about a payment of ours that can't be read: its format has changed, or our reference was edited.")),
		aboveOrSilent("SagaLag", lag, sagaLagMax.Seconds(), sweepsMissed, ticket("status",
			fmt.Sprintf("Reservations that are due have not been looked at for more than %.0f seconds, or the tick could not tell: "+
				"money waits to be captured or given back.", sagaLagMax.Seconds()))),
		aboveOrSilent("SagaLagLong", lag, lagOfPage.Seconds(), sweepsMissed, page("status",
			fmt.Sprintf("Reservations that are due have not been looked at for more than %.0f seconds, or the tick could not tell: "+
				"buyers have paid and are told to wait.", lagOfPage.Seconds()))),
		heartbeat("SagaHeartbeat", metric(telemetry.MetricSagaHeartbeat, "Sum", minutePeriod), sweepsMissed, ticket("status",
			"No tick of the saga has run to its end for some minutes: what no message tells of is not done. A page follows if it stays so.")),
		above("SagaFailed", metric(telemetry.MetricSagaFailed, "Sum", minutePeriod), 0, repeatedPeriods, ticket("status",
			"Messages or due reservations can't be worked on, again and again: payments stand still.")),
		above("SagaTruncated", metric(telemetry.MetricSagaTruncated, "Sum", minutePeriod), 0, repeatedPeriods, ticket("status",
			"The saga runs out of time with work left: payments come faster than they are driven, or the provider is slow.")),
		above("ReservationsReview", metric(telemetry.MetricReservationsReview, "Sum", trafficPeriod), 0, 1, ticket("reviews",
			"A payment is not what was asked for, or came late under the policy review, or what was paid can't be delivered: a person must decide.")),
		above("ReservationsRefundRequired", metric(telemetry.MetricReservationsRefundRequired, "Sum", trafficPeriod), 0, 1, ticket("reviews",
			"Money is owed to a buyer and the provider does not give it back: a person must.")),
		above("SagaAuthorizedLong", metric(telemetry.MetricSagaDwellAuthorizedSeconds, "Maximum", trafficPeriod), dwellMax.Seconds(), 1, ticket("status",
			fmt.Sprintf("Money has been reserved for more than %.0f seconds and nothing was sold for it.", dwellMax.Seconds()))),
		above("SagaCaptureLate", metric(telemetry.MetricSagaDwellConfirmedSeconds, "Maximum", trafficPeriod), dwellMax.Seconds(), 1, ticket("status",
			fmt.Sprintf("Something was sold more than %.0f seconds ago and its money was not taken. The reservation of the money lapses after days.", dwellMax.Seconds()))),
		above("SagaCompensationLate", metric(telemetry.MetricSagaDwellCompensatingSeconds, "Maximum", trafficPeriod), dwellMax.Seconds(), 1, ticket("reviews",
			fmt.Sprintf("Money has been on its way back to a buyer for more than %.0f seconds.", dwellMax.Seconds()))),
	}
}
