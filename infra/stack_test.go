package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOutputsSayWhereThingsAre(t *testing.T) {
	want := map[string]string{
		outputAPIURL:         "Gateway.ApiEndpoint",
		outputTableName:      "Table",
		outputEventBusName:   "EventBus",
		outputPageTopicARN:   "Pages",
		outputTicketTopicARN: "Tickets",
		outputPaymentSecret:  "PaymentSecret",
		outputArchiveBucket:  "ArchiveBucket",
		outputDueQueue:       "DueQueue",
		outputSagaQueue:      "SagaQueue",
	}
	eachStage(t, func(t *testing.T, s synthesis) {
		for name, value := range want {
			mustBeRef(t, "output "+name, at(s.outputs[name], "Value"), value)
		}
	})
}

// The stage is in the stack's name and nowhere in the names of resources, so that a
// stack can be made again beside an old one.
func TestTheStageIsInTheStackNameOnly(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		if got, want := *s.stack.StackName(), "Holdfast-"+string(s.stage.Name); got != want {
			t.Errorf("stack name %q, want %q", got, want)
		}
		if got := *s.stack.TerminationProtection(); got != (s.stage.Name == stageProd) {
			t.Errorf("termination protection is %t", got)
		}
		for _, r := range s.resources {
			for _, property := range []string{"TableName", "FunctionName", "QueueName", "RoleName", "LogGroupName", "AlarmName", "TopicName"} {
				if name, ok := r.at(property).(string); ok {
					t.Errorf("%s has the fixed %s %q", r.ID, property, name)
				}
			}
		}
	})
}

// What holds data or evidence outlives a deleted prod stack, and a dev stack leaves
// nothing behind.
func TestDataOutlivesTheStackInProdOnly(t *testing.T) {
	kinds := []string{"AWS::DynamoDB::GlobalTable", "AWS::Logs::LogGroup", "AWS::SQS::Queue", "AWS::SecretsManager::Secret", "AWS::S3::Bucket"}
	eachStage(t, func(t *testing.T, s synthesis) {
		want := "Delete"
		if s.stage.Name == stageProd {
			want = "Retain"
		}
		for _, kind := range kinds {
			for _, r := range s.mustResources(t, kind) {
				mustBe(t, r.ID+" deletion policy", r.DeletionPolicy, want)
			}
		}
	})
}

func TestLogsEnd(t *testing.T) {
	days := map[stageName]int{stageDev: 7, stageStaging: 30, stageProd: 365}
	eachStage(t, func(t *testing.T, s synthesis) {
		for _, r := range s.mustResources(t, "AWS::Logs::LogGroup") {
			mustBe(t, r.ID+" retention", r.at("RetentionInDays"), days[s.stage.Name])
		}
	})
}

func TestConstructID(t *testing.T) {
	for name, want := range map[string]string{"api": "Api", "outbox-failures": "OutboxFailures", "a--b-": "AB"} {
		if got := constructID(name); got != want {
			t.Errorf("constructID(%q) = %q, want %q", name, got, want)
		}
	}
}

// Nothing in a template may be of the machine that made it.
func TestTemplatesDoNotNameThisMachine(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	eachStage(t, func(t *testing.T, s synthesis) {
		for _, r := range s.resources {
			text := readable(any(r.Properties))
			for _, local := range []string{filepath.Dir(here), os.TempDir()} {
				if strings.Contains(text, local) {
					t.Errorf("%s names the local path %s: %s", r.ID, local, text)
				}
			}
		}
	})
}
