package main

import (
	"slices"
	"testing"

	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// Case B1: the release job claimed to be fine while it did nothing. Lag and silence
// both ring within two sweeps.
func TestCaseB1_ExpiryLagAndSilenceRing(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		dimensions := []any{map[string]any{"Name": telemetry.DimensionStage, "Value": string(s.stage.Name)}}
		for name, want := range map[string]map[string]any{
			"ExpiryLag": {
				"MetricName": string(telemetry.MetricExpiryLagSecondsMax), "Statistic": "Maximum",
				"ComparisonOperator": "GreaterThanThreshold", "Threshold": 120,
			},
			"ExpiryHeartbeat": {
				"MetricName": string(telemetry.MetricExpiryHeartbeat), "Statistic": "Sum",
				"ComparisonOperator": "LessThanThreshold", "Threshold": 1,
			},
		} {
			a := s.mustResource(t, "AWS::CloudWatch::Alarm", name)
			want["Namespace"], want["Dimensions"] = telemetry.Namespace, dimensions
			want["TreatMissingData"], want["Period"] = "breaching", 60
			want["EvaluationPeriods"], want["DatapointsToAlarm"] = 2, 2
			for property, value := range want {
				mustBe(t, name+" "+property, a.at(property), value)
			}
		}
	})
}

// Case B1 for what works on the same promise beside the sweep: the reconciler and the
// archive ring when they are silent, as their lag does when nobody tells it.
func TestCaseB1_ASilentReconcilerAndArchiveRing(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		for name, want := range map[string]map[string]any{
			"OutboxUnpublishedLag": {
				"MetricName": string(telemetry.MetricOutboxUnpublishedLagSecondsMax), "Statistic": "Maximum",
				"ComparisonOperator": "GreaterThanThreshold", "Threshold": 1200, "Period": 300,
			},
			"ReconcileHeartbeat": {
				"MetricName": string(telemetry.MetricReconcileHeartbeat), "Statistic": "Sum",
				"ComparisonOperator": "LessThanThreshold", "Threshold": 1, "Period": 300,
			},
			"ArchiveHeartbeat": {
				"MetricName": string(telemetry.MetricArchiveHeartbeat), "Statistic": "Sum",
				"ComparisonOperator": "LessThanThreshold", "Threshold": 1, "Period": 900,
			},
		} {
			a := s.mustResource(t, "AWS::CloudWatch::Alarm", name)
			missed := 2
			if name == "ArchiveHeartbeat" {
				missed = 8 // two hours
			}
			want["TreatMissingData"], want["EvaluationPeriods"], want["DatapointsToAlarm"] = "breaching", missed, missed
			for property, value := range want {
				mustBe(t, name+" "+property, a.at(property), value)
			}
		}
	})
}

// A heartbeat that is asked for more often than the schedule beats would ring all day.
func TestHeartbeatsAreAskedForAsOftenAsTheyBeat(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		for _, f := range topology.Functions() {
			if f.Schedule == nil {
				continue
			}
			id, every := constructID(string(f.Name))+"Heartbeat", f.Schedule.Every
			if f.Name == topology.FunctionAudit {
				every = s.stage.AuditEvery // it beats when an audit has ended, and not at each tick
			}
			mustBe(t, id+" period", s.mustResource(t, "AWS::CloudWatch::Alarm", id).at("Period"), every.Seconds())
		}
	})
}

