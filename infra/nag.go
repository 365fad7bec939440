package main

import (
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
func suppressNag(chosen stage, found resources, api httpAPI) {
	for _, route := range api.public {
		suppress(route, "AwsSolutions-APIG4",
			"The route is public by design, and the topology lists it without scopes: it shows no owner's data, or its sender signs the body.")
	}
	for _, resource := range topology.Resources() {
		if queue, ok := found.queues.deadLetters[resource]; ok {
			suppress(queue, "AwsSolutions-SQS3", "The queue is itself a dead-letter queue, and an alarm watches it.")
		}
	}
	suppress(found.paymentSecret, "AwsSolutions-SMG4",
		"The payment provider issues the keys, and no function can rotate them; a changed secret is seen by every function within five minutes.")
	if !chosen.PointInTimeRecovery {
		suppress(found.table, "AwsSolutions-DDB3",
			"The stage holds no data that anybody needs back; staging and prod have point-in-time recovery.")
	}
}

func suppress(construct constructs.IConstruct, rule, reason string) {
	cdknag.NagSuppressions_AddResourceSuppressions(construct,
		&[]*cdknag.NagPackSuppression{{Id: jsii.String(rule), Reason: jsii.String(reason)}}, nil)
}
