// Command expiry is the Lambda function that ends overdue holds, for each batch of due
// messages and at every tick of the Scheduler. It only wires: what is done with a hold is
// in package expiry.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/commands"
	"holdfast/shared/config"
	"holdfast/shared/dynamo"
	"holdfast/shared/expiry"
	"holdfast/shared/skew"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// handler answers one batch of messages, or one tick.
type handler func(ctx context.Context, event json.RawMessage) (any, error)

func main() {
	handle, err := compose(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the expiry function:", err)
		os.Exit(1)
	}
	lambda.Start(handle)
}

// compose builds the function from its environment, once, before the first event.
func compose(ctx context.Context) (handler, error) {
	c, err := config.Load(topology.FunctionExpiry, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	if c.Local() && c.LocalSQSEndpoint == "" {
		return nil, errors.New("a local run must name its server of queues")
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
	queues := sqs.NewFromConfig(shared, func(o *sqs.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalSQSEndpoint)
		}
		// What is not sent comes again by itself, with the queue or the next sweep; two layers
		// of retries would multiply.
		o.Retryer = aws.NopRetryer{}
	})
	fared := telemetry.NewCommandTally()
	store := dynamo.NewCountedStore(client, c.TableName, clock, random, fared)
	ahead := expiry.NewReadAhead(store)
	source := telemetry.Source{Stage: string(c.Stage), Function: string(topology.FunctionExpiry)}
	function, err := expiry.NewFunction(expiry.FunctionPorts{
		Store: store, Releaser: commands.NewCounted(ahead, clock, random, fared), Commands: fared, Ahead: ahead, Parking: store, Leases: store,
		Due: expiry.NewQueue(queues, c.DueQueueURL), Failed: expiry.NewQueue(queues, c.ExpiryFailedQueueURL),
		Skew: gauge, Metrics: telemetry.NewEmitter(os.Stdout, clock, source),
		Clock: clock, Random: random, Parallel: system.RealParallel{}, Logger: telemetry.NewLogger(os.Stdout, source),
	}, expiry.SweepSettings{PageItems: c.SweepPageItems, ParallelMax: expiry.ParallelMaxDefault})
	if err != nil {
		return nil, err
	}
	return function.Handle, nil
}
