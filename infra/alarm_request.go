package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"

	"holdfast/shared/telemetry"
)

// conflictsPercentMax: a command meets a conflict now and then. When there are as many
// decisions made anew as there are commands, each is made twice on the average, and a slot is
// hotter than its stock items: one takes at most 500 transactions a second, and conflicts bite
// earlier.
const conflictsPercentMax = 100

// requestAlarms watch what requests meet. That much is sold out, or refused for a limit, is
// what a good sale looks like, and is on the dashboard only.
func requestAlarms(metric metricOf) []alarm {
	sum := func(name telemetry.MetricName) awscloudwatch.IMetric { return metric(name, "Sum", trafficPeriod) }
	failing := share("holds that failed, percent", "100 * failed / (failed + answered)", map[string]awscloudwatch.IMetric{
		"failed": sum(telemetry.MetricHoldRequestsFailed), "answered": sum(telemetry.MetricHoldRequests),
	})
	conflicts := share("decisions made anew, percent of commands", "100 * retries / commands", map[string]awscloudwatch.IMetric{
		"retries": sum(telemetry.MetricConflictRetries), "commands": sum(telemetry.MetricCommandRequests),
	})
	return []alarm{
		above("ApiInternalFaults", metric(telemetry.MetricAPIInternalFaults, "Sum", minutePeriod), 0, 1, ticket("status",
			"A request was answered 500 as a fault of ours. Waiting does not heal it: it is a mistake in the code or its deployment.")),
		above("HoldRequestsFailing", failing, failedPercentMax, 1, page("status",
			fmt.Sprintf("More than %d %% of the holds that were asked for were neither made nor refused for a reason of the shop: buyers can't buy.", failedPercentMax))),
		above("ConflictRetries", conflicts, conflictsPercentMax, repeatedPeriods, ticket("status",
			"Commands are decided more than once on the average, because others change the same slot at the same time: answers are slow, and some are 503. Nothing is oversold.")),
	}
}
