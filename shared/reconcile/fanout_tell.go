package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"holdfast/shared/telemetry"
)

// FindingLinesMax bounds the log lines of one audit. The report has all findings, and the
// metrics count them all.
const FindingLinesMax = 50

const (
	// propertyRun names the audit in log lines and in lines of metrics.
	propertyRun = "audit_run"
	// propertyFinding is the kind of a finding.
	propertyFinding = "finding"
)

func keyRun(run RunID) slog.Attr { return slog.String(propertyRun, string(run)) }

// IsLate reports whether findings of the kind are of something that is late or in the wrong
// place, and cost nobody stock or money by themselves. All others break a promise.
func (k FindingKind) IsLate() bool {
	return slices.Contains([]FindingKind{
		FindingGhostHold, FindingDueIndexHole, FindingEventUnpublished, FindingAuthorizedTooLong, FindingOversold,
	}, k)
}

// mismatches are the kinds in which a summary differs from what it sums up.
var mismatches = []FindingKind{FindingStockMismatch, FindingStockImpossible, FindingTerminalStock, FindingQuotaMismatch}

// tell writes the findings into the log and the numbers of the audit into the metrics.
func (f *Fanout) tell(ctx context.Context, report AuditReport, settlement Settlement) error {
	for i, finding := range report.Report.Findings {
		if i == FindingLinesMax {
			break
		}
		f.ports.Logger.ErrorContext(ctx, "the audit found: "+finding.Cause, attributes(report.Run, finding)...)
	}
	if why := report.Report.Uncompared; why != "" {
		f.ports.Logger.WarnContext(ctx, "the provider's payments were not compared with the reservations", keyRun(report.Run), slog.String("error", why))
	}
	f.ports.Logger.InfoContext(ctx, "audit ended", keyRun(report.Run), slog.Int("segments", report.Segments),
		telemetry.Duration("took_seconds", report.EndedAt.Sub(report.BegunAt)),
		slog.Int("findings", len(report.Report.Findings)), slog.Int("unsettled", report.Report.Unsettled),
		slog.Int("repaired", settlement.Repair.Count(RepairDone)), slog.Int("queued", settlement.Repair.Count(RepairQueued)),
		slog.Int("known", settlement.Repair.Count(RepairKnown)), slog.Int("failed", settlement.Repair.Count(RepairFailed)),
		slog.String("repairs", string(settlement.Setting)))
	properties := func() telemetry.Properties { return telemetry.Properties{propertyRun: string(report.Run)} }
	failures := []error{f.ports.Metrics.Emit(properties(), auditMeasurements(report)...)}
	for _, held := range telemetry.HeldReports(report.Report.Held) {
		held.Properties[propertyRun] = string(report.Run)
		failures = append(failures, f.ports.Metrics.Emit(held.Properties, held.Measurement))
	}
	return errors.Join(failures...)
}

// attributes are what leads from a finding to everything else that is known of it. Whose it
// is stays out: a log is kept where nobody can be forgotten.
func attributes(run RunID, f Finding) []any {
	all := []any{keyRun(run), slog.String(propertyFinding, string(f.Kind)), slog.String("promise", f.Promise)}
	for _, id := range []struct{ key, value string }{
		{telemetry.KeyHoldID, string(f.Hold)}, {telemetry.KeyReservationID, string(f.Reservation)},
		{"slot_id", string(f.Slot)}, {"payment_id", string(f.Payment)}, {"count", string(f.Count)},
		{"evidence", f.Evidence}, {"action", string(Plan(f).Do)},
	} {
		if id.value != "" {
			all = append(all, slog.String(id.key, id.value))
		}
	}
	if f.Slot != "" {
		all = append(all, slog.Int("shard", int(f.Shard)))
	}
	if f.Event.SortKey != "" {
		all = append(all, slog.String("event", f.Event.String()))
	}
	return all
}

func auditMeasurements(report AuditReport) []telemetry.Measurement {
	counts := map[telemetry.MetricName]int{}
	for _, finding := range report.Report.Findings {
		severity := telemetry.MetricAuditFindingsCritical
		if finding.Kind.IsLate() {
			severity = telemetry.MetricAuditFindingsWarning
		}
		counts[severity]++
		switch {
		case slices.Contains(mismatches, finding.Kind):
			counts[telemetry.MetricAuditMismatch]++
		case finding.Kind == FindingGhostHold:
			counts[telemetry.MetricAuditGhosts]++
		case finding.Kind == FindingOversold:
			counts[telemetry.MetricAuditOversold]++
		case finding.Kind == FindingDueIndexHole:
			counts[telemetry.MetricExpiryIndexHoles]++
		}
	}
	measurements := []telemetry.Measurement{
		telemetry.Count(telemetry.MetricAuditHeartbeat, 1),
		telemetry.Count(telemetry.MetricAuditUnsettled, report.Report.Unsettled),
		{Metric: telemetry.MetricAuditReadUnits, Value: report.Report.ReadUnits},
		{Metric: telemetry.MetricAuditSeconds, Value: report.EndedAt.Sub(report.BegunAt).Seconds()},
	}
	for _, metric := range []telemetry.MetricName{
		telemetry.MetricAuditFindingsCritical, telemetry.MetricAuditFindingsWarning, telemetry.MetricAuditMismatch,
		telemetry.MetricAuditGhosts, telemetry.MetricAuditOversold, telemetry.MetricExpiryIndexHoles,
	} {
		measurements = append(measurements, telemetry.Count(metric, counts[metric]))
	}
	return measurements
}
