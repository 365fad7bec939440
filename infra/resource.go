package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/dynamo"
	"holdfast/shared/topology"
)

// resources holds what the names in the topology stand for in this stack.
type resources struct {
	table         awsdynamodb.TableV2
	bus           awsevents.EventBus
	queues        queues
	paymentSecret awssecretsmanager.CfnSecret
	archive       awss3.Bucket
	audit         awss3.Bucket
}

// actionListBucket is allowed on a bucket itself, every other action of ours on its objects.
const actionListBucket = "s3:ListBucket"

// statements are what a grant allows in the words of IAM.
//
// The objects of the two buckets are the only places with a wildcard: their keys are made
// while the function runs. It stands behind the one bucket.
func (r resources) statements(grant topology.Grant) ([]awsiam.PolicyStatement, error) {
	allow := func(arn *string, actions []string) awsiam.PolicyStatement {
		return awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Actions: jsii.Strings(actions...), Resources: &[]*string{arn},
		})
	}
	arn, err := r.arn(grant.Resource)
	if err != nil {
		return nil, err
	}
	bucket, isBucket := r.buckets()[grant.Resource]
	if !isBucket {
		return []awsiam.PolicyStatement{allow(arn, grant.Actions)}, nil
	}
	onObjects := slices.DeleteFunc(slices.Clone(grant.Actions), func(action string) bool { return action == actionListBucket })
	statements := []awsiam.PolicyStatement{allow(bucket.ArnForObjects(jsii.String("*")), onObjects)}
	if slices.Contains(grant.Actions, actionListBucket) {
		statements = append(statements, allow(arn, []string{actionListBucket}))
	}
	return statements, nil
}

// buckets are the stack's buckets by their names in the topology.
func (r resources) buckets() map[topology.Resource]awss3.Bucket {
	return map[topology.Resource]awss3.Bucket{topology.ResourceArchiveBucket: r.archive, topology.ResourceAuditBucket: r.audit}
}

// arn returns the exact ARN of a resource, never one with a wildcard.
func (r resources) arn(resource topology.Resource) (*string, error) {
	for _, index := range dynamo.TableSchema().Indexes {
		if resource == topology.TableIndex(index.Name) {
			return jsii.String(*r.table.TableArn() + "/index/" + index.Name), nil
		}
	}
	switch resource {
	case topology.ResourceTable:
		return r.table.TableArn(), nil
	case topology.ResourceTableStream:
		return r.table.TableStreamArn(), nil
	case topology.ResourceEventBus:
		return r.bus.EventBusArn(), nil
	case topology.ResourcePaymentSecret:
		return r.paymentSecret.Ref(), nil // the reference to a secret is its ARN
	case topology.ResourceArchiveBucket:
		return r.archive.BucketArn(), nil
	case topology.ResourceAuditBucket:
		return r.audit.BucketArn(), nil
	case topology.ResourceOutboxFailures, topology.ResourceScheduleFailures,
		topology.ResourceSagaQueue, topology.ResourceSagaFailures,
		topology.ResourceDueQueue, topology.ResourceDueFailures, topology.ResourceExpiryFailed,
		topology.ResourceAuditQueue, topology.ResourceAuditFailures,
		topology.ResourceTableIndexDue, topology.ResourceTableIndexOwner, topology.ResourceTableIndexResource,
		topology.ResourceTableIndexUnpublished, topology.ResourceTableIndexReview:
	}
	queue, err := r.queues.named(resource)
	if err != nil {
		return nil, fmt.Errorf("the stack has no resource %q", resource)
	}
	return queue.QueueArn(), nil
}

// environment returns the values of the variables that a function is told. The secret's is
// its ARN and never its value: who may look at a function sees its environment.
func (r resources) environment(chosen stage, variables []topology.Variable) (*map[string]*string, error) {
	values := map[topology.Variable]*string{
		topology.VariableStage:           jsii.String(string(chosen.Name)),
		topology.VariableTableName:       r.table.TableName(),
		topology.VariableEventBusName:    r.bus.EventBusName(),
		topology.VariableOperatorGroup:   jsii.String(chosen.OperatorGroup),
		topology.VariableSweepPage:       jsii.String(strconv.Itoa(chosen.SweepPageItems)),
		topology.VariablePaymentSecretID: r.paymentSecret.Ref(),

		topology.VariableArchiveBucketName:            r.archive.BucketName(),
		topology.VariableArchiveHoldsAfterDays:        jsii.String(strconv.Itoa(chosen.ArchiveHoldsAfterDays)),
		topology.VariableArchiveReservationsAfterDays: jsii.String(strconv.Itoa(chosen.ArchiveReservationsAfterDays)),
		topology.VariableAuditBucketName:              r.audit.BucketName(),
		topology.VariableAuditEverySeconds:            jsii.String(strconv.Itoa(int(chosen.AuditEvery / time.Second))),
		topology.VariableAuditRepair:                  jsii.String(string(chosen.AuditRepair)),
	}
	for v, resource := range map[topology.Variable]topology.Resource{
		topology.VariableSagaQueueURL:         topology.ResourceSagaQueue,
		topology.VariableDueQueueURL:          topology.ResourceDueQueue,
		topology.VariableExpiryFailedQueueURL: topology.ResourceExpiryFailed,
		topology.VariableAuditQueueURL:        topology.ResourceAuditQueue,
	} {
		queue, err := r.queues.named(resource)
		if err != nil {
			return nil, err
		}
		values[v] = queue.QueueUrl()
	}
	environment := map[string]*string{}
	for _, v := range variables {
		value, ok := values[v]
		if !ok {
			return nil, fmt.Errorf("the stack has no value for the variable %q", v)
		}
		environment[string(v)] = value
	}
	return &environment, nil
}

// constructID turns a name of the topology, as "outbox-failures", into the form of
// a construct's id, as "OutboxFailures".
func constructID(name string) string {
	var id strings.Builder
	for _, word := range strings.Split(name, "-") {
		if word == "" {
			continue
		}
		id.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return id.String()
}