// What a person must know of a hold that does not end, an event that nobody publishes, or
// a clock that is wrong: when each rings.
func TestExpiryAndEventAlarmsRingWhenTheyShould(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		for name, want := range map[string]struct {
			metric            telemetry.MetricName
			threshold         int
			period, evaluated int
		}{
			"ExpiryGhosts":       {telemetry.MetricExpiryGhosts, 0, 60, 5},
			"ExpiryParked":       {telemetry.MetricExpiryParked, 0, 60, 1},
			"ExpiryReleaseDelay": {telemetry.MetricExpiryReleaseDelaySecondsP95, 30, 300, 3},
			"ExpiryIndexHoles":   {telemetry.MetricExpiryIndexHoles, 0, 3600, 1},
			"DueFailed":          {telemetry.MetricDueFailed, 0, 60, 3},
			"ClockSkew":          {telemetry.MetricClockSkewSecondsMax, 1, 60, 3},
			"ClockUnreliable":    {telemetry.MetricClockSkewSecondsMax, 30, 60, 1},
			"OutboxQuarantine":   {telemetry.MetricOutboxQuarantineSize, 0, 300, 1},
			"OutboxDueUnsent":    {telemetry.MetricOutboxDueUnsent, 0, 60, 3},
			"ArchiveFailed":      {telemetry.MetricArchiveFailed, 0, 900, 8},
			"ArchiveTruncated":   {telemetry.MetricArchiveTruncated, 2, 3600, 24},
		} {
			a := s.mustResource(t, "AWS::CloudWatch::Alarm", name)
			for property, value := range map[string]any{
				"MetricName": string(want.metric), "Threshold": want.threshold, "Period": want.period,
				"EvaluationPeriods": want.evaluated, "DatapointsToAlarm": want.evaluated,
				"ComparisonOperator": "GreaterThanThreshold", "TreatMissingData": "notBreaching",
			} {
				mustBe(t, name+" "+property, a.at(property), value)
			}
		}
	})
}

// Case G1: a transaction that was cancelled for a reason that is a fault of ours was
// answered, and nobody heard of it. One such answer in a minute rings.
func TestCaseG1_OneInternalFaultRings(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		a := s.mustResource(t, "AWS::CloudWatch::Alarm", "ApiInternalFaults")
		for property, value := range map[string]any{
			"Namespace": telemetry.Namespace, "MetricName": string(telemetry.MetricAPIInternalFaults), "Statistic": "Sum",
			"ComparisonOperator": "GreaterThanThreshold", "Threshold": 0, "Period": 60,
			"EvaluationPeriods": 1, "DatapointsToAlarm": 1, "TreatMissingData": "notBreaching",
		} {
			mustBe(t, property, a.at(property), value)
		}
	})
}

func TestEveryFunctionQueueAndRouteIsWatched(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		want := []string{"ApiServerErrors", "ApiInternalFaults", "ExpiryHeartbeat", "ExpiryLag", "ExpiryHoldsFailed", "ExpiryTruncated",
			"ExpiryGhosts", "ExpiryParked", "ExpiryReleaseDelay", "ExpiryIndexHoles", "DueFailed", "DueQueueOld", "DueFailuresWaiting", "ExpiryFailedWaiting",
			"ClockSkew", "ClockUnreliable", "ExpiryLagLong", "SagaLagLong", "HoldRequestsFailing", "ConflictRetries",
			"SagaAuthorizedLong", "SagaCaptureLate", "SagaCompensationLate",
			"AuditHeartbeat", "AuditMismatch", "AuditGhosts", "AuditFindingsCritical", "AuditFindingsWarning", "AuditOversold", "AuditUnsettled",
			"AuditQueueOld", "AuditFailuresWaiting",
			"ArchiveHeartbeat", "ArchiveFailed", "ArchiveTruncated",
			"OutboxDueUnsent", "OutboxQuarantine", "OutboxUnpublishedLag", "ReconcileHeartbeat",
			"OutboxSetAside", "OutboxFailed", "OutboxTruncated", "OutboxLag", "OutboxFailuresWaiting", "ScheduleFailuresWaiting", "SagaFailuresWaiting", "SagaQueueOld",
			"WebhookFailed", "WebhookRefused", "WebhookMalformed",
			"SagaLag", "SagaHeartbeat", "SagaFailed", "SagaTruncated", "ReservationsReview", "ReservationsRefundRequired"}
		for _, f := range topology.Functions() {
			id := constructID(string(f.Name))
			want = append(want, id+"Errors", id+"Throttles", id+"Slow")
			if f.Stream != nil {
				want = append(want, id+"Behind")
			}
		}
		var got []string
		for _, a := range s.mustResources(t, "AWS::CloudWatch::Alarm") {
			got = append(got, nameOf(a.ID))
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("alarms\n%v\nwant\n%v", got, want)
		}
	})
}

