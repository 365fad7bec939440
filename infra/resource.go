package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
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
	case topology.ResourceOutboxFailures, topology.ResourceScheduleFailures,
		topology.ResourceSagaQueue, topology.ResourceSagaFailures,
		topology.ResourceTableIndexDue, topology.ResourceTableIndexOwner, topology.ResourceTableIndexResource:
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
	sagaQueue, err := r.queues.named(topology.ResourceSagaQueue)
	if err != nil {
		return nil, err
	}
	values := map[topology.Variable]*string{
		topology.VariableStage:           jsii.String(string(chosen.Name)),
		topology.VariableTableName:       r.table.TableName(),
		topology.VariableEventBusName:    r.bus.EventBusName(),
		topology.VariableOperatorGroup:   jsii.String(chosen.OperatorGroup),
		topology.VariableSweepPage:       jsii.String(strconv.Itoa(chosen.SweepPageItems)),
		topology.VariableSagaQueueURL:    sagaQueue.QueueUrl(),
		topology.VariablePaymentSecretID: r.paymentSecret.Ref(),
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
