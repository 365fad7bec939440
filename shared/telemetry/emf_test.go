package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
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

// directiveRead is what a reader of the format finds in the head of a line.
type directiveRead struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []struct{ Name, Unit string }
}

func mustReadDirectives(tb testing.TB, line string) (timestamp int64, directives []directiveRead) {
	tb.Helper()
	var read struct {
		AWS struct {
			Timestamp         int64
			CloudWatchMetrics []directiveRead
		} `json:"_aws"`
	}
	if err := json.Unmarshal([]byte(line), &read); err != nil {
		tb.Fatal(err)
	}
	return read.AWS.Timestamp, read.AWS.CloudWatchMetrics
}

// Every metric in one line: what is named in a directive must be a member of the line
// with a number, and each dimension a member with a text. CloudWatch drops others
// without a word.
func TestALineIsWhatCloudWatchReads(t *testing.T) {
	var out bytes.Buffer
	want := map[string]telemetry.Measurement{}
	var all []telemetry.Measurement
	for i, m := range telemetry.Metrics() {
		one := telemetry.Measurement{Metric: m.Name, Value: float64(i) + 0.5}
		if i%2 == 1 {
			one.Values = []float64{float64(i), 0.25}
		}
		all, want[string(m.Name)] = append(all, one), one
	}
	properties := telemetry.Properties{telemetry.KeyRequestID: "request_1", telemetry.DimensionResourceType: "seat"}
	if err := emitter(&out).Emit(properties, all...); err != nil {
		t.Fatal(err)
	}
	line, rest, ended := strings.Cut(out.String(), "\n")
	if !ended || rest != "" {
		t.Fatalf("want one line with its end, got %q", out.String())
	}
	mustMatchSpecification(t, line)
	members := mustParse(t, line)
	if members["function"] != "expiry" || members["request_id"] != "request_1" || members["stage"] != "dev" || members["resource_type"] != "seat" {
		t.Errorf("properties: %v", members)
	}
	timestamp, directives := mustReadDirectives(t, line)
	if timestamp != start.UnixMilli() {
		t.Errorf("timestamp %d", timestamp)
	}
	for _, d := range directives {
		for _, m := range d.Metrics {
			known, _ := telemetry.MetricNamed(telemetry.MetricName(m.Name))
			dimensions := "[[stage]]"
			if known.Dimension != "" {
				dimensions = "[[stage " + known.Dimension + "]]"
			}
			if m.Unit != string(known.Unit) || fmt.Sprint(d.Dimensions) != dimensions || d.Namespace != "Holdfast" {
				t.Errorf("%s is in %s of %s with the dimensions %v", m.Name, m.Unit, d.Namespace, d.Dimensions)
			}
			value := fmt.Sprint(want[m.Name].Value)
			if want[m.Name].Values != nil {
				value = fmt.Sprint(want[m.Name].Values)
			}
			if got := fmt.Sprint(members[m.Name]); got != value {
				t.Errorf("%s = %s, want %s", m.Name, got, value)
			}
			delete(want, m.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("no directive has %v", want)
	}
}

// A dimension is a series of its own for each of its values, and is billed as one. So there
// are two of them, and neither is the name of something that there is any number of.
func TestNoMetricHasAnIdAsADimension(t *testing.T) {
	ids := []string{telemetry.KeyRequestID, telemetry.KeyHoldID, telemetry.KeyReservationID, telemetry.KeyEventID}
	for _, m := range telemetry.Metrics() {
		if m.Dimension != "" && m.Dimension != telemetry.DimensionResourceType || slices.Contains(ids, m.Dimension) {
			t.Errorf("%s has the dimension %s", m.Name, m.Dimension)
		}
	}
}

func TestALineThatCannotBeRightIsNotWritten(t *testing.T) {
	one, held := telemetry.Count(telemetry.MetricExpiryReleased, 1), telemetry.Count(telemetry.MetricHeldUnits, 1)
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
		"too many values":            {nil, []telemetry.Measurement{{Metric: telemetry.MetricExpiryReleased, Values: make([]float64, telemetry.ValuesMax+1)}}},
		"one value is none":          {nil, []telemetry.Measurement{{Metric: telemetry.MetricExpiryReleased, Values: []float64{1, math.NaN()}}}},
		"no value of the dimension":  {nil, []telemetry.Measurement{held}},
		"a blank one":                {telemetry.Properties{"resource_type": " "}, []telemetry.Measurement{held}},
		"one of another alphabet":    {telemetry.Properties{"resource_type": "좌석"}, []telemetry.Measurement{held}},
		"one that begins so":         {telemetry.Properties{"resource_type": ":seat"}, []telemetry.Measurement{held}},
		"one without an end":         {telemetry.Properties{"resource_type": strings.Repeat("a", 1025)}, []telemetry.Measurement{held}},
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
