package main

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/jsii-runtime-go"
)

const (
	minutePeriod  = time.Minute      // how often the sweep reports, and queues and streams are measured
	trafficPeriod = 5 * time.Minute  // over which shares of requests and runs are counted
	archivePeriod = 15 * time.Minute // how often the archive reports
)

// watched is what the alarms look at.
type watched struct {
	stage
	functions []deployedFunction
	resources resources
	api       httpAPI
}

// alarm is one alarm: it goes off when metric compares so with the threshold in
// every one of the last periods.
type alarm struct {
	id         string
	metric     awscloudwatch.IMetric
	comparison awscloudwatch.ComparisonOperator
	threshold  float64
	periods    int
	// missing says what silence means.
	missing awscloudwatch.TreatMissingData
	// description says what it means and what to look at, for the one it wakes.
	description string
}

// above is an alarm for a value over a limit, for which silence is good news.
func above(id string, metric awscloudwatch.IMetric, limit float64, periods int, description string) alarm {
	return alarm{
		id, metric, awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD, limit, periods,
		awscloudwatch.TreatMissingData_NOT_BREACHING, description,
	}
}

// aboveOrSilent is an alarm for a value over a limit that must be told in every period.
func aboveOrSilent(id string, metric awscloudwatch.IMetric, limit float64, periods int, description string) alarm {
	a := above(id, metric, limit, periods, description)
	a.missing = awscloudwatch.TreatMissingData_BREACHING
	return a
}

// heartbeat is an alarm for something that must be counted in every period.
func heartbeat(id string, metric awscloudwatch.IMetric, periods int, description string) alarm {
	return alarm{
		id, metric, awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD, 1, periods,
		awscloudwatch.TreatMissingData_BREACHING, description,
	}
}

// addAlarms makes every alarm and sends it to topic, when it goes off and when it
// is over.
func addAlarms(stack awscdk.Stack, topic awssns.ITopic, w watched) {
	alarms := metricAlarms(w.stage)
	alarms = append(alarms, gatewayAlarm(w.api))
	for _, f := range w.functions {
		alarms = append(alarms, functionAlarms(f)...)
	}
	alarms = append(alarms, queueAlarms(w)...)
	action := awscloudwatchactions.NewSnsAction(topic)
	for _, a := range alarms {
		made := awscloudwatch.NewAlarm(stack, jsii.String(a.id), &awscloudwatch.AlarmProps{
			Metric:             a.metric,
			ComparisonOperator: a.comparison,
			Threshold:          jsii.Number(a.threshold),
			EvaluationPeriods:  jsii.Number(a.periods),
			DatapointsToAlarm:  jsii.Number(a.periods),
			TreatMissingData:   a.missing,
			AlarmDescription:   jsii.String(a.description),
		})
		made.AddAlarmAction(action)
		made.AddOkAction(action)
	}
}

func over(period time.Duration, statistic string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Period: seconds(period), Statistic: jsii.String(statistic)}
}