// explanatory are the metrics that no alarm is on, each with its reason.
var explanatory = map[telemetry.MetricName]string{
	telemetry.MetricExpiryReleased:                 "it is the work itself; the lag tells whether it was enough",
	telemetry.MetricExpiryAlreadyEnded:             "it is the work itself; the lag tells whether it was enough",
	telemetry.MetricExpiryRemainingMin:             "the alarm on truncated sweeps tells first",
	telemetry.MetricExpiryWorkers:                  "the lag tells whether the helpers were enough",
	telemetry.MetricDueReleased:                    "it is the work itself; the delay of releases tells whether it was done",
	telemetry.MetricDueEnded:                       "it is the work itself; the delay of releases tells whether it was done",
	telemetry.MetricDueForwarded:                   "it is the work itself; the delay of releases tells whether it was done",
	telemetry.MetricOutboxPublished:                "it is the work itself; the lag tells whether it was enough",
	telemetry.MetricOutboxRepublished:              "what the reconciler made good is no fault any more; its lag tells what is not",
	telemetry.MetricArchiveArchived:                "it is the work itself",
	telemetry.MetricArchivePutOff:                  "the payment is not at rest, which its own alarms tell",
	telemetry.MetricAuditAbandoned:                 "the next audit reads everything anew; the heartbeat tells of two in a row",
	telemetry.MetricSagaDriven:                     "it is the work itself; the lag tells whether it was enough",
	telemetry.MetricSagaUnknown:                    "the provider is sometimes faster than our own write; each comes again",
	telemetry.MetricSagaRemainingMin:               "the alarm on truncated ticks tells first",
	telemetry.MetricReservationsCompensating:       "it is what happens when a paid sale is cancelled; what is late rings",
	telemetry.MetricWebhookQueued:                  "it is the work itself",
	telemetry.MetricWebhookRecorded:                "providers tell twice",
	telemetry.MetricWebhookIgnored:                 "the account may be used by others too",
	telemetry.MetricHoldRequestsMade:               "its share is demand, and not health",
	telemetry.MetricHoldRequestsShort:              "that much is sold out is what a good sale looks like",
	telemetry.MetricHoldRequestsClosed:             "the shop closed it",
	telemetry.MetricHoldRequestsPriceChanged:       "the shop changed it",
	telemetry.MetricHoldRequestsOverLimit:          "limits do their work",
	telemetry.MetricHoldRequestsOffSale:            "buyers come early",
	telemetry.MetricCommandReplays:                 "clients may repeat themselves as often as they like",
	telemetry.MetricConfirmsLate:                   "the policy of the slot decides what becomes of each, and a person where it says so",
	telemetry.MetricOversellPrevented:              "that much is sold out is what a good sale looks like",
	telemetry.MetricShardProbes:                    "it is how the last units are found; conflicts and failures ring",
	telemetry.MetricShardSplits:                    "it is how the last units are found; conflicts and failures ring",
	telemetry.MetricHoldsCreated:                   "it is demand",
	telemetry.MetricHoldsConfirmed:                 "it is demand",
	telemetry.MetricHoldsCanceled:                  "it is demand",
	telemetry.MetricHoldsExpired:                   "it is demand",
	telemetry.MetricExpiryRecoverySeconds:          "it is told when the backlog is over; the lag rings during it",
	telemetry.MetricOutboxRecoverySeconds:          "it is told when the backlog is over; the lag rings during it",
	telemetry.MetricSagaRecoverySeconds:            "it is told when the backlog is over; the lag rings during it",
	telemetry.MetricSagaDwellPaymentPendingSeconds: "buyers take their time, and the hold bounds it",
	telemetry.MetricSagaDwellCapturedSeconds:       "how long a delivery may take is the shop's to say; the audit finds what is not delivered",
	telemetry.MetricSagaDwellRefundRequiredSeconds: "the alarm rang when the reservation came there; people take their time",
	telemetry.MetricSagaDwellReviewSeconds:         "the alarm rang when the reservation came there; people take their time",
	telemetry.MetricAuditReadUnits:                 "it is what the audit costs",
	telemetry.MetricAuditSeconds:                   "the heartbeat tells when it takes too long",
	telemetry.MetricHeldUnits:                      "it is demand",
}

