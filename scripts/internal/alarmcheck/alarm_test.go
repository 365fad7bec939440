package alarmcheck_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/scripts/internal/alarmcheck"
)

var (
	now   = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	depth = alarmcheck.NewMetric("Test", "depth", map[string]string{"stage": "dev"})
)

// watching is an alarm on the largest depth of a minute, which breaches over zero.
func watching(toAlarm, periods int, missing alarmcheck.Missing) alarmcheck.Alarm {
	return alarmcheck.Alarm{
		ID: "Depth", Watched: alarmcheck.Expression{Formula: "m", Stats: map[string]alarmcheck.Stat{"m": {Metric: depth, Statistic: "Maximum"}}},
		Comparison: alarmcheck.Greater, Period: time.Minute, Periods: periods, ToAlarm: toAlarm, Missing: missing,
	}
}

// drawn makes samples of a row of the page's tables: the oldest first, one in each minute,
// the last one in the minute before now. 0 is fine, X breaches, and - was never reported.
func drawn(row string) []alarmcheck.Sample {
	var samples []alarmcheck.Sample
	marks := strings.Fields(row)
	for i, mark := range marks {
		at := now.Add(-time.Duration(len(marks)-i) * time.Minute).Add(30 * time.Second)
		if mark != "-" {
			samples = append(samples, alarmcheck.Sample{Metric: depth, At: at, Value: map[string]float64{"0": 0, "X": 1}[mark]})
		}
	}
	return samples
}

// The two tables of the page on missing data, row by row, and what the text below them adds:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
func TestStateIsThatOfTheDocumentedTables(t *testing.T) {
	const ok, alarm, insufficient = alarmcheck.OK, alarmcheck.InAlarm, alarmcheck.InsufficientData
	for _, test := range []struct {
		toAlarm                        int
		row                            string
		missing, breaching, notMissing alarmcheck.State
	}{
		{3, "0 - X - X", ok, ok, ok},
		{3, "0 - - - -", ok, ok, ok},
		{3, "- - - - -", insufficient, alarm, ok},
		{3, "0 X X - X", alarm, alarm, alarm},
		{3, "- - X - -", alarm, alarm, ok},
		{2, "0 - X - X", alarm, alarm, alarm},
		{2, "0 0 X 0 X", alarm, alarm, alarm},
		{2, "0 - X - -", ok, alarm, ok},
		{2, "- - - - 0", ok, alarm, ok},
		{2, "- - - X -", alarm, alarm, ok},
		{3, "- - - - X", ok, alarm, ok},
		{3, "- - - X -", ok, alarm, ok},
		{3, "- - - X 0", ok, ok, ok},
		{3, "- - X - 0", ok, ok, ok},
		{3, "X X 0 0 0", ok, ok, ok},
		{3, "X X X X X", alarm, alarm, alarm},
	} {
		for missing, want := range map[alarmcheck.Missing]alarmcheck.State{
			alarmcheck.MissingMissing: test.missing, alarmcheck.MissingBreaching: test.breaching, alarmcheck.MissingNotBreaching: test.notMissing,
		} {
			t.Run(fmt.Sprintf("%d of 3, %s, %s", test.toAlarm, missing, test.row), func(t *testing.T) {
				got, err := watching(test.toAlarm, 3, missing).State(drawn(test.row), now)
				if err != nil || got != want {
					t.Errorf("%s, %v; want %s", got, err, want)
				}
			})
		}
	}
}

// What is older than the range, in the minute that is not over, or of another series, is
// not looked at.
func TestStateLooksAtItsOwnSeriesAndWindow(t *testing.T) {
	at := func(ago time.Duration, m alarmcheck.Metric) []alarmcheck.Sample {
		return []alarmcheck.Sample{{Metric: m, At: now.Add(-ago), Value: 1}}
	}
	other := alarmcheck.NewMetric("Test", "depth", map[string]string{"stage": "prod"})
	for _, test := range []struct {
		name    string
		samples []alarmcheck.Sample
		now     time.Time
		want    alarmcheck.State
	}{
		{"at the start of the last minute", at(time.Minute, depth), now, alarmcheck.InAlarm},
		{"seconds into the next minute", at(time.Minute, depth), now.Add(59 * time.Second), alarmcheck.InAlarm},
		{"this minute is not over", at(0, depth), now, alarmcheck.OK},
		{"looked at again while nothing new comes", at(3*time.Minute, depth), now, alarmcheck.InAlarm},
		{"out of the range", at(3*time.Minute+time.Millisecond, depth), now, alarmcheck.OK},
		{"another stage", at(time.Minute, other), now, alarmcheck.OK},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := watching(1, 1, alarmcheck.MissingNotBreaching).State(test.samples, test.now)
			if err != nil || got != test.want {
				t.Errorf("%s, %v; want %s", got, err, test.want)
			}
		})
	}
}

