// Command reconcile is the Lambda function that publishes, every few minutes, what the
// outbox missed, and counts what it put aside. It only wires: what is done is in packages
// outbox and reconcile.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"holdfast/shared/config"
	"holdfast/shared/dynamo"
	"holdfast/shared/outbox"
	"holdfast/shared/reconcile"
	"holdfast/shared/system"
	"holdfast/shared/telemetry"
	"holdfast/shared/topology"
)

// handler answers one tick.
type handler func(ctx context.Context, tick json.RawMessage) error

func main() {
	handle, err := compose(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "start the reconcile function:", err)
		os.Exit(1)
	}
	lambda.Start(handle)
}

// compose builds the function from its environment, once, before the first tick.
func compose(ctx context.Context) (handler, error) {
	c, err := config.Load(topology.FunctionReconcile, os.LookupEnv)
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
		}
	})
	clock := system.RealClock{}
	source := telemetry.Source{Stage: string(c.Stage), Function: string(topology.FunctionReconcile)}
	logger, metrics := telemetry.NewLogger(os.Stdout, source), telemetry.NewEmitter(os.Stdout, clock, source)
	store := dynamo.NewStore(table, c.TableName, clock, system.RealRandom{})
	relay, err := outbox.NewRelay(outbox.Ports{
		Publisher: newBus(c, shared), Queue: newQueue(c, shared), Marker: store, Decode: dynamo.DecodeEventImage,
		Metrics: metrics, Clock: clock, Random: system.RealRandom{}, Logger: logger,
	}, outbox.Settings{
		Bus: c.EventBusName, Stage: string(c.Stage), CallBytesMax: outbox.CallBytesMaxDefault,
		SagaQueueURL: c.SagaQueueURL, DueQueueURL: c.DueQueueURL,
	})
	if err != nil {
		return nil, err
	}
	return reconcile.NewHandler(reconcile.Ports{
		Redrive: outbox.NewRedrive(relay, store), Quarantine: store, Metrics: metrics, Clock: clock, Logger: logger,
	}).Handle, nil
}

// The relay decides what is sent again; two layers of retries would multiply.

func newBus(c config.Config, shared aws.Config) *eventbridge.Client {
	return eventbridge.NewFromConfig(shared, func(o *eventbridge.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalEventBridgeEndpoint)
		}
		o.Retryer = aws.NopRetryer{}
	})
}

func newQueue(c config.Config, shared aws.Config) *sqs.Client {
	return sqs.NewFromConfig(shared, func(o *sqs.Options) {
		if c.Local() {
			o.BaseEndpoint = config.Endpoint(c.LocalSQSEndpoint)
		}
		o.Retryer = aws.NopRetryer{}
	})
}
