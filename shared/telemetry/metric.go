package telemetry

// Namespace is the CloudWatch namespace of every metric of Holdfast.
const Namespace = "Holdfast"

// DimensionStage is the one dimension that every metric carries. Its value is the
// stage: dev, staging, prod or local. No metric has an id as a dimension, because
// CloudWatch bills each combination of dimension values as a series of its own.
const DimensionStage = "stage"

// The metric names. They are part of the contract with the alarms and with people's
// dashboards: do not rename them casually.
const (
	// MetricExpiryLagSecondsMax is now minus the due time of the oldest hold that
	// should have been released and has not been; zero when nothing is overdue.
	MetricExpiryLagSecondsMax = "expiry_lag_seconds_max"
	// MetricExpiryHeartbeat counts sweeps that ran to their end.
	MetricExpiryHeartbeat = "expiry_heartbeat"
)
