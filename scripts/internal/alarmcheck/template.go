package alarmcheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// windowMax is how far back an alarm with a period below an hour may look. Source:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
const windowMax = 24 * time.Hour

// ownID is the id of the one metric of an alarm without arithmetic.
const ownID = "m"

type templateMetric struct {
	Namespace, MetricName string
	Dimensions            []struct {
		Name  string
		Value any
	}
}

// templateAlarm is an AWS::CloudWatch::Alarm as CloudFormation writes it:
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-cloudwatch-alarm.html
type templateAlarm struct {
	templateMetric
	AlarmDescription                     string
	AlarmActions                         []any
	ActionsEnabled                       *bool
	ComparisonOperator                   Comparison
	Threshold                            *float64
	Period                               int
	Statistic, ExtendedStatistic         Statistic
	EvaluationPeriods, DatapointsToAlarm int
	TreatMissingData                     Missing
	Metrics                              []struct {
		ID         string `json:"Id"`
		Expression string
		MetricStat *struct {
			Metric templateMetric
			Period int
			Stat   Statistic
		}
		ReturnData *bool
	}
}

// Alarms reads the alarms of a CloudFormation template, in the order of their ids. What
// refers to another resource is read as the name that the code gave that resource.
func Alarms(template []byte) ([]Alarm, error) {
	var document struct {
		Resources map[string]struct {
			Type       string
			Properties json.RawMessage
		}
	}
	if err := json.Unmarshal(template, &document); err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	var alarms []Alarm
	for _, id := range slices.Sorted(maps.Keys(document.Resources)) {
		r := document.Resources[id]
		if r.Type != "AWS::CloudWatch::Alarm" {
			continue
		}
		var read templateAlarm
		err := json.Unmarshal(r.Properties, &read)
		var made Alarm
		if err == nil {
			made, err = read.alarm(nameOf(id))
		}
		if err != nil {
			return nil, fmt.Errorf("alarm %s: %w", nameOf(id), err)
		}
		alarms = append(alarms, made)
	}
	return alarms, nil
}

func (t templateAlarm) alarm(id string) (Alarm, error) {
	a := Alarm{
		ID: id, Description: t.AlarmDescription, Comparison: t.ComparisonOperator,
		Period: time.Duration(t.Period) * time.Second, Periods: t.EvaluationPeriods, ToAlarm: t.DatapointsToAlarm, Missing: t.TreatMissingData,
	}
	for _, action := range t.AlarmActions {
		a.Actions = append(a.Actions, reference(action))
	}
	if a.Missing == "" {
		a.Missing = MissingMissing
	}
	if a.ToAlarm == 0 {
		a.ToAlarm = a.Periods
	}
	var err error
	if len(t.Metrics) > 0 {
		a.Watched, a.Period, err = t.arithmetic()
	} else {
		a.Watched = Expression{Formula: ownID, Stats: map[string]Stat{ownID: {t.metric(), t.Statistic + t.ExtendedStatistic}}}
	}
	if err != nil {
		return a, err
	}
	switch {
	case t.ActionsEnabled != nil && !*t.ActionsEnabled:
		return a, errors.New("its actions are switched off")
	case t.Threshold == nil:
		return a, errors.New("it has no threshold")
	case !slices.Contains([]Comparison{Greater, GreaterOrEqual, Less, LessOrEqual}, a.Comparison):
		return a, fmt.Errorf("the comparison %q is not known", a.Comparison)
	case !slices.Contains([]Missing{MissingBreaching, MissingNotBreaching, MissingMissing}, a.Missing):
		return a, fmt.Errorf("missing data treated as %q is not known", a.Missing)
	case a.Period < evaluatedEvery || a.Period%evaluatedEvery != 0:
		return a, fmt.Errorf("a period of %s is not known", a.Period)
	case a.Periods < 1 || a.ToAlarm > a.Periods:
		return a, fmt.Errorf("%d of %d periods is not possible", a.ToAlarm, a.Periods)
	case a.Period < time.Hour && a.Period*time.Duration(a.Periods) > windowMax:
		return a, fmt.Errorf("%d periods of %s are more than %s", a.Periods, a.Period, windowMax)
	}
	a.Threshold = *t.Threshold
	return a, nil
}

// arithmetic reads the metrics of an alarm that computes. All have one period.
func (t templateAlarm) arithmetic() (Expression, time.Duration, error) {
	e, period := Expression{Stats: map[string]Stat{}}, 0
	for _, m := range t.Metrics {
		if m.MetricStat == nil {
			if e.Formula != "" {
				return e, 0, errors.New("it has two formulas")
			}
			e.Formula = m.Expression
			continue
		}
		if period != 0 && period != m.MetricStat.Period {
			return e, 0, errors.New("its metrics have different periods")
		}
		period = m.MetricStat.Period
		e.Stats[m.ID] = Stat{m.MetricStat.Metric.metric(), m.MetricStat.Stat}
	}
	if e.Formula == "" {
		return e, 0, errors.New("it has no formula")
	}
	return e, time.Duration(period) * time.Second, nil
}

func (m templateMetric) metric() Metric {
	dimensions := map[string]string{}
	for _, d := range m.Dimensions {
		dimensions[d.Name] = reference(d.Value)
	}
	return NewMetric(m.Namespace, m.MetricName, dimensions)
}

var hashSuffix = regexp.MustCompile(`[0-9A-F]{8}$`)

// nameOf is a logical id without the hash that CDK appends.
func nameOf(logicalID string) string { return hashSuffix.ReplaceAllString(logicalID, "") }

// reference is a text, or the name of the resource that a value refers to: the name of a
// queue is an attribute of it, and the name of a function is what a plain reference gives.
func reference(value any) string {
	if text, isText := value.(string); isText {
		return text
	}
	object, _ := value.(map[string]any)
	if id, isRef := object["Ref"].(string); isRef {
		return nameOf(id)
	}
	if parts, isAttribute := object["Fn::GetAtt"].([]any); isAttribute && len(parts) > 0 {
		if id, isText := parts[0].(string); isText {
			return nameOf(id)
		}
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return strings.Trim(string(text), `"`)
}
