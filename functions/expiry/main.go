// Command expiry is the Lambda function that ends overdue holds, at every tick of the
// Scheduler. It only wires: what a sweep does is in package expiry.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/commands"
	"holdfast/shared/config"
	"holdfast/shared/dynamo"
	"holdfast/shared/expiry"
	"holdfast/shared/skew"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// handler answers one tick.
type handler func(ctx context.Context, tick json.RawMessage) error

func main() {
	handle, err := compose(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the expiry function:", err)
		os.Exit(1)
	}
	lambda.Start(handle)
}

// compose builds the function from its environment, once, before the first tick.
func compose(ctx context.Context) (handler, error) {
	c, err := config.Load(topology.FunctionExpiry, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	clock, random := system.RealClock{}, system.RealRandom{}
	shared, err := c.AWS(ctx, skew.NewGauge(clock))
	if err != nil {
		return nil, err
	}
	client := dynamodb.NewFromConfig(shared, func(o *dynamodb.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalDynamoDBEndpoint)
			dynamo.WithoutClientToken(o)
		}
	})
	store := dynamo.NewStore(client, c.TableName, clock, random)
	source := telemetry.Source{Stage: string(c.Stage), Function: string(topology.FunctionExpiry)}
	logger := telemetry.NewLogger(os.Stdout, source)
	sweep, err := expiry.NewSweep(store, commands.New(store, clock, random), clock, logger, c.SweepPageItems)
	if err != nil {
		return nil, err
	}
	return expiry.NewHandler(sweep, telemetry.NewEmitter(os.Stdout, clock, source), random, logger).Handle, nil
}
