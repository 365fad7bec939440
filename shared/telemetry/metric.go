package telemetry

import "slices"

// Namespace is the CloudWatch namespace of every metric of Holdfast.
const Namespace = "Holdfast"

// DimensionStage is the dimension that every metric carries. Its value is the stage: dev,
// staging, prod or local.
const DimensionStage = "stage"

// DimensionResourceType is the one other dimension. Its value is a resource type of the
// shop, or [ResourceTypeOther]. No metric has an id as a dimension, because CloudWatch bills
// each combination of dimension values as a series of its own, for $0.30 a month.
const DimensionResourceType = "resource_type"

// MetricName names a metric. The names are part of the contract with the alarms and
// with people's dashboards: do not rename them casually.
type MetricName string

// Unit is CloudWatch's name of a unit. Source:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html
type Unit string

// The units in use.
const (
	UnitCount   Unit = "Count"
	UnitSeconds Unit = "Seconds"
)

// Metric is what there is to know about a metric.
type Metric struct {
	Name    MetricName
	Unit    Unit
	Meaning string // a whole sentence, for the person who looks at the number
	// Dimension is what it carries beside the stage; "" for nothing.
	Dimension string
}

func counted(name MetricName, meaning string) Metric {
	return Metric{Name: name, Unit: UnitCount, Meaning: meaning}
}

func inSeconds(name MetricName, meaning string) Metric {
	return Metric{Name: name, Unit: UnitSeconds, Meaning: meaning}
}

// Metrics returns every metric, in a fixed order. The caller owns the result.
func Metrics() []Metric {
	return slices.Concat(expiryMetrics(), outboxMetrics(), auditMetrics(), archiveMetrics(),
		apiMetrics(), webhookMetrics(), reservationMetrics())
}

// MetricNamed returns the metric of that name, and whether there is one.
func MetricNamed(name MetricName) (Metric, bool) {
	all := Metrics()
	i := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return all[i], true
}
