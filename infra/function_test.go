package main

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast/shared/dynamo"
	"holdfast/shared/topology"
)

// arnOf says how a template writes the ARN of each resource of the topology.
func arnOf() map[topology.Resource]string {
	return map[topology.Resource]string{
		topology.ResourceTable:              "Table.Arn",
		topology.ResourceTableIndexDue:      "Table.Arn/index/" + dynamo.IndexDue,
		topology.ResourceTableIndexOwner:    "Table.Arn/index/" + dynamo.IndexOwner,
		topology.ResourceTableIndexResource: "Table.Arn/index/" + dynamo.IndexResource,
		topology.ResourceTableStream:        "Table.StreamArn",
		topology.ResourceEventBus:           "EventBus.Arn",
		topology.ResourceOutboxFailures:     "OutboxFailures.Arn",
		topology.ResourceScheduleFailures:   "ScheduleFailures.Arn",
		topology.ResourceSagaQueue:          "SagaQueue.Arn",
		topology.ResourceSagaFailures:       "SagaFailures.Arn",
		topology.ResourcePaymentSecret:      "PaymentSecret",
		topology.ResourceDueQueue:           "DueQueue.Arn",
		topology.ResourceDueFailures:        "DueFailures.Arn",
		topology.ResourceExpiryFailed:       "ExpiryFailed.Arn",

		topology.ResourceTableIndexUnpublished: "Table.Arn/index/" + dynamo.IndexUnpublished,
		topology.ResourceTableIndexReview:      "Table.Arn/index/" + dynamo.IndexReview,
		// An action on objects names them all; there is no other in the topology but listing.
		topology.ResourceArchiveBucket: archiveObjects,
		topology.ResourceAuditBucket:   auditObjects,
		topology.ResourceAuditQueue:    "AuditQueue.Arn",
	}
}

// archiveObjects is how a template writes the objects of the archive: the one wildcard.
const archiveObjects, auditObjects = "ArchiveBucket.Arn/*", "AuditBucket.Arn/*"

// permissions returns what the policies of a role allow, as "action on resource".
func (s synthesis) permissions(tb testing.TB, role string) []string {
	tb.Helper()
	var allowed []string
	for _, policy := range s.mustResources(tb, "AWS::IAM::Policy") {
		if readable(policy.at("Roles", 0)) != role {
			continue
		}
		for _, statement := range listed(policy.at("PolicyDocument", "Statement")) {
			mustBe(tb, policy.ID+" effect", at(statement, "Effect"), "Allow")
			for _, action := range listed(at(statement, "Action")) {
				for _, target := range listed(at(statement, "Resource")) {
					allowed = append(allowed, readable(action)+" on "+readable(target))
				}
			}
		}
	}
	slices.Sort(allowed)
	return allowed
}

