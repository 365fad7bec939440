package main

import "holdfast/shared/telemetry"

// archivesMissed: the archive runs each hour, and a run may be late or fail once; records
// only stay in the table a little longer.
const archivesMissed = 2

// archiveAlarms watch that old records leave the table. Nothing is lost when they do not,
// but the table grows.
func archiveAlarms(metric metricOf) []alarm {
	return []alarm{
		heartbeat("ArchiveHeartbeat", metric(telemetry.MetricArchiveHeartbeat, "Sum", hourPeriod), archivesMissed,
			"The archive has not run to its end in two hours: old records stay in the table, and nothing is lost. "+
				"Look at the schedule of the archive function, its dead letters, and its log."),
		above("ArchiveFailed", metric(telemetry.MetricArchiveFailed, "Sum", hourPeriod), 0, archivesMissed,
			"Batches of the archive fail, hour after hour: what was written differs from what was read back, or the bucket does not answer. Nothing leaves the table then. "+
				"Look at the log of the archive function for the batch and the error, and at the bucket; then run scripts/ops archive."),
	}
}