func TestStatisticsAndArithmetic(t *testing.T) {
	failed := alarmcheck.NewMetric("Test", "failed", nil)
	numbers := func(m alarmcheck.Metric, values ...float64) []alarmcheck.Sample {
		var samples []alarmcheck.Sample
		for _, v := range values {
			samples = append(samples, alarmcheck.Sample{Metric: m, At: now.Add(-time.Second), Value: v})
		}
		return samples
	}
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, test := range []struct {
		formula   string
		statistic alarmcheck.Statistic
		depths    []float64
		threshold float64
		want      alarmcheck.State
	}{
		{"m", "Sum", []float64{1, 2, 3}, 5.9, alarmcheck.InAlarm},
		{"m", "Sum", []float64{1, 2, 3}, 6, alarmcheck.OK},
		{"m", "Maximum", []float64{1, 3, 2}, 2.9, alarmcheck.InAlarm},
		{"m", "Maximum", []float64{1, 3, 2}, 3, alarmcheck.OK},
		{"m", "Minimum", []float64{2, 1, 3}, 1, alarmcheck.OK},
		{"m", "Average", []float64{1, 2, 3}, 1.9, alarmcheck.InAlarm},
		{"m", "SampleCount", []float64{0, 0}, 1.9, alarmcheck.InAlarm},
		{"m", "p99", hundred, 98.9, alarmcheck.InAlarm},
		{"m", "p99", hundred, 99, alarmcheck.OK},
		{"m", "p50", hundred, 50, alarmcheck.OK},
		{"100 * failed / m", "Sum", []float64{100, 100}, 0.9, alarmcheck.InAlarm},
		{"100 * failed / m", "Sum", []float64{100, 100}, 1, alarmcheck.OK},
		{"100 * failed / (m - 100)", "Sum", []float64{100, 100}, 1.9, alarmcheck.InAlarm},
		{"m - 2 - 3", "Sum", []float64{6}, 0.9, alarmcheck.InAlarm},
		{"failed / (m - m)", "Sum", []float64{1}, 0, alarmcheck.OK}, // division by zero is no number
		{"100 * failed / m", "Sum", nil, 0, alarmcheck.OK},          // one series has no number
	} {
		t.Run(fmt.Sprintf("%s of %s over %g", test.statistic, test.formula, test.threshold), func(t *testing.T) {
			a := watching(1, 1, alarmcheck.MissingNotBreaching)
			a.Threshold, a.Watched.Formula = test.threshold, test.formula
			a.Watched.Stats = map[string]alarmcheck.Stat{
				"m": {Metric: depth, Statistic: test.statistic}, "failed": {Metric: failed, Statistic: "Sum"},
			}
			got, err := a.State(append(numbers(depth, test.depths...), numbers(failed, 2)...), now)
			if err != nil || got != test.want {
				t.Errorf("%s, %v; want %s", got, err, test.want)
			}
		})
	}
	for _, formula := range []string{"", "m m", "(m", "m +", "m & m", "FILL(m, 0)"} {
		a := watching(1, 1, alarmcheck.MissingNotBreaching)
		a.Watched.Formula = formula
		if got, err := a.State(numbers(depth, 1), now); err == nil {
			t.Errorf("the formula %q gave %s; want an error", formula, got)
		}
	}
	a := watching(1, 1, alarmcheck.MissingNotBreaching)
	a.Watched.Stats["m"] = alarmcheck.Stat{Metric: depth, Statistic: "tm99"}
	if got, err := a.State(numbers(depth, 1), now); err == nil {
		t.Errorf("an unknown statistic gave %s; want an error", got)
	}
}
