package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

const (
	dashboardColumns = 24 // CloudWatch's grid
	halfWidth        = dashboardColumns / 2
	graphHeight      = 6
	alarmsHeight     = 8
)

// addDashboard shows every metric of the stage: first which alarms ring, then the shares
// that people ask for, then every metric of Holdfast by what it is about, then what AWS
// counts. It follows from the list of metrics, so that a new number is seen by somebody
// before it is watched by an alarm.
func addDashboard(stack awscdk.Stack, w watched, alarms []interfacesawscloudwatch.IAlarmRef) {
	board := awscloudwatch.NewDashboard(stack, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{DashboardName: stack.StackName()})
	board.AddWidgets(awscloudwatch.NewAlarmStatusWidget(&awscloudwatch.AlarmStatusWidgetProps{
		Title: jsii.String("Alarms"), Alarms: &alarms, Width: jsii.Number(dashboardColumns), Height: jsii.Number(alarmsHeight),
	}))
	board.AddWidgets(pairs(shareGraphs(w.stage))...)
	board.AddWidgets(pairs(metricGraphs(w.stage))...)
	board.AddWidgets(pairs(platformGraphs(w))...)
}

// pairs lets two graphs stand beside each other.
func pairs(graphs []awscloudwatch.IWidget) []awscloudwatch.IWidget {
	var rows []awscloudwatch.IWidget
	for two := range slices.Chunk(graphs, dashboardColumns/halfWidth) {
		rows = append(rows, awscloudwatch.NewRow(two...))
	}
	return []awscloudwatch.IWidget{awscloudwatch.NewColumn(rows...)}
}

func graph(title string, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: jsii.String(title), Left: &metrics, Width: jsii.Number(halfWidth), Height: jsii.Number(graphHeight),
	})
}

// shareGraphs are the quotients: what one number says only beside another one.
func shareGraphs(chosen stage) []awscloudwatch.IWidget {
	metric := metricsOf(chosen)
	percent := func(label string, part, whole telemetry.MetricName) awscloudwatch.IMetric {
		return share(label, fmt.Sprintf("100 * %s / %s", part, whole), map[string]awscloudwatch.IMetric{
			string(part): metric(part, "Sum", trafficPeriod), string(whole): metric(whole, "Sum", trafficPeriod),
		})
	}
	return []awscloudwatch.IWidget{
		graph("Holds that were asked for, percent",
			percent("made", telemetry.MetricHoldRequestsMade, telemetry.MetricHoldRequests),
			percent("refused, less was left", telemetry.MetricHoldRequestsShort, telemetry.MetricHoldRequests)),
		graph("Holds that were made, percent",
			percent("sold", telemetry.MetricHoldsConfirmed, telemetry.MetricHoldsCreated),
			percent("expired", telemetry.MetricHoldsExpired, telemetry.MetricHoldsCreated)),
		graph("Commands, percent",
			percent("answered again", telemetry.MetricCommandReplays, telemetry.MetricCommandRequests),
			percent("decided anew", telemetry.MetricConflictRetries, telemetry.MetricCommandRequests)),
	}
}

// metricGraphs show every metric of telemetry.Metrics: those whose names begin with the
// same word together, and apart by their unit.
func metricGraphs(chosen stage) []awscloudwatch.IWidget {
	metric := metricsOf(chosen)
	var titles []string
	graphs := map[string][]awscloudwatch.IMetric{}
	for _, m := range telemetry.Metrics() {
		about, _, _ := strings.Cut(string(m.Name), "_")
		title := about + ", " + strings.ToLower(string(m.Unit))
		if !slices.Contains(titles, title) {
			titles = append(titles, title)
		}
		shown := metric(m.Name, statisticOf(m), trafficPeriod)
		if m.Dimension != "" {
			shown = byDimension(chosen, m)
		}
		graphs[title] = append(graphs[title], shown)
	}
	var widgets []awscloudwatch.IWidget
	for _, title := range titles {
		widgets = append(widgets, graph(title, graphs[title]...))
	}
	return widgets
}

// byDimension finds the series of all values of the metric's own dimension. Which values
// there are is known only when the metric is reported.
func byDimension(chosen stage, m telemetry.Metric) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(fmt.Sprintf(`SEARCH('{%s,%s,%s} MetricName="%s" %s="%s"', '%s')`, telemetry.Namespace,
			telemetry.DimensionStage, m.Dimension, m.Name, telemetry.DimensionStage, chosen.Name, statisticOf(m))),
		Label: jsii.String(""), Period: seconds(trafficPeriod), UsingMetrics: &map[string]awscloudwatch.IMetric{},
	})
}

// levels are the counts of how many there are at a moment. Their sum over five minutes would
// count each of them five times.
var levels = []telemetry.MetricName{
	telemetry.MetricExpiryGhosts, telemetry.MetricExpiryParked, telemetry.MetricOutboxQuarantineSize, telemetry.MetricHeldUnits,
	telemetry.MetricAuditFindingsCritical, telemetry.MetricAuditFindingsWarning, telemetry.MetricAuditMismatch,
	telemetry.MetricAuditGhosts, telemetry.MetricAuditOversold, telemetry.MetricAuditUnsettled, telemetry.MetricAuditReadUnits,
}

// statisticOf is how a metric is shown over a period: the worst time, the highest level, the
// sum of what was counted.
func statisticOf(m telemetry.Metric) string {
	if m.Unit == telemetry.UnitSeconds || slices.Contains(levels, m.Name) {
		return "Maximum"
	}
	return "Sum"
}

// platformGraphs show what AWS counts by itself.
func platformGraphs(w watched) []awscloudwatch.IWidget {
	widgets := []awscloudwatch.IWidget{
		graph("HTTP API, count", w.api.gateway.MetricCount(over(trafficPeriod, "Sum")),
			w.api.gateway.MetricServerError(over(trafficPeriod, "Sum")), w.api.gateway.MetricClientError(over(trafficPeriod, "Sum"))),
		graph("HTTP API, milliseconds", w.api.gateway.MetricLatency(over(trafficPeriod, "p50")), w.api.gateway.MetricLatency(over(trafficPeriod, "p99"))),
	}
	for _, f := range w.functions {
		widgets = append(widgets,
			graph(fmt.Sprintf("Function %s, count", f.Name), f.lambda.MetricInvocations(over(trafficPeriod, "Sum")),
				f.lambda.MetricErrors(over(trafficPeriod, "Sum")), f.lambda.MetricThrottles(over(trafficPeriod, "Sum"))),
			graph(fmt.Sprintf("Function %s, milliseconds", f.Name), f.lambda.MetricDuration(over(trafficPeriod, "p50")), f.lambda.MetricDuration(over(trafficPeriod, "p99"))))
		if f.Stream != nil {
			widgets = append(widgets, graph(fmt.Sprintf("Function %s, age of the stream's records in milliseconds", f.Name),
				f.lambda.Metric(jsii.String("IteratorAge"), over(trafficPeriod, "Maximum"))))
		}
	}
	var waiting, ages []awscloudwatch.IMetric
	for _, resource := range topology.Resources() {
		if queue, made := w.resources.queues.forPeople[resource]; made {
			waiting = append(waiting, queue.MetricApproximateNumberOfMessagesVisible(over(trafficPeriod, "Maximum")))
		}
		if queue, made := w.resources.queues.work[resource]; made {
			ages = append(ages, queue.MetricApproximateAgeOfOldestMessage(over(trafficPeriod, "Maximum")))
		}
	}
	return append(widgets, graph("Queues that people read, messages", waiting...), graph("Queues of work, age of the oldest message in seconds", ages...))
}
