package main

import (
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/topology"
)

// deployedFunction is one function of the topology with what belongs to it alone.
type deployedFunction struct {
	topology.Function
	lambda awslambda.Function
	role   awsiam.Role
}

// newFunctions makes every function of the topology, in its order.
func newFunctions(stack awscdk.Stack, chosen stage, found resources, moduleRoot string) ([]deployedFunction, error) {
	var functions []deployedFunction
	for _, f := range topology.Functions() {
		deployed, err := newFunction(stack, chosen, found, f, moduleRoot)
		if err != nil {
			return nil, fmt.Errorf("function %s: %w", f.Name, err)
		}
		functions = append(functions, deployed)
	}
	return functions, nil
}

func newFunction(stack awscdk.Stack, chosen stage, found resources, f topology.Function, moduleRoot string) (deployedFunction, error) {
	id := constructID(string(f.Name)) + "Function"
	logs := awslogs.NewLogGroup(stack, jsii.String(id+"Logs"), &awslogs.LogGroupProps{
		Retention:     chosen.LogRetention,
		RemovalPolicy: chosen.RemovalPolicy,
	})
	role, err := newRole(stack, id, f, found, logs)
	if err != nil {
		return deployedFunction{}, err
	}
	environment, err := found.environment(chosen, f.Variables)
	if err != nil {
		return deployedFunction{}, err
	}
	props := &awslambda.FunctionProps{
		Description:  jsii.String(f.Description),
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: awslambda.Architecture_ARM_64(),
		Handler:      jsii.String(binaryName),
		Code:         bundledCode(moduleRoot, f.Name),
		Role:         role,
		LogGroup:     logs,
		Environment:  environment,
		MemorySize:   jsii.Number(f.MemoryMiB),
		Timeout:      seconds(f.Timeout),
	}
	if f.ReservedConcurrency > 0 {
		props.ReservedConcurrentExecutions = jsii.Number(f.ReservedConcurrency)
	}
	return deployedFunction{f, awslambda.NewFunction(stack, jsii.String(id), props), role}, nil
}

// newRole makes the role of one function. It has no managed policy, because the one
// for Lambda allows writing to every log group of the account; what it may do is the
// list of the topology, and writing to its own log group.
func newRole(stack awscdk.Stack, id string, f topology.Function, found resources, logs awslogs.LogGroup) (awsiam.Role, error) {
	role := awsiam.NewRole(stack, jsii.String(id+"Role"), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		Description: jsii.String("What the function " + string(f.Name) + " of Holdfast may do"),
	})
	role.AddToPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions:   jsii.Strings("logs:CreateLogStream", "logs:PutLogEvents"),
		Resources: &[]*string{logs.LogGroupArn()},
	}))
	for _, grant := range f.Grants {
		statements, err := found.statements(grant)
		if err != nil {
			return nil, err
		}
		for _, statement := range statements {
			role.AddToPolicy(statement)
		}
	}
	return role, nil
}

func seconds(d time.Duration) awscdk.Duration {
	return awscdk.Duration_Seconds(jsii.Number(d.Seconds()))
}
