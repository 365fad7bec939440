package main

import (
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/telemetry"
)

const (
	// sweepsMissed: one tick may be late by a minute, two are a dead sweep.
	sweepsMissed = 2
	// repeatedPeriods: what goes wrong once is tried again by the next sweep or batch;
	// what goes wrong in three minutes running does not heal by itself.
	repeatedPeriods = 3
	publishLagMax   = 60 * time.Second
	// sagaLagMax is the same for due reservations as the published bound is for due holds.
	sagaLagMax = 120 * time.Second
	// refusedMax lets a few deliveries without a good signature pass: anybody can send them.
	// A wrong secret refuses all of them.
	refusedMax = 10
)

// metricOf is a metric of the stage.
type metricOf func(name telemetry.MetricName, statistic string, period time.Duration) awscloudwatch.IMetric

// metricAlarms watch what Holdfast says about itself. The first two are the promise
// that every hold ends. Their silence is bad news: a sweep that says nothing does
// not run (case B1).
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
	alarms := []alarm{
		{
			"ExpiryLag", metric(telemetry.MetricExpiryLagSecondsMax, "Maximum", minutePeriod),
			awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD, chosen.LagThreshold.Seconds(), sweepsMissed,
			awscloudwatch.TreatMissingData_BREACHING,
			fmt.Sprintf("Holds that are over have not been released for more than %.0f seconds, or the sweep could not tell: "+
				"stock is locked, but no late confirm can succeed. Look at the errors, throttles and log of the expiry function, "+
				"then at throttling of the table's due index.", chosen.LagThreshold.Seconds()),
		},
		{
			"ExpiryHeartbeat", metric(telemetry.MetricExpiryHeartbeat, "Sum", minutePeriod),
			awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD, 1, sweepsMissed,
			awscloudwatch.TreatMissingData_BREACHING,
			"No sweep ran to its end in two minutes: holds will not be released on time. " +
				"Look at the schedule of the expiry function, its dead letters, and its log.",
		},
		above("ExpiryFailed", metric(telemetry.MetricExpiryFailed, "Sum", minutePeriod), 0, repeatedPeriods,
			"Every sweep meets holds that it cannot end: their stock stays locked. "+
				"Look at the log of the expiry function for their ids and the error."),
		above("ExpiryTruncated", metric(telemetry.MetricExpiryTruncated, "Sum", minutePeriod), 0, repeatedPeriods,
			"Sweeps run out of time with work left: holds end faster than they are released. "+
				"Look at the lag, at the duration of the expiry function, and at throttling of the table."),
		above("OutboxSetAside", metric(telemetry.MetricOutboxSetAside, "Sum", trafficPeriod), 0, 1,
			"An event can't be published as it is: it is unreadable, too large, or refused for good. It stays in the unpublished index. "+
				"Look at the log of the outbox function for the item, and at what was deployed last."),
		above("OutboxFailed", metric(telemetry.MetricOutboxFailed, "Sum", minutePeriod), 0, repeatedPeriods,
			"Batches of events are handed back again and again: nothing is lost yet, but consumers hear late. "+
				"Look at the log of the outbox function, and at the limits and the throttling of the event bus."),
		above("OutboxTruncated", metric(telemetry.MetricOutboxTruncated, "Sum", minutePeriod), 0, repeatedPeriods,
			"Batches of events do not fit into the time-out of the outbox function: events come faster than they are published. "+
				"Look at the duration of that function, and at the latency of the event bus."),
		above("OutboxLag", metric(telemetry.MetricOutboxLagSecondsMax, "Maximum", minutePeriod), publishLagMax.Seconds(), repeatedPeriods,
			fmt.Sprintf("Events are published more than %.0f seconds after what they tell. "+
				"Look at the iterator age and the errors of the outbox function.", publishLagMax.Seconds())),
		above("ApiInternalFaults", metric(telemetry.MetricAPIInternalFaults, "Sum", minutePeriod), 0, 1,
			"A request was answered 500 as a fault of ours. Waiting does not heal it: it is a mistake in the code or its deployment. "+
				"Look at the log of the api function for the request ids and the errors, and at what was deployed last."),
	}
	return append(alarms, paymentAlarms(metric)...)
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
		{
			"SagaLag", metric(telemetry.MetricSagaLagSecondsMax, "Maximum", minutePeriod),
			awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD, sagaLagMax.Seconds(), sweepsMissed,
			awscloudwatch.TreatMissingData_BREACHING,
			fmt.Sprintf("Reservations that are due have not been looked at for more than %.0f seconds, or the tick could not tell: "+
				"money waits to be captured or given back. Look at the errors, throttles and log of the saga function, "+
				"then at throttling of the table's due index.", sagaLagMax.Seconds()),
		},
		{
			"SagaHeartbeat", metric(telemetry.MetricSagaHeartbeat, "Sum", minutePeriod),
			awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD, 1, sweepsMissed,
			awscloudwatch.TreatMissingData_BREACHING,
			"No tick of the saga ran to its end in two minutes: what no message tells of is not done. " +
				"Look at the schedule of the saga function, its dead letters, and its log.",
		},
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
