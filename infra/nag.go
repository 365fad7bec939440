package main

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"holdfast/shared/topology"
)

// checkWithNag lets cdk-nag look at the whole app with the rules of AWS Solutions.
func checkWithNag(app awscdk.App) {
	awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Verbose: jsii.Bool(true)}), nil)
}

// suppressNag lists every finding that is meant, each with its reason. They are all
// here, so that a reader sees at once what was decided against a rule.
func suppressNag(stack awscdk.Stack, made watched) {
	found := made.resources
	for _, route := range made.api.public {
		suppress(route, "AwsSolutions-APIG4",
			"The route is public by design, and the topology lists it without scopes: it shows no owner's data, or its sender signs the body.")
	}
	for _, resource := range topology.Resources() {
		if queue, ok := found.queues.forPeople[resource]; ok {
			suppress(queue, "AwsSolutions-SQS3", "No function takes from the queue, so nothing in it can fail; people read it, and an alarm watches it.")
		}
	}
	suppress(found.paymentSecret, "AwsSolutions-SMG4",
		"The payment provider issues the keys, and no function can rotate them; a changed secret is seen by every function within five minutes.")
	suppress(found.audit, "AwsSolutions-S1",
		"One role writes to the bucket, once to each key; it has numbers that are counted anew every hour, and reports that the findings are in the log of too.")
	suppress(found.archive, "AwsSolutions-S1",
		"One role writes to the bucket, once to each key, and the manifests say what it wrote; who else reads is in the audit trail of the account, if its owner turns on data events.")
	suppressObjectWildcard(stack, made)
	if !made.PointInTimeRecovery {
		suppress(found.table, "AwsSolutions-DDB3",
			"The stage holds no data that anybody needs back; staging and prod have point-in-time recovery.")
	}
}

// suppressObjectWildcard explains the wildcards of the stack: those on the objects of the two
// buckets, whose keys are made while their functions run. Any other is still found.
func suppressObjectWildcard(stack awscdk.Stack, made watched) {
	for resource, bucket := range made.resources.buckets() {
		id := stack.GetLogicalId(bucket.Node().DefaultChild().(awscdk.CfnElement))
		for _, f := range made.functions {
			reaches := slices.ContainsFunc(f.Grants, func(g topology.Grant) bool { return g.Resource == resource })
			if !reaches {
				continue
			}
			cdknag.NagSuppressions_AddResourceSuppressions(f.role, &[]*cdknag.NagPackSuppression{{
				Id:        jsii.String("AwsSolutions-IAM5"),
				Reason:    jsii.String("The keys of the bucket's objects are made while the function runs; the wildcard ends at its own bucket, and allows no delete."),
				AppliesTo: &[]any{"Resource::<" + *id + ".Arn>/*"},
			}}, jsii.Bool(true))
		}
	}
}

func suppress(construct constructs.IConstruct, rule, reason string) {
	cdknag.NagSuppressions_AddResourceSuppressions(construct,
		&[]*cdknag.NagPackSuppression{{Id: jsii.String(rule), Reason: jsii.String(reason)}}, nil)
}
