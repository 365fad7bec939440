package main

import (
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/telemetry"
)

const (
	// repeatedPeriods: what goes wrong once is tried again by the next sweep or batch;
	// what goes wrong in three periods running does not heal by itself.
	repeatedPeriods = 3
	// sagaLagMax is the same for due reservations as the published bound is for due holds.
	sagaLagMax = 120 * time.Second
	// refusedMax lets a few deliveries without a good signature pass: anybody can send them.
	// A wrong secret refuses all of them.
	refusedMax = 10
)

// metricOf is a metric of the stage.
type metricOf func(name telemetry.MetricName, statistic string, period time.Duration) awscloudwatch.IMetric

// metricAlarms watch what Holdfast says about itself.
func metricAlarms(chosen stage) []alarm {
	metric := func(name telemetry.MetricName, statistic string, period time.Duration) awscloudwatch.IMetric {
		return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace:     jsii.String(telemetry.Namespace),
			MetricName:    jsii.String(string(name)),
			DimensionsMap: &map[string]*string{telemetry.DimensionStage: jsii.String(string(chosen.Name))},
			Statistic:     jsii.String(statistic),
			Period:        seconds(period),
		})
	}
	alarms := expiryAlarms(chosen, metric)
	alarms = append(alarms, eventAlarms(metric)...)
	alarms = append(alarms, paymentAlarms(metric)...)
	alarms = append(alarms, archiveAlarms(metric)...)
	return append(alarms, above("ApiInternalFaults", metric(telemetry.MetricAPIInternalFaults, "Sum", minutePeriod), 0, 1,
		"A request was answered 500 as a fault of ours. Waiting does not heal it: it is a mistake in the code or its deployment. "+
			"Look at the log of the api function for the request ids and the errors, and at what was deployed last."))
}

// paymentAlarms watch the money: what the provider tells, and what the saga makes of it.
// The tick of the saga is watched as the sweep is.
func paymentAlarms(metric metricOf) []alarm {
	return []alarm{
		above("WebhookFailed", metric(telemetry.MetricWebhookFailed, "Sum", minutePeriod), 0, repeatedPeriods,
			"What the payment provider tells can't be taken in: the secret, the table or the queue does not answer. "+
				"The provider tells again, and the saga asks by itself, more slowly. Look at the log of the webhook function."),
		above("WebhookRefused", metric(telemetry.MetricWebhookRefused, "Sum", trafficPeriod), refusedMax, 1,
			"Many deliveries have no good signature. If payments are slow to be confirmed, the webhook secret is wrong: "+
				"Look at the payment secret and at the provider's list of endpoints; otherwise somebody else sends them."),
		above("WebhookMalformed", metric(telemetry.MetricWebhookMalformed, "Sum", trafficPeriod), 0, 1,
			"The provider signed something about a payment of ours that can't be read: its format has changed, or our reference was edited. "+
				"Look at the log of the webhook function, and at the event in the provider's dashboard."),
		aboveOrSilent("SagaLag", metric(telemetry.MetricSagaLagSecondsMax, "Maximum", minutePeriod), sagaLagMax.Seconds(), sweepsMissed,
			fmt.Sprintf("Reservations that are due have not been looked at for more than %.0f seconds, or the tick could not tell: "+
				"money waits to be captured or given back. Look at the errors, throttles and log of the saga function, "+
				"then at throttling of the table's due index.", sagaLagMax.Seconds())),
		heartbeat("SagaHeartbeat", metric(telemetry.MetricSagaHeartbeat, "Sum", minutePeriod), sweepsMissed,
			"No tick of the saga ran to its end in two minutes: what no message tells of is not done. "+
				"Look at the schedule of the saga function, its dead letters, and its log."),
		above("SagaFailed", metric(telemetry.MetricSagaFailed, "Sum", minutePeriod), 0, repeatedPeriods,
			"Messages or due reservations can't be worked on, again and again: payments stand still. "+
				"Look at the log of the saga function for the reservation ids and the errors."),
		above("SagaTruncated", metric(telemetry.MetricSagaTruncated, "Sum", minutePeriod), 0, repeatedPeriods,
			"The saga runs out of time with work left: payments come faster than they are driven, or the provider is slow. "+
				"Look at the lag, at the duration of the saga function, and at the provider's status."),
		above("ReservationsReview", metric(telemetry.MetricReservationsReview, "Sum", trafficPeriod), 0, 1,
			"A payment is not what was asked for, or came late under the policy review, or what was paid can't be delivered: a person must decide. "+
				"Look at the reservations with status REVIEW, and at the log of the saga function."),
		above("ReservationsRefundRequired", metric(telemetry.MetricReservationsRefundRequired, "Sum", trafficPeriod), 0, 1,
			"Money is owed to a buyer and the provider does not give it back: a person must. "+
				"Look at the reservations with status REFUND_REQUIRED, and at the payment in the provider's dashboard."),
	}
}
