package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/topology"
)

const (
	// deadLettersKeptDays is the longest that SQS keeps a message. It counts from the first
	// sending, so a dead letter has it less its time in the queue of work. Source:
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
	deadLettersKeptDays = 14
	// workKeptDays outlasts a long weekend on which a function stands still, with the hour
	// that the tries of a message take to spare.
	workKeptDays = 4
)

// queues are the stack's queues by what they are for.
type queues struct {
	// forPeople hold what was given up or put aside, until a person has read it.
	forPeople map[topology.Resource]awssqs.Queue
	// work feeds functions.
	work map[topology.Resource]awssqs.Queue
}

// newQueues makes the queues of the topology that people read, and one for each queue that
// starts a function.
func newQueues(stack awscdk.Stack, chosen stage) queues {
	made := queues{map[topology.Resource]awssqs.Queue{}, map[topology.Resource]awssqs.Queue{}}
	for _, resource := range topology.QueuesForPeople() {
		made.forPeople[resource] = newQueue(stack, chosen, resource, &awssqs.QueueProps{
			RetentionPeriod: awscdk.Duration_Days(jsii.Number(deadLettersKeptDays)),
		})
	}
	for _, f := range topology.Functions() {
		if f.Queue == nil {
			continue
		}
		made.work[f.Queue.Queue] = newQueue(stack, chosen, f.Queue.Queue, &awssqs.QueueProps{
			RetentionPeriod:   awscdk.Duration_Days(jsii.Number(workKeptDays)),
			VisibilityTimeout: seconds(f.Queue.VisibilityTimeout),
			DeadLetterQueue: &awssqs.DeadLetterQueue{
				Queue: made.forPeople[f.Queue.DeadLetters], MaxReceiveCount: jsii.Number(f.Queue.ReceivesMax),
			},
		})
	}
	return made
}

// newQueue makes a queue that accepts encrypted connections only and holds its messages
// encrypted.
func newQueue(stack awscdk.Stack, chosen stage, resource topology.Resource, props *awssqs.QueueProps) awssqs.Queue {
	props.Encryption = awssqs.QueueEncryption_SQS_MANAGED
	props.EnforceSSL = jsii.Bool(true)
	props.RemovalPolicy = chosen.RemovalPolicy
	return awssqs.NewQueue(stack, jsii.String(constructID(string(resource))), props)
}

// named returns the queue of that name, whatever it is for.
func (q queues) named(resource topology.Resource) (awssqs.Queue, error) {
	if queue, ok := q.forPeople[resource]; ok {
		return queue, nil
	}
	if queue, ok := q.work[resource]; ok {
		return queue, nil
	}
	return nil, fmt.Errorf("the stack has no queue %q", resource)
}

// addQueueTrigger maps a queue to the function.
//
// The mapping is written at the level of CloudFormation, as that of the stream is: the
// construct for it grants changing the visibility of messages, which nobody does here.
func addQueueTrigger(stack awscdk.Stack, f deployedFunction, found resources) error {
	trigger := f.Queue
	queue, err := found.queues.named(trigger.Queue)
	if err != nil {
		return err
	}
	mapping := awslambda.NewCfnEventSourceMapping(stack, jsii.String(constructID(string(f.Name))+"Messages"),
		&awslambda.CfnEventSourceMappingProps{
			FunctionName:                   f.lambda.FunctionName(),
			EventSourceArn:                 queue.QueueArn(),
			BatchSize:                      jsii.Number(trigger.BatchMessagesMax),
			MaximumBatchingWindowInSeconds: jsii.Number(trigger.BatchWindow.Seconds()),
			// Without this one failed message brings its whole batch back.
			FunctionResponseTypes: jsii.Strings("ReportBatchItemFailures"),
			ScalingConfig: &awslambda.CfnEventSourceMapping_ScalingConfigProperty{
				MaximumConcurrency: jsii.Number(trigger.ConcurrencyMax),
			},
		})
	// Lambda tries the role's permissions when the mapping is made.
	mapping.Node().AddDependency(f.role)
	return nil
}
