package main

import (
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/jsii-runtime-go"
)

// addScheduleTrigger starts the function at a fixed rate.
//
// The schedule is written at the level of CloudFormation: the construct for it lets
// its role invoke every version of the function, and keeps a tick for a day.
func addScheduleTrigger(stack awscdk.Stack, f deployedFunction, found resources) error {
	trigger := f.Schedule
	id := constructID(string(f.Name))
	failures, err := found.queues.named(trigger.FailureDestination)
	if err != nil {
		return err
	}
	rate, err := rateExpression(trigger.Every)
	if err != nil {
		return err
	}
	role := awsiam.NewRole(stack, jsii.String(id+"ScheduleRole"), &awsiam.RoleProps{
		Description: jsii.String("Lets the schedule start the function " + string(f.Name) + " and nothing else"),
		// The condition keeps a schedule of another account from using this role.
		AssumedBy: awsiam.NewServicePrincipal(jsii.String("scheduler.amazonaws.com"), &awsiam.ServicePrincipalOpts{
			Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": stack.Account()}},
		}),
	})
	allow := func(action string, resource *string) {
		role.AddToPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions: jsii.Strings(action), Resources: &[]*string{resource},
		}))
	}
	allow("lambda:InvokeFunction", f.lambda.FunctionArn())
	allow("sqs:SendMessage", failures.QueueArn())
	schedule := awsscheduler.NewCfnSchedule(stack, jsii.String(id+"Schedule"), &awsscheduler.CfnScheduleProps{
		Description:        jsii.String(f.Description),
		ScheduleExpression: jsii.String(rate),
		FlexibleTimeWindow: &awsscheduler.CfnSchedule_FlexibleTimeWindowProperty{Mode: jsii.String("OFF")},
		Target: &awsscheduler.CfnSchedule_TargetProperty{
			Arn:     f.lambda.FunctionArn(),
			RoleArn: role.RoleArn(),
			RetryPolicy: &awsscheduler.CfnSchedule_RetryPolicyProperty{
				MaximumRetryAttempts:     jsii.Number(trigger.Retries),
				MaximumEventAgeInSeconds: jsii.Number(trigger.EventAgeMax.Seconds()),
			},
			DeadLetterConfig: &awsscheduler.CfnSchedule_DeadLetterConfigProperty{Arn: failures.QueueArn()},
		},
	})
	// The Scheduler checks that it may take the role when the schedule is made.
	schedule.Node().AddDependency(role)
	limitAsynchronousRuns(stack, f, failures.QueueArn())
	return nil
}

// limitAsynchronousRuns bounds what Lambda does with a tick after the Scheduler has
// handed it over. Without this a failing sweep is run again for up to six hours, and
// its ticks pile up before the reserved concurrency.
func limitAsynchronousRuns(stack awscdk.Stack, f deployedFunction, failuresARN *string) {
	limits := awslambda.NewCfnEventInvokeConfig(stack, jsii.String(constructID(string(f.Name))+"Runs"),
		&awslambda.CfnEventInvokeConfigProps{
			FunctionName:             f.lambda.FunctionName(),
			Qualifier:                jsii.String("$LATEST"),
			MaximumRetryAttempts:     jsii.Number(f.Schedule.Retries),
			MaximumEventAgeInSeconds: jsii.Number(f.Schedule.EventAgeMax.Seconds()),
			DestinationConfig: &awslambda.CfnEventInvokeConfig_DestinationConfigProperty{
				OnFailure: &awslambda.CfnEventInvokeConfig_OnFailureProperty{Destination: failuresARN},
			},
		})
	// Lambda tries the role's permission on the destination when this is set.
	limits.Node().AddDependency(f.role)
}

// rateExpression says every in the Scheduler's words, which have whole minutes and a
// singular. Source:
// https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
func rateExpression(every time.Duration) (string, error) {
	switch {
	case every < time.Minute || every%time.Minute != 0:
		return "", fmt.Errorf("a schedule every %s: want whole minutes", every)
	case every == time.Minute:
		return "rate(1 minute)", nil
	}
	return fmt.Sprintf("rate(%d minutes)", every/time.Minute), nil
}
