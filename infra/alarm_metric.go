package main

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/telemetry"
)

// repeatedPeriods: what goes wrong once is tried again by the next sweep or batch;
// what goes wrong in three periods running does not heal by itself.
const repeatedPeriods = 3

// metricOf is a metric of the stage.
type metricOf func(name telemetry.MetricName, statistic string, period time.Duration) awscloudwatch.IMetric

// metricAlarms watch what Holdfast says about itself.
func metricAlarms(chosen stage) []alarm {
	metric := metricsOf(chosen)
	alarms := expiryAlarms(chosen, metric)
	alarms = append(alarms, eventAlarms(metric)...)
	alarms = append(alarms, requestAlarms(metric)...)
	alarms = append(alarms, paymentAlarms(metric)...)
	alarms = append(alarms, auditAlarms(metric)...)
	return append(alarms, archiveAlarms(metric)...)
}

// metricsOf makes the metrics of the stage.
func metricsOf(chosen stage) metricOf {
	return func(name telemetry.MetricName, statistic string, period time.Duration) awscloudwatch.IMetric {
		return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace:     jsii.String(telemetry.Namespace),
			MetricName:    jsii.String(string(name)),
			DimensionsMap: &map[string]*string{telemetry.DimensionStage: jsii.String(string(chosen.Name))},
			Statistic:     jsii.String(statistic),
			Period:        seconds(period),
		})
	}
}
