package main

import (
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

const (
	failedPercentMax = 1
	// timeoutShareMax: p99 above this share of the time-out will soon be time-outs.
	timeoutShareMax    = 0.8
	slowPeriods        = 3
	iteratorAgeMax     = 60 * time.Second
	iteratorAgePeriods = 3
)

// The sections of the runbook that the alarms of all functions share.
const (
	sectionErrors    = "FunctionErrors"
	sectionThrottles = "FunctionThrottles"
	sectionSlow      = "FunctionSlow"
)

// gatewayAlarm watches the answers as the clients see them. A function that answers
// 503 has not failed, so its own errors do not show this.
func gatewayAlarm(api httpAPI) alarm {
	failed := share("answers 5xx, percent", "100 * failed / requests", map[string]awscloudwatch.IMetric{
		"failed":   api.gateway.MetricServerError(over(trafficPeriod, "Sum")),
		"requests": api.gateway.MetricCount(over(trafficPeriod, "Sum")),
	})
	return above("ApiServerErrors", failed, failedPercentMax, 1, page("status",
		fmt.Sprintf("More than %d %% of the requests were answered 5xx: buyers can't buy. "+
			"503 with conflicts or throttling means that a slot is hotter than its stock shards allow.", failedPercentMax)))
}

// durationPeriod is over which the duration of a function is looked at: not shorter than its
// schedule, or there would be periods without a run, and the alarm, which asks for several in a
// row, would never ring.
func durationPeriod(f deployedFunction) time.Duration {
	if f.Schedule == nil {
		return trafficPeriod
	}
	return max(trafficPeriod, f.Schedule.Every)
}

// functionAlarms watch one function. Errors are counted as a share, so that one
// limit serves a function with a call a minute and one with hundreds a second.
func functionAlarms(f deployedFunction) []alarm {
	id := constructID(string(f.Name))
	failed := share("failed runs, percent", "100 * failed / runs", map[string]awscloudwatch.IMetric{
		"failed": f.lambda.MetricErrors(over(trafficPeriod, "Sum")),
		"runs":   f.lambda.MetricInvocations(over(trafficPeriod, "Sum")),
	})
	alarms := []alarm{
		above(id+"Errors", failed, failedPercentMax, 1, ticket("status",
			fmt.Sprintf("More than %d %% of the runs of the function %s failed or timed out.", failedPercentMax, f.Name)).of(sectionErrors)),
		above(id+"Throttles", f.lambda.MetricThrottles(over(trafficPeriod, "Sum")), 0, 1, ticket("status",
			fmt.Sprintf("Runs of the function %s were refused for lack of concurrency.", f.Name)).of(sectionThrottles)),
		above(id+"Slow", f.lambda.MetricDuration(over(durationPeriod(f), "p99")),
			float64(f.Timeout.Milliseconds())*timeoutShareMax, slowPeriods, ticket("status",
				fmt.Sprintf("One in a hundred runs of the function %s takes more than %.0f %% of its time-out of %.0f seconds, and will soon be cut off.",
					f.Name, 100*timeoutShareMax, f.Timeout.Seconds())).of(sectionSlow)),
	}
	if f.Stream != nil {
		age := f.lambda.Metric(jsii.String("IteratorAge"), over(minutePeriod, "Maximum"))
		alarms = append(alarms, above(id+"Behind", age, float64(iteratorAgeMax.Milliseconds()), iteratorAgePeriods, ticket("status",
			fmt.Sprintf("The function %s reads stream records that are older than %.0f seconds: consumers hear late what happened.", f.Name, iteratorAgeMax.Seconds()))))
	}
	return alarms
}
