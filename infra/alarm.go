package main

import (
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

const (
	sweepPeriod  = time.Minute     // how often the expiry metrics come
	trafficAlarm = 5 * time.Minute // over which failing shares are counted
	// sweepPeriodsMissed: one tick may be late by a minute, two are a dead sweep.
	sweepPeriodsMissed = 2
	failedPercentMax   = 1
	// timeoutShareMax: p99 above this share of the time-out will soon be time-outs.
	timeoutShareMax    = 0.8
	slowPeriods        = 3
	iteratorAgeMax     = 60 * time.Second
	iteratorAgePeriods = 3
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

// newAlarmTopic makes the stage's topic for alarms.
func newAlarmTopic(stack awscdk.Stack, chosen settings) awssns.Topic {
	topic := awssns.NewTopic(stack, jsii.String("Alarms"), &awssns.TopicProps{
		DisplayName: jsii.String("Holdfast " + string(chosen.Name)),
		EnforceSSL:  jsii.Bool(true),
	})
	// A policy of our own replaces the default one, which let the alarms publish.
	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        jsii.String("AlarmsMayPublish"),
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("cloudwatch.amazonaws.com"), nil)},
		Actions:    jsii.Strings("sns:Publish"),
		Resources:  &[]*string{topic.TopicArn()},
		Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": stack.Account()}},
	}))
	if chosen.AlarmEmail != "" {
		topic.AddSubscription(awssnssubscriptions.NewEmailSubscription(jsii.String(chosen.AlarmEmail), nil))
	}
	return topic
}

// addAlarms makes every alarm and sends it to topic, when it goes off and when it
// is over.
func addAlarms(stack awscdk.Stack, topic awssns.ITopic, w watched) {
	alarms := expiryAlarms(w.stage)
	alarms = append(alarms, gatewayAlarm(w.api))
	for _, f := range w.functions {
		alarms = append(alarms, functionAlarms(f)...)
	}
	for _, resource := range topology.Resources() {
		if queue, ok := w.resources.queues[resource]; ok {
			alarms = append(alarms, above(constructID(string(resource))+"Waiting",
				queue.MetricApproximateNumberOfMessagesVisible(over(sweepPeriod, "Maximum")), 0, 1,
				fmt.Sprintf("Dead letters wait in the queue %s: work was given up after its retries. "+
					"Read the messages for the reason; the ledger itself still has the truth, so repair the cause first and then replay.", resource)))
		}
	}
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

// expiryAlarms watch the promise that every hold ends. Their silence is bad news:
// a sweep that says nothing does not run (case B1).
func expiryAlarms(chosen stage) []alarm {
	metric := func(name telemetry.MetricName, statistic string) awscloudwatch.Metric {
		return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace:     jsii.String(telemetry.Namespace),
			MetricName:    jsii.String(string(name)),
			DimensionsMap: &map[string]*string{telemetry.DimensionStage: jsii.String(string(chosen.Name))},
			Statistic:     jsii.String(statistic),
			Period:        seconds(sweepPeriod),
		})
	}
	return []alarm{
		{
			"ExpiryLag", metric(telemetry.MetricExpiryLagSecondsMax, "Maximum"),
			awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD, chosen.LagThreshold.Seconds(), sweepPeriodsMissed,
			awscloudwatch.TreatMissingData_BREACHING,
			fmt.Sprintf("Holds that are over have not been released for more than %.0f seconds, or the sweep reports nothing at all: "+
				"stock is locked, but no late confirm can succeed. Look at the errors, throttles and log of the expiry function, "+
				"then at throttling of the table's due index.", chosen.LagThreshold.Seconds()),
		},
		{
			"ExpiryHeartbeat", metric(telemetry.MetricExpiryHeartbeat, "Sum"),
			awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD, 1, sweepPeriodsMissed,
			awscloudwatch.TreatMissingData_BREACHING,
			"No sweep ran to its end in two minutes: holds will not be released on time. " +
				"Look at the schedule of the expiry function, its dead letters, and its log.",
		},
	}
}

func gatewayAlarm(api httpAPI) alarm {
	failed := awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String("100 * failed / requests"),
		Label:      jsii.String("answers 5xx, percent"),
		Period:     seconds(trafficAlarm),
		UsingMetrics: &map[string]awscloudwatch.IMetric{
			"failed":   api.gateway.MetricServerError(over(trafficAlarm, "Sum")),
			"requests": api.gateway.MetricCount(over(trafficAlarm, "Sum")),
		},
	})
	return above("ApiServerErrors", failed, failedPercentMax, 1,
		fmt.Sprintf("More than %d %% of the requests were answered 5xx. "+
			"Look at the access log for the routes and at the log of the api function for the cause; "+
			"503 with conflicts or throttling means that a slot is hotter than its stock shards allow.", failedPercentMax))
}

// functionAlarms watch one function. Errors are counted as a share, so that one
// limit serves a function with a call a minute and one with hundreds a second.
func functionAlarms(f deployedFunction) []alarm {
	id := constructID(string(f.Name))
	failed := awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String("100 * failed / runs"),
		Label:      jsii.String("failed runs, percent"),
		Period:     seconds(trafficAlarm),
		UsingMetrics: &map[string]awscloudwatch.IMetric{
			"failed": f.lambda.MetricErrors(over(trafficAlarm, "Sum")),
			"runs":   f.lambda.MetricInvocations(over(trafficAlarm, "Sum")),
		},
	})
	alarms := []alarm{
		above(id+"Errors", failed, failedPercentMax, 1,
			fmt.Sprintf("More than %d %% of the runs of the function %s failed or timed out. Look at its log for the error.", failedPercentMax, f.Name)),
		above(id+"Throttles", f.lambda.MetricThrottles(over(trafficAlarm, "Sum")), 0, 1,
			fmt.Sprintf("Runs of the function %s were refused for lack of concurrency. "+
				"Look at its reserved concurrency, the account's limit, and whether earlier runs hang.", f.Name)),
		above(id+"Slow", f.lambda.MetricDuration(over(trafficAlarm, "p99")),
			float64(f.Timeout.Milliseconds())*timeoutShareMax, slowPeriods,
			fmt.Sprintf("One in a hundred runs of the function %s takes more than %.0f %% of its time-out of %.0f seconds. "+
				"Look at the latency and throttling of the table before runs begin to be cut off.", f.Name, 100*timeoutShareMax, f.Timeout.Seconds())),
	}
	if f.Stream != nil {
		age := f.lambda.Metric(jsii.String("IteratorAge"), over(sweepPeriod, "Maximum"))
		alarms = append(alarms, above(id+"Behind", age, float64(iteratorAgeMax.Milliseconds()), iteratorAgePeriods,
			fmt.Sprintf("The function %s reads stream records that are older than %.0f seconds: consumers hear late what happened. "+
				"Look at its errors for a record that is retried, and at throttling of the event bus.", f.Name, iteratorAgeMax.Seconds())))
	}
	return alarms
}

func over(period time.Duration, statistic string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Period: seconds(period), Statistic: jsii.String(statistic)}
}
