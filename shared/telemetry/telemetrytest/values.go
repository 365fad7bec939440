package telemetrytest

import (
	"encoding/json"
	"testing"

	"holdfast/shared/telemetry"
)

// Values are the numbers of one line in the embedded metric format, by metric: one, or several
// where the line gives a list. It fails the test when the line is not all that CloudWatch asks
// of one: it would drop the line, or a part of it, without a word.
func Values(tb testing.TB, line string) map[telemetry.MetricName][]float64 {
	tb.Helper()
	var head struct {
		AWS *struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct {
					Name telemetry.MetricName
					Unit telemetry.Unit
				}
			}
		} `json:"_aws"`
	}
	var members map[string]any
	for _, into := range []any{&head, &members} {
		if err := json.Unmarshal([]byte(line), into); err != nil {
			tb.Fatalf("no JSON: %v: %s", err, line)
		}
	}
	if head.AWS == nil || head.AWS.Timestamp <= 0 || len(head.AWS.CloudWatchMetrics) == 0 {
		tb.Fatalf("no line of metrics: %s", line)
	}
	out := make(map[telemetry.MetricName][]float64)
	for _, d := range head.AWS.CloudWatchMetrics {
		if d.Namespace == "" || len(d.Dimensions) == 0 || len(d.Metrics) == 0 || len(d.Metrics) > telemetry.MeasurementsMax {
			tb.Errorf("a directive names %d metrics of %q with the dimensions %v: %s", len(d.Metrics), d.Namespace, d.Dimensions, line)
		}
		for _, set := range d.Dimensions {
			for _, name := range set {
				if value, text := members[name].(string); !text || value == "" {
					tb.Errorf("the dimension %s has no value: %s", name, line)
				}
			}
		}
		for _, m := range d.Metrics {
			out[m.Name] = numbers(tb, m.Name, members[string(m.Name)])
		}
	}
	return out
}

func numbers(tb testing.TB, name telemetry.MetricName, member any) []float64 {
	tb.Helper()
	list, isList := member.([]any)
	if !isList {
		list = []any{member}
	}
	if len(list) == 0 || len(list) > telemetry.ValuesMax {
		tb.Errorf("%s has %d values", name, len(list))
	}
	out := make([]float64, len(list))
	for i, one := range list {
		number, is := one.(float64)
		if !is {
			tb.Errorf("%s has the value %v", name, one)
		}
		out[i] = number
	}
	return out
}
