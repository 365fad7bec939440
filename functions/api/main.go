// Command api is the Lambda function behind the HTTP API. It only wires: what it answers
// is in package httpapi.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	_ "time/tzdata" // policies name time zones, and the machine of a function has no list of them

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/config"
	"holdfast/shared/dynamo"
	"holdfast/shared/httpapi"
	"holdfast/shared/skew"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// handler answers one event of the HTTP API.
type handler func(ctx context.Context, event json.RawMessage) (events.APIGatewayV2HTTPResponse, error)

func main() {
	handle, err := compose(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the api function:", err)
		os.Exit(1)
	}
	lambda.Start(handle)
}

// compose builds the function from its environment, once, before the first event.
func compose(ctx context.Context) (handler, error) {
	c, err := config.Load(topology.FunctionAPI, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	clock, random := system.RealClock{}, system.RealRandom{}
	gauge := skew.NewGauge(clock)
	shared, err := c.AWS(ctx, gauge)
	if err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(shared, func(o *dynamodb.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalDynamoDBEndpoint)
			dynamo.WithoutClientToken(o)
		}
	})
	source := telemetry.Source{Stage: string(c.Stage), Function: string(topology.FunctionAPI)}
	logger := telemetry.NewLogger(os.Stdout, source)
	fared := telemetry.NewCommandTally()
	store := dynamo.NewCountedStore(client, c.TableName, clock, random, fared)
	api, err := httpapi.New(httpapi.Options{
		Store: store, Waiting: store, Clock: clock, Gauge: gauge, Random: random,
		OperatorGroup: c.OperatorGroup, OwnerRate: ownerRate(c),
		Provider: newProvider(c, shared, clock, logger),
		Logger:   logger,
		Fared:    fared,
		Metrics:  telemetry.NewEmitter(os.Stdout, clock, source),
	})
	if err != nil {
		return nil, err
	}
	return api.Lambda, nil
}

// ownerRate is how many requests of one owner the function takes. In a local run one owner
// often stands for all, so nobody is limited there.
func ownerRate(c config.Config) httpapi.OwnerRate {
	if c.Local() {
		return httpapi.OwnerRate{}
	}
	return httpapi.DefaultOwnerRate()
}