// A new metric of Holdfast needs an alarm, or a reason why it only explains others.
func TestEveryMetricHasAnAlarm(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		watched := map[telemetry.MetricName]bool{}
		for _, a := range s.mustResources(t, "AWS::CloudWatch::Alarm") {
			for _, m := range metricsIn(a) {
				if m["Namespace"] != telemetry.Namespace {
					continue
				}
				name, _ := m["MetricName"].(string)
				if _, known := telemetry.MetricNamed(telemetry.MetricName(name)); !known {
					t.Errorf("%s watches %q, which nobody reports", a.ID, name)
				}
				mustBe(t, a.ID+" dimensions", m["Dimensions"], []any{
					map[string]any{"Name": telemetry.DimensionStage, "Value": string(s.stage.Name)},
				})
				watched[telemetry.MetricName(name)] = true
			}
		}
		for _, m := range telemetry.Metrics() {
			if watched[m.Name] == (explanatory[m.Name] != "") {
				t.Errorf("metric %s: has an alarm: %t, only explains others: %q", m.Name, watched[m.Name], explanatory[m.Name])
			}
		}
	})
}

// metricsIn are the metrics that an alarm is made of.
func metricsIn(a resource) []map[string]any {
	metrics := []map[string]any{a.Properties}
	all, _ := a.at("Metrics").([]any)
	for _, one := range all {
		if m, isStat := at(one, "MetricStat", "Metric").(map[string]any); isStat {
			metrics = append(metrics, m)
		}
	}
	return metrics
}

func TestDeadLettersRing(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		for _, queue := range []string{"OutboxFailures", "ScheduleFailures", "SagaFailures", "DueFailures", "ExpiryFailed"} {
			a := s.mustResource(t, "AWS::CloudWatch::Alarm", queue+"Waiting")
			mustBe(t, "metric", a.at("MetricName"), "ApproximateNumberOfMessagesVisible")
			mustBeRef(t, "queue", a.at("Dimensions", 0, "Value"), queue+".QueueName")
			mustBe(t, "comparison", a.at("ComparisonOperator"), "GreaterThanThreshold")
			mustBe(t, "threshold", a.at("Threshold"), 0)
		}
	})
}

func TestFunctionAlarmsWatchTheirFunction(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		for _, f := range topology.Functions() {
			id := constructID(string(f.Name))
			errors := s.mustResource(t, "AWS::CloudWatch::Alarm", id+"Errors")
			mustBe(t, id+" share", errors.at("Metrics", 0, "Expression"), "100 * failed / runs")
			mustBe(t, id+" threshold", errors.at("Threshold"), 1)
			for i, metric := range []string{"Errors", "Invocations"} {
				mustBe(t, id+" metric", errors.at("Metrics", i+1, "MetricStat", "Metric", "MetricName"), metric)
				mustBeRef(t, id+" function", errors.at("Metrics", i+1, "MetricStat", "Metric", "Dimensions", 0, "Value"), id+"Function")
			}
			slow := s.mustResource(t, "AWS::CloudWatch::Alarm", id+"Slow")
			mustBe(t, id+" p99", slow.at("ExtendedStatistic"), "p99")
			mustBe(t, id+" p99 limit", slow.at("Threshold"), f.Timeout.Milliseconds()*8/10)
			mustBeRef(t, id+" throttles of", s.mustResource(t, "AWS::CloudWatch::Alarm", id+"Throttles").at("Dimensions", 0, "Value"), id+"Function")
			if f.Stream == nil {
				continue
			}
			behind := s.mustResource(t, "AWS::CloudWatch::Alarm", id+"Behind")
			mustBe(t, id+" behind", behind.at("MetricName"), "IteratorAge")
			mustBe(t, id+" behind limit", behind.at("Threshold"), 60_000)
			mustBe(t, id+" behind statistic", behind.at("Statistic"), "Maximum")
		}
	})
}

