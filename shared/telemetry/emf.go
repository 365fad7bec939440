package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode"

	"holdfast/shared/system"
)

// MeasurementsMax is how many metrics one line may hold. Source:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
const MeasurementsMax = 100

// ValuesMax is how many values one metric may have in one line: the client libraries of AWS
// begin another line after as many. Source:
// https://github.com/awslabs/aws-embedded-metrics-node/blob/master/src/Constants.ts
const ValuesMax = 100

// propertyFunction is the property that tells which function reports.
const propertyFunction = "function"

// memberDirective is where CloudWatch looks for the metrics in a line.
const memberDirective = "_aws"

// Source is who reports.
type Source struct {
	Stage    string
	Function string
}

// Measurement is one number, in the unit of its metric, or several.
type Measurement struct {
	Metric MetricName
	Value  float64
	// Values, if there are any, stand for Value: CloudWatch makes percentiles of all values of
	// all processes, which nobody can make of one percentile for each.
	Values []float64
}

// Count is a measurement of something counted.
func Count(metric MetricName, n int) Measurement {
	return Measurement{Metric: metric, Value: float64(n)}
}

// Properties are searchable members of a line that are not metrics: correlation ids,
// mostly. They make no series and cost nothing beyond their bytes, except the one whose name
// is the dimension of a metric in the line: its value chooses the series.
type Properties map[string]string

// Emitter writes measurements as lines of CloudWatch's embedded metric format. It is
// safe for concurrent use, and a line is written in one piece.
type Emitter struct {
	mutex  sync.Mutex
	writer io.Writer
	clock  system.Clock
	source Source
}

// NewEmitter returns an Emitter that writes to w, which is standard output in Lambda.
func NewEmitter(w io.Writer, clock system.Clock, source Source) *Emitter {
	return &Emitter{writer: w, clock: clock, source: source}
}

type directive struct {
	Timestamp         int64             `json:"Timestamp"` // milliseconds
	CloudWatchMetrics []metricDirective `json:"CloudWatchMetrics"`
}

type metricDirective struct {
	Namespace  string             `json:"Namespace"`
	Dimensions [][]string         `json:"Dimensions"`
	Metrics    []metricDefinition `json:"Metrics"`
}

type metricDefinition struct {
	Name MetricName `json:"Name"`
	Unit Unit       `json:"Unit"`
}

// Emit writes the measurements as one line, at once: what is kept back when a Lambda
// function returns is frozen with it. It returns an error, and writes nothing, when the
// line could not be right: no measurement or too many, an unknown metric, a metric
// twice, too many values, a number that is not finite, a dimension without a value, a
// property under a name that is taken.
func (e *Emitter) Emit(properties Properties, measurements ...Measurement) error {
	line, err := e.line(properties, measurements)
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if _, err := e.writer.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("metrics: write: %w", err)
	}
	return nil
}

func (e *Emitter) line(properties Properties, measurements []Measurement) ([]byte, error) {
	if n := len(measurements); n < 1 || n > MeasurementsMax {
		return nil, fmt.Errorf("%d measurements in one line; want 1 to %d", n, MeasurementsMax)
	}
	if e.source.Stage == "" {
		// CloudWatch drops a line whose dimension has no value, without a word.
		return nil, errors.New("the stage is not known")
	}
	members := map[string]any{DimensionStage: e.source.Stage, propertyFunction: e.source.Function}
	var directives []metricDirective
	for _, m := range measurements {
		metric, known := MetricNamed(m.Metric)
		if !known {
			return nil, fmt.Errorf("unknown metric %q", m.Metric)
		}
		if _, taken := members[string(m.Metric)]; taken {
			return nil, fmt.Errorf("%s is measured twice in one line", m.Metric)
		}
		value, err := m.member()
		if err != nil {
			return nil, err
		}
		if metric.Dimension != "" && !usable(properties[metric.Dimension]) {
			return nil, fmt.Errorf("%s needs a value of its dimension %s", m.Metric, metric.Dimension)
		}
		members[string(m.Metric)] = value
		directives = withDefinition(directives, metric)
	}
	members[memberDirective] = directive{Timestamp: e.clock.Now().UnixMilli(), CloudWatchMetrics: directives}
	for name, value := range properties {
		if _, taken := members[name]; taken || name == "" {
			return nil, fmt.Errorf("the property name %q is taken", name)
		}
		members[name] = value
	}
	return json.Marshal(members)
}

// member is what stands for the measurement in its line.
func (m Measurement) member() (any, error) {
	values := m.Values
	if len(values) == 0 {
		values = []float64{m.Value}
	}
	if len(values) > ValuesMax {
		return nil, fmt.Errorf("%s has %d values; want at most %d", m.Metric, len(values), ValuesMax)
	}
	for _, value := range values {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, fmt.Errorf("%s is not a finite number", m.Metric)
		}
	}
	if len(m.Values) == 0 {
		return m.Value, nil
	}
	return values, nil
}

// withDefinition tells in the directive of the metric's dimensions that the line has it.
func withDefinition(directives []metricDirective, metric Metric) []metricDirective {
	dimensions := []string{DimensionStage}
	if metric.Dimension != "" {
		dimensions = append(dimensions, metric.Dimension)
	}
	i := slices.IndexFunc(directives, func(d metricDirective) bool { return slices.Equal(d.Dimensions[0], dimensions) })
	if i < 0 {
		i = len(directives)
		directives = append(directives, metricDirective{Namespace: Namespace, Dimensions: [][]string{dimensions}})
	}
	directives[i].Metrics = append(directives[i].Metrics, metricDefinition{metric.Name, metric.Unit})
	return directives
}

// dimensionValueCharactersMax and the two other rules of usable are CloudWatch's. Source:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_Dimension.html
const dimensionValueCharactersMax = 1024

// usable reports whether CloudWatch takes the text as the value of a dimension. It drops the
// metrics of others without a word.
func usable(value string) bool {
	if len(value) > dimensionValueCharactersMax || strings.TrimSpace(value) == "" || strings.HasPrefix(value, ":") {
		return false
	}
	return !strings.ContainsFunc(value, func(r rune) bool { return r > unicode.MaxASCII || unicode.IsControl(r) })
}
