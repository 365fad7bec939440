package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/jsii-runtime-go"
)

// alarmTopics are where alarms go: one for each severity, because what wakes people and
// what they read in the morning are told by different ways.
type alarmTopics struct {
	pages, tickets awssns.Topic
}

// newAlarmTopics makes the stage's topics for alarms.
func newAlarmTopics(stack awscdk.Stack, chosen settings) alarmTopics {
	return alarmTopics{
		pages:   newAlarmTopic(stack, chosen, "Pages", "pages"),
		tickets: newAlarmTopic(stack, chosen, "Tickets", "tickets"),
	}
}

func newAlarmTopic(stack awscdk.Stack, chosen settings, id, name string) awssns.Topic {
	topic := awssns.NewTopic(stack, jsii.String(id), &awssns.TopicProps{
		DisplayName: jsii.String("Holdfast " + string(chosen.Name) + " " + name),
		EnforceSSL:  jsii.Bool(true),
	})
	// A policy of our own replaces the default one, which let the alarms publish.
	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid:        jsii.String("AlarmsMayPublish"),
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("cloudwatch.amazonaws.com"), nil)},
		Actions:    jsii.Strings("sns:Publish"),
		Resources:  &[]*string{topic.TopicArn()},
		Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": stack.Account()}},
	}))
	if chosen.AlarmEmail != "" {
		topic.AddSubscription(awssnssubscriptions.NewEmailSubscription(jsii.String(chosen.AlarmEmail), nil))
	}
	return topic
}
