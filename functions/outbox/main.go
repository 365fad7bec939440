// Command outbox is the Lambda function that publishes the ledger's events from the
// table's stream, wakes the saga where they concern it, and has holds looked at when they
// are due. It only wires: what the relay does is in package outbox.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/config"
	"holdfast/shared/dynamo"
	"holdfast/shared/outbox"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// handler answers one batch of the stream.
type handler func(ctx context.Context, batch events.DynamoDBEvent) (events.DynamoDBEventResponse, error)

func main() {
	handle, err := compose(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the outbox function:", err)
		os.Exit(1)
	}
	lambda.Start(handle)
}

// compose builds the function from its environment, once, before the first batch.
func compose(ctx context.Context) (handler, error) {
	c, err := config.Load(topology.FunctionOutbox, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	shared, err := c.AWS(ctx, nil)
	if err != nil {
		return nil, err
	}
	table := dynamodb.NewFromConfig(shared, func(o *dynamodb.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalDynamoDBEndpoint)
			dynamo.WithoutClientToken(o)
		}
	})
	bus := eventbridge.NewFromConfig(shared, func(o *eventbridge.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalEventBridgeEndpoint)
		}
		// The relay decides what is sent again; two layers of retries would multiply.
		o.Retryer = aws.NopRetryer{}
	})
	queue := sqs.NewFromConfig(shared, func(o *sqs.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalSQSEndpoint)
		}
		o.Retryer = aws.NopRetryer{}
	})
	clock, random := system.RealClock{}, system.RealRandom{}
	source := telemetry.Source{Stage: string(c.Stage), Function: string(topology.FunctionOutbox)}
	relay, err := outbox.NewRelay(outbox.Ports{
		Publisher: bus, Queue: queue, Marker: dynamo.NewStore(table, c.TableName, clock, random), Decode: dynamo.DecodeEventImage,
		Metrics: telemetry.NewEmitter(os.Stdout, clock, source), Clock: clock, Random: random,
		Logger: telemetry.NewLogger(os.Stdout, source),
	}, outbox.Settings{
		Bus: c.EventBusName, Stage: string(c.Stage), CallBytesMax: outbox.CallBytesMaxDefault,
		SagaQueueURL: c.SagaQueueURL, DueQueueURL: c.DueQueueURL,
	})
	if err != nil {
		return nil, err
	}
	return relay.Handle, nil
}
