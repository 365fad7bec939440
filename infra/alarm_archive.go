package main

import (
	"time"

	"holdfast/shared/telemetry"
)

// archivesMissed are two hours: runs may be late or fail, and records only stay in the table
// a little longer.
const archivesMissed = 8

const (
	// archiveHoursTruncated are a day: runs that are cut have met the records of a busy hour.
	// If those of every hour are, the archive does not keep up.
	archiveHoursTruncated = 24
	// archivesTruncatedInHour is how many of the four runs of an hour may be cut. The hour is
	// longer than the archive's rate, because a run tells at its end that it was cut, which may be
	// minutes earlier or later than that of the last one: a quarter of an hour may hear of none.
	archivesTruncatedInHour = 2
	archiveHour             = time.Hour
)

// archiveAlarms watch that old records leave the table. Nothing is lost when they do not,
// but the table grows.
func archiveAlarms(metric metricOf) []alarm {
	return []alarm{
		heartbeat("ArchiveHeartbeat", metric(telemetry.MetricArchiveHeartbeat, "Sum", archivePeriod), archivesMissed, ticket("archive list hold",
			"The archive has not run to its end in two hours: old records stay in the table, and nothing is lost.")),
		above("ArchiveFailed", metric(telemetry.MetricArchiveFailed, "Sum", archivePeriod), 0, archivesMissed, ticket("archive list hold",
			"Batches of the archive have failed in every run of two hours: what was written differs from what was read back, or the bucket does not answer. Nothing leaves the table then, and the next run goes on where this one stopped.")),
		above("ArchiveTruncated", metric(telemetry.MetricArchiveTruncated, "Sum", archiveHour), archivesTruncatedInHour, archiveHoursTruncated, ticket("status",
			"The archive has run out of time in most runs of every hour of a day: records end faster than they are archived, and the table grows.")),
	}
}
