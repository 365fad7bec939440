package alarmcheck

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Comparison is how a number is compared with a threshold.
type Comparison string

// The comparisons, in CloudWatch's words.
const (
	Greater        Comparison = "GreaterThanThreshold"
	GreaterOrEqual Comparison = "GreaterThanOrEqualToThreshold"
	Less           Comparison = "LessThanThreshold"
	LessOrEqual    Comparison = "LessThanOrEqualToThreshold"
)

func (c Comparison) holds(value, threshold float64) bool {
	switch c {
	case Greater:
		return value > threshold
	case GreaterOrEqual:
		return value >= threshold
	case Less:
		return value < threshold
	default:
		return value <= threshold
	}
}

// Statistic is what is made of the numbers of one period: Sum, Maximum, Minimum, Average,
// SampleCount, or a percentile such as p99.
type Statistic string

// of returns the statistic of the numbers, of which there is at least one.
func (s Statistic) of(values []float64) (float64, error) {
	total := 0.0
	for _, v := range values {
		total += v
	}
	switch s {
	case "Sum":
		return total, nil
	case "Maximum":
		return slices.Max(values), nil
	case "Minimum":
		return slices.Min(values), nil
	case "Average":
		return total / float64(len(values)), nil
	case "SampleCount":
		return float64(len(values)), nil
	}
	percent, err := strconv.ParseFloat(strings.TrimPrefix(string(s), "p"), 64)
	if err != nil || !strings.HasPrefix(string(s), "p") || percent <= 0 || percent > 100 {
		return 0, fmt.Errorf("the statistic %q is not known", s)
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(math.Ceil(percent/100*float64(len(sorted))))-1], nil
}

// Stat is one series and what is made of it.
type Stat struct {
	Metric    Metric
	Statistic Statistic
}

// Expression is what an alarm watches: one Stat, or arithmetic over several.
type Expression struct {
	// Formula is arithmetic over the ids of Stats: numbers, + - * / and parentheses. An alarm
	// on one metric has its id as its formula.
	Formula string
	Stats   map[string]Stat
}

// own are the samples of the series that the expression is made of.
func (e Expression) own(samples []Sample) []Sample {
	var own []Sample
	for _, s := range samples {
		for _, stat := range e.Stats {
			if s.Metric == stat.Metric {
				own = append(own, s)
				break
			}
		}
	}
	return own
}

// valueIn is the number of the period [from, to), and whether there is one. Arithmetic has
// none where one of its series has none, or where it divides by zero. Source:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
func (e Expression) valueIn(samples []Sample, from, to time.Time) (value float64, measured bool, err error) {
	values := map[string]float64{}
	for id, stat := range e.Stats {
		var found []float64
		for _, s := range samples {
			if s.Metric == stat.Metric && !s.At.Before(from) && s.At.Before(to) {
				found = append(found, s.Value)
			}
		}
		if len(found) == 0 {
			continue
		}
		if values[id], err = stat.Statistic.of(found); err != nil {
			return 0, false, err
		}
	}
	p := formula{rest: e.Formula, values: values}
	value = p.sum()
	if p.rest = strings.TrimSpace(p.rest); p.rest != "" && p.err == nil {
		p.err = fmt.Errorf("the formula %q is not understood from %q on", e.Formula, p.rest)
	}
	if p.err != nil {
		return 0, false, p.err
	}
	return value, !p.missing && !math.IsNaN(value) && !math.IsInf(value, 0), nil
}

// formula reads arithmetic from left to right.
type formula struct {
	rest    string
	values  map[string]float64
	missing bool
	err     error
}

// operator takes one of the operators, if it is next.
func (f *formula) operator(of string) byte {
	f.rest = strings.TrimSpace(f.rest)
	if f.rest == "" || !strings.Contains(of, f.rest[:1]) {
		return 0
	}
	taken := f.rest[0]
	f.rest = f.rest[1:]
	return taken
}

func (f *formula) sum() float64 {
	value := f.product()
	for {
		switch f.operator("+-") {
		case '+':
			value += f.product()
		case '-':
			value -= f.product()
		default:
			return value
		}
	}
}

func (f *formula) product() float64 {
	value := f.atom()
	for {
		switch f.operator("*/") {
		case '*':
			value *= f.atom()
		case '/':
			value /= f.atom()
		default:
			return value
		}
	}
}

func (f *formula) atom() float64 {
	if f.operator("(") != 0 {
		value := f.sum()
		if f.operator(")") == 0 && f.err == nil {
			f.err = fmt.Errorf("a parenthesis is not closed before %q", f.rest)
		}
		return value
	}
	end := strings.IndexFunc(f.rest, func(r rune) bool { return !strings.ContainsRune(wordCharacters, r) })
	if end < 0 {
		end = len(f.rest)
	}
	word := f.rest[:end]
	f.rest = f.rest[end:]
	if number, err := strconv.ParseFloat(word, 64); err == nil {
		return number
	}
	value, measured := f.values[word]
	if word == "" && f.err == nil {
		f.err = fmt.Errorf("a number or a name is missing before %q", f.rest)
	}
	f.missing = f.missing || !measured
	return value
}

// wordCharacters are what numbers and the ids of metrics are made of.
const wordCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."
