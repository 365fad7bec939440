package telemetry

// The metrics of the archive. It reports all of them after every run.
const (
	MetricArchiveHeartbeat MetricName = "archive_heartbeat"
	MetricArchiveArchived  MetricName = "archive_archived"
	MetricArchivePutOff    MetricName = "archive_put_off"
	MetricArchiveFailed    MetricName = "archive_failed"
	MetricArchiveTruncated MetricName = "archive_truncated"
)

func archiveMetrics() []Metric {
	return []Metric{
		counted(MetricArchiveHeartbeat, "Runs of the archive that came to their end, or as far as their time allowed."),
		counted(MetricArchiveArchived, "Holds and reservations that were moved to the archive, verified."),
		counted(MetricArchivePutOff, "Records that are old enough and can't be archived yet, as their payment is not at rest; each is looked at again."),
		counted(MetricArchiveFailed, "Batches of the archive that failed; each is taken up again by a later run."),
		counted(MetricArchiveTruncated, "Runs of the archive whose time ended with old records left; the next run goes on."),
	}
}
