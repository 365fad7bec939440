package alarmcheck_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"holdfast/scripts/internal/alarmcheck"
)

const simpleAlarm = `"AlarmDescription":"why","AlarmActions":[{"Ref":"Pages0123ABCD"}],"ComparisonOperator":"GreaterThanThreshold",
"Threshold":0,"Period":60,"EvaluationPeriods":2,"TreatMissingData":"breaching","Namespace":"AWS/SQS","MetricName":"visible","Statistic":"Maximum",
"Dimensions":[{"Name":"QueueName","Value":{"Fn::GetAtt":["DueQueue0123ABCD","QueueName"]}}]`

func template(properties string) []byte {
	return []byte(`{"Resources":{"DepthABCD0123":{"Type":"AWS::CloudWatch::Alarm","Properties":{` + properties + `}},"Other":{"Type":"AWS::SQS::Queue"}}}`)
}

func TestAlarmsAreReadFromATemplate(t *testing.T) {
	got, err := alarmcheck.Alarms(template(simpleAlarm))
	visible := alarmcheck.NewMetric("AWS/SQS", "visible", map[string]string{"QueueName": "DueQueue"})
	want := []alarmcheck.Alarm{{
		ID: "Depth", Description: "why", Actions: []string{"Pages"}, Comparison: alarmcheck.Greater, Period: time.Minute,
		Periods: 2, ToAlarm: 2, Missing: alarmcheck.MissingBreaching,
		Watched: alarmcheck.Expression{Formula: "m", Stats: map[string]alarmcheck.Stat{"m": {Metric: visible, Statistic: "Maximum"}}},
	}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v", got, err, want)
	}
	got, err = alarmcheck.Alarms(template(`"ComparisonOperator":"GreaterThanThreshold","Threshold":1,"EvaluationPeriods":1,"Metrics":[
		{"Id":"expr_1","Expression":"100 * failed / runs"},
		{"Id":"failed","ReturnData":false,"MetricStat":{"Metric":{"Namespace":"AWS/Lambda","MetricName":"Errors","Dimensions":[{"Name":"FunctionName","Value":{"Ref":"ApiFunction0123ABCD"}}]},"Period":300,"Stat":"Sum"}},
		{"Id":"runs","ReturnData":false,"MetricStat":{"Metric":{"Namespace":"AWS/Lambda","MetricName":"Invocations"},"Period":300,"Stat":"Sum"}}]`))
	if err != nil || len(got) != 1 || got[0].Watched.Formula != "100 * failed / runs" || got[0].Period != 5*time.Minute ||
		got[0].Watched.Stats["failed"].Metric.Dimensions != "FunctionName=ApiFunction" || got[0].Missing != alarmcheck.MissingMissing {
		t.Errorf("%+v, %v", got, err)
	}
}

// What is not understood must not pass for an alarm that is fine.
func TestAlarmsThatAreNotUnderstoodAreErrors(t *testing.T) {
	for was, becomes := range map[string]string{
		`"Threshold":0,`: ``,
		`"ComparisonOperator":"GreaterThanThreshold"`: `"ComparisonOperator":"GreaterThanUpperThreshold"`,
		`"TreatMissingData":"breaching"`:              `"TreatMissingData":"ignore"`,
		`"Period":60`:                                 `"Period":10`,
		`"EvaluationPeriods":2`:                       `"EvaluationPeriods":1441`,
		`"AlarmDescription":"why"`:                    `"ActionsEnabled":false`,
		`"Statistic":"Maximum"`:                       `"DatapointsToAlarm":3`,
	} {
		changed := strings.Replace(simpleAlarm, was, becomes, 1)
		if changed == simpleAlarm {
			t.Fatalf("%s is not in the alarm", was)
		}
		if got, err := alarmcheck.Alarms(template(changed)); err == nil {
			t.Errorf("with %q: %+v; want an error", becomes, got)
		}
	}
	if _, err := alarmcheck.Alarms([]byte("Resources:")); err == nil {
		t.Error("what is no JSON was read")
	}
}

func TestLinesAreReadAsCloudWatchReadsThem(t *testing.T) {
	const head = `"_aws":{"Timestamp":1772355600000,"CloudWatchMetrics":[{"Namespace":"Holdfast","Dimensions":[["stage"]],"Metrics":[{"Name":"a","Unit":"Count"},{"Name":"b"}]}]}`
	got, err := alarmcheck.ReadLines(strings.NewReader(
		`{"level":"INFO","msg":"a log line","a":7}` + "\n" + "panic: no JSON\n" +
			`{` + head + `,"stage":"dev","a":1.5,"b":[2,0.5],"request_id":"request_1"}` + "\n"))
	dimensions := map[string]string{"stage": "dev"}
	want := []alarmcheck.Sample{
		{Metric: alarmcheck.NewMetric("Holdfast", "a", dimensions), At: now, Value: 1.5},
		{Metric: alarmcheck.NewMetric("Holdfast", "b", dimensions), At: now, Value: 2},
		{Metric: alarmcheck.NewMetric("Holdfast", "b", dimensions), At: now, Value: 0.5},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v\nwant %v", got, err, want)
	}
	for name, line := range map[string]string{
		"no dimension":  `{` + head + `,"a":1,"b":2}`,
		"no number":     `{` + head + `,"stage":"dev","a":1}`,
		"an empty list": `{` + head + `,"stage":"dev","a":1,"b":[]}`,
		"a long list":   `{` + head + `,"stage":"dev","a":1,"b":[0` + strings.Repeat(",0", 100) + `]}`,
		"a text in it":  `{` + head + `,"stage":"dev","a":1,"b":[0,"2"]}`,
		"a text":        `{` + head + `,"stage":"dev","a":1,"b":"2"}`,
		"no time":       strings.Replace(`{`+head+`,"stage":"dev","a":1,"b":2}`, "1772355600000", "0", 1),
	} {
		if got, err := alarmcheck.ReadLines(strings.NewReader(line)); err == nil {
			t.Errorf("%s: %v; want an error", name, got)
		}
	}
}
