package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"
)

// hasAnnotation says whether a message of that kind, with text in it, is on any
// construct of the stage.
func hasAnnotation(s synthesis, kind, text string) bool {
	return len(annotations(s.stack, kind, text)) > 0
}

// annotations returns the messages of a kind ("warning" or "error") that have text
// in them.
func annotations(stack awscdk.Stack, kind, text string) []string {
	all := assertions.Annotations_FromStack(stack)
	find := all.FindWarning
	if kind == "error" {
		find = all.FindError
	}
	var messages []string
	for _, m := range *find(jsii.String("*"), assertions.Match_AnyValue()) {
		//nolint:staticcheck // the package that it moved to is not bound to Go
		if message := fmt.Sprintf("%s: %v", *m.Id, m.Entry.Data); strings.Contains(message, text) {
			messages = append(messages, message)
		}
	}
	return messages
}

func TestNagFindsNothing(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		if messages := annotations(s.stack, "error", ""); len(messages) > 0 {
			t.Errorf("errors that are neither mended nor explained:\n%s", strings.Join(messages, "\n"))
		}
		if messages := annotations(s.stack, "warning", "AwsSolutions"); len(messages) > 0 {
			t.Errorf("warnings that are neither mended nor explained:\n%s", strings.Join(messages, "\n"))
		}
	})
}

// Negative control: the check above means something only if nag is attached and its
// findings are seen. A queue without TLS must be found.
func TestNagFindsAFault(t *testing.T) {
	app := newTestApp(t.TempDir(), map[string]any{contextStage: string(stageDev)})
	stack, err := compose(app, "", "..")
	if err != nil {
		t.Fatal(err)
	}
	awssqs.NewQueue(stack, jsii.String("Careless"), nil)
	if messages := annotations(stack, "error", "AwsSolutions-SQS4"); len(messages) == 0 {
		t.Error("a queue that accepts plain connections is not reported")
	}
}

// A suppression hides every later finding of its rule, so the list of rules that
// may be suppressed is short and written down twice.
func TestSuppressionsAreFewAndExplained(t *testing.T) {
	const reasonCharactersMin = 40
	allowed := map[string]string{
		"AwsSolutions-APIG4": "AWS::ApiGatewayV2::Route",
		"AwsSolutions-SQS3":  "AWS::SQS::Queue",
		"AwsSolutions-SMG4":  "AWS::SecretsManager::Secret",
		"AwsSolutions-S1":    "AWS::S3::Bucket",
		"AwsSolutions-DDB3":  "AWS::DynamoDB::GlobalTable",
	}
	eachStage(t, func(t *testing.T, s synthesis) {
		seen := map[string]bool{}
		for _, r := range s.resources {
			rules, _ := at(r.Metadata, "cdk_nag", "rules_to_suppress").([]any)
			for _, rule := range rules {
				id, _ := at(rule, "id").(string)
				reason, _ := at(rule, "reason").(string)
				seen[id] = true
				if id == "AwsSolutions-IAM5" {
					mustSuppressOneWildcard(t, s, r, rule)
					continue
				}
				if isWork := r.Type == "AWS::SQS::Queue" && r.at("RedrivePolicy") != nil; allowed[id] != r.Type || isWork {
					t.Errorf("%s (%s) suppresses %s", r.ID, r.Type, id)
				}
				if len(reason) < reasonCharactersMin {
					t.Errorf("%s suppresses %s without a real reason: %q", r.ID, id, reason)
				}
			}
		}
		if hasNoBackup := s.stage.Name == stageDev; seen["AwsSolutions-DDB3"] != hasNoBackup {
			t.Errorf("missing point-in-time recovery is suppressed: %t", seen["AwsSolutions-DDB3"])
		}
	})
}

// mustSuppressOneWildcard checks that a suppression of the rule on wildcards is that of the
// role of the archive or of the audit, for the objects of its bucket and nothing else.
func mustSuppressOneWildcard(t *testing.T, s synthesis, r resource, rule any) {
	t.Helper()
	for _, name := range []string{"Archive", "Audit"} {
		if strings.HasPrefix(r.ID, name+"FunctionRole") {
			bucket := s.mustResource(t, "AWS::S3::Bucket", name+"Bucket")
			mustBe(t, r.ID+" suppresses the wildcard", at(rule, "applies_to"), []string{"Resource::<" + bucket.ID + ".Arn>/*"})
			return
		}
	}
	t.Errorf("%s suppresses the rule on wildcards", r.ID)
}
