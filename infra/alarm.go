package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

const (
	minutePeriod  = time.Minute      // how often the sweep reports, and queues and streams are measured
	trafficPeriod = 5 * time.Minute  // over which shares of requests and runs are counted
	archivePeriod = 15 * time.Minute // how often the archive reports
)

const (
	// opsCommand is how the operator's tool is run, in the folder of go.mod.
	opsCommand = "go run ./scripts/ops "
	// runbookFile has a section for each alarm.
	runbookFile = "infra/RUNBOOKS.md"
)

// watched is what the alarms look at.
type watched struct {
	stage
	functions []deployedFunction
	resources resources
	api       httpAPI
}

// severity says who is called, and when.
type severity string

// The severities.
const (
	severityPage   severity = "PAGE"   // somebody is woken: stock or money is locked or wrong, or nobody can buy
	severityTicket severity = "TICKET" // somebody looks in working hours: the system heals itself, more slowly
)

// call is what an alarm tells the person whom it calls.
type call struct {
	severity severity
	// next is what to run first: the command and arguments of the operator's tool.
	next string
	// meaning says what it means, and what users feel of it.
	meaning string
	// section is that of the runbook; the alarm's own id if it is empty.
	section string
}

func page(next, meaning string) call {
	return call{severity: severityPage, next: next, meaning: meaning}
}
func ticket(next, meaning string) call {
	return call{severity: severityTicket, next: next, meaning: meaning}
}

// of lets alarms of one kind, such as the same one of each function, share a section.
func (c call) of(section string) call {
	c.section = section
	return c
}

// description is what is read at three in the morning, on a small screen: how urgent it
// is, what it means, what to type, and where the rest is told.
func (a alarm) description() string {
	section := a.call.section
	if section == "" {
		section = a.id
	}
	return fmt.Sprintf("%s. %s Run: %s%s. Then read %s#%s", a.call.severity, a.call.meaning, opsCommand, a.call.next, runbookFile, strings.ToLower(section))
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
	call    call
}

// above is an alarm for a value over a limit, for which silence is good news.
func above(id string, metric awscloudwatch.IMetric, limit float64, periods int, to call) alarm {
	return alarm{
		id, metric, awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD, limit, periods,
		awscloudwatch.TreatMissingData_NOT_BREACHING, to,
	}
}

// aboveOrSilent is an alarm for a value over a limit that must be told in every period.
func aboveOrSilent(id string, metric awscloudwatch.IMetric, limit float64, periods int, to call) alarm {
	a := above(id, metric, limit, periods, to)
	a.missing = awscloudwatch.TreatMissingData_BREACHING
	return a
}

// heartbeat is an alarm for something that must be counted in every period.
func heartbeat(id string, metric awscloudwatch.IMetric, periods int, to call) alarm {
	return alarm{
		id, metric, awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD, 1, periods,
		awscloudwatch.TreatMissingData_BREACHING, to,
	}
}

// alarmsOf are all alarms of the stage, in a fixed order.
func alarmsOf(w watched) []alarm {
	alarms := metricAlarms(w.stage)
	alarms = append(alarms, gatewayAlarm(w.api))
	for _, f := range w.functions {
		alarms = append(alarms, functionAlarms(f)...)
	}
	return append(alarms, queueAlarms(w)...)
}

// addAlarms makes every alarm and sends it to the topic of its severity, when it goes off
// and when it is over.
func addAlarms(stack awscdk.Stack, topics alarmTopics, w watched) []interfacesawscloudwatch.IAlarmRef {
	actions := map[severity]awscloudwatchactions.SnsAction{
		severityPage:   awscloudwatchactions.NewSnsAction(topics.pages),
		severityTicket: awscloudwatchactions.NewSnsAction(topics.tickets),
	}
	var all []interfacesawscloudwatch.IAlarmRef
	for _, a := range alarmsOf(w) {
		made := awscloudwatch.NewAlarm(stack, jsii.String(a.id), &awscloudwatch.AlarmProps{
			Metric:             a.metric,
			ComparisonOperator: a.comparison,
			Threshold:          jsii.Number(a.threshold),
			EvaluationPeriods:  jsii.Number(a.periods),
			DatapointsToAlarm:  jsii.Number(a.periods),
			TreatMissingData:   a.missing,
			AlarmDescription:   jsii.String(a.description()),
		})
		made.AddAlarmAction(actions[a.call.severity])
		made.AddOkAction(actions[a.call.severity])
		all = append(all, made)
	}
	return all
}

func over(period time.Duration, statistic string) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Period: seconds(period), Statistic: jsii.String(statistic)}
}

// share is 100 * part / whole of two sums over a period. There is no number in a period
// without any whole.
func share(label, formula string, metrics map[string]awscloudwatch.IMetric) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(formula), Label: jsii.String(label), Period: seconds(trafficPeriod), UsingMetrics: &metrics,
	})
}
