package alarmcheck

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/shared/telemetry"
)

// lineBytesMax bounds one line of a log. CloudWatch cuts a log event at 256 KiB.
const lineBytesMax = 256 << 10

// Metric names one series of numbers.
type Metric struct {
	Namespace, Name string
	// Dimensions are written by NewMetric, so that two equal metrics are equal values.
	Dimensions string
}

// NewMetric names a series. The order of dimensions means nothing.
func NewMetric(namespace, name string, dimensions map[string]string) Metric {
	pairs := make([]string, 0, len(dimensions))
	for _, key := range slices.Sorted(maps.Keys(dimensions)) {
		pairs = append(pairs, key+"="+dimensions[key])
	}
	return Metric{namespace, name, strings.Join(pairs, ",")}
}

func (m Metric) String() string {
	return fmt.Sprintf("%s %s{%s}", m.Namespace, m.Name, m.Dimensions)
}

// Sample is one number as it was reported.
type Sample struct {
	Metric Metric
	At     time.Time
	Value  float64
}

// embedded is the head of a line in the embedded metric format:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
type embedded struct {
	AWS *struct {
		Timestamp         int64
		CloudWatchMetrics []struct {
			Namespace  string
			Dimensions [][]string
			Metrics    []struct{ Name string }
		}
	} `json:"_aws"`
}

// ReadLines reads the numbers out of a function's output. Lines that are not in the
// embedded metric format are its log, and are passed over. A line that is, and that
// CloudWatch would drop without a word, is an error: whoever wrote it believes that
// somebody watches.
func ReadLines(output io.Reader) ([]Sample, error) {
	var samples []Sample
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, lineBytesMax)
	for number := 1; lines.Scan(); number++ {
		read, err := readLine(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		samples = append(samples, read...)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the output: %w", err)
	}
	return samples, nil
}

func readLine(line []byte) ([]Sample, error) {
	var head embedded
	if json.Unmarshal(line, &head) != nil || head.AWS == nil {
		return nil, nil
	}
	var members map[string]any
	if err := json.Unmarshal(line, &members); err != nil {
		return nil, err
	}
	if head.AWS.Timestamp <= 0 {
		return nil, errors.New("the numbers have no time")
	}
	var samples []Sample
	for _, directive := range head.AWS.CloudWatchMetrics {
		for _, names := range directive.Dimensions {
			dimensions := map[string]string{}
			for _, name := range names {
				value, isText := members[name].(string)
				if !isText || value == "" {
					return nil, fmt.Errorf("the dimension %s has no value", name)
				}
				dimensions[name] = value
			}
			for _, m := range directive.Metrics {
				values, err := numbers(members[m.Name])
				if err != nil {
					return nil, fmt.Errorf("the metric %s %w", m.Name, err)
				}
				for _, value := range values {
					samples = append(samples, Sample{
						NewMetric(directive.Namespace, m.Name, dimensions), time.UnixMilli(head.AWS.Timestamp).UTC(), value,
					})
				}
			}
		}
	}
	return samples, nil
}

// numbers are what a metric's member says: one number, or a list of them, each of which counts
// as if it had been reported by itself.
func numbers(member any) ([]float64, error) {
	list, isList := member.([]any)
	if !isList {
		list = []any{member}
	}
	if len(list) == 0 || len(list) > telemetry.ValuesMax {
		return nil, fmt.Errorf("has %d numbers", len(list))
	}
	out := make([]float64, len(list))
	for i, one := range list {
		value, isNumber := one.(float64)
		if !isNumber {
			return nil, errors.New("has no number")
		}
		out[i] = value
	}
	return out, nil
}
