package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"holdfast/shared/system/systemtest"
	"holdfast/shared/telemetry"
)

// specification is the shape that CloudWatch asks of a line, written down from
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
const specification = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "required": ["_aws"],
  "properties": {
    "_aws": {
      "type": "object",
      "required": ["CloudWatchMetrics", "Timestamp"],
      "additionalProperties": false,
      "properties": {
        "Timestamp": {"type": "integer", "minimum": 0},
        "CloudWatchMetrics": {
          "type": "array",
          "minItems": 1,
          "items": {
            "type": "object",
            "required": ["Namespace", "Dimensions", "Metrics"],
            "additionalProperties": false,
            "properties": {
              "Namespace": {"type": "string", "minLength": 1, "maxLength": 1024},
              "Dimensions": {
                "type": "array",
                "minItems": 1,
                "items": {"type": "array", "minItems": 1, "maxItems": 30, "items": {"type": "string", "minLength": 1, "maxLength": 250}}
              },
              "Metrics": {
                "type": "array",
                "minItems": 1,
                "maxItems": 100,
                "items": {
                  "type": "object",
                  "required": ["Name"],
                  "additionalProperties": false,
                  "properties": {
                    "Name": {"type": "string", "minLength": 1, "maxLength": 1024},
                    "Unit": {"enum": ["Seconds", "Microseconds", "Milliseconds", "Bytes", "Kilobytes", "Megabytes", "Gigabytes", "Terabytes", "Bits", "Kilobits", "Megabits", "Gigabits", "Terabits", "Percent", "Count", "Bytes/Second", "Kilobytes/Second", "Megabytes/Second", "Gigabytes/Second", "Terabytes/Second", "Bits/Second", "Kilobits/Second", "Megabits/Second", "Gigabits/Second", "Terabits/Second", "Count/Second", "None"]}
                  }
                }
              }
            }
          }
        }
      }
    }
  }
}`

var start = time.Date(2026, 3, 1, 9, 0, 0, 123e6, time.UTC)

func emitter(w *bytes.Buffer) *telemetry.Emitter {
	return telemetry.NewEmitter(w, systemtest.NewClock(start), telemetry.Source{Stage: "dev", Function: "expiry"})
}

func mustParse(tb testing.TB, line string) map[string]any {
	tb.Helper()
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		tb.Fatalf("not JSON: %v\n%s", err, line)
	}
	return parsed.(map[string]any)
}

func mustMatchSpecification(tb testing.TB, line string) {
	tb.Helper()
	schema, err := jsonschema.UnmarshalJSON(strings.NewReader(specification))
	if err != nil {
		tb.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("specification.json", schema); err != nil {
		tb.Fatal(err)
	}
	compiled, err := compiler.Compile("specification.json")
	if err != nil {
		tb.Fatal(err)
	}
	if err := compiled.Validate(any(mustParse(tb, line))); err != nil {
		tb.Errorf("the line is not what CloudWatch reads: %v\n%s", err, line)
	}
}

// Every metric in one line: what is named in the directive must be a member of the line
// with a number, and each dimension a member with a text. CloudWatch drops others
// without a word.
func TestALineIsWhatCloudWatchReads(t *testing.T) {
	var out bytes.Buffer
	var all []telemetry.Measurement
	for i, m := range telemetry.Metrics() {
		all = append(all, telemetry.Measurement{Metric: m.Name, Value: float64(i) + 0.5})
	}
	if err := emitter(&out).Emit(telemetry.Properties{telemetry.KeyRequestID: "request_1"}, all...); err != nil {
		t.Fatal(err)
	}
	line, rest, ended := strings.Cut(out.String(), "\n")
	if !ended || rest != "" {
		t.Fatalf("want one line with its end, got %q", out.String())
	}
	mustMatchSpecification(t, line)
	var read struct {
		AWS struct {
			Timestamp         int64
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name, Unit string }
			}
		} `json:"_aws"`
	}
	if err := json.Unmarshal([]byte(line), &read); err != nil {
		t.Fatal(err)
	}
	members := mustParse(t, line)
	d := read.AWS.CloudWatchMetrics[0]
	if read.AWS.Timestamp != start.UnixMilli() || d.Namespace != "Holdfast" {
		t.Errorf("timestamp %d and namespace %q", read.AWS.Timestamp, d.Namespace)
	}
	if got := fmt.Sprint(d.Dimensions); got != "[[stage]]" || members["stage"] != "dev" {
		t.Errorf("dimensions %s, stage %v; the stage alone must be a dimension", got, members["stage"])
	}
	if members["function"] != "expiry" || members["request_id"] != "request_1" {
		t.Errorf("properties: %v", members)
	}
	if len(d.Metrics) != len(all) {
		t.Fatalf("%d metrics in the line, want %d", len(d.Metrics), len(all))
	}
	for i, m := range d.Metrics {
		known, _ := telemetry.MetricNamed(telemetry.MetricName(m.Name))
		if m.Unit != string(known.Unit) || m.Name != string(all[i].Metric) {
			t.Errorf("metric %d is %s in %s", i, m.Name, m.Unit)
		}
		if got, want := fmt.Sprint(members[m.Name]), fmt.Sprint(all[i].Value); got != want {
			t.Errorf("%s = %s, want %s", m.Name, got, want)
		}
	}
}

func TestALineThatCannotBeRightIsNotWritten(t *testing.T) {
	one := telemetry.Count(telemetry.MetricExpiryReleased, 1)
	tests := map[string]struct {
		properties   telemetry.Properties
		measurements []telemetry.Measurement
	}{
		"nothing measured":           {nil, nil},
		"more than CloudWatch reads": {nil, make([]telemetry.Measurement, telemetry.MeasurementsMax+1)},
		"unknown metric":             {nil, []telemetry.Measurement{{Metric: "hold_1_lag", Value: 1}}},
		"twice":                      {nil, []telemetry.Measurement{one, one}},
		"not a number":               {nil, []telemetry.Measurement{{Metric: telemetry.MetricExpiryReleased, Value: math.NaN()}}},
		"endless":                    {nil, []telemetry.Measurement{{Metric: telemetry.MetricExpiryReleased, Value: math.Inf(1)}}},
		"property over the stage":    {telemetry.Properties{"stage": "prod"}, []telemetry.Measurement{one}},
		"property over the metric":   {telemetry.Properties{"expiry_released": "7"}, []telemetry.Measurement{one}},
		"property over the head":     {telemetry.Properties{"_aws": "x"}, []telemetry.Measurement{one}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := emitter(&out).Emit(test.properties, test.measurements...); err == nil || out.Len() > 0 {
				t.Errorf("err = %v, written %q; want an error and nothing", err, out.String())
			}
		})
	}
	var out bytes.Buffer
	stageless := telemetry.NewEmitter(&out, systemtest.NewClock(start), telemetry.Source{Function: "expiry"})
	if err := stageless.Emit(nil, one); err == nil || out.Len() > 0 {
		t.Errorf("without a stage: err = %v, written %q", err, out.String())
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestALostLineIsAnError(t *testing.T) {
	e := telemetry.NewEmitter(brokenWriter{}, systemtest.NewClock(start), telemetry.Source{Stage: "dev"})
	if err := e.Emit(nil, telemetry.Count(telemetry.MetricExpiryReleased, 1)); err == nil {
		t.Error("the line is lost and nobody is told")
	}
}

func TestEveryMetricIsExplainedOnce(t *testing.T) {
	seen := map[telemetry.MetricName]bool{}
	for _, m := range telemetry.Metrics() {
		if seen[m.Name] {
			t.Errorf("%s is listed twice", m.Name)
		}
		seen[m.Name] = true
		if m.Unit == "" || !strings.HasSuffix(m.Meaning, ".") {
			t.Errorf("%s has no unit or no meaning", m.Name)
		}
		if seconds := strings.Contains(string(m.Name), "_seconds"); seconds != (m.Unit == telemetry.UnitSeconds) {
			t.Errorf("%s is in %s", m.Name, m.Unit)
		}
	}
	if len(seen) > telemetry.MeasurementsMax {
		t.Errorf("%d metrics do not fit in one line", len(seen))
	}
	if _, known := telemetry.MetricNamed("no_such_metric"); known {
		t.Error("an unknown metric is found")
	}
}
