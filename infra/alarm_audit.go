package main

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"

	"holdfast/shared/telemetry"
)

const (
	// auditPeriod is how often the audit begins.
	auditPeriod = time.Hour
	// auditsMissed: CloudWatch looks back two periods further for a number, so that the silence
	// of one hour is heard after three.
	auditsMissed = 1
	// auditsUnsettled: what changes with every look of one audit is busy; what does in three
	// hours running has something that never leaves it alone.
	auditsUnsettled = 3
)

// auditAlarms watch what the audit finds: numbers that do not add up, whose cause nobody has
// seen. Nobody can say how long a summary and the ledger may differ, so one finding rings.
func auditAlarms(metric metricOf) []alarm {
	most := func(name telemetry.MetricName) awscloudwatch.IMetric { return metric(name, "Maximum", auditPeriod) }
	return []alarm{
		heartbeat("AuditHeartbeat", metric(telemetry.MetricAuditHeartbeat, "Sum", auditPeriod), auditsMissed, ticket("audit",
			"No audit has come to its end in three hours: if the numbers drift apart, nobody hears of it.")),
		above("AuditMismatch", most(telemetry.MetricAuditMismatch), 0, 1, page("audit",
			"A summary differs from the ledger: stock from its holds, or an owner's counts from what the owner has. More may be sold than there is, or less.")),
		above("AuditGhosts", most(telemetry.MetricAuditGhosts), 0, 1, page("audit",
			"Holds are HELD long after they were due, and the audit found them: their stock is locked. If no other alarm rings, no sweep can see them.")),
		above("AuditFindingsCritical", most(telemetry.MetricAuditFindingsCritical), 0, 1, page("audit",
			"The audit found a broken promise about stock or money: numbers that do not add up, events that are missing, money that nobody accounts for.")),
		above("AuditFindingsWarning", most(telemetry.MetricAuditFindingsWarning), 0, 1, ticket("audit",
			"The audit found things that are late or in the wrong place. They cost nobody stock or money by themselves.")),
		above("AuditOversold", most(telemetry.MetricAuditOversold), 0, 1, ticket("audit",
			"Slots of which more is held and sold than there is are open. The ledger closes such a slot and does not open it: it is a mistake in the code.")),
		above("AuditUnsettled", most(telemetry.MetricAuditUnsettled), 0, auditsUnsettled, ticket("audit",
			"Suspects have changed with every look of three audits: nothing can be said of them, and a fault may hide among them.")),
	}
}
