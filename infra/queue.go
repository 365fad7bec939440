package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/topology"
)

// deadLettersKeptDays is the longest that SQS keeps a message. Source:
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
const deadLettersKeptDays = 14

// newDeadLetterQueues makes one queue for each failure destination of the topology.
// They accept encrypted connections only and hold their messages encrypted.
func newDeadLetterQueues(stack awscdk.Stack, chosen stage) map[topology.Resource]awssqs.Queue {
	ids := map[topology.Resource]string{}
	for _, f := range topology.Functions() {
		if f.Stream != nil {
			ids[f.Stream.FailureDestination] = constructID(string(f.Stream.FailureDestination))
		}
		if f.Schedule != nil {
			ids[f.Schedule.FailureDestination] = constructID(string(f.Schedule.FailureDestination))
		}
	}
	queues := map[topology.Resource]awssqs.Queue{}
	for _, resource := range topology.Resources() {
		id, wanted := ids[resource]
		if !wanted {
			continue
		}
		queues[resource] = awssqs.NewQueue(stack, jsii.String(id), &awssqs.QueueProps{
			Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
			EnforceSSL:      jsii.Bool(true),
			RetentionPeriod: awscdk.Duration_Days(jsii.Number(deadLettersKeptDays)),
			RemovalPolicy:   chosen.RemovalPolicy,
		})
	}
	return queues
}