func TestServerErrorsOfTheGatewayRing(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		a := s.mustResource(t, "AWS::CloudWatch::Alarm", "ApiServerErrors")
		mustBe(t, "threshold", a.at("Threshold"), 1)
		mustBe(t, "failed", a.at("Metrics", 1, "MetricStat", "Metric", "MetricName"), "5xx")
		mustBe(t, "requests", a.at("Metrics", 2, "MetricStat", "Metric", "MetricName"), "Count")
		mustBeRef(t, "gateway", a.at("Metrics", 1, "MetricStat", "Metric", "Dimensions", 0, "Value"), "Gateway")
	})
}

// A policy on the topic replaces the default one. If it does not let CloudWatch in,
// every alarm is silent, and only its history says so.
func TestAlarmsMayPublish(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		var topics []string
		for _, policy := range s.mustResources(t, "AWS::SNS::TopicPolicy") {
			var allowed, tlsOnly bool
			topics = append(topics, readable(policy.at("Topics", 0)))
			for _, statement := range listed(policy.at("PolicyDocument", "Statement")) {
				publishes := at(statement, "Action") == "sns:Publish"
				allowed = allowed || publishes && at(statement, "Effect") == "Allow" &&
					at(statement, "Principal", "Service") == "cloudwatch.amazonaws.com"
				tlsOnly = tlsOnly || publishes && at(statement, "Effect") == "Deny" &&
					at(statement, "Condition", "Bool", "aws:SecureTransport") == "false"
			}
			if !allowed || !tlsOnly {
				t.Errorf("%s: CloudWatch may publish: %t; only over TLS: %t", policy.ID, allowed, tlsOnly)
			}
		}
		mustBe(t, "topics", topics, []string{"Pages", "Tickets"})
	})
}

func TestAListenerIsSubscribed(t *testing.T) {
	app := newTestApp(t.TempDir(), map[string]any{
		contextStage: "prod", contextJWTIssuer: "https://login.example.com", contextJWTAudience: "shop",
		contextAlarmEmail: "ops@example.com",
	})
	stack, err := compose(app, testAccount, "..")
	if err != nil {
		t.Fatal(err)
	}
	made := mustParse(t, stack)
	var topics []string
	for _, subscription := range made.mustResources(t, "AWS::SNS::Subscription") {
		topics = append(topics, readable(subscription.at("TopicArn")))
		mustBe(t, "protocol", subscription.at("Protocol"), "email")
		mustBe(t, "endpoint", subscription.at("Endpoint"), "ops@example.com")
	}
	slices.Sort(topics)
	mustBe(t, "topics", topics, []string{"Pages", "Tickets"})
	authorizer := made.mustResource(t, "AWS::ApiGatewayV2::Authorizer", "GatewayTokens")
	mustBe(t, "issuer", authorizer.at("JwtConfiguration", "Issuer"), "https://login.example.com")
	mustBe(t, "audience", authorizer.at("JwtConfiguration", "Audience"), []string{"shop"})
	if hasAnnotation(made, "warning", "example") {
		t.Error("a deployment with a real issuer is warned about")
	}
}
