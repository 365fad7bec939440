package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/topology"
)

// The names of the stack's outputs.
const (
	outputAPIURL         = "ApiUrl"
	outputTableName      = "TableName"
	outputEventBusName   = "EventBusName"
	outputPageTopicARN   = "PageTopicArn"
	outputTicketTopicARN = "TicketTopicArn"
	outputPaymentSecret  = "PaymentSecretArn"
	outputArchiveBucket  = "ArchiveBucketName"
	outputDueQueue       = "DueQueueUrl"
	outputSagaQueue      = "SagaQueueUrl"
	outputAuditBucket    = "AuditBucketName"
	outputAuditQueue     = "AuditQueueUrl"
)

// newStack makes the whole of Holdfast for one stage. The stage is in the stack's
// name only: CloudFormation names the resources, and the functions are told the
// names by environment.
func newStack(scope constructs.Construct, chosen settings, moduleRoot string) (awscdk.Stack, error) {
	name := "Holdfast-" + string(chosen.Name)
	stack := awscdk.NewStack(scope, jsii.String(name), &awscdk.StackProps{
		StackName:             jsii.String(name),
		Description:           jsii.String("Holdfast, a reservation ledger: stage " + string(chosen.Name)),
		TerminationProtection: jsii.Bool(chosen.DeletionProtection),
	})
	if chosen.Example {
		awscdk.Annotations_Of(stack).AddWarningV2(jsii.String("holdfast:example-issuer"),
			jsii.String("The token issuer is an example. Do not deploy this template: the API would let nobody in."), nil)
	}
	table, err := newTable(stack, chosen.stage)
	if err != nil {
		return nil, fmt.Errorf("table: %w", err)
	}
	found := resources{
		table: table,
		bus: awsevents.NewEventBus(stack, jsii.String("EventBus"), &awsevents.EventBusProps{
			Description: jsii.String("Ledger events of Holdfast"),
		}),
		queues:        newQueues(stack, chosen.stage),
		paymentSecret: newPaymentSecret(stack, chosen.stage),
		archive:       newArchiveBucket(stack, chosen.stage),
		audit:         newAuditBucket(stack, chosen.stage),
	}
	functions, err := newFunctions(stack, chosen.stage, found, moduleRoot)
	if err != nil {
		return nil, err
	}
	for _, f := range functions {
		if err := addTriggers(stack, f, found); err != nil {
			return nil, fmt.Errorf("function %s: %w", f.Name, err)
		}
	}
	api, err := newAPI(stack, chosen, functions)
	if err != nil {
		return nil, fmt.Errorf("API: %w", err)
	}
	topics := newAlarmTopics(stack, chosen)
	made := watched{chosen.stage, functions, found, api}
	addDashboard(stack, made, addAlarms(stack, topics, made))
	suppressNag(stack, made)
	output := func(id string, value *string, description string) {
		awscdk.NewCfnOutput(stack, jsii.String(id), &awscdk.CfnOutputProps{
			Value: value, Description: jsii.String(description),
		})
	}
	output(outputAPIURL, api.gateway.ApiEndpoint(), "Address of the HTTP API")
	output(outputTableName, table.TableName(), "Name of the table")
	output(outputEventBusName, found.bus.EventBusName(), "Name of the bus of ledger events")
	output(outputPaymentSecret, found.paymentSecret.Ref(), "Secret that must be filled with the payment provider's keys")
	output(outputArchiveBucket, found.archive.BucketName(), "Name of the bucket of what has left the table")
	output(outputDueQueue, found.queues.work[topology.ResourceDueQueue].QueueUrl(), "Queue that ends holds at their due time")
	output(outputSagaQueue, found.queues.work[topology.ResourceSagaQueue].QueueUrl(), "Queue that makes the saga look at a reservation")
	output(outputAuditBucket, found.audit.BucketName(), "Name of the bucket of the audit's reports")
	output(outputAuditQueue, found.queues.work[topology.ResourceAuditQueue].QueueUrl(), "Queue of the parts of an audit")
	output(outputPageTopicARN, topics.pages.TopicArn(), "Topic of the alarms that wake somebody")
	output(outputTicketTopicARN, topics.tickets.TopicArn(), "Topic of the alarms that somebody reads in working hours")
	return stack, nil
}

// addTriggers starts a function from the table's stream, from a queue and on a schedule, as
// the topology says. HTTP routes are made by newAPI.
func addTriggers(stack awscdk.Stack, f deployedFunction, found resources) error {
	if f.Stream != nil {
		if err := addStreamTrigger(stack, f, found); err != nil {
			return err
		}
	}
	if f.Queue != nil {
		if err := addQueueTrigger(stack, f, found); err != nil {
			return err
		}
	}
	if f.Schedule != nil {
		return addScheduleTrigger(stack, f, found)
	}
	return nil
}
