package telemetry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"holdfast/shared/system"
)

// MeasurementsMax is how many metrics one line may hold. Source:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
const MeasurementsMax = 100

// propertyFunction is the property that tells which function reports.
const propertyFunction = "function"

// memberDirective is where CloudWatch looks for the metrics in a line.
const memberDirective = "_aws"

// Source is who reports.
type Source struct {
	Stage    string
	Function string
}

// Measurement is one number, in the unit of its metric.
type Measurement struct {
	Metric MetricName
	Value  float64
}

// Count is a measurement of something counted.
func Count(metric MetricName, n int) Measurement { return Measurement{metric, float64(n)} }

// Properties are searchable members of a line that are not metrics: correlation ids,
// mostly. They make no series and cost nothing beyond their bytes.
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
// twice, a number that is not finite, a property under a name that is taken.
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
	definitions := make([]metricDefinition, 0, len(measurements))
	for _, m := range measurements {
		metric, known := MetricNamed(m.Metric)
		if !known {
			return nil, fmt.Errorf("unknown metric %q", m.Metric)
		}
		if math.IsNaN(m.Value) || math.IsInf(m.Value, 0) {
			return nil, fmt.Errorf("%s is not a finite number", m.Metric)
		}
		if _, taken := members[string(m.Metric)]; taken {
			return nil, fmt.Errorf("%s is measured twice in one line", m.Metric)
		}
		members[string(m.Metric)] = m.Value
		definitions = append(definitions, metricDefinition{metric.Name, metric.Unit})
	}
	members[memberDirective] = directive{
		Timestamp: e.clock.Now().UnixMilli(),
		CloudWatchMetrics: []metricDirective{{
			Namespace: Namespace, Dimensions: [][]string{{DimensionStage}}, Metrics: definitions,
		}},
	}
	for name, value := range properties {
		if _, taken := members[name]; taken || name == "" {
			return nil, fmt.Errorf("the property name %q is taken", name)
		}
		members[name] = value
	}
	return json.Marshal(members)
}
