package main

import (
	"slices"
	"testing"
	"time"

	"holdfast/shared/topology"
)

func TestSchedulesGiveUpBeforeTheNextTick(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		scheduled := 0
		for _, f := range topology.Functions() {
			if f.Schedule == nil {
				continue
			}
			scheduled++
			id, trigger := constructID(string(f.Name)), f.Schedule
			failures := constructID(string(trigger.FailureDestination)) + ".Arn"
			schedule := s.mustResource(t, "AWS::Scheduler::Schedule", id+"Schedule")
			mustBe(t, "flexible window", schedule.at("FlexibleTimeWindow"), map[string]any{"Mode": "OFF"})
			mustBeRef(t, "target", schedule.at("Target", "Arn"), id+"Function.Arn")
			mustBeRef(t, "role", schedule.at("Target", "RoleArn"), id+"ScheduleRole.Arn")
			mustBe(t, "retries", schedule.at("Target", "RetryPolicy"), map[string]any{
				"MaximumEventAgeInSeconds": trigger.EventAgeMax.Seconds(), "MaximumRetryAttempts": trigger.Retries,
			})
			mustBeRef(t, "dead letters", schedule.at("Target", "DeadLetterConfig", "Arn"), failures)
			mustDependOnPolicyOf(t, schedule, id+"ScheduleRole")
			runs := s.mustResource(t, "AWS::Lambda::EventInvokeConfig", id+"Runs")
			mustBeRef(t, "runs of", runs.at("FunctionName"), id+"Function")
			mustBe(t, "version", runs.at("Qualifier"), "$LATEST")
			mustBe(t, "runs again", runs.at("MaximumRetryAttempts"), trigger.Retries)
			mustBe(t, "runs age", runs.at("MaximumEventAgeInSeconds"), trigger.EventAgeMax.Seconds())
			mustBeRef(t, "failed runs", runs.at("DestinationConfig", "OnFailure", "Destination"), failures)
			mustDependOnPolicyOf(t, runs, id+"FunctionRole")
		}
		if made := len(s.mustResources(t, "AWS::Scheduler::Schedule")); made != scheduled {
			t.Errorf("%d schedules, want %d", made, scheduled)
		}
	})
}

// The reconciler, the audit and the archive work on what is not urgent; their numbers are
// written out.
func TestTheReconcilerTheAuditAndTheArchiveRunMoreSeldom(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		for id, want := range map[string]struct {
			rate string
			age  int
		}{"Reconcile": {"rate(5 minutes)", 300}, "Audit": {"rate(15 minutes)", 900}, "Archive": {"rate(15 minutes)", 900}} {
			schedule := s.mustResource(t, "AWS::Scheduler::Schedule", id+"Schedule")
			mustBe(t, id+" rate", schedule.at("ScheduleExpression"), want.rate)
			mustBe(t, id+" retries", schedule.at("Target", "RetryPolicy", "MaximumRetryAttempts"), 1)
			mustBe(t, id+" age", schedule.at("Target", "RetryPolicy", "MaximumEventAgeInSeconds"), want.age)
		}
	})
}

// The sweep of every minute is the promise that holds end, and that of the saga that money
// does; their numbers are written out, so that a change of the topology is noticed here.
func TestTheSweepsRunEveryMinute(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		for _, id := range []string{"Expiry", "Saga"} {
			schedule := s.mustResource(t, "AWS::Scheduler::Schedule", id+"Schedule")
			mustBe(t, id+" rate", schedule.at("ScheduleExpression"), "rate(1 minute)")
			mustBe(t, id+" retries", schedule.at("Target", "RetryPolicy", "MaximumRetryAttempts"), 1)
			mustBe(t, id+" age", schedule.at("Target", "RetryPolicy", "MaximumEventAgeInSeconds"), 60)
		}
	})
}

func TestAScheduleMayStartItsFunctionOnly(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		for _, id := range []string{"Expiry", "Saga", "Reconcile", "Audit", "Archive"} {
			want := []string{"lambda:InvokeFunction on " + id + "Function.Arn", "sqs:SendMessage on ScheduleFailures.Arn"}
			if got := s.permissions(t, id+"ScheduleRole"); !slices.Equal(got, want) {
				t.Errorf("the schedule may %v, want %v", got, want)
			}
			role := s.mustResource(t, "AWS::IAM::Role", id+"ScheduleRole")
			mustBe(t, id+" trust", role.at("AssumeRolePolicyDocument", "Statement"), []any{map[string]any{
				"Action": "sts:AssumeRole", "Effect": "Allow",
				"Principal": map[string]any{"Service": "scheduler.amazonaws.com"},
				"Condition": map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": map[string]any{"Ref": "AWS::AccountId"}}},
			}})
		}
	})
}

func TestRateExpression(t *testing.T) {
	for every, want := range map[time.Duration]string{
		time.Minute: "rate(1 minute)", 5 * time.Minute: "rate(5 minutes)", time.Hour: "rate(60 minutes)",
		0: "", -time.Minute: "", 30 * time.Second: "", 90 * time.Second: "",
	} {
		got, err := rateExpression(every)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("rateExpression(%s) = %q, %v; want %q", every, got, err, want)
		}
	}
}
