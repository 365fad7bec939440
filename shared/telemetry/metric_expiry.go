package telemetry

// The metrics of the sweep. It reports all of them after every run, also when there was
// nothing to do.
const (
	MetricExpiryLagSecondsMax MetricName = "expiry_lag_seconds_max"
	MetricExpiryHeartbeat     MetricName = "expiry_heartbeat"
	MetricExpiryReleased      MetricName = "expiry_released"
	MetricExpiryAlreadyEnded  MetricName = "expiry_already_ended"
	MetricExpiryFailed        MetricName = "expiry_failed"
	MetricExpiryTruncated     MetricName = "expiry_truncated"
	MetricExpiryRemainingMin  MetricName = "expiry_remaining_min"
	MetricExpiryGhosts        MetricName = "expiry_ghosts"
	MetricExpiryParked        MetricName = "expiry_parked"
	MetricExpiryWorkers       MetricName = "expiry_workers"
	// MetricExpiryReleaseDelaySecondsP95 is reported by who has released something.
	MetricExpiryReleaseDelaySecondsP95 MetricName = "expiry_release_delay_seconds_p95"
	// MetricExpiryRecoverySeconds is reported when a backlog has come to its end.
	MetricExpiryRecoverySeconds MetricName = "expiry_recovery_seconds"
)

// The metrics of due messages. A batch reports all of them.
const (
	MetricDueReleased  MetricName = "due_released"
	MetricDueEnded     MetricName = "due_ended"
	MetricDueForwarded MetricName = "due_forwarded"
	MetricDueFailed    MetricName = "due_failed"
)

// MetricClockSkewSecondsMax is reported by a function whose clock is off by more than a
// second, and by every sweep.
const MetricClockSkewSecondsMax MetricName = "clock_skew_seconds_max"

func expiryMetrics() []Metric {
	return []Metric{
		inSeconds(MetricExpiryLagSecondsMax, "At the start of a sweep: now minus the due time of the oldest hold that should have been released and has not been; zero when nothing is overdue. Left out when not all due shards could be read."),
		counted(MetricExpiryHeartbeat, "Sweeps that read all due shards, or as far as their time allowed."),
		counted(MetricExpiryReleased, "Holds that this sweep has ended."),
		counted(MetricExpiryAlreadyEnded, "Due entries whose hold had ended or moved on before the sweep came to it: the index was late, or another sweep was faster."),
		counted(MetricExpiryFailed, "Overdue holds that the sweep tried to end and could not."),
		counted(MetricExpiryTruncated, "Sweeps that stopped for lack of time with work left."),
		counted(MetricExpiryRemainingMin, "Due entries that a truncated sweep had read and left behind; there may be more."),
		counted(MetricExpiryGhosts, "Overdue holds that a sweep met, or found parked, and left HELD: their stock stays locked."),
		counted(MetricExpiryParked, "Holds that could not be ended three times and are tried more seldom, counted over all shards at the start of a sweep."),
		counted(MetricExpiryWorkers, "Helpers that a sweep with more work than it can do has called."),
		inSeconds(MetricExpiryReleaseDelaySecondsP95, "Of the holds that this run has ended: the time from the due time to the end that 95 % of them stay under. Left out when it has ended none."),
		inSeconds(MetricExpiryRecoverySeconds, "How long a backlog of overdue holds took, from the due time of its oldest hold to the first sweep that found nothing overdue. Reported once, at its end, by a process that has seen a lag over telemetry.BacklogOver; a process that saw only the rest of the backlog tells of that."),
		counted(MetricDueReleased, "Holds that a due message has ended."),
		counted(MetricDueEnded, "Due messages of holds that had ended, or are due later than the message says."),
		counted(MetricDueForwarded, "Due messages that came before their time and were sent on."),
		counted(MetricDueFailed, "Due messages that could not be worked on; each comes again, and the sweep ends the hold in any case."),
		inSeconds(MetricClockSkewSecondsMax, "How far the clock of a function is off the clock of AWS at the least, in either direction, as the Date headers of the last answers tell."),
	}
}
