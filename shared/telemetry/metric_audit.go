package telemetry

// The metrics of the reconciler. It reports all of them after every run; the lag only if
// all of the unpublished index could be read.
const (
	MetricReconcileHeartbeat             MetricName = "reconcile_heartbeat"
	MetricOutboxUnpublishedLagSecondsMax MetricName = "outbox_unpublished_lag_seconds_max"
	MetricOutboxRepublished              MetricName = "outbox_republished"
	MetricOutboxQuarantineSize           MetricName = "outbox_quarantine_size"
)

// The metrics of the audit. It reports all of them when it has come to its end, also when
// nothing was found.
const (
	MetricAuditHeartbeat        MetricName = "audit_heartbeat"
	MetricAuditFindingsCritical MetricName = "audit_findings_critical"
	MetricAuditFindingsWarning  MetricName = "audit_findings_warning"
	MetricAuditMismatch         MetricName = "audit_mismatch"
	MetricAuditGhosts           MetricName = "audit_ghosts"
	MetricAuditOversold         MetricName = "audit_oversold"
	MetricAuditUnsettled        MetricName = "audit_unsettled"
	MetricAuditReadUnits        MetricName = "audit_read_units"
	MetricAuditSeconds          MetricName = "audit_seconds"
	MetricExpiryIndexHoles      MetricName = "expiry_index_holes"
	// MetricAuditAbandoned is reported of an audit that does not come to its end.
	MetricAuditAbandoned MetricName = "audit_abandoned"
	// MetricHeldUnits is reported once for each resource type; see [HeldReports].
	MetricHeldUnits MetricName = "held_units"
)

func auditMetrics() []Metric {
	held := counted(MetricHeldUnits, "Units that were held when the last audit read their stock, of the resource type that the dimension names; the resources with the most are named in the line. Beyond telemetry.ResourceTypesMax types, the rest is told as the type other.")
	held.Dimension = DimensionResourceType
	return []Metric{
		counted(MetricReconcileHeartbeat, "Runs of the reconciler that read all of the unpublished index, or as far as their time allowed."),
		inSeconds(MetricOutboxUnpublishedLagSecondsMax, "At the start of a run: now minus the time of the oldest event that is not published, the quarantined ones left out; zero when all are."),
		counted(MetricOutboxRepublished, "Events that the stream did not bring to the bus and the reconciler did."),
		counted(MetricOutboxQuarantineSize, "Events in quarantine: no retry can publish them as they are."),
		counted(MetricAuditHeartbeat, "Audits that have read the whole table and told what they found."),
		counted(MetricAuditFindingsCritical, "Findings of the last audit that break a promise about stock or money: numbers that do not add up, events that are missing, money that nobody accounts for."),
		counted(MetricAuditFindingsWarning, "Findings of the last audit that are late or in the wrong place, and cost nobody stock or money by themselves."),
		counted(MetricAuditMismatch, "Findings of the last audit in which a summary differs from the ledger: a stock item's counters from its holds, or an owner's counts from what the owner has."),
		counted(MetricAuditGhosts, "Holds that the last audit found HELD long after they were due."),
		counted(MetricAuditOversold, "Slots that the last audit found oversold and still open."),
		counted(MetricAuditUnsettled, "Suspects of the last audit that changed with every look, so that nothing can be said of them; the next audit looks again."),
		counted(MetricAuditReadUnits, "Read units that the last audit took: what it costs, and a measure of the table."),
		inSeconds(MetricAuditSeconds, "How long the last audit took, from its first segment to its findings."),
		counted(MetricExpiryIndexHoles, "Items that the last audit found missing from the list that they must be in, or in one that they must not be in: holds of the due index, most of all."),
		counted(MetricAuditAbandoned, "Audits that had not ended when their time was over, and were given up; the next one reads everything anew."),
		held,
	}
}
