package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/dynamo"
	"holdfast/shared/topology"
)

// resources holds what the names in the topology stand for in this stack.
type resources struct {
	table  awsdynamodb.TableV2
	bus    awsevents.EventBus
	queues map[topology.Resource]awssqs.Queue
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
	case topology.ResourceOutboxFailures, topology.ResourceScheduleFailures,
		topology.ResourceTableIndexDue, topology.ResourceTableIndexOwner, topology.ResourceTableIndexResource:
	}
	if queue, ok := r.queues[resource]; ok {
		return queue.QueueArn(), nil
	}
	return nil, fmt.Errorf("the stack has no resource %q", resource)
}

// queue returns the dead-letter queue of that name.
func (r resources) queue(resource topology.Resource) (awssqs.Queue, error) {
	queue, ok := r.queues[resource]
	if !ok {
		return nil, fmt.Errorf("the stack has no queue %q", resource)
	}
	return queue, nil
}

// environment returns the values of the variables that a function is told.
func (r resources) environment(chosen stage, variables []topology.Variable) (*map[string]*string, error) {
	values := map[topology.Variable]*string{
		topology.VariableStage:         jsii.String(string(chosen.Name)),
		topology.VariableTableName:     r.table.TableName(),
		topology.VariableEventBusName:  r.bus.EventBusName(),
		topology.VariableOperatorGroup: jsii.String(chosen.OperatorGroup),
		topology.VariableSweepPage:     jsii.String(strconv.Itoa(chosen.SweepPageItems)),
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