func TestEachFunctionMayDoWhatTheTopologySaysAndNoMore(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		for _, f := range topology.Functions() {
			name := constructID(string(f.Name)) + "Function"
			want := []string{
				"logs:CreateLogStream on " + name + "Logs.Arn",
				"logs:PutLogEvents on " + name + "Logs.Arn",
			}
			for _, grant := range f.Grants {
				for _, action := range grant.Actions {
					target := arnOf()[grant.Resource]
					if action == "s3:ListBucket" {
						target = strings.TrimSuffix(target, "/*")
					}
					want = append(want, action+" on "+target)
				}
			}
			slices.Sort(want)
			mustBeRef(t, name+" role", s.mustResource(t, "AWS::Lambda::Function", name).at("Role"), name+"Role.Arn")
			if got := s.permissions(t, name+"Role"); !slices.Equal(got, want) {
				t.Errorf("%s may\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

// These hold whatever the topology says.
func TestNobodyMayTooMuch(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		for _, role := range s.mustResources(t, "AWS::IAM::Role") {
			if role.at("ManagedPolicyArns") != nil || role.at("Policies") != nil {
				t.Errorf("%s has a managed or an inline policy", role.ID)
			}
			allowed := s.permissions(t, nameOf(role.ID))
			if len(allowed) == 0 {
				t.Errorf("%s may do nothing", role.ID)
			}
			for _, permission := range allowed {
				action, target, _ := strings.Cut(permission, " on ")
				objects := !strings.Contains(action, "*") && (nameOf(role.ID) == "ArchiveFunctionRole" && target == archiveObjects ||
					nameOf(role.ID) == "AuditFunctionRole" && target == auditObjects)
				if strings.Contains(permission, "*") && !objects {
					t.Errorf("%s has a wildcard: %s", role.ID, permission)
				}
				scans := action == "dynamodb:Scan" && nameOf(role.ID) != "AuditFunctionRole"
				if scans || strings.HasPrefix(action, "dynamodb:Delete") {
					t.Errorf("%s may %s", role.ID, action)
				}
				writes := action == "s3:GetObject" || action == "s3:PutObject" || action == "s3:ListBucket"
				keeps := nameOf(role.ID) == "ArchiveFunctionRole" || nameOf(role.ID) == "AuditFunctionRole"
				if strings.HasPrefix(action, "s3:") && (!writes || !keeps) {
					t.Errorf("%s may %s", role.ID, action)
				}
				if strings.HasPrefix(action, "secretsmanager:") && action != "secretsmanager:GetSecretValue" {
					t.Errorf("%s may %s", role.ID, action)
				}
				if nameOf(role.ID) == "WebhookFunctionRole" && strings.HasPrefix(action, "dynamodb:") && action != "dynamodb:GetItem" {
					t.Errorf("the function that everybody can reach may %s", action)
				}
				relays := nameOf(role.ID) == "OutboxFunctionRole" || nameOf(role.ID) == "ReconcileFunctionRole"
				if action == "events:PutEvents" && !relays {
					t.Errorf("%s may put events; only the outbox and the reconciler may", role.ID)
				}
			}
		}
	})
}

func TestFunctionsRunAsTheTopologySays(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		values := map[topology.Variable]string{
			topology.VariableStage:           string(s.stage.Name),
			topology.VariableTableName:       "Table",
			topology.VariableEventBusName:    "EventBus",
			topology.VariableOperatorGroup:   s.stage.OperatorGroup,
			topology.VariableSweepPage:       strconv.Itoa(s.stage.SweepPageItems),
			topology.VariableSagaQueueURL:    "SagaQueue",
			topology.VariablePaymentSecretID: "PaymentSecret",

			topology.VariableDueQueueURL:                  "DueQueue",
			topology.VariableExpiryFailedQueueURL:         "ExpiryFailed",
			topology.VariableArchiveBucketName:            "ArchiveBucket",
			topology.VariableArchiveHoldsAfterDays:        strconv.Itoa(s.stage.ArchiveHoldsAfterDays),
			topology.VariableArchiveReservationsAfterDays: strconv.Itoa(s.stage.ArchiveReservationsAfterDays),

			topology.VariableAuditQueueURL:     "AuditQueue",
			topology.VariableAuditBucketName:   "AuditBucket",
			topology.VariableAuditEverySeconds: "3600",
			topology.VariableAuditRepair:       string(s.stage.AuditRepair),
		}
		if got, want := len(s.mustResources(t, "AWS::Lambda::Function")), len(topology.Functions()); got != want {
			t.Errorf("%d functions, want %d", got, want)
		}
		for _, f := range topology.Functions() {
			name := constructID(string(f.Name)) + "Function"
			made := s.mustResource(t, "AWS::Lambda::Function", name)
			mustBe(t, name+" architecture", made.at("Architectures"), []string{"arm64"})
			mustBe(t, name+" runtime", made.at("Runtime"), "provided.al2023")
			mustBe(t, name+" handler", made.at("Handler"), "bootstrap")
			mustBe(t, name+" memory", made.at("MemorySize"), f.MemoryMiB)
			mustBe(t, name+" time-out", made.at("Timeout"), f.Timeout.Seconds())
			mustBeRef(t, name+" log group", made.at("LoggingConfig", "LogGroup"), name+"Logs")
			if f.ReservedConcurrency > 0 {
				mustBe(t, name+" reserved concurrency", made.at("ReservedConcurrentExecutions"), f.ReservedConcurrency)
			} else if made.at("ReservedConcurrentExecutions") != nil {
				t.Errorf("%s has a reserved concurrency", name)
			}
			want, got := map[string]string{}, map[string]string{}
			for _, v := range f.Variables {
				want[string(v)] = values[v]
			}
			variables, _ := made.at("Environment", "Variables").(map[string]any)
			for key, value := range variables {
				got[key] = readable(value)
			}
			mustBe(t, name+" environment", got, want)
		}
	})
}

// CDK took three functions of one module for one asset once, and all of them would
// have run the code of the first.
func TestEachFunctionHasItsOwnCode(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		owner := map[string]string{}
		for _, f := range s.mustResources(t, "AWS::Lambda::Function") {
			code := readable(f.at("Code", "S3Key"))
			if other, taken := owner[code]; taken {
				t.Errorf("%s and %s run the same code %s", f.ID, other, code)
			}
			owner[code] = f.ID
		}
	})
}

func TestWhatTheStackDoesNotKnowIsAnError(t *testing.T) {
	found := resources{}
	if _, err := found.arn("no-such-resource"); err == nil {
		t.Error("an unknown resource has an ARN")
	}
	if _, err := found.arn(topology.TableIndex("no-such-index")); err == nil {
		t.Error("an unknown index has an ARN")
	}
	if _, err := found.queues.named(topology.ResourceTable); err == nil {
		t.Error("the table is a queue")
	}
}
